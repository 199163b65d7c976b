//! Percentile curves: the runs' distributions of one operation put together, and the published percentiles beside
//! them.
//!
//! Published rows name the distribution and the percentile (`hugepage alloc latency p95`). Their figures are drawn
//! only if their unit can be turned into the distribution's.

use kontig_lab::result::{Histogram, Row};

/// Buckets of several repetitions added up: ascending upper bounds, each with its count.
pub(crate) fn merged<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Vec<(f64, u64)> {
    let mut all: Vec<(f64, u64)> =
        histograms.flat_map(|h| h.buckets.iter().copied()).filter(|b| b.0.is_finite()).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
    all
}

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

    #[test]
    fn repetitions_add_up() {
        let h = |buckets: &[(f64, u64)]| Histogram { name: "x".into(), unit: "us".into(), buckets: buckets.to_vec() };
        let both = [h(&[(1.0, 2), (4.0, 1)]), h(&[(1.0, 3), (2.0, 5)])];
        assert_eq!(merged(both.iter()), [(1.0, 5), (2.0, 5), (4.0, 1)]);
    }

    #[test]
    fn published_percentiles_are_found_and_scaled() {
        let row = |name: &str, unit: &str| Row {
            name: name.into(),
            unit: unit.into(),
            headline: false,
            published: vec![7894.0, 2.0],
            measured: vec![],
            direction_agrees: None,
            ratio_off: None,
        };
        let rows = [row("alloc p5", "us"), row("alloc p99.9", "pages"), row("alloc pages", "us"), row("p5", "us")];
        let found = published(&rows, "alloc", "ms", 0);
        assert_eq!(found.len(), 1);
        assert!(found[0].0 == 5.0 && (found[0].1 - 7.894).abs() < 1e-9);
    }
}
