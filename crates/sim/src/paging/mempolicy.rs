//! On which node a process's memory is to be: its policy, and those of parts of its mappings.
//!
//! What the kernel takes for a thread, pages of files among it, follows the policy of the thread (`set_mempolicy`), which
//! those that it makes inherit. A page of a mapping follows the policy that its place has (`mbind`), and else the thread's.
//! Pages that are there already stay where they are. Source: `mm/mempolicy.c` of 5.10, 6.1 and 7.2.

use super::purpose::Purpose;
use crate::base::context::{Context, TaskPolicy};
use crate::base::id::At;
use crate::kernel::Kernel;
use kontig_mm::{Gfp, MemPolicy, Order, Request};

impl Kernel {
    /// A request of the kernel's for the task whose turn it is.
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

    /// The request of a fault. A huge page's first is of the preferred node alone.
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

    /// How a write to a huge page that others have, too, first asks for one of its own: as a first fault does.
    pub(crate) fn first_huge_copy(&mut self, c: &Context, at: At) -> Purpose {
        let advised = self.pages.spaces.mapping(at.mapping).is_advised_huge();
        match self.first_huge_request(c, at, advised) {
            Purpose::HugeLocal(gfp) => Purpose::HugeCopyLocal(gfp),
            first => Purpose::HugeCopyAny(first.gfp()),
        }
    }

    /// How a fault first asks for a huge page.
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
