//! The engine's daemons as this machine has them: each with its task, and the gate that is open while it rests.

use crate::base::id::TaskId;
use crate::base::queue::{QueueId, Queues};
use kontig_mm::types::CLUSTER_MAX;
use kontig_mm::{Daemon, NodeId};

/// Who waits until pages of a node are written, because reclaim meets them again before they are.
#[derive(Clone, Copy)]
struct AwaitsWrites {
    queue: QueueId,
    /// Pages written since the first of them began to wait.
    written: u64,
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

    /// Where one waits until pages of a node are written, which are counted from when the first waits for that.
    pub(crate) fn written(&mut self, node: NodeId, queues: &Queues) -> QueueId {
        let waiters = &mut self.nodes[node.index()].awaits_writes;
        if queues.is_empty(waiters.queue) {
            waiters.written = 0;
        }
        waiters.queue
    }

    /// A page has been written, which may be enough for those who wait for that (`acct_reclaim_writeback`). Counted one by one:
    /// a kernel's count lags behind by what its CPUs have not folded in.
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
