//! The result of a step of long work, its waits, and the daemons that it wakes.
//!
//! Everything that can take long is a value with a `step`: a request on the slow path, a compaction
//! run, a daemon. A step does a bounded amount of work and says whether there is more. The host
//! knows the events that steps wait for: time, the daemons' turns and devices are all outside the
//! engine.

use crate::types::NodeId;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

/// The result of a step. A host with more kinds of waits than the engine's has its own type of
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<T, W = Wait> {
    /// There is more to do, and other CPUs may run first.
    Working,
    /// There is more to do after this has happened.
    Wait(W),
    /// The work is done, with this result.
    Done(T),
}

impl<T, W> Step<T, W> {
    /// The same step, with its result converted.
    #[inline]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Step<U, W> {
        match self {
            Step::Working => Step::Working,
            Step::Wait(wait) => Step::Wait(wait),
            Step::Done(result) => Step::Done(f(result)),
        }
    }

    /// The same step, with its wait converted.
    #[inline]
    pub fn map_wait<V>(self, f: impl FnOnce(W) -> V) -> Step<T, V> {
        match self {
            Step::Working => Step::Working,
            Step::Wait(wait) => Step::Wait(f(wait)),
            Step::Done(result) => Step::Done(result),
        }
    }
}

/// The result of a daemon's step: a daemon is never done.
pub type DaemonStep = Step<Infallible>;

/// An event that long work waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The next wakeup of this daemon.
    Wakeup,
    /// A time in nanoseconds; for a daemon, also its next wakeup.
    Time(u64),
    /// The moment when this daemon waits for its next wakeup.
    Daemon(Daemon),
    /// No device's queue is full.
    Congestion {
        /// The wait ends after this in any case.
        at_most_ns: u64,
    },
    /// The completion of the page that the host was asked to read or write.
    Io,
    /// More pages of the node have been written than a cluster for each task that waits alike.
    Written {
        node: NodeId,
        /// The wait ends after this in any case.
        at_most_ns: u64,
    },
    /// The node's kswapd has freed enough for its allocators to go on, or waits for its next
    /// wakeup.
    Throttled {
        node: NodeId,
        /// The longest wait, if there is one.
        at_most_ns: Option<u64>,
    },
}

/// A kernel thread that works for a node. Its `Display` is the kernel's name: `kcompactd0`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Daemon {
    /// The node's background reclaimer.
    Kswapd(NodeId),
    /// The node's background compactor.
    Kcompactd(NodeId),
}

impl Daemon {
    /// The node that it works for.
    pub const fn node(self) -> NodeId {
        match self {
            Daemon::Kswapd(node) | Daemon::Kcompactd(node) => node,
        }
    }
}

impl fmt::Display for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Daemon::Kswapd(_) => "kswapd",
            Daemon::Kcompactd(_) => "kcompactd",
        };
        write!(f, "{name}{}", self.node().index())
    }
}

/// The daemons that were woken and do not know it yet, in the order of their wakeups, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wakes(Vec<Daemon>);

impl Wakes {
    pub(crate) fn add(&mut self, daemon: Daemon) {
        if !self.0.contains(&daemon) {
            self.0.push(daemon);
        }
    }
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Daemon> {
        self.0.drain(..)
    }
}
