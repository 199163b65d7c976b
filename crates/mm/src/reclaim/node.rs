//! Shrinks a node (or a zone, where zones have their own lists) at one priority: its LRU lists and
//! its slab caches. For a high-order request it repeats that while pages are found and compaction
//! still has too little room.
//!
//! Source: kernel-behaviour §4.5.

use super::control::{DEF_PRIORITY, Met, ScanControl};
use super::generations::shrink::{ShrinkGenerations, ShrinkOfGroup};
use super::groups::GroupWalk;
use super::lruvec::ShrinkLruvec;
use crate::event::{CompactResult, Throttle};
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::Owner;
use crate::rules::StallsFor;
use crate::state::{LruList, Memory};
use crate::step::{Step, Wait};
use crate::types::{LruvecId, ZoneType};

#[derive(Clone, Debug)]
pub(crate) struct ShrinkNode {
    lruvec: LruvecId,
    /// Shrinks the node's slab caches, too.
    with_slab: bool,
    /// `nr_scanned` before this round.
    scanned_before: u64,
    /// Size of the lists that this round scans.
    considered: u64,
    state: ShrinkStage,
    /// The walk over memory control groups, where there are any.
    walk: Option<GroupWalk>,
    /// `nr_reclaimed` before this round.
    before: u64,
    reclaimable: bool,
}

#[derive(Clone, Debug)]
enum ShrinkStage {
    Begin,
    Lists(ShrinkLruvec),
    /// The pages are in generations, and the machine's memory is short.
    Generations(ShrinkGenerations),
    /// The pages are in generations, and a group's limit is reclaimed for.
    OfGroup(ShrinkOfGroup),
    /// The lists are done. `waited` once the throttle was considered.
    End {
        waited: bool,
    },
}

impl ShrinkNode {
    /// Shrinks the node or zone with these lists. Slab caches belong to the node: of its zones only
    /// one should shrink them.
    pub(crate) fn new(lruvec: LruvecId, with_slab: bool) -> ShrinkNode {
        ShrinkNode {
            lruvec,
            with_slab,
            scanned_before: 0,
            considered: 0,
            state: ShrinkStage::Begin,
            walk: None,
            before: 0,
            reclaimable: false,
        }
    }

    /// Whether any round reclaimed anything.
    pub(crate) fn has_reclaimed(&self) -> bool {
        self.reclaimable
    }

    /// Advances by one cluster of pages. Where the lists are empty, everything is done at once.
    pub(crate) fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> Step<()> {
        m.shared.work.any = true;
        loop {
            if let Some(step) = self.advance(m, owner, sc) {
                return step;
            }
        }
    }

    /// One step, or `None` if the next stage follows at once.
    fn advance<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> Option<Step<()>> {
        match &mut self.state {
            ShrinkStage::Begin if m.lru.has_generations() && sc.target.is_none() => {
                let pass = ShrinkGenerations::begin(m, owner, self.lruvec, sc);
                let Some(pass) = pass else { return Some(Step::Done(())) };
                owner.start_plug();
                self.state = ShrinkStage::Generations(pass);
                None
            }
            ShrinkStage::Generations(pass) => {
                let step = pass.step(m, owner, sc);
                if step != Step::Done(()) {
                    return Some(step);
                }
                owner.finish_plug();
                if pass.has_reclaimed(sc) {
                    self.reclaimable = true;
                    self.forget_failures(m, sc);
                }
                Some(step)
            }
            ShrinkStage::Begin => {
                sc.met = Met::default();
                self.before = sc.nr_reclaimed;
                self.scanned_before = sc.nr_scanned;
                if !m.lru.has_generations() {
                    m.prepare_scan_count(self.lruvec, sc);
                    self.considered = m.pages_considered(self.lruvec, sc);
                }
                let first = if m.groups().are_kept() {
                    self.walk = Some(GroupWalk::new(m, self.lruvec, sc));
                    self.next_group(m, owner, sc)
                } else {
                    m.offer_cpu(owner);
                    Some(self.lruvec)
                };
                self.begin_lists(m, owner, first, sc);
                None
            }
            ShrinkStage::OfGroup(lists) => {
                let step = lists.step(m, owner, sc);
                if step != Step::Done(()) {
                    return Some(step);
                }
                owner.finish_plug();
                debug_assert!(m.root_of(lists.lruvec()) != lists.lruvec(), "the root has no limit");
                let next = self.next_group(m, owner, sc);
                self.begin_lists(m, owner, next, sc);
                None
            }
            ShrinkStage::Lists(lists) => {
                let step = lists.step(m, owner, sc);
                if step != Step::Done(()) {
                    return Some(step);
                }
                owner.finish_plug();
                // Caches are charged to no group: they are shrunk with the root's lists.
                let of_root = m.root_of(lists.lruvec()) == lists.lruvec();
                if self.with_slab && sc.may_shrink_slab && of_root {
                    let scanned = sc.nr_scanned - self.scanned_before;
                    let node = m.lru.vecs[self.lruvec].node;
                    sc.nr_reclaimed += m.shrink_slab(owner, node, sc, (scanned, self.considered));
                }
                let next = self.next_group(m, owner, sc);
                self.begin_lists(m, owner, next, sc);
                None
            }
            ShrinkStage::End { waited } => {
                if !core::mem::replace(waited, true)
                    && let Some(wait) = self.wait_for_writing(m, owner, sc)
                {
                    return Some(Step::Wait(wait));
                }
                if self.should_continue(m, sc) {
                    self.state = ShrinkStage::Begin;
                    return None;
                }
                if !self.reclaimable {
                    sc.trim_failed |= sc.cache_trim_mode;
                } else {
                    self.forget_failures(m, sc);
                }
                Some(Step::Done(()))
            }
        }
    }

