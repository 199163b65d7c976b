//! What is known of each page frame, and how little memory that takes.
//!
//! A frame has a one-byte [`Tag`] (what it is the head of), eight bytes of [`Link`] (its neighbours in a list) and four
//! for its owner. Link and owner are apart because a page on the LRU is both linked and owned: thirteen bytes a frame.
//! They are arrays of their own because what walks lists does not ask for owners. Measured beside it, on the engine's
//! benchmark (machines a sixteenth the size, medians of three, quiet): with link and owner in one word of twelve bytes,
//! frees in random order took 8 to 13 % longer, churn in bulk 15 %, random faults and unmaps on 64 GiB 6 %. In a model of
//! 64 GiB with the LRU's lists, which the engine does not have yet, one word rotated them 7 % slower and faulted at
//! random 21 % faster; with the tag in it, too (sixteen bytes), looking through the tags took five times as long.
//!
//! A pageblock that is whole (free at order 9 or 10, on a per-CPU list, or one huge page) keeps all three in a second,
//! per-pageblock set of arrays, and none of its 512 frames is touched: memory that was never
//! split costs nothing, because the arrays start as untouched zero pages of the host.
//!
//! Invariants (walked by [`crate::check`]):
//! - the frame tags of a pageblock whose block tag is not [`Tag::SPLIT`] are all [`Tag::TAIL`];
//! - inside a split pageblock, a head of order o is followed by 2^o − 1 tails.

use super::list::{List, NIL};
use super::tag::{FrameKind, Tag};
use crate::prefetch::prefetch;
use crate::types::{MAX_ORDER, Order, PAGEBLOCK_PAGES, Pfn};
use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// A frame's neighbours in the list it is on.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Link {
    pub(crate) next: u32,
    pub(crate) prev: u32,
}

/// The state of all frames.
#[derive(Clone)]
pub struct Frames {
    tags: Vec<u8>,
    links: Vec<Link>,
    owners: Vec<u32>,
    block_tags: Vec<u8>,
    block_links: Vec<Link>,
    block_owners: Vec<u32>,
}

const _: () = assert!(size_of::<Link>() == 8 && size_of::<Tag>() == 1);

impl Frames {
    /// Bytes the engine keeps for each frame.
    pub const BYTES_PER_FRAME: usize = size_of::<Tag>() + size_of::<Link>() + size_of::<u32>();

    /// State for frames `0..frames`, all of it untouched zero pages.
    pub(crate) fn new(frames: u32) -> Frames {
        let blocks = (frames as usize).div_ceil(PAGEBLOCK_PAGES as usize);
        let frames = blocks * PAGEBLOCK_PAGES as usize;
        Frames {
            tags: vec![0; frames],
            links: zeroed_links(frames),
            owners: vec![0; frames],
            block_tags: vec![0; blocks],
            block_links: zeroed_links(blocks),
            block_owners: vec![0; blocks],
        }
    }

    /// Number of pageblocks.
    pub fn nr_pageblocks(&self) -> usize {
        self.block_tags.len()
    }

    /// The tag of pageblock `block` as a whole.
    #[inline(always)]
    pub fn block_tag(&self, block: usize) -> Tag {
        Tag(self.block_tags[block])
    }

    /// The tag of the frame, whether its pageblock is whole or split.
    #[inline(always)]
    pub fn tag(&self, pfn: Pfn) -> Tag {
        let block = self.block_tags[pfn.pageblock()];
        if block == Tag::SPLIT.0 {
            Tag(self.tags[pfn.index()])
        } else if pfn.is_pageblock_aligned() && block != Tag::SECOND_HALF.0 {
            Tag(block)
        } else {
            Tag::TAIL
        }
    }

    /// The tag of a frame in a pageblock known to be split.
    #[inline(always)]
    pub(crate) fn split_tag(&self, pfn: Pfn) -> Tag {
        debug_assert!(self.block_tags[pfn.pageblock()] == Tag::SPLIT.0);
        Tag(self.tags[pfn.index()])
    }

