//! Scores: how many rows of a table agree with what was published.

use serde::{Deserialize, Serialize};

/// How many rows agree, of how many that count.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Tally {
    /// Rows that agree.
    pub agree: u32,
    /// Rows that count.
    pub of: u32,
}

/// An experiment's score.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Score {
    /// Rows whose direction agrees, of those with a published change of 10 % or more.
    pub direction: Tally,
    /// Headline rows whose change ratio is within 2× of the published one.
    pub headline_within_2x: Tally,
}
