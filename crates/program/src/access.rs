//! Accesses to memory: in which order they go over it, and whether one waits for another.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// The order in which accesses go over memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One cache line after the other, as a copy or a scan.
    Sequential,
    /// Anywhere, none waiting for another, as a table that is updated at random places.
    Independent,
    /// Anywhere, each to an address that the one before has read, as a list or a tree.
    Chase,
    /// As a chase, some pages more often than others: the n-th hottest as often as n to the power
    /// of -theta says (Zipf).
    Skewed { theta: f64, hot: Hot },
}

/// Where the pages lie that are accessed most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Hot {
    /// All beside each other.
    Together,
    /// All over the memory.
    Scattered,
}
