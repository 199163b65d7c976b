//! The scanners of the oldest kernels, which look at every page and count it.
//!
//! A call of the migration scanner goes through the rest of one pageblock. The free scanner takes
//! all that is free in a pageblock, and begins again at the highest one it took from: the pages
//! migrated from may have been freed there. Two of the four mistakes that 3.14 corrects are made
//! here; each is a rule. Source: kernel-behaviour §5.12, §5.13.4.

use super::migrate_scanner::{Isolate, is_kept_by_batch};
use super::state::CompactRun;
use crate::event::{Event, Listen, MigrateMode};
use crate::owner::{Lock, Owner};
use crate::state::{FrameKind, Memory, Tag};
use crate::types::{CLUSTER_MAX, MigrateType, Order, PAGEBLOCK_PAGES, Pfn};
use crate::vmstat::VmEvent;

/// How a call of the migration scanner left its pageblock.
struct Scan {
    /// The first page frame it did not look at.
    at: Pfn,
    scanned: u64,
    isolated: u32,
    /// It passed the rest over, because asynchronous runs take nothing from such pageblocks.
    unsuitable: bool,
}

impl CompactRun {
    /// Isolates from the rest of the pageblock that the migration scanner is in. Where the free
    /// scanner is in it, or frames are missing, the pageblock is left alone.
    pub(super) fn isolate_from_pageblock<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Isolate {
        let from = self.migrate.pfn.max(m.zones[self.zone].start);
        let end = from.pageblock_end();
        m.shared.work.any = true;
        m.shared.work.blocks_visited += 1;
        if end > self.free.pfn || from >= m.zones[self.zone].whole_end {
            self.migrate.pfn = end;
            return Isolate::None;
        }
        self.offer_cpu(m, owner);
        let Scan { at, scanned, isolated, unsuitable } = self.scan_pages(m, owner, from, end);
        let rules = &m.shared.profile.compaction;
        let hints = isolated == 0 && at == end && !self.cc.ignore_skip_hint;
        if hints && (!unsuitable || rules.hints_unsuitable) {
            m.blocks.set_skip(from.pageblock(), true);
            if !self.migrate.settled {
                m.zones[self.zone].advance_cached_migrate(self.cc.mode, from);
            }
        }
        m.shared.emit(Listen::COMPACTION_DETAIL, || Event::IsolateMigratepages {
            start_pfn: from,
            end_pfn: at,
            nr_scanned: scanned,
            nr_taken: u64::from(isolated),
        });
        m.shared.vmstat.add(VmEvent::CompactIsolated, u64::from(isolated));
        self.migrate.scanned += scanned;
        m.shared.work.migrate_scanned += scanned;
        if self.met_held_lock {
            return Isolate::Abort;
        }
        self.migrate.pfn = at;
        if isolated > 0 { Isolate::Success } else { Isolate::None }
    }

