//! Direct compaction: an allocating task compacts the zones of its zonelist in order, until one
//! succeeds.
//!
//! Source: kernel-behaviour §3.5 ("direct compact wrapper"), §5.9.

use super::state::{CompactControl, CompactRun};
use super::walk::Passed;
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::Owner;
use crate::request::Request;
use crate::rules::Profile;
use crate::state::Memory;
use crate::step::Step;
use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, Pfn, ZoneId, ZoneType};

/// How hard direct compaction tries (`compact_priority`). As in the kernel, a smaller number is
/// harder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CompactPriority {
    /// As `SyncLight`, but over whole zones, with targets in pageblocks of any migrate type, and
    /// without regard to skip hints and deferral.
    SyncFull = 0,
    /// Empties pageblocks of any migrate type and goes on past pages that stay, but does not wait
    /// for writeback.
    SyncLight = 1,
    /// Empties pageblocks of one migrate type only, and leaves a block at the first page that
    /// stays.
    Async = 2,
}

/// A direct compaction in progress over a request's zones.
#[derive(Clone)]
pub(crate) struct DirectCompact {
    request: Request,
    /// Order to make: the request's own, or a whole pageblock for the request to be placed in.
    order: Order,
    flags: AllocFlags,
    priority: CompactPriority,
    next_zone: usize,
    run: Option<CompactRun>,
    result: CompactResult,
    gave_way: bool,
    /// Held locks have ended the runs over all zones so far, or the last of them.
    met_held_locks: bool,
}

/// The order to compact for: in defrag_mode a request that is not movable gets a pageblock of its
/// own.
pub(crate) fn compact_order(request: &Request, flags: AllocFlags, profile: &Profile) -> Order {
    let own_block = profile.slow_path.makes_pageblocks
        && flags.any(AllocFlags::NOFRAGMENT)
        && request.gfp.migratetype() != MigrateType::Movable;
    if own_block { request.order.max(PAGEBLOCK_ORDER) } else { request.order }
}

/// The outcome of a direct compaction.
pub(crate) struct Compacted {
    pub(crate) result: CompactResult,
    /// The block captured for the request.
    pub(crate) captured: Option<Pfn>,
}

impl DirectCompact {
    pub(crate) fn new(m: &mut Memory, request: Request, flags: AllocFlags, priority: CompactPriority) -> DirectCompact {
        let order = compact_order(&request, flags, &m.shared.profile);
        m.shared.emit(Listen::COMPACTION, || Event::TryToCompactPages { order, priority: priority as u8 });
        let result = match m.shared.profile.compaction.deferred_counts_least {
            false => CompactResult::Skipped,
            true => CompactResult::Deferred,
        };
        DirectCompact {
            request,
            order,
            flags,
            priority,
            next_zone: 0,
            run: None,
            result,
            gave_way: false,
            met_held_locks: true,
        }
    }

    fn control(&self) -> CompactControl {
        let full = self.priority == CompactPriority::SyncFull;
        CompactControl {
            order: Some(self.order),
            migratetype: self.request.gfp.migratetype(),
            mode: match self.priority {
                CompactPriority::Async => MigrateMode::Async,
                _ => MigrateMode::SyncLight,
            },
            direct: true,
            whole_zone: full,
            ignore_skip_hint: full,
            ignore_block_suitable: full,
            proactive: false,
            alloc_flags: self.flags,
            highest: self.request.gfp.highest_zone(),
            may_enter_fs: self.request.gfp.has(Gfp::FS),
            request_order: Some(self.request.order),
            kswapd: false,
        }
    }

    /// Continues the walk of the run in progress; see [`CompactRun::walk_on`].
    pub(crate) fn walk_on(&mut self, m: &mut Memory, budget: u64, next: impl FnMut(Passed) -> Option<u64>) {
        if let Some(run) = &mut self.run {
            run.walk_on(m, budget, next);
        }
    }

