//! The engine's compaction on a copy of the host: the means that [`crate::check`] and
//! [`crate::bound`] share, and what moving and looking cost.

use crate::frame::State;
use crate::snapshot::Snapshot;
use kontig_mm::{CpuId, Memory, MigrateOutcome, Owner, Pfn};

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

/// Every page moves, as the host does not show pins. A large folio is split where no target of its
/// size is found, but not while it is dirty: its buffers cannot be let go then. That ends a
/// compaction of a whole node, from 6.9 on.
pub(crate) struct Owners<'a> {
    pub snapshot: &'a Snapshot,
    /// Dirty pages have been written.
    pub synced: bool,
}

impl Owner for Owners<'_> {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
        MigrateOutcome::Moved
    }
    fn split(&mut self, _: Pfn, owner: u32, numbers: &mut [u32]) -> bool {
        let dirty = self.snapshot.frame(owner as usize).state() == State::FileDirty;
        numbers.iter_mut().zip(owner..).for_each(|(number, page)| *number = page);
        self.synced || !dirty
    }
}
