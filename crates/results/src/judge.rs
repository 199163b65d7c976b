//! Verdicts: whether the measured figures change as the published ones do, step by step.
//!
//! A table of two variants has one step; a table of a patch series has one from each column to the
//! next. A step has a direction if the published change is a tenth or more and exceeds a null
//! test's. Its size is judged by its rule. Where less than a tenth was published, nothing may move:
//! a row that does is a false alarm.

use serde::{Deserialize, Serialize};

/// The smallest published change that has a direction.
pub const CHANGE_THAT_COUNTS: f64 = 0.10;
/// A change has the published size if it is off by at most this factor.
pub const WITHIN: f64 = 2.0;
/// A published ratio below this falls to nearly nothing.
pub const NEARLY_NOTHING: f64 = 0.01;
/// A measured ratio below this agrees with that.
pub const NEARLY_NOTHING_MEASURED: f64 = 0.02;

/// The rule for the size of a step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A tenth or more was published: the measured change must be within a factor of two of it.
    Ratio,
    /// Less than a tenth was published: the measured change must be less than a tenth, too.
    Still,
    /// Less than a hundredth of the first value was published: less than two hundredths must be
    /// measured.
    ToZero,
    /// 0 was published in both columns: 0 must be measured in both.
    StaysZero,
    /// 0 was published in the first column only: without a ratio there is no size to judge.
    FromZero,
    /// The published change is no larger than a null test's. The measured change must be less than
    /// a tenth, or no larger than the null test's, or within it of the published one. The step
    /// counts in no score.
    WithinNoise,
    /// Both columns are the same code: the measured change may not exceed the published one.
    NullTest,
}

/// The published difference between two runs of one kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// No null test was published.
    Unknown,
    /// The row is itself a null test: both its columns are the same code.
    Itself,
    /// Two figures of one kernel.
    Published([f64; 2]),
}

/// The verdict on a step from one column to another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct JudgedStep {
    /// The column being judged.
    pub variant: usize,
    /// The column it is compared with.
    pub against: usize,
    pub rule: Rule,
    /// Whether it moves the published way; null in null tests, and if the published change is below
    /// a tenth or no larger than a null test's.
    pub direction_agrees: Option<bool>,
    /// (measured change) / (published change), folded to at least 1; null where undefined.
    pub ratio_off: Option<f64>,
    /// Whether the size agrees by the rule; null if there is none to judge.
    pub size_agrees: Option<bool>,
    /// Whether it moves by a tenth or more though less was published; null for all rules but
    /// [`Rule::Still`] and [`Rule::StaysZero`], and without a measurement.
    pub false_alarm: Option<bool>,
}

impl JudgedStep {
    /// Whether it counts as missed: it does not move the published way, or has not the published
    /// size where the size counts. The size counts in headline rows, where the published figure
    /// falls to nearly nothing, and where it hardly moves, so that only the size can be wrong.
    pub fn missed(&self, headline: bool) -> bool {
        let size_counts = headline || self.rule == Rule::ToZero || self.direction_agrees.is_none();
        self.direction_agrees == Some(false) || size_counts && self.size_agrees == Some(false)
    }

    /// Whether it moves the published way and has the published size; null if there is no size to
    /// judge. The size alone proves nothing: no change at all is within a factor of two of every
    /// published change up to that.
    pub fn agrees_in_full(&self) -> Option<bool> {
        self.size_agrees.map(|size| size && self.direction_agrees != Some(false))
    }

    /// The same step for a model in which nothing ever changes.
    pub fn if_nothing_changed(&self) -> JudgedStep {
        let still = matches!(self.rule, Rule::Still | Rule::StaysZero | Rule::WithinNoise | Rule::NullTest);
        JudgedStep {
            direction_agrees: self.direction_agrees.map(|_| false),
            ratio_off: None,
            size_agrees: self.size_agrees.map(|_| still),
            false_alarm: self.false_alarm.map(|_| false),
            ..*self
        }
    }
}

/// The steps of a row, each column against the one before it.
pub fn steps(published: &[f64], measured: &[Option<f64>], noise: Noise) -> Vec<JudgedStep> {
    let measured = |i: usize| measured.get(i).copied().flatten().filter(|value| value.is_finite());
    let step = |variant: usize| {
        let against = variant - 1;
        let was = [published[against], published[variant]];
        let is = measured(against).zip(measured(variant)).map(|(a, b)| [a, b]);
        judge(variant, against, was, is, noise)
    };
    (1..published.len()).map(step).collect()
}

