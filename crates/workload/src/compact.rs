//! One full compaction, asked for by `vm.compact_memory`.

use crate::benchmark::{Benchmark, Measured, Start};
use kontig_program::{Batch, Figure, Op, Outcome, Program};
use serde::{Deserialize, Serialize};

/// One full compaction of all zones.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Compact {}

impl Benchmark for Compact {
    type Program = CompactMemory;

    fn program(&self, _: &Start) -> Result<CompactMemory, String> {
        Ok(CompactMemory { start_ns: 0, took_ns: None, asked: false })
    }

    fn measured(&self, copies: &[&CompactMemory]) -> Measured {
        // Side by side, the last to end says how long it took.
        let took: Option<Vec<u64>> = copies.iter().map(|copy| copy.took_ns).collect();
        let took = took.and_then(|all| all.into_iter().max()).map(|ns| ns as f64 / 1e9);
        let figure = Figure::new("full compaction", "s").lower().read_or(took, "the compaction was not finished");
        Measured { figures: vec![figure], ..Measured::default() }
    }
}

/// Writes 1 to `vm.compact_memory`, once.
#[derive(Clone)]
pub struct CompactMemory {
    start_ns: u64,
    took_ns: Option<u64>,
    asked: bool,
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
