//! Distributions: how long single operations took, as counts in buckets.
//!
//! Percentiles are of buckets put together: a mean of several runs' percentiles is no percentile.

use crate::statistics;
use kontig_program::{Text, figure};
use serde::{Deserialize, Serialize};

/// A distribution: how many operations fell into each bucket.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Histogram {
    /// What was measured, such as `hugepage alloc latency`.
    pub name: String,
    /// The phase of the run it is of: `measure`, and then not in the JSON, unless it says otherwise.
    #[serde(default = "figure::measure", skip_serializing_if = "figure::is_measure")]
    pub phase: Text,
    /// Unit of the bucket bounds.
    pub unit: String,
    /// Upper bound of the bucket and the number in it; ascending, no empty buckets. The last bound is the longest
    /// operation's time exactly; the others are within a thousandth.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Whether a figure of this phase is of this distribution, called `name`.
    pub fn is(&self, name: &str, phase: &str) -> bool {
        self.name == name && self.phase == phase
    }

    /// How many operations there are.
    pub fn samples(&self) -> u64 {
        self.buckets.iter().map(|b| b.1).sum()
    }

    /// The smallest bucket bound that at least `p` percent of the operations do not exceed; none if there are none.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        // The tolerance keeps a rounding error from asking for one more sample than there is a share of.
        let wanted = (p * self.samples() as f64 / 100.0 - 1e-6).ceil();
        let mut seen = 0;
        let reached = |b: &&(f64, u64)| {
            seen += b.1;
            seen as f64 >= wanted
        };
        self.buckets.iter().find(reached).or(self.buckets.last()).map(|b| b.0)
    }

    /// The mean of the operations, each taken for its bucket's bound; none if there are none.
    pub fn mean(&self) -> Option<f64> {
        statistics::mean_of(self.buckets.iter().copied())
    }

    /// Their standard deviation, likewise; none if there are fewer than two.
    pub fn stddev(&self) -> Option<f64> {
        statistics::stddev_of(self.buckets.iter().copied())
    }

    /// The distribution of several runs' operations together; none of no run.
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