    /// Advances the current zone's run by one step.
    pub(crate) fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Step<Compacted> {
        let Some(run) = &mut self.run else {
            let Some(zone) = m.next_zone(&self.request, &mut self.next_zone) else {
                let all_contended = self.result == CompactResult::Contended;
                self.gave_way = self.met_held_locks && (all_contended || !judges_each_zone(m));
                return Step::Done(Compacted { result: self.result, captured: None });
            };
            if self.priority != CompactPriority::SyncFull
                && judges_each_zone(m)
                && m.locked(zone, self.request.cpu).compaction_deferred(self.order)
            {
                self.add_result(m, CompactResult::Deferred);
                return Step::Working;
            }
            self.run = Some(CompactRun::new(self.control(), zone, self.request.cpu));
            return Step::Working;
        };
        let Step::Done(mut status) = run.step(m, owner, budget) else {
            return Step::Working;
        };
        let zone = run.zone();
        let captured = run.captured();
        let (met_held_lock, was_cut_off) = (run.met_held_lock(), run.gave_way());
        if captured.is_some() && m.shared.profile.compaction.captured_is_success {
            status = CompactResult::Success;
        }
        self.run = None;
        self.add_result(m, status);
        self.add_held_lock(m, met_held_lock);
        let by_zone = judges_each_zone(m);
        if m.page_is_made(zone, self.order, self.request.gfp.highest_zone(), self.flags, status) {
            if by_zone {
                m.locked(zone, self.request.cpu).compaction_defer_reset(self.order, false);
            }
            return Step::Done(Compacted { result: self.result, captured });
        }
        if by_zone
            && self.priority != CompactPriority::Async
            && matches!(status, CompactResult::Complete | CompactResult::PartialSkipped)
        {
            m.locked(zone, self.request.cpu).defer_compaction(self.order);
        }
        let rules = &m.shared.profile.compaction;
        let awaited = rules.gives_way_between_zones && self.priority == CompactPriority::Async && owner.is_awaited(m);
        if awaited || rules.cut_off_ends_all && was_cut_off {
            // Another task waits for the CPU; asynchronous compaction does not make it wait for the
            // other zones.
            self.gave_way = true;
            return Step::Done(Compacted { result: self.result, captured: None });
        }
        Step::Working
    }

    /// Whether it ended early because another task waited for the CPU; or because another CPU held
    /// a lock in all zones, or in 3.13 waited for one in the last.
    pub(crate) fn gave_way(&self) -> bool {
        self.gave_way
    }

    /// Notes whether one zone's run met a held lock: all must have; in 3.13, the last one.
    fn add_held_lock(&mut self, m: &Memory, met_held_lock: bool) {
        self.met_held_locks = met_held_lock && (self.met_held_locks || !judges_each_zone(m));
    }

    /// Folds one zone's result into the overall one: the kernel's `max()` over zones.
    fn add_result(&mut self, m: &Memory, status: CompactResult) {
        let least = m.shared.profile.compaction.deferred_counts_least;
        self.result = match (self.result, status) {
            (all, CompactResult::Deferred) if least => all,
            (CompactResult::Deferred, status) if least => status,
            (all, status) => all.max(status),
        };
    }
}

/// Whether each zone counts by itself: 3.13 keeps the deferral of the preferred zone alone, and
/// what the last zone's run met.
fn judges_each_zone(m: &Memory) -> bool {
    !m.shared.profile.compaction.defers_preferred_zone
}