    /// The lists of the group that follows in the walk, unless there is none, or enough has been
    /// reclaimed for a walk that need not go on.
    fn next_group<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> Option<LruvecId> {
        let walk = self.walk.as_mut()?;
        if walk.has_begun() && walk.is_partial() && sc.nr_reclaimed >= sc.nr_to_reclaim {
            return None;
        }
        walk.next_lists(m, sc, |m| m.offer_cpu(owner))
    }

    /// Shrinks these lists next; without any, the round is over.
    fn begin_lists<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, lists: Option<LruvecId>, sc: &mut ScanControl) {
        self.state = match lists {
            Some(lruvec) => {
                owner.start_plug();
                match m.lru.has_generations() {
                    true => ShrinkStage::OfGroup(ShrinkOfGroup::new(m, lruvec, sc)),
                    false => ShrinkStage::Lists(ShrinkLruvec::new(m, lruvec, sc)),
                }
            }
            None => {
                self.reclaimable |= sc.nr_reclaimed > self.before;
                ShrinkStage::End { waited: false }
            }
        };
    }

    /// Something was reclaimed, so the node is not hopeless.
    fn forget_failures(&self, m: &mut Memory, sc: &ScanControl) {
        let node = m.lru.vecs[self.lruvec].node;
        let until_balanced = m.shared.profile.kswapd.hopeless_until_balanced;
        if !until_balanced || m.pgdat_balanced(node, sc.order, sc.highest) {
            m.nodes[node].kswapd.failures = 0;
        }
    }

    /// Sets the node's flags by the dirty pages and the pages under writeback that were met;
    /// returns the wait that follows.
    fn wait_for_writing<O: Owner>(&self, m: &mut Memory, owner: &mut O, sc: &ScanControl) -> Option<Wait> {
        if m.shared.profile.reclaim.stalls_for == StallsFor::Congestion {
            // [`Memory::wait_for_congestion`] does this after each cluster.
            return None;
        }
        let (met, vec) = (&sc.met, &mut m.lru.vecs[self.lruvec]);
        let node = vec.node;
        if sc.kswapd {
            vec.writeback |= met.writeback > 0 && met.writeback == met.taken;
            vec.dirty |= met.unqueued_dirty == met.file_taken;
            vec.congested |= met.dirty > 0 && met.dirty == met.congested;
            let immediate = met.immediate > 0;
            return immediate.then(|| m.reclaim_throttle(node, Throttle::Writeback, 0)).flatten();
        }
        if sc.target.is_some() {
            vec.congested |= met.dirty > 0 && met.dirty == met.congested;
        }
        let congested = vec.congested;
        let pending = owner.write_pending(node);
        congested.then(|| m.reclaim_throttle(node, Throttle::Congested, pending)).flatten()
    }

    /// Whether to go on for a high-order request because compaction would have too little room.
    fn should_continue(&self, m: &mut Memory, sc: &ScanControl) -> bool {
        let compacts = sc.counts_on_compaction(&m.shared.profile.reclaim)
            && (sc.order.is_costly() || sc.priority < DEF_PRIORITY - 2);
        // A request with `__GFP_RETRY_MAYFAIL` goes on as long as anything is scanned.
        let insists = m.shared.profile.reclaim.frees_enough_for_compaction && sc.gfp.has(Gfp::RETRY_MAYFAIL);
        let nothing = sc.nr_reclaimed == self.before && !(insists && sc.nr_scanned > self.scanned_before);
        if !compacts || nothing {
            return false;
        }
        let frees_enough = m.shared.profile.reclaim.frees_enough_for_compaction;
        if frees_enough && sc.nr_reclaimed < m.shared.profile.compaction.gap(sc.order) && self.has_enough(m, sc) {
            return true;
        }
        let plain = AllocFlags::mark(Wmark::Min);
        for i in 0..m.lru.vecs[self.lruvec].zones.len() {
            let zone = m.lru.vecs[self.lruvec].zones[i];
            if m.zones[zone].managed == 0 || m.zones[zone].kind > sc.highest {
                continue;
            }
            let z = &m.zones[zone];
            let min = z.wmark(Wmark::Min);
            if m.shared.profile.compaction.success_is_untraced
                && z.watermark_ok(sc.order, min, sc.highest, plain, z.free_pages, &m.shared.profile)
            {
                return false;
            }
            let highest = if m.shared.profile.lru.lists_per_zone { ZoneType::WITHOUT_RESERVE } else { sc.highest };
            let suits = m.compaction_suitable(zone, Some(sc.order), plain, highest, false);
            if matches!(suits, CompactResult::Success | CompactResult::Continue) {
                return false;
            }
        }
        frees_enough || self.has_enough(m, sc)
    }

    /// Whether there are more inactive pages than compaction needs.
    fn has_enough(&self, m: &Memory, sc: &ScanControl) -> bool {
        let vec = &m.lru.vecs[self.lruvec];
        let mut inactive = vec.size(LruList::InactiveFile);
        if m.can_reclaim_anon() {
            inactive += vec.size(LruList::InactiveAnon);
        }
        inactive > m.shared.profile.compaction.gap(sc.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{linux, ordered_machine_with, two_zones, user_page};
    use crate::types::{CpuId, NodeId, Order};

    const VEC: LruvecId = LruvecId::new(0);

    #[test]
    fn up_to_5_3_reclaim_for_a_large_request_frees_twice_the_block_even_where_that_is_free_already() {
        let goes_on = |profile: &str, reclaimed| {
            let mut m = ordered_machine_with(16, linux(profile));
            m.lru.vecs[VEC].stats.add_to_total(LruList::InactiveFile.index(), 10_000);
            let mut sc = ScanControl::new(CpuId::new(0), Gfp::KERNEL, Order::new(9), ZoneType::Normal);
            sc.nr_reclaimed = reclaimed;
            ShrinkNode::new(VEC, true).should_continue(&mut m, &sc)
        };
        assert!(goes_on("4.6", 1023) && !goes_on("4.6", 1024), "twice 512");
        assert!(!goes_on("5.6", 32), "there is a block");
    }

    #[test]
    fn up_to_4_7_no_lowmem_reserve_keeps_reclaim_for_a_large_request_going() {
        let goes_on = |profile: &str| {
            let mut m = ordered_machine_with(16, linux(profile));
            m.lru.vecs[VEC].stats.add_to_total(LruList::InactiveFile.index(), 10_000);
            let zone = m.lru.vecs[VEC].zones[0];
            m.zones[zone].lowmem_reserve[ZoneType::Normal.index()] = u64::from(u32::MAX);
            let mut sc = ScanControl::new(CpuId::new(0), Gfp::KERNEL, Order::new(9), ZoneType::Normal);
            sc.nr_reclaimed = 1024;
            ShrinkNode::new(VEC, true).should_continue(&mut m, &sc)
        };
        assert!(!goes_on("4.6"), "the reserve of the lowest zone, which is none");
        assert!(goes_on("5.0"), "the reserve against the request's zone");
    }

    #[test]
    fn up_to_4_7_each_zone_has_lists_of_its_own() {
        let lists = |profile: &str| {
            let m = two_zones(linux(profile));
            let of = |zone: usize| m.zones()[zone].lruvec.index();
            (m.lru().vecs().len(), [of(0), of(1)])
        };
        assert_eq!(lists("4.6"), (2, [0, 1]));
        assert_eq!(lists("5.6"), (1, [0, 0]));
    }

    #[test]
    fn work_on_a_zones_pages_is_counted_for_that_zone() {
        use crate::vmstat::VmEvent;
        let mut m = two_zones(linux("4.6"));
        let pfn = user_page(&mut m, crate::state::PageFlags::FILE);
        m.lru_add_drain(CpuId::new(0));
        let (zone, lruvec) = (m.blocks.zone_of(pfn), m.lruvec_of(pfn));
        assert_eq!((m.zones[zone].kind, m.zones[zone].node), (ZoneType::Normal, NodeId::new(0)));
        let mut sc = ScanControl::new(CpuId::new(0), Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
        m.shrink_inactive_list(&mut crate::testing::AllMove, lruvec, LruList::InactiveFile, 32, &mut sc);
        let counts = [VmEvent::PgscanDirectNormal, VmEvent::PgscanDirectDma32, VmEvent::PgscanDirect];
        assert_eq!(counts.map(|event| m.vmstat().get(event)), [1, 0, 1]);
        assert_eq!(m.zones[zone].pages_scanned, 1);
    }
}
