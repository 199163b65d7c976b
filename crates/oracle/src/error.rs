//! What can be wrong with a recording, said in one line.
//!
//! A recording is outside data: it may be cut short, edited by hand, or of another kernel than any profile stands
//! for. Every such thing is a [`BadRecording`] that names the file, the place in it and what is wrong there.

use std::fmt;
use std::path::PathBuf;

/// Where in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line, from 1.
    Line(usize),
    /// An operation of a trace, from 0: the number a difference is reported under.
    Operation(usize),
}

/// A recording that cannot be replayed, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadRecording {
    /// The file or folder.
    pub path: PathBuf,
    /// Where in it.
    pub place: Place,
    /// What is wrong.
    pub reason: String,
}

impl BadRecording {
    /// Something about a file as a whole.
    pub fn whole(path: impl Into<PathBuf>, reason: impl Into<String>) -> BadRecording {
        BadRecording { path: path.into(), place: Place::Whole, reason: reason.into() }
    }
    /// Something about one line, from 1.
    pub fn line(path: impl Into<PathBuf>, line: usize, reason: impl Into<String>) -> BadRecording {
        BadRecording { path: path.into(), place: Place::Line(line), reason: reason.into() }
    }
    /// Something about one operation, from 0.
    pub fn operation(path: impl Into<PathBuf>, op: usize, reason: impl Into<String>) -> BadRecording {
        BadRecording { path: path.into(), place: Place::Operation(op), reason: reason.into() }
    }
}

impl fmt::Display for BadRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match self.place {
            Place::Whole => {}
            Place::Line(n) => write!(f, "line {n}: ")?,
            Place::Operation(n) => write!(f, "operation {n}: ")?,
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for BadRecording {}
