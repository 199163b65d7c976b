//! Node reclaim: with `vm.zone_reclaim_mode`, a request that finds too little free in a zone
//! reclaims on its node before it tries the next one.
//!
//! It takes pages only of near nodes, and of those only of its own CPU's or of nodes without CPUs;
//! one request at a time of each. There must be more pages of files than `vm.min_unmapped_ratio`
//! says, or more reclaimable slab than `vm.min_slab_ratio`. It scans a sixteenth of the lists, then
//! more, until it has freed as many pages as the request wants. Source: kernel-behaviour §4.13.

use super::control::ScanControl;
use super::node::ShrinkNode;
use crate::event::{Event, Listen};
use crate::gfp::Gfp;
use crate::owner::Owner;
use crate::request::Request;
use crate::state::{LruList, Memory};
use crate::step::Step;
use crate::sysctl::{MIN_SLAB_RATIO, MIN_UNMAPPED_RATIO, ZONE_RECLAIM_MODE};
use crate::types::{CLUSTER_MAX, LruvecId, NodeId, ZoneId};
use crate::vmstat::VmEvent;

/// The priority at which it starts: 1/16 of each list is scanned.
const NODE_RECLAIM_PRIORITY: i8 = 4;
/// The greatest distance to a node that counts as near (`node_reclaim_distance`).
const RECLAIM_DISTANCE: u8 = 30;

/// The bits of `vm.zone_reclaim_mode`: reclaim at all, write pages, unmap pages.
const RECLAIM_ZONE: u32 = 1;
const RECLAIM_WRITE: u32 = 2;
const RECLAIM_UNMAP: u32 = 4;

/// A reclaim on one node.
#[derive(Clone, Debug)]
pub(crate) struct NodeReclaim {
    node: NodeId,
    lruvec: LruvecId,
    sc: ScanControl,
    /// The pass over the node at this priority; none before the first.
    pass: Option<ShrinkNode>,
}

impl NodeReclaim {
    /// A reclaim for a request on the node of a zone that has too little free; `preferred` is the
    /// zone it prefers. `None` if the node must not be reclaimed from, or has too little for it.
    pub(crate) fn begin<O: Owner>(
        m: &mut Memory,
        owner: &mut O,
        preferred: ZoneId,
        zone: ZoneId,
        r: &Request,
    ) -> Option<NodeReclaim> {
        let (local, node, lruvec) = (m.zones[preferred].node, m.zones[zone].node, m.zones[zone].lruvec);
        let of_others = !m.nodes[node].cpus.is_empty() && m.node_of_cpu(r.cpu) != node;
        if m.distance(local, node) > RECLAIM_DISTANCE || of_others || m.nodes[node].is_reclaimed {
            return None;
        }
        if m.is_worth_node_reclaim(owner, node, lruvec) == (false, false) {
            return None;
        }
        m.shared.decide(&ZONE_RECLAIM_MODE, |mode| mode);
        m.nodes[node].is_reclaimed = true;
        let mode = m.shared.tunables.zone_reclaim_mode;
        let mut sc = ScanControl::new(r.cpu, r.gfp, r.order, r.gfp.highest_zone());
        sc.priority = NODE_RECLAIM_PRIORITY;
        sc.nr_to_reclaim = u64::from(r.order.pages().max(CLUSTER_MAX));
        sc.may_writepage = mode & RECLAIM_WRITE != 0;
        sc.may_unmap = mode & RECLAIM_UNMAP != 0;
        Some(NodeReclaim { node, lruvec, sc, pass: None })
    }

