//! One compaction run over one zone, a step at a time.
//!
//! A step visits a bounded number of pageblocks, or isolates and migrates one batch of pages; between two steps
//! other CPUs run, and may take what this run has freed. Source: kernel-behaviour §5.3, §5.11.

use super::migrate_scanner::Isolate;
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::frame::{FrameKind, NIL};
use crate::gfp::AllocFlags;
use crate::memory::Memory;
use crate::types::{CpuId, MigrateType, Order, PAGEBLOCK_PAGES, Pfn, ZoneId, ZoneType};
use crate::vmstat::VmEvent;

/// Times a batch is tried before its stubborn pages are given up.
const MIGRATE_PASSES: u32 = 10;

/// What a run is asked to do (kernel-behaviour §5.1).
#[derive(Clone, Copy, Debug)]
pub struct CompactControl {
    /// Make a free block of this order; `None` compacts the whole zone.
    pub order: Option<Order>,
    /// For a request of this type.
    pub migratetype: MigrateType,
    /// How hard to try.
    pub mode: MigrateMode,
    /// On behalf of an allocating task.
    pub direct: bool,
    /// Start at the zone's ends.
    pub whole_zone: bool,
    /// Scan pageblocks hinted at skipping too.
    pub ignore_skip_hint: bool,
    /// Move to pageblocks of any type.
    pub ignore_block_suitable: bool,
    /// Stop at the proactive score.
    pub proactive: bool,
    /// The request's allocation flags.
    pub alloc_flags: AllocFlags,
    /// The request's highest zone.
    pub highest: ZoneType,
}

/// How moving one page went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateOutcome {
    /// The page's contents and mappings are at the new place.
    Moved,
    /// Not now: locked or referenced for the moment.
    Busy,
    /// Not at all.
    Failed,
}

/// Who owns pages: the host's side of migration.
pub trait Owner {
    /// Whether the movable page may be taken off the LRU now (it is not pinned).
    fn may_isolate(&mut self, pfn: Pfn) -> bool;
    /// Moves the contents and mappings of `from`, whose two stored words are `owner`, to `to`.
    fn migrate(&mut self, from: Pfn, to: Pfn, owner: (u32, u32)) -> MigrateOutcome;
}

/// What a step of a run came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunStep {
    /// There is more to do.
    Working,
    /// The run has ended.
    Done(CompactResult),
}

/// A run in progress. It holds isolated pages between its steps: step it until it is done, or they are lost.
#[derive(Clone)]
pub struct CompactRun {
    pub(super) cc: CompactControl,
    pub(super) zone: ZoneId,
    pub(super) cpu: CpuId,
    pub(super) migrate_pfn: Pfn,
    pub(super) free_pfn: Pfn,
    pub(super) whole_zone: bool,
    pub(super) contended: bool,
    /// This batch comes from the pageblock of the last one: take all of it.
    pub(super) rescan: bool,
    /// In the middle of a walk over pageblocks that ran out of budget.
    pub(super) walking: bool,
    /// Lowest block the free-list search has seen, and whether the scanner has gone back to it.
    pub(super) fast_start_pfn: Option<Pfn>,
    pub(super) fast_start_used: bool,
    pub(super) fast_search_fail: u32,
    pub(super) search_order: u8,
    pub(super) migrate_pages: [Pfn; PAGEBLOCK_PAGES as usize],
    pub(super) migrate_count: usize,
    pub(super) free_stack: u32,
    pub(super) nr_free: u32,
    /// How many targets the free scanner looks for: the batch's size, however much of it has been moved already.
    pub(super) wanted: u32,
    pub(super) migrate_scanned: u64,
    pub(super) free_scanned: u64,
    last_migrated_pfn: Option<Pfn>,
    iteration_start: Pfn,
    update_cached: bool,
    started: bool,
    captured: Option<Pfn>,
}

impl CompactRun {
    /// A run over `zone` by `cpu`; nothing happens before its first step.
    pub fn new(cc: CompactControl, zone: ZoneId, cpu: CpuId) -> CompactRun {
        CompactRun {
            cc,
            zone,
            cpu,
            migrate_pfn: Pfn::default(),
            free_pfn: Pfn::default(),
            whole_zone: cc.whole_zone,
            contended: false,
            rescan: false,
            walking: false,
            fast_start_pfn: None,
            fast_start_used: false,
            fast_search_fail: 0,
            search_order: cc.order.map_or(0, Order::get),
            migrate_pages: [Pfn::default(); PAGEBLOCK_PAGES as usize],
            migrate_count: 0,
            free_stack: NIL,
            nr_free: 0,
            wanted: 0,
            migrate_scanned: 0,
            free_scanned: 0,
            last_migrated_pfn: None,
            iteration_start: Pfn::default(),
            update_cached: false,
            started: false,
            captured: None,
        }
    }

