//! Why rows are missed, and which differences exceed noise: sentences under the table.
//!
//! An experiment's file says what the model lacks, row by row; this is printed for missed rows
//! only. A target's row may have a published null test: the same kernel measured twice. A
//! difference no larger than that proves nothing.

use crate::names::did_you_mean;
use crate::target::{TargetRow, is_of_case};
use kontig_results::Row;
use kontig_workload::Wrong;
use serde::{Deserialize, Serialize};

/// A gap of the model, and the rows missed because of it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Lack {
    /// The case of these rows; all cases if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    pub rows: Vec<String>,
    /// First a sentence with the cause, or that none was shown; then one with what shows it best.
    /// The overview of all tables prints these two, the table's own remarks all.
    pub why: String,
}

impl Lack {
    /// Checks that all its rows are published ones.
    pub(crate) fn check(&self, rows: &[&TargetRow]) -> Result<(), Wrong> {
        let of_case = |row: &&&TargetRow| self.case.as_deref().is_none_or(|case| is_of_case(&row.case, case));
        let known: Vec<&str> = rows.iter().filter(of_case).map(|row| row.name.as_str()).collect();
        match self.rows.iter().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(Wrong::at(&["rows"], did_you_mean("row", name, &known))),
            None => Ok(()),
        }
    }
}

/// Gives each missed row of a case the cause that its experiment names first.
pub(crate) fn explain(rows: &mut [Row], lacks: &[Lack], case: &str) {
    for row in rows.iter_mut().filter(|row| row.is_missed()) {
        let of_row = |lack: &&Lack| is_of_case(&lack.case, case) && lack.rows.contains(&row.name);
        row.lack = lacks.iter().find(of_row).map(|lack| lack.why.clone());
    }
}

/// A sentence for each cause of missed rows, and one for the rows without a known cause.
pub(crate) fn missed(rows: &[Row]) -> Vec<String> {
    let mut by_cause: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
    for row in rows.iter().filter(|row| row.is_missed()) {
        match by_cause.iter_mut().find(|(cause, _)| *cause == row.lack.as_deref()) {
            Some((_, names)) => names.push(&row.name),
            None => by_cause.push((row.lack.as_deref(), vec![&row.name])),
        }
    }
    // Those without a cause come last.
    by_cause.sort_by_key(|(cause, _)| cause.is_none());
    let sentence = |(cause, names): (Option<&str>, Vec<&str>)| match cause {
        Some(cause) => format!("missed, {}: {cause}", names.join("; ")),
        None => format!("missed, no cause shown: {}", names.join("; ")),
    };
    by_cause.into_iter().map(sentence).collect()
}

/// The published differences larger than the null test's, and the measured ones larger than chance.
/// `null_tests` has the published null test of each row.
pub(crate) fn beyond_run_to_run(rows: &[Row], null_tests: &[Option<[f64; 2]>]) -> Vec<String> {
    if null_tests.iter().all(Option::is_none) {
        return Vec::new();
    }
    let size = |[a, b]: [f64; 2]| (a > 0.0 && b > 0.0).then(|| (b / a).ln().abs());
    let published = rows.iter().zip(null_tests).filter_map(|(row, null_test)| {
        let (first, last) = (row.published.first()?, row.published.last()?);
        Some((row.name.as_str(), size([*first, *last])? > size((*null_test)?)?))
    });
    let measured = rows.iter().filter(|row| !row.published.is_empty()).filter_map(|row| {
        let of_last = row.statistics.last()?.as_ref()?;
        Some((row.name.as_str(), of_last.significant?))
    });
    let sentence = |what: &str, smaller: &str, of: Vec<(&str, bool)>| {
        let those = |is: bool| {
            let names: Vec<&str> = of.iter().filter(|(_, larger)| *larger == is).map(|(name, _)| *name).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        (!of.is_empty()).then(|| format!("{what} {}; {smaller}: {}", those(true), those(false)))
    };
    let null_test =
        "published differences larger than between two runs of the same kernel (the null test of the same series):";
    let chance = "measured differences larger than from run to run (two-sided t-test, 10 %):";
    let of_published = sentence(null_test, "not larger, and in no score", published.collect());
    of_published.into_iter().chain(sentence(chance, "not larger", measured.collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::judge;

    fn row(name: &str, published: [f64; 2], measured: [f64; 2]) -> Row {
        let of = |value: f64| {
            serde_json::json!({
                "value": value, "low": value, "high": value, "repetitions": 1, "lacking": 0, "samples": null,
                "samples_needed": null,
            })
        };
        let text = serde_json::json!({
            "name": name, "unit": "events", "phase": "measure", "better": "lower", "merge": "median", "headline": false,
            "published": published, "below": false, "measured": measured.map(of), "pairs": [null, null],
            "steps": [], "caveat": null, "statistics": [null, null],
        });
        let mut row: Row = serde_json::from_value(text).expect("a row");
        row.steps = judge::steps(&published, &measured.map(Some), judge::Noise::Unknown);
        row
    }

    #[test]
    fn a_missed_row_has_its_sentence_and_one_that_is_not_missed_has_none() {
        let rows = [
            row("stalls, order < 9", [10.0, 5.0], [10.0, 20.0]),
            row("scanned", [10.0, 5.0], [10.0, 6.0]),
            row("faults", [10.0, 5.0], [10.0, 10.0]),
        ];
        let lack = |rows: &[&str], why: &str| Lack {
            case: None,
            rows: rows.iter().map(|row| (*row).into()).collect(),
            why: why.into(),
        };
        let lacks = [lack(&["scanned", "stalls, order < 9"], "nothing is throttled"), lack(&["scanned"], "no")];
        let said = |lacks: &[Lack]| {
            let mut rows = rows.clone();
            explain(&mut rows, lacks, "");
            (missed(&rows), rows.map(|row| row.lack))
        };
        let (sentences, causes) = said(&lacks);
        assert_eq!(sentences, ["missed, stalls, order < 9: nothing is throttled", "missed, no cause shown: faults"]);
        assert_eq!(causes, [Some("nothing is throttled".into()), None, None], "a row that is not missed has none");
        assert_eq!(said(&[]).0, ["missed, no cause shown: stalls, order < 9; faults"], "no file says why");
        assert_eq!(missed(&rows[1..2]), [""; 0]);
    }

    #[test]
    fn a_published_difference_counts_if_it_is_larger_than_between_two_runs_of_one_kernel() {
        let rows = [row("a", [10.0, 5.0], [1.0, 1.0]), row("b", [10.0, 9.0], [1.0, 1.0])];
        let said = beyond_run_to_run(&rows, &[Some([10.0, 12.0]), Some([10.0, 12.0])]);
        assert_eq!(said.len(), 1);
        assert!(said[0].ends_with("series): a; not larger, and in no score: b"), "{said:?}");
        assert!(beyond_run_to_run(&rows, &[None, None]).is_empty());
    }
}
