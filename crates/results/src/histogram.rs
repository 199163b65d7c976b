//! Distributions: the durations of single operations, as counts in buckets.
//!
//! Percentiles of several runs come from their merged buckets: a mean of percentiles is no
//! percentile.

use crate::statistics;
use kontig_program::{Text, figure};
use serde::{Deserialize, Serialize};

/// A distribution: the number of operations in each bucket.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Histogram {
    /// For example `hugepage alloc latency`.
    pub name: String,
    /// The phase of the run. `measure`, the default, is left out of the JSON.
    #[serde(default = "figure::measure", skip_serializing_if = "figure::is_measure")]
    pub phase: Text,
    /// The unit of the bucket bounds.
    pub unit: String,
    /// Upper bound and count of each bucket, ascending, none empty. The last bound is exactly the
    /// longest operation; the others are within a thousandth.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Whether this is the distribution `name` of `phase`.
    pub fn is(&self, name: &str, phase: &str) -> bool {
        self.name == name && self.phase == phase
    }

    /// The number of operations in all buckets.
    pub fn samples(&self) -> u64 {
        self.buckets.iter().map(|b| b.1).sum()
    }

    /// The smallest bucket bound that at least `p` percent of the operations do not exceed.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        // The tolerance keeps a rounding error from asking for one sample too many.
        let wanted = (p * self.samples() as f64 / 100.0 - 1e-6).ceil();
        let mut seen = 0;
        let reached = |b: &&(f64, u64)| {
            seen += b.1;
            seen as f64 >= wanted
        };
        self.buckets.iter().find(reached).or(self.buckets.last()).map(|b| b.0)
    }

    /// The mean, each operation taken at its bucket's bound.
    pub fn mean(&self) -> Option<f64> {
        statistics::mean_of(self.buckets.iter().copied())
    }

    /// The standard deviation, likewise; `None` for fewer than two operations.
    pub fn stddev(&self) -> Option<f64> {
        statistics::stddev_of(self.buckets.iter().copied())
    }

    /// The distributions of several runs merged; `None` for no run.
    pub fn pooled<'a>(of: impl IntoIterator<Item = &'a Histogram>) -> Option<Histogram> {
        let mut of = of.into_iter();
        let mut all = of.next()?.clone();
        all.buckets.extend(of.flat_map(|h| h.buckets.iter().copied()));
        all.buckets.retain(|b| b.0.is_finite());
        all.buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.buckets.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        Some(all)
    }
}
