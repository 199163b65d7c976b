//! What a task waits for: a time, a wake by name, or a wait queue, or whichever of a queue and a time is first; or for
//! its own computing.
//!
//! The engine says what it waits for in its own words ([`kontig_mm::Wait`]). Here they become waits of this machine:
//! a daemon's rest is a gate that is open while it rests, and a full queue is waited for where it makes room.

use crate::kernel::Kernel;
use crate::queue::QueueId;
use crate::task::TaskId;
use kontig_mm::types::CLUSTER_MAX;
use kontig_mm::{Daemon, NodeId};

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// A daemon sleeps until it is woken.
    Wakeup,
    /// Until so many nanoseconds have passed; a daemon also until it is woken.
    Time(u64),
    /// Until the queue wakes it.
    Queue(QueueId),
    /// Until the queue wakes it, and for so many nanoseconds at most.
    QueueAtMost(QueueId, u64),
    /// Until the queue wakes it, which stands for a device: the CPU waits for I/O meanwhile, if it has nothing else to
    /// do.
    Io(QueueId),
    /// For nothing but a CPU: it computes for so many nanoseconds.
    Compute(u64),
}

impl Kernel {
    /// What the engine waits for, on this machine. Pages that are written are counted from when the first waits for that.
    pub(crate) fn wait_for(&mut self, wait: kontig_mm::Wait) -> Wait {
        match wait {
            kontig_mm::Wait::Wakeup => Wait::Wakeup,
            kontig_mm::Wait::Time(ns) => Wait::Time(ns),
            kontig_mm::Wait::Daemon(daemon) => Wait::Queue(self.daemons.rest_of(daemon)),
            kontig_mm::Wait::Throttled { node, at_most_ns } => {
                let rest = self.daemons.rest_of(Daemon::Kswapd(node));
                at_most_ns.map_or(Wait::Queue(rest), |ns| Wait::QueueAtMost(rest, ns))
            }
            kontig_mm::Wait::Congestion { at_most_ns } => match self.pages.devices.full() {
                Some(room) => Wait::QueueAtMost(room, at_most_ns),
                None => Wait::Time(at_most_ns),
            },
            kontig_mm::Wait::Written { node, at_most_ns } => self.wait_for_written(node, at_most_ns),
            kontig_mm::Wait::Io => unreachable!("reclaim leaves pages that are being read or written"),
        }
    }
}

/// Who waits until pages of a node are written, because reclaim meets them again before they are.
#[derive(Clone, Copy)]
struct AwaitsWrites {
    queue: QueueId,
    /// Pages written since the first of them began to wait.
    written: u64,
}

impl Kernel {
    fn wait_for_written(&mut self, node: NodeId, at_most_ns: u64) -> Wait {
        let waiters = &mut self.daemons.nodes[node.index()].awaits_writes;
        if self.queues.is_empty(waiters.queue) {
            waiters.written = 0;
        }
        Wait::QueueAtMost(waiters.queue, at_most_ns)
    }

    /// A page has been written, which may be enough for those who wait for that (`acct_reclaim_writeback`). Counted one by one:
    /// a kernel's count lags behind by what its CPUs have not folded in.
    pub(crate) fn page_written(&mut self, node: NodeId) {
        let waiters = &mut self.daemons.nodes[node.index()].awaits_writes;
        if self.queues.is_empty(waiters.queue) {
            return;
        }
        waiters.written += 1;
        if waiters.written > u64::from(CLUSTER_MAX) * self.queues.waiting(waiters.queue) {
            self.queues.wake_all(waiters.queue);
        }
    }
}

/// A daemon's task, and the gate that is open while it rests.
#[derive(Clone, Copy)]
struct Thread {
    task: TaskId,
    rest: QueueId,
}

/// The daemons of a node, and who waits there for writes.
#[derive(Clone, Copy)]
struct Node {
    kswapd: Thread,
    kcompactd: Thread,
    awaits_writes: AwaitsWrites,
}

/// Every daemon with its task and its gate, node by node.
#[derive(Clone, Default)]
pub(crate) struct Daemons {
    nodes: Vec<Node>,
}

impl Daemons {
    /// Adds the daemons of the next node, each with its task and its gate, and the queue of who waits there for writes.
    pub(crate) fn add_node(&mut self, kswapd: (TaskId, QueueId), kcompactd: (TaskId, QueueId), awaits_writes: QueueId) {
        let thread = |(task, rest)| Thread { task, rest };
        let awaits_writes = AwaitsWrites { queue: awaits_writes, written: 0 };
        self.nodes.push(Node { kswapd: thread(kswapd), kcompactd: thread(kcompactd), awaits_writes });
    }

    fn thread(&self, daemon: Daemon) -> Thread {
        let node = self.nodes[daemon.node().index()];
        match daemon {
            Daemon::Kswapd(_) => node.kswapd,
            Daemon::Kcompactd(_) => node.kcompactd,
        }
    }

    /// The task that is this daemon.
    pub(crate) fn task_of(&self, daemon: Daemon) -> TaskId {
        self.thread(daemon).task
    }

    /// The gate that is open while this daemon rests.
    pub(crate) fn rest_of(&self, daemon: Daemon) -> QueueId {
        self.thread(daemon).rest
    }
}
