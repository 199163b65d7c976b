//! One compaction run over one zone, a step at a time.
//!
//! A step visits a bounded number of pageblocks, or isolates and migrates one batch of pages.
//! Between two steps other CPUs run and may allocate pages that this run has freed. Source:
//! kernel-behaviour §5.3, §5.11.

use super::migrate_scanner::Isolate;
use super::state::CompactRun;
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::owner::{Lock, Owner};
use crate::rules::{CompactionRules, HeldLock, Positions, Remembers};
use crate::state::Memory;
use crate::step::Step;
use crate::types::{Order, Pfn, ZoneId};
use crate::vmstat::VmEvent;

impl CompactRun {
    /// The zone that this run compacts.
    pub fn zone(&self) -> ZoneId {
        self.zone
    }

    /// Whether the run ended because another CPU held a lock that it needed.
    pub(crate) fn met_held_lock(&self) -> bool {
        self.met_held_lock
    }

    /// Whether the run ended because another task waited for the CPU.
    pub(crate) fn gave_way(&self) -> bool {
        self.gave_way
    }

    /// Takes the lock; false if it is held, and that ends the run. By the oldest rule, false if it
    /// is wanted: the run lets go of it, this once.
    #[inline(always)]
    pub(super) fn take_lock(&mut self, rules: &CompactionRules, lock: Lock) -> bool {
        let wanted = &mut self.contended[lock as usize];
        self.met_held_lock |= *wanted;
        match rules.async_at_held_lock {
            HeldLock::EndsWhereWanted => !core::mem::take(wanted),
            HeldLock::EndsRun => !*wanted,
            HeldLock::EndsPageblock => true,
        }
    }

    /// Whether the run ends before it does anything else, because it has met a held lock.
    #[inline(always)]
    pub(super) fn is_cut_off(&self, rules: &CompactionRules) -> bool {
        self.met_held_lock && rules.ends_at_held_lock()
    }

    /// Whether the scanners have been placed: not before the first step, and never if that step
    /// found the zone unsuitable.
    pub(crate) fn has_begun(&self) -> bool {
        self.started
    }

    /// Frames scanned so far by the migration scanner and by the free scanner.
    pub fn scanned(&self) -> (u64, u64) {
        (self.migrate.scanned, self.free.scanned)
    }

    /// Advances by one step that visits at most `budget` pageblocks, and at least one.
    ///
    /// A direct run captures a block of its order that merges while the run itself frees pages;
    /// blocks that others free between its steps go to the free lists.
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Step<CompactResult> {
        loop {
            let captures = self.cc.direct && m.shared.profile.compaction.captures;
            if let (true, Some(order)) = (captures, self.cc.request_order.or(self.cc.order)) {
                // It wants one block only. Where the capture is noticed late, nothing more is
                // captured meanwhile.
                if self.captured.is_none() {
                    m.zones[self.zone].compaction.capture.arm(order, self.cc.migratetype);
                }
            }
            let step = self.advance(m, owner, budget);
            if let Some(page) = m.zones[self.zone].compaction.capture.disarm() {
                self.captured = Some(page);
            }
            // A captured block is on no list until the run ends, so no other CPU runs before that.
            if step != Step::Working || !self.has_captured(m) {
                return step;
            }
        }
    }

    fn advance<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Step<CompactResult> {
        if !self.started {
            let (flags, highest, daemon) = (self.cc.alloc_flags, self.cc.highest, !self.cc.direct);
            let result = m.compaction_suitable(self.zone, self.cc.order, flags, highest, daemon);
            if matches!(result, CompactResult::Success | CompactResult::Skipped) {
                return Step::Done(result);
            }
            self.begin(m);
            self.started = true;
        }
        if self.cc.mode == MigrateMode::Async {
            let zone = self.zone;
            self.contended = [Lock::Zone, Lock::Lru].map(|lock| match m.shared.profile.compaction.async_at_held_lock {
                HeldLock::EndsWhereWanted => owner.is_wanted(m, zone, lock),
                HeldLock::EndsRun | HeldLock::EndsPageblock => owner.is_locked(m, zone, lock),
            });
        }
        if !self.migrate.walking && !core::mem::take(&mut self.migrate.again_at_once) {
            match self.finished(m) {
                CompactResult::Continue => {}
                result => return self.end(m, result),
            }
            self.migrate.iteration_start = self.migrate.pfn;
            self.migrate.finish_pageblock = m.shared.profile.compaction.takes_rest_of_pageblock
                && self.migrate.last_migrated_pfn.is_some_and(|p| p.pageblock() == self.migrate.pfn.pageblock());
        }
        let done = self.iteration(m, owner, budget);
        match done {
            None if self.has_captured(m) && !m.shared.profile.compaction.capture_before_drain => {
                self.end(m, CompactResult::Success)
            }
            None => Step::Working,
            Some(result) => self.end(m, result),
        }
    }

