//! The benchmarks, as programs: streams of operations that know nothing of the machine they run on.
//!
//! Source: the seeds, and `workloads` §1.6 for what they leave open. Every choice is a parameter of [`Workload`], so
//! that an experiment file says what was assumed.

pub mod fragmenter;
pub mod heap;
pub mod hugealloc;
pub mod latencies;
pub mod simple;
pub mod spec;
pub mod unmovable;

pub use spec::{Measurement, WORKLOADS, Workload};

use kontig_program::Program;
use kontig_results::{Ending, Reading};
use latencies::Latencies;

/// What a program has measured.
#[derive(Default)]
pub struct Measured {
    /// Its figures, in the order they are shown.
    pub figures: Vec<Reading>,
    /// Latencies of single operations.
    pub latencies: Vec<Latencies>,
    /// What ended it, if that was a rule of its own and not the end of its work.
    pub ending: Option<Ending>,
}

/// A program that measures.
pub trait Benchmark: Program {
    /// What it has measured so far.
    fn measured(&self) -> Measured;
}
