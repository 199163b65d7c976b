//! Runs: everything that one run of one variant leaves behind; tables, curves and pictures are made
//! of it.

use crate::endings::Endings;
use crate::event_log::{EventCount, TimedEvent};
use crate::histogram::Histogram;
use crate::map::MemoryMap;
use crate::series::Series;
use kontig_program::Reading;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of one run of one variant. All times are virtual nanoseconds since boot.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct RunResult {
    pub experiment: String,
    /// Empty if the experiment has no cases.
    pub case: String,
    pub variant: String,
    pub repetition: u32,
    /// The seed of the run's random numbers.
    pub seed: u64,
    /// Whether anything depended on the seed.
    pub random: bool,
    /// Settings that changed no decision of the run, each with the value that boot had set.
    pub without_effect: BTreeMap<String, u32>,
    /// In the order they are shown. A run of several rounds has here those that are not of one
    /// round.
    pub figures: Vec<Reading>,
    /// The rounds, if there are several.
    pub rounds: Vec<Round>,
    /// Rules of the workload that ended measured tasks before their work was done.
    #[serde(rename = "ending")]
    pub endings: Endings,
    /// `/proc/vmstat` over the measured phases: how far each counter rose, and the final value of
    /// one that is a level.
    pub vmstat: BTreeMap<String, u64>,
    /// Work done in the measured phases, in the cost model's units.
    pub work: BTreeMap<String, u64>,
    /// Distributions of single operations. In a run of several rounds each round has its own.
    pub histograms: Vec<Histogram>,
    /// Values over time, from boot on.
    pub series: Vec<Series>,
    /// The phases of the run, without gaps.
    pub phases: Vec<Phase>,
    /// The pageblocks over time; only in the first repetition of a variant, whose map is shown.
    pub map: MemoryMap,
    /// Tracepoints of the measured phases, by time: compaction runs, kcompactd, kswapd, direct
    /// reclaim. Of more than twenty thousand, the first and the last ten thousand.
    pub events: Vec<TimedEvent>,
    /// The number of events of each tracepoint.
    pub event_counts: BTreeMap<String, EventCount>,
}

impl RunResult {
    /// `None` if it was not measured.
    pub fn figure(&self, name: &str, phase: &str) -> Option<f64> {
        self.figures.iter().find(|r| r.figure.name == name && r.figure.phase == phase)?.value
    }
}

/// One of several measurements on the same machine, without a reboot in between.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Round {
    /// Its figures, in the order they are shown.
    pub figures: Vec<Reading>,
    /// As [`RunResult::vmstat`], over the round's measured phases.
    pub vmstat: BTreeMap<String, u64>,
    /// Distributions of single operations.
    pub histograms: Vec<Histogram>,
}

/// A phase of a run.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Phase {
    pub name: String,
    pub start_ns: u64,
    pub end_ns: u64,
    /// CPU time of each task: kernel threads under the kernel's names, and `workload`.
    pub cpu: BTreeMap<String, TaskTime>,
    /// Time that all tasks together waited for zone locks.
    pub lock_wait_ns: u64,
    /// Proactive compaction runs that began in the phase.
    pub proactive_runs: u64,
}

/// CPU time of a task.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct TaskTime {
    /// In the program's own code.
    pub user_ns: u64,
    pub system_ns: u64,
}
