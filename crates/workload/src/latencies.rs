//! Latencies of one kind of operation.

use hdrhistogram::Histogram;
use kontig_program::Text;

/// The distribution of one kind of operation's latencies.
#[derive(Clone)]
pub struct Latencies {
    pub name: Text,
    /// The reason to show if nothing was recorded.
    pub missing: &'static str,
    /// The times, ns, in buckets of three significant figures.
    pub histogram: Histogram<u64>,
    /// The longest time, exactly; none where nothing was recorded.
    pub longest_ns: Option<u64>,
}

impl Latencies {
    /// An empty distribution, for 1 ns to ten hours.
    pub fn new(name: &'static str, missing: &'static str) -> Latencies {
        let histogram =
            Histogram::new_with_bounds(1, 36_000_000_000_000, 3).expect("the bounds are within the library's");
        Latencies { name: name.into(), missing, histogram, longest_ns: None }
    }
    /// Merges those of several programs; none if there are no programs.
    pub fn of_all<'a>(each: impl IntoIterator<Item = &'a Latencies>) -> Option<Latencies> {
        let mut each = each.into_iter();
        let mut all = each.next()?.clone();
        each.for_each(|other| all.add(other));
        Some(all)
    }
    /// Adds what another program has recorded.
    pub fn add(&mut self, other: &Latencies) {
        // All have the same bounds, so nothing lies beyond them.
        self.histogram += &other.histogram;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
    /// Records the latency of one operation.
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(1));
        self.longest_ns = self.longest_ns.max(Some(ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_is_exact_where_a_bucket_is_not() {
        let mut l = Latencies::new("x", "nothing was done");
        assert_eq!(l.longest_ns, None);
        l.record(5_009_123);
        l.record(7);
        assert_eq!(l.longest_ns, Some(5_009_123));
        assert!(l.histogram.max() > 5_009_123);
    }
}
