//! kcompactd: a node's background compactor.
//!
//! It sleeps until kswapd or an allocation asks for a block of some order or, with proactive
//! compaction, until 500 ms have passed and the node's fragmentation score is too high. Source:
//! kernel-behaviour §5.9, §5.10 (S0), §5.14.

mod pageblocks;

use crate::compact::proactive::whole_zone_control;
use crate::compact::{Carried, CompactControl, CompactRun};
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::gfp::{AllocFlags, Wmark};
use crate::owner::Owner;
use crate::rules::{ProactiveBackoff, ProactiveScore};
use crate::state::Memory;
use crate::step::{Daemon, DaemonStep, Step, Wait};
use crate::sysctl::COMPACTION_PROACTIVENESS;
use crate::types::{CpuId, MigrateType, NodeId, Order, ZoneId, ZoneType};
use crate::vmstat::VmEvent;

/// Interval between proactive checks: 500 ms.
pub const HPAGE_FRAG_CHECK_INTERVAL_NS: u64 = 500_000_000;
/// Back-off after a run that gained nothing: 2^6 checks are skipped, or the interval is shifted by
/// 6.
const MAX_DEFER_SHIFT: u32 = 6;

impl Memory {
    /// Asks the node's kcompactd for a block of `order`, if it sleeps and compaction could make
    /// one.
    pub(crate) fn wakeup_kcompactd(&mut self, node: NodeId, order: Order, highest: ZoneType) {
        if order == Order::ZERO || !self.shared.profile.kcompactd.exists {
            return;
        }
        // Unless asked for less, it compacts all zones of the node.
        let top = self.nodes[node].zones.iter().map(|z| self.zones[*z].kind).max();
        let k = &mut self.nodes[node].kcompactd;
        k.max_order = k.max_order.max(order);
        k.highest = k.highest.or(top).map(|h| h.min(highest));
        if k.awake || !self.kcompactd_node_suitable(node) {
            return;
        }
        self.nodes[node].kcompactd.awake = true;
        self.shared.emit(Listen::COMPACTION, || Event::WakeupKcompactd {
            nid: node,
            order: Some(order),
            highest_zoneidx: highest,
        });
        self.wakes.add(Daemon::Kcompactd(node));
    }

    /// Wakes every node's kcompactd for a proactive check, as a write to the sysctl does from 5.15
    /// on.
    pub fn trigger_proactive_compaction(&mut self) {
        for n in &mut self.nodes {
            n.kcompactd.proactive_trigger = true;
            self.wakes.add(Daemon::Kcompactd(n.id));
        }
    }

    fn kcompactd_node_suitable(&mut self, node: NodeId) -> bool {
        let k = self.nodes[node].kcompactd;
        let highest = k.highest.unwrap_or(ZoneType::Device);
        let flags = self.kcompactd_flags(false);
        (0..self.nodes[node].zones.len()).any(|i| {
            let zone = self.nodes[node].zones[i];
            self.zones[zone].kind <= highest
                && self.compaction_suitable(zone, Some(k.max_order), flags, highest, true) == CompactResult::Continue
        })
    }
}

/// The kcompactd thread of a node.
#[derive(Clone)]
pub struct Kcompactd {
    node: NodeId,
    cpu: CpuId,
    job: Job,
    /// Proactive checks still to be skipped (the back-off of 5.9).
    checks_deferred: u32,
    /// Length of the next sleep (the later back-off).
    interval: u64,
}

#[derive(Clone)]
enum Job {
    Asleep,
    /// Makes a block of the order asked for, zone by zone.
    Work {
        order: Order,
        highest: ZoneType,
        next: usize,
        run: Option<CompactRun>,
        /// State carried from the run over the previous zone.
        carried: Option<Carried>,
    },
    /// Lowers the node's score, zone by zone; `score` is the one it began with.
    Proactive {
        score: u64,
        sweep: NodeSweep,
    },
}

impl Kcompactd {
    /// The kcompactd of `node`, asleep. Pages it frees go to the per-CPU lists of `cpu`.
    pub fn new(node: NodeId, cpu: CpuId) -> Kcompactd {
        Kcompactd { node, cpu, job: Job::Asleep, checks_deferred: 0, interval: HPAGE_FRAG_CHECK_INTERVAL_NS }
    }

    /// Moves it to this CPU. A run in progress ends with the lists of the old one.
    pub fn run_on(&mut self, cpu: CpuId) {
        self.cpu = cpu;
    }

