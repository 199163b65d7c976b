//! Migration: moves the isolated pages, the last isolated first, to the targets the free scanner
//! found.
//!
//! Up to 6.2 pages are migrated one at a time, each to a target found just before. From 6.3 on, the
//! targets of a whole batch are found first, so what the batch frees cannot be a target for it.
//! Busy pages are retried and finally put back. From 6.9 on folios are migrated as a whole to a
//! target of their size; if there is none, they are split, and their pages are migrated after the
//! others. Source: kernel-behaviour §5.11; the batch follows the recordings of 7.2.

use super::state::CompactRun;
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::owner::{MigrateOutcome, Owner};
use crate::rules::Migration;
use crate::state::{FrameKind, Memory};
use crate::types::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::vmstat::VmEvent;
use alloc::vec::Vec;

/// How often a page is tried before migration gives up on it.
const MIGRATE_PASSES: u32 = 10;
/// How many of these passes a synchronous run makes over the batch as a whole, before it tries page
/// by page (`NR_MAX_MIGRATE_ASYNC_RETRY`). An asynchronous run makes all of them so.
const BATCH_PASSES: u32 = 3;

/// Pages of a batch by outcome.
#[derive(Default)]
struct Tally {
    moved: u64,
    failed: u64,
    /// Busy at each try.
    still_busy: u64,
    out_of_targets: bool,
}

impl CompactRun {
    /// Migrates the isolated pages. `Some` ends the run.
    pub(super) fn migrate_batch<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Option<CompactResult> {
        let isolated = core::mem::take(&mut self.migrate.nr_pages);
        self.free.wanted = isolated;
        let rules = m.shared.profile.compaction;
        let t = match rules.migration {
            Migration::OneByOne => self.migrate_one_by_one(m, owner),
            Migration::Together => {
                let mut t = self.migrate_together(m, owner);
                if !self.migrate.split.is_empty() {
                    self.migrate_split(m, owner, &mut t);
                }
                t
            }
        };
        m.shared.vmstat.add(VmEvent::PgmigrateSuccess, t.moved);
        let counted = if rules.counts_still_busy { t.failed + t.still_busy } else { t.failed };
        m.shared.vmstat.add(VmEvent::PgmigrateFail, counted);
        m.shared.work.migrated += t.moved;
        m.shared.work.migrate_failed += t.failed + t.still_busy;
        let (nr_migrated, nr_failed) = (t.moved, u64::from(isolated) - t.moved);
        m.shared.emit(Listen::COMPACTION_DETAIL, || Event::Migratepages { nr_migrated, nr_failed });
        if nr_failed == 0 {
            return None;
        }
        self.putback_migratepages(m);
        if t.out_of_targets && !(rules.sees_meeting && self.scanners_met(&rules)) {
            return Some(CompactResult::Contended);
        }
        if rules.finishes_pageblock {
            self.finish_what_failed();
        } else if let (true, true, MigrateMode::Async, Some(order)) =
            (rules.async_leaves_at_failure, self.cc.direct, self.cc.mode, self.cc.order)
        {
            self.migrate.pfn = self.migrate.pfn.minus(1).block_end(order);
            self.migrate.last_migrated_pfn = None;
        }
        None
    }

    /// After a failure within a pageblock, scans the rest of it at once, so that its skip hint is
    /// right (6.3).
    fn finish_what_failed(&mut self) {
        if !self.migrate.pfn.is_pageblock_aligned()
            && !self.cc.ignore_skip_hint
            && !self.migrate.finish_pageblock
            && self.cc.mode != MigrateMode::Sync
        {
            self.migrate.finish_pageblock = true;
            self.migrate.again_at_once = true;
            if self.cc.order == Some(crate::types::PAGEBLOCK_ORDER) {
                self.migrate.last_migrated_pfn = None;
            }
        }
    }

