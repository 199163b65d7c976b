//! Errors of a recording, one line each.
//!
//! A recording is untrusted input: it may be truncated, edited, or of a kernel without a profile.
//! A [`BadRecording`] names the file, the position in it and the defect.

use std::fmt;
use std::path::PathBuf;

/// Position in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// The file as a whole.
    Whole,
    /// Line, counted from 1.
    Line(usize),
    /// Operation of a trace, counted from 0 as in [`Difference`](crate::Difference).
    Operation(usize),
}

/// A recording that cannot be replayed, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadRecording {
    /// The file or folder.
    pub path: PathBuf,
    pub position: Position,
    pub reason: String,
}

impl BadRecording {
    /// Error about a whole file.
    pub fn whole(path: impl Into<PathBuf>, reason: impl Into<String>) -> BadRecording {
        BadRecording { path: path.into(), position: Position::Whole, reason: reason.into() }
    }
    /// Error in a line, counted from 1.
    pub fn line(path: impl Into<PathBuf>, line: usize, reason: impl Into<String>) -> BadRecording {
        BadRecording { path: path.into(), position: Position::Line(line), reason: reason.into() }
    }
    /// Error in an operation, counted from 0.
    pub fn operation(path: impl Into<PathBuf>, op: usize, reason: impl Into<String>) -> BadRecording {
        BadRecording { path: path.into(), position: Position::Operation(op), reason: reason.into() }
    }
}

impl fmt::Display for BadRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match self.position {
            Position::Whole => {}
            Position::Line(n) => write!(f, "line {n}: ")?,
            Position::Operation(n) => write!(f, "operation {n}: ")?,
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for BadRecording {}
