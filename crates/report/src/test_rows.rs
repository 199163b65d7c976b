//! Rows and tables for the tests of conclusions.

use kontig_results::{Better, ExperimentResult, MEASURE, Measured, Merge, Row, Score, Sweep};

/// A figure of one seed.
pub(crate) fn once(value: f64) -> Measured {
    Measured { value, low: value, high: value, repetitions: 1, lacking: 0, samples: None, samples_needed: None }
}

pub(crate) fn row(name: &str, better: Better, values: &[f64]) -> Row {
    Row {
        name: name.into(),
        unit: "us".into(),
        headline: false,
        published: vec![],
        phase: MEASURE.into(),
        better,
        merge: Merge::Median,
        measured: values.iter().map(|value| Some(once(*value))).collect(),
        pairs: vec![None; values.len()],
        steps: vec![],
        caveat: None,
        lack: None,
        below: false,
        zero_is_none: false,
        part: None,
        statistics: vec![],
    }
}

/// A sweep over the first variants of a table.
pub(crate) fn sweep(setting: &str, values: &[f64]) -> Sweep {
    Sweep {
        of: String::new(),
        setting: setting.into(),
        unit: String::new(),
        variants: (0..values.len()).collect(),
        values: values.to_vec(),
        pairs: vec![],
    }
}

/// A table of five seeds.
pub(crate) fn result(variants: &[&str], rows: Vec<Row>) -> ExperimentResult {
    ExperimentResult {
        id: "e".into(),
        case: String::new(),
        machine: "m".into(),
        target: String::new(),
        repetitions: 5,
        rounds: 1,
        sweeps: vec![],
        variants: variants.iter().map(|v| (*v).into()).collect(),
        rows,
        ageing: vec![],
        score: Score::default(),
        elsewhere: vec![],
        remarks: vec![],
        endings: vec![],
    }
}
