//! What long work says after a step, what it may wait for, and which daemons it has woken.
//!
//! Everything that can take long is a value with a `step`: a request on the slow path, a compaction run, a daemon. A
//! step does a bounded amount of work and says whether there is more. What a step waits for is the host's to know:
//! time, the daemons' turns and devices are all outside the engine.

use crate::types::NodeId;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

/// What a step says. A host that waits for more than the engine does has a wait of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<T, W = Wait> {
    /// There is more to do; other CPUs may run first.
    Working,
    /// There is more to do, but not before this has happened.
    Wait(W),
    /// The work is done, with this result.
    Done(T),
}

impl<T, W> Step<T, W> {
    /// The same step of work that makes something else of the result.
    #[inline]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Step<U, W> {
        match self {
            Step::Working => Step::Working,
            Step::Wait(wait) => Step::Wait(wait),
            Step::Done(result) => Step::Done(f(result)),
        }
    }

    /// The same step, with what it waits for in other words.
    #[inline]
    pub fn map_wait<V>(self, f: impl FnOnce(W) -> V) -> Step<T, V> {
        match self {
            Step::Working => Step::Working,
            Step::Wait(wait) => Step::Wait(f(wait)),
            Step::Done(result) => Step::Done(result),
        }
    }
}

/// What a daemon says after a step: it is never done.
pub type DaemonStep = Step<Infallible>;

/// What long work waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// A daemon sleeps until it is woken.
    Wakeup,
    /// Until so many nanoseconds have passed; a daemon also until it is woken.
    Time(u64),
    /// Until this daemon waits for its next wakeup.
    Daemon(Daemon),
    /// Until no device's queue is full any more.
    Congestion {
        /// And no longer than so many nanoseconds.
        at_most_ns: u64,
    },
    /// Until the page that the host has been asked to read or write is through.
    Io,
    /// Until more pages of the node than a cluster for each task that waits so have been written.
    Written {
        /// The node.
        node: NodeId,
        /// And no longer than so many nanoseconds.
        at_most_ns: u64,
    },
    /// Until the node's kswapd has freed enough for its allocators to go on, or waits for its next wakeup.
    Throttled {
        /// The node.
        node: NodeId,
        /// And no longer than so many nanoseconds.
        at_most_ns: Option<u64>,
    },
}

/// A kernel thread that works for a node. It is written as the kernel names it: `kcompactd0`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Daemon {
    /// The node's background reclaimer.
    Kswapd(NodeId),
    /// The node's background compactor.
    Kcompactd(NodeId),
}

impl Daemon {
    /// The node it works for.
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

/// The daemons that have been woken and not yet told so, in the order they were woken, each once.
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
