//! The mistakes that end guard, each in one line with its remedy.

use crate::error::{ReadError, remedy};
use crate::prepare::journal::NoJournal;
use std::io;
use std::path::PathBuf;

/// The reason why it ended early.
#[derive(Debug)]
pub enum Failed {
    Unread(ReadError),
    /// A file could not be written.
    Unwritten(PathBuf, io::Error),
    /// The journal of the kernel's setting.
    NoJournal(NoJournal),
    /// Another guard is at work.
    Busy(PathBuf),
    /// The policy names a node that does not exist.
    NoNode(u32),
    /// A node has fewer blocks of memory than it should keep.
    TooSmall {
        node: u32,
        asked: u64,
        has: u64,
    },
    /// No file compacts this node alone.
    NoFile(PathBuf),
    /// The kernel's setting holds for all nodes, and the policy leaves this one alone.
    DrivesAll(u32),
}

impl Failed {
    /// Whether it was asked for what this host does not have.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Failed::NoNode(_) | Failed::TooSmall { .. } | Failed::NoFile(_) | Failed::DrivesAll(_))
    }

    /// Whether another guard is in the way.
    pub fn is_busy(&self) -> bool {
        matches!(self, Failed::Busy(_))
    }

    /// Whether another user could do it.
    pub fn is_permission(&self) -> bool {
        match self {
            Failed::Unread(e) => e.is_permission(),
            Failed::Unwritten(_, e) => {
                matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
            }
            Failed::NoJournal(e) => e.is_permission(),
            _ => false,
        }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Unread(e) => write!(f, "{e}"),
            Failed::Unwritten(path, e) if e.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                write!(f, "{}: it is mounted read-only: run this where it can be written", path.display())
            }
            Failed::Unwritten(path, _) if self.is_permission() => {
                write!(f, "{}: no permission to write it: {}", path.display(), remedy())
            }
            Failed::Unwritten(path, e) => write!(f, "{}: {e}", path.display()),
            Failed::NoJournal(e) => write!(f, "{e}"),
            Failed::Busy(lock) => {
                write!(f, "another guard is at work ({}): end it first, or say where with --control", lock.display())
            }
            Failed::DrivesAll(node) => write!(
                f,
                "--drive-sysctl: vm.compaction_proactiveness holds for all nodes, and the policy leaves node {node} \
                 alone: keep all, or leave it out"
            ),
            Failed::TooSmall { node, asked, has } => {
                write!(f, "node {node} should keep {asked} blocks and has memory for {has}: say fewer")
            }
            Failed::NoFile(file) => write!(
                f,
                "{}: there is none, and vm.compact_memory compacts all nodes: mount the host's sysfs, and say where \
                 with --path.sysfs",
                file.display()
            ),
            Failed::NoNode(node) => write!(f, "node {node} has no memory, or does not exist: name another"),
        }
    }
}

impl std::error::Error for Failed {}
