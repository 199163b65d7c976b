//! Wrong requests and failures, and the line that each prints.

use kontig_text::{gib, one_line};
use std::fmt;

/// A wrong request: nothing was run. Exit code 2.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedWrongly {
    /// A name that means nothing here.
    Unknown {
        what: &'static str,
        name: String,
        /// The nearest known name.
        nearest: Option<String>,
        /// All known names, with commas.
        known: String,
    },
    /// A file that is not TOML, or not of the right form.
    Malformed { path: String, line: usize, reason: String },
    /// A file that contradicts itself.
    Contradictory { path: String, reason: String },
    /// A file that cannot be read.
    Unreadable { path: String, reason: String },
    /// A value out of range, or two that contradict each other.
    Value(String),
}

/// A failure while running. Exit code 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Failed {
    /// The host lacks memory, or the control group whose limit this names does.
    HostMemory { what: String, needed: u64, available: u64, limit: Option<String> },
    /// The simulated run cannot go on.
    Run { run: String, reason: String },
    /// A result cannot be written.
    Write { path: String, reason: String },
    /// A result is missing, damaged or of another version.
    Result { path: String, reason: String },
    /// The user pressed Ctrl-C.
    Interrupted {
        /// The part that was finished and stored.
        kept: String,
    },
}

/// Any error of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    Asked(AskedWrongly),
    Failed(Failed),
}

impl Error {
    /// 1 failed while running, 2 asked wrongly.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Asked(_) => 2,
            Error::Failed(_) => 1,
        }
    }
}

impl From<AskedWrongly> for Error {
    fn from(e: AskedWrongly) -> Self {
        Error::Asked(e)
    }
}

impl From<kontig_profiles::ProfileError> for Error {
    fn from(e: kontig_profiles::ProfileError) -> Self {
        use kontig_profiles::ProfileError;
        Error::Asked(match e {
            e @ (ProfileError::Unknown { .. } | ProfileError::NoKernel { .. }) => AskedWrongly::Value(e.to_string()),
            ProfileError::Unreadable { path, reason } => AskedWrongly::Unreadable { path, reason },
            ProfileError::Malformed { path, line, reason } => AskedWrongly::Malformed { path, line, reason },
        })
    }
}
impl From<Failed> for Error {
    fn from(e: Failed) -> Self {
        Error::Failed(e)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.text()))
    }
}

impl Error {
    fn text(&self) -> String {
        match self {
            Error::Asked(AskedWrongly::Unknown { what, name, known, .. }) if name.is_empty() => {
                format!("the name of the {what} is empty; known: {known}")
            }
            Error::Asked(AskedWrongly::Unknown { what, name, nearest: Some(n), .. }) => {
                format!("unknown {what} '{name}': did you mean '{n}'? ('kontig list' shows all)")
            }
            Error::Asked(AskedWrongly::Unknown { what, name, nearest: None, known }) => {
                format!("unknown {what} '{name}'; known: {known}")
            }
            Error::Asked(AskedWrongly::Malformed { path, line, reason }) => format!("{path}:{line}: {reason}"),
            Error::Asked(AskedWrongly::Contradictory { path, reason }) => format!("{path}: {reason}"),
            Error::Asked(AskedWrongly::Unreadable { path, reason }) => format!("{path}: cannot be read: {reason}"),
            Error::Asked(AskedWrongly::Value(reason)) => reason.clone(),
            Error::Failed(Failed::HostMemory { what, needed, available, limit }) => {
                let place = limit.as_ref().map_or(String::new(), |limit| format!(" in {limit}"));
                format!(
                    "{what} needs {:.1} GiB of memory, {:.1} GiB are available{place}: choose a smaller machine with \
                     --machine",
                    gib(*needed),
                    gib(*available)
                )
            }
            Error::Failed(Failed::Run { run, reason }) => format!("{run}: {reason}"),
            Error::Failed(Failed::Write { path, reason }) => format!("{path}: cannot be written: {reason}"),
            Error::Failed(Failed::Result { path, reason }) => format!("{path}: {reason}"),
            Error::Failed(Failed::Interrupted { kept }) => format!("interrupted; {kept}"),
        }
    }
}

impl std::error::Error for Error {}
