//! The engine's knowledge of each page frame, and the little memory it takes.
//!
//! A frame has a one-byte [`Tag`] (the kind and order of the block it heads) and a word of four
//! bytes: the number that an allocated block's owner keeps with it, or the position of a free one
//! in its list ([`super::list`]). No block is both. They are separate arrays because a scan of tags
//! needs no words.
//!
//! The alternative was measured: links both ways in every frame, and owners apart, thirteen bytes.
//! The lowest median of seven out of three or more turns with either, on two cores of a Xeon that
//! did other things as well:
//!
//! | `cargo bench` | links | positions |
//! |---|---|---|
//! | 13, touch or unmap random pages, 64 GiB | 75 ns | 78 ns |
//! | 13b, the same, 1 TiB | 197 ns | 217 ns |
//! | 3, free in random order, 4 GiB | 58 ns | 85 ns |
//! | 3b, the same, 1 TiB | 132 ns | 97 ns |
//! | a run of the headline experiment on 1 TiB, resident | 4.5 GiB | 2.7 GiB |
//!
//! Positions won because of the memory. A page on an LRU with order needs a position beside its
//! owner: that, its flags and its slot in the list are ten bytes more, and at most thirteen when
//! the list has holes and has just grown ([`super::Lru`]). A machine with nothing to reclaim does
//! not touch them.
//!
//! A pageblock that is whole (free at order 9 or 10, on a per-CPU list, or one huge page) keeps
//! both in a second, per-pageblock set of arrays, and none of its 512 frames is touched. Memory
//! that was never split costs nothing, because the arrays start as untouched zero pages of the
//! host.
//!
//! Invariants (walked by [`crate::check`]):
//! - the frame tags of a pageblock whose block tag is not [`Tag::SPLIT`] are all [`Tag::TAIL`];
//! - inside a split pageblock, a head of order o is followed by 2^o − 1 tails.

use super::list::{List, ListPos, NIL};
use super::tag::{FrameKind, Tag};
use crate::prefetch::prefetch;
use crate::types::{MAX_ORDER, Order, PAGEBLOCK_PAGES, Pfn};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// The state of all frames.
#[derive(Clone)]
pub struct Frames {
    tags: Vec<u8>,
    words: Vec<u32>,
    block_tags: Vec<u8>,
    block_words: Vec<u32>,
}

const _: () = assert!(size_of::<Tag>() == 1);

impl Frames {
    /// The engine's bytes for each frame.
    pub const BYTES_PER_FRAME: usize = size_of::<Tag>() + size_of::<u32>();

    /// State for frames `0..frames`, all of it untouched zero pages.
    pub(crate) fn new(frames: u32) -> Frames {
        let blocks = (frames as usize).div_ceil(PAGEBLOCK_PAGES as usize);
        let frames = blocks * PAGEBLOCK_PAGES as usize;
        Frames {
            tags: vec![0; frames],
            words: vec![0; frames],
            block_tags: vec![0; blocks],
            block_words: vec![0; blocks],
        }
    }

    /// Pageblocks of the machine, holes included.
    pub fn nr_pageblocks(&self) -> usize {
        self.block_tags.len()
    }

    /// Number of frames, with the last pageblock filled up.
    pub(crate) fn nr_frames(&self) -> usize {
        self.tags.len()
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

    /// The tag of the head of a block known to have this order; reads one array instead of both.
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

    /// Makes `pfn` no longer a head: it has become part of a larger block, or is about to be set
    /// anew.
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

    /// Turns a pageblock-sized or smaller allocated block of `order` into single pages of the same
    /// kind.
    pub(crate) fn split_allocated(&mut self, pfn: Pfn, order: Order) {
        let kind = self.tag(pfn).kind();
        let owner = self.owner(pfn, order);
        self.clear(pfn, order);
        for i in 0..order.pages() {
            let page = pfn.plus(i);
            self.set(page, kind, Order::ZERO);
            self.words[page.index()] = owner.wrapping_add(i);
        }
    }

    /// Turns single allocated pages of one kind into a block of `order`; their owner's numbers are
    /// lost.
    ///
    /// # Panics
    /// If they are not single allocated pages of one kind.
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
    fn word(&self, pfn: Pfn, order: Order) -> u32 {
        if order.is_whole_pageblock() { self.block_words[pfn.pageblock()] } else { self.words[pfn.index()] }
    }

    #[inline(always)]
    fn set_word(&mut self, pfn: Pfn, order: Order, word: u32) {
        if order.is_whole_pageblock() {
            self.block_words[pfn.pageblock()] = word;
        } else {
            self.words[pfn.index()] = word;
        }
    }

    /// The number that the owner of the allocated block at `pfn` keeps with it
    /// ([`Frames::set_owner`]).
    #[inline(always)]
    pub fn owner(&self, pfn: Pfn, order: Order) -> u32 {
        self.word(pfn, order)
    }

    /// Keeps a number for the owner of the allocated block at `pfn`. If the block is split, each of
    /// its pages gets the number of the page before it plus one; when the block is freed, the
    /// number is lost.
    #[inline(always)]
    pub fn set_owner(&mut self, pfn: Pfn, order: Order, owner: u32) {
        debug_assert!(self.tag(pfn).is_allocated() || self.tag(pfn).kind() == FrameKind::IsolatedLru);
        self.set_word(pfn, order, owner);
    }

    /// The position that the block at `pfn` has in its list.
    #[inline(always)]
    pub(crate) fn place(&self, pfn: Pfn, order: Order) -> ListPos {
        ListPos(self.word(pfn, order))
    }

    /// Puts `pfn` first in the list.
    #[inline(always)]
    pub(crate) fn push_front(&mut self, list: &mut List, pfn: Pfn, order: Order) {
        let place = list.push_front(pfn);
        self.set_word(pfn, order, place.0);
    }

    /// Puts `pfn` last in the list.
    #[inline(always)]
    pub(crate) fn push_back(&mut self, list: &mut List, pfn: Pfn, order: Order) {
        let place = list.push_back(pfn);
        self.set_word(pfn, order, place.0);
    }

    /// Takes `pfn` out of its list.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, list: &mut List, pfn: Pfn, order: Order) {
        list.remove(pfn, self.place(pfn, order));
        if list.is_sparse() {
            self.pack(list, order);
        }
    }

