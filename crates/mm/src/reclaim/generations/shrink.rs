//! One pass over a node whose pages are in generations, or, for a limit, over a group's.
//!
//! It evicts batches until it has looked at a share of all pages that the priority gives, or enough
//! is freed. If the oldest generation holds too little it begins a generation instead, except at
//! the first priority, and evicts nothing more in this pass. Where all tiers decide, the share is
//! worked out once, batches are of 64 pages, and after a generation has begun, or was tried to, one
//! more is evicted, for a limit all that is left. With memory control groups each has such a pass
//! of its own. Source: kernel-behaviour §4.10.3, §4.10.9, §4.11.5.

use super::order::OrderedWalk;
use super::{MAX_LRU_BATCH, MIN_LRU_BATCH};
use crate::gfp::{AllocFlags, Wmark};
use crate::owner::Owner;
use crate::reclaim::control::{DEF_PRIORITY, Met, ScanControl};
use crate::state::{LruList, Memory, Rotation};
use crate::step::Step;
use crate::sysctl::SWAPPINESS;
use crate::types::{LruvecId, Order};

/// A pass over the generations of a node, for the whole machine.
#[derive(Clone, Debug)]
pub(in crate::reclaim) struct ShrinkGenerations {
    /// The lists that are evicted from; none between those of two groups.
    lists: Option<EvictLists>,
    /// The walk over memory control groups, where there are any.
    walk: Option<OrderedWalk>,
    of_root: LruvecId,
    /// Pages reclaimed before, which kswapd sets aside.
    before: u64,
}

impl ShrinkGenerations {
    /// Begins a pass; `None` if what reclaims may not write or unmap.
    pub(in crate::reclaim) fn begin<O: Owner>(
        m: &mut Memory,
        owner: &mut O,
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
        let walk = m.groups().are_kept().then(|| OrderedWalk::begin(m, owner, lruvec));
        let lists = walk.is_none().then(|| EvictLists::new(m, lruvec, sc));
        Some(ShrinkGenerations { lists, walk, of_root: lruvec, before })
    }

