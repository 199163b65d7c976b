//! Series: values over time.

use serde::{Deserialize, Serialize};

/// A value over time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Series {
    /// What it is, such as `fragmentation score`.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Time in ns and value.
    pub points: Vec<(u64, f64)>,
}
