//! Endings: by which rule a program stopped before its work was done.

use serde::{Deserialize, Serialize};

/// The rule by which a program stopped, and how far it had come.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Ending {
    /// The rule, such as `the first failed allocation`.
    pub rule: String,
    /// The share of its goal it had reached, %; none where the goal was nothing.
    pub reached: Option<f64>,
    /// The goal, such as `the free memory`.
    pub goal: String,
    /// How to have it otherwise.
    pub remedy: String,
}
