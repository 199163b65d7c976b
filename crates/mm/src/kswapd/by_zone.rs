//! kswapd where every zone has LRU lists of its own (up to 4.7): it balances the zones of its node
//! one by one.
//!
//! A round finds the highest zone that is not balanced and shrinks all zones from the lowest up to
//! it, except those with more than the balance gap free above the high watermark. Rounds go on,
//! priority by priority, until the node is balanced: for order 0 all its zones must be, for a
//! higher order enough zones for a quarter of its memory. kswapd itself checks order 0 only;
//! kcompactd makes the block. In 3.13 there is none: kswapd checks for the block, and compacts.
//! Source: kernel-behaviour §4.4, §4.4.1.

use super::{DaemonStep, Kswapd, KswapdStage, NAP_NS};
use crate::compact::{CompactControl, CompactRun};
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::Owner;
use crate::reclaim::node::ShrinkNode;
use crate::reclaim::{DEF_PRIORITY, ScanControl};
use crate::state::Memory;
use crate::step::{Daemon, Step, Wait};
use crate::types::{CLUSTER_MAX, MigrateType, NodeId, Order, ZoneId, ZoneType};
use crate::vmstat::VmEvent;
use alloc::boxed::Box;

/// Divisor of a zone's managed pages for its balance gap (`KSWAPD_ZONE_BALANCE_GAP_RATIO`).
const BALANCE_GAP_RATIO: u64 = 100;

/// Most pageblocks that a step of compaction visits.
const BUDGET: u64 = 64;

/// A balance run, in rounds.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    /// Its order is the one that the run still works for.
    sc: ScanControl,
    /// Highest unbalanced zone of this round, or of the last one.
    end_zone: ZoneType,
    round: Option<Round>,
}

/// One pass over the zones of the node, at one priority.
#[derive(Clone, Debug)]
struct Round {
    /// Index of the next zone, from the lowest.
    next: usize,
    shrinking: Option<Shrinking>,
    raise_priority: bool,
    /// kswapd compacts, and no zone has the block above its low mark.
    needs_compaction: bool,
    /// Reclaimable pages of the zones that may be shrunk.
    pages: u64,
    /// Pages that the zones shrunk so far were to give.
    attempted: u64,
    compacting: Option<Compacting>,
}

/// The shrinking of one zone.
#[derive(Clone, Debug)]
struct Shrinking {
    zone: ZoneId,
    shrink: ShrinkNode,
    /// The order for which the zone was found unbalanced.
    order: Order,
}

/// kswapd's compaction of its node, zone by zone from the lowest.
#[derive(Clone)]
struct Compacting {
    next: usize,
    run: Option<Box<CompactRun>>,
}

impl core::fmt::Debug for Compacting {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Compacting").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Memory {
    /// The balance gap: pages that must be free above the high watermark for kswapd to skip the
    /// zone.
    pub(crate) fn balance_gap(&self, zone: ZoneId) -> u64 {
        let z = &self.zones[zone];
        z.wmark(Wmark::Low).min(z.managed.div_ceil(BALANCE_GAP_RATIO))
    }

    /// Whether the zone passes the watermark check at `beyond` pages above its high watermark.
    fn is_above_high(&self, zone: ZoneId, order: Order, beyond: u64, highest: ZoneType) -> bool {
        let z = &self.zones[zone];
        let (mark, plain) = (z.wmark(Wmark::High) + beyond, AllocFlags::mark(Wmark::High));
        z.watermark_ok(order, mark, highest, plain, z.free_pages_snapshot(), &self.shared.profile)
    }

    /// Whether kswapd is done with a zone: enough single pages are free to make a block of `order`
    /// or, by the older rule, the block is there and compaction has room.
    fn zone_balanced(&mut self, zone: ZoneId, order: Order, gap: u64, highest: ZoneType) -> bool {
        if !self.shared.profile.kswapd.works_for_blocks {
            return self.is_above_high(zone, Order::ZERO, gap + u64::from(order.pages()), highest);
        }
        self.is_above_high(zone, order, gap, highest) && (order == Order::ZERO || self.may_be_compacted(zone, order))
    }

    fn may_be_compacted(&mut self, zone: ZoneId, order: Order) -> bool {
        let plain = AllocFlags::mark(Wmark::Min);
        self.compaction_suitable(zone, Some(order), plain, ZoneType::WITHOUT_RESERVE, false) != CompactResult::Skipped
    }

