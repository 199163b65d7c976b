//! Pace sweeps: latency by the pace at which huge pages are taken.

use serde::{Deserialize, Serialize};

/// One point of a pace sweep: percentiles of the allocation latency at a pause.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct PacePoint {
    pub variant: String,
    /// The pause after each allocation.
    pub pause_us: f64,
    /// Huge pages obtained per second of elapsed time; null if none was.
    pub per_second: Option<f64>,
    /// Huge pages obtained: the samples of the percentiles.
    pub samples: u64,
    /// Percentile and latency; empty if nothing was obtained.
    pub latency_us: Vec<(f64, f64)>,
}
