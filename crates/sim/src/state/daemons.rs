//! The engine's daemons on this machine: the task of each, and the gate that is open while it
//! sleeps.

use crate::base::id::TaskId;
use crate::base::queue::{QueueId, Queues};
use kontig_mm::types::CLUSTER_MAX;
use kontig_mm::{Daemon, NodeId};

/// Tasks waiting for writeback on a node because reclaim keeps meeting pages under writeback.
#[derive(Clone, Copy)]
struct AwaitsWrites {
    queue: QueueId,
    /// Pages written since the first of them began to wait.
    written: u64,
}

/// A daemon's task, and the gate that is open while it sleeps.
#[derive(Clone, Copy)]
struct DaemonTask {
    task: TaskId,
    rest: QueueId,
}

/// The daemons of a node, and the tasks waiting there for writeback.
#[derive(Clone, Copy)]
struct DaemonsOfNode {
    kswapd: DaemonTask,
    kcompactd: DaemonTask,
    awaits_writes: AwaitsWrites,
}

/// All daemons, by node.
#[derive(Clone, Default)]
pub(crate) struct Daemons {
    nodes: Vec<DaemonsOfNode>,
}

impl Daemons {
    /// Adds the daemons of the next node, each with its task and gate, and the queue of tasks
    /// waiting for writeback.
    pub(crate) fn add_node(&mut self, kswapd: (TaskId, QueueId), kcompactd: (TaskId, QueueId), awaits_writes: QueueId) {
        let thread = |(task, rest)| DaemonTask { task, rest };
        let awaits_writes = AwaitsWrites { queue: awaits_writes, written: 0 };
        self.nodes.push(DaemonsOfNode { kswapd: thread(kswapd), kcompactd: thread(kcompactd), awaits_writes });
    }

    /// The queue to wait in for writeback on a node. Written pages are counted from the first such
    /// wait on.
    pub(crate) fn written(&mut self, node: NodeId, queues: &Queues) -> QueueId {
        let waiters = &mut self.nodes[node.index()].awaits_writes;
        if queues.is_empty(waiters.queue) {
            waiters.written = 0;
        }
        waiters.queue
    }

    /// Counts a written page, and wakes the waiting tasks after enough of them
    /// (`acct_reclaim_writeback`). The count is exact; a kernel's lags behind by what its CPUs have
    /// not folded in.
    pub(crate) fn page_written(&mut self, node: NodeId, queues: &mut Queues) {
        let waiters = &mut self.nodes[node.index()].awaits_writes;
        if queues.is_empty(waiters.queue) {
            return;
        }
        waiters.written += 1;
        if waiters.written > u64::from(CLUSTER_MAX) * queues.waiting(waiters.queue) {
            queues.wake_all(waiters.queue);
        }
    }

    fn thread(&self, daemon: Daemon) -> DaemonTask {
        let node = self.nodes[daemon.node().index()];
        match daemon {
            Daemon::Kswapd(_) => node.kswapd,
            Daemon::Kcompactd(_) => node.kcompactd,
        }
    }

    /// The task of this daemon.
    pub(crate) fn task_of(&self, daemon: Daemon) -> TaskId {
        self.thread(daemon).task
    }

    /// The gate that is open while this daemon sleeps.
    pub(crate) fn rest_of(&self, daemon: Daemon) -> QueueId {
        self.thread(daemon).rest
    }
}