    /// The tag of the head of a block known to have this order: one array is looked at, not both.
    #[inline(always)]
    pub(crate) fn tag_of(&self, pfn: Pfn, order: Order) -> Tag {
        let block = self.block_tags[pfn.pageblock()];
        if order.is_whole_pageblock() {
            Tag(block)
        } else if block == Tag::SPLIT.0 {
            Tag(self.tags[pfn.index()])
        } else {
            Tag::TAIL
        }
    }

    /// The 512 tags of a split pageblock.
    #[inline]
    pub(crate) fn split_block_tags(&self, block: usize) -> &[u8] {
        &self.tags[block << 9..(block + 1) << 9]
    }

    /// Makes `pfn` the head of a block of `kind` and `order`.
    #[inline(always)]
    pub(crate) fn set(&mut self, pfn: Pfn, kind: FrameKind, order: Order) {
        if order.is_whole_pageblock() {
            self.set_whole(pfn, kind, order);
        } else {
            debug_assert!(self.block_tags[pfn.pageblock()] == Tag::SPLIT.0);
            self.tags[pfn.index()] = Tag::new(kind, order).0;
        }
    }

    #[inline(never)]
    fn set_whole(&mut self, pfn: Pfn, kind: FrameKind, order: Order) {
        debug_assert!(pfn.is_aligned(order));
        self.block_tags[pfn.pageblock()] = Tag::new(kind, order).0;
        if order == MAX_ORDER {
            self.block_tags[pfn.pageblock() + 1] = Tag::SECOND_HALF.0;
        }
    }

    /// Makes each of these pages of split pageblocks a single page of `kind`.
    #[inline(always)]
    pub(crate) fn set_pages(&mut self, pages: Range<u32>, kind: FrameKind) {
        self.tags[pages.start as usize..pages.end as usize].fill(Tag::new(kind, Order::ZERO).0);
    }

    /// Makes single pages no longer heads.
    #[inline(always)]
    pub(crate) fn clear_pages(&mut self, pages: Range<u32>) {
        self.tags[pages.start as usize..pages.end as usize].fill(Tag::TAIL.0);
    }

    /// Makes `pfn` no longer a head: it has become part of something larger, or is about to be set anew.
    #[inline(always)]
    pub(crate) fn clear(&mut self, pfn: Pfn, order: Order) {
        if order.is_whole_pageblock() {
            self.block_tags[pfn.pageblock()] = Tag::SPLIT.0;
            if order == MAX_ORDER {
                self.block_tags[pfn.pageblock() + 1] = Tag::SPLIT.0;
            }
        } else {
            self.tags[pfn.index()] = Tag::TAIL.0;
        }
    }

    /// Turns a pageblock-sized or smaller allocated block of `order` into single pages of the same kind.
    pub(crate) fn split_allocated(&mut self, pfn: Pfn, order: Order) {
        let kind = self.tag(pfn).kind();
        let owner = self.owner(pfn, order);
        self.clear(pfn, order);
        for i in 0..order.pages() {
            let page = pfn.plus(i);
            self.set(page, kind, Order::ZERO);
            self.owners[page.index()] = owner.wrapping_add(i);
        }
    }

    /// Turns single allocated pages of one kind into a block of `order`; what their owner stored is lost.
    ///
    /// # Panics
    /// If they are not that.
    pub(crate) fn join_allocated(&mut self, pfn: Pfn, order: Order) {
        let kind = self.tag(pfn).kind();
        for page in (0..order.pages()).map(|i| pfn.plus(i)) {
            let tag = self.tag(page);
            assert!(tag == Tag::new(kind, Order::ZERO) && tag.is_allocated(), "{page} cannot be joined to {pfn}");
            self.clear(page, Order::ZERO);
        }
        self.set(pfn, kind, order);
    }

    #[inline(always)]
    fn link(&self, pfn: Pfn, order: Order) -> Link {
        if order.is_whole_pageblock() { self.block_links[pfn.pageblock()] } else { self.links[pfn.index()] }
    }

    #[inline(always)]
    fn link_mut(&mut self, pfn: u32, order: Order) -> &mut Link {
        if order.is_whole_pageblock() {
            &mut self.block_links[(pfn >> 9) as usize]
        } else {
            &mut self.links[pfn as usize]
        }
    }