    /// The zone this run works on.
    pub fn zone(&self) -> ZoneId {
        self.zone
    }

    /// Frames scanned so far: by the migration scanner, by the free scanner.
    pub fn scanned(&self) -> (u64, u64) {
        (self.migrate_scanned, self.free_scanned)
    }

    /// Advances by one step that visits at most `budget` pageblocks, and at least one.
    ///
    /// A direct run claims a block of its order that merges while it frees pages itself; what others free between
    /// its steps goes to the lists.
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> RunStep {
        if let (true, Some(order)) = (self.cc.direct, self.cc.order) {
            m.zones[self.zone.index()].compaction.capture.arm(order);
        }
        let step = self.advance(m, owner, budget);
        if let Some(page) = m.zones[self.zone.index()].compaction.capture.disarm() {
            self.captured = Some(page);
        }
        step
    }

    fn advance<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> RunStep {
        if !self.started {
            self.started = true;
            let result = m.compaction_suitable(self.zone, self.cc.order, self.cc.alloc_flags, self.cc.highest);
            if matches!(result, CompactResult::Success | CompactResult::Skipped) {
                return RunStep::Done(result);
            }
            self.begin(m);
        }
        if !self.walking {
            match self.finished(m) {
                CompactResult::Continue => {}
                result => return self.end(m, result),
            }
            self.iteration_start = self.migrate_pfn;
            self.rescan = self.last_migrated_pfn.is_some_and(|p| p.pageblock() == self.migrate_pfn.pageblock());
        }
        let done = self.iteration(m, owner, budget);
        let captured = m.zones[self.zone.index()].compaction.capture.has_page();
        match done {
            None if captured => self.end(m, CompactResult::Success),
            None => RunStep::Working,
            Some(result) => self.end(m, result),
        }
    }

    /// Sets the scanners to their starting places.
    fn begin(&mut self, m: &mut Memory) {
        if self.cc.order.is_some_and(|o| m.locked(self.zone, self.cpu).compaction_restarting(o)) {
            m.reset_isolation_suitable(self.zone);
        }
        let sync = self.cc.mode != MigrateMode::Async;
        let z = &mut m.zones[self.zone.index()];
        let (start, end, last) = (z.start, z.end, z.last_pageblock());
        if self.whole_zone {
            (self.migrate_pfn, self.free_pfn) = (start, last);
        } else {
            let c = &mut z.compaction;
            if c.cached_free_pfn < start || c.cached_free_pfn >= end {
                c.cached_free_pfn = last;
            }
            if c.cached_migrate_pfn[sync as usize] < start || c.cached_migrate_pfn[sync as usize] >= end {
                c.cached_migrate_pfn = [start, start];
            }
            (self.migrate_pfn, self.free_pfn) = (c.cached_migrate_pfn[sync as usize], c.cached_free_pfn);
            self.whole_zone = self.migrate_pfn <= c.init_migrate_pfn;
        }
        self.update_cached = !sync && z.compaction.cached_migrate_pfn[0] == z.compaction.cached_migrate_pfn[1];
        let (migrate_pfn, free_pfn, mode) = (self.migrate_pfn, self.free_pfn, self.cc.mode);
        m.sh.trace.emit(Listen::COMPACTION, || Event::CompactionBegin {
            zone_start: start,
            migrate_pfn,
            free_pfn,
            zone_end: end,
            mode,
        });
    }

    /// Isolates and migrates one batch; `Some` ends the run.
    fn iteration<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Option<CompactResult> {
        match self.isolate_migratepages(m, owner, budget) {
            Isolate::Paused => return None,
            Isolate::None => {
                if self.update_cached {
                    let cached = &mut m.zones[self.zone.index()].compaction.cached_migrate_pfn;
                    cached[1] = cached[0];
                }
            }
            Isolate::Success => {
                self.update_cached = false;
                self.last_migrated_pfn = Some(self.iteration_start);
                if let Some(result) = self.migrate_batch(m, owner) {
                    return Some(result);
                }
            }
        }
        self.drain_if_block_left(m);
        None
    }