    /// Advances by one cluster of pages.
    pub(crate) fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Step<()> {
        let wanted = u64::from(self.sc.order.pages());
        loop {
            match &mut self.pass {
                None => {
                    let (nid, order, gfp) = (self.node, self.sc.order, self.sc.gfp);
                    m.shared.emit(Listen::VMSCAN, || Event::NodeReclaimBegin { nid, order, gfp });
                    m.offer_cpu(owner);
                    // Meanwhile another task may have taken what there was.
                    let (files, slab) = m.is_worth_node_reclaim(owner, self.node, self.lruvec);
                    if !(files || slab && m.shared.profile.node_reclaim.slab_is_enough) {
                        return self.end(m);
                    }
                }
                Some(pass) => match pass.step(m, owner, &mut self.sc) {
                    Step::Done(()) if self.sc.nr_reclaimed >= wanted || self.sc.priority == 0 => return self.end(m),
                    Step::Done(()) => self.sc.priority -= 1,
                    step => return step,
                },
            }
            self.pass = Some(ShrinkNode::new(self.lruvec, true));
        }
    }

    fn end(&self, m: &mut Memory) -> Step<()> {
        let nr_reclaimed = self.sc.nr_reclaimed;
        m.shared.emit(Listen::VMSCAN, || Event::NodeReclaimEnd { nr_reclaimed });
        m.nodes[self.node].is_reclaimed = false;
        if nr_reclaimed < u64::from(self.sc.order.pages()) {
            m.shared.vmstat.add(VmEvent::ZoneReclaimFailed, 1);
        } else if m.shared.profile.node_reclaim.counts_success {
            m.shared.vmstat.add(VmEvent::ZoneReclaimSuccess, 1);
        }
        Step::Done(())
    }
}

impl Memory {
    /// Whether the request reclaims on near nodes while it walks over its zones: `node_reclaim` is
    /// on, and the request may block.
    #[inline(always)]
    pub(crate) fn reclaims_on_the_way(&self, r: &Request) -> bool {
        let mode = self.shared.tunables.zone_reclaim_mode;
        let bits = match self.shared.profile.node_reclaim.knows_its_bits {
            true => RECLAIM_ZONE | RECLAIM_WRITE | RECLAIM_UNMAP,
            false => u32::MAX,
        };
        mode & bits != 0 && r.gfp.has(Gfp::DIRECT_RECLAIM) && self.lru.is_ordered()
    }

    /// Whether a node has enough pages of files for node reclaim, and enough reclaimable slab.
    fn is_worth_node_reclaim<O: Owner>(&mut self, owner: &mut O, node: NodeId, lruvec: LruvecId) -> (bool, bool) {
        let mode = self.shared.tunables.zone_reclaim_mode;
        let of = owner.node_pages(node);
        let vec = &self.lru.vecs[lruvec];
        let on_lists = vec.size(LruList::InactiveFile) + vec.size(LruList::ActiveFile);
        let files = match mode & RECLAIM_UNMAP {
            0 => on_lists.saturating_sub(of.mapped),
            _ => of.cached,
        };
        let dirty_counts = mode & RECLAIM_WRITE != 0 && !self.shared.profile.node_reclaim.dirty_never_counts;
        let files = if dirty_counts { files } else { files.saturating_sub(of.dirty) };
        let Memory { zones, nodes, shared, .. } = self;
        let part = |ratio: u32| -> u64 {
            let managed = nodes[node].zones.iter().map(|zone| zones[*zone].managed);
            managed.map(|pages| pages * u64::from(ratio) / 100).sum()
        };
        let enough_files = shared.decide(&MIN_UNMAPPED_RATIO, |ratio| files > part(ratio));
        let enough_slab = shared.decide(&MIN_SLAB_RATIO, |ratio| of.reclaimable_slab > part(ratio));
        (enough_files, enough_slab)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::{MachineSpec, ZoneSpec};
    use crate::owner::{MigrateOutcome, NodePages, PageState};
    use crate::rules::Profile;
    use crate::state::PageFlags;
    use crate::testing::linux;
    use crate::types::{CpuId, Order, Pfn, ZoneType};
    use alloc::vec::Vec;

    const CPU: CpuId = CpuId::new(0);
    const FIRST: NodeId = NodeId::new(0);
    const SECOND: NodeId = NodeId::new(1);

    /// Pages of files, all in the same state.
    #[derive(Default)]
    struct Files {
        mapped: bool,
        counted: NodePages,
    }

    impl Owner for Files {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Moved
        }
        fn page_state(&mut self, _: Pfn, _: u32) -> PageState {
            PageState { mapped: self.mapped, ..PageState::default() }
        }
        fn node_pages(&mut self, _: NodeId) -> NodePages {
            self.counted
        }
    }