    /// Whether the node is balanced: all its zones, or for an order above 0 zones with a quarter of
    /// its memory. Unreclaimable zones count as balanced.
    fn zones_balanced(&mut self, node: NodeId, order: Order, highest: ZoneType) -> bool {
        let (mut managed, mut balanced) = (0, 0);
        for at in 0..self.nodes[node].zones.len() {
            let zone = self.nodes[node].zones[at];
            let (kind, pages) = (self.zones[zone].kind, self.zones[zone].managed);
            if kind > highest {
                continue;
            }
            managed += pages;
            if !self.zone_reclaimable(zone) || self.zone_balanced(zone, order, 0, kind) {
                balanced += pages;
            } else if order == Order::ZERO {
                return false;
            }
        }
        order == Order::ZERO || balanced >= managed >> 2
    }

    /// Asks kswapd for free pages of `order` in this particular zone.
    pub(super) fn wakeup_kswapd_for_zone(&mut self, zone: ZoneId, order: Order, highest: ZoneType) {
        let node = self.zones[zone].node;
        let k = &mut self.nodes[node].kswapd;
        if k.order < order {
            k.order = order;
            k.highest = Some(k.highest.map_or(highest, |h| h.min(highest)));
        }
        if k.running {
            return;
        }
        let balanced = match self.shared.profile.kswapd.works_for_blocks {
            false => self.is_above_high(zone, order, 0, ZoneType::WITHOUT_RESERVE),
            true => self.zone_balanced(zone, order, 0, ZoneType::WITHOUT_RESERVE),
        };
        if balanced {
            return;
        }
        self.shared.emit(Listen::VMSCAN, || Event::WakeupKswapd { nid: node, order });
        self.nodes[node].kswapd.running = true;
        self.wakes.add(Daemon::Kswapd(node));
    }

    fn top_zone(&self, node: NodeId) -> ZoneType {
        self.nodes[node].zones.last().map_or(ZoneType::Normal, |z| self.zones[*z].kind)
    }
}

impl Kswapd {
    /// Begins a run for what was asked for.
    pub(super) fn wake_for_zones(&mut self, m: &mut Memory) -> DaemonStep {
        let top = m.top_zone(self.node);
        let k = &mut m.nodes[self.node].kswapd;
        self.alloc_order = core::mem::take(&mut k.order);
        self.highest = k.highest.take().unwrap_or(top);
        self.begin_rounds(m)
    }

    fn begin_rounds(&mut self, m: &mut Memory) -> DaemonStep {
        m.nodes[self.node].kswapd.running = true;
        let (nid, order) = (self.node, self.alloc_order);
        m.shared.emit(Listen::VMSCAN, || Event::KswapdWake { nid, order });
        m.shared.vmstat.add(VmEvent::Pageoutrun, 1);
        let mut sc = ScanControl::new(self.cpu, Gfp::KERNEL, order, self.highest);
        sc.kswapd = true;
        self.state = KswapdStage::Rounds(Box::new(Rounds { sc, end_zone: ZoneType::Dma, round: None }));
        Step::Working
    }