    /// The node it belongs to.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// How long it sleeps unless woken; `None` means without a timeout.
    fn timeout(&self, m: &mut Memory) -> Option<u64> {
        let rules = m.shared.profile.proactive;
        match rules.backoff {
            _ if rules.score == ProactiveScore::Off => None,
            ProactiveBackoff::SkipChecks => Some(HPAGE_FRAG_CHECK_INTERVAL_NS),
            ProactiveBackoff::LongSleep => {
                m.shared.decide(&COMPACTION_PROACTIVENESS, |p| p != 0).then_some(self.interval)
            }
        }
    }

    /// Advances by one step that visits at most `budget` pageblocks. Called at the start, when it
    /// is woken, when its timeout ends, and while it returns `Working`. `timed_out` says that the
    /// sleep was not cut short.
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64, timed_out: bool) -> DaemonStep {
        match &mut self.job {
            Job::Asleep => self.wake(m, timed_out),
            Job::Work { order, highest, next, run, carried } => {
                let (order, highest) = (*order, *highest);
                if let Some(r) = run {
                    let Step::Done(result) = r.step(m, owner, budget) else {
                        return Step::Working;
                    };
                    let (zone, scanned) = (r.zone(), r.scanned());
                    if !r.has_begun() {
                        // The run's own suitability test uses the highest zone asked for; the one
                        // before it used this zone.
                        m.nodes[self.node].kcompactd.passed_by.add(result);
                    }
                    *carried = Some(r.carried());
                    *run = None;
                    settle(m, zone, order, highest, self.cpu, result);
                    count_daemon(m, scanned);
                    return Step::Working;
                }
                let zones = &m.nodes[self.node].zones;
                match zones.get(*next).copied().filter(|z| m.zones[*z].kind <= highest) {
                    Some(zone) => {
                        *next += 1;
                        *run = work_on(m, zone, order, highest, self.cpu)
                            .map(|run| if let Some(carried) = *carried { run.after(carried) } else { run });
                        Step::Working
                    }
                    None => self.work_done(m, order, highest),
                }
            }
            Job::Proactive { score, sweep } => {
                if sweep.step(m, owner, budget) == Step::Working {
                    return Step::Working;
                }
                let before = *score;
                let gained = m.fragmentation_score_node(self.node) < before;
                self.checks_deferred = if gained { 0 } else { 1 << MAX_DEFER_SHIFT };
                self.interval = HPAGE_FRAG_CHECK_INTERVAL_NS << if gained { 0 } else { MAX_DEFER_SHIFT };
                m.nodes[self.node].kcompactd.proactive_trigger = false;
                self.sleep(m)
            }
        }
    }

    fn sleep(&mut self, m: &mut Memory) -> DaemonStep {
        self.job = Job::Asleep;
        m.nodes[self.node].kcompactd.awake = false;
        let nid = self.node;
        m.shared.emit(Listen::COMPACTION, || Event::KcompactdSleep { nid });
        let k = &m.nodes[self.node].kcompactd;
        if k.max_order > Order::ZERO || k.proactive_trigger {
            // It was asked again while it worked.
            return Step::Wait(Wait::Time(0));
        }
        Step::Wait(self.timeout(m).map_or(Wait::Wakeup, Wait::Time))
    }

    fn wake(&mut self, m: &mut Memory, timed_out: bool) -> DaemonStep {
        let k = &mut m.nodes[self.node].kcompactd;
        k.awake = true;
        let triggered = k.proactive_trigger;
        if k.max_order > Order::ZERO && !triggered {
            let (order, highest) = (k.max_order, k.highest.unwrap_or(ZoneType::Device));
            let nid = self.node;
            m.shared.emit(Listen::COMPACTION, || Event::KcompactdWake {
                nid,
                order: Some(order),
                highest_zoneidx: highest,
            });
            m.shared.vmstat.add(VmEvent::CompactDaemonWake, 1);
            self.interval = HPAGE_FRAG_CHECK_INTERVAL_NS;
            self.job = Job::Work { order, highest, next: 0, run: None, carried: None };
            return Step::Working;
        }
        if !timed_out && !triggered {
            return self.sleep(m);
        }
        self.interval = HPAGE_FRAG_CHECK_INTERVAL_NS;
        m.shared.work.any = true;
        m.shared.work.tests += 1;
        if !m.should_proactive_compact_node(self.node) {
            m.nodes[self.node].kcompactd.proactive_trigger = false;
            return self.sleep(m);
        }
        if m.shared.profile.proactive.backoff == ProactiveBackoff::SkipChecks && self.checks_deferred > 0 {
            self.checks_deferred -= 1;
            return self.sleep(m);
        }
        m.nodes[self.node].kcompactd.proactive_runs += 1;
        let score = m.fragmentation_score_node(self.node);
        self.job = Job::Proactive { score, sweep: NodeSweep::new(self.node, self.cpu, true) };
        Step::Working
    }

    /// Forgets the request, unless a higher order or lower zones have been asked for meanwhile;
    /// each is kept by itself.
    fn work_done(&mut self, m: &mut Memory, order: Order, highest: ZoneType) -> DaemonStep {
        let k = &mut m.nodes[self.node].kcompactd;
        k.max_order = if k.max_order <= order { Order::ZERO } else { k.max_order };
        k.highest = k.highest.filter(|asked| *asked < highest);
        self.sleep(m)
    }
}

