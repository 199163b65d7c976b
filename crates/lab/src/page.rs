//! The text of a page about an experiment: questions, each with the rows that answer it.
//!
//! Questions and readings are written by hand in the experiment's file; every figure beside them is
//! measured when the page is made.

use serde::{Deserialize, Serialize};

/// The hand-written part of an experiment's page.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PageText {
    pub title: String,
    /// The introduction: what is asked, and by whom.
    pub about: String,
    /// The questions, in the order of their answers.
    pub question: Vec<Question>,
    /// Conditions of the answer, an item each.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Gaps of the model that could change the answer, an item each.
    #[serde(default)]
    pub not_modelled: Vec<String>,
}

/// A question of a page.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub ask: String,
    /// The rows that answer it, by name, of the measured phase.
    pub rows: Vec<String>,
    /// Our interpretation of these rows.
    #[serde(default)]
    pub reading: String,
}

impl PageText {
    /// The page of a changed experiment: readings refer to figures that no longer hold.
    pub(crate) fn without_readings(mut self) -> PageText {
        self.question.iter_mut().for_each(|question| question.reading.clear());
        self.depends_on.clear();
        self
    }
}
