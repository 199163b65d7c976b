//! The parts of many runs that a page has: enough to see, in a file that a browser opens at once.

use kontig_results::{ExperimentResult, Row};
use std::borrow::Cow;

/// Points of a series that a screen can still resolve.
const POINTS: usize = 1200;
/// Points of all lines of a series together.
const POINTS_OF_ALL: usize = 12 * POINTS;
/// The fewest of a line.
const POINTS_AT_LEAST: usize = 60;
/// Dots of one value of what was swept, and of all its values.
const DOTS: usize = 40;
const DOTS_OF_ALL: usize = 2000;
/// Variants that are columns of tables.
const COLUMNS: usize = 60;
/// All memory maps of a page together, bytes.
const MAPS: usize = 8 << 20;
/// The figures to take away, bytes.
pub(crate) const FILE: usize = 1 << 20;

/// Points of each line, of this number of lines.
pub(crate) fn points(lines: usize) -> usize {
    (POINTS_OF_ALL / lines.max(1)).clamp(POINTS_AT_LEAST, POINTS)
}

/// Dots of each value, of this number of values.
pub(crate) fn dots(values: usize) -> usize {
    (DOTS_OF_ALL / values.max(1)).clamp(2, DOTS)
}

/// The figures of seeds as dots: of many the lowest, the highest and some evenly between.
pub(crate) fn some_dots(mut seeds: Vec<f64>, values: usize) -> Vec<f64> {
    let most = dots(values);
    if seeds.len() <= most {
        return seeds;
    }
    seeds.sort_by(f64::total_cmp);
    (0..most).map(|i| seeds[i * (seeds.len() - 1) / (most - 1)]).collect()
}

/// How many of these maps, given by their bytes, a page has.
pub(crate) fn maps(bytes: impl Iterator<Item = usize>) -> usize {
    let sums = bytes.scan(0, |sum, bytes| {
        *sum += bytes;
        Some(*sum)
    });
    // One is there, however large.
    sums.take_while(|sum| *sum <= MAPS).count().max(1)
}

/// The result with as many variants as a table has columns.
pub(crate) fn columns(e: &ExperimentResult) -> Cow<'_, ExperimentResult> {
    if e.variants.len() <= COLUMNS {
        return Cow::Borrowed(e);
    }
    fn first<T: Clone>(of: &[T]) -> Vec<T> {
        of.iter().take(COLUMNS).cloned().collect()
    }
    let row = |row: &Row| Row {
        published: first(&row.published),
        measured: first(&row.measured),
        pairs: first(&row.pairs),
        statistics: first(&row.statistics),
        ..row.clone()
    };
    Cow::Owned(ExperimentResult {
        variants: first(&e.variants),
        rows: e.rows.iter().map(row).collect(),
        endings: first(&e.endings),
        ..e.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_dots_the_extremes_and_some_between_are_kept() {
        let seeds: Vec<f64> = (0..1000).rev().map(f64::from).collect();
        let kept = some_dots(seeds, 10);
        assert_eq!((kept.len(), kept[0], kept[DOTS - 1]), (DOTS, 0.0, 999.0));
        assert_eq!(some_dots(vec![3.0, 1.0], 10), [3.0, 1.0]);
        assert_eq!(some_dots(vec![3.0, 2.0, 1.0], 5000), [1.0, 3.0]);
    }

    #[test]
    fn lines_share_points_and_maps_share_bytes() {
        assert_eq!([1, 12, 60, 10_000].map(points), [POINTS, POINTS, 240, POINTS_AT_LEAST]);
        assert_eq!(maps([MAPS / 2, MAPS / 2, 1].into_iter()), 2);
        assert_eq!(maps([2 * MAPS, 1].into_iter()), 1);
    }
}