    /// What the owner of the allocated block at `pfn` keeps with it: see [`Frames::set_owner`].
    #[inline(always)]
    pub fn owner(&self, pfn: Pfn, order: Order) -> u32 {
        if order.is_whole_pageblock() { self.block_owners[pfn.pageblock()] } else { self.owners[pfn.index()] }
    }

    /// Keeps a number for the owner of the allocated block at `pfn`. If the block is split, each of its pages has the
    /// number of the page before it and one; when the block is freed, the number means nothing any more.
    #[inline(always)]
    pub fn set_owner(&mut self, pfn: Pfn, order: Order, owner: u32) {
        debug_assert!(matches!(self.tag(pfn).kind(), FrameKind::Kernel | FrameKind::Lru | FrameKind::MovableOps));
        if order.is_whole_pageblock() {
            self.block_owners[pfn.pageblock()] = owner;
        } else {
            self.owners[pfn.index()] = owner;
        }
    }

    /// The entry after `pfn`, a block of `order`, in its list.
    #[inline(always)]
    pub(crate) fn next(&self, pfn: Pfn, order: Order) -> Option<Pfn> {
        let n = self.link(pfn, order).next;
        if n == NIL { None } else { Some(Pfn::new(n)) }
    }

    /// The entry before `pfn`, a block of `order`, in its list.
    #[inline(always)]
    pub(crate) fn prev(&self, pfn: Pfn, order: Order) -> Option<Pfn> {
        let p = self.link(pfn, order).prev;
        if p == NIL { None } else { Some(Pfn::new(p)) }
    }

    /// Puts `pfn` first.
    #[inline(always)]
    pub(crate) fn push_front(&mut self, list: &mut List, pfn: Pfn, order: Order) {
        let p = pfn.get();
        *self.link_mut(p, order) = Link { next: list.head, prev: NIL };
        if list.head == NIL {
            list.tail = p;
        } else {
            self.link_mut(list.head, order).prev = p;
        }
        list.head = p;
    }

    /// Puts `pfn` last.
    #[inline(always)]
    pub(crate) fn push_back(&mut self, list: &mut List, pfn: Pfn, order: Order) {
        let p = pfn.get();
        *self.link_mut(p, order) = Link { next: NIL, prev: list.tail };
        if list.tail == NIL {
            list.head = p;
        } else {
            self.link_mut(list.tail, order).next = p;
        }
        list.tail = p;
    }