    /// Advances the run by one step.
    pub(super) fn go_round<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, mut run: Box<Rounds>) -> DaemonStep {
        let Some(mut round) = run.round.take().or_else(|| self.begin_round(m, owner, &mut run)) else {
            return self.end_rounds(m, &run);
        };
        if round.compacting.is_none() && round.shrinking.is_none() && !self.begin_zone(m, &mut run, &mut round) {
            // All zones are done.
            let rules = m.shared.profile.kswapd;
            let enough = m.shared.profile.compaction.gap(run.sc.order);
            if rules.works_for_blocks && run.sc.nr_reclaimed >= enough {
                run.sc.order = Order::ZERO;
            }
            let compacts = round.needs_compaction && run.sc.order > Order::ZERO;
            if !compacts || run.sc.nr_reclaimed <= round.attempted {
                return self.round_done(m, run, &round);
            }
            round.compacting = Some(Compacting { next: 0, run: None });
        }
        let mut step = Step::Working;
        if let Some(compacting) = &mut round.compacting {
            if self.compact(m, owner, compacting, run.sc.order) {
                return self.round_done(m, run, &round);
            }
        } else if let Some(Shrinking { zone, shrink, order }) = &mut round.shrinking {
            let (zone, order) = (*zone, *order);
            match shrink.step(m, owner, &mut run.sc) {
                Step::Working => {}
                Step::Wait(wait) => step = Step::Wait(wait),
                Step::Done(()) => {
                    if m.shared.profile.reclaim.slab_after_zones {
                        let looked_at = (run.sc.nr_scanned, round.pages);
                        run.sc.nr_reclaimed += m.shrink_slab(owner, self.node, &run.sc, looked_at);
                    }
                    round.attempted += run.sc.nr_to_reclaim;
                    round.shrinking = None;
                    round.raise_priority &= run.sc.nr_scanned < run.sc.nr_to_reclaim;
                    self.zone_done(m, zone, order, run.end_zone);
                }
            }
        }
        run.round = Some(round);
        self.state = KswapdStage::Rounds(run);
        step
    }

    /// Goes on to the next round, unless the node is balanced or has been scanned as a whole.
    fn round_done(&mut self, m: &mut Memory, mut run: Box<Rounds>, round: &Round) -> DaemonStep {
        if round.raise_priority || run.sc.nr_reclaimed == 0 {
            run.sc.priority -= 1;
        }
        if run.sc.priority < 1 || m.zones_balanced(self.node, run.sc.order, self.highest) {
            return self.end_rounds(m, &run);
        }
        self.state = KswapdStage::Rounds(run);
        Step::Working
    }

    /// Advances the compaction of the node by one step; true if that was the last.
    fn compact<O: Owner>(&self, m: &mut Memory, owner: &mut O, on: &mut Compacting, order: Order) -> bool {
        if let Some(run) = &mut on.run {
            if let Step::Done(_) = run.step(m, owner, BUDGET) {
                let zone = run.zone();
                on.run = None;
                self.note_block(m, zone, order);
            }
            return false;
        }
        let Some(&zone) = m.nodes[self.node].zones.get(on.next) else {
            return true;
        };
        on.next += 1;
        if m.locked(zone, self.cpu).compaction_deferred(order) {
            self.note_block(m, zone, order);
            return false;
        }
        let control = CompactControl {
            order: Some(order),
            migratetype: MigrateType::Unmovable,
            mode: MigrateMode::Async,
            direct: false,
            whole_zone: false,
            ignore_skip_hint: false,
            ignore_block_suitable: false,
            proactive: false,
            alloc_flags: AllocFlags::mark(Wmark::Min),
            highest: ZoneType::WITHOUT_RESERVE,
            may_enter_fs: true,
            request_order: None,
            kswapd: true,
        };
        on.run = Some(Box::new(CompactRun::new(control, zone, self.cpu)));
        false
    }

    /// If the zone has a block of this order above its low mark, requests for it are no longer put
    /// off.
    fn note_block(&self, m: &mut Memory, zone: ZoneId, order: Order) {
        let (z, profile, plain) = (&m.zones[zone], &m.shared.profile, AllocFlags::mark(Wmark::Low));
        if z.watermark_ok(order, z.wmark(Wmark::Low), ZoneType::WITHOUT_RESERVE, plain, z.free_pages, profile) {
            m.locked(zone, self.cpu).compaction_defer_reset(order, false);
        }
    }

    /// Finds the highest zone that is not balanced; `None` if there is none.
    fn begin_round<O: Owner>(&self, m: &mut Memory, owner: &mut O, run: &mut Rounds) -> Option<Round> {
        run.sc.nr_reclaimed = 0;
        m.shared.work.any = true;
        m.shared.work.tests += 1;
        for at in (0..m.nodes[self.node].zones.len()).rev() {
            let zone = m.nodes[self.node].zones[at];
            if run.sc.priority != DEF_PRIORITY && !m.zone_reclaimable(zone) {
                continue;
            }
            let lruvec = m.zones[zone].lruvec;
            m.age_anon(owner, lruvec, &run.sc);
            if !m.zone_balanced(zone, run.sc.order, 0, ZoneType::WITHOUT_RESERVE) {
                run.end_zone = m.zones[zone].kind;
                return Some(self.round_up_to(m, at, run.sc.order));
            }
            let vec = &mut m.lru.vecs[lruvec];
            (vec.congested, vec.dirty) = (false, false);
        }
        None
    }

    /// A round over the node's zones up to this one.
    fn round_up_to(&self, m: &Memory, last: usize, order: Order) -> Round {
        let zones = &m.nodes[self.node].zones[..=last];
        let plain = AllocFlags::mark(Wmark::Low);
        let has_block = |zone: &ZoneId| {
            let z = &m.zones[*zone];
            z.watermark_ok(order, z.wmark(Wmark::Low), self.highest, plain, z.free_pages, &m.shared.profile)
        };
        Round {
            next: 0,
            shrinking: None,
            raise_priority: true,
            needs_compaction: m.shared.profile.kswapd.compacts && !zones.iter().any(has_block),
            pages: zones.iter().map(|zone| m.reclaimable_pages(*zone).max(0) as u64).sum(),
            attempted: 0,
            compacting: None,
        }
    }

    /// Begins shrinking the next zone that needs it; false if there is none.
    fn begin_zone(&self, m: &mut Memory, run: &mut Rounds, round: &mut Round) -> bool {
        while let Some(&zone) = m.nodes[self.node].zones.get(round.next) {
            let (kind, end_zone) = (m.zones[zone].kind, run.end_zone);
            if kind > end_zone {
                break;
            }
            round.next += 1;
            if run.sc.priority != DEF_PRIORITY && !m.zone_reclaimable(zone) {
                continue;
            }
            run.sc.nr_scanned = 0;
            run.sc.nr_to_reclaim = m.zones[zone].wmark(Wmark::High).max(u64::from(CLUSTER_MAX));
            // Single pages are enough where compaction can do the rest.
            let order = run.sc.order;
            let compacted =
                m.shared.profile.kswapd.works_for_blocks && order > Order::ZERO && m.may_be_compacted(zone, order);
            let order = if compacted { Order::ZERO } else { order };
            if m.zone_balanced(zone, order, m.balance_gap(zone), end_zone) {
                round.raise_priority = false;
                continue;
            }
            let with_slab = kind == end_zone && !m.shared.profile.reclaim.slab_after_zones;
            round.shrinking = Some(Shrinking { zone, shrink: ShrinkNode::new(m.zones[zone].lruvec, with_slab), order });
            return true;
        }
        false
    }

    /// After a zone: a balanced zone no longer counts as congested.
    fn zone_done(&self, m: &mut Memory, zone: ZoneId, order: Order, end_zone: ZoneType) {
        let balanced = m.zone_reclaimable(zone) && m.zone_balanced(zone, order, 0, end_zone);
        let vec = &mut m.lru.vecs[m.zones[zone].lruvec];
        vec.writeback = false;
        if balanced {
            (vec.congested, vec.dirty) = (false, false);
        }
    }

    /// Ends a run: begins another if more has been asked for since, else tries to sleep.
    fn end_rounds(&mut self, m: &mut Memory, run: &Rounds) -> DaemonStep {
        (self.balanced_highest, self.reclaim_order) = (run.end_zone, run.sc.order);
        // A run that ended with a lower order goes to sleep on that.
        if self.reclaim_order == self.alloc_order {
            let top = m.top_zone(self.node);
            let k = &mut m.nodes[self.node].kswapd;
            let (order, highest) = (core::mem::take(&mut k.order), k.highest.take().unwrap_or(top));
            if self.alloc_order < order || self.highest > highest {
                (self.alloc_order, self.highest) = (order, highest);
                return self.begin_rounds(m);
            }
        }
        if !self.may_sleep(m) {
            m.shared.vmstat.add(VmEvent::KswapdHighWmarkHitQuickly, 1);
            return self.wake_for_zones(m);
        }
        if !m.shared.profile.kswapd.clears_hints_after_nap {
            m.reset_isolation_suitable_node(self.node);
        }
        m.wakeup_kcompactd(self.node, self.alloc_order, self.highest);
        m.nodes[self.node].kswapd.running = false;
        self.state = KswapdStage::Napping;
        Step::Wait(Wait::Time(NAP_NS))
    }

    /// Whether the zones that the last run was for are balanced.
    pub(super) fn may_sleep(&self, m: &mut Memory) -> bool {
        m.zones_balanced(self.node, self.reclaim_order, self.balanced_highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::linux;
    use crate::types::CpuId;

    const NODE: NodeId = NodeId::new(0);
    const DMA32: ZoneId = ZoneId::new(0);
    const NORMAL: ZoneId = ZoneId::new(1);

    /// Two zones, each all free and with something to reclaim, to be changed by the test.
    fn two_zones() -> Memory {
        two_zones_of("4.6")
    }

    fn two_zones_of(profile: &str) -> Memory {
        let mut m = crate::testing::two_zones(linux(profile));
        for z in &mut m.zones {
            z.lru.add_to_total(crate::state::LruList::InactiveFile.index(), 100);
        }
        m
    }

    fn leaves(m: &mut Memory, zone: ZoneId, beyond_high: i64) {
        m.zones[zone].free_pages = m.zones[zone].wmark(Wmark::High) as i64 + beyond_high;
    }

    #[test]
    fn for_single_pages_all_zones_must_be_balanced() {
        let mut m = two_zones();
        assert!(m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
        leaves(&mut m, DMA32, 1);
        assert!(!m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal), "a page of the block asked for is kept back");
        leaves(&mut m, DMA32, 2);
        assert!(m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
        leaves(&mut m, NORMAL, 0);
        assert!(!m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
        assert!(m.zones_balanced(NODE, Order::ZERO, ZoneType::Dma32), "above that nobody has asked");
    }

    #[test]
    fn for_a_block_a_quarter_of_the_memory_is_enough() {
        let (mut m, order) = (two_zones(), Order::new(3));
        leaves(&mut m, NORMAL, 0);
        assert!(m.zones_balanced(NODE, order, ZoneType::Normal), "16 of 64 pageblocks");
        leaves(&mut m, DMA32, 8);
        assert!(!m.zones_balanced(NODE, order, ZoneType::Normal));
    }

    #[test]
    fn a_zone_that_was_looked_at_six_times_over_counts_as_balanced() {
        let mut m = two_zones();
        leaves(&mut m, NORMAL, 0);
        m.zones[NORMAL].pages_scanned = 600;
        assert!(m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
        m.zones[NORMAL].pages_scanned = 599;
        assert!(!m.zones_balanced(NODE, Order::ZERO, ZoneType::Normal));
    }

    #[test]
    fn each_zone_is_asked_for_by_itself() {
        let mut m = two_zones();
        leaves(&mut m, DMA32, 0);
        m.wakeup_kswapd(NORMAL, Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
        assert!(!m.has_wakes(), "Normal has enough");
        m.wakeup_kswapd(DMA32, Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
        assert!(m.take_wakes().eq([Daemon::Kswapd(NODE)]));
    }

    #[test]
    fn the_gap_that_a_zone_is_left_alone_above_is_the_low_mark_or_a_hundredth() {
        let mut m = two_zones();
        m.zones[NORMAL].watermarks.low = 1000;
        assert_eq!(m.balance_gap(NORMAL), 246, "24,576 pages are managed");
        m.zones[NORMAL].watermarks.low = 200;
        assert_eq!(m.balance_gap(NORMAL), 200);
    }

    /// Takes all of DMA32 but every other page of some pageblocks.
    fn leaves_single_pages(m: &mut Memory) {
        let (cpu, huge) = (CpuId::new(0), Order::new(9));
        let low = Gfp::KERNEL.with(Gfp::DMA32);
        m.zones[DMA32].watermarks = Default::default();
        let block = crate::request::Request::new(cpu, NODE, low, huge);
        let blocks: alloc::vec::Vec<_> = core::iter::from_fn(|| crate::testing::take(m, block)).collect();
        for pfn in &blocks[..8] {
            m.split_page(*pfn, huge);
            (0..512).step_by(2).for_each(|page| m.free(cpu, pfn.plus(page), Order::ZERO));
        }
        m.drain_cpu(cpu);
        m.fold_vmstat(cpu);
    }

    #[test]
    fn only_in_3_13_a_zone_without_the_block_is_unbalanced_however_much_is_free() {
        for (profile, balanced) in [("3.13", false), ("4.6", true)] {
            let mut m = two_zones_of(profile);
            leaves_single_pages(&mut m);
            assert_eq!(m.zone_balanced(DMA32, Order::new(9), 0, ZoneType::WITHOUT_RESERVE), balanced, "{profile}");
            assert!(m.zone_balanced(DMA32, Order::ZERO, 0, ZoneType::WITHOUT_RESERVE), "{profile}");
        }
    }

    #[test]
    fn in_3_13_kswapd_compacts_zones_where_that_is_not_put_off() {
        let mut m = two_zones_of("3.13");
        leaves_single_pages(&mut m);
        let (kswapd, order, cpu) = (Kswapd::new(NODE, CpuId::new(0)), Order::new(9), CpuId::new(0));
        m.trace().listen(Listen::COMPACTION);
        let compacts = |m: &mut Memory| {
            let mut on = Compacting { next: 0, run: None };
            while !kswapd.compact(m, &mut crate::testing::AllMove, &mut on, order) {}
            let begun = |event| match event {
                Event::CompactionBegin { zone_start, mode, .. } => Some((zone_start.pageblock(), mode)),
                _ => None,
            };
            m.trace().take().into_iter().filter_map(begun).collect::<alloc::vec::Vec<_>>()
        };
        let dma32 = [(8, MigrateMode::Async)];
        assert_eq!(compacts(&mut m), dma32, "Normal has blocks to spare");
        assert_eq!(m.zones[NORMAL].compaction.order_failed, 10, "which is noted");
        assert!(!m.zones[DMA32].compaction.blockskip_flush, "only requests have the hints cleared");
        m.locked(DMA32, cpu).defer_compaction(order);
        m.locked(DMA32, cpu).defer_compaction(order);
        assert_eq!(compacts(&mut m), [], "put off");
    }

    #[test]
    fn in_3_13_a_run_that_has_reclaimed_twice_the_block_goes_on_for_single_pages() {
        for (profile, left) in [("3.13", 0), ("4.6", 3)] {
            let mut m = two_zones_of(profile);
            let mut kswapd = Kswapd::new(NODE, CpuId::new(0));
            kswapd.alloc_order = Order::new(3);
            kswapd.begin_rounds(&mut m);
            let KswapdStage::Rounds(mut run) = core::mem::replace(&mut kswapd.state, KswapdStage::Asleep) else {
                panic!("it has begun");
            };
            let round = kswapd.round_up_to(&m, 1, Order::new(3));
            (run.sc.nr_reclaimed, run.round) = (16, Some(Round { next: 2, ..round }));
            kswapd.go_round(&mut m, &mut crate::testing::AllMove, run);
            assert_eq!(kswapd.reclaim_order, Order::new(left), "{profile}");
        }
    }

    #[test]
    fn hints_are_cleared_before_the_nap_or_in_3_13_after_it() {
        for (profile, after) in [("3.13", true), ("4.6", false)] {
            let mut m = two_zones_of(profile);
            m.zones[DMA32].compaction.blockskip_flush = true;
            let mut kswapd = Kswapd::new(NODE, CpuId::new(0));
            while !matches!(kswapd.step(&mut m, &mut crate::testing::AllMove, true), Step::Wait(Wait::Time(_))) {}
            assert_eq!(m.zones[DMA32].compaction.blockskip_flush, after, "{profile}");
            kswapd.step(&mut m, &mut crate::testing::AllMove, true);
            assert!(!m.zones[DMA32].compaction.blockskip_flush, "{profile}");
        }
    }

    /// Zones that kswapd's run has compacted after a round that reclaimed this much
    /// of 100 pages.
    fn zones_compacted(profile: crate::rules::Profile, reclaimed: u64) -> usize {
        let mut m = crate::testing::two_zones(profile);
        leaves_single_pages(&mut m);
        let (mut kswapd, order) = (Kswapd::new(NODE, CpuId::new(0)), Order::new(9));
        kswapd.alloc_order = order;
        kswapd.begin_rounds(&mut m);
        let KswapdStage::Rounds(mut run) = core::mem::replace(&mut kswapd.state, KswapdStage::Asleep) else {
            panic!("it has begun");
        };
        let round = kswapd.round_up_to(&m, 0, order);
        (run.sc.nr_reclaimed, run.round) = (reclaimed, Some(Round { next: 2, attempted: 100, ..round }));
        m.trace().listen(Listen::COMPACTION);
        for _ in 0..4 {
            kswapd.go_round(&mut m, &mut crate::testing::AllMove, run);
            match core::mem::replace(&mut kswapd.state, KswapdStage::Asleep) {
                KswapdStage::Rounds(next) if next.round.is_some() => run = next,
                _ => break,
            }
        }
        m.trace().take().iter().filter(|event| matches!(event, Event::CompactionBegin { .. })).count()
    }

    #[test]
    fn in_3_13_kswapd_compacts_once_it_has_reclaimed_more_than_it_was_to() {
        assert_eq!([100, 101].map(|reclaimed| zones_compacted(linux("3.13"), reclaimed)), [0, 1]);
        let mut without = linux("3.13");
        without.kswapd.compacts = false;
        assert_eq!(zones_compacted(without, 101), 0);
    }

    #[test]
    fn before_4_6_there_is_no_kcompactd_to_wake() {
        let woken = |profile| {
            let mut m = two_zones_of(profile);
            leaves_single_pages(&mut m);
            m.wakeup_kcompactd(NODE, Order::new(9), ZoneType::Normal);
            m.nodes[NODE].kcompactd.max_order
        };
        assert_eq!([woken("3.13"), woken("4.6")], [Order::ZERO, Order::new(9)]);
    }
}