    /// Places the scanners: at the cached positions, or at the zone's ends.
    fn begin(&mut self, m: &mut Memory) {
        m.shared.has_compacted = true;
        let rules = m.shared.profile.compaction;
        let restarts = self.cc.order.is_some_and(|o| m.locked(self.zone, self.cpu).compaction_restarting(o));
        let clears = restarts && !self.cc.kswapd;
        if clears && rules.clears_hints_first {
            self.clear_hints(m);
        }
        let sync = self.cc.mode != MigrateMode::Async;
        let z = &mut m.zones[self.zone];
        let (start, end, last) = (z.start, z.end, z.last_pageblock());
        if self.whole_zone {
            (self.migrate.pfn, self.free.pfn) = (start, last);
        } else {
            let c = &mut z.compaction;
            let slot = match rules.positions {
                Positions::OneUntilIsolated => 0,
                Positions::EachMode => usize::from(sync),
            };
            let highest = if rules.free_begins_at_end { end } else { last };
            if c.cached_free_pfn < start || c.cached_free_pfn >= end {
                c.cached_free_pfn = highest;
            }
            if c.cached_migrate_pfn[slot] < start || c.cached_migrate_pfn[slot] >= end {
                c.cached_migrate_pfn = [start, start];
            }
            (self.migrate.pfn, self.free.pfn) = (c.cached_migrate_pfn[slot], c.cached_free_pfn);
            self.whole_zone = self.migrate.pfn <= c.init_migrate_pfn;
        }
        if clears && !rules.clears_hints_first {
            self.clear_hints(m);
        }
        let z = &m.zones[self.zone];
        self.update_cached = rules.sync_follows_async
            && !sync
            && z.compaction.cached_migrate_pfn[0] == z.compaction.cached_migrate_pfn[1];
        let (migrate_pfn, free_pfn, mode) = (self.migrate.pfn, self.free.pfn, self.cc.mode);
        m.shared.emit(Listen::COMPACTION, || Event::CompactionBegin {
            zone_start: start,
            migrate_pfn,
            free_pfn,
            zone_end: end,
            mode,
        });
        m.lru_add_drain(self.cpu);
    }

    /// Clears skip hints for the run that follows the longest deferral.
    fn clear_hints(&self, m: &mut Memory) {
        match m.shared.profile.compaction.clears_all_hints {
            true => m.clear_all_hints(self.zone),
            false => m.reset_isolation_suitable(self.zone),
        }
    }

    /// Isolates and migrates one batch; `Some` ends the run.
    fn iteration<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Option<CompactResult> {
        match self.isolate_migratepages(m, owner, budget) {
            Isolate::Paused => return None,
            Isolate::Abort => return Some(CompactResult::Contended),
            Isolate::None => {
                if self.update_cached {
                    let cached = &mut m.zones[self.zone].compaction.cached_migrate_pfn;
                    cached[1] = cached[0];
                }
            }
            Isolate::Success => {
                self.update_cached = false;
                match m.shared.profile.compaction.remembers {
                    // Noted as the pages were isolated.
                    Remembers::FirstStart | Remembers::FirstPage => {}
                    Remembers::Iteration => self.migrate.last_migrated_pfn = Some(self.migrate.iteration_start),
                    Remembers::LastPageblock => {
                        let start = self.migrate.pfn.minus(1).pageblock_start().max(m.zones[self.zone].start);
                        self.migrate.last_migrated_pfn = Some(start);
                    }
                }
                if let Some(result) = self.migrate_batch(m, owner) {
                    return Some(result);
                }
                if self.migrate.again_at_once {
                    return None;
                }
                if m.shared.profile.compaction.capture_before_drain && self.has_captured(m) {
                    return Some(CompactResult::Success);
                }
            }
        }
        self.drain_if_block_left(m);
        None
    }

