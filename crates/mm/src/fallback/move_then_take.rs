//! Fallback that moves foreign blocks to the request's own lists, and then takes one from those.
//!
//! It moves one block, or all free blocks of the pageblock. The pageblock changes type only if
//! enough of it is free or compatible, so a block can be on the list of another type than its
//! pageblock's. Source: kernel-behaviour §2.5 (4.13–6.9).

use super::{alike_pages, can_steal};
use crate::gfp::AllocFlags;
use crate::state::Locked;
use crate::sysctl::FRAGMENT_STALL_ORDER;
use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

impl Locked<'_> {
    /// Moves foreign blocks until the type's own lists can serve the request.
    #[inline(always)]
    pub(super) fn rmqueue_move_then_take(&mut self, order: Order, t: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        while self.rmqueue_fallback(order, t, flags) {
            if let Some(pfn) = self.rmqueue_smallest(order, t) {
                return Some(pfn);
            }
        }
        None
    }

    /// Moves at least one sufficient foreign block to the lists of `t`; false if there is none.
    #[inline(never)]
    fn rmqueue_fallback(&mut self, order: Order, t: MigrateType, flags: AllocFlags) -> bool {
        let min_order = if flags.any(AllocFlags::NOFRAGMENT) { order.max(PAGEBLOCK_ORDER) } else { order };
        let Some((o, from)) = min_order.and_up().rev().find_map(|o| Some((o, self.zone.fallback_at(o, t)?))) else {
            return false;
        };
        let small_piece_of_a_movable_request = !can_steal(o, t) && t == MigrateType::Movable && o > order;
        let (o, from) = if small_piece_of_a_movable_request {
            order
                .and_up()
                .find_map(|o| Some((o, self.zone.fallback_at(o, t)?)))
                .expect("the block found by the search from above is still there")
        } else {
            (o, from)
        };
        let pfn = self.zone.lists[o.index()][from.index()].first().expect("the list was found non-empty");
        if !self.steal(pfn, o, from, t, flags) {
            return false;
        }
        self.emit_extfrag(pfn, (order, t, flags.wmark), (o, from));
        true
    }

    /// Takes over the free block at `pfn` for type `t`, with all of its pageblock where the rules
    /// allow it (§2.5.2). False if the request would rather wait than have so small a block.
    fn steal(&mut self, pfn: Pfn, o: Order, from: MigrateType, t: MigrateType, flags: AllocFlags) -> bool {
        let old = self.blocks.migratetype(pfn.pageblock());
        if old == MigrateType::HighAtomic {
            self.move_to_free_list(pfn, o, from, t);
            return true;
        }
        if o >= PAGEBLOCK_ORDER {
            self.set_range_type(pfn, o, t);
            self.move_to_free_list(pfn, o, from, t);
            return true;
        }
        let boosted = self.boost_watermark(1);
        let rules = &self.shared.profile.boost;
        if flags.any(AllocFlags::KSWAPD) && (boosted || rules.raises_marks && !rules.spares_small_zones) {
            self.zone.boosted_flag = true;
        }
        if flags.any(AllocFlags::FRAGMENT_STALL)
            && self.shared.decide(&FRAGMENT_STALL_ORDER, |least| u32::from(o.get()) < least)
        {
            return false;
        }
        if !can_steal(o, t) {
            self.move_to_free_list(pfn, o, from, t);
            return true;
        }
        let (free, movable) = self.move_freepages_block(pfn, t);
        if free == 0 {
            self.move_to_free_list(pfn, o, from, t);
        } else if free + alike_pages(t, old, free, movable) >= PAGEBLOCK_PAGES / 2 {
            self.blocks.set_migratetype(pfn.pageblock(), t);
        }
        true
    }
}
