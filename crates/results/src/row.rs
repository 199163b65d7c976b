//! Rows of a table: a figure of each variant, beside what was published.

use crate::caveat::Caveat;
use crate::judge::JudgedStep;
use crate::statistics::Statistics;
use kontig_program::{Better, Merge};
use serde::{Deserialize, Serialize};

/// A row: a figure for each variant, published and measured.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Row {
    pub name: String,
    pub unit: String,
    /// `measure` unless the figure says otherwise; `total` for all phases together.
    pub phase: String,
    pub better: Better,
    /// How the values of repetitions were merged.
    pub merge: Merge,
    /// Whether the row counts for the headline score.
    pub headline: bool,
    /// One a variant; empty if nothing was published.
    pub published: Vec<f64>,
    /// The published figures are bounds: the measured ones must be less.
    pub below: bool,
    /// A published 0 stands for no figure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zero_is_none: bool,
    /// The part of the published work that the measured figure counts; none for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    /// One a variant; null if nothing was measured.
    pub measured: Vec<Option<Measured>>,
    /// Each variant against the baseline, seed by seed; null for the baseline, and if fewer than
    /// two seeds pair up.
    pub pairs: Vec<Option<Pairs>>,
    /// The verdict on each step from one column to the next. Empty if nothing was published, or one
    /// column only.
    pub steps: Vec<JudgedStep>,
    /// The reason why it is scored apart, if it is.
    pub caveat: Option<Caveat>,
    /// Why it is missed, if it is and a trial showed a cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<String>,
    /// Over repetitions and rounds, one a variant; null for fewer than two values.
    pub statistics: Vec<Option<Statistics>>,
}

impl Row {
    /// Whether it counts as missed: one of its steps is, or a column lacks a figure though one was
    /// published. A row with a caveat never is.
    pub fn is_missed(&self) -> bool {
        let lacks = |i: usize| self.measured.get(i).is_none_or(Option::is_none) && !self.stands_for_none(i);
        let no_figure = (0..self.published.len()).any(lacks);
        let step_missed = self.steps.iter().any(|step| step.missed(self.headline));
        self.caveat.is_none() && (no_figure || step_missed || self.keeps_bounds() == Some(false))
    }

    /// Whether a column's published figure stands for none.
    pub fn stands_for_none(&self, variant: usize) -> bool {
        self.zero_is_none && self.published.get(variant) == Some(&0.0)
    }

    /// Whether every measured figure is below the published one; `None` if no bounds were
    /// published, or a figure is missing.
    pub fn keeps_bounds(&self) -> Option<bool> {
        let figures: Option<Vec<f64>> = self.measured.iter().map(|m| m.map(|m| m.value)).collect();
        let figures = figures.filter(|figures| self.below && figures.len() == self.published.len())?;
        Some(figures.iter().zip(&self.published).all(|(measured, bound)| measured < bound))
    }
}

/// A figure of a variant, over all repetitions that have it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct Measured {
    /// The repetitions, merged as the row says.
    pub value: f64,
    /// The lowest value of a round, or of a repetition without rounds.
    pub low: f64,
    /// The highest value of a round, or of a repetition without rounds.
    pub high: f64,
    /// Repetitions that have a value.
    pub repetitions: u32,
    /// Rounds, or repetitions without rounds, that have none.
    pub lacking: u32,
    /// Samples of a percentile, of all repetitions together; null for other figures.
    pub samples: Option<u64>,
    /// Samples needed to state this percentile (see [`crate::samples_needed`]); null if there are
    /// enough.
    pub samples_needed: Option<u64>,
}

/// A variant against the baseline, each repetition against the one with the same seed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Pairs {
    /// Seeds for which both have a value.
    pub of: u32,
    /// Seeds for which the variant's value is lower.
    pub lower: u32,
    /// Seeds for which the variant's value is higher.
    pub higher: u32,
    /// Whether the ranges from the lowest to the highest value overlap, over all seeds and rounds
    /// as [`Measured`] has them.
    pub overlap: bool,
}