    /// Takes `pfn` out of the list it is in.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, list: &mut List, pfn: Pfn, order: Order) {
        let Link { next, prev } = self.link(pfn, order);
        if prev == NIL {
            debug_assert!(list.head == pfn.get());
            list.head = next;
        } else {
            self.link_mut(prev, order).next = next;
        }
        if next == NIL {
            debug_assert!(list.tail == pfn.get());
            list.tail = prev;
        } else {
            self.link_mut(next, order).prev = prev;
        }
    }

    /// Turns the list so that `first` comes first; the entries before it go to the end in their order.
    pub(crate) fn rotate_to_front(&mut self, list: &mut List, first: Pfn, order: Order) {
        let Some(last) = self.prev(first, order) else {
            return;
        };
        let (old_head, old_tail) = (list.head, list.tail);
        self.link_mut(last.get(), order).next = NIL;
        self.link_mut(first.get(), order).prev = NIL;
        self.link_mut(old_tail, order).next = old_head;
        self.link_mut(old_head, order).prev = old_tail;
        *list = List { head: first.get(), tail: last.get() };
    }

    /// Asks for the link of a frame that may be needed soon; nothing waits for it.
    #[inline(always)]
    pub(crate) fn prefetch_link(&self, pfn: u32) {
        prefetch(self.links.as_ptr().wrapping_add(pfn as usize));
    }

    /// Asks for the tag of a frame, and for its owner.
    #[inline(always)]
    pub(crate) fn prefetch_tag(&self, pfn: u32) {
        prefetch(self.tags.as_ptr().wrapping_add(pfn as usize));
        prefetch(self.owners.as_ptr().wrapping_add(pfn as usize));
    }

    /// Asks for all that freeing a single frame will look at first: its tag and its link.
    #[inline(always)]
    pub(crate) fn prefetch_frame(&self, pfn: u32) {
        prefetch(self.tags.as_ptr().wrapping_add(pfn as usize));
        self.prefetch_link(pfn);
    }

    /// Asks for the list neighbours of a single frame's buddy, if that is free and would be taken from its list.
    #[inline(always)]
    pub(crate) fn prefetch_buddy_neighbours(&self, pfn: u32) {
        let buddy = Pfn::new(pfn).buddy(Order::ZERO);
        if self.tag_of(buddy, Order::ZERO).is_buddy_of(Order::ZERO) {
            let Link { next, prev } = self.links[buddy.index()];
            self.prefetch_link(next);
            self.prefetch_link(prev);
        }
    }

    /// The entries of a list, first to last.
    pub fn iter(&self, list: &List, order: Order) -> impl Iterator<Item = Pfn> + '_ {
        let mut at = list.head;
        core::iter::from_fn(move || {
            if at == NIL {
                return None;
            }
            let pfn = Pfn::new(at);
            at = self.link(pfn, order).next;
            Some(pfn)
        })
    }

    /// Singly linked stack of isolated free pages, threaded through the links: pushes `pfn`.
    #[inline(always)]
    pub(crate) fn stack_push(&mut self, top: &mut u32, pfn: Pfn) {
        self.links[pfn.index()].next = *top;
        *top = pfn.get();
    }

    /// Pops from a stack made by [`Frames::stack_push`].
    #[inline(always)]
    pub(crate) fn stack_pop(&mut self, top: &mut u32) -> Option<Pfn> {
        if *top == NIL {
            return None;
        }
        let pfn = Pfn::new(*top);
        *top = self.links[pfn.index()].next;
        Some(pfn)
    }
}

/// A zeroed array that the host backs with memory only where it is written.
fn zeroed_links(n: usize) -> Vec<Link> {
    let layout = Layout::array::<Link>(n).expect("fewer frames than the address space has bytes");
    if layout.size() == 0 {
        return Vec::new();
    }
    // SAFETY: the layout is that of a `[Link; n]` and not empty; two zero `u32`s are a valid `Link`; length and
    // capacity are the allocated n.
    unsafe {
        let ptr = alloc_zeroed(layout).cast::<Link>();
        if ptr.is_null() {
            handle_alloc_error(layout);
        }
        Vec::from_raw_parts(ptr, n, n)
    }
}

#[cfg(test)]
mod tests {
    //! These pass through both `unsafe` blocks and need nothing else of the engine: continuous integration runs them
    //! under Miri, too.

    use super::*;

    #[test]
    fn links_that_were_never_written_are_zero() {
        assert_eq!(zeroed_links(1500), [Link::default(); 1500]);
        assert!(zeroed_links(0).is_empty());
    }

    #[test]
    fn a_list_runs_from_the_first_frame_to_the_last() {
        let mut frames = Frames::new(1024);
        let mut list = List::EMPTY;
        let at = [0, 511, 512, 1023].map(Pfn::new);
        for pfn in at {
            frames.set(pfn, FrameKind::Lru, Order::ZERO);
            frames.push_back(&mut list, pfn, Order::ZERO);
        }
        assert!(frames.iter(&list, Order::ZERO).eq(at));
        for pfn in at {
            frames.unlink(&mut list, pfn, Order::ZERO);
        }
        assert!(list.is_empty());
    }

    #[test]
    fn what_is_asked_for_ahead_may_lie_outside_all_frames() {
        let frames = Frames::new(512);
        for pfn in [0, 511, 512, NIL] {
            frames.prefetch_frame(pfn);
        }
    }

    #[test]
    fn a_stack_gives_back_what_was_pushed_last() {
        let mut frames = Frames::new(512);
        let mut top = NIL;
        [3, 511, 0].iter().for_each(|pfn| frames.stack_push(&mut top, Pfn::new(*pfn)));
        let popped: Vec<u32> = core::iter::from_fn(|| frames.stack_pop(&mut top)).map(Pfn::get).collect();
        assert_eq!(popped, [0, 511, 3]);
    }
}
