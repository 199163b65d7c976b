//! The context of a turn: its CPU, the time, and when it has to end.

use kontig_mm::{CpuId, Gfp, GroupId, MemPolicy, NodeId, Order, Request};

#[derive(Clone, Copy)]
pub(crate) struct Context {
    pub(crate) cpu: CpuId,
    pub(crate) node: NodeId,
    pub(crate) now: u64,
    /// The time of another task's next turn.
    pub(crate) horizon: u64,
    /// The time at which the host wants to look at the machine. It ends a turn between two steps
    /// and has no other effect, so that looking changes nothing.
    pub(crate) until: u64,
    /// Whether the task's wait timed out before it was woken.
    pub(crate) timed_out: bool,
    /// The task's memory policy.
    pub(crate) policy: TaskPolicy,
    /// The process whose turn it is.
    pub(crate) process: Option<u32>,
    /// The memory control group that what it takes is charged to.
    pub(crate) group: GroupId,
    /// Pages that the turn has charged above `memory.high`.
    pub(crate) over_high: u64,
    /// User time of the turn so far, ns.
    pub(crate) user_ns: u64,
    /// Added to the flags of its requests: which daemon asks.
    pub(crate) asks_as: Gfp,
}

impl Context {
    /// A request on the task's CPU and node.
    #[inline(always)]
    pub(crate) fn request(&self, gfp: Gfp, order: Order) -> Request {
        Request::new(self.cpu, self.node, gfp | self.asks_as, order)
    }

    /// Notes pages charged above `memory.high`. They end the turn, because the task works them off
    /// before it goes on.
    pub(crate) fn note_over_high(&mut self, pages: u64) {
        if pages > 0 {
            self.over_high += pages;
            self.horizon = self.now;
        }
    }

    /// Whether the turn must end.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.now >= self.horizon || self.now >= self.until
    }
}

/// A thread's policy, and its position in the round of nodes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TaskPolicy {
    pub(crate) policy: MemPolicy,
    pub(crate) turn: u32,
}
