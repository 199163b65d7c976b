//! Verdicts: whether a measured row agrees with the published one.
//!
//! A row is *missed* if it moved the other way, gave no figure, or if its size counts and is not
//! the published one; nothing is rounded in the experiment's favour. A row of several steps has a
//! verdict for each. [`Row::is_missed`] decides; the words are here. A row with a caveat has its
//! verdict, and a note that it is scored separately.

use crate::number;
use crate::terminal::letter;
use kontig_results::judge::{CHANGE_THAT_COUNTS, WITHIN};
use kontig_results::{JudgedStep, Measured, Row, Rule};

/// The verdict on a row, or on one step of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing was published, or nothing comparable.
    NotHeld,
    /// Moves the same way, and by a similar factor if there is one.
    Agrees,
    /// Moves the same way, but the size is off by this factor; the size of this row does not count.
    AgreesOff(f64),
    /// Moves the same way; a figure is 0, so there is no factor.
    AgreesWithout(Without),
    /// A null test, or a published change no larger than one, within the published noise.
    WithinNoise,
    /// Missed: moves the other way.
    Opposite,
    /// Missed: published as a change, measured as none.
    Unchanged,
    /// Missed: its size counts and is off by this factor.
    Off(f64),
    /// Missed: its size counts, but a figure is 0, so there is no factor.
    Without(Without),
    /// Missed: published to fall to nearly nothing; this share of it is left.
    Left(f64),
    /// Missed: published as 0, but measured otherwise.
    NotNothing,
    /// Missed: published to change by less than a tenth, but moves by more.
    FalseAlarm,
    /// Missed: a null test, or a published change no larger than one, beyond the published noise.
    BeyondNoise,
    /// The measured figure is not below the published bound.
    NotBelow,
    /// Missed: the runs gave no figure comparable with the published one.
    NoFigure,
}

/// Why there is no factor between two measured figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    FallsToNothing,
    RisesFromNothing,
    Nothing,
}

impl Without {
    fn words(self) -> &'static str {
        match self {
            Without::FallsToNothing => "falls to nothing",
            Without::RisesFromNothing => "rises from nothing",
            Without::Nothing => "nothing in either",
        }
    }
}

impl Verdict {
    /// A verdict for each step of the row, or a single one if it has no steps.
    pub fn of(row: &Row) -> Vec<Verdict> {
        if row.published.is_empty() {
            return vec![Verdict::NotHeld];
        }
        let there = |i: usize| value(row, i).is_some_and(f64::is_finite);
        if row.steps.is_empty() {
            let all = !row.measured.is_empty() && (0..row.measured.len()).all(there);
            return vec![match row.keeps_bounds() {
                _ if !all => Verdict::NoFigure,
                None => Verdict::NotHeld,
                Some(true) => Verdict::Agrees,
                Some(false) => Verdict::NotBelow,
            }];
        }
        let there = |i: usize| there(i) || row.stands_for_none(i);
        let of = |step: &JudgedStep| {
            if there(step.against) && there(step.variant) { of_step(row, step) } else { Verdict::NoFigure }
        };
        row.steps.iter().map(of).collect()
    }

    fn words(self) -> String {
        match self {
            Verdict::NotHeld => "–".into(),
            Verdict::Agrees => "agrees".into(),
            Verdict::AgreesOff(off) => format!("agrees, off {}", number::off(off)),
            Verdict::AgreesWithout(why) => format!("agrees, {}", why.words()),
            Verdict::Without(why) => why.words().into(),
            Verdict::WithinNoise => "within the noise".into(),
            Verdict::Opposite => "opposite".into(),
            Verdict::Unchanged => "unchanged".into(),
            Verdict::Off(off) => format!("off {}", number::off(off)),
            Verdict::Left(share) => format!("{} is left", number::factor(share)),
            Verdict::NotNothing => "not nothing".into(),
            Verdict::FalseAlarm => "false alarm".into(),
            Verdict::BeyondNoise => "beyond the noise".into(),
            Verdict::NotBelow => "not below".into(),
            Verdict::NoFigure => "no figure".into(),
        }
    }
}

/// How a row stands as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    None,
    Agrees,
    /// The size is off but does not count, or the row is scored separately.
    Loose,
    Missed,
}

