//! Blocks that can be had at once: without reclaim, without compaction, and without waking anybody.
//!
//! The rule is the allocator's own: a block of order o comes from a free block of that order or of
//! a larger one, which it splits; and a zone gives none if its free pages would fall below the low
//! mark plus its reserve against requests of this kind. Free memory that is on no list until it is
//! wanted (`deferred`) is among it: requests get it before they reclaim or compact. Higher
//! zones are asked first, larger needs before smaller ones. Blocks above the largest order of the
//! free lists have to be found by address, which takes a look at every frame.
//!
//! A caller that uses pools takes their free pages first.

use crate::caller::{Caller, FreeInPool, InTheWay};
use crate::need::Need;
use crate::snapshot::{FoundZone, Snapshot, aligned};
use kontig_mm::state::FrameKind;
use kontig_mm::types::MAX_ORDER;
use kontig_mm::{Memory, Order, Pfn};
use std::collections::BTreeMap;

/// A zone's free memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ZoneSupply {
    node: u32,
    /// Free blocks of each order.
    free: Vec<u64>,
    /// Pages above the low mark, for the kernel's requests and for users'.
    spare: [u64; 2],
    /// Aligned free blocks above the largest order, by order.
    spans: BTreeMap<u32, u64>,
}

/// All free memory, as far as it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Supply {
    zones: Vec<ZoneSupply>,
    /// Pages among them that are on no list until they are wanted.
    deferred: u64,
    /// Free pages of pools, and who takes them.
    caller: Caller,
}

impl Supply {
    /// Of a host, by what anybody may read: nothing is known of blocks above the largest order.
    pub fn of_zones(zones: &[FoundZone]) -> Supply {
        Supply::new(zones, zones.iter().map(|z| zone_supply(z, z.free.clone(), BTreeMap::new())).collect())
    }

    /// Of a snapshot, for needs of these orders.
    pub fn of_snapshot(snapshot: &Snapshot, orders: &[u32]) -> Supply {
        let large = orders.iter().filter(|o| **o as usize > snapshot.max_order());
        let zone = |z: &FoundZone| {
            let spans = large.clone().map(|o| (*o, snapshot.free_spans(z, *o))).collect();
            zone_supply(z, z.free.clone(), spans)
        };
        Supply::new(&snapshot.zones, snapshot.zones.iter().map(zone).collect())
    }

    /// Of the engine's machine with these zones.
    pub fn of_memory(memory: &Memory, zones: &[FoundZone], orders: &[u32]) -> Supply {
        let large = orders.iter().filter(|o| **o > u32::from(MAX_ORDER.get()));
        let managed = zones.iter().filter(|z| z.managed > 0).zip(memory.zones());
        let zone = |(found, z): (&FoundZone, &kontig_mm::Zone)| {
            let free = Order::all().map(|o| z.nr_free(o)).collect();
            let spans = large.clone().map(|o| (*o, free_spans(memory, z, *o))).collect();
            zone_supply(found, free, spans)
        };
        Supply::new(zones, managed.map(zone).collect())
    }

    fn new(found: &[FoundZone], zones: Vec<ZoneSupply>) -> Supply {
        Supply { zones, deferred: found.iter().map(|z| z.deferred).sum(), caller: Caller::default() }
    }

    /// The same for a caller with pools and limits.
    pub fn for_caller(self, caller: &Caller) -> Supply {
        Supply { caller: caller.clone(), ..self }
    }

    /// Free pages that are on no list until they are wanted.
    pub fn deferred(&self) -> u64 {
        self.deferred
    }

    /// The largest order of the free lists.
    pub fn max_order(&self) -> u32 {
        self.zones.iter().map(|z| z.free.len() as u32).max().unwrap_or(1).saturating_sub(1)
    }

    /// The limit of the caller's that is too low for these needs.
    pub(crate) fn limit_in_the_way(&self, needs: &[Need], page_size: u64) -> Option<InTheWay> {
        self.caller.in_the_way(needs, self.max_order(), page_size)
    }

    /// Bytes that the limit of the caller's memory leaves beside these needs.
    pub(crate) fn left_bytes(&self, needs: &[Need], page_size: u64) -> Option<u64> {
        self.caller.left_bytes(needs, self.max_order(), page_size)
    }

