//! Repetitions and rounds: merges the runs of one variant into one figure, and compares two
//! variants seed by seed.
//!
//! The figure says how its values are merged. Statistics of distributions come from all samples
//! together.

use crate::quantity::Quantity;
use kontig_results::{Better, Measured, Merge, Pairs, RunResult, Statistics, samples_needed, statistics};

/// The runs of a variant, one for each seed.
pub(crate) type Repetitions<'a> = Vec<&'a RunResult>;

/// All values of a quantity, over every repetition and round that has one.
fn values(quantity: &Quantity, runs: &Repetitions<'_>) -> Vec<f64> {
    runs.iter().flat_map(|run| quantity.values(run)).collect()
}

/// Each repetition that has values, with the median of its rounds.
fn by_repetition(quantity: &Quantity, runs: &Repetitions<'_>) -> Vec<(u32, f64)> {
    runs.iter().filter_map(|run| Some((run.repetition, median(quantity.values(run))?))).collect()
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| (values[(n - 1) / 2] + values[n / 2]) / 2.0)
}

/// A quantity over all repetitions and rounds of a variant; `None` if none has it.
pub(crate) fn merged(quantity: &Quantity, runs: &Repetitions<'_>) -> Option<Measured> {
    let values = values(quantity, runs);
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    let repetitions = runs.iter().filter(|run| !quantity.values(run).is_empty()).count() as u32;
    let (mut samples, mut needed) = (None, None);
    let value = match quantity.figure.merge {
        Merge::Percentile { .. } | Merge::MeanOf { .. } | Merge::StddevOf { .. } => {
            let (value, of) = quantity.pooled(runs)?;
            samples = Some(of);
            if let Merge::Percentile { p, .. } = quantity.figure.merge {
                needed = Some(samples_needed(p)).filter(|needed| of < *needed);
            }
            value
        }
        Merge::Median => median(values)?,
        Merge::Mean => statistics::mean(&values)?,
        Merge::Stddev => statistics::stddev(&values)?,
        Merge::Sum => values.iter().sum(),
        Merge::Min => low,
        Merge::Max => high,
    };
    let lacking = runs.iter().map(|run| quantity.lacking(run)).sum::<usize>() as u32;
    Some(Measured { value, low, high, repetitions, lacking, samples, samples_needed: needed })
}

/// Statistics of a variant, against the baseline unless it is the baseline. `None` for fewer than
/// two values, which have no spread, for counts that repetitions sum up, and for percentiles with
/// too few samples a value.
pub(crate) fn statistics_of(
    quantity: &Quantity,
    runs: &Repetitions<'_>,
    baseline: Option<&Repetitions<'_>>,
) -> Option<Statistics> {
    let own = values(quantity, runs);
    let base = baseline.map(|runs| values(quantity, runs));
    let better: Better = quantity.figure.better;
    (own.len() > 1 && quantity.figure.merge != Merge::Sum && !quantity.is_thin(runs))
        .then(|| Statistics::of(&own, better, base.as_deref()))
        .flatten()
}

/// A variant against the baseline. `None` if fewer than two seeds pair up, for counts that
/// repetitions sum up, and for percentiles with too few samples a value.
pub(crate) fn pairs(quantity: &Quantity, baseline: &Repetitions<'_>, variant: &Repetitions<'_>) -> Option<Pairs> {
    if quantity.figure.merge == Merge::Sum || quantity.is_thin(baseline) || quantity.is_thin(variant) {
        return None;
    }
    let (a, b) = (by_repetition(quantity, baseline), by_repetition(quantity, variant));
    let both: Vec<(f64, f64)> = (a.iter())
        .filter_map(|(repetition, x)| Some((*x, b.iter().find(|(other, _)| other == repetition)?.1)))
        .collect();
    // As shown: the ranges over all rounds.
    let range = |runs: &Repetitions<'_>| {
        let of = values(quantity, runs).into_iter();
        of.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let ((a_low, a_high), (b_low, b_high)) = (range(baseline), range(variant));
    (both.len() > 1).then(|| Pairs {
        of: both.len() as u32,
        lower: both.iter().filter(|(x, y)| y < x).count() as u32,
        higher: both.iter().filter(|(x, y)| y > x).count() as u32,
        overlap: a_low <= b_high && b_low <= a_high,
    })
}
