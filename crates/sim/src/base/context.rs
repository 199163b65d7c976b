//! A turn as its task sees it: where it runs, what time it is, and when the turn has to end.

use kontig_mm::{CpuId, Gfp, MemPolicy, NodeId, Order, Request};

/// Where a turn runs, and until when.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    pub(crate) cpu: CpuId,
    pub(crate) node: NodeId,
    /// The task's clock.
    pub(crate) now: u64,
    /// When another task's turn comes.
    pub(crate) horizon: u64,
    /// When the host wants to look at the machine. It ends a turn between two steps and decides nothing else, so that
    /// looking changes nothing.
    pub(crate) until: u64,
    /// Whether the task waited and its time has come before anybody woke it.
    pub(crate) timed_out: bool,
    /// Where the task's memory is to be.
    pub(crate) policy: TaskPolicy,
    /// The process whose turn it is.
    pub(crate) process: Option<u32>,
    /// Of the time since the turn began, the task's own code, ns.
    pub(crate) user_ns: u64,
}

impl Context {
    /// A request of the task.
    #[inline(always)]
    pub(crate) fn request(&self, gfp: Gfp, order: Order) -> Request {
        Request::new(self.cpu, self.node, gfp, order)
    }

    /// Whether the turn has to end.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.now >= self.horizon || self.now >= self.until
    }
}

/// The policy of a thread, and how far round the nodes it has come.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TaskPolicy {
    pub(crate) policy: MemPolicy,
    pub(crate) turn: u32,
}
