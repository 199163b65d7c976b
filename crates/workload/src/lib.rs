//! The benchmarks, as programs: streams of operations that know nothing of the machine they run on.
//!
//! Source: the seeds, and `workloads` §1.6 for what they leave open. Every choice is a parameter of [`Workload`], so
//! that an experiment file says what was assumed.

pub mod fragmenter;
pub mod heap;
pub mod hugealloc;
pub mod simple;
pub mod spec;
pub mod unmovable;

pub use spec::{WORKLOADS, Workload};

use hdrhistogram::Histogram;
use kontig_sim::Program;

/// What a program has measured.
#[derive(Default)]
pub struct Measured {
    /// Figures by name.
    pub figures: Vec<(&'static str, f64)>,
    /// Latencies in ns, with what they are of.
    pub latencies: Vec<(&'static str, Histogram<u64>)>,
}

/// A program that measures.
pub trait Benchmark: Program {
    /// What it has measured so far.
    fn measured(&self) -> Measured;
    /// As the machine runs it.
    fn into_program(self: Box<Self>) -> Box<dyn Program>;
}

/// An empty latency histogram: three significant figures, from 1 ns to ten hours.
fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 36_000_000_000_000, 3).expect("the bounds are within the library's")
}
