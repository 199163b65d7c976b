//! Why a file of the host was not read, in one line: missing, not permitted and not understood are
//! told apart.

use kontig_procfs::BadText;
use kontig_text::one_line;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file of the host that was not read, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    pub path: PathBuf,
    pub why: Unread,
}

/// Why a file was not read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unread {
    /// There is none: this kernel has no such file, or the process has ended.
    Missing,
    /// It is there, but not for this user.
    NoPermission,
    /// It was read, but no kernel's file holds that.
    Malformed {
        /// The line, from 1; 0 where the file has no lines.
        line: usize,
        reason: String,
    },
    /// Any other error of the kernel.
    Failed(String),
}

impl ReadError {
    /// The kernel's error about a file.
    pub fn io(path: &Path, error: &io::Error) -> ReadError {
        let why = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unread::Missing,
            io::ErrorKind::PermissionDenied => Unread::NoPermission,
            io::ErrorKind::InvalidData => Unread::Malformed { line: 0, reason: "this is no text".into() },
            _ if error.raw_os_error() == Some(NO_SUCH_PROCESS) => Unread::Missing,
            _ => Unread::Failed(error.to_string()),
        };
        ReadError { path: path.into(), why }
    }

    /// A file with contents that no kernel gives it; `line` is 0 where it has no lines.
    pub fn malformed(path: &Path, line: usize, reason: impl Into<String>) -> ReadError {
        ReadError { path: path.into(), why: Unread::Malformed { line, reason: reason.into() } }
    }

    /// Whether the file is not there.
    pub fn is_missing(&self) -> bool {
        self.why == Unread::Missing
    }

    /// Whether another user could read the file.
    pub fn is_permission(&self) -> bool {
        self.why == Unread::NoPermission
    }
}

/// Advice to a user who lacks a permission.
pub fn remedy() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "root here may not: a container, or who started this, keeps it from that; run this on the host itself, with \
         all of root's rights"
    } else {
        "run this as root"
    }
}

/// ESRCH: a process's files, when it has ended.
const NO_SUCH_PROCESS: i32 = 3;

impl From<BadText> for ReadError {
    fn from(bad: BadText) -> ReadError {
        ReadError::malformed(Path::new(&bad.file), bad.line, bad.reason)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        f.write_str(&one_line(&match &self.why {
            Unread::Missing => format!("{path}: there is no such file"),
            Unread::NoPermission => format!("{path}: no permission to read it: {}", remedy()),
            Unread::Malformed { line: 0, reason } => format!("{path}: {reason}"),
            Unread::Malformed { line, reason } => format!("{path}: line {line}: {reason}"),
            Unread::Failed(reason) => format!("{path}: {reason}"),
        }))
    }
}

impl std::error::Error for ReadError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_not_permitted_and_not_understood_are_told_apart() {
        let path = Path::new("/proc/buddyinfo");
        let said = |kind| ReadError::io(path, &io::Error::from(kind)).to_string();
        assert_eq!(said(io::ErrorKind::NotFound), "/proc/buddyinfo: there is no such file");
        assert_eq!(
            said(io::ErrorKind::PermissionDenied),
            format!("/proc/buddyinfo: no permission to read it: {}", remedy())
        );
        assert_eq!(remedy() == "run this as root", !rustix::process::geteuid().is_root());
        let bad = BadText { file: "/proc/buddyinfo".into(), line: 3, reason: "'x' is not a number".into() };
        assert_eq!(ReadError::from(bad).to_string(), "/proc/buddyinfo: line 3: 'x' is not a number");
    }

    #[test]
    fn the_files_of_a_process_that_has_ended_are_missing() {
        let ended = io::Error::from_raw_os_error(NO_SUCH_PROCESS);
        assert!(ReadError::io(Path::new("/proc/7/smaps"), &ended).is_missing());
    }
}
