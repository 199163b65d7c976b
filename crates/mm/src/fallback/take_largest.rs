//! Fallback that takes the largest foreign block, whatever the request.
//!
//! If the request may take over the block's pageblock, the other free blocks there move to its own
//! lists, and if these make up half of the pageblock, its type changes. The remainder of the block
//! goes to the request's type in any case; in 3.13, only with the pageblock. Source:
//! kernel-behaviour §2.5.4 (3.13; 4.1–4.12).

use super::can_steal;
use crate::gfp::AllocFlags;
use crate::rules::Fallback;
use crate::state::Locked;
use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

impl Locked<'_> {
    /// Takes a block of `order` from the largest foreign block.
    #[inline(never)]
    pub(super) fn rmqueue_take_largest(&mut self, order: Order, t: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let min_order = if flags.any(AllocFlags::NOFRAGMENT) { order.max(PAGEBLOCK_ORDER) } else { order };
        let (o, from) = min_order.and_up().rev().find_map(|o| Some((o, self.zone.fallback_at(o, t)?)))?;
        let pfn = self.zone.lists[o.index()][from.index()].first().expect("the list was found non-empty");
        let keeps_rest = self.shared.profile.fallback.takes == Fallback::TakeLargest;
        let steals = match keeps_rest {
            true => can_steal(o, t),
            false => t == MigrateType::Reclaimable || can_steal(o, MigrateType::Movable),
        };
        let (mut listed, mut claimed) = (from, false);
        if o >= PAGEBLOCK_ORDER {
            self.set_range_type(pfn, o, t);
            claimed = true;
        } else if steals {
            let (moved, _) = self.move_freepages_block(pfn, t);
            if moved > 0 {
                listed = t;
            }
            if moved >= PAGEBLOCK_PAGES / 2 {
                self.blocks.set_migratetype(pfn.pageblock(), t);
                claimed = true;
            }
        }
        self.del_from_free_list(pfn, o, listed);
        self.expand(pfn, order, o, if keeps_rest || claimed { t } else { from });
        self.shared.work.buddy_blocks += 1;
        self.emit_extfrag(pfn, (order, t, flags.wmark), (o, from));
        Some(pfn)
    }
}

#[cfg(test)]
mod tests {
    use crate::gfp::Gfp;
    use crate::request::Request;
    use crate::state::Memory;
    use crate::testing::{linux, machine_with};
    use crate::types::{CpuId, MigrateType, NodeId, Order, Pfn, ZoneId};

    const CPU: CpuId = CpuId::new(0);

    fn alloc(m: &mut Memory, gfp: Gfp, order: u8) -> Option<Pfn> {
        m.alloc(Request::new(CPU, NodeId::new(0), gfp, Order::new(order))).ok()
    }

    /// A machine of movable pageblocks in use, except for two free blocks: one of order 3, and one
    /// of order `large` in another pageblock.
    fn two_holes(profile: &str, large: u8) -> (Memory, [Pfn; 2]) {
        let mut profile = linux(profile);
        profile.zonelist.goes_round = false;
        let mut m = machine_with(16, profile);
        let mut last = Vec::new();
        while let Some(pfn) = alloc(&mut m, Gfp::HIGHUSER_MOVABLE, 9) {
            last.push(pfn);
        }
        let holes = [last[0], last[2]];
        for (pfn, order) in holes.into_iter().zip([3, large]) {
            m.split_page(pfn, Order::new(9));
            (0..1 << order).for_each(|page| m.free(CPU, pfn.plus(page), Order::ZERO));
        }
        m.drain_cpu(CPU);
        // Without watermarks the pages they keep free can be used up.
        let zone = &mut m.zones[ZoneId::new(0)];
        (zone.watermarks.min, zone.watermarks.low) = (0, 0);
        (m, holes)
    }

    use alloc::vec::Vec;

    #[test]
    fn up_to_4_12_an_unmovable_request_takes_the_largest_block_and_what_is_left_is_its_own() {
        let (mut m, [_, large]) = two_holes("4.6", 6);
        let free_elsewhere = m.zone(ZoneId::new(0)).free_list(Order::new(10), MigrateType::Movable).first();
        assert_eq!(free_elsewhere, None);
        while m.zone(ZoneId::new(0)).free_list(Order::new(9), MigrateType::Movable).first().is_some() {
            alloc(&mut m, Gfp::HIGHUSER_MOVABLE, 9).expect("there is one");
        }
        assert_eq!(alloc(&mut m, Gfp::KERNEL, 1), Some(large));
        let left = m.zone(ZoneId::new(0)).free_list(Order::new(5), MigrateType::Unmovable).first();
        assert_eq!(left, Some(large.plus(32)), "the upper half");
        assert_eq!(m.pageblocks().migratetype(large.pageblock()), MigrateType::Movable, "64 pages are no half of it");
    }

    #[test]
    fn half_a_pageblock_that_is_free_makes_it_the_requests() {
        let (mut m, [_, large]) = two_holes("4.6", 8);
        while m.zone(ZoneId::new(0)).free_list(Order::new(9), MigrateType::Movable).first().is_some() {
            alloc(&mut m, Gfp::HIGHUSER_MOVABLE, 9).expect("there is one");
        }
        assert_eq!(alloc(&mut m, Gfp::KERNEL, 1), Some(large));
        assert_eq!(m.pageblocks().migratetype(large.pageblock()), MigrateType::Unmovable);
    }

    #[test]
    fn in_3_13_what_is_left_of_the_block_stays_with_its_type_unless_the_pageblock_is_claimed() {
        let left = |profile: &str, large| {
            let (mut m, [_, at]) = two_holes(profile, large);
            while m.zone(ZoneId::new(0)).free_list(Order::new(9), MigrateType::Movable).first().is_some() {
                alloc(&mut m, Gfp::HIGHUSER_MOVABLE, 9).expect("there is one");
            }
            assert_eq!(alloc(&mut m, Gfp::KERNEL, 1), Some(at));
            m.check().expect("a consistent machine");
            let upper = Order::new(large - 1);
            [MigrateType::Unmovable, MigrateType::Movable]
                .map(|t| m.zone(ZoneId::new(0)).free_list(upper, t).first().is_some())
        };
        assert_eq!([left("3.13", 6), left("4.6", 6)], [[false, true], [true, false]]);
        assert_eq!(left("3.13", 8), [true, false], "half of it is free");
    }
}