    /// The rest of the needs once pools have given their free pages.
    pub fn beyond_pools(&self, needs: &[Need]) -> Vec<Need> {
        let mut pools = self.caller.pools.clone();
        let mut left = needs.to_vec();
        left.sort_by_key(Need::turn);
        for need in &mut left {
            need.count -= self.take_from_pool(&mut pools, need);
        }
        left.retain(|need| need.count > 0);
        left
    }

    fn take_from_pool(&self, pools: &mut [FreeInPool], need: &Need) -> u64 {
        let pool = pools.iter_mut().find(|pool| pool.order == need.order);
        let takes = self.caller.takes_from_pool(need, self.max_order());
        pool.filter(|_| takes).map_or(0, |pool| pool.take(need))
    }

    /// Blocks of each need that can be had, all needs together and no more than needed; `None`
    /// where that is not known.
    pub fn obtainable(&self, needs: &[Need]) -> Vec<Option<u64>> {
        let mut left = self.clone();
        let mut in_turn: Vec<usize> = (0..needs.len()).collect();
        in_turn.sort_by_key(|i| needs[*i].turn());
        let mut found = vec![None; needs.len()];
        for i in in_turn {
            found[i] = left.take(&needs[i]);
        }
        found
    }

    /// The nodes that have memory.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.zones.iter().map(|z| z.node)
    }

    /// Whether all needs are met.
    pub fn meets(&self, needs: &[Need]) -> bool {
        let enough = |(need, found): (&Need, Option<u64>)| found.is_some_and(|n| n >= need.count);
        needs.iter().zip(self.obtainable(needs)).all(enough)
    }

    /// Takes the blocks of a need out and returns how many there were.
    fn take(&mut self, need: &Need) -> Option<u64> {
        let mut pools = std::mem::take(&mut self.caller.pools);
        let mut wanted = need.count - self.take_from_pool(&mut pools, need);
        self.caller.pools = pools;
        if wanted == 0 {
            return Some(need.count);
        }
        for zone in self.zones.iter_mut().rev().filter(|z| need.node.is_none_or(|n| n == z.node)) {
            wanted -= zone.take(need, wanted)?;
        }
        Some(need.count - wanted)
    }
}

impl ZoneSupply {
    /// A zone with these free blocks, and `deferred` pages that it gets when a request finds
    /// nothing else: in blocks of the largest order, before anything is reclaimed or moved. It
    /// keeps its low mark (boost included), and `protection` pages more from the kernel's requests
    /// and from users'.
    pub(crate) fn new(node: u32, mut free: Vec<u64>, deferred: u64, low: u64, protection: [u64; 2]) -> ZoneSupply {
        let largest = free.len().saturating_sub(1);
        free.iter_mut().skip(largest).for_each(|blocks| *blocks += deferred >> largest);
        let pages: u64 = (0..).zip(&free).map(|(order, n)| n << order).sum();
        let spare = protection.map(|protection| pages.saturating_sub(low.saturating_add(protection)));
        ZoneSupply { node, free, spare, spans: BTreeMap::new() }
    }

    /// Blocks of an order that users get if they ask for nothing else; `None` if the free lists end
    /// below it.
    pub(crate) fn at_hand(&self, order: u32) -> Option<u64> {
        self.clone().take(&Need { count: u64::MAX, order, node: None, unmovable: false }, u64::MAX)
    }

    fn take(&mut self, need: &Need, wanted: u64) -> Option<u64> {
        let class = usize::from(!need.unmovable);
        let order = need.order as usize;
        let room = self.spare[class] >> need.order;
        let max_order = self.free.len() - 1;
        let taken = match order > max_order {
            true => {
                let taken = wanted.min(room).min(*self.spans.get(&need.order)?);
                let parts = (taken << (order - max_order)).min(self.free[max_order]);
                self.free[max_order] -= parts;
                self.spans.iter_mut().for_each(|(o, n)| *n -= (*n).min(taken << need.order >> o));
                taken
            }
            false => self.split_off(order, wanted.min(room)),
        };
        let pages = taken << need.order;
        self.spare.iter_mut().for_each(|spare| *spare = spare.saturating_sub(pages));
        Some(taken)
    }

