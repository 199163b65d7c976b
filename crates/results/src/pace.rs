//! Pace sweeps: how latency depends on how fast huge pages are taken.

use serde::{Deserialize, Serialize};

/// One point of a pace sweep: percentiles of the allocation latency at a pause.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct PacePoint {
    /// The variant.
    pub variant: String,
    /// Pause after each allocation, µs.
    pub pause_us: f64,
    /// Huge pages obtained per second, pauses and stalls included; null where none was.
    pub per_second: Option<f64>,
    /// How many were obtained: the samples behind the percentiles.
    pub samples: u64,
    /// Percentile and latency in µs; empty where nothing was obtained.
    pub latency_us: Vec<(f64, f64)>,
}
