//! Kernel threads: the engine's daemons as tasks of the machine, one of each kind for every node; khugepaged; and for each
//! disk what writes to it.

use kontig_mm::{Daemon, NodeId};
use std::fmt;

pub(crate) mod flusher;
pub(crate) mod kcompactd;
pub(crate) mod khugepaged;
pub(crate) mod kswapd;
pub(crate) mod xfs;

/// A thread of the kernel. Written as the kernel calls it; one of a disk's with the disk's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelThread {
    /// A node's kswapd or kcompactd.
    Daemon(Daemon),
    /// Makes huge pages of small ones.
    Khugepaged,
    /// Writes what is dirty of a disk's files.
    Flusher {
        /// Which, in the order of the machine file.
        disk: u8,
    },
    /// Writes an XFS's log.
    XfsCheckpoint {
        /// Which, in the order of the machine file.
        disk: u8,
    },
    /// Writes what an XFS has logged to its place.
    XfsPush {
        /// Which, in the order of the machine file.
        disk: u8,
    },
}

impl KernelThread {
    /// Whether it is a daemon of this kind, such as `Daemon::Kswapd`, of whatever node.
    pub fn is_daemon(self, kind: fn(NodeId) -> Daemon) -> bool {
        matches!(self, KernelThread::Daemon(daemon) if daemon == kind(daemon.node()))
    }
}

impl fmt::Display for KernelThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelThread::Daemon(daemon) => daemon.fmt(f),
            KernelThread::Khugepaged => f.write_str("khugepaged"),
            KernelThread::Flusher { disk } => write!(f, "flush-{disk}"),
            KernelThread::XfsCheckpoint { disk } => write!(f, "xfs-cil-{disk}"),
            KernelThread::XfsPush { disk } => write!(f, "xfsaild-{disk}"),
        }
    }
}