/// The run over one zone for the order asked for, unless it is deferred or the zone is unsuitable.
fn work_on(m: &mut Memory, zone: ZoneId, order: Order, highest: ZoneType, cpu: CpuId) -> Option<CompactRun> {
    let node = m.zones[zone].node;
    if m.locked(zone, cpu).compaction_deferred(order) {
        m.nodes[node].kcompactd.passed_by.put_off += 1;
        return None;
    }
    let own = m.zones[zone].kind;
    let flags = m.kcompactd_flags(true);
    let suitable = m.compaction_suitable(zone, Some(order), flags, own, true);
    if suitable != CompactResult::Continue {
        m.nodes[node].kcompactd.passed_by.add(suitable);
        return None;
    }
    let cc = CompactControl {
        order: Some(order),
        migratetype: MigrateType::Unmovable,
        mode: MigrateMode::SyncLight,
        direct: false,
        whole_zone: false,
        ignore_skip_hint: m.shared.profile.kcompactd.ignores_hints,
        ignore_block_suitable: false,
        proactive: false,
        alloc_flags: flags,
        highest,
        may_enter_fs: true,
        request_order: None,
        kswapd: false,
    };
    Some(CompactRun::new(cc, zone, cpu))
}

/// Resets or extends the zone's deferral by the result of a run.
fn settle(m: &mut Memory, zone: ZoneId, order: Order, highest: ZoneType, cpu: CpuId, result: CompactResult) {
    let rules = m.shared.profile.kcompactd;
    let succeeded = match rules.succeeds_by_low_mark {
        true => m.page_is_made(zone, order, highest, AllocFlags::mark(Wmark::Low), result),
        false => result == CompactResult::Success,
    };
    if succeeded {
        m.locked(zone, cpu).compaction_defer_reset(order, false);
    } else if matches!(result, CompactResult::Complete | CompactResult::PartialSkipped) {
        if rules.drains_after_failure {
            // Pages on the per-CPU lists may be what keeps a block from merging.
            m.drain_all(zone, cpu);
        }
        m.locked(zone, cpu).defer_compaction(order);
    }
}

/// Counts scanned frames for the daemon, too; the general counters have them already.
fn count_daemon(m: &mut Memory, (migrate, free): (u64, u64)) {
    m.shared.vmstat.add(VmEvent::CompactDaemonMigrateScanned, migrate);
    m.shared.vmstat.add(VmEvent::CompactDaemonFreeScanned, free);
}

/// Compacts all zones of a node as a whole: proactively, or for `/proc/sys/vm/compact_memory`.
#[derive(Clone)]
pub struct NodeSweep {
    node: NodeId,
    cpu: CpuId,
    proactive: bool,
    next: usize,
    run: Option<CompactRun>,
}

impl NodeSweep {
    /// A sweep over the zones of `node` on `cpu`, complete unless `proactive`.
    pub fn new(node: NodeId, cpu: CpuId, proactive: bool) -> NodeSweep {
        NodeSweep { node, cpu, proactive, next: 0, run: None }
    }

