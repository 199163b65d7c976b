//! Published percentiles, to be drawn beside the distribution of the same operation.
//!
//! Published rows name the distribution and the percentile (`hugepage alloc latency p95`). Their figures are drawn
//! only if their unit can be turned into the distribution's.

use kontig_lab::result::Row;

/// Published (percentile, value) pairs for the distribution called `name`, for the variant in column `variant`.
pub(crate) fn published(rows: &[Row], name: &str, unit: &str, variant: usize) -> Vec<(f64, f64)> {
    rows.iter()
        .filter_map(|row| {
            let percentile: f64 = row.name.strip_prefix(name)?.strip_prefix(" p")?.parse().ok()?;
            let value = row.published.get(variant)? * scale(&row.unit, unit)?;
            (value.is_finite() && (0.0..=100.0).contains(&percentile)).then_some((percentile, value))
        })
        .collect()
}

/// The factor from one unit to another, if they measure the same thing.
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
    use kontig_lab::result::{Better, MEASURE, Merge};

    #[test]
    fn published_percentiles_are_found_and_scaled() {
        let row = |name: &str, unit: &str| Row {
            name: name.into(),
            unit: unit.into(),
            headline: false,
            published: vec![7894.0, 2.0],
            phase: MEASURE.into(),
            better: Better::Lower,
            merge: Merge::Median,
            measured: vec![],
            pairs: vec![],
            direction_agrees: None,
            ratio_off: None,
        };
        let rows = [row("alloc p5", "us"), row("alloc p99.9", "pages"), row("alloc pages", "us"), row("p5", "us")];
        let found = published(&rows, "alloc", "ms", 0);
        assert_eq!(found.len(), 1);
        assert!(found[0].0 == 5.0 && (found[0].1 - 7.894).abs() < 1e-9);
    }
}
