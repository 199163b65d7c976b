//! Retries: whether the slow path tries again after reclaim or compaction failed.
//!
//! Source: kernel-behaviour §3.5 (should_reclaim_retry, should_compact_retry).

use super::{AllocSlow, offer_cpu};
use crate::compact::direct::CompactPriority;
use crate::event::CompactResult;
use crate::gfp::Wmark;
use crate::owner::Owner;
use crate::reclaim::MAX_RECLAIM_RETRIES;
use crate::state::Memory;
use crate::types::PAGE_ALLOC_COSTLY_ORDER;

const MAX_COMPACT_RETRIES: u32 = 16;

impl AllocSlow {
    /// Whether to reclaim once more.
    pub(super) fn should_reclaim_retry<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> bool {
        if self.progress && self.request.order <= PAGE_ALLOC_COSTLY_ORDER && !self.is_for_pageblocks(m) {
            self.no_progress_loops = 0;
        } else {
            self.no_progress_loops += 1;
        }
        let mut worth_it = false;
        if self.no_progress_loops <= MAX_RECLAIM_RETRIES {
            worth_it = self.reclaim_could_help(m);
            offer_cpu(m, owner);
        }
        // Before giving up, releases the highatomic reserve.
        let last =
            m.shared.profile.highatomic.unreserves_for_any_reason || self.no_progress_loops > MAX_RECLAIM_RETRIES;
        worth_it || last && self.unreserve_highatomic(m, true)
    }

    /// Whether the watermark would be met if all reclaimable pages were freed.
    fn reclaim_could_help(&self, m: &Memory) -> bool {
        let (highest, flags, profile) = (self.request.gfp.highest_zone(), self.flags, &m.shared.profile);
        m.zones_for(&self.request).any(|id| {
            let z = &m.zones[id];
            // The exact count includes what CPUs have not folded in, unlike the one the allocation
            // attempts use.
            let available = z.nr_free_pages_exact() as i64 + m.reclaimable_pages(id);
            z.watermark_ok(self.request.order, z.wmark(Wmark::Min), highest, flags, available, profile)
        })
    }

    /// Whether to compact once more, perhaps harder.
    pub(super) fn should_compact_retry(&mut self, m: &mut Memory) -> bool {
        match self.compact_result {
            CompactResult::Success => self.compaction_retries += 1,
            // It drops NOFRAGMENT instead of waiting for a pageblock.
            CompactResult::Skipped if self.is_for_pageblocks(m) => return false,
            CompactResult::Skipped => {
                let (order, flags, highest) = (self.request.order, self.flags, self.request.gfp.highest_zone());
                let mut at = 0;
                while let Some(z) = m.next_zone(&self.request, &mut at) {
                    let reclaimable = m.reclaimable_pages(z) / i64::from(order.get());
                    let free = m.zones[z].nr_free_pages_exact() as i64;
                    if m.worth_reclaiming_for(z, order, flags, highest, free + reclaimable) {
                        return true;
                    }
                }
                return false;
            }
            CompactResult::Complete
            | CompactResult::Deferred
            | CompactResult::PartialSkipped
            | CompactResult::Contended => return self.raise_priority(),
            _ => {}
        }
        let max = if self.request.order.is_costly() { MAX_COMPACT_RETRIES / 4 } else { MAX_COMPACT_RETRIES };
        self.compaction_retries <= max || self.raise_priority()
    }

    /// Makes the next compaction try harder; false if this one already did its best.
    fn raise_priority(&mut self) -> bool {
        let floor = if self.request.order.is_costly() { CompactPriority::SyncLight } else { CompactPriority::SyncFull };
        if self.priority <= floor {
            return false;
        }
        self.priority = match self.priority {
            CompactPriority::Async => CompactPriority::SyncLight,
            _ => CompactPriority::SyncFull,
        };
        self.compaction_retries = 0;
        true
    }
}
