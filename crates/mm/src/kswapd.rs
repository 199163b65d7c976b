//! kswapd: wakes when a zone runs low, reclaims until the node is balanced, wakes kcompactd, and
//! sleeps.
//!
//! A balance run steps through the reclaim priorities until some zone is balanced. A run for a high
//! order falls back to order 0 once it has freed enough for compaction to work; kcompactd is then
//! woken to make the block. After 16 runs that reclaimed nothing the node is hopeless and left
//! alone. Up to 4.7 kswapd balances zone by zone instead (`by_zone`). Source: kernel-behaviour
//! §4.4.

mod by_zone;

use crate::event::{Event, Listen};
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::Owner;
use crate::reclaim::node::ShrinkNode;
use crate::reclaim::{DEF_PRIORITY, MAX_RECLAIM_RETRIES, ScanControl};
use crate::rules::BalancedIn;
use crate::state::{KswapdState, Memory};
use crate::step::{Daemon, DaemonStep, Step, Wait};
use crate::types::{CLUSTER_MAX, CpuId, NodeId, Order, PAGEBLOCK_ORDER, ZoneId, ZoneType};
use crate::vmstat::VmEvent;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The nap before kswapd goes to sleep: 100 ms.
const NAP_NS: u64 = 100_000_000;

impl KswapdState {
    /// Whether reclaim has failed so often that kswapd leaves the node alone.
    pub fn hopeless(&self) -> bool {
        self.failures >= MAX_RECLAIM_RETRIES
    }
}

impl Memory {
    /// Whether kswapd has gone over the node since this was last asked, so that tasks which stall
    /// rather than mix a pageblock go on.
    pub fn take_eased(&mut self, node: NodeId) -> bool {
        core::mem::take(&mut self.nodes[node].kswapd.eased)
    }

    /// Asks the kswapd of the zone's node for free pages of `order`; if reclaim cannot help, asks
    /// kcompactd.
    pub(crate) fn wakeup_kswapd(&mut self, zone: ZoneId, gfp: Gfp, order: Order, highest: ZoneType) {
        if self.shared.profile.lru.lists_per_zone {
            return self.wakeup_kswapd_for_zone(zone, order, highest);
        }
        let node = self.zones[zone].node;
        let k = &mut self.nodes[node].kswapd;
        k.order = k.order.max(order);
        k.highest = k.highest.max(Some(highest));
        if k.running {
            return;
        }
        let hopeless = k.hopeless();
        if hopeless || self.pgdat_balanced(node, order, highest) && !self.pgdat_boosted(node, highest) {
            if !gfp.has(Gfp::DIRECT_RECLAIM) {
                self.wakeup_kcompactd(node, order, highest);
            }
            return;
        }
        self.shared.emit(Listen::VMSCAN, || Event::WakeupKswapd { nid: node, order });
        self.nodes[node].kswapd.running = true;
        self.wakes.add(Daemon::Kswapd(node));
    }

    /// Whether some zone of the node passes the watermark check at `order` and its high watermark.
    /// In defrag_mode the profile says whether only whole free pageblocks count.
    pub(crate) fn pgdat_balanced(&mut self, node: NodeId, order: Order, highest: ZoneType) -> bool {
        let profile = &self.shared.profile;
        let plain = AllocFlags::mark(Wmark::High);
        let rules = &profile.kswapd;
        let counts_blocks = match rules.balanced_in {
            BalancedIn::Pages => false,
            BalancedIn::Blocks => true,
            BalancedIn::BlocksForBlocks => order > Order::ZERO,
        };
        let in_blocks = self.shared.tunables.defrag_mode && counts_blocks;
        let mut managed = self.nodes[node]
            .zones
            .iter()
            .map(|z| &self.zones[*z])
            .filter(|z| z.managed > 0 && z.kind <= highest)
            .peekable();
        managed.peek().is_none()
            || managed.any(|z| {
                let free = match () {
                    () if in_blocks => z.free_pages_in_blocks(),
                    () if rules.balance_may_drift => z.free_pages,
                    () => z.free_pages_snapshot(),
                };
                z.watermark_ok(order, z.wmark(Wmark::High), highest, plain, free, profile)
            })
    }

    fn pgdat_boosted(&self, node: NodeId, highest: ZoneType) -> bool {
        self.nodes[node].zones.iter().any(|z| self.zones[*z].kind <= highest && self.zones[*z].watermark_boost > 0)
    }
}

