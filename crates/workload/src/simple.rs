//! Two short programs: one full compaction, and watching the machine for a while.

use crate::{Benchmark, Measured};
use kontig_program::{Batch, Op, Outcome, Program};
use kontig_results::Figure;

/// Writes 1 to `vm.compact_memory`, once.
pub struct CompactMemory {
    start_ns: u64,
    took_ns: Option<u64>,
    asked: bool,
}

impl CompactMemory {
    /// A compaction not yet begun.
    #[allow(clippy::new_without_default)] // a program is made to be run, not to be a value
    pub fn new() -> CompactMemory {
        CompactMemory { start_ns: 0, took_ns: None, asked: false }
    }
}

impl Program for CompactMemory {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let now = done.last().map_or(0, |last| last.end_ns);
        if self.asked {
            self.took_ns = Some(now - self.start_ns);
            return;
        }
        self.asked = true;
        self.start_ns = now;
        todo.push(Op::Sysctl { name: "vm.compact_memory".into(), value: "1".into() });
    }
    fn progress(&self) -> f64 {
        if self.took_ns.is_some() { 1.0 } else { 0.0 }
    }
}

impl Benchmark for CompactMemory {
    fn measured(&self) -> Measured {
        let took = self.took_ns.map(|ns| ns as f64 / 1e9);
        let figure = Figure::new("full compaction", "s").lower().read_or(took, "the compaction was not finished");
        Measured { figures: vec![figure], ..Measured::default() }
    }
}

/// Sleeps, while the machine's own threads do what they do.
pub struct Watch {
    slice_ns: u64,
    slept: u32,
}

/// Parts the watch is divided into, so that its progress can be followed.
const SLICES: u32 = 100;

impl Watch {
    /// For so many seconds.
    pub fn new(seconds: f64) -> Watch {
        Watch { slice_ns: (seconds * 1e9) as u64 / u64::from(SLICES), slept: 0 }
    }
}

impl Program for Watch {
    fn next(&mut self, _done: &[Outcome], todo: &mut Batch) {
        if self.slept < SLICES {
            self.slept += 1;
            todo.push(Op::Sleep(self.slice_ns));
        }
    }
    fn progress(&self) -> f64 {
        f64::from(self.slept) / f64::from(SLICES)
    }
}

impl Benchmark for Watch {
    fn measured(&self) -> Measured {
        Measured::default()
    }
}