    /// Two nodes of 16 pageblocks and this many CPUs, the first of which is full of pages of files.
    fn full(profile: Profile, cpus: usize, mode: &str) -> Memory {
        let zone = |node| {
            let (start, pages) = ((node as u32 + 1) * 16 * 512, 16 * 512);
            ZoneSpec {
                node,
                kind: ZoneType::Normal,
                start,
                end: start + pages,
                present: pages.into(),
                managed: pages.into(),
            }
        };
        let spec = MachineSpec { cpus, zones: Vec::from([zone(0), zone(1)]), thp: false, lru: true };
        let mut m = Memory::new(&spec, profile).expect("a valid machine");
        while let Ok(pfn) = m.alloc(Request::new(CPU, FIRST, Gfp::HIGHUSER_MOVABLE | Gfp::THISNODE, Order::ZERO)) {
            m.lru_add(CPU, pfn, Order::ZERO, PageFlags::FILE);
        }
        m.lru_add_drain(CPU);
        m.sysctl_write("vm.zone_reclaim_mode", mode).expect("the profile has it");
        m
    }

    /// Asks for pages on the first node: whether some come from there, and whether some reclaim
    /// counts as one that freed enough, and as one that did not.
    fn given(m: &mut Memory, owner: &mut Files, cpu: usize, gfp: Gfp) -> (bool, bool, bool) {
        let r = Request::new(CpuId::new(cpu), FIRST, gfp, Order::ZERO);
        let mut local = false;
        // The first pages that are freed go to the CPU's list, and the zone stays below its mark.
        for _ in 0..100 {
            let pfn = m.alloc_pages(owner, r).expect("the second node is free");
            local |= m.zones[m.blocks.zone_of(pfn)].node == FIRST;
            assert!(!m.nodes[FIRST].is_reclaimed);
        }
        let [success, failed] =
            [VmEvent::ZoneReclaimSuccess, VmEvent::ZoneReclaimFailed].map(|event| m.vmstat().get(event) > 0);
        (local, success, failed)
    }

    #[test]
    fn a_request_reclaims_on_its_node_before_it_goes_to_the_next() {
        let of = |profile, mode, gfp| given(&mut full(linux(profile), 2, mode), &mut Files::default(), 0, gfp);
        let user = Gfp::HIGHUSER_MOVABLE;
        assert_eq!(of("6.12", "0", user), (false, false, false));
        assert_eq!(of("6.12", "1", user), (true, true, false));
        assert_eq!(of("6.1", "1", user), (true, false, false), "it counts failures alone");
        assert_eq!(of("6.12", "1", Gfp::KSWAPD_RECLAIM), (false, false, false), "it may not block");
        assert!(of("5.6", "8", user).0 && !of("6.12", "8", user).0, "a bit of no meaning");
    }

    #[test]
    fn profiles_that_reclaim_zone_by_zone_lack_the_mode() {
        let mut m = crate::testing::machine_with(4, linux("4.6"));
        assert!(m.sysctl_write("vm.zone_reclaim_mode", "1").is_err());
    }

