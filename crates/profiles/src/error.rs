//! The errors of a request for a profile.

use crate::builtin::names;
use crate::kernel::neighbours;
use crate::nearest::nearest;
use std::fmt;

/// Why a request for a profile failed. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// A name that no profile has.
    Unknown {
        name: String,
        nearest: Option<String>,
        /// The names of all profiles.
        known: String,
    },
    /// A kernel that has no profile of its own.
    NoKernel {
        name: String,
        /// The profiles before and behind it, in words.
        neighbours: String,
        /// The names of all profiles.
        known: String,
    },
    /// A file that cannot be read.
    Unreadable { path: String, reason: String },
    /// A file that is not a profile.
    Malformed {
        path: String,
        /// The line number, counted from 1.
        line: usize,
        /// The error, and a correct form.
        reason: String,
    },
}

impl ProfileError {
    pub(crate) fn unknown(name: &str) -> ProfileError {
        let known: Vec<&str> = names().collect();
        let (name, all) = (name.to_string(), known.join(", "));
        match neighbours(&name) {
            Some(neighbours) => ProfileError::NoKernel { name, neighbours, known: all },
            None => ProfileError::Unknown { nearest: nearest(&name, &known), name, known: all },
        }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::Unknown { name, known, .. } if name.is_empty() => {
                write!(f, "the name of the profile is empty; known: {known}")
            }
            ProfileError::Unknown { name, nearest: Some(n), known } => {
                write!(f, "unknown profile '{name}': did you mean '{n}'? known: {known}")
            }
            ProfileError::Unknown { name, nearest: None, known } => {
                write!(f, "unknown profile '{name}'; known: {known}")
            }
            ProfileError::NoKernel { name, neighbours, known } => {
                write!(f, "unknown profile '{name}': {neighbours}; known: {known}")
            }
            ProfileError::Unreadable { path, reason } => write!(f, "{path}: cannot be read: {reason}"),
            ProfileError::Malformed { path, line, reason } => write!(f, "{path}:{line}: {reason}"),
        }
    }
}

impl std::error::Error for ProfileError {}
