//! What an experiment produced, as stored and as printed for machines.
//!
//! [`Reproduction`] is the JSON of `kontig reproduce --json`; [`RunResult`] is everything one run of one variant
//! left behind, from which tables, curves and pictures are made.

use kontig_workload::Ending;
pub use kontig_workload::figure::{Better, Figure, MEASURE, Merge, Reading, TOTAL, samples_needed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema of [`Reproduction`].
pub const REPRODUCE_SCHEMA: &str = "kontig.reproduce/2";

/// The answer of `kontig reproduce`: every experiment with its rows and score.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Reproduction {
    /// [`REPRODUCE_SCHEMA`].
    pub schema: String,
    /// The seed of the first repetition; each further one has the next.
    pub seed: u64,
    /// Wall-clock time of the whole command, seconds.
    pub wall_s: f64,
    /// Largest resident memory of the process, bytes.
    pub peak_rss_bytes: u64,
    /// One entry for each experiment, in the order asked for.
    pub experiments: Vec<ExperimentResult>,
}

/// One experiment's table.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ExperimentResult {
    /// The experiment's name.
    pub id: String,
    /// The machine it ran on.
    pub machine: String,
    /// The target file its rows are held against; empty if it has none.
    pub target: String,
    /// How often each variant was run, each time with another seed.
    pub repetitions: u32,
    /// The variants, baseline first: the columns of every row.
    pub variants: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// How many rows agree.
    pub score: Score,
    /// What a reader must know to read the rows rightly.
    pub remarks: Vec<Remark>,
}

/// A sentence about a variant, or about all of them.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Remark {
    /// The variant's column; null for all.
    pub variant: Option<usize>,
    /// The sentence.
    pub text: String,
}

/// One row: a figure for each variant, published and measured.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Row {
    /// What is measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The phase of the run it is of: `measure` unless the figure says otherwise, `total` for all together.
    pub phase: String,
    /// Which way is better.
    pub better: Better,
    /// How repetitions were merged.
    pub merge: Merge,
    /// Whether the row counts for the headline score.
    pub headline: bool,
    /// Published figures, one a variant; empty where nothing was published.
    pub published: Vec<f64>,
    /// Measured figures, one a variant; null where nothing was measured.
    pub measured: Vec<Option<Measured>>,
    /// Each variant against the baseline, seed by seed; null for the baseline and where fewer than two seeds pair up.
    pub pairs: Vec<Option<Pairs>>,
    /// Whether baseline to patched moves the same way; null where the published change is below 10 % or missing.
    pub direction_agrees: Option<bool>,
    /// (measured change ratio) / (published change ratio), folded to be at least 1; null where undefined.
    pub ratio_off: Option<f64>,
}

/// A figure of a variant, over all repetitions that have it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct Measured {
    /// The repetitions merged as the row says.
    pub value: f64,
    /// The lowest of the repetitions' own values.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// How many repetitions have it.
    pub repetitions: u32,
    /// The samples behind a percentile, of all repetitions together; null for other figures.
    pub samples: Option<u64>,
    /// How many it would take to tell this percentile (see [`samples_needed`]); null where there are enough.
    pub samples_needed: Option<u64>,
}

/// A variant against the baseline, each repetition with the same seed's.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Pairs {
    /// Seeds that both have a value for.
    pub of: u32,
    /// Seeds for which the variant's value is lower.
    pub lower: u32,
    /// Seeds for which it is higher.
    pub higher: u32,
    /// Whether the two ranges over the seeds have a value in common.
    pub overlap: bool,
}

/// How many rows agree, of how many that count.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Tally {
    /// Rows that agree.
    pub agree: u32,
    /// Rows that count.
    pub of: u32,
}

/// An experiment's score.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Score {
    /// Rows whose direction agrees, of those with a published change of 10 % or more.
    pub direction: Tally,
    /// Headline rows whose change ratio is within 2× of the published one.
    pub headline_within_2x: Tally,
}

/// Everything one run of one variant left behind. All times are virtual nanoseconds since the machine started.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct RunResult {
    /// The experiment.
    pub experiment: String,
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
    /// Its figures, in the order they are shown.
    pub figures: Vec<Reading>,
    /// What ended the measurement, if that was a rule of the workload's and not the end of its work.
    pub ending: Option<Ending>,
    /// `/proc/vmstat` events over the measured phase.
    pub vmstat: BTreeMap<String, u64>,
    /// Work done over the measured phase, in the cost model's units.
    pub work: BTreeMap<String, u64>,
    /// Distributions of single operations.
    pub histograms: Vec<Histogram>,
    /// Values over time, from the machine's start on.
    pub series: Vec<Series>,
    /// Phases of the run, without a gap.
    pub phases: Vec<Phase>,
    /// The pageblocks over time.
    pub map: MemoryMap,
    /// Tracepoints of the measured phase, by time: compaction runs, kcompactd, kswapd, direct reclaim. Where there are
    /// more than twenty thousand, the first and the last ten thousand.
    pub events: Vec<TimedEvent>,
    /// How many there were, by the tracepoint's name.
    pub event_counts: BTreeMap<String, EventCount>,
}

