//! The effort of this kernel's compaction for more blocks: the engine's own runs on a copy of the
//! host to its end, with the blocks, moves and frames counted on the way.
//!
//! It is one write to `compact_memory`, as anybody may make it, as it is or once dirty pages have
//! been written ([`Way`]): free pages stay on CPUs' lists until the kernel takes them back, which
//! is once at the end here.

use crate::snapshot::Snapshot;
use crate::sweep::{COSTS, Ended, Owners, Way, compact, release};
use kontig_mm::{Memory, Order, Profile, Work};
use serde::Serialize;
use std::ops::ControlFlow;

/// Pageblocks visited between two counts of the free blocks.
const BUDGET: u64 = 16;

/// The cost of a compaction up to one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Effort {
    /// Blocks beyond those there were.
    pub more: u64,
    pub pages_moved: u64,
    /// Frames that compaction's two scanners looked at.
    pub frames_scanned: u64,
    /// Seconds of a CPU, at the costs of [`COSTS`].
    pub cpu_seconds: f64,
}

/// A compaction from its beginning to its end.
#[derive(Clone, PartialEq, Debug)]
pub struct Probe {
    /// Each time that there were more blocks than ever before, and the end.
    course: Vec<Effort>,
    /// Zones of which it did not reach the end.
    pub ended: Vec<Ended>,
}

impl Probe {
    /// Compacts nodes on a copy as they are, by the rules of `profile`.
    ///
    /// # Errors
    /// In one line, why the engine cannot be this host, or compaction cannot make such blocks.
    pub fn run(snapshot: &Snapshot, profile: &Profile, order: u32, nodes: &[u32]) -> Result<Probe, String> {
        Probe::of(snapshot, profile, order, nodes, Way::AsItIs)
    }

    /// Compacts nodes on a copy in this way.
    ///
    /// # Errors
    /// As of [`Probe::run`].
    pub fn of(snapshot: &Snapshot, profile: &Profile, order: u32, nodes: &[u32], way: Way) -> Result<Probe, String> {
        let order = u8::try_from(order).ok().filter(|o| *o <= kontig_mm::types::MAX_ORDER.get()).map(Order::new);
        let order = order.ok_or("compaction makes no block above the largest order of the free lists")?;
        let mut memory = snapshot.machine(profile, false)?;
        let mut owners = Owners::new(snapshot, way);
        let mut course = Course { before: blocks(&memory, order), work: Work::default(), points: Vec::new() };
        compact(&mut memory, &mut owners, nodes, BUDGET, |memory, _| {
            course.note(memory, order, false);
            ControlFlow::Continue(())
        });
        release(&mut memory);
        course.note(&mut memory, order, true);
        Ok(Probe { course: course.points, ended: owners.ended() })
    }

    /// The effort of the whole compaction.
    pub fn end(&self) -> Effort {
        self.course.last().copied().unwrap_or(Effort { more: 0, pages_moved: 0, frames_scanned: 0, cpu_seconds: 0.0 })
    }

    /// The effort until there were `more` blocks beyond those before; `None` if there never were.
    pub fn until(&self, more: u64) -> Option<Effort> {
        self.course.iter().find(|effort| effort.more >= more).copied()
    }
}

struct Course {
    before: u64,
    work: Work,
    points: Vec<Effort>,
}

impl Course {
    fn note(&mut self, memory: &mut Memory, order: Order, last: bool) {
        self.work.add(&memory.take_work());
        let more = blocks(memory, order).saturating_sub(self.before);
        if last || self.points.last().map_or(0, |effort| effort.more) < more {
            let (moved, scanned) = (self.work.migrated, self.work.migrate_scanned + self.work.free_scanned);
            let cpu_seconds = COSTS.of_compaction(moved, scanned);
            self.points.push(Effort { more, pages_moved: moved, frames_scanned: scanned, cpu_seconds });
        }
    }
}

/// Free blocks of an order, larger ones in parts.
fn blocks(memory: &Memory, order: Order) -> u64 {
    let of_zone = |zone: &kontig_mm::Zone| -> u64 {
        Order::all().filter(|o| *o >= order).map(|o| zone.nr_free(o) << (o.get() - order.get())).sum()
    };
    memory.zones().iter().map(of_zone).sum()
}