    /// Migrates each page to a target found for it just before.
    fn migrate_one_by_one<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Tally {
        let mut t = Tally::default();
        'passes: for pass in 0..MIGRATE_PASSES {
            // Busy pages stay at the front of the array, in their order.
            let todo = core::mem::take(&mut self.migrate.count);
            let mut kept = todo;
            for i in (0..todo).rev() {
                let from = self.migrate.pages[i];
                let Some(to) = self.next_target(m, Order::ZERO) else {
                    // Only the page that found no target may count as failed; the others were not
                    // tried.
                    t.out_of_targets = true;
                    t.failed += u64::from(m.shared.profile.compaction.counts_missing_target);
                    self.migrate.pages.copy_within(kept..todo, i + 1);
                    self.migrate.count = i + 1 + (todo - kept);
                    break 'passes;
                };
                if self.move_page(m, owner, from, to, Order::ZERO, &mut t) == MigrateOutcome::Busy {
                    kept -= 1;
                    self.migrate.pages[kept] = from;
                }
            }
            self.migrate.pages.copy_within(kept..todo, 0);
            self.migrate.count = todo - kept;
            if self.migrate.count == 0 {
                break;
            }
            if pass + 1 == MIGRATE_PASSES {
                t.still_busy += self.migrate.count as u64;
            }
        }
        t
    }

    /// Finds all targets first, then moves all pages. Unless the run is asynchronous, pages still
    /// busy after a few passes are tried one by one.
    fn migrate_together<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Tally {
        let mut t = Tally::default();
        let passes = if self.cc.mode == MigrateMode::Async { MIGRATE_PASSES } else { BATCH_PASSES };
        for _ in 0..passes {
            self.pass_together(m, owner, &mut t);
            if self.migrate.count == 0 || t.out_of_targets {
                return t;
            }
        }
        if self.cc.mode != MigrateMode::Async {
            let mut given_up = 0;
            for i in (0..core::mem::take(&mut self.migrate.count)).rev() {
                let from = self.migrate.pages[i];
                let order = m.frames.tag(from).order();
                let mut tries = BATCH_PASSES..MIGRATE_PASSES;
                let busy = tries.all(|_| match self.next_target(m, order) {
                    Some(to) => self.move_page(m, owner, from, to, order, &mut t) == MigrateOutcome::Busy,
                    None if self.split_folio(m, owner, from, order) => false,
                    None => {
                        t.out_of_targets = true;
                        true
                    }
                });
                if busy {
                    self.putback_page(m, from);
                    given_up += u64::from(order.pages());
                }
            }
            t.still_busy += given_up;
            return t;
        }
        t.still_busy += self.left(m);
        t
    }

    /// Number of pages still isolated.
    fn left(&self, m: &Memory) -> u64 {
        let left = self.migrate.pages[..self.migrate.count].iter();
        left.map(|pfn| u64::from(m.frames.tag(*pfn).order().pages())).sum()
    }

    /// One pass over the batch. Pages still to be moved stay at the front of the array, in their
    /// order.
    fn pass_together<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, t: &mut Tally) {
        let todo = core::mem::take(&mut self.migrate.count);
        let (mut untried, mut targeted) = (0, todo);
        for i in (0..todo).rev() {
            let from = self.migrate.pages[i];
            let order = m.frames.tag(from).order();
            if let Some(to) = self.next_target(m, order) {
                targeted -= 1;
                (self.migrate.pages[targeted], self.free.targets[targeted]) = (from, to);
            } else if !self.split_folio(m, owner, from, order) {
                t.out_of_targets = true;
                t.failed += u64::from(order.pages());
                untried = i + 1;
                break;
            }
        }
        let mut kept = todo;
        for i in (targeted..todo).rev() {
            let (from, to) = (self.migrate.pages[i], self.free.targets[i]);
            let order = m.frames.tag(from).order();
            if self.move_page(m, owner, from, to, order, t) == MigrateOutcome::Busy {
                kept -= 1;
                self.migrate.pages[kept] = from;
            }
        }
        self.migrate.pages.copy_within(kept..todo, untried);
        self.migrate.count = untried + (todo - kept);
    }

    /// Splits a folio for which there is no target of its size. Its pages are migrated after all
    /// others, the first of them last. False if it is a single page or cannot be split.
    fn split_folio<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, pfn: Pfn, order: Order) -> bool {
        let mut numbers = [0; PAGEBLOCK_PAGES as usize];
        let numbers = &mut numbers[..order.pages() as usize];
        if order == Order::ZERO || !owner.split(pfn, m.frames.owner(pfn, order), numbers) {
            return false;
        }
        m.split_isolated(pfn, order, numbers);
        let rest = 1..order.pages();
        if m.shared.profile.compaction.splits_from_the_end {
            self.migrate.split.extend(rest.rev().map(|i| pfn.plus(i)));
        } else {
            self.migrate.split.extend(rest.map(|i| pfn.plus(i)));
        }
        self.migrate.split.push(pfn);
        true
    }

    /// Migrates the pages of split folios in one pass; those that stay are put back after all
    /// others.
    fn migrate_split<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, t: &mut Tally) {
        let pages = core::mem::take(&mut self.migrate.split);
        let mut left = Vec::new();
        let mut targets = Vec::new();
        if !t.out_of_targets {
            while let Some(to) = pages.get(targets.len()).and_then(|_| self.next_target(m, Order::ZERO)) {
                targets.push(to);
            }
            // Only the page that found no target counts as failed.
            t.failed += u64::from(targets.len() < pages.len());
        }
        for (&from, &to) in pages.iter().zip(&targets) {
            if self.move_page(m, owner, from, to, Order::ZERO, t) == MigrateOutcome::Busy {
                t.failed += 1;
                left.push(from);
            }
        }
        left.extend(&pages[targets.len()..]);
        self.migrate.pages.copy_within(..self.migrate.count, left.len());
        self.migrate.count += left.len();
        left.iter().rev().zip(&mut self.migrate.pages).for_each(|(from, place)| *place = *from);
    }

    /// Moves one page, or returns its target. A page that an LRU batch holds is busy; one that
    /// cannot be moved is put back.
    fn move_page<O: Owner>(
        &mut self,
        m: &mut Memory,
        owner: &mut O,
        from: Pfn,
        to: Pfn,
        order: Order,
        t: &mut Tally,
    ) -> MigrateOutcome {
        let number = m.frames.owner(from, order);
        // Without an ordered LRU no page waits in a batch.
        let drains = m.lru.is_ordered()
            && m.shared.profile.compaction.drains_for_mapped
            && m.frames.tag(from).kind() == FrameKind::IsolatedLru
            && owner.page_state(from, number).mapped;
        let outcome = match m.lru.holds(from) {
            0 => owner.migrate(from, to, number),
            _ => MigrateOutcome::Busy,
        };
        match outcome {
            MigrateOutcome::Moved => {
                t.moved += u64::from(order.pages());
                self.finish_migration(m, from, to, order, drains);
            }
            MigrateOutcome::Busy => self.return_target(m, to, order),
            MigrateOutcome::Failed => {
                t.failed += u64::from(order.pages());
                self.putback_page(m, from);
                self.return_target(m, to, order);
            }
        }
        outcome
    }

    /// The page is at `to`, so `from` is freed. With `drains` (a mapped page, in 6.1) the LRU
    /// batches are drained, too.
    fn finish_migration(&mut self, m: &mut Memory, from: Pfn, to: Pfn, order: Order, drains: bool) {
        let kind = m.frames.tag(from).kind();
        let owner = m.frames.owner(from, order);
        let mut leaves = false;
        if kind == FrameKind::IsolatedLru {
            leaves = m.lru_migrated(self.cpu, from, to, order);
            if drains {
                m.lru_add_drain(self.cpu);
            }
        } else {
            m.frames.set(to, kind, order);
        }
        m.frames.set_owner(to, order, owner);
        if !leaves {
            m.free_untagged(self.zone, self.cpu, from, order);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::request::Request;
    use crate::state::PageFlags;
    use crate::step::Step;
    use crate::testing::{half_free_with, linux, ordered_machine_with, take, whole_zone};
    use crate::types::{CpuId, NodeId, ZoneId};
    use alloc::collections::BTreeMap;

    /// An owner whose pages are always busy, and how often each was tried.
    #[derive(Default)]
    struct Busy(BTreeMap<Pfn, u32>);

    impl Owner for Busy {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, from: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            *self.0.entry(from).or_default() += 1;
            MigrateOutcome::Busy
        }
    }

    /// The tries of each page in one run over a zone of busy pages with holes between them, and how
    /// many pages count as failed.
    fn tries(profile: &str, mode: MigrateMode) -> (BTreeMap<Pfn, u32>, u64) {
        let mut m = half_free_with(64, linux(profile));
        let mut owner = Busy::default();
        let mut run = CompactRun::new(whole_zone(mode), ZoneId::new(0), CpuId::new(0));
        while run.step(&mut m, &mut owner, 64) == Step::Working {}
        (owner.0, m.vmstat().get(VmEvent::PgmigrateFail))
    }

    #[test]
    fn a_busy_page_is_tried_ten_times_in_any_mode() {
        for profile in ["6.1", "6.12", "7.2"] {
            for mode in [MigrateMode::Async, MigrateMode::SyncLight] {
                let (tries, _) = tries(profile, mode);
                assert!(!tries.is_empty() && tries.values().all(|n| *n == MIGRATE_PASSES), "{profile}, {mode:?}");
            }
        }
    }

    #[test]
    fn from_4_4_on_a_page_that_stays_busy_counts_as_failed() {
        let mode = MigrateMode::SyncLight;
        for profile in ["4.4", "6.1", "7.2"] {
            let (tries, failed) = tries(profile, mode);
            assert!(failed > 0 && failed as usize == tries.len(), "{profile}: {failed} of {}", tries.len());
        }
    }

    /// An owner whose folios can be split.
    struct Splits;

    impl Owner for Splits {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Moved
        }
        fn split(&mut self, _: Pfn, _: u32, _: &mut [u32]) -> bool {
            true
        }
    }

    #[test]
    fn the_pages_of_a_split_folio_are_moved_in_their_order_since_6_15_and_the_last_first_before() {
        let order_in = |profile: &str| {
            let (cpu, order) = (CpuId::new(0), Order::new(2));
            let mut m = ordered_machine_with(16, linux(profile));
            let request = Request::new(cpu, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, order);
            let folio = take(&mut m, request).expect("memory is free");
            m.lru_add(cpu, folio, order, PageFlags::ANON);
            m.lru_isolate(cpu, folio, order);
            let mut run = CompactRun::new(whole_zone(MigrateMode::SyncLight), ZoneId::new(0), cpu);
            assert!(run.split_folio(&mut m, &mut Splits, folio, order));
            run.migrate.split.iter().map(|page| page.get() - folio.get()).collect::<Vec<_>>()
        };
        assert_eq!(order_in("6.12"), [3, 2, 1, 0]);
        assert_eq!(order_in("7.2"), [1, 2, 3, 0]);
    }
}
