//! Shrinks object caches in proportion to the LRU scan, and those that are cheap to recreate
//! harder.
//!
//! Work that is less than a batch is deferred to a later call. Source: kernel-behaviour §4.6.

use super::control::ScanControl;
use crate::event::{Event, Listen};
use crate::owner::{Owner, Shrinker};
use crate::rules::SlabShare;
use crate::state::Memory;
use crate::types::{CLUSTER_MAX, NodeId};
use crate::vmstat::VmEvent;

impl Memory {
    /// Calls each of the node's shrinkers. Returns the pages freed by them. Of the `considered`
    /// pages on the LRU lists, `scanned` have been scanned.
    pub(crate) fn shrink_slab<O: Owner>(
        &mut self,
        owner: &mut O,
        node: NodeId,
        sc: &ScanControl,
        (scanned, considered): (u64, u64),
    ) -> u64 {
        let looked_at = (if scanned == 0 { u64::from(CLUSTER_MAX) } else { scanned }, considered);
        let (mut number, mut pages) = (0, 0);
        while let Some(shrinker) = owner.shrinker(node, number) {
            if shrinker.freeable > 0 {
                pages += self.do_shrink_slab(owner, node, number, shrinker, sc, looked_at);
            }
            number += 1;
        }
        pages
    }

    fn do_shrink_slab<O: Owner>(
        &mut self,
        owner: &mut O,
        node: NodeId,
        number: usize,
        shrinker: Shrinker,
        sc: &ScanControl,
        (looked_at, considered): (u64, u64),
    ) -> u64 {
        let Shrinker { freeable, seeks, batch } = shrinker;
        let priority = sc.priority;
        let deferred = &mut self.nodes[node].deferred;
        if deferred.len() <= number {
            deferred.resize(number + 1, 0);
        }
        let before = core::mem::take(&mut deferred[number]);
        let by_scanned = self.shared.profile.reclaim.slab_share == SlabShare::Scanned;
        let delta = if by_scanned {
            let part = u128::from(4 * looked_at / u64::from(seeks.max(1))) * u128::from(freeable);
            (part / u128::from(considered + 1)) as u64
        } else if seeks > 0 {
            (freeable >> priority) * 4 / u64::from(seeks)
        } else {
            freeable / 2
        };
        let at_least = self.shared.profile.reclaim.shrinks_a_batch_at_least;
        let delta = if at_least { delta.max(freeable.min(batch)) } else { delta };
        let by_priority = self.shared.profile.reclaim.deferred_by_priority;
        let due = if by_priority { (before >> priority) + delta } else { before + delta };
        // Long-deferred work must not empty a cache of which hardly anything is due.
        let most = if !by_priority && delta < freeable / 4 { freeable / 2 } else { 2 * freeable };
        let mut total = due.min(most);
        let (start, mut scanned, mut freed, mut pages) = (total, 0, 0, 0);
        self.shared.emit(Listen::VMSCAN, || Event::ShrinkSlabStart {
            nid: node,
            nr_objects_to_shrink: before,
            cache_items: freeable,
            delta,
            total_scan: start,
            priority,
        });
        while total >= batch || total >= freeable {
            let Some(done) = owner.shrink(self, node, number, total.min(batch), sc.gfp) else { break };
            // Up to 4.15 the kernel counted what it asked for, not what was scanned.
            let done_with = if by_scanned { total.min(batch) } else { done.scanned };
            self.shared.vmstat.add(VmEvent::SlabsScanned, done_with);
            total = total.saturating_sub(done_with);
            scanned += done_with;
            freed += done.freed;
            pages += done.pages;
            self.offer_cpu(owner);
        }
        let left = (before + delta).saturating_sub(scanned);
        let left = if by_priority { left.min(2 * freeable) } else { left };
        let next = if by_scanned { total } else { left };
        self.nodes[node].deferred[number] += next;
        let new_scan = self.nodes[node].deferred[number];
        self.shared.emit(Listen::VMSCAN, || Event::ShrinkSlabEnd {
            nid: node,
            unused_scan: before,
            new_scan,
            total_scan: total,
            last_shrinker_retval: freed,
        });
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::owner::{MigrateOutcome, Shrunk};
    use crate::testing::{linux, ordered_machine_with};
    use crate::types::{CpuId, Order, Pfn, ZoneType};
    use alloc::vec::Vec;

    const NODE: NodeId = NodeId::new(0);

    /// One cache, which records the scan requests and frees nothing.
    struct Cache {
        it: Shrinker,
        asked: Vec<u64>,
        refuses: bool,
    }

    impl Owner for Cache {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            false
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Failed
        }
        fn shrinker(&mut self, _: NodeId, number: usize) -> Option<Shrinker> {
            (number == 0).then_some(self.it)
        }
        fn shrink(&mut self, _: &mut Memory, _: NodeId, _: usize, objects: u64, _: Gfp) -> Option<Shrunk> {
            self.asked.push(objects);
            (!self.refuses).then_some(Shrunk { scanned: objects, freed: 0, pages: 0 })
        }
    }

    /// The scan requests at these priorities, one after the other, and what is deferred after each.
    fn asked(freeable: u64, seeks: u32, deferred: u64, refuses: bool, priorities: &[i8]) -> Vec<(Vec<u64>, u64)> {
        asked_of("6.1", freeable, seeks, deferred, refuses, priorities)
    }

