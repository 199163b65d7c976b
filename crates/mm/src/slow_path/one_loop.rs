//! The slow path as a single loop, whose first round skips reclaim for costly and for non-movable
//! requests.
//!
//! Source: kernel-behaviour §3.5.1 (7.2).

use super::{AllocFailure, AllocSlow, AllocStep, SlowPathStage};
use crate::compact::direct::CompactPriority;
use crate::gfp::{AllocFlags, Gfp};
use crate::state::Memory;
use crate::step::Step;

impl AllocSlow {
    /// Decides whether the first round only compacts.
    pub(super) fn enter_loop(&mut self) -> AllocStep {
        self.compact_first = self.compacts_early();
        if self.compact_first {
            self.priority = CompactPriority::Async;
        }
        self.state = SlowPathStage::Retry;
        Step::Working
    }

    /// The first round, without reclaim, gave no page.
    pub(super) fn first_round_done(&mut self, m: &Memory) -> AllocStep {
        let noretry = self.request.gfp.has(Gfp::NORETRY);
        let never = m.shared.profile.slow_path.thisnode_noretry_fails && self.request.gfp.has(Gfp::THISNODE);
        if noretry && never {
            return Step::Done(Err(AllocFailure::Failed));
        }
        if !noretry {
            self.priority = CompactPriority::SyncLight;
        }
        self.compact_first = false;
        self.state = SlowPathStage::Retry;
        Step::Working
    }

    /// The last options of a request that cannot reclaim: with `__GFP_HIGH` it tries once more, on
    /// all nodes, and in defrag_mode a request that wakes kswapd drops NOFRAGMENT.
    pub(super) fn without_reclaim(&mut self, m: &Memory) -> AllocStep {
        if self.request.gfp.has(Gfp::HIGH) && !core::mem::replace(&mut self.looked_twice, true) {
            self.leave_nodes(m);
            return Step::Working;
        }
        if self.flags.any(AllocFlags::NOFRAGMENT) && self.request.gfp.has(Gfp::KSWAPD_RECLAIM) {
            self.flags = self.flags.without(AllocFlags::NOFRAGMENT);
            return Step::Working;
        }
        Step::Done(Err(AllocFailure::Failed))
    }
}
