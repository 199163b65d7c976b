//! An error in a workload, and its place in the file.
//!
//! The place is the keys that lead to it (`phase`, `1`, `task`, `0`, `cpus`): a scenario knows
//! nothing of files and lines, and the reader of the file finds the line by them.

use std::fmt;

/// Something wrong, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The keys and numbers that lead to it, outermost first.
    pub way: Vec<String>,
    /// The error and its remedy.
    pub reason: String,
}

impl Wrong {
    /// Something wrong at the end of this way.
    pub fn at(way: &[&str], reason: impl Into<String>) -> Wrong {
        Wrong { way: way.iter().map(|step| step.to_string()).collect(), reason: reason.into() }
    }

    /// The same, further in.
    #[must_use]
    pub fn below(mut self, way: &[&str]) -> Wrong {
        self.way.splice(0..0, way.iter().map(|step| step.to_string()));
        self
    }

    /// The parameter a reason begins with: `size` of `size = "lots" is not …`.
    pub(crate) fn parameter(reason: &str) -> Option<&str> {
        let (name, _) = reason.split_once(" = ")?;
        name.chars().all(|c| c.is_ascii_lowercase() || c == '_').then_some(name)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
