//! Figures: what a run measures, each declared once where it is measured.
//!
//! A [`Figure`] describes a number: name, unit, phase, which way is better, and how to merge the
//! values of several repetitions. Tables and pages show whatever figures a run has; there is no
//! other list of them. A [`Reading`] is a figure with its value, or with the reason it has none:
//! nothing measured is not 0.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A text that is fixed where a figure is declared and owned where one is read from a file.
pub type Text = Cow<'static, str>;

/// Whether a higher or a lower value is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Better {
    /// A lower value is better.
    Lower,
    /// A higher value is better.
    Higher,
    Neither,
}

/// How the values of several repetitions become one.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Merge {
    /// The percentile of all repetitions' samples put together: a mean of percentiles is no
    /// percentile.
    Percentile {
        /// The name of the distribution.
        of: Text,
        /// The percentile, 0 to 100.
        p: f64,
    },
    /// The mean of all repetitions' samples put together.
    MeanOf {
        /// The name of the distribution.
        of: Text,
    },
    StddevOf {
        /// The name of the distribution.
        of: Text,
    },
    Median,
    Mean,
    /// The standard deviation, over one less than there are values: one value has none.
    Stddev,
    /// The sum: of counts that all repetitions add to.
    Sum,
    /// The lowest: of extremes.
    Min,
    /// The highest: of extremes.
    Max,
}

impl Merge {
    /// The distribution the value is of, if it is one's.
    pub fn distribution(&self) -> Option<&Text> {
        match self {
            Merge::Percentile { of, .. } | Merge::MeanOf { of } | Merge::StddevOf { of } => Some(of),
            _ => None,
        }
    }
}

/// The description of one number that a run measures.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Figure {
    pub name: Text,
    pub unit: Text,
    /// The phase of the run it is of; [`TOTAL`] from the machine's start to the end of the run.
    pub phase: Text,
    pub better: Better,
    /// How repetitions are merged.
    pub merge: Merge,
}

pub const MEASURE: &str = "measure";

/// The phase of what is stored without one.
pub fn measure() -> Text {
    MEASURE.into()
}

/// Whether a phase is the one that goes without saying where something is stored.
pub fn is_measure(phase: &Text) -> bool {
    phase == MEASURE
}
pub const TOTAL: &str = "total";
/// The percentiles shown of every distribution.
pub const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

impl Figure {
    /// A figure of the measured phase: the median over repetitions, neither way better.
    pub fn new(name: impl Into<Text>, unit: impl Into<Text>) -> Figure {
        Figure {
            name: name.into(),
            unit: unit.into(),
            phase: MEASURE.into(),
            better: Better::Neither,
            merge: Merge::Median,
        }
    }
    /// A percentile of a distribution of times.
    pub fn percentile(of: impl Into<Text>, unit: impl Into<Text>, p: f64) -> Figure {
        let of = of.into();
        Figure::new(format!("{of} p{p}"), unit).lower().merged(Merge::Percentile { of, p })
    }
    /// Marks lower values as better.
    pub fn lower(self) -> Figure {
        Figure { better: Better::Lower, ..self }
    }
    /// Marks higher values as better.
    pub fn higher(self) -> Figure {
        Figure { better: Better::Higher, ..self }
    }
    /// Replaces the median as the way to merge.
    pub fn merged(self, merge: Merge) -> Figure {
        Figure { merge, ..self }
    }
    /// Moves the figure to another phase.
    pub fn of_phase(self, phase: impl Into<Text>) -> Figure {
        Figure { phase: phase.into(), ..self }
    }
    /// Of a task that has a name, which then stands before the figure's own and its distribution's.
    pub fn of_task(self, task: &str) -> Figure {
        let merge = match self.merge {
            Merge::Percentile { of, p } => Merge::Percentile { of: named(task, &of), p },
            Merge::MeanOf { of } => Merge::MeanOf { of: named(task, &of) },
            Merge::StddevOf { of } => Merge::StddevOf { of: named(task, &of) },
            merge => merge,
        };
        Figure { name: named(task, &self.name), merge, ..self }
    }
    /// A reading of this figure.
    pub fn read(self, value: f64) -> Reading {
        Reading { figure: self, value: Some(value), missing: Text::default() }
    }
    /// With its value, if there is one, or why there is none.
    pub fn read_or(self, value: Option<f64>, missing: impl Into<Text>) -> Reading {
        let missing = if value.is_some() { Text::default() } else { missing.into() };
        Reading { figure: self, value, missing }
    }
}

/// Prefixes a figure's name with that of its task.
pub fn named(task: &str, what: &str) -> Text {
    format!("{task}: {what}").into()
}

/// A figure of one run.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Reading {
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub figure: Figure,
    /// Its value; none where nothing was measured.
    pub value: Option<f64>,
    /// Why there is no value.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "str::is_empty"))]
    pub missing: Text,
}

/// Samples it takes until a percentile can be told: with fewer, the chance that all samples lie on
/// one side of it is above 5 %, and no bound from them holds it. Six for the median, 59 for p95,
/// 299 for p99, 2,995 for p99.9.
pub fn samples_needed(p: f64) -> u64 {
    let below = (p / 100.0).clamp(0.0, 1.0);
    let one_side = |n: f64| below.powf(n) + (1.0 - below).powf(n);
    // The likelier side decides; the other adds next to nothing but around the median, where a step
    // or two is missing.
    let first = (0.05f64.ln() / below.max(1.0 - below).ln()).ceil();
    if !first.is_finite() || first < 1.0 {
        return 1;
    }
    (0..4).map(|more| first + f64::from(more)).find(|n| one_side(*n) <= 0.05).unwrap_or(first) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tasks_figure_and_the_distribution_it_comes_from_bear_the_tasks_name() {
        let figure = Figure::percentile("wait", "us", 99.0).of_task("a");
        assert_eq!(figure.name, "a: wait p99");
        assert_eq!(figure.merge, Merge::Percentile { of: "a: wait".into(), p: 99.0 });
    }

    #[test]
    fn a_percentile_takes_as_many_samples_as_bound_it_with_95_percent_confidence() {
        let needed = |p| samples_needed(p);
        assert_eq!([needed(50.0), needed(90.0), needed(95.0), needed(99.0), needed(99.9)], [6, 29, 59, 299, 2995]);
        assert_eq!([needed(5.0), needed(10.0), needed(25.0), needed(75.0)], [59, 29, 11, 11]);
        assert_eq!([needed(0.0), needed(100.0)], [1, 1]);
    }
}
