//! One pass over a node whose pages are in generations.
//!
//! It evicts batches until it has looked at a share of all pages that the priority gives, or enough
//! is freed. If the oldest generation holds too little it begins a generation instead, except at
//! the first priority, and evicts nothing more in this pass. Where all tiers decide, the share is
//! worked out once, batches are of 64 pages, and after a generation has begun, or was tried to, one
//! more is evicted. Source: kernel-behaviour §4.10.3, §4.10.9.

use super::{MAX_LRU_BATCH, MIN_LRU_BATCH};
use crate::gfp::{AllocFlags, Wmark};
use crate::owner::Owner;
use crate::reclaim::control::{DEF_PRIORITY, Met, ScanControl};
use crate::state::{LruList, Memory};
use crate::step::Step;
use crate::sysctl::SWAPPINESS;
use crate::types::{LruvecId, Order};

/// A pass over the generations of a node.
#[derive(Clone, Debug)]
pub(in crate::reclaim) struct ShrinkGenerations {
    lruvec: LruvecId,
    swappiness: u64,
    scanned: u64,
    /// Pages that are left to look at, where their number is worked out once.
    left: Option<u64>,
    /// Pages reclaimed before, which kswapd sets aside.
    before: u64,
}

impl ShrinkGenerations {
    /// Begins a pass; `None` if what reclaims may not write or unmap.
    pub(in crate::reclaim) fn begin(
        m: &mut Memory,
        lruvec: LruvecId,
        sc: &mut ScanControl,
    ) -> Option<ShrinkGenerations> {
        sc.met = Met::default();
        if !sc.may_writepage || !sc.may_unmap {
            return None;
        }
        m.lru_add_drain(sc.cpu);
        sc.promoted = sc.kswapd.then(Default::default);
        m.set_initial_priority(lruvec, sc);
        let before = sc.nr_reclaimed;
        if sc.kswapd {
            sc.nr_reclaimed = 0;
        }
        let swappiness = m.gen_swappiness(sc);
        Some(ShrinkGenerations { lruvec, swappiness, scanned: 0, left: None, before })
    }

    /// Evicts one batch, or ends the pass.
    pub(in crate::reclaim) fn step<O: Owner>(
        &mut self,
        m: &mut Memory,
        owner: &mut O,
        sc: &mut ScanControl,
    ) -> Step<()> {
        if self.evicts_more(m, owner, sc) {
            m.offer_cpu(owner);
            return Step::Working;
        }
        if sc.met.unqueued_dirty > 0 && sc.met.unqueued_dirty == sc.met.file_taken {
            owner.wake_flushers();
        }
        if sc.may_shrink_slab {
            let node = m.lru.vecs[self.lruvec].node;
            sc.nr_reclaimed += m.shrink_slab(owner, node, sc, (0, 0));
        }
        if sc.kswapd {
            sc.nr_reclaimed += self.before;
        }
        sc.promoted = None;
        Step::Done(())
    }

    /// Whether the pass has reclaimed anything.
    pub(in crate::reclaim) fn has_reclaimed(&self, sc: &ScanControl) -> bool {
        sc.nr_reclaimed > self.before
    }

    fn evicts_more<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> bool {
        if m.shared.profile.lru_gen.by_all_tiers() {
            return self.evicts_more_of_share(m, owner, sc);
        }
        let Some(wanted) = m.gen_nr_to_scan(owner, self.lruvec, self.swappiness > 0, sc).filter(|n| *n > 0) else {
            return false;
        };
        let looked_at = m.evict_folios(owner, self.lruvec, self.swappiness, MAX_LRU_BATCH, sc);
        self.scanned += looked_at;
        looked_at > 0 && self.scanned < wanted && !m.should_abort_scan(self.lruvec, sc)
    }

    /// The same where all tiers decide.
    fn evicts_more_of_share<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> bool {
        let can_swap = self.swappiness > 0;
        let left = *self.left.get_or_insert_with(|| m.evictable_size(self.lruvec, can_swap) >> sc.priority);
        if left == 0 {
            return false;
        }
        let ages = m.should_age_first(self.lruvec, can_swap, sc);
        if ages {
            let seq = m.lru.gens(self.lruvec).max_seq;
            m.try_to_inc_max_seq(owner, sc, self.lruvec, seq, can_swap, false);
        }
        let looked_at = m.evict_folios(owner, self.lruvec, self.swappiness, left.min(MIN_LRU_BATCH), sc);
        if looked_at == 0 || m.should_abort_scan(self.lruvec, sc) || ages {
            return false;
        }
        self.left = Some(left.saturating_sub(looked_at));
        true
    }
}

impl Memory {
    /// kswapd and direct reclaim of much begin at the priority at which the inactive share of all
    /// pages would do.
    pub(crate) fn set_initial_priority(&self, lruvec: LruvecId, sc: &mut ScanControl) {
        if sc.priority != DEF_PRIORITY || sc.nr_to_reclaim < MIN_LRU_BATCH {
            return;
        }
        let vec = &self.lru.vecs[lruvec];
        let mut reclaimable = vec.size(LruList::InactiveFile);
        if self.can_reclaim_anon() {
            reclaimable += vec.size(LruList::InactiveAnon);
        }
        let bits = |n: u64| (u64::BITS - n.leading_zeros()) as i8;
        let priority = bits(reclaimable) - 1 - bits(sc.nr_to_reclaim - 1);
        sc.priority = priority.clamp(DEF_PRIORITY / 2, DEF_PRIORITY);
    }

    /// The share of anonymous pages; 0 if none may be evicted.
    pub(super) fn gen_swappiness(&mut self, sc: &ScanControl) -> u64 {
        if !sc.may_swap || self.lru.swap.free < MIN_LRU_BATCH {
            return 0;
        }
        self.shared.decide(&SWAPPINESS, u64::from)
    }

    /// Pages to look at; `None` if it has aged instead, or tried to.
    fn gen_nr_to_scan<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        can_swap: bool,
        sc: &mut ScanControl,
    ) -> Option<u64> {
        let (ages, total) = self.should_run_aging(lruvec, can_swap);
        if !ages || sc.priority == DEF_PRIORITY {
            return Some(total >> sc.priority);
        }
        let seq = self.lru.gens(lruvec).max_seq;
        self.try_to_inc_max_seq(owner, sc, lruvec, seq, can_swap, false);
        None
    }

    /// Whether enough is reclaimed, or kswapd finds every zone above its high mark.
    fn should_abort_scan(&self, lruvec: LruvecId, sc: &ScanControl) -> bool {
        if sc.nr_reclaimed >= sc.nr_to_reclaim.max(self.shared.profile.compaction.gap(sc.order)) {
            return true;
        }
        if !sc.kswapd || sc.order > Order::ZERO {
            return false;
        }
        let zones = self.lru.vecs[lruvec].zones.iter().map(|z| &self.zones[*z]);
        zones.filter(|z| z.managed > 0 && z.kind <= sc.highest).all(|z| {
            let (mark, plain) = (z.wmark(Wmark::High) + MIN_LRU_BATCH, AllocFlags::mark(Wmark::Min));
            z.watermark_ok(Order::ZERO, mark, sc.highest, plain, z.free_pages, &self.shared.profile)
        })
    }
}
