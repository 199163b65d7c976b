//! The slow path of 3.13: compaction for any order, asynchronous the first time and synchronous
//! from then on; reclaim; and a last compaction before it gives up.
//!
//! The request's preferred zone alone remembers to defer compaction, and a request that does not
//! wake kswapd, as one for a huge page, gives up where it is. Source: kernel-behaviour §3.7.

use super::{AllocFailure, AllocSlow, AllocStep, SlowPathStage, offer_cpu};
use crate::compact::direct::{CompactPriority, DirectCompact};
use crate::event::CompactResult;
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::Owner;
use crate::reclaim::ROUND_CONGESTION_NS;
use crate::reclaim::direct::DirectReclaim;
use crate::state::Memory;
use crate::step::{Step, Wait};
use crate::types::{Order, Pfn, ZoneType};
use crate::vmstat::VmEvent;

impl AllocSlow {
    /// Wakes kswapd, fills up the zones' shares, and begins the first round.
    pub(super) fn enter_async_then_sync<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> AllocStep {
        let bound = Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN;
        if m.shared.profile.slow_path.bound_fails_at_once && self.request.gfp.has(bound) {
            return Step::Done(Err(AllocFailure::Failed));
        }
        self.wake_all_kswapds(m, owner);
        if m.shared.profile.zonelist.fills_up_on_slow_path {
            m.fill_up_shares(&self.request);
        }
        self.begin_async_then_sync(m, owner)
    }

    /// Begins a round: the free lists at the min watermark, then compaction.
    pub(super) fn begin_async_then_sync<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> AllocStep {
        if let Some(pfn) = self.try_freelist(m) {
            return Step::Done(Ok(pfn));
        }
        if !self.can_direct_reclaim() {
            return Step::Done(Err(AllocFailure::Failed));
        }
        if let Some(compact) = self.compact_unless_deferred(m) {
            self.state = SlowPathStage::FirstCompact(compact);
            return Step::Working;
        }
        self.reclaim_after_compaction(m, owner, false)
    }

    /// A compaction, unless it is deferred or the request's flags rule it out. Even where they do,
    /// it counts as an attempt.
    fn compact_unless_deferred(&mut self, m: &mut Memory) -> Option<DirectCompact> {
        self.compact_result = CompactResult::Skipped;
        let order = self.request.order;
        let zone = m.preferred_zone(&self.request).filter(|_| order > Order::ZERO)?;
        if m.locked(zone, self.request.cpu).compaction_deferred(order) {
            self.compact_result = CompactResult::Deferred;
            return None;
        }
        self.compacts(m).then(|| self.direct_compact(m, self.priority))
    }

    /// A round's compaction has ended: takes the block, or goes on to reclaim.
    pub(super) fn round_compacted<O: Owner>(
        &mut self,
        m: &mut Memory,
        owner: &mut O,
        result: CompactResult,
        gave_way: bool,
    ) -> AllocStep {
        match self.take_compacted(m, owner, result) {
            Some(pfn) => Step::Done(Ok(pfn)),
            None => self.reclaim_after_compaction(m, owner, gave_way),
        }
    }

    /// The compaction after reclaim has ended: takes the block, or fails.
    pub(super) fn last_compacted<O: Owner>(
        &mut self,
        m: &mut Memory,
        owner: &mut O,
        result: CompactResult,
    ) -> AllocStep {
        Step::Done(self.take_compacted(m, owner, result).ok_or(AllocFailure::Failed))
    }

