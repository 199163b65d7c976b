//! A step from one sample to the next, and what was counted in it.
//!
//! No step goes over a boot, or over a time without samples. A count's rate is over those steps
//! that tell the count: what was not told is not 0.

use super::changes::is_gap;
use super::count::Count;
use super::point::Point;
use std::ops::Add;

/// Two neighbouring points of one boot.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub before: &'a Point,
    pub after: &'a Point,
    /// By the clock that no one sets.
    pub seconds: f64,
}

/// How much a count grew, and the seconds that this is known of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Growth {
    pub by: f64,
    pub seconds: f64,
}

impl Growth {
    pub fn a_second(self) -> f64 {
        self.by / self.seconds
    }
}

impl Add for Growth {
    type Output = Growth;

    fn add(self, more: Growth) -> Growth {
        Growth { by: self.by + more.by, seconds: self.seconds + more.seconds }
    }
}

impl<'a> Step<'a> {
    /// From a point to the next; `None` if a boot or a gap lies between them.
    pub fn between(before: &'a Point, after: &'a Point) -> Option<Step<'a>> {
        let seconds = after.seconds_since(before)?;
        (!is_gap(before.interval_s, seconds)).then_some(Step { before, after, seconds })
    }

    /// How much a count grew; `None` if one of the two does not tell it.
    pub fn grown(&self, count: Count) -> Option<Growth> {
        let by = (self.after.counts.get(&count)? - self.before.counts.get(&count)?).max(0.0);
        Some(Growth { by, seconds: self.seconds })
    }
}

/// How much a count grew in the steps that tell it; `None` if none does.
pub fn grown<'a>(steps: impl IntoIterator<Item = Step<'a>>, count: Count) -> Option<Growth> {
    steps.into_iter().filter_map(|step| step.grown(count)).reduce(Growth::add)
}

/// The share of first touches that got small pages instead of a huge one, of the steps that tell
/// both; `None` if there was no such touch.
pub fn refused_share<'a>(steps: impl IntoIterator<Item = Step<'a>>) -> Option<f64> {
    let both = |step: Step| Some((step.grown(Count::Given)?.by, step.grown(Count::Refused)?.by));
    let touches = steps.into_iter().filter_map(both);
    let (given, refused) = touches.fold((0.0, 0.0), |sum, both| (sum.0 + both.0, sum.1 + both.1));
    (given + refused > 0.0).then(|| refused / (given + refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(uptime_s: f64, counts: &[(Count, f64)]) -> Point {
        Point { uptime_s: Some(uptime_s), counts: counts.iter().copied().collect(), ..Point::of(&Default::default()) }
    }

    fn steps(points: &[Point]) -> Vec<Step<'_>> {
        points.windows(2).filter_map(|pair| Step::between(&pair[0], &pair[1])).collect()
    }

    #[test]
    fn no_step_goes_over_a_gap_as_the_interval_of_its_first_sample_has_it() {
        let points = [(0.0, 1.0), (8.0, 1.0), (16.5, 10.0), (51.0, 10.0), (87.0, 10.0)];
        let points = points.map(|(uptime_s, interval_s)| Point { interval_s, ..point(uptime_s, &[]) });
        let seconds: Vec<f64> = steps(&points).iter().map(|step| step.seconds).collect();
        assert_eq!(seconds, [8.0, 34.5]);
    }

    #[test]
    fn a_share_of_touches_is_of_the_steps_that_tell_both_kinds() {
        let both = |given, refused| [(Count::Given, given), (Count::Refused, refused)];
        let alone = |given| [(Count::Given, given)];
        let points = [point(0.0, &both(0.0, 0.0)), point(10.0, &both(30.0, 10.0)), point(20.0, &alone(990.0))];
        assert_eq!(refused_share(steps(&points)), Some(0.25));
        assert_eq!(grown(steps(&points), Count::Given), Some(Growth { by: 990.0, seconds: 20.0 }));
        assert_eq!(grown(steps(&points), Count::Refused), Some(Growth { by: 10.0, seconds: 10.0 }));
        assert_eq!(refused_share(steps(&points[1..])), None);
    }
}