    /// Evicts one batch, goes on to the next group, or ends the pass.
    pub(in crate::reclaim) fn step<O: Owner>(
        &mut self,
        m: &mut Memory,
        owner: &mut O,
        sc: &mut ScanControl,
    ) -> Step<()> {
        if let Some(lists) = &mut self.lists {
            let Step::Done(rotates) = lists.step(m, owner, sc) else { return Step::Working };
            let lruvec = lists.lruvec;
            self.lists = None;
            // Caches are charged to no group: they are shrunk with the root's lists.
            if sc.may_shrink_slab && lruvec == self.of_root {
                let node = m.lru.vecs[lruvec].node;
                sc.nr_reclaimed += m.shrink_slab(owner, node, sc, (0, 0));
            }
            if let Some(walk) = &mut self.walk {
                walk.leave(m, rotates, sc);
            }
        }
        if let Some(walk) = &mut self.walk
            && let Some(lruvec) = walk.next_lists(m, owner, sc)
        {
            self.lists = Some(EvictLists::new(m, lruvec, sc));
            return Step::Working;
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
}

/// Eviction from one group's generations, for a limit.
#[derive(Clone, Debug)]
pub(in crate::reclaim) struct ShrinkOfGroup(EvictLists);

impl ShrinkOfGroup {
    pub(in crate::reclaim) fn new(m: &mut Memory, lruvec: LruvecId, sc: &mut ScanControl) -> ShrinkOfGroup {
        m.lru_add_drain(sc.cpu);
        ShrinkOfGroup(EvictLists::new(m, lruvec, sc))
    }

    /// Whose lists they are.
    pub(in crate::reclaim) fn lruvec(&self) -> LruvecId {
        self.0.lruvec
    }

    /// Evicts one batch, or ends it.
    pub(in crate::reclaim) fn step<O: Owner>(
        &mut self,
        m: &mut Memory,
        owner: &mut O,
        sc: &mut ScanControl,
    ) -> Step<()> {
        let Step::Done(rotates) = self.0.step(m, owner, sc) else { return Step::Working };
        if rotates {
            m.rotate_group(owner, self.0.lruvec, Rotation::Young);
        }
        sc.promoted = None;
        Step::Done(())
    }
}

/// Eviction from one set of lists.
#[derive(Clone, Debug)]
struct EvictLists {
    lruvec: LruvecId,
    swappiness: u64,
    scanned: u64,
    /// Pages that are left to look at, where their number is worked out once.
    left: Option<u64>,
    /// The group must be young: it is out of old pages, or all of it is protected.
    rotates: bool,
}

impl EvictLists {
    fn new(m: &mut Memory, lruvec: LruvecId, sc: &mut ScanControl) -> EvictLists {
        let swappiness = m.gen_swappiness(sc);
        let once = m.shared.profile.lru_gen.by_all_tiers();
        let left = once.then(|| {
            let size = m.evictable_size(lruvec, swappiness > 0);
            m.unprotected_of(lruvec, size, sc) >> sc.priority
        });
        EvictLists { lruvec, swappiness, scanned: 0, left, rotates: false }
    }

    /// Evicts one batch, or ends; whether the group must be young.
    fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> Step<bool> {
        let goes_on = match self.left {
            Some(left) => self.evicts_more_of(left, m, owner, sc),
            None => self.evicts_more(m, owner, sc),
        };
        if goes_on {
            m.offer_cpu(owner);
            return Step::Working;
        }
        if sc.met.unqueued_dirty > 0 && sc.met.unqueued_dirty == sc.met.file_taken {
            owner.wake_flushers();
        }
        Step::Done(self.rotates)
    }

    fn evicts_more<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> bool {
        let can_swap = self.swappiness > 0;
        if m.is_below_min(self.lruvec, sc.target) {
            self.rotates = true;
            return false;
        }
        let (ages, total) = m.should_run_aging(self.lruvec, can_swap);
        if ages && sc.priority != DEF_PRIORITY {
            let seq = m.lru.gens(self.lruvec).max_seq;
            self.rotates = m.try_to_inc_max_seq(owner, sc, self.lruvec, seq, can_swap, false);
            return false;
        }
        let wanted = total >> sc.priority;
        if wanted == 0 {
            return false;
        }
        let looked_at = m.evict_folios(owner, self.lruvec, self.swappiness, MAX_LRU_BATCH, sc);
        self.scanned += looked_at;
        looked_at > 0 && self.scanned < wanted && !m.should_abort_scan(self.lruvec, sc)
    }

    /// The same where all tiers decide.
    fn evicts_more_of<O: Owner>(&mut self, left: u64, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> bool {
        let can_swap = self.swappiness > 0;
        if left == 0 {
            return false;
        }
        if m.is_below_min(self.lruvec, sc.target) {
            self.rotates = true;
            return false;
        }
        let ages = m.should_age_first(self.lruvec, can_swap, sc);
        if ages {
            let seq = m.lru.gens(self.lruvec).max_seq;
            self.rotates |= m.try_to_inc_max_seq(owner, sc, self.lruvec, seq, can_swap, false);
        }
        let looked_at = m.evict_folios(owner, self.lruvec, self.swappiness, left.min(MIN_LRU_BATCH), sc);
        // For a limit, eviction goes on after a generation has begun.
        let aged = ages && sc.target.is_none();
        if looked_at == 0 || m.should_abort_scan(self.lruvec, sc) || aged {
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

    /// Whether enough is reclaimed, or kswapd finds every zone above its high mark.
    pub(super) fn should_abort_scan(&self, lruvec: LruvecId, sc: &ScanControl) -> bool {
        if sc.target.is_some() && !self.shared.profile.lru_gen.by_all_tiers() {
            return false;
        }
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
