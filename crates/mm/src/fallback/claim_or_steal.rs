//! Fallback that claims a foreign pageblock as a whole or not at all. Blocks of pageblocks that
//! cannot be claimed are stolen one by one, smallest first, and their remainders stay with their
//! type.
//!
//! Source: kernel-behaviour §2.6 (6.15, and the stable kernels that took it over).

use super::{RmqueueMode, alike_pages, can_steal};
use crate::gfp::AllocFlags;
use crate::state::Locked;
use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

impl Locked<'_> {
    /// Claims a pageblock unless this refill has begun to steal, or else steals a block.
    #[inline(never)]
    pub(super) fn rmqueue_claim_or_steal(
        &mut self,
        order: Order,
        t: MigrateType,
        flags: AllocFlags,
        mode: &mut RmqueueMode,
    ) -> Option<Pfn> {
        if *mode == RmqueueMode::Normal
            && let Some(pfn) = self.rmqueue_claim(order, t, flags)
        {
            return Some(pfn);
        }
        if flags.any(AllocFlags::NOFRAGMENT) {
            return None;
        }
        let pfn = self.rmqueue_steal(order, t, flags)?;
        *mode = RmqueueMode::Steal;
        Some(pfn)
    }

    /// Takes a block by claiming a whole foreign pageblock for type `t`: tries one foreign block of
    /// each order, from the highest down, until one lies in a pageblock that may be claimed (§2.6).
    fn rmqueue_claim(&mut self, order: Order, t: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let min_order = if flags.any(AllocFlags::NOFRAGMENT) { order.max(PAGEBLOCK_ORDER) } else { order };
        for o in min_order.and_up().rev() {
            if !can_steal(o, t) {
                return None;
            }
            let Some(from) = self.zone.fallback_at(o, t) else {
                continue;
            };
            let block = self.zone.lists[o.index()][from.index()].first().expect("the list was found non-empty");
            if let Some(pfn) = self.claim_block(block, o, from, order, t, flags) {
                self.emit_extfrag(pfn, (order, t, flags.wmark), (o, from));
                return Some(pfn);
            }
        }
        None
    }

    /// Claims the pageblock of the free block at `block` for type `t` and takes a block of `order`
    /// from it, if at least half of the pageblock is free or compatible with `t`.
    fn claim_block(
        &mut self,
        block: Pfn,
        o: Order,
        from: MigrateType,
        order: Order,
        t: MigrateType,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        if o >= PAGEBLOCK_ORDER {
            self.del_from_free_list(block, o, from);
            self.mod_free_pages_of(from, -i64::from(o.pages()));
            self.set_range_type(block, o, t);
            self.expand(block, order, o, t);
            self.mod_free_pages_of(t, i64::from(o.pages() - order.pages()));
            self.shared.work.buddy_blocks += 1;
            return Some(block);
        }
        // The attempt boosts the watermarks, whether it succeeds or not.
        if self.boost_watermark(1) && flags.any(AllocFlags::KSWAPD) {
            self.zone.boosted_flag = true;
        }
        let (start, end) = (block.pageblock_start(), block.pageblock_end());
        if !self.zone.spans(start) || !self.zone.spans(end.minus(1)) {
            return None;
        }
        let (free, movable) = self.count_pageblock(start);
        if free + alike_pages(t, from, free, movable) < PAGEBLOCK_PAGES / 2 {
            return None;
        }
        self.move_freepages_block(block, t);
        self.blocks.set_migratetype(block.pageblock(), t);
        self.rmqueue_smallest(order, t)
    }

    /// Takes the smallest sufficient foreign block; the remainder stays with its type (§2.6).
    fn rmqueue_steal(&mut self, order: Order, t: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let (o, from) = order.and_up().find_map(|o| Some((o, self.zone.fallback_at(o, t)?)))?;
        let pfn = self.zone.lists[o.index()][from.index()].first().expect("the list was found non-empty");
        self.del_from_free_list(pfn, o, from);
        self.expand(pfn, order, o, from);
        self.mod_free_pages_of(from, -i64::from(order.pages()));
        self.shared.work.buddy_blocks += 1;
        self.emit_extfrag(pfn, (order, t, flags.wmark), (o, from));
        Some(pfn)
    }

    /// Counts the free and the movable pages of the pageblock at `start`.
    fn count_pageblock(&mut self, start: Pfn) -> (u32, u32) {
        let (mut free, mut movable) = (0, 0);
        let mut at = start;
        while at < start.pageblock_end() {
            let tag = self.frames.tag(at);
            let pages = if tag.is_buddy() { tag.order().pages() } else { 1 };
            free += if tag.is_buddy() { pages } else { 0 };
            movable += tag.movable_pages();
            at = at.plus(pages);
        }
        self.shared.work.steal_scanned += u64::from(PAGEBLOCK_PAGES);
        (free, movable)
    }
}
