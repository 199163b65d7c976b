//! Units of rows and their conversion.
//!
//! Parentheses behind a unit describe the figure, not its size: `runs (20+)` are runs.

/// Units of time, in seconds.
const TIMES: [(&str, f64); 4] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];

/// Units of memory, in bytes.
const SIZES: [(&str, f64); 4] = [("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];

/// All other units that published rows are in.
const COUNTS: [&str; 7] = ["%", "events", "events/s", "hugepages", "pages", "runs", "samples"];

/// The unit without its parentheses.
fn base(unit: &str) -> &str {
    unit.split_once(" (").map_or(unit, |(base, _)| base)
}

/// Whether a published row may have this unit.
pub fn is_known(unit: &str) -> bool {
    known().any(|known| known == base(unit))
}

/// The units that a published row may have.
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    TIMES.iter().chain(&SIZES).map(|(name, _)| *name).chain(COUNTS)
}

/// The factor from one unit to another; `None` if they measure different things.
pub(crate) fn factor(from: &str, to: &str) -> Option<f64> {
    let (from, to) = (base(from), base(to));
    if from == to {
        return Some(1.0);
    }
    [TIMES, SIZES].iter().find_map(|units| {
        let size = |unit: &str| units.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
        Some(size(from)? / size(to)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_turned_into_each_other_and_into_nothing_else() {
        assert!(factor("us", "ms").is_some_and(|f| (f - 1e-3).abs() < 1e-15));
        assert_eq!((factor("s (below)", "s"), factor("runs", "runs (20+)")), (Some(1.0), Some(1.0)));
        assert_eq!(factor("GiB", "MiB"), Some(1024.0));
        assert_eq!((factor("s", "MiB"), factor("events", "pages"), factor("%", "s")), (None, None, None));
        assert!(is_known("runs (20+)") && !is_known("sec"));
    }
}
