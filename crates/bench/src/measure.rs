//! Samples, and the clocks that take them.

use rustix::time::{ClockId, clock_gettime};
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

/// Measures CPU time of this thread, so that a moment that another program had the CPU does not
/// count.
#[derive(Clone, Copy)]
pub struct Stopwatch {
    started_ns: f64,
}

impl Stopwatch {
    #[inline]
    pub fn start() -> Stopwatch {
        Stopwatch { started_ns: cpu_ns() }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn ns(self) -> f64 {
        cpu_ns() - self.started_ns
    }
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds per operation of `f`, which does `n` of them.
#[inline]
pub fn ns_each(n: usize, f: impl FnOnce()) -> f64 {
    let start = Stopwatch::start();
    f();
    start.ns() / n as f64
}

/// The cost of reading the clock of elapsed time twice, in ns, to subtract where single operations
/// are timed.
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

    #[test]
    fn a_thread_that_sleeps_takes_no_time() {
        let ns = ns_each(1, || std::thread::sleep(std::time::Duration::from_millis(50)));
        assert!(ns < 25e6, "{ns}");
    }
}