/// How a row stands: missed if any of its steps is, unless it is scored separately.
pub(crate) fn standing(row: &Row) -> Standing {
    let verdicts = Verdict::of(row);
    let any = |is: fn(&Verdict) -> bool| verdicts.iter().any(is);
    match () {
        () if row.is_missed() => Standing::Missed,
        () if any(|v| matches!(v, Verdict::AgreesOff(_) | Verdict::AgreesWithout(_))) => Standing::Loose,
        () if row.caveat.is_some() => Standing::Loose,
        () if any(|v| matches!(v, Verdict::Agrees)) => Standing::Agrees,
        () => Standing::None,
    }
}

/// The words for the verdict column.
pub(crate) fn text(row: &Row) -> String {
    let verdicts = Verdict::of(row);
    let words = match verdicts.as_slice() {
        [only] => only.words(),
        several => {
            let of_step =
                |(step, verdict): (&JudgedStep, &Verdict)| format!("{} {}", letter(step.variant), verdict.words());
            row.steps.iter().zip(several).map(of_step).collect::<Vec<_>>().join("; ")
        }
    };
    match &row.caveat {
        Some(caveat) => format!("{words} ({})", caveat.kind),
        None if row.is_missed() => format!("MISSED: {words}"),
        None => words,
    }
}

fn of_step(row: &Row, step: &JudgedStep) -> Verdict {
    let moved = || {
        let change = change(value(row, step.against), value(row, step.variant), row.measured.len());
        let still = change.is_some_and(|change| (change - 1.0).abs() < CHANGE_THAT_COUNTS);
        let nothing = value(row, step.against) == value(row, step.variant);
        if still || nothing { Verdict::Unchanged } else { Verdict::Opposite }
    };
    match (step.rule, step.size_agrees) {
        (Rule::NullTest | Rule::WithinNoise, Some(true)) => Verdict::WithinNoise,
        (Rule::NullTest | Rule::WithinNoise, Some(false)) => Verdict::BeyondNoise,
        (Rule::NullTest | Rule::WithinNoise, None) => Verdict::NotHeld,
        (Rule::StaysZero, agrees) => {
            if agrees == Some(true) {
                Verdict::Agrees
            } else {
                Verdict::NotNothing
            }
        }
        _ if step.direction_agrees == Some(false) => moved(),
        (Rule::ToZero, Some(false)) => {
            let share = change(value(row, step.against), value(row, step.variant), row.measured.len());
            share.map_or(Verdict::Unchanged, Verdict::Left)
        }
        // A fall to zero is not judged by its factor, but the factor is shown.
        (Rule::ToZero, _) => step.ratio_off.filter(|off| *off > WITHIN).map_or(Verdict::Agrees, Verdict::AgreesOff),
        (Rule::FromZero, _) => Verdict::Agrees,
        (Rule::Still, _) if step.false_alarm == Some(true) => Verdict::FalseAlarm,
        (Rule::Still | Rule::Ratio, _) => {
            // Only the size of a row published as unchanged can be wrong, so it counts.
            let size_counts = row.headline || step.rule == Rule::Still;
            match step.ratio_off {
                Some(off) if off > WITHIN && size_counts => Verdict::Off(off),
                Some(off) if off > WITHIN => Verdict::AgreesOff(off),
                Some(_) => Verdict::Agrees,
                None => {
                    let nothing = |variant| value(row, variant) == Some(0.0);
                    let why = match (nothing(step.against), nothing(step.variant)) {
                        (true, true) => Without::Nothing,
                        (true, false) => Without::RisesFromNothing,
                        _ => Without::FallsToNothing,
                    };
                    if size_counts { Verdict::Without(why) } else { Verdict::AgreesWithout(why) }
                }
            }
        }
    }
}

/// A variant's figure of a row.
pub(crate) fn measured(row: &Row, variant: usize) -> Option<&Measured> {
    row.measured.get(variant)?.as_ref()
}

/// The value of a variant's figure.
fn value(row: &Row, variant: usize) -> Option<f64> {
    measured(row, variant).map(|m| m.value)
}

/// The last variant's published figure over the first's; none if one is missing or zero.
pub fn published_change(row: &Row) -> Option<f64> {
    change(row.published.first().copied(), row.published.last().copied(), row.published.len())
}

/// The last variant's measured figure over the first's; none if one
/// is missing or the first is zero.
pub fn measured_change(row: &Row) -> Option<f64> {
    change_to(row, row.measured.len().checked_sub(1)?)
}

