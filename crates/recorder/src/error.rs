//! Why there is no recording.

use std::fmt;
use std::path::Path;

/// Why there is no recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The request cannot be met as asked.
    Asked(String),
    /// Something failed while recording.
    Failed(String),
    /// The caller stopped it.
    Interrupted,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Asked(reason) | RecordError::Failed(reason) => f.write_str(reason),
            RecordError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RecordError {}

/// Turns an I/O error on a file into a message.
pub(crate) fn about_file(path: &Path, what: &str) -> impl FnOnce(std::io::Error) -> RecordError {
    let (path, what) = (path.display().to_string(), what.to_string());
    move |e| RecordError::Failed(format!("{path}: cannot {what}: {e}"))
}
