//! Tables: what an experiment's runs say together, each figure a row, beside what was published.
//!
//! [`Reproduction`] is the JSON of `kontig reproduce --json`.

use crate::ageing::Ageing;
use crate::caveat::Caveat;
use crate::judge::Step;
use crate::score::Score;
use crate::statistics::Statistics;
use kontig_program::{Better, Merge};
use serde::{Deserialize, Serialize};

/// Schema of [`Reproduction`].
pub const REPRODUCE_SCHEMA: &str = "kontig.reproduce/3";

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
    /// One entry for each experiment, in the order asked for; one for each case of an experiment that has several.
    pub experiments: Vec<ExperimentResult>,
}

/// The table of one experiment, or of one case of it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ExperimentResult {
    /// The experiment's name.
    pub id: String,
    /// The case's name; empty of an experiment that has no cases.
    pub case: String,
    /// The machine it ran on.
    pub machine: String,
    /// The target file its rows are held against; empty if it has none.
    pub target: String,
    /// How often each variant was run, each time with another seed.
    pub repetitions: u32,
    /// How often the measurement was made on one machine, without a boot in between, in each of them.
    pub rounds: u32,
    /// The variants, baseline first: the columns of every row.
    pub variants: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Figures round by round, where there are rounds and a series of them was published.
    pub ageing: Vec<Ageing>,
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

impl Row {
    /// Whether it counts as missed: any of its steps is, or a column has no figure though one was published. A row that is scored apart never is.
    pub fn is_missed(&self) -> bool {
        let no_figure =
            !self.published.is_empty() && (self.measured.is_empty() || self.measured.iter().any(Option::is_none));
        let step_missed = self.steps.iter().any(|step| step.missed(self.headline));
        self.caveat.is_none() && (no_figure || step_missed || self.keeps_bounds() == Some(false))
    }

    /// Whether every measured figure is below the published one; null where no bounds were published, or a figure lacks.
    pub fn keeps_bounds(&self) -> Option<bool> {
        let figures: Option<Vec<f64>> = self.measured.iter().map(|m| m.map(|m| m.value)).collect();
        let figures = figures.filter(|figures| self.below && figures.len() == self.published.len())?;
        Some(figures.iter().zip(&self.published).all(|(measured, bound)| measured < bound))
    }
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
    /// The published figures are bounds: what is measured has to be less.
    pub below: bool,
    /// Measured figures, one a variant; null where nothing was measured.
    pub measured: Vec<Option<Measured>>,
    /// Each variant against the baseline, seed by seed; null for the baseline and where fewer than two seeds pair up.
    pub pairs: Vec<Option<Pairs>>,
    /// How the row's changes stand to what was published: a step from each column to the next. Empty where nothing was
    /// published, or in one column only.
    pub steps: Vec<Step>,
    /// Why it is scored apart, if it is.
    pub caveat: Option<Caveat>,
    /// Statistics over repetitions and rounds, one a variant; null where there are fewer than two values.
    pub statistics: Vec<Option<Statistics>>,
}

/// A figure of a variant, over all repetitions that have it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct Measured {
    /// The repetitions merged as the row says.
    pub value: f64,
    /// The lowest of its values: one of each round, or of each repetition without rounds.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// How many repetitions have it.
    pub repetitions: u32,
    /// How many rounds, or repetitions without rounds, have no value of it.
    pub lacking: u32,
    /// The samples behind a percentile, of all repetitions together; null for other figures.
    pub samples: Option<u64>,
    /// How many it would take to tell this percentile (see [`crate::samples_needed`]); null where there are enough.
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
    /// Whether the two ranges have a value in common: from the lowest to the highest of all seeds and rounds, as [`Measured`] has them.
    pub overlap: bool,
}
