//! The first difference between two results of one request, in a line.

use crate::plan::key;
use crate::store::StoredResult;
use kontig_results::ExperimentResult;
use std::collections::BTreeMap;

impl StoredResult {
    /// The first difference between this result and another of the same request; `None` if they are
    /// equal. Measurements come before tables made of them.
    pub fn first_difference(&self, other: &StoredResult) -> Option<String> {
        if (&self.seed, &self.inputs, &self.input_sha256) != (&other.seed, &other.inputs, &other.input_sha256) {
            return Some("the results differ in what was asked for".into());
        }
        let runs = differing(&self.runs, &other.runs).map(|d| match d {
            Differing::Values(path, a, b) if a.sha256 != b.sha256 => {
                format!("{path}: sha256 {} before, {} now", a.sha256, b.sha256)
            }
            Differing::Values(path, a, b) => format!("{path}: {} bytes before, {} now", a.bytes, b.bytes),
            Differing::Gone(path) => format!("{path}: not produced now"),
            Differing::New(path) => format!("{path}: not produced before"),
        });
        let tables = || {
            let by_name =
                |r: &'_ StoredResult| r.experiments.iter().map(|e| (key(&e.id, &e.case), e.clone())).collect();
            let (before, now): (BTreeMap<_, _>, BTreeMap<_, _>) = (by_name(self), by_name(other));
            differing(&before, &now).map(|d| match d {
                Differing::Values(name, a, b) => format!("{name}, {}", first_difference_of_tables(a, b)),
                Differing::Gone(name) => format!("{name}: no table now"),
                Differing::New(name) => format!("{name}: no table before"),
            })
        };
        let pace = || {
            differing(&self.pace, &other.pace).map(|d| match d {
                Differing::Values(name, a, b) => {
                    let first = a.iter().zip(b).find(|(a, b)| a != b);
                    let point = first.map(|(a, _)| format!("{} at a pause of {} us", a.variant, a.pause_us));
                    let lengths = || format!("{} points before, {} now", a.len(), b.len());
                    format!("{name}, pace sweep: {}", point.unwrap_or_else(lengths))
                }
                Differing::Gone(name) => format!("{name}: no pace sweep now"),
                Differing::New(name) => format!("{name}: no pace sweep before"),
            })
        };
        let about = |r: &StoredResult| format!("schema {}, version {}", r.schema, r.version);
        let rest = || match (about(self), about(other)) {
            (before, now) if before != now => Some(format!("{before} before, {now} now")),
            _ => (self != other).then(|| "the tables come in another order".into()),
        };
        runs.or_else(tables).or_else(pace).or_else(rest)
    }
}

/// The first difference of two maps.
enum Differing<'a, T> {
    Values(&'a str, &'a T, &'a T),
    Gone(&'a str),
    New(&'a str),
}

/// The first key at which two maps differ: a key of the first map, or else one only the second has.
fn differing<'a, T: PartialEq>(
    before: &'a BTreeMap<String, T>,
    now: &'a BTreeMap<String, T>,
) -> Option<Differing<'a, T>> {
    let changed = before.iter().find_map(|(key, a)| match now.get(key) {
        Some(b) => (a != b).then_some(Differing::Values(key, a, b)),
        None => Some(Differing::Gone(key)),
    });
    changed.or_else(|| now.keys().find(|key| !before.contains_key(*key)).map(|key| Differing::New(key)))
}

