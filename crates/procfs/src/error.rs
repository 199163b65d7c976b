//! The error of all parsers: what is wrong with a text, in one line.

use std::fmt;

/// A text that no kernel writes to this file, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadText {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// The line number, from 1.
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: line {}: {}", self.file, self.line, self.reason)
    }
}

impl std::error::Error for BadText {}