/// Events of one kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct EventCount {
    /// How often it happened.
    pub happened: u64,
    /// How many of those are not among the events kept.
    pub dropped: u64,
}

impl RunResult {
    /// The value of a figure of a phase, if it was measured.
    pub fn figure(&self, name: &str, phase: &str) -> Option<f64> {
        self.figures.iter().find(|r| r.figure.name == name && r.figure.phase == phase)?.value
    }
}

/// A distribution: how many operations fell into each bucket.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Histogram {
    /// What was measured, such as `hugepage alloc latency`.
    pub name: String,
    /// Unit of the bucket bounds.
    pub unit: String,
    /// Upper bound of the bucket and the number in it; ascending, no empty buckets. The last bound is the longest
    /// operation's time exactly; the others are within a thousandth.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// How many operations there are.
    pub fn samples(&self) -> u64 {
        self.buckets.iter().map(|b| b.1).sum()
    }

    /// The smallest bucket bound that at least `p` percent of the operations do not exceed; none if there are none.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        // The tolerance keeps a rounding error from asking for one more sample than there is a share of.
        let wanted = (p * self.samples() as f64 / 100.0 - 1e-6).ceil();
        let mut seen = 0;
        let reached = |b: &&(f64, u64)| {
            seen += b.1;
            seen as f64 >= wanted
        };
        self.buckets.iter().find(reached).or(self.buckets.last()).map(|b| b.0)
    }

    /// The distribution of several runs' operations together; none of no run.
    pub fn pooled<'a>(of: impl IntoIterator<Item = &'a Histogram>) -> Option<Histogram> {
        let mut of = of.into_iter();
        let mut all = of.next()?.clone();
        all.buckets.extend(of.flat_map(|h| h.buckets.iter().copied()));
        all.buckets.retain(|b| b.0.is_finite());
        all.buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.buckets.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        Some(all)
    }
}

/// A value over time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Series {
    /// What it is, such as `fragmentation score`.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Time in ns and value.
    pub points: Vec<(u64, f64)>,
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

/// An event with its time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct TimedEvent {
    /// When it happened on the simulated machine, ns.
    pub at_ns: u64,
    /// The tracepoint in the kernel's format.
    pub event: String,
}

/// The machine's pageblocks at several moments.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Default)]
pub struct MemoryMap {
    /// The zones, in order; their blocks follow each other in every frame.
    pub zones: Vec<MapZone>,
    /// The moments.
    pub frames: Vec<MapFrame>,
}

/// A zone's part of every frame.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct MapZone {
    /// Such as `node 0 Normal`.
    pub name: String,
    /// Number of pageblocks.
    pub blocks: u32,
}

/// One moment: a byte for each pageblock (see [`Cell`]), raw DEFLATE and base64.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct MapFrame {
    /// When, ns.
    pub at_ns: u64,
    /// The phase's name.
    pub phase: String,
    /// Free pages at that moment.
    pub free_pages: u64,
    /// The highest of the nodes' scores (share of a node's free memory not in huge blocks, 0–100).
    pub score: f64,
    /// The cells, `base64(deflate_raw(bytes))`.
    pub cells: String,
}

/// A pageblock's state in a map: migratetype in bits 0–1 (unmovable, movable, reclaimable, highatomic), the class
/// below in bits 2–5, and bit 6 set if it holds pages that cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cell {
    /// Free as a whole: a huge page at hand.
    Free = 0,
    /// One huge page of a user.
    HugeUser = 1,
    /// One huge page of the kernel.
    HugeKernel = 2,
    /// Up to a quarter of its pages in use.
    Quarter = 3,
    /// Up to half.
    Half = 4,
    /// Up to three quarters.
    ThreeQuarters = 5,
    /// More, but not all.
    Nearly = 6,
    /// All pages in use, singly.
    Full = 7,
    /// Reserved for good.
    Reserved = 8,
}

/// Bit of a map byte: the block holds pages that cannot be moved.
pub const CELL_HAS_UNMOVABLE: u8 = 1 << 6;

impl Cell {
    /// The map byte for a block of this class.
    pub fn byte(self, migratetype: u8, has_unmovable: bool) -> u8 {
        migratetype | (self as u8) << 2 | if has_unmovable { CELL_HAS_UNMOVABLE } else { 0 }
    }
}
