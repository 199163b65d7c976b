//! Endings: by which rule a program stopped before its work was done.

use crate::figure::Text;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// The rule by which a program stopped, and how far it had come.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Ending {
    /// The task whose program it was; empty where tasks have no names.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub task: String,
    /// The phase it ended: `measure`, and then not in the JSON, unless it says otherwise.
    #[cfg_attr(
        feature = "serde",
        serde(default = "crate::figure::measure", skip_serializing_if = "crate::figure::is_measure")
    )]
    pub phase: Text,
    /// The rule, such as `the first failed allocation`.
    pub rule: String,
    /// The share of its goal it had reached, %; none where the goal was nothing.
    pub reached: Option<f64>,
    /// The goal, such as `the memory free at the start`.
    pub goal: String,
    /// How to have it otherwise.
    pub remedy: String,
}
