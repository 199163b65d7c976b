//! Statistics of a figure over the runs of a variant, as MMTests prints them for its benchmarks.
//!
//! The difference of two variants is in percent, positive if the later one is better. A difference
//! of means is marked if a two-sided t-test (the standard error from both variances, n₁ + n₂ − 2
//! degrees of freedom) gives chance less than a tenth.

use kontig_program::Better;
use serde::{Deserialize, Serialize};

/// A difference less likely by chance than this is marked.
const SIGNIFICANT: f64 = 0.10;

/// The shares of the best runs whose mean is printed, percent.
pub const BEST: [u32; 3] = [50, 95, 99];

/// The statistics of one variant's values of a figure.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Statistics {
    /// Values: repetitions, or the rounds of all repetitions.
    pub n: u32,
    pub min: f64,
    /// Arithmetic, or harmonic if higher is better; null if a harmonic mean has a value that is not
    /// above 0.
    pub mean: Option<f64>,
    /// Over n − 1; null for one value.
    pub stddev: Option<f64>,
    /// The standard deviation in percent of the arithmetic mean; null if that is 0.
    pub coeff_var: Option<f64>,
    pub max: f64,
    /// The same mean of the best 50, 95 and 99 % of the values (see [`BEST`]), rounded down; of all
    /// values if that leaves none.
    pub best_means: [Option<f64>; BEST.len()],
    /// Whether the mean differs from the baseline's by more than chance; null for the baseline and
    /// for one value.
    pub significant: Option<bool>,
}

impl Statistics {
    /// `None` for no value.
    pub fn of(values: &[f64], better: Better, baseline: Option<&[f64]>) -> Option<Statistics> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let arithmetic = mean(values)?;
        let stddev = stddev(values);
        if better == Better::Higher {
            sorted.reverse();
        }
        let mean = if better == Better::Higher { harmonic_mean } else { mean };
        let best = |percent: u32| {
            let whole = sorted.len() * percent as usize / 100;
            mean(&sorted[..if whole == 0 { sorted.len() } else { whole }])
        };
        Some(Statistics {
            n: values.len() as u32,
            min,
            mean: mean(values),
            stddev,
            coeff_var: stddev.filter(|_| arithmetic != 0.0).map(|s| 100.0 * s / arithmetic),
            max,
            best_means: BEST.map(best),
            significant: baseline.and_then(|base| differ(base, values)),
        })
    }
}

/// The arithmetic mean; `None` for no value.
pub fn mean(values: &[f64]) -> Option<f64> {
    mean_of(once_each(values))
}

/// `None` if a value is not above 0.
pub fn harmonic_mean(values: &[f64]) -> Option<f64> {
    let all = !values.is_empty() && values.iter().all(|x| *x > 0.0);
    all.then(|| values.len() as f64 / values.iter().map(|x| 1.0 / x).sum::<f64>())
}

/// Over n − 1; `None` for one value.
pub fn stddev(values: &[f64]) -> Option<f64> {
    stddev_of(once_each(values))
}

fn once_each(values: &[f64]) -> impl Iterator<Item = (f64, u64)> + Clone {
    values.iter().map(|value| (*value, 1))
}

/// The arithmetic mean of values, each with how often it occurs.
pub(crate) fn mean_of(values: impl Iterator<Item = (f64, u64)> + Clone) -> Option<f64> {
    let n: u64 = values.clone().map(|(_, n)| n).sum();
    let sum: f64 = values.map(|(value, n)| value * n as f64).sum();
    (n > 0).then(|| sum / n as f64)
}

/// The standard deviation of values, each with how often it occurs, over one less than there are.
pub(crate) fn stddev_of(values: impl Iterator<Item = (f64, u64)> + Clone) -> Option<f64> {
    let mean = mean_of(values.clone())?;
    let n: u64 = values.clone().map(|(_, n)| n).sum();
    let squares: f64 = values.map(|(value, n)| (value - mean).powi(2) * n as f64).sum();
    (n > 1).then(|| (squares / (n - 1) as f64).sqrt())
}

/// The improvement on the baseline in percent: growth if higher is better, else shrinkage. From 0,
/// growth is 100, and a figure that should be low has −99, as in MMTests.
pub fn difference(better: Better, base: f64, new: f64) -> f64 {
    match better {
        _ if new == base => 0.0,
        Better::Higher if base == 0.0 => 100.0,
        Better::Higher => new * 100.0 / base - 100.0,
        _ if base == 0.0 => -99.0,
        _ => 100.0 - new * 100.0 / base,
    }
}

/// Whether two means differ by more than chance; `None` if one has fewer than two values.
fn differ(a: &[f64], b: &[f64]) -> Option<bool> {
    let (mean_a, mean_b) = (mean(a)?, mean(b)?);
    let error = (stddev(a)?.powi(2) / a.len() as f64 + stddev(b)?.powi(2) / b.len() as f64).sqrt();
    if error == 0.0 {
        return Some(mean_a != mean_b);
    }
    let freedom = a.len() + b.len() - 2;
    Some(two_sided((mean_a - mean_b) / error, freedom) < SIGNIFICANT)
}

