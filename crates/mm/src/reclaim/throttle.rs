//! Throttling: makes tasks wait where reclaim outruns writeback or makes no progress.
//!
//! Source: kernel-behaviour §4.3 (throttling).

use super::control::ScanControl;
use crate::event::{Event, Listen, Throttle};
use crate::owner::Owner;
use crate::state::Memory;
use crate::step::Wait;
use crate::types::{LruvecId, NodeId};

/// How long a task waits at most for a device with a full queue: 100 ms.
pub(super) const CONGESTION_NS: u64 = 100_000_000;
/// How long a request waits for it at most before another round: 20 ms.
pub(crate) const ROUND_CONGESTION_NS: u64 = 20_000_000;

impl Memory {
    /// The wait after a cluster, up to 5.15: kswapd waits if it met pages again before they were
    /// written, other tasks if the zone or node is congested and a device queue is full, and in
    /// 3.13 both where all pages are dirty and nobody has queued them. Sets the flags from this
    /// cluster.
    pub(super) fn wait_for_congestion<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        sc: &mut ScanControl,
    ) -> Option<Wait> {
        let met = core::mem::take(&mut sc.met);
        let unqueued = met.taken > 0 && met.unqueued_dirty == met.taken;
        let waits_for_unqueued = self.shared.profile.reclaim.waits_for_unqueued;
        let vec = &mut self.lru.vecs[lruvec];
        vec.writeback |= met.writeback > 0 && met.writeback == met.taken;
        vec.congested |= met.dirty > 0 && met.dirty == met.congested;
        vec.dirty |= unqueued;
        let waits = met.immediate > 0
            || unqueued && waits_for_unqueued
            || met.taken > 0 && !sc.kswapd && vec.congested && owner.is_congested();
        waits.then_some(Wait::Congestion { at_most_ns: CONGESTION_NS })
    }

    /// The wait for this reason, if any. Without much under writeback, or where kswapd has given
    /// up, a task does not wait.
    pub(super) fn reclaim_throttle(&mut self, node: NodeId, reason: Throttle, write_pending: u64) -> Option<Wait> {
        let at_most_ns = reason.longest_ns();
        let wait = match reason {
            Throttle::Writeback => Some(Wait::Written { node, at_most_ns }),
            Throttle::Congested | Throttle::NoProgress => {
                let hopeless = self.nodes[node].kswapd.hopeless();
                let zones = self.nodes[node].zones.iter().filter(|z| self.zones[**z].managed > 0);
                let reclaimable: i64 = zones.map(|z| self.reclaimable_pages(*z)).sum();
                let waits = !hopeless && 2 * write_pending as i64 > reclaimable;
                waits.then_some(Wait::Time(at_most_ns))
            }
        };
        if wait.is_some() {
            self.shared.emit(Listen::VMSCAN, || Event::Throttled { nid: node, reason });
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::owner::MigrateOutcome;
    use crate::reclaim::control::Met;
    use crate::testing::{linux, ordered_machine_with};
    use crate::types::{CpuId, Order, Pfn, ZoneType};

    struct Disk {
        congested: bool,
    }

    impl Owner for Disk {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Moved
        }
        fn is_congested(&mut self) -> bool {
            self.congested
        }
    }

    fn waits(kswapd: bool, congested: bool, met: Met) -> bool {
        waits_in("4.6", kswapd, congested, met)
    }

    fn waits_in(profile: &str, kswapd: bool, congested: bool, met: Met) -> bool {
        let mut m = ordered_machine_with(1, linux(profile));
        let mut sc = ScanControl::new(CpuId::new(0), Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
        (sc.kswapd, sc.met) = (kswapd, met);
        m.wait_for_congestion(&mut Disk { congested }, LruvecId::new(0), &mut sc).is_some()
    }

    #[test]
    fn a_task_waits_for_a_full_queue_if_all_dirty_pages_it_met_wait_for_one() {
        let all = Met { dirty: 5, congested: 5, taken: 32, ..Met::default() };
        assert!(
            waits(false, true, all) && !waits(false, false, all),
            "where no queue is full there is nothing to wait for"
        );
        assert!(!waits(false, true, Met { congested: 4, ..all }));
        assert!(!waits(true, true, all), "kswapd goes on");
    }

    #[test]
    fn kswapd_waits_where_it_meets_pages_again_before_they_are_written() {
        assert!(waits(true, false, Met { immediate: 1, taken: 32, ..Met::default() }));
    }

    #[test]
    fn in_3_13_all_wait_that_take_only_dirty_pages_nobody_has_queued() {
        let dirty = Met { dirty: 32, unqueued_dirty: 32, taken: 32, ..Met::default() };
        let waits = |profile, met| [false, true].map(|kswapd| waits_in(profile, kswapd, false, met));
        assert_eq!((waits("3.13", dirty), waits("4.6", dirty)), ([true; 2], [false; 2]));
        assert_eq!(waits("3.13", Met { unqueued_dirty: 31, ..dirty }), [false; 2]);
    }
}
