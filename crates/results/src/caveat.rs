//! Caveats: reasons why a published row is no evidence, declared from the publication alone.
//!
//! A row with a caveat is shown with its verdict like any other, but scored apart: the experiment's
//! score neither gains nor loses by it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a row is scored apart.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum CaveatKind {
    /// The benchmark does not measure what the row is called after.
    Artefact,
    /// One sample, or counts so small that another run could reverse the result.
    FewSamples,
    /// Both columns are the same code; they differ by noise alone.
    NullTest,
    /// Another table has the same figures, and counts them.
    ScoredElsewhere,
}

impl CaveatKind {
    /// The name used in files.
    pub const fn name(self) -> &'static str {
        match self {
            CaveatKind::Artefact => "artefact",
            CaveatKind::FewSamples => "few-samples",
            CaveatKind::NullTest => "null-test",
            CaveatKind::ScoredElsewhere => "scored-elsewhere",
        }
    }
}

impl fmt::Display for CaveatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The caveat of a row, with its reason.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Caveat {
    pub kind: CaveatKind,
    /// The passage of the publication that shows it.
    pub reason: String,
}
