//! Memory policies: the node of a request, by the task's policy or the mapping's.
//!
//! Memory that the kernel allocates for a thread, pages of files included, follows the thread's
//! policy (`set_mempolicy`), which its children inherit. A page of a mapping follows the policy set
//! for its range (`mbind`), else the thread's. Pages already in memory stay where they are. Source:
//! `mm/mempolicy.c` of 5.10, 6.1 and 7.2.

use super::purpose::Purpose;
use crate::base::context::{Context, TaskPolicy};
use crate::base::id::At;
use crate::kernel::Kernel;
use kontig_mm::{Gfp, MemPolicy, Order, Request};

impl Kernel {
    /// A request by the running task's policy.
    #[inline(always)]
    pub(crate) fn request(&self, c: &mut Context, gfp: Gfp, order: Order) -> Request {
        let TaskPolicy { policy, turn } = c.policy;
        if let MemPolicy::Interleave(_) = policy {
            c.policy.turn = turn.wrapping_add(1);
        }
        self.mem.place(c.request(gfp, order), policy, turn)
    }

    /// A request for a page of a mapping.
    #[inline(always)]
    pub(crate) fn request_at(&mut self, c: &Context, at: At, gfp: Gfp, order: Order) -> Request {
        let policy = self.policy_at(c, at);
        self.mem.place(c.request(gfp, order), policy, at.page >> order.get())
    }

    /// The policy of a page of a mapping.
    #[inline(always)]
    pub(crate) fn policy_at(&mut self, c: &Context, at: At) -> MemPolicy {
        self.pages.spaces.mapping(at.mapping).policy(at.page).unwrap_or(c.policy.policy)
    }

    /// The request of a fault. The first attempt at a huge page asks the preferred node alone.
    pub(crate) fn fault_request(&mut self, c: &mut Context, purpose: Purpose, at: At) -> Request {
        let (gfp, order) = (purpose.gfp(), purpose.order());
        match purpose {
            Purpose::Table(_) => self.request(c, gfp, order),
            Purpose::HugeLocal(_) | Purpose::HugeCopyLocal(_) => {
                let node = self.policy_at(c, at).prefers(c.node, at.page >> order.get());
                Request::new(c.cpu, node, gfp, order)
            }
            Purpose::Small(_) | Purpose::Copy | Purpose::HugeAny(_) | Purpose::HugeCopyAny(_) => {
                self.request_at(c, at, gfp, order)
            }
        }
    }

    /// The first attempt at a huge page for a copy, by the rules of a first fault.
    pub(crate) fn first_huge_copy(&mut self, c: &Context, at: At) -> Purpose {
        let advised = self.pages.spaces.mapping(at.mapping).is_advised_huge();
        match self.first_huge_request(c, at, advised) {
            Purpose::HugeLocal(gfp) => Purpose::HugeCopyLocal(gfp),
            first => Purpose::HugeCopyAny(first.gfp()),
        }
    }

    /// The first attempt of a fault at a huge page.
    pub(crate) fn first_huge_request(&mut self, c: &Context, at: At, advised: bool) -> Purpose {
        let policy = self.policy_at(c, at);
        let (local, any) = self.mem.huge_requests(advised);
        if policy.asks_by_itself(policy.prefers(c.node, 0)) {
            Purpose::HugeLocal(local)
        } else {
            Purpose::HugeAny(any.unwrap_or(local.without(Gfp::THISNODE)))
        }
    }
}
