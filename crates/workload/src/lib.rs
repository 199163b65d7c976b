//! The benchmarks, as programs: streams of operations that know nothing of the machine they run on.
//!
//! Source: the seeds, and `workloads` §1.6 for what they leave open. Every choice is a parameter of [`Workload`], so
//! that an experiment file says what was assumed.

pub mod figure;
pub mod fragmenter;
pub mod heap;
pub mod hugealloc;
pub mod simple;
pub mod spec;
pub mod unmovable;

pub use spec::{Measurement, WORKLOADS, Workload};

use figure::{Latencies, Reading};
use kontig_program::Program;
use serde::{Deserialize, Serialize};

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

/// The rule by which a program stopped, and how far it had come.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Ending {
    /// The rule, such as `the first failed allocation`.
    pub rule: String,
    /// The share of its goal it had reached, %; none where the goal was nothing.
    pub reached: Option<f64>,
    /// The goal, such as `the free memory`.
    pub goal: String,
    /// How to have it otherwise.
    pub remedy: String,
}

/// A program that measures.
pub trait Benchmark: Program {
    /// What it has measured so far.
    fn measured(&self) -> Measured;
}
