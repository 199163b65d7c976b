//! One compaction run over one zone, a step at a time.
//!
//! A step visits a bounded number of pageblocks, or isolates and migrates one batch of pages; between two steps
//! other CPUs run, and may take what this run has freed. Source: kernel-behaviour §5.3, §5.11.

use super::migrate_scanner::Isolate;
use super::targets::Stock;
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::gfp::AllocFlags;
use crate::host::Owner;
use crate::state::Memory;
use crate::step::Step;
use crate::types::{CpuId, MigrateType, Order, PAGEBLOCK_PAGES, Pfn, ZoneId, ZoneType};
use crate::vmstat::VmEvent;

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
    /// Scan pageblocks with the skip hint set, too.
    pub ignore_skip_hint: bool,
    /// Move to pageblocks of any type.
    pub ignore_block_suitable: bool,
    /// Stop at the proactive score.
    pub proactive: bool,
    /// The request's allocation flags.
    pub alloc_flags: AllocFlags,
    /// The request's highest zone.
    pub highest: ZoneType,
    /// The order of the request itself, where a larger block is made for it; a block of this order is claimed as soon
    /// as it merges.
    pub request_order: Option<Order>,
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
    /// This batch comes from the pageblock of the last one, or of one that failed: take all of it.
    pub(super) finish_pageblock: bool,
    /// Go on with it before asking whether the run is finished.
    pub(super) again_at_once: bool,
    /// In the middle of a walk over pageblocks that ran out of budget.
    pub(super) walking: bool,
    /// Lowest block the free-list search has seen, and whether the scanner has gone back to it.
    pub(super) fast_start_pfn: Option<Pfn>,
    pub(super) fast_start_used: bool,
    pub(super) fast_search_fail: u32,
    pub(super) search_order: u8,
    pub(super) migrate_pages: [Pfn; PAGEBLOCK_PAGES as usize],
    pub(super) migrate_count: usize,
    pub(super) targets: [Pfn; PAGEBLOCK_PAGES as usize],
    pub(super) stock: Stock,
    /// How many targets the free scanner looks for: the batch's size, less what has found one where batches look for
    /// all of theirs first.
    pub(super) wanted: u32,
    pub(super) migrate_scanned: u64,
    pub(super) free_scanned: u64,
    pub(super) last_migrated_pfn: Option<Pfn>,
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
            finish_pageblock: false,
            again_at_once: false,
            walking: false,
            fast_start_pfn: None,
            fast_start_used: false,
            fast_search_fail: 0,
            search_order: cc.order.map_or(0, Order::get),
            migrate_pages: [Pfn::default(); PAGEBLOCK_PAGES as usize],
            migrate_count: 0,
            targets: [Pfn::default(); PAGEBLOCK_PAGES as usize],
            stock: Stock::NONE,
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
    pub fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Step<CompactResult> {
        loop {
            if let (true, Some(order)) = (self.cc.direct, self.cc.request_order.or(self.cc.order)) {
                // One block is all it wants; where that is noticed late, nothing more is claimed meanwhile.
                if self.captured.is_none() {
                    m.zones[self.zone].compaction.capture.arm(order, self.cc.migratetype);
                }
            }
            let step = self.advance(m, owner, budget);
            if let Some(page) = m.zones[self.zone].compaction.capture.disarm() {
                self.captured = Some(page);
            }
            // A captured block is nobody's until the run is over, so nobody else runs before that.
            if step != Step::Working || !self.has_captured(m) {
                return step;
            }
        }
    }

    fn advance<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Step<CompactResult> {
        if !self.started {
            self.started = true;
            let (flags, highest, daemon) = (self.cc.alloc_flags, self.cc.highest, !self.cc.direct);
            let result = m.compaction_suitable(self.zone, self.cc.order, flags, highest, daemon);
            if matches!(result, CompactResult::Success | CompactResult::Skipped) {
                return Step::Done(result);
            }
            self.begin(m);
        }
        if !self.walking && !core::mem::take(&mut self.again_at_once) {
            match self.finished(m) {
                CompactResult::Continue => {}
                result => return self.end(m, result),
            }
            self.iteration_start = self.migrate_pfn;
            self.finish_pageblock =
                self.last_migrated_pfn.is_some_and(|p| p.pageblock() == self.migrate_pfn.pageblock());
        }
        let done = self.iteration(m, owner, budget);
        match done {
            None if self.has_captured(m) && !m.sh.profile.compaction.capture_before_drain => {
                self.end(m, CompactResult::Success)
            }
            None => Step::Working,
            Some(result) => self.end(m, result),
        }
    }

    /// Sets the scanners to their starting places.
    fn begin(&mut self, m: &mut Memory) {
        if self.cc.order.is_some_and(|o| m.locked(self.zone, self.cpu).compaction_restarting(o)) {
            m.reset_isolation_suitable(self.zone);
        }
        let sync = self.cc.mode != MigrateMode::Async;
        let z = &mut m.zones[self.zone];
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
        m.sh.emit(Listen::COMPACTION, || Event::CompactionBegin {
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
                    let cached = &mut m.zones[self.zone].compaction.cached_migrate_pfn;
                    cached[1] = cached[0];
                }
            }
            Isolate::Success => {
                self.update_cached = false;
                self.last_migrated_pfn = Some(match m.sh.profile.compaction.remembers_last_pageblock {
                    false => self.iteration_start,
                    true => self.migrate_pfn.minus(1).pageblock_start().max(m.zones[self.zone].start),
                });
                if let Some(result) = self.migrate_batch(m, owner) {
                    return Some(result);
                }
                if self.again_at_once {
                    return None;
                }
                if m.sh.profile.compaction.capture_before_drain && self.has_captured(m) {
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
    fn end(&mut self, m: &mut Memory, status: CompactResult) -> Step<CompactResult> {
        self.putback_migratepages(m);
        self.release_freepages(m);
        m.sh.vmstat.add(VmEvent::CompactMigrateScanned, self.migrate_scanned);
        m.sh.vmstat.add(VmEvent::CompactFreeScanned, self.free_scanned);
        let z = &m.zones[self.zone];
        let (zone_start, zone_end) = (z.start, z.end);
        let (migrate_pfn, free_pfn, mode) = (self.migrate_pfn, self.free_pfn, self.cc.mode);
        m.sh.emit(Listen::COMPACTION, || Event::CompactionEnd {
            zone_start,
            migrate_pfn,
            free_pfn,
            zone_end,
            mode,
            status,
        });
        Step::Done(status)
    }

    /// The block a direct run has captured for its request.
    pub fn captured(&self) -> Option<Pfn> {
        self.captured
    }
}
