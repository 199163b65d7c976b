//! Holding measured figures against published ones.

use crate::experiment::Target;
use crate::result::{ExperimentResult, Row, RunResult, Score, Tally};

/// A published change counts for direction from this ratio on.
const CHANGE_THAT_COUNTS: f64 = 0.10;
/// A headline row is within reach if its change ratio is off by at most this factor.
const HEADLINE_FACTOR: f64 = 2.0;

/// Units of figures that no target names.
const UNITS: &[(&str, &str)] = &[
    ("hugepage alloc latency p50", "us"),
    ("hugepage alloc latency p90", "us"),
    ("hugepage alloc latency p95", "us"),
    ("hugepage alloc latency p99", "us"),
    ("hugepage alloc latency max", "us"),
    ("2 MiB of heap touched p50", "us"),
    ("2 MiB of heap touched p99", "us"),
    ("2 MiB of heap touched max", "us"),
    ("2M hugepages allocated", "hugepages"),
    ("share of free memory allocated as hugepages", "%"),
    ("full compaction", "s"),
    ("user", "s"),
    ("system", "s"),
    ("elapsed", "s"),
    ("kcompactd CPU time", "s"),
    ("kcompactd CPU share", "%"),
    ("kswapd CPU time", "s"),
    ("zone lock wait", "s"),
    ("time between proactive runs", "s"),
    ("proactive compaction runs", "runs"),
    ("fragmentation score before", "0-100"),
    ("fragmentation score after", "0-100"),
    ("lowest fragmentation score", "0-100"),
    ("highest fragmentation score", "0-100"),
    ("free memory before", "GiB"),
    ("failed allocations", "allocations"),
];

/// The mean of a figure over a variant's repetitions; `None` if none of them has it.
fn mean(runs: &[RunResult], variant: &str, figure: &str) -> Option<f64> {
    let values: Vec<f64> =
        runs.iter().filter(|r| r.variant == variant).filter_map(|r| r.figures.get(figure)).copied().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Patched over baseline: the last column over the first.
fn change(values: &[f64]) -> Option<f64> {
    let (first, last) = (values.first()?, values.last()?);
    (values.len() > 1 && *first > 0.0 && *last > 0.0).then(|| last / first)
}

/// One row's verdict.
fn judge(mut row: Row) -> Row {
    let measured: Option<Vec<f64>> = row.measured.iter().copied().collect();
    let (Some(measured), [first, .., last]) = (measured, row.published.as_slice()) else { return row };
    let published_change = if *first != 0.0 { (last - first).abs() / first.abs() } else { f64::INFINITY };
    if published_change >= CHANGE_THAT_COUNTS && first != last {
        let (a, b) = (measured[0], measured[measured.len() - 1]);
        row.direction_agrees = Some((b > a) == (last > first) && a != b);
    }
    if let (Some(m), Some(p)) = (change(&measured), change(&row.published)) {
        let off = m / p;
        row.ratio_off = Some(off.max(1.0 / off));
    }
    row
}

/// The table of an experiment's runs against its target, or on its own. With a target, the target's rows come first;
/// figures it does not have follow.
pub fn compare(id: &str, variants: &[String], target: Option<&Target>, runs: &[RunResult]) -> ExperimentResult {
    let mut rows: Vec<Row> = Vec::new();
    for t in target.iter().flat_map(|t| &t.row) {
        let measured = variants.iter().map(|v| mean(runs, v, &t.name)).collect();
        rows.push(judge(Row {
            name: t.name.clone(),
            unit: t.unit.clone(),
            headline: t.headline,
            published: t.values.clone(),
            measured,
            direction_agrees: None,
            ratio_off: None,
        }));
    }
    for (name, unit) in UNITS {
        let measured: Vec<Option<f64>> = variants.iter().map(|v| mean(runs, v, name)).collect();
        if rows.iter().any(|r| r.name == *name) || measured.iter().all(Option::is_none) {
            continue;
        }
        rows.push(Row {
            name: (*name).into(),
            unit: (*unit).into(),
            headline: false,
            published: Vec::new(),
            measured,
            direction_agrees: None,
            ratio_off: None,
        });
    }
    let score = score(&rows);
    let target = target.map(|t| t.id.clone()).unwrap_or_default();
    ExperimentResult {
        id: id.into(),
        machine: String::new(),
        target,
        variants: variants.to_vec(),
        rows,
        score,
        notes: Vec::new(),
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

    fn row(published: [f64; 2], measured: [f64; 2]) -> Row {
        judge(Row {
            name: "x".into(),
            unit: "us".into(),
            headline: true,
            published: published.to_vec(),
            measured: measured.map(Some).to_vec(),
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