/// The first difference between two unequal tables of one experiment.
fn first_difference_of_tables(before: &ExperimentResult, now: &ExperimentResult) -> String {
    if let Some((a, b)) = before.rows.iter().zip(&now.rows).find(|(a, b)| a != b) {
        return if a.name == b.name && a.phase == b.phase {
            format!("row '{}': {:?} before, {:?} now", a.name, a.measured, b.measured)
        } else {
            format!("row '{}' of {} before, '{}' of {} now", a.name, a.phase, b.name, b.phase)
        };
    }
    if before.rows.len() != now.rows.len() {
        return format!("{} rows before, {} now", before.rows.len(), now.rows.len());
    }
    if let Some((a, b)) = before.ageing.iter().zip(&now.ageing).find(|(a, b)| a != b) {
        return format!("the rounds of '{}': {:?} before, {:?} now", a.name, a.measured, b.measured);
    }
    if before.score != now.score {
        return format!("score: {:?} before, {:?} now", before.score, now.score);
    }
    if (&before.elsewhere, &before.remarks) != (&now.elsewhere, &now.remarks) {
        let texts =
            |e: &ExperimentResult| e.elsewhere.iter().chain(&e.remarks).map(|r| r.text.clone()).collect::<Vec<_>>();
        return format!("remarks: {:?} before, {:?} now", texts(before), texts(now));
    }
    "its heading: machine, target, variants or repetitions".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RunFile;
    use kontig_results::{PacePoint, Remark};

    /// A result of no inputs with a run, a table of a row, and a pace sweep of a point.
    fn result() -> StoredResult {
        let score = kontig_results::Score::default();
        let table: ExperimentResult = serde_json::from_value(serde_json::json!({
            "id": "e", "case": "", "machine": "m", "target": "", "repetitions": 1, "rounds": 1, "variants": ["v"],
            "score": score, "ageing": [], "remarks": [],
            "rows": [{
                "name": "x", "unit": "s", "phase": "measure", "better": "lower", "merge": "median", "headline": false,
                "published": [], "below": false, "measured": [null], "pairs": [null], "steps": [], "caveat": null,
                "statistics": [null],
            }],
        }))
        .expect("a table");
        let runs = BTreeMap::from([("runs/e/v/0.json".into(), RunFile { bytes: 1, sha256: "ab".into() })]);
        let point =
            PacePoint { variant: "v".into(), pause_us: 5.0, per_second: None, samples: 0, latency_us: Vec::new() };
        StoredResult {
            experiments: vec![table],
            pace: BTreeMap::from([("e".into(), vec![point])]),
            ..StoredResult::new(&1.into(), &[], &[], runs).expect("a result")
        }
    }

    #[test]
    fn a_difference_is_said_where_it_is() {
        type Change = fn(&mut StoredResult);
        let difference = |change: Change| {
            let mut now = result();
            change(&mut now);
            result().first_difference(&now)
        };
        assert_eq!(difference(|_| {}), None);
        let cases: [(Change, &str); 11] = [
            (|r| r.seed = 2.into(), "the results differ in what was asked for"),
            (|r| r.runs.clear(), "runs/e/v/0.json: not produced now"),
            (
                |r| drop(r.runs.insert("runs/e/v/1.json".into(), RunFile { bytes: 1, sha256: "ab".into() })),
                "runs/e/v/1.json: not produced before",
            ),
            (
                |r| drop(r.runs.insert("runs/e/v/0.json".into(), RunFile { bytes: 1, sha256: "cd".into() })),
                "runs/e/v/0.json: sha256 ab before, cd now",
            ),
            (|r| r.experiments[0].rows[0].unit = "us".into(), "e, row 'x': [None] before, [None] now"),
            (|r| r.experiments[0].rows.clear(), "e, 1 rows before, 0 now"),
            (
                |r| r.experiments[0].remarks.push(Remark { variant: None, text: "t".into() }),
                "e, remarks: [] before, [\"t\"] now",
            ),
            (|r| r.experiments.clear(), "e: no table now"),
            (|r| r.pace.clear(), "e: no pace sweep now"),
            (|r| r.pace.values_mut().for_each(|p| p[0].samples = 3), "e, pace sweep: v at a pause of 5 us"),
            (|r| r.pace.values_mut().for_each(Vec::clear), "e, pace sweep: 1 points before, 0 now"),
        ];
        for (change, said) in cases {
            assert_eq!(difference(change).as_deref(), Some(said));
        }
        let score = difference(|r| r.experiments[0].score.measured.direction.of = 1).expect("a difference");
        assert!(score.starts_with("e, score: "), "{score}");
    }
}
