//! Kernel threads: the engine's daemons as tasks, one of each kind for every node; khugepaged; and
//! the threads that write to each disk.

use kontig_mm::{Daemon, NodeId};
use std::fmt;

pub(crate) mod flusher;
pub(crate) mod kcompactd;
pub(crate) mod khugepaged;
pub(crate) mod kswapd;
pub(crate) mod slab;
pub(crate) mod xfs;

/// A kernel thread. It is displayed by the kernel's name for it, with the number of its disk if it
/// has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelThread {
    /// A node's kswapd or kcompactd.
    Daemon(Daemon),
    /// Collapses small pages into huge ones.
    Khugepaged,
    /// Gives back what slab caches no longer use, with the SLAB allocator.
    SlabReaper,
    /// Writes dirty pages of a disk's files.
    Flusher {
        /// The disk's number in the machine file.
        disk: u8,
    },
    /// Writes an XFS's log.
    XfsCheckpoint {
        /// The disk's number in the machine file.
        disk: u8,
    },
    /// Writes logged metadata of an XFS in place.
    XfsPush {
        /// The disk's number in the machine file.
        disk: u8,
    },
}

impl KernelThread {
    /// Whether it is a daemon of this kind, such as `Daemon::Kswapd`, on any node.
    pub fn is_daemon(self, kind: fn(NodeId) -> Daemon) -> bool {
        matches!(self, KernelThread::Daemon(daemon) if daemon == kind(daemon.node()))
    }
}

impl fmt::Display for KernelThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelThread::Daemon(daemon) => daemon.fmt(f),
            KernelThread::Khugepaged => f.write_str("khugepaged"),
            KernelThread::SlabReaper => f.write_str("cache_reap"),
            KernelThread::Flusher { disk } => write!(f, "flush-{disk}"),
            KernelThread::XfsCheckpoint { disk } => write!(f, "xfs-cil-{disk}"),
            KernelThread::XfsPush { disk } => write!(f, "xfsaild-{disk}"),
        }
    }
}