/// The kswapd thread of a node.
#[derive(Clone, Debug)]
pub struct Kswapd {
    node: NodeId,
    cpu: CpuId,
    state: KswapdStage,
    /// The order asked for, and the one that the last run ended with.
    alloc_order: Order,
    reclaim_order: Order,
    highest: ZoneType,
    /// Highest zone the last run was for, where it balances zone by zone.
    balanced_highest: ZoneType,
}

#[derive(Clone, Debug)]
enum KswapdStage {
    Asleep,
    /// Napping for 100 ms, unless woken.
    Napping,
    Balancing(Box<Balance>),
    /// Balancing zone by zone.
    Rounds(Box<by_zone::Rounds>),
}

/// A balance run over the node.
#[derive(Clone, Debug)]
struct Balance {
    sc: ScanControl,
    /// The boost of each zone when the run began.
    boosts: Vec<u64>,
    /// How many pages must still be reclaimed for these boosts.
    boost_left: u64,
    pass: Option<Pass>,
}

/// One pass over the node, at one priority.
#[derive(Clone, Debug)]
struct Pass {
    node: ShrinkNode,
    reclaimed_before: u64,
    raise_priority: bool,
}

impl Balance {
    fn is_boosted(&self) -> bool {
        self.boosts.iter().any(|b| *b > 0)
    }
}

impl Kswapd {
    /// The kswapd of `node`, asleep. It runs on `cpu`.
    pub fn new(node: NodeId, cpu: CpuId) -> Kswapd {
        Kswapd {
            node,
            cpu,
            state: KswapdStage::Asleep,
            alloc_order: Order::ZERO,
            reclaim_order: Order::ZERO,
            highest: ZoneType::Device,
            balanced_highest: ZoneType::Device,
        }
    }

    /// Moves it to this CPU from now on.
    pub fn run_on(&mut self, cpu: CpuId) {
        self.cpu = cpu;
    }

