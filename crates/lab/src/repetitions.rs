//! Repetitions: how the runs of one variant become one figure, and how two variants stand seed by seed.
//!
//! How values become one is said by the figure itself; percentiles come from all repetitions' samples put together.

use kontig_results::{Figure, Histogram, Measured, Merge, Pairs, RunResult, samples_needed};

/// The runs of a variant's repetitions, by their seeds.
pub(crate) type Repetitions<'a> = Vec<&'a RunResult>;

/// A figure's own value in each repetition that has one, with the repetition.
fn values(figure: &Figure, runs: &Repetitions<'_>) -> Vec<(u32, f64)> {
    let of = |run: &RunResult| match &figure.merge {
        Merge::Percentile { of, p } => run.histograms.iter().find(|h| h.is(of, &figure.phase))?.percentile(*p),
        _ => run.figure(&figure.name, &figure.phase),
    };
    runs.iter().filter_map(|run| Some((run.repetition, of(run)?))).collect()
}

/// A figure over all repetitions of a variant; none where none of them has it.
pub(crate) fn merged(figure: &Figure, runs: &Repetitions<'_>) -> Option<Measured> {
    let mut sorted: Vec<f64> = values(figure, runs).into_iter().map(|(_, value)| value).collect();
    sorted.sort_by(f64::total_cmp);
    let (&low, &high) = (sorted.first()?, sorted.last()?);
    let n = sorted.len();
    let (mut samples, mut needed) = (None, None);
    let value = match &figure.merge {
        Merge::Percentile { of, p } => {
            let same = |h: &&Histogram| h.is(of, &figure.phase);
            let pooled = Histogram::pooled(runs.iter().flat_map(|run| &run.histograms).filter(same))?;
            samples = Some(pooled.samples());
            needed = Some(samples_needed(*p)).filter(|needed| pooled.samples() < *needed);
            pooled.percentile(*p)?
        }
        Merge::Median => (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
        Merge::Sum => sorted.iter().sum(),
        Merge::Min => low,
        Merge::Max => high,
    };
    Some(Measured { value, low, high, repetitions: n as u32, samples, samples_needed: needed })
}

/// A variant against the baseline; none where fewer than two seeds pair up, which say nothing of a spread, and for
/// counts that repetitions add to.
pub(crate) fn pairs(figure: &Figure, baseline: &Repetitions<'_>, variant: &Repetitions<'_>) -> Option<Pairs> {
    if figure.merge == Merge::Sum {
        return None;
    }
    let (a, b) = (values(figure, baseline), values(figure, variant));
    let both: Vec<(f64, f64)> = (a.iter())
        .filter_map(|(repetition, x)| Some((*x, b.iter().find(|(other, _)| other == repetition)?.1)))
        .collect();
    let range = |of: &[(u32, f64)]| {
        of.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, x)| (low.min(*x), high.max(*x)))
    };
    let ((a_low, a_high), (b_low, b_high)) = (range(&a), range(&b));
    (both.len() > 1).then(|| Pairs {
        of: both.len() as u32,
        lower: both.iter().filter(|(x, y)| y < x).count() as u32,
        higher: both.iter().filter(|(x, y)| y > x).count() as u32,
        overlap: a_low <= b_high && b_low <= a_high,
    })
}
