//! The slow path from 4.8 on: a first compaction for costly and for non-movable requests, then a
//! loop of reclaim and compaction.
//!
//! Source: kernel-behaviour §3.5.

use super::look::Then;
use super::{AllocFailure, AllocSlow, AllocStep, SlowPathStage};
use crate::compact::direct::CompactPriority;
use crate::event::CompactResult;
use crate::gfp::Gfp;
use crate::owner::Owner;
use crate::state::Memory;
use crate::step::Step;

impl AllocSlow {
    /// Wakes kswapd and tries the free lists at the min watermark, or first waits for kswapd.
    pub(super) fn enter_with_compaction<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> AllocStep {
        self.wake_all_kswapds(m, owner);
        if self.would_rather_stall(m) {
            return self.try_without_mixing(m);
        }
        self.begin_with_compaction(m, owner)
    }

    /// Tries the free lists.
    pub(super) fn begin_with_compaction<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> AllocStep {
        self.look(m, owner, self.flags, Then::FirstCompact)
    }

    /// Begins the first compaction or goes straight to the loop.
    pub(super) fn first_compact(&mut self, m: &mut Memory) -> AllocStep {
        if self.compacts_early() {
            self.state = SlowPathStage::FirstCompact(self.direct_compact(m, CompactPriority::Async));
        } else {
            self.state = SlowPathStage::Retry;
        }
        Step::Working
    }

    /// The first compaction has given no page.
    pub(super) fn first_compact_failed(&mut self, m: &Memory) -> AllocStep {
        let result = self.compact_result;
        if self.request.order.is_costly() && self.request.gfp.has(Gfp::NORETRY) {
            let rules = &m.shared.profile.slow_path;
            let never = rules.thisnode_noretry_fails && self.request.gfp.has(Gfp::THISNODE);
            let skipped = rules.noretry_fails_when_skipped && result == CompactResult::Skipped;
            if never || skipped || result == CompactResult::Deferred {
                return Step::Done(Err(AllocFailure::Failed));
            }
            // Worth a try, but only an asynchronous one.
            self.priority = CompactPriority::Async;
        }
        self.state = SlowPathStage::Retry;
        Step::Working
    }
}