/// The verdict on one step from the first figure to the second. A missing measurement agrees with
/// nothing.
pub fn judge(
    variant: usize,
    against: usize,
    published: [f64; 2],
    measured: Option<[f64; 2]>,
    noise: Noise,
) -> JudgedStep {
    let noise_of = |[a, b]: [f64; 2]| if a == b { Some(1.0) } else { ratio([a, b]).map(folded) };
    let null_test = match noise {
        Noise::Published(of) => noise_of(of),
        Noise::Unknown | Noise::Itself => None,
    };
    let inside = |noise: f64| noise_of(published).is_some_and(|change| change <= noise);
    let rule = match published {
        _ if noise == Noise::Itself => Rule::NullTest,
        [0.0, 0.0] => Rule::StaysZero,
        [0.0, _] => Rule::FromZero,
        _ if null_test.is_some_and(inside) => Rule::WithinNoise,
        [a, b] if (b / a).abs() < NEARLY_NOTHING => Rule::ToZero,
        change if !changes(change) => Rule::Still,
        _ => Rule::Ratio,
    };
    let ratio_off = measured.and_then(ratio).zip(ratio(published)).map(|(m, p)| folded(m / p));
    let no_larger = |noise: f64| measured.and_then(noise_of).is_some_and(|change| change <= noise);
    let moves = measured.is_some_and(changes);
    let size_agrees = match rule {
        Rule::FromZero => None,
        Rule::Ratio => Some(ratio_off.is_some_and(|off| off <= WITHIN)),
        Rule::Still => Some(ratio_off.is_some() && !moves),
        Rule::ToZero => Some(measured.is_some_and(|[a, b]| a != 0.0 && (b / a).abs() < NEARLY_NOTHING_MEASURED)),
        Rule::StaysZero => Some(measured == Some([0.0, 0.0])),
        Rule::WithinNoise => {
            let near = |noise: f64| ratio_off.is_some_and(|off| off <= noise);
            Some(measured.is_some() && !moves || null_test.is_some_and(|noise| no_larger(noise) || near(noise)))
        }
        Rule::NullTest => noise_of(published).map(no_larger),
    };
    let counts = !matches!(rule, Rule::NullTest | Rule::WithinNoise) && changes(published);
    // A measured change too small to count if published agrees with nothing.
    let same_way = || moves && measured.is_some_and(|m| (m[1] > m[0]) == (published[1] > published[0]));
    let direction_agrees = counts.then(same_way);
    let false_alarm = measured.filter(|_| matches!(rule, Rule::Still | Rule::StaysZero)).map(changes);
    JudgedStep { variant, against, rule, direction_agrees, ratio_off, size_agrees, false_alarm }
}

/// Whether a change is a tenth or more.
pub fn changes([a, b]: [f64; 2]) -> bool {
    a != b && (b - a).abs() >= CHANGE_THAT_COUNTS * a.abs()
}

/// The second over the first, if both are above 0.
fn ratio([a, b]: [f64; 2]) -> Option<f64> {
    (a > 0.0 && b > 0.0).then(|| b / a)
}