    fn has_captured(&self, m: &Memory) -> bool {
        self.captured.is_some() || m.zones[self.zone].compaction.capture.has_page()
    }

    /// Once the scanner has left the order-aligned block it migrated from, drains the CPU's LRU
    /// batches and page lists, so that the pages freed there can merge.
    fn drain_if_block_left(&mut self, m: &mut Memory) {
        let within = !m.shared.profile.compaction.drains_after_run;
        let order = self.cc.order.filter(|o| within && *o > Order::ZERO);
        let (Some(order), Some(last)) = (order, self.migrate.last_migrated_pfn) else {
            return;
        };
        if last < self.migrate.pfn.block_start(order) {
            m.lru_add_drain(self.cpu);
            m.locked(self.zone, self.cpu).pcp_drain();
            self.migrate.last_migrated_pfn = None;
        }
    }

    /// Ends the run: puts isolated pages back, frees unused targets and adds up the counters.
    fn end(&mut self, m: &mut Memory, status: CompactResult) -> Step<CompactResult> {
        self.putback_migratepages(m);
        self.release_freepages(m);
        m.shared.vmstat.add(VmEvent::CompactMigrateScanned, self.migrate.scanned);
        m.shared.vmstat.add(VmEvent::CompactFreeScanned, self.free.scanned);
        let z = &m.zones[self.zone];
        let (zone_start, zone_end) = (z.start, z.end);
        let (migrate_pfn, free_pfn, mode) = (self.migrate.pfn, self.free.pfn, self.cc.mode);
        m.shared.emit(Listen::COMPACTION, || Event::CompactionEnd {
            zone_start,
            migrate_pfn,
            free_pfn,
            zone_end,
            mode,
            status,
        });
        Step::Done(status)
    }

    /// Whether it scans pageblocks with the skip hint, too.
    #[cfg(test)]
    pub(crate) fn ignores_hints(&self) -> bool {
        self.cc.ignore_skip_hint
    }

    /// The block that a direct run captured for its request.
    pub fn captured(&self) -> Option<Pfn> {
        self.captured
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::CompactControl;
    use crate::gfp::Gfp;
    use crate::owner::MigrateOutcome;
    use crate::request::Request;
    use crate::testing::{Holds, half_free_with, linux, linux_with, machine_with, whole_zone};
    use crate::types::{CpuId, MigrateType, PAGEBLOCK_PAGES};
    use alloc::vec::Vec;

    /// How a run over a zone of half-free pageblocks ends, and how many frames it has scanned.
    fn end(profile: &str, mode: MigrateMode, held: Option<Lock>) -> (CompactResult, (u64, u64)) {
        let mut m = half_free_with(16, linux(profile));
        let control = CompactControl { ignore_skip_hint: true, ignore_block_suitable: true, ..whole_zone(mode) };
        let mut run = CompactRun::new(control, ZoneId::new(0), CpuId::new(0));
        loop {
            if let Step::Done(result) = run.step(&mut m, &mut Holds(held), 64) {
                m.check().expect("consistent");
                return (result, run.scanned());
            }
        }
    }

    #[test]
    fn kernels_that_differ_in_runs_alone_are_one_until_a_run_begins() {
        let mended = ["compaction-early-reset", "compaction-meets"];
        let (plain, mended) = (linux("3.13"), linux_with("3.13", &mended));
        assert!(plain != mended && plain.is_same_until_compaction(&mended));
        assert!(!linux("4.20-rc3").is_same_until_compaction(&linux_with("4.20-rc3", &["boost-watermarks"])));
        assert!(!linux("6.1").is_same_until_compaction(&linux("7.2")));
        let mut m = half_free_with(16, plain);
        m.switch_rules(&mended);
        assert_eq!((m.profile(), m.has_compacted()), (&mended, false));
        let mut run = CompactRun::new(whole_zone(MigrateMode::SyncLight), ZoneId::new(0), CpuId::new(0));
        run.step(&mut m, &mut Holds(None), 1);
        assert!(m.has_compacted());
    }

    #[test]
    fn up_to_5_0_an_asynchronous_run_ends_at_a_lock_that_another_cpu_holds() {
        let (async_, sync) = (MigrateMode::Async, MigrateMode::SyncLight);
        for profile in ["4.4-kcompactd", "4.6", "4.20-rc3", "5.0"] {
            let (result, (migrate, free)) = end(profile, async_, Some(Lock::Lru));
            assert_eq!((result, free), (CompactResult::Contended, 0), "{profile}");
            assert!(migrate <= 2, "{profile}: the first page to isolate is where the lock is needed");
            let (result, (migrate, free)) = end(profile, async_, Some(Lock::Zone));
            assert_eq!(result, CompactResult::Contended, "{profile}");
            assert!(migrate <= 512 && free <= 512, "{profile}: {migrate} {free}");
            for (mode, held) in [(async_, None), (sync, Some(Lock::Lru)), (sync, Some(Lock::Zone))] {
                assert_eq!(end(profile, mode, held).0, CompactResult::Complete, "{profile}");
            }
        }
    }

    /// All pages can move but the last of each pageblock; a lock is held by another CPU.
    struct LastStays(Option<Lock>);

    impl Owner for LastStays {
        fn is_locked(&self, _: &Memory, _: ZoneId, lock: Lock) -> bool {
            self.0 == Some(lock)
        }
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, from: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            if from.plus(1).is_pageblock_aligned() { MigrateOutcome::Failed } else { MigrateOutcome::Moved }
        }
    }

