//! Samples, and the clock that takes them.

use std::time::Instant;

/// Samples of one figure, at least one.
#[derive(Clone, Debug)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Takes values in the order of measurement.
    ///
    /// # Panics
    /// If there are no values.
    pub fn new(values: Vec<f64>) -> Samples {
        assert!(!values.is_empty(), "a figure needs a sample");
        Samples(values)
    }

    /// The middle value, or the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let mut v = self.0.clone();
        v.sort_by(f64::total_cmp);
        (v[(v.len() - 1) / 2] + v[v.len() / 2]) / 2.0
    }

    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The ratios to the other's samples, turn by turn.
    pub fn ratios(&self, other: &Samples) -> Samples {
        Samples(self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect())
    }
}

/// Nanoseconds per operation of `f`, which does `n` of them.
#[inline]
pub fn ns_each(n: usize, f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_nanos() as f64 / n as f64
}

/// The cost of reading the clock twice, in ns, to subtract where single operations are timed.
pub fn clock_ns() -> f64 {
    let one = |_| {
        let start = Instant::now();
        start.elapsed().as_nanos() as f64
    };
    Samples::new((0..10_001).map(one).collect()).median()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_middle() {
        assert_eq!(Samples::new(vec![9.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Samples::new(vec![4.0, 1.0]).median(), 2.5);
    }
}
