//! Series: values over time.

use serde::{Deserialize, Serialize};

/// One value, sampled over time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Series {
    /// For example `fragmentation score`.
    pub name: String,
    pub unit: String,
    /// Virtual time in ns, and the value.
    pub points: Vec<(u64, f64)>,
}