    fn asked_of(
        profile: &str,
        freeable: u64,
        seeks: u32,
        deferred: u64,
        refuses: bool,
        priorities: &[i8],
    ) -> Vec<(Vec<u64>, u64)> {
        let mut m = ordered_machine_with(1, linux(profile));
        m.nodes[NODE].deferred.push(deferred);
        let mut cache = Cache { it: Shrinker { freeable, seeks, batch: 128 }, asked: Vec::new(), refuses };
        let sc = ScanControl::new(CpuId::new(0), Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
        let shrink = |priority: &i8| {
            m.shrink_slab(&mut cache, NODE, &ScanControl { priority: *priority, ..sc.clone() }, (0, 0));
            (core::mem::take(&mut cache.asked), m.nodes[NODE].deferred[0])
        };
        priorities.iter().map(shrink).collect()
    }

    #[test]
    fn less_than_a_batch_is_deferred_and_counts_by_the_priority() {
        // 100000 >> 12 = 24, times 4, by 2 seeks.
        assert_eq!(asked(100_000, 2, 0, false, &[12, 12]), [(Vec::new(), 48), (Vec::new(), 96)]);
        // 125 * 4 / 2 = 250: a batch, and 122 later; then 122 >> 3 = 15 on top.
        assert_eq!(asked(1000, 2, 0, false, &[3, 3]), [(Vec::from([128]), 122), (Vec::from([128, 128]), 116)]);
    }

    #[test]
    fn in_4_20_a_batch_is_looked_at_however_little_is_due() {
        let of = |profile, freeable| asked_of(profile, freeable, 2, 0, false, &[12, 12]);
        assert_eq!(of("4.20-rc3", 1000), [(Vec::from([128]), 0), (Vec::from([128]), 0)]);
        assert_eq!(of("4.20-rc3", 50), [(Vec::from([50]), 0), (Vec::from([50]), 0)], "or all of it");
        assert_eq!(of("5.6", 1000), [(Vec::new(), 0), (Vec::new(), 0)]);
    }

    #[test]
    fn objects_that_are_cheap_to_make_again_go_by_half() {
        assert_eq!(asked(1000, 0, 0, false, &[12]), [(Vec::from([128; 3]), 116)]);
    }

    #[test]
    fn caches_that_cost_more_seeks_are_scanned_less() {
        assert_eq!(asked(1024, 8, 0, false, &[1]), [(Vec::from([128, 128]), 0)]);
    }

    #[test]
    fn a_small_cache_is_asked_for_all_and_no_more_than_twice() {
        // 1100 are due; at most 100 are scanned, and at most 100 are deferred.
        assert_eq!(asked(50, 2, 1000, false, &[0]), [(Vec::from([100]), 100)]);
        assert_eq!(asked(50, 4, 0, false, &[0]), [(Vec::from([50]), 0)]);
        assert_eq!(asked(50, 4, 0, false, &[1]), [(Vec::new(), 25)], "not where it is less than there are");
    }

    #[test]
    fn up_to_5_12_all_that_was_deferred_is_due_but_no_more_than_half_where_little_else_is() {
        let of_5_10 = |freeable, deferred, priority| asked_of("5.10", freeable, 2, deferred, false, &[priority]);
        // 1000 >> 3 = 125, times 4, by 2: 250, and a quarter of the cache is due, so all
        // 1000 + 250.
        assert_eq!(of_5_10(1000, 1000, 3), [(Vec::from([128; 9]), 98)]);
        // 62 * 2 = 124 are due: half the cache at most, and the rest is kept.
        assert_eq!(of_5_10(1000, 1000, 4), [(Vec::from([128; 3]), 740)]);
        // There is no limit on what is deferred.
        assert_eq!(of_5_10(100, 1000, 12), [(Vec::new(), 1000)]);
    }

    #[test]
    fn a_cache_that_cannot_shrink_now_is_asked_for_all_of_it_later() {
        assert_eq!(asked(1000, 2, 10, true, &[0]), [(Vec::from([128]), 2000)]);
        assert_eq!(asked(1000, 2, 10, true, &[3]), [(Vec::from([128]), 260)]);
    }

    #[test]
    fn up_to_4_15_a_cache_is_asked_for_as_large_a_part_as_was_looked_at_of_the_lists() {
        let mut m = ordered_machine_with(1, linux("4.6"));
        let it = Shrinker { freeable: 1000, seeks: 2, batch: 128 };
        let mut cache = Cache { it, asked: Vec::new(), refuses: false };
        let sc = ScanControl::new(CpuId::new(0), Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
        let mut shrink = |looked_at| {
            m.shrink_slab(&mut cache, NODE, &sc, looked_at);
            (core::mem::take(&mut cache.asked), m.nodes[NODE].deferred[0])
        };
        // 4 * 100 / 2 of 1000: a fifth of the cache.
        assert_eq!(shrink((100, 999)), (Vec::from([128]), 72));
        assert_eq!(shrink((100, 999)), (Vec::from([128, 128]), 16));
        assert_eq!(shrink((0, 999)), (Vec::new(), 80), "nothing counts as 32 pages");
    }

    #[test]
    fn an_empty_cache_is_left_alone_with_what_was_deferred() {
        assert_eq!(asked(0, 2, 10, false, &[0]), [(Vec::new(), 10)]);
    }
}
