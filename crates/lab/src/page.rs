//! What a page about an experiment is to say: questions, each with the rows that answer it.
//!
//! The questions and how we read the answers are written by hand, in the experiment's file; every figure beside them is measured when the page is made.

use serde::{Deserialize, Serialize};

/// The text of an experiment's page.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PageText {
    /// Its heading.
    pub title: String,
    /// What is asked and by whom, before anything else.
    pub about: String,
    /// What is asked, in the order it is answered.
    pub question: Vec<Question>,
    /// What the answer depends on, an item each; by hand.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// What the model lacks that could change the answer, an item each.
    #[serde(default)]
    pub not_modelled: Vec<String>,
}

/// A question.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// It.
    pub ask: String,
    /// The rows that answer it, by name: of the phase that is measured.
    pub rows: Vec<String>,
    /// How we read them; by hand.
    #[serde(default)]
    pub reading: String,
}

impl PageText {
    /// What remains of it where the experiment was changed: no reading is of other figures than those it was made of.
    pub(crate) fn without_readings(mut self) -> PageText {
        self.question.iter_mut().for_each(|question| question.reading.clear());
        self.depends_on.clear();
        self
    }
}