    fn scan_pages<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, from: Pfn, end: Pfn) -> Scan {
        let block = from.pageblock();
        if !self.cc.ignore_skip_hint && m.blocks.skip(block) {
            return Scan { at: end, scanned: 1, isolated: 0, unsuitable: false };
        }
        let wrong_type = self.cc.mode == MigrateMode::Async && m.blocks.migratetype(block) != MigrateType::Movable;
        let rules = m.shared.profile.compaction;
        let leaves_unwritten = self.leaves_unwritten(&rules);
        let whole = m.frames.block_tag(block) != Tag::SPLIT;
        let mut scan = Scan { at: from, scanned: 0, isolated: 0, unsuitable: false };
        while scan.at < end {
            let at = scan.at;
            let tag = if whole { m.frames.tag(at) } else { m.frames.split_tag(at) };
            let pages = tag.order().pages().min(end.get() - at.get());
            if tag.is_buddy() {
                // Only the first page of a free block looks free.
                if wrong_type && pages > 1 {
                    scan.scanned += 2;
                    (self.migrate.settled, scan.unsuitable, scan.at) = (true, true, end);
                    break;
                }
                scan.scanned += u64::from(pages);
                scan.at = at.plus(pages);
                continue;
            }
            scan.scanned += 1;
            if wrong_type {
                // The pageblock counts as one that something was taken from.
                (self.migrate.settled, scan.unsuitable, scan.at) = (true, true, end);
                break;
            }
            let takes = match tag.kind() {
                FrameKind::Lru if tag.order() > Order::ZERO => {
                    scan.at = at.plus(pages);
                    continue;
                }
                FrameKind::Lru => {
                    !is_kept_by_batch(m, owner, at)
                        && owner.may_isolate(at)
                        && !(leaves_unwritten && owner.moves_after_writing(at, m.frames.owner(at, Order::ZERO)))
                }
                FrameKind::MovableOps => true,
                _ => {
                    // Each page of a block in use by the kernel is looked at by itself.
                    let passed = if tag.is_allocated() { pages } else { 1 };
                    scan.scanned += u64::from(passed - 1);
                    scan.at = at.plus(passed);
                    continue;
                }
            };
            scan.at = at.plus(1);
            if takes && tag.kind() == FrameKind::Lru && !self.take_lock(&rules, Lock::Lru) {
                scan.at = at;
                break;
            }
            if takes {
                self.migrate.settled = true;
                self.isolate_page(m, at, tag);
                scan.isolated += 1;
                if self.migrate.nr_pages == CLUSTER_MAX {
                    break;
                }
            }
        }
        scan
    }

    /// Isolates all free blocks of pageblock after pageblock, downwards, until there are as many
    /// pages as will be migrated or the migration scanner is reached.
    pub(super) fn isolate_free_of_pageblocks(&mut self, m: &mut Memory) {
        let sees_meeting = m.shared.profile.compaction.sees_meeting;
        let start = m.zones[self.zone].start;
        let lowest = match sees_meeting {
            false => self.migrate.pfn.plus(PAGEBLOCK_PAGES),
            true => self.migrate.pfn.pageblock_end(),
        };
        let mut highest = lowest.min(self.free.pfn);
        let mut at = self.free.pfn;
        while (at > lowest || sees_meeting && at == lowest) && self.free.wanted > self.free.stock.pages {
            m.shared.work.any = true;
            m.shared.work.blocks_visited += 1;
            if self.is_target(m, at) && self.isolate_free_of_pageblock(m, at) > 0 {
                self.free.settled = true;
                highest = highest.max(at);
            }
            at = at.minus(PAGEBLOCK_PAGES);
        }
        self.free.pfn = if sees_meeting && at < lowest { at.max(start) } else { highest };
    }

    /// Whether the pageblock at `at` is one to migrate to: a movable one, or one that begins with a
    /// free block of its size or more and is not in reserve.
    fn is_target(&self, m: &Memory, at: Pfn) -> bool {
        let (z, block) = (&m.zones[self.zone], at.pageblock());
        if at >= z.end || at >= z.whole_end {
            return false;
        }
        let suits = match m.blocks.migratetype(block) {
            MigrateType::Movable => true,
            MigrateType::HighAtomic => false,
            MigrateType::Unmovable | MigrateType::Reclaimable => m.blocks.is_free(block),
        };
        suits && (self.cc.ignore_skip_hint || !m.blocks.skip(block))
    }

    fn isolate_free_of_pageblock(&mut self, m: &mut Memory, at: Pfn) -> u32 {
        let end = at.pageblock_end().min(m.zones[self.zone].end);
        let (reached, isolated) = self.isolate_freepages_block(m, at, end, 1);
        if reached == end && isolated == 0 && !self.cc.ignore_skip_hint {
            m.blocks.set_skip(at.pageblock(), true);
            if !self.free.settled {
                let cached = &mut m.zones[self.zone].compaction.cached_free_pfn;
                *cached = (*cached).min(at);
            }
        }
        isolated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::{MachineSpec, ZoneSpec};
    use crate::compact::CompactControl;
    use crate::event::CompactResult;
    use crate::gfp::Gfp;
    use crate::owner::MigrateOutcome;
    use crate::request::Request;
    use crate::rules::Profile;
    use crate::state::{PageFlags, Watermarks};
    use crate::step::Step;
    use crate::testing::{linux, linux_with, take, whole_zone};
    use crate::types::{CpuId, NodeId, ZoneId, ZoneType};
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use alloc::vec::Vec;

    const ZONE: ZoneId = ZoneId::new(0);
    const CPU: CpuId = CpuId::new(0);
    const HUGE: Order = Order::new(9);
    const BLOCKS: u32 = 24;

    /// Pages that can be moved, but in asynchronous runs only if they need not be written first.
    struct Pages {
        written: bool,
        /// The lock that another CPU has waited for during each step.
        wanted: Option<Lock>,
    }

    fn clean() -> Pages {
        Pages { written: true, wanted: None }
    }

    impl Owner for Pages {
        fn is_wanted(&self, _: &Memory, _: ZoneId, lock: Lock) -> bool {
            self.wanted == Some(lock)
        }
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Moved
        }
        fn moves_after_writing(&mut self, _: Pfn, _: u32) -> bool {
            !self.written
        }
    }

    /// A zone of which only every other page of the first five pageblocks is free; its other pages
    /// are the kernel's or, in the pageblocks of `users`, on the LRU. All pageblocks are of type
    /// `t`.
    fn zone(profile: Profile, t: MigrateType, users: core::ops::Range<u32>) -> Memory {
        let pages = u64::from(BLOCKS * PAGEBLOCK_PAGES);
        let (start, end) = (8 * PAGEBLOCK_PAGES, (8 + BLOCKS) * PAGEBLOCK_PAGES);
        let spec = ZoneSpec { node: 0, kind: ZoneType::Normal, start, end, present: pages, managed: pages };
        let spec = MachineSpec { cpus: 1, zones: vec![spec], thp: false, lru: false };
        let mut m = Memory::new(&spec, profile).expect("a machine");
        m.zones[ZONE].watermarks = Watermarks::default();
        let request = Request::new(CPU, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, HUGE);
        while let Some(block) = take(&mut m, request) {
            m.blocks.set_migratetype(block.pageblock(), t);
            m.split_page(block, HUGE);
            let number = (block.get() - start) / PAGEBLOCK_PAGES;
            if users.contains(&number) {
                (0..512).for_each(|at| m.lru_add(CPU, block.plus(at), Order::ZERO, PageFlags::ANON));
            } else if number < 5 {
                (0..512).step_by(2).for_each(|at| m.free(CPU, block.plus(at), Order::ZERO));
            }
        }
        m.drain_cpu(CPU);
        m.fold_vmstat(CPU);
        let rules = m.shared.profile.compaction;
        m.zones[ZONE].reset_cached_positions(&rules);
        m
    }

    /// First frame of the zone's pageblock of this number.
    fn block(number: u32) -> Pfn {
        Pfn::new((8 + number) * PAGEBLOCK_PAGES)
    }

    /// A direct run: its result, its begin, and the pages that each scanner looked at.
    fn run(m: &mut Memory, owner: &mut Pages, mode: MigrateMode) -> (CompactResult, (Pfn, Pfn), (u64, u64)) {
        let control = CompactControl { order: Some(HUGE), whole_zone: false, ..whole_zone(mode) };
        m.trace().listen(Listen::COMPACTION);
        let mut run = CompactRun::new(control, ZONE, CPU);
        let result = loop {
            if let Step::Done(result) = run.step(m, owner, 64) {
                break result;
            }
        };
        let begins = |event: &Event| match event {
            Event::CompactionBegin { migrate_pfn, free_pfn, .. } => Some((*migrate_pfn, *free_pfn)),
            _ => None,
        };
        let begun = m.trace().take().iter().find_map(begins).expect("the zone is suitable");
        m.check().expect("a consistent machine");
        (result, begun, run.scanned())
    }

    fn hints(m: &Memory) -> usize {
        (0..BLOCKS).filter(|number| m.blocks.skip(block(*number).pageblock())).count()
    }

    /// Pages that are busy whenever they should move.
    struct Busy;

    impl Owner for Busy {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Busy
        }
    }

    #[test]
    fn a_page_that_stayed_busy_was_no_pgmigrate_fail() {
        let failed = |profile: Profile| {
            let mut m = zone(profile, MigrateType::Movable, 0..1);
            let mut run = CompactRun::new(whole_zone(MigrateMode::SyncLight), ZONE, CPU);
            while run.step(&mut m, &mut Busy, 64) == Step::Working {}
            (m.shared.work.migrate_failed, m.vmstat().get(VmEvent::PgmigrateFail))
        };
        let (tried, counted) = failed(linux("3.13"));
        assert!(tried > 0, "it has cost time");
        assert_eq!(counted, 0);
        let mut counts = linux("3.13");
        counts.compaction.counts_still_busy = true;
        assert_eq!(failed(counts), (tried, tried));
    }

    #[test]
    fn a_run_after_the_longest_deferral_began_where_the_last_had_ended() {
        let restarted = |switches: &[&str]| {
            let mut m = zone(linux_with("3.13", switches), MigrateType::Movable, 0..0);
            // The scanners have met.
            m.zones[ZONE].compaction.cached_migrate_pfn = [block(20); 2];
            m.zones[ZONE].compaction.cached_free_pfn = block(20);
            (0..7).for_each(|_| m.locked(ZONE, CPU).defer_compaction(HUGE));
            while m.locked(ZONE, CPU).compaction_deferred(HUGE) {}
            let (_, begun, (scanned, _)) = run(&mut m, &mut clean(), MigrateMode::SyncLight);
            (begun, scanned, m.zones[ZONE].compaction.cached_free_pfn)
        };
        let ends = (block(0), block(BLOCKS));
        assert_eq!(restarted(&[]), ((block(20), block(20)), 0, block(BLOCKS)), "cleared, but for the run after it");
        assert_eq!(restarted(&["compaction-early-reset"]), (ends, u64::from(BLOCKS * PAGEBLOCK_PAGES), block(BLOCKS)));
    }

    #[test]
    fn scanners_within_a_pageblock_of_each_other_ended_run_after_run_without_having_met() {
        let runs = |switches: &[&str]| {
            let mut m = zone(linux_with("3.13", switches), MigrateType::Movable, 10..11);
            // Half-way through the pageblock below the free scanner.
            let (migrate, free) = (block(10).plus(256), block(11));
            m.zones[ZONE].compaction.cached_migrate_pfn = [migrate; 2];
            m.zones[ZONE].compaction.cached_free_pfn = free;
            let results: Vec<_> = (0..10).map(|_| run(&mut m, &mut clean(), MigrateMode::SyncLight)).collect();
            (results, m.zones[ZONE].compaction.blockskip_flush)
        };
        let begun = (block(10).plus(256), block(11));
        let stuck = (CompactResult::Contended, begun, (32, 0));
        assert_eq!(runs(&[]), (vec![stuck; 10], false), "no target is looked for, and nothing resets the positions");
        let (results, resets) = runs(&["compaction-meets"]);
        assert_eq!(results[0], (CompactResult::Complete, begun, (32, 512)), "it looks into the next pageblock");
        assert!(resets, "kswapd will clear the hints");
    }

    #[test]
    fn an_asynchronous_run_hid_pageblocks_of_other_types_from_the_synchronous_one_after_it() {
        let looked_at = |switches: &[&str]| {
            let mut m = zone(linux_with("3.13", switches), MigrateType::Unmovable, 0..0);
            run(&mut m, &mut clean(), MigrateMode::Async);
            let hinted = hints(&m);
            let (_, begun, (scanned, _)) = run(&mut m, &mut clean(), MigrateMode::SyncLight);
            assert_eq!(begun.0, block(0), "either way, the position stays");
            (hinted, scanned)
        };
        assert_eq!(looked_at(&[]), (24, 24), "a page of each pageblock");
        assert_eq!(looked_at(&["compaction-spares-unsuitable"]), (0, 24 * 512));
    }

    #[test]
    fn a_synchronous_run_after_a_complete_asynchronous_one_had_nothing_left_to_scan() {
        let after = |switches: &[&str]| {
            let mut m = zone(linux_with("3.13", switches), MigrateType::Movable, 5..24);
            // All pages must first be written, so that an asynchronous run takes none.
            let (first, ..) = run(&mut m, &mut Pages { written: false, wanted: None }, MigrateMode::Async);
            assert_eq!(first, CompactResult::Complete);
            let (result, begun, (scanned, _)) = run(&mut m, &mut clean(), MigrateMode::SyncLight);
            (result, begun, scanned)
        };
        assert_eq!(after(&[]), (CompactResult::Complete, (block(23), block(24)), 1));
        let whole = after(&["compaction-resets-on-meeting"]);
        assert_eq!(whole, (CompactResult::Complete, (block(0), block(24)), 24), "the hints are still there");
    }

    #[test]
    fn each_page_passed_counts_and_only_pageblocks_without_a_find_move_the_position() {
        // Half free, then the kernel's, then a pageblock with pages to move.
        let mut m = zone(linux("3.13"), MigrateType::Movable, 6..24);
        let (_, begun, (scanned, _)) = run(&mut m, &mut clean(), MigrateMode::Async);
        assert_eq!(begun, (block(0), block(24)));
        assert_eq!(scanned, 6 * 512 + 32, "up to the first batch, for which there is no free page above");
        assert_eq!(m.zones[ZONE].compaction.cached_migrate_pfn[0], block(5));
        assert_eq!(hints(&m), 6 + 16, "the free scanner stops short of the pageblock above");
    }

    #[test]
    fn in_3_13_an_asynchronous_run_ends_with_its_batch_where_others_wait_for_its_lock() {
        let ended = |wanted, mode| {
            let mut m = zone(linux("3.13"), MigrateType::Movable, 0..2);
            for number in 10..15 {
                (0..512).step_by(2).for_each(|at| m.free(CPU, block(number).plus(at), Order::ZERO));
            }
            m.drain_cpu(CPU);
            let (result, _, (_, free)) = run(&mut m, &mut Pages { written: true, wanted }, mode);
            (result, m.vmstat().get(VmEvent::PgmigrateSuccess), free)
        };
        let (async_, sync) = (MigrateMode::Async, MigrateMode::SyncLight);
        let moves_all = ended(None, async_);
        assert!(moves_all.1 > 400, "{moves_all:?}");
        assert_eq!(ended(Some(Lock::Lru), async_), (CompactResult::Contended, 0, 0), "at the first page");
        // It lets go of the zone's lock at the first free page, and takes those of the pageblock
        // below. Nine pageblocks above have none.
        assert_eq!(ended(Some(Lock::Zone), async_), (CompactResult::Contended, 32, 9 * 512 + 1 + 512));
        for wanted in [Lock::Lru, Lock::Zone] {
            assert_eq!(ended(Some(wanted), sync), ended(None, sync), "a synchronous run takes the lock again");
        }
    }

    /// An owner whose pages are always busy, and the targets that they were offered.
    struct Offered(Vec<Pfn>);

    impl Owner for Offered {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, to: Pfn, _: u32) -> MigrateOutcome {
            self.0.push(to);
            MigrateOutcome::Busy
        }
    }

    #[test]
    fn a_target_to_which_no_page_could_be_moved_is_freed_and_another_one_offered() {
        let first_offered = |keeps| {
            let mut profile = linux("3.13");
            profile.compaction.keeps_failed_targets = keeps;
            let mut m = zone(profile, MigrateType::Movable, 0..2);
            for number in 10..15 {
                (0..512).step_by(2).for_each(|at| m.free(CPU, block(number).plus(at), Order::ZERO));
            }
            m.drain_cpu(CPU);
            let free = m.zones[ZONE].nr_free_pages_exact();
            let control = CompactControl { order: Some(HUGE), whole_zone: false, ..whole_zone(MigrateMode::SyncLight) };
            let (mut owner, mut run) = (Offered(Vec::new()), CompactRun::new(control, ZONE, CPU));
            while run.step(&mut m, &mut owner, 64) == Step::Working {}
            m.lru_add_drain(CPU);
            m.drain_cpu(CPU);
            m.check().expect("a consistent machine");
            assert_eq!(m.zones[ZONE].nr_free_pages_exact(), free, "none is lost");
            owner.0[..32].iter().collect::<BTreeSet<_>>().len()
        };
        assert_eq!([first_offered(true), first_offered(false)], [1, 32]);
    }

    /// The zone with its pageblock 7 free, and a run over it.
    fn with_free_block() -> (Memory, CompactRun) {
        let mut m = zone(linux("3.13"), MigrateType::Movable, 0..0);
        (0..512).for_each(|at| m.free(CPU, block(7).plus(at), Order::ZERO));
        m.drain_cpu(CPU);
        (m, CompactRun::new(whole_zone(MigrateMode::SyncLight), ZONE, CPU))
    }

    #[test]
    fn targets_are_movable_pageblocks_and_free_ones_that_are_not_in_reserve() {
        use MigrateType::{HighAtomic, Movable, Unmovable};
        let (mut m, mut run) = with_free_block();
        let asked = [(6, Movable, true), (6, Unmovable, false), (7, Unmovable, true), (7, HighAtomic, false)];
        for (number, t, suits) in asked {
            m.blocks.set_migratetype(block(number).pageblock(), t);
            assert_eq!(run.is_target(&m, block(number)), suits, "{number} {t:?}");
        }
        m.blocks.set_migratetype(block(7).pageblock(), Movable);
        m.blocks.set_skip(block(7).pageblock(), true);
        let heeds = !run.is_target(&m, block(7));
        run.cc.ignore_skip_hint = true;
        assert!(heeds && run.is_target(&m, block(7)), "a hint counts unless the run ignores hints");
    }

    #[test]
    fn each_page_of_a_free_or_used_block_counts_as_scanned() {
        let (mut m, mut run) = with_free_block();
        let mut scanned = |m: &mut Memory| run.scan_pages(m, &mut clean(), block(7), block(8)).scanned;
        assert_eq!(scanned(&mut m), 512, "one free block");
        let small = Request::new(CPU, NodeId::new(0), Gfp::HIGHUSER_MOVABLE | Gfp::COMP, Order::new(3));
        assert_eq!(take(&mut m, small).map(Pfn::pageblock), Some(block(7).pageblock()));
        assert_eq!(scanned(&mut m), 512, "one in use, and the rest");
        run.isolate_freepages_block(&mut m, block(7), block(8), 1);
        assert_eq!(run.free.scanned, 8 + 6, "to the free scanner each page in use counts, and each free block");
    }

    #[test]
    fn the_free_scanner_begins_again_at_the_highest_pageblock_it_took_from() {
        let (mut m, mut run) = with_free_block();
        (run.migrate.pfn, run.free.pfn, run.free.wanted) = (block(0), block(4), 300);
        run.isolate_free_of_pageblocks(&mut m);
        assert_eq!((run.free.stock.pages, run.free.pfn), (512, block(4)), "of two, all that is free");
    }

    #[test]
    fn the_migration_scanner_leaves_the_free_scanners_pageblock_alone() {
        let (mut m, mut run) = with_free_block();
        (run.migrate.pfn, run.free.pfn) = (block(3), block(3).plus(256));
        assert_eq!(run.isolate_from_pageblock(&mut m, &mut clean()), Isolate::None);
        assert_eq!((run.migrate.scanned, run.migrate.pfn), (0, block(4)));
    }

    /// A zone with nothing free but its pageblock 7.
    fn one_block(profile: &str) -> Memory {
        let mut m = zone(linux(profile), MigrateType::Movable, 0..0);
        for number in 0..5 {
            let every_other = (0..512).step_by(2).map(|at| block(number).plus(at));
            let request = Request::new(CPU, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, Order::ZERO);
            every_other.for_each(|_| assert!(take(&mut m, request).is_some(), "it was freed"));
        }
        (0..512).for_each(|at| m.free(CPU, block(7).plus(at), Order::ZERO));
        m.drain_cpu(CPU);
        m.fold_vmstat(CPU);
        m
    }

    #[test]
    fn in_3_13_a_run_needs_room_even_where_the_block_is_free_and_knows_no_rights() {
        let plain = crate::gfp::AllocFlags::mark(crate::gfp::Wmark::Min);
        let suits = |profile: &str, reserve| {
            let mut m = one_block(profile);
            m.zones[ZONE].lowmem_reserve[ZoneType::Normal.index()] = reserve;
            // Of the 512 free pages, twice 8 are room to make a block of order 3.
            [3, 9].map(|order| m.compaction_suitable(ZONE, Some(Order::new(order)), plain, ZoneType::Normal, false))
        };
        use CompactResult::{Skipped, Success};
        assert_eq!(suits("4.6", 0), [Success, Success]);
        assert_eq!(suits("3.13", 0), [Success, Skipped], "1,024 pages are room for a whole pageblock");
        assert_eq!(suits("4.6", 512), [Skipped, Skipped]);
        assert_eq!(suits("3.13", 512), [Success, Skipped], "what is kept from higher requests does not count");
    }

    #[test]
    fn in_3_13_a_run_ends_by_a_block_of_its_own_type_or_by_any_whole_pageblock() {
        let ends = |profile: &str, order| {
            let m = one_block(profile);
            let control = CompactControl { migratetype: MigrateType::Unmovable, ..whole_zone(MigrateMode::SyncLight) };
            CompactRun::new(control, ZONE, CPU).has_block(&m, Order::new(order))
        };
        assert_eq!([ends("3.13", 3), ends("3.13", 9)], [false, true]);
        assert_eq!([ends("4.6", 3), ends("4.6", 9)], [true, true]);
    }

    #[test]
    fn in_3_13_a_write_to_compact_memory_heeds_hints_and_goes_on_where_the_last_run_ended() {
        let [old, new] =
            ["3.13", "4.6"].map(|p| crate::compact::proactive::whole_zone_control(&linux(p).compaction, false));
        assert_eq!((old.whole_zone, old.ignore_skip_hint, old.mode), (false, false, MigrateMode::SyncLight));
        assert_eq!((new.whole_zone, new.ignore_skip_hint, new.mode), (true, true, MigrateMode::Sync));
    }
}
