//! Caveats: what keeps a published row from being evidence, declared from the publication alone.
//!
//! A row with a caveat is shown with its verdict like any other, but scored apart: it neither adds to nor takes from
//! what the experiment agrees in.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a row is scored apart.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum CaveatKind {
    /// The benchmark does not measure what the row is called after.
    Artefact,
    /// One sample, or counts so small that another run could have come out the other way.
    FewSamples,
    /// Both columns are the same code: what differs is from run to run.
    NullTest,
}

impl CaveatKind {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            CaveatKind::Artefact => "artefact",
            CaveatKind::FewSamples => "few-samples",
            CaveatKind::NullTest => "null-test",
        }
    }
}

impl fmt::Display for CaveatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A row's caveat.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Caveat {
    /// Of what kind.
    pub kind: CaveatKind,
    /// What in the publication says so.
    pub reason: String,
}