    /// Takes blocks of an order the free lists have, the smallest that fit first.
    fn split_off(&mut self, order: usize, wanted: u64) -> u64 {
        let mut left = wanted;
        for from in order..self.free.len() {
            let of_each = 1 << (from - order);
            let whole = self.free[from].min(left / of_each);
            self.free[from] -= whole;
            left -= whole * of_each;
            if left > 0 && self.free[from] > 0 {
                // One more is split, and leaves smaller ones.
                self.free[from] -= 1;
                let rest = of_each - left;
                (order..from).for_each(|o| self.free[o] += rest >> (o - order) & 1);
                left = 0;
            }
        }
        wanted - left
    }
}

fn zone_supply(zone: &FoundZone, free: Vec<u64>, spans: BTreeMap<u32, u64>) -> ZoneSupply {
    let low = zone.marks[1] + zone.boost;
    ZoneSupply { spans, ..ZoneSupply::new(zone.node, free, zone.deferred, low, zone.protection) }
}

/// Naturally aligned blocks of an order above the largest that consist of free blocks.
fn free_spans(memory: &Memory, zone: &kontig_mm::Zone, order: u32) -> u64 {
    let is_free = |pfn: usize| {
        let tag = memory.frames().tag(Pfn::new(pfn as u32));
        matches!(tag.kind(), FrameKind::Buddy(_)) && tag.order() == MAX_ORDER
    };
    let frames = zone.start.get() as usize..zone.end.get() as usize;
    aligned(frames, order).filter(|block| block.clone().step_by(1 << MAX_ORDER.get()).all(is_free)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(free: [u64; 4], low: u64) -> FoundZone {
        FoundZone {
            node: 0,
            name: "Normal".into(),
            start: 0,
            spanned: 1024,
            present: 1024,
            managed: 1024,
            marks: [0, low, 0, 0],
            boost: 0,
            protection: [0, 0],
            cached: 0,
            deferred: 0,
            free: free.into(),
            blocks: None,
        }
    }

    fn need(count: u64, order: u32) -> Need {
        Need { count, order, node: None, unmovable: false }
    }

    #[test]
    fn larger_blocks_are_split_and_what_they_leave_is_used() {
        let supply = Supply::of_zones(&[zone([0, 1, 0, 2], 0)]);
        assert_eq!(supply.obtainable(&[need(9, 1)]), [Some(9)]);
        assert_eq!(supply.obtainable(&[need(10, 1)]), [Some(9)]);
        assert_eq!(supply.obtainable(&[need(6, 1), need(1, 3)]), [Some(5), Some(1)]);
        assert_eq!(supply.obtainable(&[need(3, 1), need(1, 2), need(1, 3)]), [Some(3), Some(1), Some(1)]);
        assert!(supply.meets(&[need(9, 1)]) && !supply.meets(&[need(10, 1)]));
    }

    #[test]
    fn a_zone_keeps_what_its_low_mark_says() {
        let supply = Supply::of_zones(&[zone([0, 0, 0, 4], 9)]);
        assert_eq!(supply.obtainable(&[need(4, 3)]), [Some(2)]);
    }

    #[test]
    fn another_nodes_blocks_do_not_count() {
        let other = FoundZone { node: 1, ..zone([0, 0, 0, 3], 0) };
        let supply = Supply::of_zones(&[zone([0, 0, 0, 2], 0), other]);
        assert_eq!(supply.obtainable(&[Need { node: Some(1), ..need(9, 3) }]), [Some(3)]);
        assert_eq!(supply.obtainable(&[need(9, 3)]), [Some(5)]);
    }

    #[test]
    fn blocks_that_the_allocator_gets_on_demand_count() {
        let supply = Supply::of_zones(&[FoundZone { deferred: 27, ..zone([0, 0, 0, 1], 9) }]);
        assert_eq!(supply.obtainable(&[need(9, 3)]), [Some(2)], "of four blocks, the low mark keeps two");
    }

    #[test]
    fn without_a_look_at_the_frames_nothing_is_known_of_the_largest_blocks() {
        let supply = Supply::of_zones(&[zone([0, 0, 0, 4], 0)]);
        assert_eq!(supply.obtainable(&[need(1, 5)]), [None]);
    }
}