    #[cold]
    #[inline(never)]
    fn pack(&mut self, list: &mut List, order: Order) {
        list.pack(|pfn, place| self.set_word(pfn, order, place.0));
    }

    /// Rotates the list so that `first` comes first; the entries before it go to the end in their
    /// order.
    pub(crate) fn rotate_to_front(&mut self, list: &mut List, first: Pfn, order: Order) {
        list.rotate_to_front(self.place(first, order), |pfn, place| self.set_word(pfn, order, place.0));
    }

    /// Prefetches all that is kept of a frame: its tag and its word.
    #[inline(always)]
    pub(crate) fn prefetch_frame(&self, pfn: u32) {
        prefetch(self.tags.as_ptr().wrapping_add(pfn as usize));
        prefetch(self.words.as_ptr().wrapping_add(pfn as usize));
    }

    /// Prefetches the slot of a single frame's buddy in `lists`, if the buddy is free and would be
    /// taken from its list.
    #[inline(always)]
    pub(crate) fn prefetch_buddys_slot(&self, pfn: u32, lists: &[List]) {
        let buddy = Pfn::new(pfn).buddy(Order::ZERO);
        let tag = self.tag_of(buddy, Order::ZERO);
        if tag.is_buddy_of(Order::ZERO)
            && let Some(slot) = lists[tag.buddy_type().index()].slot_of(self.place(buddy, Order::ZERO))
        {
            prefetch(slot);
        }
    }

    /// Rotates the list so that `last` comes last; the entries after it go to the front in their
    /// order.
    pub(crate) fn rotate_to_back(&mut self, list: &mut List, last: Pfn, order: Order) {
        if let Some(first) = list.after(self.place(last, order)) {
            self.rotate_to_front(list, first, order);
        }
    }

    /// Pushes `pfn` on a stack of isolated free pages, linked through the words.
    #[inline(always)]
    pub(crate) fn stack_push(&mut self, top: &mut u32, pfn: Pfn) {
        self.words[pfn.index()] = *top;
        *top = pfn.get();
    }

    /// Pops from a stack made by [`Frames::stack_push`].
    #[inline(always)]
    pub(crate) fn stack_pop(&mut self, top: &mut u32) -> Option<Pfn> {
        if *top == NIL {
            return None;
        }
        let pfn = Pfn::new(*top);
        *top = self.words[pfn.index()];
        Some(pfn)
    }
}

#[cfg(test)]
mod tests {
    //! These tests pass through the `unsafe` block and need nothing else of the engine, so
    //! continuous integration runs them under Miri too.

    use super::*;

    #[test]
    fn a_list_runs_from_the_first_frame_to_the_last() {
        let mut frames = Frames::new(1024);
        let mut list = List::new();
        let at = [0, 511, 512, 1023].map(Pfn::new);
        for pfn in at {
            frames.set(pfn, FrameKind::Lru, Order::ZERO);
            frames.push_back(&mut list, pfn, Order::ZERO);
        }
        assert!(list.iter().eq(at));
        for pfn in at {
            frames.unlink(&mut list, pfn, Order::ZERO);
        }
        assert!(list.is_empty());
    }

    #[test]
    fn a_prefetch_may_lie_outside_all_frames() {
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