    /// Pageblocks that a request's run for a huge page went through, its end, and the pages it took
    /// at once.
    fn of_huge_page(profile: &str, mode: MigrateMode, held: Option<Lock>) -> (u32, CompactResult, Vec<u64>) {
        let mut m = half_free_with(16, linux(profile));
        m.trace().listen(Listen::COMPACTION.with(Listen::COMPACTION_DETAIL));
        let order = Some(Order::new(9));
        let control = CompactControl { order, ignore_block_suitable: true, ..whole_zone(mode) };
        let mut run = CompactRun::new(control, ZoneId::new(0), CpuId::new(0));
        let result = loop {
            if let Step::Done(result) = run.step(&mut m, &mut LastStays(held), 64) {
                break result;
            }
        };
        m.check().expect("consistent");
        let took = |event| match event {
            Event::IsolateMigratepages { nr_taken, .. } => Some(nr_taken),
            _ => None,
        };
        let took = m.trace().take().into_iter().filter_map(took).collect();
        ((run.migrate.pfn.get() - m.zones[ZoneId::new(0)].start.get()) / PAGEBLOCK_PAGES, result, took)
    }

    #[test]
    fn since_5_1_a_held_lock_ends_an_asynchronous_run_with_its_pageblock_which_it_takes_at_once() {
        for profile in ["5.6", "6.1", "6.12", "6.15", "7.2"] {
            let held = of_huge_page(profile, MigrateMode::Async, Some(Lock::Lru));
            assert_eq!(held, (1, CompactResult::Contended, [256].into()), "{profile}");
            for (mode, held) in [(MigrateMode::Async, None), (MigrateMode::SyncLight, Some(Lock::Lru))] {
                let (blocks, result, took) = of_huge_page(profile, mode, held);
                assert!(blocks > 1 && result != CompactResult::Contended, "{profile} {mode:?}: {blocks} {result:?}");
                assert_eq!(took[..2], [32, 224], "{profile} {mode:?}");
            }
        }
    }

    /// Where in its pageblock a request's run for a block of order 3 ended, which had every page to
    /// move.
    fn ends_at(profile: &str, migratetype: MigrateType, mode: MigrateMode) -> u32 {
        let mut m = half_free_with(16, linux(profile));
        let control =
            CompactControl { order: Some(Order::new(3)), migratetype, ignore_block_suitable: true, ..whole_zone(mode) };
        let mut run = CompactRun::new(control, ZoneId::new(0), CpuId::new(0));
        loop {
            if let Step::Done(result) = run.step(&mut m, &mut Holds(None), 64) {
                assert_eq!(result, CompactResult::Success, "{profile}");
                return run.migrate.pfn.get() % PAGEBLOCK_PAGES;
            }
        }
    }