/// The published change of a step, as a factor.
pub fn published_step(row: &Row, step: &JudgedStep) -> Option<f64> {
    let published = |variant: usize| row.published.get(variant).copied();
    change(published(step.against), published(step.variant), row.published.len())
}

/// The measured change of a step, as a factor.
pub fn measured_step(row: &Row, step: &JudgedStep) -> Option<f64> {
    change(value(row, step.against), value(row, step.variant), row.measured.len())
}

/// A variant's measured figure over the first's; none if one is missing or the first is zero.
pub fn change_to(row: &Row, variant: usize) -> Option<f64> {
    change(value(row, 0), value(row, variant), row.measured.len())
}

fn change(baseline: Option<f64>, patched: Option<f64>, variants: usize) -> Option<f64> {
    let (baseline, patched) = (baseline?, patched?);
    (variants > 1 && baseline != 0.0 && baseline.is_finite() && patched.is_finite()).then(|| patched / baseline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::{Better, Caveat, CaveatKind, MEASURE, Merge, Noise, judge};

    fn once(value: f64) -> Measured {
        Measured { value, low: value, high: value, repetitions: 1, lacking: 0, samples: None, samples_needed: None }
    }

    fn row(headline: bool, published: &[f64], measured: &[Option<f64>]) -> Row {
        Row {
            name: "r".into(),
            unit: "us".into(),
            headline,
            published: published.to_vec(),
            phase: MEASURE.into(),
            better: Better::Neither,
            merge: Merge::Median,
            measured: measured.iter().map(|value| value.map(once)).collect(),
            pairs: vec![],
            steps: judge::steps(published, measured, Noise::Unknown),
            caveat: None,
            lack: None,
            below: false,
            zero_is_none: false,
            part: None,
            statistics: vec![],
        }
    }

    fn of(headline: bool, published: [f64; 2], measured: [f64; 2]) -> Verdict {
        Verdict::of(&row(headline, &published, &measured.map(Some)))[0]
    }

    /// Whether these words are those of a row that is missed.
    fn missed(verdict: Verdict) -> bool {
        use Verdict::{BeyondNoise, FalseAlarm, Left, NoFigure, NotNothing, Off, Opposite, Unchanged, Without};
        let moves = matches!(verdict, Opposite | FalseAlarm | NotNothing | BeyondNoise);
        moves || matches!(verdict, Unchanged | Off(_) | Without(_) | Left(_) | NoFigure)
    }

    #[test]
    fn misses_are_misses() {
        assert_eq!(of(true, [1.0, 2.0], [1.0, 2.0]), Verdict::Agrees);
        assert_eq!(of(false, [1.0, 9.0], [1.0, 2.0]), Verdict::AgreesOff(4.5));
        assert_eq!(of(true, [1.0, 9.0], [1.0, 2.0]), Verdict::Off(4.5));
        assert_eq!(of(false, [1.0, 1.0], [1.0, 2.5]), Verdict::FalseAlarm);
        assert_eq!(of(false, [1.0, 0.95], [1.0, 0.6]), Verdict::FalseAlarm, "within 2×, and still it should not move");
        assert_eq!(text(&row(false, &[1.0, 0.95], &[Some(1.0), Some(0.6)])), "MISSED: false alarm");
        assert_eq!(of(false, [2.0, 1.0], [1.0, 2.0]), Verdict::Opposite);
        assert_eq!(of(false, [2.0, 1.0], [1.0, 1.01]), Verdict::Unchanged);
        assert_eq!(Verdict::of(&row(false, &[2.0, 1.0], &[Some(1.0), None])), [Verdict::NoFigure]);
        assert_eq!(of(false, [0.0, 20.0], [0.0, 14.0]), Verdict::Agrees);
        assert!(missed(Verdict::Off(3.0)) && !missed(Verdict::AgreesOff(3.0)));
    }

    #[test]
    fn a_published_zero_that_stands_for_none_agrees_with_none() {
        let none = [None, None];
        let counted = row(false, &[0.0, 0.0], &none);
        assert_eq!((text(&counted), counted.is_missed()), ("MISSED: no figure".into(), true));
        let steps = judge::steps(&[0.0, 0.0], &[Some(0.0); 2], Noise::Unknown);
        let mean = Row { zero_is_none: true, steps, ..counted };
        assert_eq!((text(&mean), mean.is_missed()), ("agrees".into(), false));
        let other = Row { published: vec![0.0, 3.0], ..mean };
        assert!(other.is_missed(), "3 stands for 3");
    }

    #[test]
    fn a_figure_of_nothing_is_told_from_none() {
        assert_eq!(of(true, [10.0, 3.0], [0.25, 0.0]), Verdict::Without(Without::FallsToNothing));
        assert_eq!(of(false, [10.0, 3.0], [0.25, 0.0]), Verdict::AgreesWithout(Without::FallsToNothing));
        assert_eq!(of(false, [100.0, 95.0], [818.2, 0.0]), Verdict::FalseAlarm);
        assert_eq!(of(false, [100.0, 95.0], [0.0, 0.0]), Verdict::Without(Without::Nothing));
        assert_eq!(of(false, [100.0, 95.0], [0.0, 3.0]), Verdict::FalseAlarm);
        assert_eq!(text(&row(true, &[10.0, 3.0], &[Some(818.2), Some(0.0)])), "MISSED: falls to nothing");
    }

    #[test]
    fn the_verdicts_and_the_score_call_the_same_rows_missed() {
        let figures = [0.0, 0.001, 1.0, 1.05, 1.5, 3.0, 200.0];
        for published in figures.iter().flat_map(|a| figures.map(|b| [*a, b])) {
            for measured in figures.iter().flat_map(|a| figures.map(|b| [Some(*a), Some(b)])).chain([[None, Some(1.0)]])
            {
                for headline in [false, true] {
                    let row = row(headline, &published, &measured);
                    let said = Verdict::of(&row).iter().any(|verdict| missed(*verdict));
                    assert_eq!(said, row.is_missed(), "{published:?} {measured:?} {headline}: {:?}", Verdict::of(&row));
                    let in_full = row.steps[0].agrees_in_full();
                    assert!(!(headline && row.is_missed() && in_full == Some(true)), "{published:?} {measured:?}");
                }
            }
        }
    }

    #[test]
    fn where_a_published_row_falls_to_zero_ours_leaves_next_to_nothing() {
        assert_eq!(of(false, [532_723.0, 0.0], [1000.0, 3.0]), Verdict::Agrees);
        assert_eq!(of(false, [532_723.0, 0.0], [1000.0, 50.0]), Verdict::Left(0.05));
        assert_eq!(text(&row(false, &[5.0, 0.0], &[Some(1000.0), Some(50.0)])), "MISSED: ×0.05 is left");
        assert_eq!(of(false, [532_723.0, 0.0], [0.0, 0.0]), Verdict::Unchanged);
        assert_eq!(of(true, [30_000.0, 4.0], [30_000.0, 24.0]), Verdict::AgreesOff(6.0));
        assert_eq!(
            (of(true, [0.0, 0.0], [0.0, 0.0]), of(true, [0.0, 0.0], [0.0, 1.0])),
            (Verdict::Agrees, Verdict::NotNothing)
        );
    }

    #[test]
    fn a_row_with_a_caveat_says_its_verdict_and_is_not_missed() {
        let caveat = |kind| Some(Caveat { kind, reason: "r".into() });
        let opposite = Row { caveat: caveat(CaveatKind::Artefact), ..row(true, &[2.0, 1.0], &[Some(1.0), Some(2.0)]) };
        assert_eq!((text(&opposite).as_str(), standing(&opposite)), ("opposite (artefact)", Standing::Loose));
        let mut null = Row { caveat: caveat(CaveatKind::NullTest), ..opposite };
        null.steps = judge::steps(&[2.0, 2.5], &[Some(1.0), Some(2.0)], Noise::Itself);
        assert_eq!(text(&null), "beyond the noise (null-test)");
    }

    #[test]
    fn each_step_of_a_series_of_patches_has_its_verdict() {
        let published = [27.5, 25.3, 45.5];
        let row = row(true, &published, &[20.0, 20.0, 20.0].map(Some));
        assert_eq!((text(&row).as_str(), standing(&row)), ("MISSED: B agrees; C unchanged", Standing::Missed));
    }

    #[test]
    fn no_ratio_to_nothing() {
        assert_eq!(published_change(&row(false, &[0.0, 20.0], &[None, None])), None);
        let mut without = row(false, &[1.0, 2.0], &[Some(1.0), Some(3.0)]);
        without.published.clear();
        assert_eq!((published_change(&without), Verdict::of(&without)), (None, vec![Verdict::NotHeld]));
        assert_eq!(measured_change(&without), Some(3.0));
    }
}
