//! Kernel threads: the engine's daemons as tasks of the machine, one of each kind for every node.

pub(crate) mod kcompactd;
pub(crate) mod kswapd;

use kontig_mm::{Daemon, NodeId};
use std::fmt;

/// A kernel thread. It is written as the kernel names it: `kcompactd0`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelThread {
    /// What it does.
    pub kind: KernelThreadKind,
    /// The node it does it for.
    pub node: NodeId,
}

/// What kernel threads there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelThreadKind {
    /// Compacts.
    Kcompactd,
    /// Reclaims.
    Kswapd,
}

impl From<Daemon> for KernelThread {
    fn from(daemon: Daemon) -> KernelThread {
        let kind = match daemon {
            Daemon::Kcompactd(_) => KernelThreadKind::Kcompactd,
            Daemon::Kswapd(_) => KernelThreadKind::Kswapd,
        };
        KernelThread { kind, node: daemon.node() }
    }
}

impl fmt::Display for KernelThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            KernelThreadKind::Kcompactd => "kcompactd",
            KernelThreadKind::Kswapd => "kswapd",
        };
        write!(f, "{kind}{}", self.node.index())
    }
}
