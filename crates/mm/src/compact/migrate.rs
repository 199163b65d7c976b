//! Migration: moving the isolated pages, last isolated first, to the places the free scanner found.
//!
//! Up to 6.2 pages are moved one at a time, each to a target found just before. From 6.3 on the targets of a whole
//! batch are found first, and the pages moved after that: what a batch frees is no target for it. Pages that are busy
//! are tried again, and put back in the end. Source: kernel-behaviour §5.11; the batch, from the recordings of 7.2.

use super::state::CompactRun;
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::host::{MigrateOutcome, Owner};
use crate::rules::Migration;
use crate::state::{FrameKind, Memory};
use crate::types::{Order, Pfn};
use crate::vmstat::VmEvent;

/// Times a page is tried before it is given up.
const MIGRATE_PASSES: u32 = 10;
/// Of these, times a batch is tried as a whole (NR_MAX_MIGRATE_ASYNC_RETRY).
const BATCH_PASSES: u32 = 3;

/// What became of a batch.
#[derive(Default)]
struct Tally {
    moved: u64,
    failed: u64,
    out_of_targets: bool,
}

impl CompactRun {
    /// Migrates the isolated pages. `Some` ends the run.
    pub(super) fn migrate_batch<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Option<CompactResult> {
        let isolated = self.migrate.count as u32;
        self.free.wanted = isolated;
        let rules = m.shared.profile.compaction;
        let t = match rules.migration {
            Migration::OneByOne => self.migrate_one_by_one(m, owner),
            Migration::Together => self.migrate_together(m, owner),
        };
        m.shared.vmstat.add(VmEvent::PgmigrateSuccess, t.moved);
        m.shared.vmstat.add(VmEvent::PgmigrateFail, t.failed);
        m.shared.work.migrated += t.moved;
        m.shared.work.migrate_failed += t.failed;
        let (nr_migrated, nr_failed) = (t.moved, u64::from(isolated) - t.moved);
        m.shared.emit(Listen::COMPACTION_DETAIL, || Event::Migratepages { nr_migrated, nr_failed });
        if nr_failed == 0 {
            return None;
        }
        self.putback_migratepages(m);
        if t.out_of_targets && !self.scanners_met() {
            return Some(CompactResult::Contended);
        }
        if rules.finishes_pageblock {
            self.finish_what_failed();
        } else if let (true, MigrateMode::Async, Some(order)) = (self.cc.direct, self.cc.mode, self.cc.order) {
            self.migrate.pfn = self.migrate.pfn.minus(1).block_end(order);
            self.migrate.last_migrated_pfn = None;
        }
        None
    }

    /// After a failure within a pageblock: goes through the rest of it at once, so that its hint is right (6.3).
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

    /// Each page to a target found for it just before.
    fn migrate_one_by_one<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Tally {
        let mut t = Tally::default();
        'passes: for pass in 0..MIGRATE_PASSES {
            // Pages that were busy stay at the front of the array, in their order.
            let todo = core::mem::take(&mut self.migrate.count);
            let mut kept = todo;
            for i in (0..todo).rev() {
                let from = self.migrate.pages[i];
                let Some(to) = self.next_target(m) else {
                    // Only the page that wanted one counts as failed; the rest was not tried.
                    t.out_of_targets = true;
                    t.failed += 1;
                    self.migrate.pages.copy_within(kept..todo, i + 1);
                    self.migrate.count = i + 1 + (todo - kept);
                    break 'passes;
                };
                if self.move_page(m, owner, from, to, &mut t) == MigrateOutcome::Busy {
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
                t.failed += self.migrate.count as u64;
            }
        }
        t
    }

    /// Targets for all pages first, then all moves; what is still busy after some passes is tried on its own, unless
    /// nobody wants to wait.
    fn migrate_together<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Tally {
        let mut t = Tally::default();
        for _ in 0..BATCH_PASSES {
            self.pass_together(m, owner, &mut t);
            if self.migrate.count == 0 || t.out_of_targets {
                return t;
            }
        }
        if self.cc.mode != MigrateMode::Async {
            let mut given_up = 0;
            for i in (0..core::mem::take(&mut self.migrate.count)).rev() {
                let from = self.migrate.pages[i];
                let mut tries = BATCH_PASSES..MIGRATE_PASSES;
                let busy = tries.all(|_| match self.next_target(m) {
                    Some(to) => self.move_page(m, owner, from, to, &mut t) == MigrateOutcome::Busy,
                    None => {
                        t.out_of_targets = true;
                        true
                    }
                });
                if busy {
                    self.putback_page(m, from);
                    given_up += 1;
                }
            }
            t.failed += given_up;
            return t;
        }
        t.failed += self.migrate.count as u64;
        t
    }

    /// One pass over the batch. Pages still to be moved stay at the front of the array, in their order.
    fn pass_together<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, t: &mut Tally) {
        let todo = core::mem::take(&mut self.migrate.count);
        let mut untried = 0;
        for i in (0..todo).rev() {
            let Some(to) = self.next_target(m) else {
                t.out_of_targets = true;
                t.failed += 1;
                untried = i + 1;
                break;
            };
            self.free.targets[i] = to;
        }
        let mut kept = todo;
        for i in (untried..todo).rev() {
            let (from, to) = (self.migrate.pages[i], self.free.targets[i]);
            if self.move_page(m, owner, from, to, t) == MigrateOutcome::Busy {
                kept -= 1;
                self.migrate.pages[kept] = from;
            }
        }
        self.migrate.pages.copy_within(kept..todo, untried);
        self.migrate.count = untried + (todo - kept);
    }

    /// Moves one page, or returns its target; a page that cannot be moved is put back. One that a batch holds is busy.
    fn move_page<O: Owner>(
        &mut self,
        m: &mut Memory,
        owner: &mut O,
        from: Pfn,
        to: Pfn,
        t: &mut Tally,
    ) -> MigrateOutcome {
        let number = m.frames.owner(from, Order::ZERO);
        // Where the order is not kept no page waits for the LRU.
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
                t.moved += 1;
                self.finish_migration(m, from, to, drains);
            }
            MigrateOutcome::Busy => self.return_target(m, to),
            MigrateOutcome::Failed => {
                self.return_target(m, to);
                t.failed += 1;
                self.putback_page(m, from);
            }
        }
        outcome
    }

    /// The page is at `to`; `from` is free. Now the LRU's batches may have to be moved.
    fn finish_migration(&mut self, m: &mut Memory, from: Pfn, to: Pfn, drains: bool) {
        let kind = m.frames.tag(from).kind();
        let owner = m.frames.owner(from, Order::ZERO);
        if kind == FrameKind::IsolatedLru {
            m.lru_migrated(self.cpu, from, to);
            if drains {
                m.lru_add_drain(self.cpu);
            }
        } else {
            m.frames.set(to, kind, Order::ZERO);
        }
        m.frames.set_owner(to, Order::ZERO, owner);
        m.free_untagged(self.zone, self.cpu, from, Order::ZERO);
    }
}
