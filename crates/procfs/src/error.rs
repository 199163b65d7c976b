//! What is wrong with a text, said in one line.

use std::fmt;

/// A text that is not what its file holds on any kernel, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadText {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: line {}: {}", self.file, self.line, self.reason)
    }
}

impl std::error::Error for BadText {}
