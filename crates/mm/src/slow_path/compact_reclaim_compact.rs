//! The slow path of 3.14 to 4.7: compaction for any order, reclaim, and compaction once more before
//! it gives up.
//!
//! A huge-page request, which is recognised by its flags, gives up where compaction is deferred or
//! another task waits for the CPU; other requests compact harder from the second time on. Source:
//! kernel-behaviour §3.6.

use super::{AllocFailure, AllocSlow, AllocStep, SlowPathStage, offer_cpu};
use crate::compact::direct::CompactPriority;
use crate::event::CompactResult;
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::Owner;
use crate::reclaim::ROUND_CONGESTION_NS;
use crate::reclaim::direct::DirectReclaim;
use crate::state::Memory;
use crate::step::{Step, Wait};
use crate::types::Pfn;

impl AllocSlow {
    /// Begins a round: kswapd, the free lists at the min watermark, compaction.
    pub(super) fn begin_compact_reclaim_compact<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> AllocStep {
        let bound = m.shared.profile.slow_path.thisnode_fails_without_reclaim && self.request.gfp.has(Gfp::THISNODE);
        if bound && !self.can_direct_reclaim() {
            return Step::Done(Err(AllocFailure::Failed));
        }
        self.wake_all_kswapds(m, owner);
        if let Some(pfn) = self.try_freelist(m) {
            return Step::Done(Ok(pfn));
        }
        if !self.can_direct_reclaim() {
            return Step::Done(Err(AllocFailure::Failed));
        }
        if self.compacts(m) {
            self.state = SlowPathStage::FirstCompact(self.direct_compact(m, self.priority));
            return Step::Working;
        }
        self.compact_result = CompactResult::Skipped;
        self.compacted_before_reclaim(m, owner, None, false)
    }

    /// The round's compaction, if there was one, has ended; `gave_way` if another task waited for
    /// the CPU.
    pub(super) fn compacted_before_reclaim<O: Owner>(
        &mut self,
        m: &mut Memory,
        owner: &mut O,
        captured: Option<Pfn>,
        gave_way: bool,
    ) -> AllocStep {
        if let Some(pfn) = self.compacted(m, owner, captured) {
            return Step::Done(Ok(pfn));
        }
        if self.is_for_huge_page() {
            if gave_way || self.compact_result == CompactResult::Deferred {
                return Step::Done(Err(AllocFailure::Failed));
            }
        } else {
            self.priority = CompactPriority::SyncLight;
        }
        offer_cpu(m, owner);
        self.reclaim(m, owner, DirectReclaim::new(self.request, self.request.order))
    }

    /// Whether the flags are those of a huge-page fault.
    fn is_for_huge_page(&self) -> bool {
        let gfp = self.request.gfp;
        gfp.has(Gfp::TRANSHUGE_LIGHT | Gfp::NORETRY) && !gfp.has(Gfp::KSWAPD_RECLAIM)
    }

    /// Reclaim gave no page: begins another round, or the last compaction.
    pub(super) fn after_reclaim<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, freed: u64) -> AllocStep {
        let (gfp, order) = (self.request.gfp, self.request.order);
        if !gfp.has(Gfp::NORETRY) {
            self.pages_reclaimed += freed;
            // The kernel retries such a costly request even if nothing was freed, without end.
            let insists = gfp.has(Gfp::RETRY_MAYFAIL) && self.pages_reclaimed < u64::from(order.pages());
            if freed > 0 && (insists || !order.is_costly()) {
                self.state = SlowPathStage::Retry;
                let zone = m.preferred_zone(&self.request);
                let waits = zone.is_some_and(|zone| m.lru.vecs[m.zones[zone].lruvec].congested) && owner.is_congested();
                return match waits {
                    true => Step::Wait(Wait::Congestion { at_most_ns: ROUND_CONGESTION_NS }),
                    false => Step::Working,
                };
            }
            let high = AllocFlags::mark(Wmark::High);
            if let Some(pfn) = m.get_page_from_freelist(&self.request, high) {
                return Step::Done(Ok(pfn));
            }
            if !order.is_costly() && !gfp.has(Gfp::THISNODE) && !gfp.has(Gfp::RETRY_MAYFAIL) {
                return Step::Done(Err(AllocFailure::OutOfMemory));
            }
        }
        if !self.compacts(m) {
            return Step::Done(Err(AllocFailure::Failed));
        }
        self.state = SlowPathStage::Compact(self.direct_compact(m, self.priority));
        Step::Working
    }
}