    /// Advances by one step that visits at most `budget` pageblocks, until all zones are done.
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Step<()> {
        if let Some(run) = &mut self.run {
            if let Step::Done(_) = run.step(m, owner, budget) {
                if self.proactive && m.shared.profile.proactive.counts_as_daemon {
                    count_daemon(m, run.scanned());
                }
                self.run = None;
            }
            return Step::Working;
        }
        if self.next == 0 && !self.proactive {
            m.lru_add_drain_all();
        }
        let Some(&zone) = m.nodes[self.node].zones.get(self.next) else {
            return Step::Done(());
        };
        self.next += 1;
        self.run =
            Some(CompactRun::new(whole_zone_control(&m.shared.profile.compaction, self.proactive), zone, self.cpu));
        Step::Working
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::request::Request;
    use crate::state::{PageFlags, PassedBy, Watermarks};
    use crate::testing::{AllMove, linux, machine_with};
    use crate::types::{PAGEBLOCK_PAGES, Pfn};
    use alloc::vec::Vec;

    const ZONE: ZoneId = ZoneId::new(0);

    #[test]
    fn up_to_4_8_it_has_succeeded_where_the_page_is_there_however_its_run_ended() {
        for (profile, put_off) in [("4.6", 0), ("5.6", 1)] {
            let mut m = machine_with(16, linux(profile));
            settle(&mut m, ZONE, Order::new(9), ZoneType::Normal, CpuId::new(0), CompactResult::Complete);
            assert_eq!(m.zones[ZONE].compaction.defer_shift, put_off, "{profile}");
        }
    }

    #[test]
    fn since_4_18_the_per_cpu_lists_are_drained_after_a_failure() {
        for (profile, left) in [("4.6", true), ("5.6", false)] {
            let mut m = machine_with(16, linux(profile));
            let page = crate::testing::user_page(&mut m, crate::state::PageFlags::ANON);
            m.free(CpuId::new(0), page, Order::ZERO);
            m.zones[ZONE].watermarks.low = 16 * 512;
            settle(&mut m, ZONE, Order::new(9), ZoneType::Normal, CpuId::new(0), CompactResult::Complete);
            assert_eq!(m.zones[ZONE].pcp_pages() > 0, left, "{profile}");
        }
    }

    #[test]
    fn a_zone_in_which_no_run_begins_is_counted_by_the_reason() {
        let passed_by = |mut m: Memory, order: u8, is_put_off: bool| {
            if is_put_off {
                m.locked(ZONE, CpuId::new(0)).defer_compaction(Order::new(order));
            }
            assert!(work_on(&mut m, ZONE, Order::new(order), ZoneType::Normal, CpuId::new(0)).is_none());
            let PassedBy { put_off, goal_met, unsuitable } = m.nodes[NodeId::new(0)].kcompactd.passed_by;
            [put_off, goal_met, unsuitable]
        };
        assert_eq!(passed_by(machine_with(16, linux("6.1")), 9, true), [1, 0, 0]);
        assert_eq!(passed_by(machine_with(16, linux("6.1")), 9, false), [0, 1, 0], "there are free pageblocks");
        let scattered = crate::testing::with_single_pages(16, 1, linux("6.1"));
        assert_eq!(passed_by(scattered, 9, false), [0, 0, 1], "less than two pageblocks are free");
    }

    #[test]
    fn a_run_that_finds_its_zone_unsuitable_itself_is_counted_as_one_that_was_passed_by() {
        let mut m = crate::testing::with_single_pages(16, 8, linux("6.1"));
        let node = NodeId::new(0);
        m.nodes[node].kcompactd.max_order = Order::new(9);
        let mut daemon = Kcompactd::new(node, CpuId::new(0));
        let mut step = |m: &mut Memory| daemon.step(m, &mut crate::testing::AllMove, 1, false);
        // It wakes and finds a zone to compact; before its run begins, no zone is above its
        // watermarks any more.
        assert_eq!([step(&mut m), step(&mut m)], [Step::Working; 2]);
        let zone = &mut m.zones[ZONE];
        (zone.watermarks.min, zone.watermarks.low) = (zone.managed, zone.managed);
        step(&mut m);
        assert_eq!(m.nodes[node].kcompactd.passed_by, PassedBy { unsuitable: 1, ..PassedBy::default() });
    }

    /// The kernel uses one `compact_control` for all zones of a wake-up; a recording of a node with
    /// two zones shows it.
    #[test]
    fn a_run_over_a_zone_begins_as_the_one_before_it_has_left_off() {
        let mut m = crate::testing::two_zones(linux("6.1"));
        let (cpu, node) = (CpuId::new(0), NodeId::new(0));
        let block = Request::new(cpu, node, Gfp::KERNEL, Order::new(9));
        m.zones.iter_mut().for_each(|zone| zone.watermarks = Watermarks::default());
        m.zones.iter_mut().for_each(|zone| zone.lowmem_reserve = Default::default());
        let taken: Vec<Pfn> = core::iter::from_fn(|| m.alloc(block).ok()).collect();
        for pfn in taken {
            m.split_page(pfn, Order::new(9));
            (0..512).step_by(2).for_each(|page| m.free(cpu, pfn.plus(page), Order::ZERO));
        }
        m.drain_cpu(cpu);
        m.fold_vmstat(cpu);
        while m.alloc(block).is_ok() {}
        // Runs resume at the cached positions, which in the lower zone are its beginning.
        m.zones[ZONE].compaction.init_migrate_pfn = m.zones[ZONE].start;
        let normal = ZoneId::new(1);
        let middle = m.zones[normal].start.plus(20 * 512);
        m.zones[normal].compaction.cached_migrate_pfn = [middle, middle];
        m.nodes[node].kcompactd.max_order = Order::new(9);
        m.trace().listen(Listen::COMPACTION);
        let mut daemon = Kcompactd::new(node, cpu);
        while daemon.step(&mut m, &mut crate::testing::AllMove, 8, false) == Step::Working {}
        let begun = |event| match event {
            Event::CompactionBegin { zone_start, migrate_pfn, .. } => Some((zone_start, migrate_pfn)),
            _ => None,
        };
        let begun: Vec<_> = m.trace().take().into_iter().filter_map(begun).collect();
        let starts = [0, 1].map(|zone| m.zones[ZoneId::new(zone)].start);
        assert_eq!(
            begun,
            starts.map(|start| (start, start)),
            "the lower zone's run was over all of it: so is the next"
        );
    }

    /// As recorded on 5.10 and 6.1, where kcompactd compacts proactively beside direct requests:
    /// the positions it leaves serve one asynchronous run, which meets and so lets the synchronous
    /// run begin at the zone's ends.
    #[test]
    fn a_direct_run_takes_up_where_a_proactive_one_is_and_the_next_begins_at_the_ends() {
        for profile in ["5.6", "5.10", "6.1"] {
            let mut m = machine_with(256, linux(profile));
            m.shared.profile.proactive.score = ProactiveScore::Own;
            let (cpu, huge) = (CpuId::new(0), Order::new(9));
            let request = Request::new(cpu, NodeId::new(0), Gfp::HIGHUSER_MOVABLE | Gfp::COMP, huge);
            let taken: Vec<Pfn> = core::iter::from_fn(|| m.alloc(request).ok()).collect();
            for pfn in taken {
                m.split_page(pfn, huge);
                (0..384).for_each(|page| m.free(cpu, pfn.plus(page), Order::ZERO));
                (384..512).for_each(|page| m.lru_add(cpu, pfn.plus(page), Order::ZERO, PageFlags::ANON));
            }
            m.drain_cpu(cpu);
            let mut proactive = CompactRun::new(whole_zone_control(&m.shared.profile.compaction, true), ZONE, cpu);
            let (start, last) = (m.zones[ZONE].start, m.zones[ZONE].last_pageblock());
            let far = start.plus(20 * PAGEBLOCK_PAGES);
            while m.zones[ZONE].compaction.cached_migrate_pfn[1] < far {
                assert_eq!(proactive.step(&mut m, &mut AllMove, 1), Step::Working, "{profile}");
            }
            // The blocks it made are allocated, so the next request has to compact.
            m.drain_cpu(cpu);
            while m.alloc(request).is_ok() {}
            m.trace().listen(Listen::COMPACTION);
            for mode in [MigrateMode::Async, MigrateMode::SyncLight] {
                let cc = CompactControl {
                    order: Some(huge),
                    mode,
                    direct: true,
                    whole_zone: false,
                    ignore_skip_hint: false,
                    proactive: false,
                    highest: ZoneType::Normal,
                    ..whole_zone_control(&m.shared.profile.compaction, true)
                };
                let mut run = CompactRun::new(cc, ZONE, cpu);
                run.step(&mut m, &mut AllMove, 1);
                while mode == MigrateMode::Async && run.step(&mut m, &mut AllMove, 64) == Step::Working {}
            }
            let begun = |event| match event {
                Event::CompactionBegin { migrate_pfn, free_pfn, .. } => Some((migrate_pfn, free_pfn)),
                _ => None,
            };
            let begun: Vec<_> = m.trace().take().into_iter().filter_map(begun).collect();
            let [(migrate, free), next] = begun[..] else { panic!("{profile}: {begun:?}") };
            assert!(migrate >= far && free < last.minus(4 * PAGEBLOCK_PAGES), "{profile}: {migrate:?} {free:?}");
            assert_eq!(next, (start, last), "{profile}");
        }
    }

    #[test]
    fn up_to_4_14_it_neither_heeds_hints_nor_leaves_any() {
        for (profile, ignores) in [("4.6", true), ("5.6", false)] {
            let mut m = crate::testing::with_single_pages(16, 4, linux(profile));
            let run = work_on(&mut m, ZONE, Order::new(3), ZoneType::Normal, CpuId::new(0)).expect("it suits");
            assert_eq!(run.ignores_hints(), ignores, "{profile}");
        }
    }
}