    /// The node it belongs to.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Advances by one step, at most a cluster of pages. Called when it is woken, when its nap or
    /// another wait ends, and while it returns `Working`. `timed_out` says that the nap was not cut
    /// short.
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, timed_out: bool) -> DaemonStep {
        m.shared.work.any = true;
        let zone_by_zone = m.shared.profile.lru.lists_per_zone;
        match core::mem::replace(&mut self.state, KswapdStage::Asleep) {
            KswapdStage::Rounds(run) => self.go_round(m, owner, run),
            KswapdStage::Asleep => {
                m.set_percpu_thresholds(self.node, true);
                self.wake(m)
            }
            // If it is woken just as the nap ends it counts as woken, since it would not be woken
            // again.
            KswapdStage::Napping if !timed_out || m.nodes[self.node].kswapd.running => {
                m.shared.vmstat.add(VmEvent::KswapdLowWmarkHitQuickly, 1);
                if zone_by_zone {
                    return self.wake_for_zones(m);
                }
                // The nap was cut short, so the order and zone it went to sleep with are still
                // asked for.
                let highest = self.zone_to_sleep_by(m);
                let k = &mut m.nodes[self.node].kswapd;
                k.order = k.order.max(self.reclaim_order);
                k.highest = Some(highest);
                self.wake_for_node(m)
            }
            KswapdStage::Napping => {
                let sleeps = if zone_by_zone { self.may_sleep(m) } else { self.prepare_sleep(m) };
                if sleeps {
                    if m.shared.profile.kswapd.clears_hints_after_nap {
                        m.reset_isolation_suitable_node(self.node);
                    }
                    m.shared.emit(Listen::VMSCAN, || Event::KswapdSleep { nid: self.node });
                    m.set_percpu_thresholds(self.node, false);
                    return Step::Wait(Wait::Wakeup);
                }
                m.shared.vmstat.add(VmEvent::KswapdHighWmarkHitQuickly, 1);
                self.wake(m)
            }
            KswapdStage::Balancing(run) => self.balance(m, owner, run),
        }
    }

    /// Begins a balance run for what was asked for.
    fn wake(&mut self, m: &mut Memory) -> DaemonStep {
        match m.shared.profile.lru.lists_per_zone {
            true => self.wake_for_zones(m),
            false => self.wake_for_node(m),
        }
    }

    fn wake_for_node(&mut self, m: &mut Memory) -> DaemonStep {
        let k = &mut m.nodes[self.node].kswapd;
        k.running = true;
        self.alloc_order = core::mem::take(&mut k.order);
        let unasked = if m.shared.profile.kswapd.unasked_balances_lowest_zone { ZoneType::Dma } else { self.highest };
        self.highest = k.highest.take().unwrap_or(unasked);
        let (nid, order) = (self.node, self.alloc_order);
        m.shared.emit(Listen::VMSCAN, || Event::KswapdWake { nid, order });
        m.shared.vmstat.add(VmEvent::Pageoutrun, 1);
        let boosts: Vec<u64> = self.zones(m).map(|z| m.zones[z].watermark_boost).collect();
        for z in self.zones(m).collect::<Vec<_>>() {
            m.zones[z].reclaim_active = true;
        }
        let mut sc = ScanControl::new(self.cpu, Gfp::KERNEL, order, self.highest);
        sc.kswapd = true;
        let boost_left = boosts.iter().sum();
        self.state = KswapdStage::Balancing(Box::new(Balance { sc, boosts, boost_left, pass: None }));
        Step::Working
    }

    fn zones<'m>(&self, m: &'m Memory) -> impl Iterator<Item = ZoneId> + 'm {
        let highest = self.highest;
        m.nodes[self.node].zones.iter().copied().filter(move |z| m.zones[*z].kind <= highest)
    }

    /// Advances the balance run by one step.
    fn balance<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, mut run: Box<Balance>) -> DaemonStep {
        if run.pass.is_none() {
            let balanced = m.pgdat_balanced(self.node, run.sc.order, self.highest);
            if !balanced && run.boost_left > 0 {
                // The node is not balanced even without the boost, which has to wait.
                run.boost_left = 0;
                run.sc.priority = DEF_PRIORITY;
                self.state = KswapdStage::Balancing(run);
                return Step::Working;
            }
            if balanced && run.boost_left == 0 {
                return self.end(m, run);
            }
            run.pass = Some(self.begin_pass(m, owner, &mut run));
        }
        if let Some(pass) = &mut run.pass {
            match pass.node.step(m, owner, &mut run.sc) {
                Step::Working => {
                    self.state = KswapdStage::Balancing(run);
                    return Step::Working;
                }
                Step::Wait(wait) => {
                    self.state = KswapdStage::Balancing(run);
                    return Step::Wait(wait);
                }
                Step::Done(()) => {}
            }
        }
        if self.pass_was_the_last(m, &mut run) {
            return self.end(m, run);
        }
        self.state = KswapdStage::Balancing(run);
        Step::Working
    }

    /// Begins a pass at this priority. Reclaim for a boost neither writes nor swaps; the profile
    /// says whether it shrinks slab caches.
    fn begin_pass<O: Owner>(&self, m: &mut Memory, owner: &mut O, run: &mut Balance) -> Pass {
        let (sc, boosting) = (&mut run.sc, run.boost_left > 0);
        sc.may_writepage = !boosting || sc.priority < DEF_PRIORITY - 2;
        sc.may_swap = !boosting;
        sc.may_shrink_slab = !(boosting && m.shared.profile.kswapd.boost_spares_slabs);
        let lruvec = m.node_lruvec(self.node);
        if m.lru.has_generations() {
            m.set_initial_priority(lruvec, sc);
            m.protect_all_groups();
        } else {
            m.age_anon_of_all(owner, lruvec, sc);
        }
        sc.nr_scanned = 0;
        sc.nr_to_reclaim = self
            .zones(m)
            .map(|z| &m.zones[z])
            .filter(|z| z.managed > 0)
            .map(|z| z.wmark(Wmark::High).max(u64::from(CLUSTER_MAX)))
            .sum();
        m.shared.work.tests += 1;
        Pass {
            node: ShrinkNode::new(lruvec, true),
            reclaimed_before: sc.nr_reclaimed,
            raise_priority: !(boosting && sc.priority == DEF_PRIORITY - 2),
        }
    }

    /// Evaluates the pass; true if it was the last of the run.
    fn pass_was_the_last(&self, m: &mut Memory, run: &mut Balance) -> bool {
        let Some(pass) = run.pass.take() else { return true };
        if m.shared.profile.fallback.stalls_movable && (!pass.raise_priority || m.allow_direct_reclaim(self.node)) {
            m.nodes[self.node].kswapd.eased = true;
        }
        let sc = &mut run.sc;
        if sc.order > Order::ZERO && sc.nr_reclaimed >= m.shared.profile.compaction.gap(sc.order) {
            // Enough for compaction to work with: from now on the run is for order 0.
            sc.order = Order::ZERO;
        }
        let reclaimed = sc.nr_reclaimed - pass.reclaimed_before;
        let rules = &m.shared.profile.kswapd;
        let done = if rules.counts_reclaimed_as_scanned { sc.nr_scanned.max(reclaimed) } else { sc.nr_scanned };
        let enough_scanned = done >= sc.nr_to_reclaim;
        run.boost_left -= run.boost_left.min(reclaimed);
        let over = if run.boost_left > 0 && reclaimed == 0 {
            true
        } else {
            if pass.raise_priority && !enough_scanned || reclaimed == 0 {
                sc.priority -= 1;
            }
            sc.priority < 1
        };
        if over && sc.nr_reclaimed == 0 {
            if rules.retries_without_trimming && sc.priority < 1 && sc.trim_failed && !sc.no_trimming {
                (sc.no_trimming, sc.priority) = (true, DEF_PRIORITY);
                return false;
            }
            self.count_failure(m, run);
        }
        over
    }

    /// Counts a run that reclaimed nothing as a failure. The profile says whether boosted runs
    /// count.
    fn count_failure(&self, m: &mut Memory, run: &Balance) {
        if !m.shared.profile.kswapd.boosted_runs_never_fail || !run.is_boosted() {
            m.nodes[self.node].kswapd.failures += 1;
        }
    }

    /// Ends a balance run: takes back the boosts it began with, and tries to sleep.
    fn end(&mut self, m: &mut Memory, run: Box<Balance>) -> DaemonStep {
        let zones: Vec<ZoneId> = self.zones(m).collect();
        for (z, boost) in zones.iter().zip(&run.boosts) {
            let z = &mut m.zones[*z];
            z.reclaim_active = false;
            z.watermark_boost -= z.watermark_boost.min(*boost);
        }
        if run.is_boosted() {
            m.wakeup_kcompactd(self.node, PAGEBLOCK_ORDER, self.highest);
        }
        let lruvec = m.node_lruvec(self.node);
        m.snapshot_refaults(lruvec);
        self.reclaim_order = run.sc.order;
        // A run that ended with a lower order goes to sleep on that; any other first reads what has
        // been asked for since.
        if self.reclaim_order >= self.alloc_order {
            let k = &m.nodes[self.node].kswapd;
            self.alloc_order = k.order;
            self.reclaim_order = k.order;
            self.highest = self.zone_to_sleep_by(m);
        }
        if !self.prepare_sleep(m) {
            m.shared.vmstat.add(VmEvent::KswapdHighWmarkHitQuickly, 1);
            return self.wake(m);
        }
        m.reset_isolation_suitable_node(self.node);
        m.wakeup_kcompactd(self.node, self.alloc_order, self.highest);
        m.nodes[self.node].kswapd.running = false;
        self.state = KswapdStage::Napping;
        Step::Wait(Wait::Time(NAP_NS))
    }

    /// The highest zone by which it decides whether to sleep.
    fn zone_to_sleep_by(&self, m: &Memory) -> ZoneType {
        let asked = m.nodes[self.node].kswapd.highest.unwrap_or(self.highest);
        if m.shared.profile.kswapd.unasked_balances_lowest_zone { asked.max(self.highest) } else { asked }
    }

    /// Whether kswapd may sleep: the node is hopeless, or balanced, in which case it is no longer
    /// congested.
    fn prepare_sleep(&self, m: &mut Memory) -> bool {
        if m.nodes[self.node].kswapd.hopeless() {
            return true;
        }
        let balanced = m.pgdat_balanced(self.node, self.reclaim_order, self.highest);
        if balanced {
            let lruvec = m.node_lruvec(self.node);
            let vec = &mut m.lru.vecs[lruvec];
            (vec.congested, vec.dirty, vec.writeback) = (false, false, false);
        }
        balanced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Watermarks;
    use crate::testing::{linux, with_a_pageblock_in_pieces, with_single_pages};

    const ZONE: ZoneId = ZoneId::new(0);

    /// Whether a node whose free pages meet the high watermark only as single pages is balanced,
    /// for order 0 and for a pageblock.
    fn balanced(profile: &str, defrag_mode: bool) -> [bool; 2] {
        let mut m = with_single_pages(16, 4, linux(profile));
        m.shared.tunables.defrag_mode = defrag_mode;
        m.zones[ZONE].watermarks.high = 1000;
        [Order::ZERO, PAGEBLOCK_ORDER].map(|order| m.pgdat_balanced(NodeId::new(0), order, ZoneType::Normal))
    }

    #[test]
    fn as_posted_kswapd_in_defrag_mode_is_not_done_before_there_are_pageblocks_and_since_it_hands_over() {
        assert_eq!(balanced("6.15-posted", false), [true, false]);
        assert_eq!(balanced("6.15-posted", true), [false, false]);
        assert_eq!(balanced("6.15", true), [true, false]);
    }

    #[test]
    fn since_6_15_a_free_pageblock_among_single_pages_is_no_balance_for_a_block_in_defrag_mode() {
        for (defrag_mode, balanced) in [(false, true), (true, false)] {
            let mut m = with_a_pageblock_in_pieces(linux("6.15"), defrag_mode);
            assert_eq!(m.pgdat_balanced(NodeId::new(0), PAGEBLOCK_ORDER, ZoneType::Normal), balanced);
        }
    }

    #[test]
    fn while_kswapd_is_awake_cpus_keep_less_of_a_counter_to_themselves() {
        let mut m = with_single_pages(16, 4, linux("6.1"));
        let (node, thresholds) = (NodeId::new(0), |m: &Memory| m.zones[ZONE].stat_threshold);
        // Two CPUs: 2 × 2 × 1 each; the marks are 7 apart.
        assert_eq!(thresholds(&m), 4);
        (m.zones[ZONE].watermarks.min, m.zones[ZONE].watermarks.low) = (10, 17);
        for (mark, awake) in [(0, 4), (100, 3)] {
            m.zones[ZONE].percpu_drift_mark = mark;
            m.set_percpu_thresholds(node, true);
            assert_eq!(thresholds(&m), awake);
            m.set_percpu_thresholds(node, false);
            assert_eq!(thresholds(&m), 4);
        }
    }

    #[test]
    fn a_part_from_while_kswapd_was_awake_stays_until_its_cpu_counts_again() {
        let mut m = with_single_pages(16, 4, linux("6.1"));
        let (node, cpu) = (NodeId::new(0), CpuId::new(1));
        let part = |m: &Memory| m.zones[ZONE].pcps[cpu].free_diff;
        let free = |m: &mut Memory, pages| m.locked(ZONE, cpu).mod_free_pages(pages);
        m.fold_vmstat(cpu);
        m.zones[ZONE].percpu_drift_mark = 100;
        // Two CPUs share 14 pages.
        m.zones[ZONE].watermarks = Watermarks { min: 10, low: 24, high: 38, promo: 52 };
        m.set_percpu_thresholds(node, true);
        free(&mut m, 7);
        m.zones[ZONE].free_pages -= 7;
        m.set_percpu_thresholds(node, false);
        assert_eq!((part(&m), m.zones[ZONE].stat_threshold), (7, 4));
        m.check().expect("consistent");
        free(&mut m, -1);
        assert_eq!(part(&m), 0);
    }

    #[test]
    fn as_posted_what_cpus_have_not_folded_in_blurs_the_balance() {
        for (profile, balanced) in [("6.14", false), ("6.15-posted", true), ("6.15", false)] {
            let mut m = with_single_pages(16, 4, linux(profile));
            let zone = &mut m.zones[ZONE];
            (zone.watermarks.high, zone.percpu_drift_mark) = (1000, 2000);
            // 30 pages are allocated, and the CPU has not folded that in yet.
            zone.pcps[CpuId::new(1)].free_diff -= 30;
            assert_eq!(m.pgdat_balanced(NodeId::new(0), Order::ZERO, ZoneType::Normal), balanced, "{profile}");
        }
    }

    #[test]
    fn in_4_20_and_5_0_kswapd_that_was_not_asked_again_balances_the_lowest_zone_and_sleeps_by_the_highest() {
        for (profile, then, sleeps_by) in
            [("5.0", ZoneType::Dma, ZoneType::Normal), ("5.6", ZoneType::Normal, ZoneType::Dma32)]
        {
            let mut m = with_single_pages(16, 4, linux(profile));
            let node = NodeId::new(0);
            let mut kswapd = Kswapd::new(node, CpuId::new(0));
            m.nodes[node].kswapd.highest = Some(ZoneType::Normal);
            kswapd.wake(&mut m);
            assert_eq!(kswapd.highest, ZoneType::Normal);
            m.nodes[node].kswapd.highest = Some(ZoneType::Dma32);
            assert_eq!(kswapd.zone_to_sleep_by(&m), sleeps_by, "{profile}");
            m.nodes[node].kswapd.highest = None;
            kswapd.wake(&mut m);
            assert_eq!(kswapd.highest, then, "{profile}");
        }
    }
}
