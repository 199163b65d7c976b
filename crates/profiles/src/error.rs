//! What is wrong with a profile that was asked for.

use crate::kernel::neighbours;
use crate::nearest;
use std::fmt;

/// Why there is no profile; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// A name that no profile has.
    Unknown {
        /// The name.
        name: String,
        /// The nearest known one.
        nearest: Option<String>,
        /// All there are.
        known: String,
    },
    /// A kernel that has no profile of its own.
    NoKernel {
        /// Its version.
        name: String,
        /// Which profiles are before and behind it, in words.
        neighbours: String,
    },
    /// A file that cannot be read.
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A file that is not a profile.
    Malformed {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        reason: String,
    },
}

impl ProfileError {
    pub(crate) fn unknown(name: &str) -> ProfileError {
        if let Some(neighbours) = neighbours(name) {
            return ProfileError::NoKernel { name: name.into(), neighbours };
        }
        let known: Vec<&str> = crate::names().collect();
        // Every name begins with nothing.
        let nearest = if name.is_empty() { None } else { nearest(name, &known) };
        ProfileError::Unknown { name: name.into(), nearest, known: known.join(", ") }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::Unknown { name, nearest: Some(n), .. } => {
                write!(f, "unknown profile '{name}': did you mean '{n}'?")
            }
            ProfileError::Unknown { name, nearest: None, known } => {
                write!(f, "unknown profile '{name}'; known: {known}")
            }
            ProfileError::NoKernel { name, neighbours } => {
                write!(f, "unknown profile '{name}': it is {neighbours}")
            }
            ProfileError::Unreadable { path, reason } => write!(f, "{path}: cannot be read: {reason}"),
            ProfileError::Malformed { path, line, reason } => write!(f, "{path}:{line}: {reason}"),
        }
    }
}

impl std::error::Error for ProfileError {}
