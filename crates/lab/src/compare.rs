//! From runs to a table: repetitions merged, variants paired seed by seed, and held against what was published.
//!
//! How a figure's repetitions become one value is said by the figure itself (see [`kontig_program::figure`]);
//! percentiles come from all repetitions' samples put together. Every figure any run has becomes a row.

use crate::experiment::{Target, Variant};
use crate::remarks::remarks;
use crate::repetitions::{Repetitions, merged, pairs};
use kontig_results::{ExperimentResult, Figure, Histogram, MEASURE, Row, RunResult, Score, Tally};

/// A published change counts for direction from this ratio on.
const CHANGE_THAT_COUNTS: f64 = 0.10;
/// A headline row is within reach if its change ratio is off by at most this factor.
const HEADLINE_FACTOR: f64 = 2.0;

/// A row without anything published.
fn row(figure: &Figure, by_variant: &[Repetitions<'_>]) -> Row {
    Row {
        name: figure.name.to_string(),
        unit: figure.unit.to_string(),
        phase: figure.phase.to_string(),
        better: figure.better,
        merge: figure.merge.clone(),
        headline: false,
        published: Vec::new(),
        measured: by_variant.iter().map(|runs| merged(figure, runs)).collect(),
        pairs: (by_variant.iter().enumerate())
            .map(|(i, runs)| if i == 0 { None } else { pairs(figure, &by_variant[0], runs) })
            .collect(),
        direction_agrees: None,
        ratio_off: None,
    }
}

/// The figure a published row is about: one of the runs', or a percentile of one of their distributions.
fn published_figure(name: &str, unit: &str, runs: &[RunResult]) -> Figure {
    let known = runs.iter().flat_map(|run| &run.figures).map(|r| &r.figure);
    if let Some(figure) = known.into_iter().find(|f| f.name == name && f.phase == MEASURE) {
        return figure.clone();
    }
    let percentile = |h: &Histogram| {
        let p: f64 = name.strip_prefix(&h.name)?.strip_prefix(" p")?.parse().ok()?;
        (h.phase == MEASURE && (0.0..=100.0).contains(&p))
            .then(|| Figure::percentile(h.name.clone(), h.unit.clone(), p))
    };
    let named = Figure::new(name.to_owned(), unit.to_owned());
    runs.iter().flat_map(|run| &run.histograms).find_map(percentile).unwrap_or(named)
}

/// Patched over baseline: the last column over the first.
fn change(values: &[f64]) -> Option<f64> {
    let (first, last) = (values.first()?, values.last()?);
    (values.len() > 1 && *first > 0.0 && *last > 0.0).then(|| last / first)
}

/// One row's verdict.
fn judge(mut row: Row) -> Row {
    let measured: Option<Vec<f64>> = row.measured.iter().map(|m| m.map(|m| m.value)).collect();
    let (Some(measured), [first, .., last]) = (measured, row.published.as_slice()) else { return row };
    let published_change = if *first != 0.0 { (last - first).abs() / first.abs() } else { f64::INFINITY };
    if published_change >= CHANGE_THAT_COUNTS && first != last {
        // A measured change that would not count if it were published agrees with nothing.
        let (a, b) = (measured[0], measured[measured.len() - 1]);
        let counts = (b - a).abs() >= CHANGE_THAT_COUNTS * a.abs() && a != b;
        row.direction_agrees = Some(counts && (b > a) == (last > first));
    }
    if let (Some(m), Some(p)) = (change(&measured), change(&row.published)) {
        let off = m / p;
        row.ratio_off = Some(off.max(1.0 / off));
    }
    row
}

/// The table of an experiment's runs against its target, or on its own. With a target, the target's rows come first;
/// figures it does not have follow, in the order the runs have them.
///
/// `notes` is what had to be said about the request.
pub fn compare(
    id: &str,
    machine: &str,
    variants: &[Variant],
    target: Option<&Target>,
    notes: &[String],
    runs: &[RunResult],
) -> ExperimentResult {
    let by_variant: Vec<Repetitions<'_>> =
        variants.iter().map(|v| runs.iter().filter(|r| r.variant == v.name).collect()).collect();
    let mut rows: Vec<Row> = Vec::new();
    for t in target.iter().flat_map(|t| &t.row) {
        let figure = published_figure(&t.name, &t.unit, runs);
        rows.push(judge(Row {
            unit: t.unit.clone(),
            headline: t.headline,
            published: t.values.clone(),
            ..row(&figure, &by_variant)
        }));
    }
    for reading in runs.iter().flat_map(|run| &run.figures) {
        let figure = &reading.figure;
        if !rows.iter().any(|r| r.name == figure.name && r.phase == figure.phase) {
            rows.push(row(figure, &by_variant));
        }
    }
    ExperimentResult {
        id: id.into(),
        machine: machine.into(),
        target: target.map(|t| t.id.clone()).unwrap_or_default(),
        repetitions: by_variant.iter().map(Vec::len).max().unwrap_or(0) as u32,
        variants: variants.iter().map(|v| v.name.clone()).collect(),
        score: score(&rows),
        remarks: remarks(variants, &by_variant, notes),
        rows,
    }
}

fn score(rows: &[Row]) -> Score {
    let tally = |of: Vec<bool>| Tally { agree: of.iter().filter(|x| **x).count() as u32, of: of.len() as u32 };
    Score {
        direction: tally(rows.iter().filter_map(|r| r.direction_agrees).collect()),
        headline_within_2x: tally(
            rows.iter()
                .filter(|r| r.headline && !r.published.is_empty())
                .map(|r| r.ratio_off.is_some_and(|o| o <= HEADLINE_FACTOR))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::{Better, Measured, Merge};

    fn once(value: f64) -> Measured {
        Measured { value, low: value, high: value, repetitions: 1, samples: None, samples_needed: None }
    }

    fn row(published: [f64; 2], measured: [f64; 2]) -> Row {
        judge(Row {
            name: "x".into(),
            unit: "us".into(),
            phase: MEASURE.into(),
            better: Better::Lower,
            merge: Merge::Median,
            pairs: Vec::new(),
            headline: true,
            published: published.to_vec(),
            measured: measured.map(|value| Some(once(value))).to_vec(),
            direction_agrees: None,
            ratio_off: None,
        })
    }

    #[test]
    fn a_change_in_the_same_direction_agrees_whatever_its_size() {
        let r = row([100.0, 50.0], [10.0, 1.0]);
        assert_eq!(r.direction_agrees, Some(true));
        assert!((r.ratio_off.unwrap() - 5.0).abs() < 1e-9, "0.1 instead of 0.5 is off by 5");
        assert_eq!(row([100.0, 50.0], [1.0, 10.0]).direction_agrees, Some(false));
        assert_eq!(row([100.0, 50.0], [1.0, 1.0]).direction_agrees, Some(false), "no change is not agreement");
    }

    #[test]
    fn small_published_changes_do_not_count_for_direction_but_have_a_ratio() {
        let r = row([98.0, 98.0], [99.0, 97.0]);
        assert_eq!(r.direction_agrees, None);
        assert!(r.ratio_off.unwrap() < 1.03);
    }

    #[test]
    fn a_published_zero_has_a_direction_but_no_ratio() {
        let r = row([0.0, 20.0], [0.0, 7.0]);
        assert_eq!((r.direction_agrees, r.ratio_off), (Some(true), None));
    }
}