    /// Migrates the isolated pages, last isolated first. `Some` ends the run.
    fn migrate_batch<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Option<CompactResult> {
        let (mut moved, mut failed, mut out_of_targets) = (0u64, 0u64, false);
        self.wanted = self.migrate_count as u32;
        'passes: for pass in 0..MIGRATE_PASSES {
            // Pages that were busy stay at the front of the array, in their order.
            let todo = core::mem::take(&mut self.migrate_count);
            let mut kept = todo;
            for i in (0..todo).rev() {
                let from = self.migrate_pages[i];
                let Some(to) = self.next_target(m) else {
                    // Only the page that wanted one counts as failed; the rest was not tried.
                    out_of_targets = true;
                    failed += 1;
                    self.migrate_pages.copy_within(kept..todo, i + 1);
                    self.migrate_count = i + 1 + (todo - kept);
                    break 'passes;
                };
                match owner.migrate(from, to, m.frames.owner(from, Order::ZERO)) {
                    MigrateOutcome::Moved => {
                        moved += 1;
                        self.finish_migration(m, from, to);
                    }
                    MigrateOutcome::Busy => {
                        self.return_target(m, to);
                        kept -= 1;
                        self.migrate_pages[kept] = from;
                    }
                    MigrateOutcome::Failed => {
                        self.return_target(m, to);
                        failed += 1;
                        self.putback_page(m, from);
                    }
                }
            }
            self.migrate_pages.copy_within(kept..todo, 0);
            self.migrate_count = todo - kept;
            if self.migrate_count == 0 {
                break;
            }
            if pass + 1 == MIGRATE_PASSES {
                failed += self.migrate_count as u64;
            }
        }
        m.sh.vmstat.add(VmEvent::PgmigrateSuccess, moved);
        m.sh.vmstat.add(VmEvent::PgmigrateFail, failed);
        m.sh.work.migrated += moved;
        m.sh.work.migrate_failed += failed;
        let not_moved = u64::from(self.wanted) - moved;
        m.sh.trace.emit(Listen::COMPACTION_DETAIL, || Event::Migratepages { nr_migrated: moved, nr_failed: not_moved });
        if not_moved > 0 {
            self.putback_migratepages(m);
            if out_of_targets && !self.scanners_met() {
                return Some(CompactResult::Contended);
            }
            if let (true, MigrateMode::Async, Some(order)) = (self.cc.direct, self.cc.mode, self.cc.order) {
                self.migrate_pfn = self.migrate_pfn.minus(1).block_end(order);
                self.last_migrated_pfn = None;
            }
        }
        None
    }

    /// The page is at `to`; `from` is free.
    fn finish_migration(&mut self, m: &mut Memory, from: Pfn, to: Pfn) {
        let kind = m.frames.tag(from).kind();
        let words = m.frames.owner(from, Order::ZERO);
        if kind == FrameKind::IsolatedLru {
            m.frames.set(to, FrameKind::Lru, Order::ZERO);
            let z = &mut m.zones[self.zone.index()];
            z.nr_lru += 1;
            z.nr_isolated -= 1;
        } else {
            m.frames.set(to, kind, Order::ZERO);
        }
        m.frames.set_owner(to, Order::ZERO, words);
        m.free_untagged(self.zone, self.cpu, from, Order::ZERO);
    }

    /// Once the scanner has left the block of the wanted order it migrated from, the pages freed there are flushed
    /// from the per-CPU lists so that they can merge.
    fn drain_if_block_left(&mut self, m: &mut Memory) {
        let (Some(order), Some(last)) = (self.cc.order.filter(|o| *o > Order::ZERO), self.last_migrated_pfn) else {
            return;
        };
        if last < self.migrate_pfn.block_start(order) {
            m.locked(self.zone, self.cpu).pcp_drain();
            self.last_migrated_pfn = None;
        }
    }

    /// Returns what is left and settles the accounts.
    fn end(&mut self, m: &mut Memory, status: CompactResult) -> RunStep {
        self.putback_migratepages(m);
        self.release_freepages(m);
        m.sh.vmstat.add(VmEvent::CompactMigrateScanned, self.migrate_scanned);
        m.sh.vmstat.add(VmEvent::CompactFreeScanned, self.free_scanned);
        let z = &m.zones[self.zone.index()];
        let (zone_start, zone_end) = (z.start, z.end);
        let (migrate_pfn, free_pfn, mode) = (self.migrate_pfn, self.free_pfn, self.cc.mode);
        m.sh.trace.emit(Listen::COMPACTION, || Event::CompactionEnd {
            zone_start,
            migrate_pfn,
            free_pfn,
            zone_end,
            mode,
            status,
        });
        RunStep::Done(status)
    }

    /// The block a direct run has captured for its request.
    pub fn captured(&self) -> Option<Pfn> {
        self.captured
    }
}