impl Memory {
    /// Whether a run with this result made the page. Up to 4.8 the low watermark decides, whatever
    /// the run reports.
    pub(crate) fn page_is_made(
        &self,
        zone: ZoneId,
        order: Order,
        highest: ZoneType,
        flags: AllocFlags,
        status: CompactResult,
    ) -> bool {
        if !self.shared.profile.compaction.ends_by_low_mark {
            return status == CompactResult::Success;
        }
        let z = &self.zones[zone];
        let (flags, highest) = self.shared.profile.compaction.rights(flags, highest);
        z.watermark_ok(order, z.wmark(Wmark::Low), highest, flags, z.free_pages, &self.shared.profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::owner::MigrateOutcome;
    use crate::rules::Profile;
    use crate::testing::{AllMove, half_free_with, linux, machine_with};
    use crate::types::{CpuId, NodeId};

    fn of_zones(profile: &str, zones: [CompactResult; 2]) -> CompactResult {
        let mut m = machine_with(16, linux(profile));
        let request = Request::new(CpuId::new(0), NodeId::default(), Gfp::KERNEL, Order::new(9));
        let plain = AllocFlags::mark(Wmark::Min);
        let mut compaction = DirectCompact::new(&mut m, request, plain, CompactPriority::Async);
        zones.into_iter().for_each(|result| compaction.add_result(&m, result));
        compaction.result
    }

    #[test]
    fn up_to_4_6_compaction_was_put_off_only_where_that_is_so_of_every_zone() {
        use CompactResult::{Deferred, Skipped};
        let results = |profile| [[Deferred, Deferred], [Deferred, Skipped]].map(|zones| of_zones(profile, zones));
        assert_eq!(results("4.6"), [Deferred, Skipped]);
        assert_eq!(results("5.6"), [Deferred, Deferred]);
    }

    #[test]
    fn up_to_4_8_the_low_mark_says_whether_a_run_has_made_the_page() {
        let made = |profile: &str, status, low| {
            let mut m = machine_with(16, linux(profile));
            m.zones[ZoneId::new(0)].watermarks.low = low;
            m.page_is_made(ZoneId::new(0), Order::new(9), ZoneType::Normal, AllocFlags::mark(Wmark::Min), status)
        };
        assert!(made("4.6", CompactResult::Complete, 100) && !made("5.6", CompactResult::Complete, 100));
        assert!(!made("4.6", CompactResult::Success, 16 * 512) && made("5.6", CompactResult::Success, 16 * 512));
    }

    /// Whether an asynchronous compaction gave way, after runs over two zones with these results,
    /// of which these met a held lock.
    fn gave_way(profile: &str, runs: [(CompactResult, bool); 2]) -> bool {
        let mut m = machine_with(16, linux(profile));
        let request = Request::new(CpuId::new(0), NodeId::default(), Gfp::KERNEL, Order::new(9));
        let plain = AllocFlags::mark(Wmark::Min);
        let mut compaction = DirectCompact::new(&mut m, request, plain, CompactPriority::Async);
        for (result, met_held_lock) in runs {
            compaction.add_result(&m, result);
            compaction.add_held_lock(&m, met_held_lock);
        }
        // There are no more zones.
        compaction.next_zone = 1;
        assert!(matches!(compaction.step(&mut m, &mut AllMove, 1), Step::Done(_)));
        compaction.gave_way()
    }

    #[test]
    fn in_3_13_the_last_zones_run_says_whether_others_waited_for_a_lock_and_later_all_do() {
        let (contended, skipped) = ((CompactResult::Contended, true), (CompactResult::Skipped, false));
        let zones = [[contended, contended], [contended, skipped], [skipped, contended]];
        assert_eq!(zones.map(|runs| gave_way("3.13", runs)), [true, false, true]);
        assert_eq!(zones.map(|runs| gave_way("4.6", runs)), [true, false, false]);
    }

    /// Another task waits for the CPU.
    struct Awaited;

    impl Owner for Awaited {
        fn is_awaited(&self, _: &Memory) -> bool {
            true
        }
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Moved
        }
    }

    fn full(blocks: u32, profile: Profile) -> Memory {
        let mut m = machine_with(blocks, profile);
        let request = Request::new(CpuId::new(0), NodeId::default(), Gfp::KERNEL, Order::ZERO);
        while m.alloc(request).is_ok() {}
        m
    }

    #[test]
    fn up_to_4_7_only_a_run_that_was_cut_off_ends_a_requests_compaction() {
        let ends = |profile: &str, m: fn(u32, Profile) -> Memory| {
            let mut m = m(16, linux(profile));
            // As after any run: the scanners are apart.
            let rules = m.shared.profile.compaction;
            m.zones[ZoneId::new(0)].reset_cached_positions(&rules);
            let request = Request::new(CpuId::new(0), NodeId::default(), Gfp::HIGHUSER_MOVABLE, Order::new(9));
            let plain = AllocFlags::mark(Wmark::Min);
            let mut compaction = DirectCompact::new(&mut m, request, plain, CompactPriority::Async);
            while matches!(compaction.step(&mut m, &mut Awaited, 64), Step::Working) {}
            compaction.gave_way()
        };
        // No memory is free, so no run begins; half of it is, so one does.
        for (profile, expected) in [("4.6", [false, true]), ("4.20-rc3", [true, true])] {
            assert_eq!([ends(profile, full), ends(profile, half_free_with)], expected, "{profile}");
        }
    }
}