    #[test]
    fn in_4_20_a_run_that_would_take_another_types_block_goes_on_to_the_end_of_the_pageblock() {
        let light = MigrateMode::SyncLight;
        for (profile, ends) in [("4.6", false), ("4.20-rc3", true), ("5.0", true), ("5.6", true)] {
            assert_eq!(ends_at(profile, MigrateType::Unmovable, light) == 0, ends, "{profile}");
        }
        for (profile, ends) in [("4.6", false), ("4.20-rc3", false), ("5.6", true)] {
            assert_eq!(ends_at(profile, MigrateType::Movable, light) == 0, ends, "{profile}");
        }
    }

    /// A run over a zone whose first four pageblocks have skip hints, after its first batch.
    fn after_first_batch(profile: &str) -> CompactRun {
        let mut m = half_free_with(16, linux(profile));
        let first = m.zones[ZoneId::new(0)].start.pageblock();
        (first..first + 4).for_each(|block| m.blocks.set_skip(block, true));
        let control = CompactControl { ignore_block_suitable: true, ..whole_zone(MigrateMode::SyncLight) };
        let mut run = CompactRun::new(control, ZoneId::new(0), CpuId::new(0));
        while run.migrate.last_migrated_pfn.is_none() {
            assert_eq!(run.step(&mut m, &mut Holds(None), 64), Step::Working);
        }
        run
    }

    #[test]
    fn the_place_of_migrated_pages_is_a_page_a_pageblock_or_where_the_scanner_was() {
        let start = half_free_with(16, linux("5.6")).zones[ZoneId::new(0)].start;
        let fifth = start.plus(4 * PAGEBLOCK_PAGES);
        for (profile, place) in [("4.6", fifth), ("4.20-rc3", fifth.plus(1)), ("5.6", start), ("6.12", fifth)] {
            assert_eq!(after_first_batch(profile).migrate.last_migrated_pfn, Some(place), "{profile}");
        }
    }

    #[test]
    fn from_4_15_to_5_0_runs_that_ignore_hints_set_them() {
        let hints = |profile| {
            let mut m = machine_with(16, linux(profile));
            while m.alloc(Request::new(CpuId::new(0), crate::NodeId::new(0), Gfp::KERNEL, Order::ZERO)).is_ok() {}
            let control = CompactControl { ignore_skip_hint: true, ..whole_zone(MigrateMode::Sync) };
            let mut run = CompactRun::new(control, ZoneId::new(0), CpuId::new(0));
            while run.step(&mut m, &mut Holds(None), 64) == Step::Working {}
            let zone = &m.zones[ZoneId::new(0)];
            m.blocks.count_skip(zone.start.pageblock(), zone.end.pageblock())
        };
        assert_eq!([hints("4.6"), hints("5.0")].map(|hinted| hinted > 0), [false, true]);
    }

    #[test]
    fn a_huge_pages_fault_gives_up_where_held_locks_ended_all_runs() {
        let stalls = |held| {
            let mut m = half_free_with(16, linux("4.6"));
            // As after any run: the scanners are apart.
            let rules = m.shared.profile.compaction;
            m.zones[ZoneId::new(0)].reset_cached_positions(&rules);
            let gfp = Gfp::TRANSHUGE_LIGHT | Gfp::NORETRY | Gfp::DIRECT_RECLAIM;
            let request = Request::new(CpuId::new(0), crate::NodeId::new(0), gfp, Order::new(9));
            let mut slow = crate::AllocSlow::new(&m, request);
            loop {
                if let Step::Done(got) = slow.step(&mut m, &mut Holds(held), 64) {
                    let reclaims = [VmEvent::AllocstallNormal, VmEvent::AllocstallMovable];
                    let reclaims: u64 = reclaims.into_iter().map(|stall| m.vmstat().get(stall)).sum();
                    return (got.is_ok(), m.vmstat().get(VmEvent::CompactStall), reclaims);
                }
            }
        };
        // Otherwise it would reclaim, and compact once more.
        assert_eq!([Some(Lock::Lru), Some(Lock::Zone), None].map(stalls), [(false, 1, 0), (false, 1, 0), (true, 1, 0)]);
    }
}
