//! What to say about a row: whether what was measured agrees with what was published.
//!
//! A row that moved the other way, that gave no figure, or whose change is more than 2× off where its size counts,
//! is *missed* and says so in that word; nothing is rounded in the experiment's favour.

use crate::number;
use kontig_results::Row;

/// How far off a change ratio may be and still count as agreeing (the headline score's bound).
const WITHIN: f64 = 2.0;
/// A change smaller than this is no change (the direction score's bound).
const NO_CHANGE: f64 = 0.10;

/// What became of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing was published, or nothing comparable: there is nothing to hold the row against.
    NotHeld,
    /// It moves the same way, and by a similar factor where one is defined.
    Agrees,
    /// It moves the same way but the size is off by this factor; the row's size does not count for the score.
    AgreesOff(f64),
    /// Missed: it moves the other way.
    Opposite,
    /// Missed: published as a change, measured as none.
    Unchanged,
    /// Missed: its size counts and is off by this factor.
    Off(f64),
    /// Missed: figures were published but the runs gave none that compare.
    NoFigure,
}

impl Verdict {
    /// The verdict on `row`.
    pub fn of(row: &Row) -> Verdict {
        let published = published_change(row);
        if row.published.is_empty() {
            return Verdict::NotHeld;
        }
        if row.measured.is_empty() || row.measured.iter().any(|m| m.is_none_or(|m| !m.value.is_finite())) {
            return Verdict::NoFigure;
        }
        if row.direction_agrees == Some(false) {
            let still = measured_change(row).is_some_and(|change| (change - 1.0).abs() < NO_CHANGE);
            return if still { Verdict::Unchanged } else { Verdict::Opposite };
        }
        // A row published as unchanged has no direction: only its size can be wrong, so it counts here.
        let size_counts = row.headline || row.direction_agrees.is_none();
        match row.ratio_off {
            Some(off) if off > WITHIN && size_counts => Verdict::Off(off),
            Some(off) if off > WITHIN => Verdict::AgreesOff(off),
            Some(_) => Verdict::Agrees,
            None if published.is_some() && row.headline => Verdict::NoFigure,
            None if row.direction_agrees == Some(true) => Verdict::Agrees,
            None => Verdict::NotHeld,
        }
    }

    /// Whether the row counts as missed.
    pub fn missed(self) -> bool {
        matches!(self, Verdict::Opposite | Verdict::Unchanged | Verdict::Off(_) | Verdict::NoFigure)
    }

    /// The words for the verdict column.
    pub fn text(self) -> String {
        match self {
            Verdict::NotHeld => "–".into(),
            Verdict::Agrees => "agrees".into(),
            Verdict::AgreesOff(off) => format!("agrees, off {}", number::off(off)),
            Verdict::Opposite => "MISSED: opposite".into(),
            Verdict::Unchanged => "MISSED: unchanged".into(),
            Verdict::Off(off) => format!("MISSED: off {}", number::off(off)),
            Verdict::NoFigure => "MISSED: no figure".into(),
        }
    }
}

/// Last variant's published figure over the first's; none where a figure is missing or zero.
pub fn published_change(row: &Row) -> Option<f64> {
    change(row.published.first().copied(), row.published.last().copied(), row.published.len())
}

/// Last variant's measured figure over the first's; none where a figure is missing or the first is zero.
pub fn measured_change(row: &Row) -> Option<f64> {
    change_to(row, row.measured.len().checked_sub(1)?)
}

/// A variant's measured figure over the first's, likewise.
pub fn change_to(row: &Row, variant: usize) -> Option<f64> {
    let value = |i: usize| row.measured.get(i).copied().flatten().map(|m| m.value);
    change(value(0), value(variant), row.measured.len())
}

fn change(baseline: Option<f64>, patched: Option<f64>, variants: usize) -> Option<f64> {
    let (baseline, patched) = (baseline?, patched?);
    (variants > 1 && baseline != 0.0 && baseline.is_finite() && patched.is_finite()).then(|| patched / baseline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::{Better, MEASURE, Measured, Merge};

    fn once(value: f64) -> Measured {
        Measured { value, low: value, high: value, repetitions: 1, samples: None, samples_needed: None }
    }

    fn row(
        headline: bool,
        published: [f64; 2],
        measured: [Option<f64>; 2],
        agrees: Option<bool>,
        off: Option<f64>,
    ) -> Row {
        Row {
            name: "r".into(),
            unit: "us".into(),
            headline,
            published: published.to_vec(),
            phase: MEASURE.into(),
            better: Better::Neither,
            merge: Merge::Median,
            measured: measured.map(|value| value.map(once)).to_vec(),
            pairs: vec![],
            direction_agrees: agrees,
            ratio_off: off,
        }
    }

    #[test]
    fn misses_are_misses() {
        let up = [Some(1.0), Some(2.0)];
        assert_eq!(Verdict::of(&row(true, [1.0, 2.0], up, Some(true), Some(1.0))), Verdict::Agrees);
        assert_eq!(Verdict::of(&row(false, [1.0, 9.0], up, Some(true), Some(4.5))), Verdict::AgreesOff(4.5));
        assert_eq!(Verdict::of(&row(true, [1.0, 9.0], up, Some(true), Some(4.5))), Verdict::Off(4.5));
        assert_eq!(Verdict::of(&row(false, [1.0, 1.0], up, None, Some(2.5))), Verdict::Off(2.5));
        assert_eq!(Verdict::of(&row(false, [2.0, 1.0], up, Some(false), Some(4.0))), Verdict::Opposite);
        let still = [Some(1.0), Some(1.01)];
        assert_eq!(Verdict::of(&row(false, [2.0, 1.0], still, Some(false), Some(2.0))), Verdict::Unchanged);
        assert_eq!(Verdict::of(&row(false, [2.0, 1.0], [Some(1.0), None], None, None)), Verdict::NoFigure);
        assert_eq!(Verdict::of(&row(false, [0.0, 20.0], [Some(0.0), Some(14.0)], Some(true), None)), Verdict::Agrees);
        assert!(Verdict::Off(3.0).missed() && !Verdict::AgreesOff(3.0).missed());
    }

    #[test]
    fn no_ratio_to_nothing() {
        assert_eq!(published_change(&row(false, [0.0, 20.0], [None, None], None, None)), None);
        let mut without = row(false, [1.0, 2.0], [Some(1.0), Some(3.0)], None, None);
        without.published.clear();
        assert_eq!((published_change(&without), Verdict::of(&without)), (None, Verdict::NotHeld));
        assert_eq!(measured_change(&without), Some(3.0));
    }
}