    fn reclaim_after_compaction<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, gave_way: bool) -> AllocStep {
        self.priority = CompactPriority::SyncLight;
        let pointless = gave_way || self.compact_result == CompactResult::Deferred;
        if pointless && !self.request.gfp.has(Gfp::KSWAPD_RECLAIM) {
            return Step::Done(Err(AllocFailure::Failed));
        }
        offer_cpu(m, owner);
        self.reclaim(m, owner, DirectReclaim::new(self.request, self.request.order))
    }

    /// Takes a block from the free lists unless every zone was skipped, and notes the outcome with
    /// the preferred zone.
    fn take_compacted<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, result: CompactResult) -> Option<Pfn> {
        self.compact_result = result;
        if result == CompactResult::Skipped {
            return None;
        }
        self.count_stall(m, false);
        let (cpu, order) = (self.request.cpu, self.request.order);
        if m.shared.profile.compaction.drains_after_run {
            m.drain_cpu(cpu);
        }
        let page = self.try_freelist(m);
        let zone = m.preferred_zone(&self.request)?;
        let mut preferred = m.locked(zone, cpu);
        if page.is_some() {
            preferred.zone.compaction.blockskip_flush = false;
            preferred.compaction_defer_reset(order, true);
            m.shared.vmstat.add(VmEvent::CompactSuccess, 1);
            return page;
        }
        // An asynchronous run looks at part of the pageblocks only, so its failure says little.
        if self.priority != CompactPriority::Async {
            preferred.defer_compaction(order);
        }
        m.shared.vmstat.add(VmEvent::CompactFail, 1);
        offer_cpu(m, owner);
        None
    }

    /// Reclaim gave no page: another round, or the last compaction.
    pub(super) fn reclaimed_in_round<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, freed: u64) -> AllocStep {
        let (gfp, order) = (self.request.gfp, self.request.order);
        if freed == 0 && gfp.has(Gfp::FS) && !gfp.has(Gfp::NORETRY) {
            if let Some(pfn) = m.get_page_from_freelist(&self.request, AllocFlags::mark(Wmark::High)) {
                return Step::Done(Ok(pfn));
            }
            return Step::Done(Err(self.without_progress()));
        }
        self.pages_reclaimed += freed;
        let insists = gfp.has(Gfp::RETRY_MAYFAIL) && self.pages_reclaimed < u64::from(order.pages());
        if !gfp.has(Gfp::NORETRY) && (insists || !order.is_costly()) {
            if freed == 0 {
                // The kernel goes round for as long as it takes.
                return Step::Done(Err(self.without_progress()));
            }
            self.state = SlowPathStage::Retry;
            let zone = m.preferred_zone(&self.request);
            let waits = zone.is_some_and(|zone| m.lru.vecs[m.zones[zone].lruvec].congested) && owner.is_congested();
            return match waits {
                true => Step::Wait(Wait::Congestion { at_most_ns: ROUND_CONGESTION_NS }),
                false => Step::Working,
            };
        }
        match self.compact_unless_deferred(m) {
            Some(compact) => {
                self.state = SlowPathStage::Compact(compact);
                Step::Working
            }
            None => Step::Done(Err(AllocFailure::Failed)),
        }
    }

    /// How a request fails that nothing was reclaimed for: only a small one that may use ordinary
    /// memory and may not fail has a process killed.
    fn without_progress(&self) -> AllocFailure {
        let (gfp, order) = (self.request.gfp, self.request.order);
        let may_fail = gfp.has(Gfp::THISNODE) || gfp.has(Gfp::RETRY_MAYFAIL);
        match order.is_costly() || gfp.highest_zone() < ZoneType::Normal || may_fail {
            true => AllocFailure::Failed,
            false => AllocFailure::OutOfMemory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Listen};
    use crate::request::Request;
    use crate::testing::{AllMove, linux, with_single_pages};
    use crate::types::{CpuId, NodeId, ZoneId};
    use alloc::vec::Vec;

    const ZONE: ZoneId = ZoneId::new(0);

    /// A machine with this many pageblocks of which every other page is free, all else in use by
    /// the kernel.
    fn machine(singles: usize) -> Memory {
        let mut m = with_single_pages(16, singles, linux("3.13"));
        let rules = m.shared.profile.compaction;
        m.zones[ZONE].reset_cached_positions(&rules);
        m
    }

    /// The attempts of a failing request, by its events.
    fn tries(m: &mut Memory, gfp: Gfp, order: u8) -> Vec<&'static str> {
        m.trace().listen(Listen::COMPACTION.with(Listen::VMSCAN));
        let request = Request::new(CpuId::new(0), NodeId::default(), gfp, Order::new(order));
        assert!(AllocSlow::new(m, request).finish(m, &mut AllMove).is_err());
        let name = |event: Event| match event {
            Event::TryToCompactPages { priority: 2, .. } => Some("asynchronous"),
            Event::TryToCompactPages { .. } => Some("synchronous"),
            Event::DirectReclaimBegin { .. } => Some("reclaim"),
            _ => None,
        };
        m.trace().take().into_iter().filter_map(name).collect()
    }

    fn counts(m: &Memory) -> [u64; 3] {
        [VmEvent::CompactStall, VmEvent::CompactSuccess, VmEvent::CompactFail].map(|event| m.vmstat().get(event))
    }

    const HUGE: Gfp = Gfp::TRANSHUGE.with(Gfp::NORETRY);

    #[test]
    fn the_first_compaction_is_asynchronous_and_the_last_is_not_and_puts_the_next_off() {
        let m = &mut machine(5);
        assert_eq!(tries(m, HUGE, 9), ["asynchronous", "reclaim", "synchronous"]);
        assert_eq!(counts(m), [2, 0, 2]);
        let c = &m.zones[ZONE].compaction;
        assert_eq!((c.defer_shift, c.order_failed), (1, 0), "only the synchronous one counts");
    }

    #[test]
    fn a_stall_is_counted_even_where_every_zone_is_skipped() {
        let m = &mut machine(2);
        assert_eq!(tries(m, HUGE, 9), ["asynchronous", "reclaim", "synchronous"]);
        assert_eq!(counts(m), [2, 0, 0]);
        assert_eq!(m.zones[ZONE].compaction.defer_shift, 0);
    }

    #[test]
    fn a_request_that_wakes_nobody_gives_up_where_compaction_is_put_off() {
        let put_off = |gfp| {
            let m = &mut machine(5);
            m.locked(ZONE, CpuId::new(0)).defer_compaction(Order::new(9));
            m.locked(ZONE, CpuId::new(0)).defer_compaction(Order::new(9));
            let tries = tries(m, gfp, 9);
            (tries, counts(m)[0], m.zones[ZONE].compaction.considered)
        };
        assert_eq!(put_off(HUGE), (Vec::new(), 0, 1));
        let (tried, stalls, asked) = put_off(Gfp::HIGHUSER_MOVABLE | Gfp::NORETRY);
        assert_eq!((tried, stalls, asked), (["reclaim"].into(), 0, 3), "reclaim and the last compaction ask as well");
    }

    #[test]
    fn without_progress_a_costly_request_that_may_retry_does_not_compact_again() {
        let m = &mut machine(5);
        // Less than that is no reason to leave out reclaim.
        m.zones[ZONE].watermarks.high = 300;
        assert_eq!(tries(m, Gfp::HIGHUSER_MOVABLE, 9), ["asynchronous", "reclaim"]);
    }

    #[test]
    fn a_request_bound_to_its_node_fails_at_once_if_it_warns_nobody() {
        let bound = Gfp::KERNEL | Gfp::THISNODE | Gfp::NORETRY;
        let asked = |gfp| {
            let m = &mut machine(5);
            m.zones[ZONE].watermarks.high = m.zones[ZONE].managed;
            tries(m, gfp, 9);
            m.nodes[NodeId::default()].kswapd.asked().0
        };
        assert_eq!([asked(bound), asked(bound | Gfp::NOWARN)], [Order::new(9), Order::ZERO]);
    }

    /// An owner whose devices are all busy.
    struct Busy;

    impl Owner for Busy {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> crate::owner::MigrateOutcome {
            crate::owner::MigrateOutcome::Moved
        }
        fn is_congested(&mut self) -> bool {
            true
        }
    }

    /// The next act of a request that got no page although reclaim freed this number.
    fn goes_on(m: &mut Memory, gfp: Gfp, order: u8, freed: u64) -> &'static str {
        let mut slow = AllocSlow::new(m, Request::new(CpuId::new(0), NodeId::default(), gfp, Order::new(order)));
        match (slow.reclaimed_in_round(m, &mut Busy, freed), &slow.state) {
            (Step::Done(Ok(_)), _) => "has a page",
            (Step::Done(Err(AllocFailure::OutOfMemory)), _) => "kills",
            (Step::Done(Err(AllocFailure::Failed)), _) => "fails",
            (Step::Working, SlowPathStage::Retry) => "again",
            (Step::Wait(_), SlowPathStage::Retry) => "again, later",
            (_, SlowPathStage::Compact(_)) => "compacts",
            _ => "?",
        }
    }

    #[test]
    fn after_reclaim_small_requests_go_round_and_large_ones_compact_once_more() {
        let m = &mut machine(5);
        m.zones[ZONE].watermarks.high = m.zones[ZONE].managed;
        let (may_fail, lasting) = (Gfp::KERNEL | Gfp::RETRY_MAYFAIL, Gfp::KERNEL | Gfp::NORETRY);
        let with_progress = [(Gfp::KERNEL, 0), (Gfp::KERNEL, 3), (Gfp::KERNEL, 4), (lasting, 3), (lasting, 0)];
        let does = with_progress.map(|(gfp, order)| goes_on(m, gfp, order, 10));
        assert_eq!(does, ["again", "again", "compacts", "compacts", "fails"]);
        assert_eq!([511, 512].map(|freed| goes_on(m, may_fail, 9, freed)), ["again", "compacts"]);
        let without =
            [(Gfp::KERNEL, 0), (Gfp::KERNEL, 4), (Gfp::KERNEL | Gfp::DMA32, 0), (Gfp::KERNEL | Gfp::THISNODE, 0)];
        let does = without.map(|(gfp, order)| goes_on(m, gfp, order, 0));
        assert_eq!(does, ["kills", "fails", "fails", "fails"], "only ordinary memory, in small blocks, kills");
        let lruvec = m.zones[ZONE].lruvec;
        m.lru.vecs[lruvec].congested = true;
        assert_eq!(goes_on(m, Gfp::KERNEL, 0, 10), "again, later", "the zone's devices are busy");
        m.zones[ZONE].watermarks.high = 0;
        assert_eq!(goes_on(m, Gfp::KERNEL, 0, 0), "has a page", "before it kills, it looks above the high mark");
    }

    #[test]
    fn a_block_after_compaction_ends_deferral_and_the_wish_to_clear_hints() {
        let m = &mut crate::testing::machine_with(16, linux("3.13"));
        let request = Request::new(CpuId::new(0), NodeId::default(), Gfp::HIGHUSER_MOVABLE, Order::new(9));
        m.locked(ZONE, CpuId::new(0)).defer_compaction(Order::new(9));
        m.zones[ZONE].compaction.blockskip_flush = true;
        let mut slow = AllocSlow::new(m, request);
        assert_eq!(slow.take_compacted(m, &mut AllMove, CompactResult::Skipped), None);
        assert!(slow.take_compacted(m, &mut AllMove, CompactResult::Complete).is_some());
        let c = &m.zones[ZONE].compaction;
        assert_eq!((c.defer_shift, c.order_failed, c.blockskip_flush), (0, 10, false));
    }
}
