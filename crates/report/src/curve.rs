//! Published percentiles, drawn beside the measured distribution of the same operation.
//!
//! A row names the distribution it is a percentile of. Its figures are drawn only if their unit
//! converts to the distribution's.

use kontig_results::{Merge, Row};

/// Published (percentile, value) pairs of the named distribution, for
/// the variant in column `variant`.
pub(crate) fn published(rows: &[Row], (name, phase): (&str, &str), unit: &str, variant: usize) -> Vec<(f64, f64)> {
    rows.iter()
        .filter_map(|row| {
            let Merge::Percentile { of, p: percentile } = &row.merge else { return None };
            let percentile = *percentile;
            let value = row.published.get(variant)? * scale(&row.unit, unit)?;
            (of == name && row.phase == phase && value.is_finite() && (0.0..=100.0).contains(&percentile))
                .then_some((percentile, value))
        })
        .collect()
}

/// The factor from one unit to another of the same quantity.
fn scale(from: &str, to: &str) -> Option<f64> {
    if from == to {
        return Some(1.0);
    }
    let seconds = |unit: &str| match unit {
        "ns" => Some(1e-9),
        "us" | "µs" | "μs" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        _ => None,
    };
    Some(seconds(from)? / seconds(to)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::{Better, MEASURE};

    #[test]
    fn published_percentiles_are_found_and_scaled() {
        let percentile = |of: &'static str, p| Merge::Percentile { of: of.into(), p };
        let row = |merge: Merge, unit: &str| Row {
            name: "x".into(),
            unit: unit.into(),
            headline: false,
            published: vec![7894.0, 2.0],
            phase: MEASURE.into(),
            better: Better::Lower,
            merge,
            measured: vec![],
            pairs: vec![],
            steps: vec![],
            caveat: None,
            lack: None,
            below: false,
            zero_is_none: false,
            part: None,
            statistics: vec![],
        };
        let rows = [
            row(percentile("alloc", 5.0), "us"),
            row(percentile("alloc", 99.9), "pages"),
            row(Merge::Median, "us"),
            row(percentile("free", 5.0), "us"),
        ];
        let found = published(&rows, ("alloc", MEASURE), "ms", 0);
        assert_eq!(found.len(), 1);
        assert!(found[0].0 == 5.0 && (found[0].1 - 7.894).abs() < 1e-9);
    }
}