/// The chance that Student's t of this many degrees of freedom is at least as far from 0.
///
/// For a whole number of degrees the integral is a finite sum (Abramowitz and Stegun, 26.7.3 and
/// 26.7.4).
fn two_sided(t: f64, freedom: usize) -> f64 {
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sin, square) = (angle.sin(), angle.cos().powi(2));
    let odd = freedom % 2 == 1;
    // Each term is the one before, times cos² and a fraction.
    let (mut term, mut sum) = (if odd { angle.cos() } else { 1.0 }, 0.0);
    let mut k = if odd { 1 } else { 0 };
    while k + 2 <= freedom {
        sum += term;
        k += 2;
        term *= square * (k - 1) as f64 / k as f64;
    }
    let within = if odd { (angle + sin * sum) * 2.0 / std::f64::consts::PI } else { sin * sum };
    (1.0 - within).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4 * b.abs().max(1.0)
    }

    #[test]
    fn of_five_times_by_hand() {
        // Sum 30, mean 6; squares 16 + 4 + 1 + 1 + 36 = 58, over 4 is 14.5.
        let s = Statistics::of(&[2.0, 4.0, 5.0, 7.0, 12.0], Better::Lower, None);
        let Some(s) = s else { panic!("there are values") };
        assert_eq!((s.n, s.min, s.max, s.mean), (5, 2.0, 12.0, Some(6.0)));
        assert!(near(s.stddev.unwrap(), 3.8079) && near(s.coeff_var.unwrap(), 63.465), "{s:?}");
        // Half of five is two, 95 and 99 % are four: (2 + 4) / 2 and (2 + 4 + 5 + 7) / 4.
        assert_eq!(s.best_means, [3.0, 4.5, 4.5].map(Some));
        assert_eq!(s.significant, None);
    }

    #[test]
    fn where_higher_is_better_the_mean_is_harmonic_and_the_best_are_the_highest() {
        let s = Statistics::of(&[1.0, 2.0, 4.0], Better::Higher, None);
        let Some(s) = s else { panic!("there are values") };
        // 3 / (1 + ½ + ¼) = 12/7; one of three is a half, two are 95 %: 2 / (½ + ¼) = 8/3.
        assert!(near(s.mean.unwrap(), 12.0 / 7.0), "{s:?}");
        assert_eq!(s.best_means, [Some(4.0), Some(2.0 / 0.75), Some(2.0 / 0.75)]);
        assert_eq!(harmonic_mean(&[1.0, 0.0]), None);
    }

    #[test]
    fn one_value_has_no_deviation_and_all_of_it_is_best() {
        let s = Statistics::of(&[3.0], Better::Neither, Some(&[4.0]));
        let Some(s) = s else { panic!("there is a value") };
        assert_eq!((s.stddev, s.coeff_var, s.significant, s.best_means), (None, None, None, [Some(3.0); 3]));
        assert_eq!(Statistics::of(&[], Better::Neither, None), None);
    }

    #[test]
    fn differences_are_positive_where_it_is_better() {
        // Published: Amean System-1 102.86 and 46.81, 54.50 %; Kbuild Real time 197.47 and 196.59.
        assert!(near(difference(Better::Lower, 102.86, 46.81), 54.492));
        assert!(near(difference(Better::Lower, 51.98, 56.96), -9.581));
        assert!(near(difference(Better::Higher, 0.71, 14.04), 1877.465));
        let lower = |base, new| difference(Better::Lower, base, new);
        assert_eq!([lower(5.0, 0.0), lower(0.0, 5.0), lower(0.0, 0.0)], [100.0, -99.0, 0.0]);
        let higher = |base, new| difference(Better::Higher, base, new);
        assert_eq!([higher(5.0, 0.0), higher(0.0, 5.0), higher(0.0, 0.0)], [-100.0, 100.0, 0.0]);
    }

    #[test]
    fn the_t_test_has_the_values_of_the_tables() {
        // Critical values at 10 %, two-sided, and others from any table of Student's t.
        for (freedom, t) in [(1, 6.3138), (2, 2.9200), (3, 2.3534), (4, 2.1318), (8, 1.8595), (9, 1.8331), (28, 1.7011)]
        {
            assert!((two_sided(t, freedom) - 0.10).abs() < 1e-4, "{freedom}: {}", two_sided(t, freedom));
            assert!((two_sided(-t, freedom) - 0.10).abs() < 1e-4, "{freedom}");
        }
        assert!((two_sided(2.7764, 4) - 0.05).abs() < 1e-4 && (two_sided(3.2498, 9) - 0.01).abs() < 1e-4);
        assert_eq!(two_sided(0.0, 5), 1.0);
    }

    #[test]
    fn a_difference_beyond_chance_is_marked() {
        // Means 2 and 5, both variances 1: t = 3 / √(2/3) = 3.674, four degrees, 2.1 %.
        assert_eq!(differ(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), Some(true));
        // Means 2 and 3: t = 1.225, 28.8 %.
        assert_eq!(differ(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]), Some(false));
        assert_eq!((differ(&[1.0, 1.0], &[1.0, 1.0]), differ(&[1.0, 1.0], &[2.0, 2.0])), (Some(false), Some(true)));
        assert_eq!(differ(&[1.0], &[2.0, 3.0]), None);
    }
}
