//! Waits: which task waits for which daemon, so that a wake goes straight to the task it is for.
//!
//! A task waits for a time (the schedule keeps it), for a wakeup (it is a daemon, found here by its name), for a daemon
//! to rest, or for the throttle of its node, which ends at the latest when the node's kswapd rests. No device does I/O
//! on this machine yet, so nothing waits for one.

use crate::task::TaskId;
use kontig_mm::{Daemon, Wait};

/// A daemon's task, and the tasks that wait until it rests.
#[derive(Clone)]
struct Queue {
    task: TaskId,
    waiting: Vec<TaskId>,
}

/// The queues of a node's daemons.
#[derive(Clone)]
struct Node {
    kswapd: Queue,
    kcompactd: Queue,
}

/// Every daemon with the tasks that wait for it.
#[derive(Clone, Default)]
pub(crate) struct Waits {
    nodes: Vec<Node>,
}

impl Waits {
    /// Adds the daemons of the next node.
    pub(crate) fn add_node(&mut self, kswapd: TaskId, kcompactd: TaskId) {
        let queue = |task| Queue { task, waiting: Vec::new() };
        self.nodes.push(Node { kswapd: queue(kswapd), kcompactd: queue(kcompactd) });
    }

    fn queue(&mut self, daemon: Daemon) -> &mut Queue {
        let node = &mut self.nodes[daemon.node().index()];
        match daemon {
            Daemon::Kswapd(_) => &mut node.kswapd,
            Daemon::Kcompactd(_) => &mut node.kcompactd,
        }
    }

    /// The task that is this daemon.
    pub(crate) fn task_of(&mut self, daemon: Daemon) -> TaskId {
        self.queue(daemon).task
    }

    /// The daemon whose rest ends a wait, if one does.
    pub(crate) fn ended_by(wait: Wait) -> Option<Daemon> {
        match wait {
            Wait::Daemon(daemon) => Some(daemon),
            Wait::Throttled { node, .. } => Some(Daemon::Kswapd(node)),
            // Where there is no device none has a full queue, and the time passes.
            Wait::Time(_) | Wait::Congestion { .. } | Wait::Wakeup => None,
            Wait::Io => unreachable!("this machine has no device, so its kernel starts no I/O"),
        }
    }

    /// The task goes on when the daemon rests.
    pub(crate) fn wait_for(&mut self, daemon: Daemon, task: TaskId) {
        self.queue(daemon).waiting.push(task);
    }

    /// The tasks that waited for the daemon to rest, in the order they began to wait.
    pub(crate) fn rests(&mut self, daemon: Daemon) -> impl Iterator<Item = TaskId> {
        self.queue(daemon).waiting.drain(..)
    }
}
