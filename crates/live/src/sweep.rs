//! The engine's compaction on a copy of the host: the means that [`crate::check`] and
//! [`crate::bound`] share, and what moving and looking cost.

use crate::frame::State;
use crate::snapshot::Snapshot;
use kontig_mm::kcompactd::NodeSweep;
use kontig_mm::{CpuId, Memory, MigrateOutcome, NodeId, Owner, Pfn, Step};
use serde::Serialize;
use std::ops::ControlFlow;

/// Costs of a compaction on a CPU of its own.
pub struct Costs {
    /// Nanoseconds for a page moved: unmapped, copied, mapped again.
    pub moved: f64,
    /// Nanoseconds for a frame looked at by either scanner.
    pub scanned: f64,
    /// Seconds until a preparation moves its first page: CPUs' lists are emptied, and the writing
    /// process is started.
    pub start: f64,
}

/// Measured on Linux 6.18 with two virtual CPUs of an EPYC. A frame: five writes to
/// `compact_memory` in a row, of which the last four found nothing to move, took 15.5 ms of a CPU
/// each for 4.31 million frames. A page: 15 preparations of `kontig trial` took 2,120 to 2,850 ns
/// of a CPU for each page moved, frames included. The beginning: 17 to 47 ms in those.
pub const COSTS: Costs = Costs { moved: 2400.0, scanned: 3.6, start: 0.03 };

impl Costs {
    /// Seconds of a preparation.
    pub fn seconds(&self, pages_moved: u64, frames_scanned: u64) -> f64 {
        self.start + self.of_compaction(pages_moved, frames_scanned)
    }

    /// Seconds of the compaction alone.
    pub fn of_compaction(&self, pages_moved: u64, frames_scanned: u64) -> f64 {
        (pages_moved as f64 * self.moved + frames_scanned as f64 * self.scanned) / 1e9
    }
}

/// Makes CPUs give back the free pages they keep.
pub(crate) fn release(memory: &mut Memory) {
    (0..memory.nr_cpus()).for_each(|cpu| memory.drain_cpu(CpuId::new(cpu)));
}

/// The preparation for a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Nothing: one write to `compact_memory`.
    AsItIs,
    /// Dirty pages of files are written, as `sync` does.
    Synced,
}

/// Where a compaction ended before its scanners met.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ended {
    pub node: u32,
    pub zone: String,
    /// The first frame of the large dirty folio that it could not split.
    #[serde(rename = "frame")]
    pub pfn: usize,
    /// How far into the zone that is, from 0 to 100.
    pub percent: u64,
}

/// Compacts nodes one after the other, and looks after each step of `budget` pageblocks, with the
/// number of the node; the look may end it.
pub(crate) fn compact(
    memory: &mut Memory,
    owners: &mut Owners,
    nodes: &[u32],
    budget: u64,
    mut look: impl FnMut(&mut Memory, usize) -> ControlFlow<()>,
) {
    for (nr, node) in nodes.iter().enumerate() {
        let mut sweep = NodeSweep::new(NodeId::new(*node as usize), CpuId::new(0), false);
        while sweep.step(memory, owners, budget) == Step::Working {
            if look(memory, nr).is_break() {
                return;
            }
        }
    }
}

/// Every page moves, as the host does not show pins, but for locked ones where it leaves them. A
/// large folio is split where no target of its size is found, but not while it is dirty: its
/// buffers cannot be let go then. That ends a compaction of a whole zone, from 6.9 on.
pub(crate) struct Owners<'a> {
    snapshot: &'a Snapshot,
    way: Way,
    keeps_locked: bool,
    /// Folios that were not split; the compaction of their zone has not gone on since.
    ended: Vec<usize>,
}

impl<'a> Owners<'a> {
    pub fn new(snapshot: &'a Snapshot, way: Way) -> Owners<'a> {
        Owners { snapshot, way, keeps_locked: snapshot.keeps_locked(), ended: Vec::new() }
    }

    /// Where the compaction of a zone ended early.
    pub fn ended(&self) -> Vec<Ended> {
        let of = |pfn: &usize| {
            let zone = self.snapshot.zones.iter().find(|zone| zone.frames().contains(pfn))?;
            let percent = (*pfn as u64 - zone.start) * 100 / zone.spanned.max(1);
            Some(Ended { node: zone.node, zone: zone.name.clone(), pfn: *pfn, percent })
        };
        self.ended.iter().filter_map(of).collect()
    }

    /// Forgets the last folio that was not split, if it is of the zone of this frame.
    fn goes_on(&mut self, pfn: usize) {
        let both = |last: usize| {
            self.snapshot.zones.iter().any(|zone| zone.frames().contains(&last) && zone.frames().contains(&pfn))
        };
        if self.ended.last().copied().is_some_and(both) {
            self.ended.pop();
        }
    }
}

impl Owner for Owners<'_> {
    fn may_isolate(&mut self, pfn: Pfn) -> bool {
        let pfn = pfn.index();
        self.goes_on(pfn);
        // A locked page is never moved, so it is still where it was found.
        !(self.keeps_locked && self.snapshot.frame(pfn).state() == State::Locked)
    }
    fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
        MigrateOutcome::Moved
    }
    fn split(&mut self, pfn: Pfn, owner: u32, numbers: &mut [u32]) -> bool {
        let dirty = self.snapshot.frame(owner as usize).state() == State::FileDirty;
        numbers.iter_mut().zip(owner..).for_each(|(number, page)| *number = page);
        let splits = self.way == Way::Synced || !dirty;
        if !splits {
            let pfn = pfn.index();
            self.goes_on(pfn);
            self.ended.push(pfn);
        }
        splits
    }
}
