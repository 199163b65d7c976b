//! Tables: the runs of an experiment merged, each figure a row, beside the published figures.
//!
//! [`Reproduction`] is the JSON of `kontig reproduce --json`.

use crate::ageing::Ageing;
use crate::ended::Ended;
use crate::row::{Pairs, Row};
use crate::score::Score;
use crate::seeds::Seeds;
use serde::{Deserialize, Serialize};

/// The schema that [`Reproduction`] names.
pub const REPRODUCE_SCHEMA: &str = "kontig.reproduce/6";

/// The answer of `kontig reproduce`: every experiment with its rows and score.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Reproduction {
    /// Always [`REPRODUCE_SCHEMA`] when written.
    pub schema: String,
    /// The seed of the first repetition, where each further one adds 1; or each repetition's.
    pub seed: Seeds,
    /// Wall-clock time of the whole command.
    pub wall_s: f64,
    /// The largest resident memory of the process.
    pub peak_rss_bytes: u64,
    /// In the order asked for. An experiment with cases has an entry for each.
    pub experiments: Vec<Answer>,
}

/// The schema that [`Comparison`] names.
pub const COMPARE_SCHEMA: &str = "kontig.compare/4";

/// The answer of `kontig compare`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Comparison {
    /// Always [`COMPARE_SCHEMA`] when written.
    pub schema: String,
    /// Those that are compared, the one with the baseline first.
    pub results: Vec<Compared>,
    /// In the first result's order.
    pub experiments: Vec<Answer>,
}

/// A stored result that is compared with others.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Compared {
    /// Its directory, as it was named.
    pub name: String,
    /// The seeds of its runs: those that another result has, too, are paired.
    pub seeds: Vec<u64>,
}

/// An experiment's table with its conclusion.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Answer {
    /// The conclusion drawn from the table, a sentence each. Sentences that begin with spaces
    /// belong to the one before. Empty for a single variant, and where figures were published:
    /// there `score` is the conclusion.
    pub conclusion: Vec<String>,
    #[serde(flatten)]
    pub result: ExperimentResult,
}

/// The table of one experiment, or of one case of it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ExperimentResult {
    pub id: String,
    /// Empty if the experiment has no cases.
    pub case: String,
    pub machine: String,
    /// The target its rows are compared with; empty if there is none.
    pub target: String,
    /// Runs of each variant, each with another seed; the fewest, if they differ.
    pub repetitions: u32,
    /// Measurements on one machine without a reboot, in each repetition.
    pub rounds: u32,
    /// The columns of every row, baseline first.
    pub variants: Vec<String>,
    /// Variants that differ in one number alone, three or more; several such series if the variants
    /// are of several kernels or machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<Sweep>,
    pub rows: Vec<Row>,
    /// Figures round by round, if a series was published.
    pub ageing: Vec<Ageing>,
    pub score: Score,
    /// The publication of the same workload under other kernels or settings, if there is no target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Remark>,
    /// Facts needed to read the rows correctly.
    pub remarks: Vec<Remark>,
    /// The rules that ended the runs of each variant before their work was done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endings: Vec<Vec<Ended>>,
}

/// Variants that differ in one number alone.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Sweep {
    /// The kernel and machine that these variants share and those of other sweeps do not; empty of
    /// a single sweep.
    pub of: String,
    /// A sysctl, or a parameter of the workload.
    pub setting: String,
    /// The unit of its values; empty if they have none.
    pub unit: String,
    /// The columns; the others are held against the first.
    pub variants: Vec<usize>,
    /// The value of each.
    pub values: Vec<f64>,
    /// For each row, each of them against the first seed by seed; empty if the first is the table's
    /// baseline, as then the rows have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Vec<Option<Pairs>>>,
}

/// The remark on runs that no seed changes.
pub const NOTHING_IS_RANDOM: &str =
    "nothing in this workload is random: the seed has no effect, and every variant runs once";

/// A sentence about one variant or all of them.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Remark {
    /// The column; null for all.
    pub variant: Option<usize>,
    pub text: String,
}
