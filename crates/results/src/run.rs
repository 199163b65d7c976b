//! Runs: everything one run of one variant leaves behind, from which tables, curves and pictures are made.

use crate::endings::Endings;
use crate::event_log::{EventCount, TimedEvent};
use crate::histogram::Histogram;
use crate::map::MemoryMap;
use crate::series::Series;
use kontig_program::Reading;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything one run of one variant left behind. All times are virtual nanoseconds since the machine started.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct RunResult {
    /// The experiment.
    pub experiment: String,
    /// The experiment's case; empty if it has none.
    pub case: String,
    /// The variant.
    pub variant: String,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// The seed of this run's randomness.
    pub seed: u64,
    /// Whether anything in it depended on the seed.
    pub random: bool,
    /// The settings that made no difference to the run, with the value boot had set: every decision came out as with that.
    pub without_effect: BTreeMap<String, u32>,
    /// Its figures, in the order they are shown; of a run of several rounds, those that are not of one round.
    pub figures: Vec<Reading>,
    /// What each round measured, if there are several.
    pub rounds: Vec<Round>,
    /// What ended measured tasks, where that was a rule of the workload's and not the end of its work.
    #[serde(rename = "ending")]
    pub endings: Endings,
    /// `/proc/vmstat` events over the measured phase.
    pub vmstat: BTreeMap<String, u64>,
    /// Work done over the measured phase, in the cost model's units.
    pub work: BTreeMap<String, u64>,
    /// Distributions of single operations; of a run of several rounds, each has its own.
    pub histograms: Vec<Histogram>,
    /// Values over time, from the machine's start on.
    pub series: Vec<Series>,
    /// Phases of the run, without a gap.
    pub phases: Vec<Phase>,
    /// The pageblocks over time; empty but in a variant's first repetition, whose map is the one that is shown.
    pub map: MemoryMap,
    /// Tracepoints of the measured phase, by time: compaction runs, kcompactd, kswapd, direct reclaim. Where there are
    /// more than twenty thousand, the first and the last ten thousand.
    pub events: Vec<TimedEvent>,
    /// How many there were, by the tracepoint's name.
    pub event_counts: BTreeMap<String, EventCount>,
}

impl RunResult {
    /// The value of a figure of a phase, if it was measured.
    pub fn figure(&self, name: &str, phase: &str) -> Option<f64> {
        self.figures.iter().find(|r| r.figure.name == name && r.figure.phase == phase)?.value
    }
}

/// One of several measurements on the same machine, which was not booted in between.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Round {
    /// Its figures, in the order they are shown.
    pub figures: Vec<Reading>,
    /// `/proc/vmstat` events over its measured phases.
    pub vmstat: BTreeMap<String, u64>,
    /// Distributions of single operations.
    pub histograms: Vec<Histogram>,
}

/// A stretch of a run.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Phase {
    /// Its name, such as `fill`.
    pub name: String,
    /// When it began, ns.
    pub start_ns: u64,
    /// When it ended, ns.
    pub end_ns: u64,
    /// The time each task spent on a CPU in it: kernel threads by the kernel's names, and `workload`.
    pub cpu: BTreeMap<String, TaskTime>,
    /// Time all tasks together waited for zone locks, ns.
    pub lock_wait_ns: u64,
    /// Proactive compaction runs begun.
    pub proactive_runs: u64,
}

/// Time on a CPU, ns.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct TaskTime {
    /// In a program's own code.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}