fn folded(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(published: [f64; 2], measured: [f64; 2]) -> JudgedStep {
        judge(1, 0, published, Some(measured), Noise::Unknown)
    }

    #[test]
    fn a_change_in_the_same_direction_agrees_whatever_its_size() {
        let s = step([100.0, 50.0], [10.0, 1.0]);
        assert_eq!((s.direction_agrees, s.size_agrees), (Some(true), Some(false)));
        assert!((s.ratio_off.unwrap() - 5.0).abs() < 1e-9, "0.1 instead of 0.5 is off by 5");
        assert_eq!(step([100.0, 50.0], [1.0, 10.0]).direction_agrees, Some(false));
        assert_eq!(step([100.0, 50.0], [1.0, 1.0]).direction_agrees, Some(false), "no change is not agreement");
    }

    #[test]
    fn small_published_changes_do_not_count_for_direction_but_have_a_ratio() {
        let s = step([98.0, 98.0], [99.0, 97.0]);
        assert_eq!((s.direction_agrees, s.size_agrees), (None, Some(true)));
        assert!(s.ratio_off.unwrap() < 1.03);
    }

    #[test]
    fn a_move_where_less_than_a_tenth_was_published_is_a_false_alarm() {
        let judged = |published, measured| {
            let s = step(published, measured);
            (s.rule, s.size_agrees, s.false_alarm)
        };
        assert_eq!(judged([18.58, 17.94], [6.0, 5.8]), (Rule::Still, Some(true), Some(false)));
        assert_eq!(
            judged([18.58, 17.94], [6.0, 3.7]),
            (Rule::Still, Some(false), Some(true)),
            "×0.62 is within 2× of ×0.97"
        );
        assert_eq!(judged([18.58, 17.94], [6.0, 0.0]), (Rule::Still, Some(false), Some(true)));
        assert_eq!(judged([18.58, 17.94], [0.0, 0.0]), (Rule::Still, Some(false), Some(false)), "nothing moved");
        assert_eq!(judged([18.58, 9.0], [6.0, 3.0]), (Rule::Ratio, Some(true), None));
        assert!(step([18.58, 17.94], [6.0, 3.7]).missed(false));
        let none = judge(1, 0, [18.58, 17.94], None, Noise::Unknown);
        assert_eq!((none.size_agrees, none.false_alarm), (Some(false), None), "nobody knows whether it moved");
    }

    #[test]
    fn a_change_no_larger_than_a_null_tests_has_no_direction_and_may_not_exceed_it_here() {
        let judged = |published, measured| {
            let s = judge(1, 0, published, Some(measured), Noise::Published([100.0, 120.0]));
            (s.rule, s.direction_agrees, s.size_agrees, s.false_alarm)
        };
        assert_eq!(judged([10.0, 11.5], [5.0, 5.9]), (Rule::WithinNoise, None, Some(true), None));
        assert_eq!(judged([10.0, 8.4], [5.0, 6.1]), (Rule::WithinNoise, None, Some(false), None), "×1.22 and ×0.84");
        assert_eq!(
            judged([10.0, 11.5], [5.0, 6.1]),
            (Rule::WithinNoise, None, Some(true), None),
            "×1.22 is near ×1.15"
        );
        assert_eq!(judged([10.0, 12.5], [5.0, 6.1]), (Rule::Ratio, Some(true), Some(true), None), "beyond it");
        let small = judge(1, 0, [10.0, 10.1], Some([10.0, 10.9]), Noise::Published([10.0, 10.2]));
        assert_eq!((small.rule, small.size_agrees), (Rule::WithinNoise, Some(true)), "less than a tenth");
        assert!(judge(1, 0, [10.0, 10.1], None, Noise::Published([10.0, 10.2])).missed(false), "no figure");
    }

    #[test]
    fn where_nothing_changes_no_direction_agrees_and_nothing_is_a_false_alarm() {
        let judged = |published, measured| {
            let s = step(published, measured).if_nothing_changed();
            (s.direction_agrees, s.agrees_in_full(), s.false_alarm)
        };
        assert_eq!(judged([10.0, 6.0], [10.0, 5.0]), (Some(false), Some(false), None));
        assert_eq!(judged([10.0, 9.5], [10.0, 5.0]), (None, Some(true), Some(false)));
        assert_eq!(judged([10.0, 0.0], [10.0, 0.0]), (Some(false), Some(false), None));
        assert_eq!(judged([0.0, 5.0], [0.0, 5.0]), (Some(false), None, None));
        assert_eq!(judged([0.0, 0.0], [0.0, 5.0]), (None, Some(true), Some(false)));
    }

    #[test]
    fn no_change_is_of_no_published_size() {
        let none = step([100.0, 60.0], [10.0, 10.0]);
        assert_eq!((none.size_agrees, none.agrees_in_full()), (Some(true), Some(false)), "×1.00 is within 2× of ×0.60");
        assert_eq!(step([100.0, 60.0], [10.0, 5.0]).agrees_in_full(), Some(true));
        assert_eq!(step([100.0, 98.0], [10.0, 10.0]).agrees_in_full(), Some(true), "none was published, either");
        assert_eq!(step([0.0, 5.0], [0.0, 5.0]).agrees_in_full(), None);
    }

    #[test]
    fn a_rise_from_zero_has_a_direction_but_no_size() {
        let s = step([0.0, 20.0], [0.0, 7.0]);
        assert_eq!((s.rule, s.direction_agrees, s.ratio_off, s.size_agrees), (Rule::FromZero, Some(true), None, None));
        assert_eq!(step([0.0, 20.0], [0.0, 0.0]).direction_agrees, Some(false));
    }

    #[test]
    fn a_fall_to_nearly_nothing_agrees_below_two_hundredths() {
        let judged = |measured| step([532_723.0, 0.0], measured);
        assert_eq!((judged([1000.0, 0.0]).rule, judged([1000.0, 0.0]).size_agrees), (Rule::ToZero, Some(true)));
        assert_eq!((judged([1000.0, 19.9]).size_agrees, judged([1000.0, 20.0]).size_agrees), (Some(true), Some(false)));
        assert_eq!(judged([1000.0, 500.0]).direction_agrees, Some(true), "it fell");
        let nothing = judged([0.0, 0.0]);
        assert_eq!((nothing.direction_agrees, nothing.size_agrees), (Some(false), Some(false)), "nothing fell");
        // A hundredth and more is a change like any other.
        assert_eq!(step([100.0, 1.0], [100.0, 1.9]).rule, Rule::Ratio);
        assert_eq!(step([100.0, 0.99], [100.0, 1.9]).size_agrees, Some(true));
        assert_eq!(step([100.0, 0.99], [100.0, 2.1]).size_agrees, Some(false), "2.1 of 0.99 is near, and still not it");
    }

    #[test]
    fn nothing_agrees_only_with_nothing() {
        let judged = |measured| step([0.0, 0.0], measured);
        assert_eq!((judged([0.0, 0.0]).rule, judged([0.0, 0.0]).size_agrees), (Rule::StaysZero, Some(true)));
        assert_eq!((judged([0.0, 1.0]).size_agrees, judged([1.0, 0.0]).size_agrees), (Some(false), Some(false)));
        assert_eq!(judged([0.0, 0.0]).direction_agrees, None);
        let alarm = |measured| judged(measured).false_alarm;
        assert_eq!([[0.0, 0.0], [0.0, 1.0], [5.0, 5.0]].map(alarm), [Some(false), Some(true), Some(false)]);
    }

    #[test]
    fn an_unmeasured_row_agrees_with_nothing() {
        for published in [[2.0, 1.0], [2.0, 0.0], [0.0, 0.0]] {
            let s = judge(1, 0, published, None, Noise::Unknown);
            assert_eq!(s.size_agrees, Some(false), "{published:?}");
            assert_ne!(s.direction_agrees, Some(true), "{published:?}");
        }
    }

    #[test]
    fn a_null_test_agrees_within_its_own_noise_and_has_no_direction() {
        let judged = |measured| judge(1, 0, [52_739.45, 62_758.21], Some(measured), Noise::Itself);
        assert_eq!((judged([10.0, 11.0]).size_agrees, judged([11.0, 10.0]).size_agrees), (Some(true), Some(true)));
        assert_eq!((judged([10.0, 13.0]).size_agrees, judged([10.0, 13.0]).direction_agrees), (Some(false), None));
        assert_eq!(judge(1, 0, [5.0, 5.0], Some([0.0, 0.0]), Noise::Itself).size_agrees, Some(true));
    }

    #[test]
    fn each_column_is_held_against_the_one_before() {
        // Success 1 of a series of patches: the third brings it all.
        let published = [27.5, 25.3, 45.5, 45.9, 46.3];
        let measured = [20.0, 20.0, 41.0, 41.0, 20.0].map(Some);
        let steps = steps(&published, &measured, Noise::Unknown);
        let each = |f: fn(&JudgedStep) -> Option<bool>| steps.iter().map(f).collect::<Vec<_>>();
        assert_eq!(each(|s| s.direction_agrees), [None, Some(true), None, None]);
        assert_eq!(each(|s| s.size_agrees), [Some(true), Some(true), Some(true), Some(false)]);
        assert_eq!(steps.iter().map(|s| (s.against, s.variant)).collect::<Vec<_>>(), [(0, 1), (1, 2), (2, 3), (3, 4)]);
    }
}
