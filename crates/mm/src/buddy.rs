//! The buddy lists: splitting a block on allocation, merging buddies on free.
//!
//! An allocation takes the head of the smallest sufficient list of its type and puts upper halves
//! back at the head, so that pages from one large block come out ascending. A freed block merges
//! upwards while its buddy is free at the same order. It goes to the head of its list, unless the
//! surrounding block looks likely to merge soon: then it goes to the tail, where it is left alone.
//! Source: kernel-behaviour §2.2, §2.3, §10.8.
//!
//! Up to 6.9 a free block stays on the list of the type it was freed as, even if its pageblock has
//! changed type since. From 6.10 on its list is always its pageblock's: a merge across pageblocks
//! takes the type of the freed block.

use crate::event::{Event, Listen};
use crate::pcp;
use crate::rules::FreeLists;
use crate::state::{FrameKind, Locked};
use crate::types::{MAX_ORDER, MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

impl Locked<'_> {
    #[inline(always)]
    pub(crate) fn add_to_free_list(&mut self, pfn: Pfn, order: Order, t: MigrateType, to_tail: bool) {
        self.frames.set(pfn, FrameKind::Buddy(t), order);
        let list = &mut self.zone.lists[order.index()][t.index()];
        if to_tail {
            self.frames.push_back(list, pfn, order);
        } else {
            self.frames.push_front(list, pfn, order);
        }
        self.zone.nr_free[order.index()] += 1;
        if order.is_whole_pageblock() {
            self.blocks.set_free(pfn.pageblock(), true);
        }
    }

    /// Takes a block off its free list; its tag is cleared.
    #[inline(always)]
    pub(crate) fn del_from_free_list(&mut self, pfn: Pfn, order: Order, t: MigrateType) {
        let list = &mut self.zone.lists[order.index()][t.index()];
        self.frames.unlink(list, pfn, order);
        self.frames.clear(pfn, order);
        self.zone.nr_free[order.index()] -= 1;
        if order.is_whole_pageblock() {
            self.blocks.set_free(pfn.pageblock(), false);
        }
    }

    /// Frees a block into the lists as type `t`, merging it with its buddies. Its tag has been
    /// cleared.
    pub(crate) fn free_one_block(&mut self, pfn: Pfn, order: Order, t: MigrateType, force_tail: bool) {
        self.shared.work.buddy_blocks += 1;
        self.mod_free_pages_of(t, i64::from(order.pages()));
        self.merge_into_lists(pfn, order, t, force_tail);
    }

    /// Merges a block that has been counted with its buddies, and puts the result on its list.
    #[inline(always)]
    pub(crate) fn merge_into_lists(&mut self, pfn: Pfn, order: Order, t: MigrateType, force_tail: bool) {
        let (mut pfn, mut order) = (pfn, order);
        while order < MAX_ORDER {
            if self.zone.compaction.capture.wants(order) && self.capture(pfn, order, t) {
                self.mod_free_pages_of(t, -i64::from(order.pages()));
                return;
            }
            let buddy = pfn.buddy(order);
            let Some(buddy_type) = self.mergeable_buddy(buddy, order, t) else {
                break;
            };
            self.del_from_free_list(buddy, order, buddy_type);
            self.shared.work.merges += 1;
            if buddy_type != t && self.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
                self.set_range_type(buddy, order, t);
            }
            pfn = Pfn::new(pfn.get() & buddy.get());
            order = order.up();
        }
        let to_tail = force_tail || self.merge_likely(pfn, order);
        self.add_to_free_list(pfn, order, t, to_tail);
    }

    /// Frees a block of any order as the type of its pageblock, or of each of its pageblocks.
    pub(crate) fn free_by_pageblock(&mut self, pfn: Pfn, order: Order) {
        let piece = match self.shared.profile.buddy.free_lists {
            FreeLists::AsFreed => order,
            FreeLists::AsPageblock => order.min(PAGEBLOCK_ORDER),
        };
        for at in (0..order.pages()).step_by(piece.pages() as usize).map(|i| pfn.plus(i)) {
            let t = self.blocks.migratetype(at.pageblock());
            self.free_one_block(at, piece, t, false);
        }
    }

    /// Sets the type of all pageblocks of a block of at least pageblock size.
    pub(crate) fn set_range_type(&mut self, pfn: Pfn, order: Order, t: MigrateType) {
        for b in 0..(order.pages() / PAGEBLOCK_PAGES) as usize {
            self.blocks.set_migratetype(pfn.pageblock() + b, t);
        }
    }

    /// The list type of the buddy, if it is free at exactly this order and may merge with a block
    /// of type `t`.
    #[inline(always)]
    fn mergeable_buddy(&self, buddy: Pfn, order: Order, t: MigrateType) -> Option<MigrateType> {
        if order < PAGEBLOCK_ORDER {
            let tag = self.frames.split_tag(buddy);
            return tag.is_buddy_of(order).then(|| tag.buddy_type());
        }
        let block = buddy.pageblock();
        if !self.zone.spans(buddy) || !self.frames.block_tag(block).is_buddy_of(order) {
            return None;
        }
        // The freed block's own pageblock already has type t, or t is the type it was sampled as.
        let other = self.blocks.migratetype(block);
        let alike = other == t || other.is_mergeable() && t.is_mergeable();
        (alike || self.shared.profile.buddy.reserved_blocks_merge).then(|| self.frames.block_tag(block).buddy_type())
    }

    /// Whether the buddy of the surrounding block is free, so that the freed block may soon merge
    /// twice.
    #[inline(always)]
    fn merge_likely(&self, pfn: Pfn, order: Order) -> bool {
        if order >= PAGEBLOCK_ORDER {
            return false;
        }
        let parent = Pfn::new(pfn.get() & pfn.buddy(order).get());
        let uncle = parent.buddy(order.up());
        if order.up() == PAGEBLOCK_ORDER {
            return self.zone.spans(uncle) && self.frames.block_tag(uncle.pageblock()).is_buddy_of(order.up());
        }
        self.frames.split_tag(uncle).is_buddy_of(order.up())
    }

    /// Takes the smallest sufficient block of exactly this type; the rest goes back. The block has
    /// no tag yet.
    #[inline(always)]
    pub(crate) fn rmqueue_smallest(&mut self, order: Order, t: MigrateType) -> Option<Pfn> {
        for o in order.and_up() {
            let Some(pfn) = self.zone.lists[o.index()][t.index()].first() else {
                continue;
            };
            self.del_from_free_list(pfn, o, t);
            self.expand(pfn, order, o, t);
            if self.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
                self.mod_free_pages_of(t, -i64::from(order.pages()));
            }
            self.shared.work.buddy_blocks += 1;
            let rules = self.shared.profile.pcp.lists;
            self.shared.emit(Listen::KMEM, || Event::PageAllocZoneLocked {
                pfn,
                order,
                migratetype: t,
                percpu_refill: pcp::allows(rules, order) && t.index() < MigrateType::PCP_TYPES,
            });
            return Some(pfn);
        }
        None
    }

    /// Halves the block at `pfn` from order `high` down to `low`; each upper half goes to the head
    /// of its list.
    #[inline(always)]
    pub(crate) fn expand(&mut self, pfn: Pfn, low: Order, high: Order, t: MigrateType) {
        let mut o = high;
        while o > low {
            o = o.down();
            self.shared.work.splits += 1;
            self.add_to_free_list(pfn.plus(o.pages()), o, t, false);
        }
    }

    /// Moves a free block to the tail of another type's list, or to the head in older kernels
    /// (§2.5.2).
    pub(crate) fn move_to_free_list(&mut self, pfn: Pfn, order: Order, from: MigrateType, to: MigrateType) {
        let list = &mut self.zone.lists[order.index()][from.index()];
        self.frames.unlink(list, pfn, order);
        self.frames.set(pfn, FrameKind::Buddy(to), order);
        let list = &mut self.zone.lists[order.index()][to.index()];
        if self.shared.profile.buddy.moves_to_tail {
            self.frames.push_back(list, pfn, order);
        } else {
            self.frames.push_front(list, pfn, order);
        }
        if self.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
            self.mod_free_pages_of(from, -i64::from(order.pages()));
            self.mod_free_pages_of(to, i64::from(order.pages()));
        }
        self.shared.work.stolen_blocks += 1;
    }
}