    #[test]
    fn a_node_of_other_cpus_is_left_alone_and_one_without_cpus_is_not() {
        let of =
            |cpus, cpu| given(&mut full(linux("6.12"), cpus, "1"), &mut Files::default(), cpu, Gfp::HIGHUSER_MOVABLE);
        assert_eq!(of(2, 1), (false, false, false));
        let mut m = full(linux("6.12"), 1, "1");
        let (preferred, r) = (ZoneId::new(1), Request::new(CPU, SECOND, Gfp::HIGHUSER_MOVABLE, Order::ZERO));
        let mut begins = |distance: u8, from: ZoneId, to: ZoneId| {
            m.set_distances(&[Vec::from([10, distance]), Vec::from([distance, 10])]).expect("possible");
            let begun = NodeReclaim::begin(&mut m, &mut Files::default(), from, to, &r).is_some();
            m.nodes.iter_mut().for_each(|node| node.is_reclaimed = false);
            begun
        };
        assert!(begins(30, preferred, ZoneId::new(0)) && !begins(31, preferred, ZoneId::new(0)), "too far");
        assert!(begins(31, ZoneId::new(0), ZoneId::new(0)), "the preferred zone's node is near itself");
        assert!(!begins(30, preferred, preferred), "it has no pages of files");
    }

    #[test]
    fn one_request_at_a_time_reclaims_on_a_node() {
        let mut m = full(linux("6.12"), 2, "1");
        m.nodes[FIRST].is_reclaimed = true;
        let r = Request::new(CPU, FIRST, Gfp::HIGHUSER_MOVABLE, Order::ZERO);
        assert!(NodeReclaim::begin(&mut m, &mut Files::default(), ZoneId::new(0), ZoneId::new(0), &r).is_none());
    }

    #[test]
    fn the_mode_decides_which_pages_count_as_reclaimable() {
        let of = |profile, mode, counted, ratio: &str| {
            let mut m = full(linux(profile), 2, mode);
            m.sysctl_write("vm.min_unmapped_ratio", ratio).expect("a percentage");
            given(&mut m, &mut Files { mapped: false, counted }, 0, Gfp::HIGHUSER_MOVABLE).0
        };
        let none = NodePages::default();
        assert_eq!([of("6.12", "1", none, "1"), of("6.12", "1", none, "100")], [true, false]);
        // Nearly all of the 8,192 pages; 1 % are 81.
        let (mapped, dirty) = (NodePages { mapped: 8_000, ..none }, NodePages { dirty: 8_000, ..none });
        assert_eq!([of("6.12", "1", mapped, "1"), of("6.12", "1", dirty, "1")], [false; 2]);
        assert_eq!([of("6.12", "3", dirty, "1"), of("7.2", "3", dirty, "1")], [true, false], "written, or never");
        let cached = NodePages { cached: 82, ..none };
        assert_eq!([of("6.12", "5", none, "1"), of("6.12", "5", cached, "1")], [false, true]);
    }

    #[test]
    fn slab_alone_is_reason_to_begin_and_since_6_1_to_reclaim() {
        let of = |profile| {
            let mut m = full(linux(profile), 2, "1");
            m.sysctl_write("vm.min_unmapped_ratio", "100").expect("a percentage");
            let slab = NodePages { reclaimable_slab: 8_192 / 20 + 1, ..NodePages::default() };
            given(&mut m, &mut Files { mapped: false, counted: slab }, 0, Gfp::HIGHUSER_MOVABLE)
        };
        assert_eq!((of("5.10"), of("6.1")), ((false, false, true), (true, false, false)));
    }

    #[test]
    fn mapped_pages_stay_unless_the_mode_allows_to_unmap_them() {
        let mut files = Files { mapped: true, ..Files::default() };
        let mut m = full(linux("6.12"), 2, "1");
        let last = |m: &Memory| m.lru.of_node(FIRST).list(LruList::InactiveFile).last();
        let before = last(&m);
        assert_eq!(given(&mut m, &mut files, 0, Gfp::HIGHUSER_MOVABLE), (false, false, true));
        assert!(m.vmstat().get(VmEvent::PgscanDirect) > 0 && last(&m) != before, "they go to the head");
    }
}
