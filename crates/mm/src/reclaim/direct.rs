//! Direct reclaim: a task that finds no page frees some itself, 32 at a time, scanning harder from
//! priority to priority.
//!
//! For a costly order it skips zones in which compaction could already work. Where next to nothing
//! is free the task first waits for kswapd. Source: kernel-behaviour §4.5.

use super::control::{DEF_PRIORITY, ScanControl};
use super::node::ShrinkNode;
use crate::event::{CompactResult, Event, Listen, Throttle};
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::owner::Owner;
use crate::request::Request;
use crate::rules::StallsFor;
use crate::state::{Backing, Memory, NodeStat};
use crate::step::{Daemon, Step, Wait};
use crate::types::{CLUSTER_MAX, CpuId, GroupId, LruvecId, NodeId, NodeSet, Order, ZoneId, ZoneType};
use crate::vmstat::VmEvent;

const ALLOCSTALL: [VmEvent; ZoneType::COUNT] = [
    VmEvent::AllocstallDma,
    VmEvent::AllocstallDma32,
    VmEvent::AllocstallNormal,
    VmEvent::AllocstallMovable,
    VmEvent::AllocstallDevice,
];

const A_SECOND_NS: u64 = 1_000_000_000;

/// A direct reclaim in progress.
#[derive(Clone, Debug)]
pub(crate) struct DirectReclaim {
    request: Request,
    sc: ScanControl,
    state: DirectReclaimStage,
    /// Position in the zonelist at this priority.
    at: usize,
    first_node: Option<NodeId>,
    last_node: Option<NodeId>,
    /// At this priority some zone is reclaimable or was reclaimed from (up to 4.7).
    zones_reclaimable: bool,
    /// Pages scanned at all priorities.
    total_scanned: u64,
}

#[derive(Clone, Debug)]
enum DirectReclaimStage {
    /// Before the first pass; `throttled` once the throttling has been counted.
    Begin {
        throttled: bool,
    },
    /// The same for a memory control group's limit, which nobody waits for.
    BeginGroup,
    Zones,
    Node(ShrinkNode),
    /// All zones have been shrunk at this priority; `waited` once the throttle was considered.
    Priority {
        waited: bool,
    },
}

impl DirectReclaim {
    /// A direct reclaim for `order`, which may be larger than the request's own.
    pub(crate) fn new(request: Request, order: Order) -> DirectReclaim {
        let sc = ScanControl::new(request.cpu, request.gfp, order, request.gfp.highest_zone());
        DirectReclaim {
            request,
            sc,
            state: DirectReclaimStage::Begin { throttled: false },
            at: 0,
            first_node: None,
            last_node: None,
            zones_reclaimable: false,
            total_scanned: 0,
        }
    }

    /// A reclaim for a group's limit, of at least a cluster of pages, on all nodes, nearest first.
    pub(crate) fn of_group(m: &Memory, cpu: CpuId, group: GroupId, pages: u64, gfp: Gfp) -> DirectReclaim {
        let about_reclaim = Gfp::KERNEL.with(Gfp::HIGH).with(Gfp::NOWARN).with(Gfp::RETRY_MAYFAIL);
        let about_reclaim = about_reclaim.with(Gfp::NOFAIL).with(Gfp::NORETRY).with(Gfp::NOMEMALLOC);
        let gfp = gfp.without(gfp.without(about_reclaim)) | Gfp::HIGHUSER_MOVABLE.without(about_reclaim);
        let request = Request::new(cpu, m.node_of_cpu(cpu), gfp, Order::ZERO);
        let mut reclaim = DirectReclaim::new(request, Order::ZERO);
        reclaim.sc.highest = ZoneType::Device;
        reclaim.sc.target = Some(group);
        reclaim.sc.nr_to_reclaim = pages.max(u64::from(CLUSTER_MAX));
        reclaim.state = DirectReclaimStage::BeginGroup;
        reclaim
    }

    /// Advances by one cluster of pages. Returns the pages freed; 1 if there are none but the
    /// caller should go on, because a zone is ready for compaction or, up to 4.7, still
    /// reclaimable.
    pub(crate) fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Step<u64> {
        loop {
            match &mut self.state {
                DirectReclaimStage::Begin { throttled } => {
                    let again = *throttled;
                    // Without `__GFP_FS` the task may hold a file-system lock that kswapd needs, so
                    // its wait is limited.
                    let at_most_ns = (!self.sc.gfp.has(Gfp::FS)).then_some(A_SECOND_NS);
                    let has_waited_enough = again && at_most_ns.is_some();
                    if !has_waited_enough && let Some(node) = self.throttling_node(m, again) {
                        self.state = DirectReclaimStage::Begin { throttled: true };
                        return Step::Wait(Wait::Throttled { node, at_most_ns });
                    }
                    let (order, gfp) = (self.sc.order, self.sc.gfp);
                    m.shared.emit(Listen::VMSCAN, || Event::DirectReclaimBegin { order, gfp });
                    self.begin_priorities(m);
                }
                DirectReclaimStage::BeginGroup => {
                    let (order, gfp) = (self.sc.order, self.sc.gfp);
                    m.shared.emit(Listen::VMSCAN, || Event::MemcgReclaimBegin { order, gfp });
                    self.begin_priorities(m);
                }
                DirectReclaimStage::Zones => self.next_zone(m),
                DirectReclaimStage::Node(node) => match node.step(m, owner, &mut self.sc) {
                    Step::Working => return Step::Working,
                    Step::Wait(wait) => return Step::Wait(wait),
                    Step::Done(()) => {
                        self.zones_reclaimable |= node.has_reclaimed();
                        self.state = DirectReclaimStage::Zones;
                    }
                },
                DirectReclaimStage::Priority { waited } => {
                    if !core::mem::replace(waited, true)
                        && let Some(wait) = self.consider_throttle(m, owner)
                    {
                        return Step::Wait(wait);
                    }
                    if let Some(result) = self.next_priority(m, owner) {
                        let for_group = self.sc.target.is_some();
                        m.shared.emit(Listen::VMSCAN, || match for_group {
                            true => Event::MemcgReclaimEnd { nr_reclaimed: result },
                            false => Event::DirectReclaimEnd { nr_reclaimed: result },
                        });
                        return Step::Done(result);
                    }
                }
            }
        }
    }

    /// Starts a pass through the priorities.
    fn begin_priorities(&mut self, m: &mut Memory) {
        if self.sc.target.is_none() {
            m.shared.vmstat.add(ALLOCSTALL[self.sc.highest.index()], 1);
        }
        self.sc.priority = DEF_PRIORITY;
        self.begin_zones();
    }

    fn begin_zones(&mut self) {
        self.zones_reclaimable = false;
        self.sc.nr_scanned = 0;
        (self.at, self.first_node, self.last_node) = (0, None, None);
        self.state = DirectReclaimStage::Zones;
    }

    /// Starts shrinking the next zone whose node has not just been shrunk, except zones ready for
    /// compaction.
    fn next_zone(&mut self, m: &mut Memory) {
        let per_zone = m.shared.profile.lru.lists_per_zone;
        while let Some(zone) = m.next_zone(&self.request, &mut self.at) {
            let node = m.zones[zone].node;
            // A node's zones are adjacent in the zonelist. Its slab caches are shrunk with its
            // highest zone, if that zone is shrunk.
            let is_highest = per_zone && self.last_node != Some(node);
            if per_zone {
                self.last_node = Some(node);
            }
            let reclaimable = !per_zone || m.zone_reclaimable(zone);
            if !reclaimable && self.sc.priority != DEF_PRIORITY {
                continue;
            }
            if self.sc.order.is_costly() && self.compaction_ready(m, zone) {
                self.sc.compaction_ready = true;
                continue;
            }
            self.first_node.get_or_insert(node);
            if per_zone {
                self.zones_reclaimable |= reclaimable;
                let with_slab = is_highest && !m.shared.profile.reclaim.slab_after_zones;
                self.state = DirectReclaimStage::Node(ShrinkNode::new(m.zones[zone].lruvec, with_slab));
                return;
            }
            if self.last_node.replace(node) != Some(node) {
                let of_root = m.zones[zone].lruvec;
                let lruvec = self.sc.target.map_or(of_root, |group| m.groups.lruvec(group, of_root));
                self.state = DirectReclaimStage::Node(ShrinkNode::new(lruvec, true));
                return;
            }
        }
        self.state = DirectReclaimStage::Priority { waited: false };
    }

    /// A task without any progress waits a little before the last priority.
    fn consider_throttle<O: Owner>(&self, m: &mut Memory, owner: &mut O) -> Option<Wait> {
        if m.shared.profile.reclaim.stalls_for == StallsFor::Congestion || self.sc.target.is_some() {
            return None;
        }
        let node = self.first_node?;
        let progress = self.sc.nr_reclaimed > self.sc.nr_scanned >> 3;
        if progress || self.sc.priority != 1 || self.sc.nr_reclaimed > 0 {
            return None;
        }
        m.reclaim_throttle(node, Throttle::NoProgress, owner.write_pending(node))
    }

    /// Ends the reclaim, or goes on at the next priority or with another pass. `Some` is the end.
    fn next_priority<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Option<u64> {
        if m.shared.profile.reclaim.slab_after_zones {
            self.shrink_slab(m, owner);
        }
        self.total_scanned += self.sc.nr_scanned;
        let enough = self.sc.nr_reclaimed >= self.sc.nr_to_reclaim || self.sc.compaction_ready;
        if !enough && self.sc.priority > 0 && self.may_find_more(m) {
            if self.sc.priority < DEF_PRIORITY - 2 {
                self.sc.may_writepage = true;
            }
            let half_as_many_again = self.sc.nr_to_reclaim * 3 / 2;
            if m.shared.profile.reclaim.scanning_wakes_flushers && self.total_scanned > half_as_many_again {
                owner.wake_flushers();
            }
            self.sc.priority -= 1;
            self.begin_zones();
            return None;
        }
        self.snapshot_refaults(m);
        if self.sc.nr_reclaimed > 0 {
            return Some(self.sc.nr_reclaimed);
        }
        if self.sc.compaction_ready {
            return Some(1);
        }
        if m.shared.profile.reclaim.stalls_twice && !core::mem::replace(&mut self.sc.full_walk, true) {
            self.begin_priorities(m);
            return None;
        }
        if core::mem::take(&mut self.sc.skipped_deactivate) {
            self.sc.force_deactivate = true;
            self.begin_priorities(m);
            return None;
        }
        if core::mem::take(&mut self.sc.low_skipped) {
            // There is nothing else: what is protected in part only is taken, too.
            (self.sc.force_deactivate, self.sc.low_reclaim) = (false, true);
            self.begin_priorities(m);
            return None;
        }
        // A reclaimable zone may still yield something.
        Some(u64::from(m.shared.profile.lru.lists_per_zone && self.zones_reclaimable))
    }

    /// Shrinks the caches of the request's nodes by what was scanned at this priority.
    fn shrink_slab<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) {
        let (mut at, mut pages, mut nodes) = (0, 0, NodeSet::default());
        while let Some(zone) = m.next_zone(&self.request, &mut at) {
            pages += m.reclaimable_pages(zone).max(0) as u64;
            nodes = nodes.or(NodeSet::only(m.zones[zone].node));
        }
        for node in nodes.iter() {
            self.sc.nr_reclaimed += m.shrink_slab(owner, node, &self.sc, (self.sc.nr_scanned, pages));
        }
    }

    /// Whether the next priority could find more than this one. Without an ordered LRU there is no
    /// page on a list and no shrinker, at any priority.
    fn may_find_more(&self, m: &Memory) -> bool {
        m.lru.is_ordered()
    }

    fn snapshot_refaults(&self, m: &mut Memory) {
        let mut at = 0;
        while let Some(zone) = m.next_zone(&self.request, &mut at) {
            let of_root = m.zones[zone].lruvec;
            let lruvec = self.sc.target.map_or(of_root, |group| m.groups.lruvec(group, of_root));
            m.snapshot_refaults(lruvec);
            if self.sc.target.is_some() {
                m.lru.vecs[lruvec].congested = false;
            }
        }
    }

    /// Whether the request may compact, and either the page is available already or the zone has
    /// enough room above its high watermark.
    fn compaction_ready(&self, m: &mut Memory, zone: ZoneId) -> bool {
        let (order, highest) = (self.sc.order, self.sc.highest);
        if !self.sc.counts_on_compaction(&m.shared.profile.reclaim) {
            return false;
        }
        let plain = AllocFlags::mark(Wmark::Min);
        if m.shared.profile.lru.lists_per_zone {
            return self.compaction_ready_in_zone(m, zone);
        }
        if m.shared.profile.reclaim.compaction_ready_by_high_mark {
            let z = &m.zones[zone];
            let there = z.watermark_ok(order, z.wmark(Wmark::Min), highest, plain, z.free_pages, &m.shared.profile);
            let high = AllocFlags::mark(Wmark::High);
            return there || m.compaction_suitable(zone, Some(order), high, highest, false) == CompactResult::Continue;
        }
        match m.compaction_suitable(zone, Some(order), plain, highest, false) {
            CompactResult::Success => true,
            CompactResult::Skipped => false,
            _ => {
                let z = &m.zones[zone];
                let mark = z.wmark(Wmark::High) + m.shared.profile.compaction.gap(order);
                z.watermark_ok(Order::ZERO, mark, highest, plain, z.free_pages_snapshot(), &m.shared.profile)
            }
        }
    }

    /// The same up to 4.7: the zone needs room above the high watermark and the gap and, unless
    /// compaction is deferred, must be suitable. Checking for deferral counts as an attempt.
    fn compaction_ready_in_zone(&self, m: &mut Memory, zone: ZoneId) -> bool {
        let order = self.sc.order;
        let z = &m.zones[zone];
        let mark = z.wmark(Wmark::High) + m.balance_gap(zone) + m.shared.profile.compaction.gap(order);
        let plain = AllocFlags::mark(Wmark::Min);
        let free = z.free_pages_snapshot();
        let has_room = z.watermark_ok(Order::ZERO, mark, ZoneType::WITHOUT_RESERVE, plain, free, &m.shared.profile);
        if m.locked(zone, self.sc.cpu).compaction_deferred(order) {
            return has_room;
        }
        let suits = m.compaction_suitable(zone, Some(order), plain, ZoneType::WITHOUT_RESERVE, false);
        suits != CompactResult::Skipped && has_room
    }

    /// The node whose kswapd the task must wait for, if any.
    fn throttling_node(&self, m: &mut Memory, again: bool) -> Option<NodeId> {
        let mut at = 0;
        while let Some(zone) = m.next_zone(&self.request, &mut at) {
            if m.zones[zone].kind > ZoneType::Normal {
                continue;
            }
            let node = m.zones[zone].node;
            if m.allow_direct_reclaim(node) {
                return None;
            }
            if !again {
                m.shared.vmstat.add(VmEvent::PgscanDirectThrottle, 1);
            }
            return Some(node);
        }
        None
    }
}

impl Memory {
    /// Records the node's refault activations. If the count differs when reclaim begins next, the
    /// working set is changing.
    pub(crate) fn snapshot_refaults(&mut self, lruvec: LruvecId) {
        if self.lru.has_generations() {
            return;
        }
        let vec = &mut self.lru.vecs[lruvec];
        vec.refaults = Backing::ALL.map(|backing| vec.state(NodeStat::activate(backing) as usize));
    }

    /// Whether tasks may reclaim without being throttled: free pages exceed half of the min
    /// watermarks, summed over the zones that have something to reclaim. If not, wakes kswapd.
    pub(crate) fn allow_direct_reclaim(&mut self, node: NodeId) -> bool {
        // A machine without reclaim has nothing to wait for.
        if !self.lru.is_ordered() || self.nodes[node].kswapd.hopeless() {
            return true;
        }
        let rules = &self.shared.profile.reclaim;
        let all = rules.throttles_for_all_zones;
        let (exact, exhausted_counts) = (rules.throttles_by_exact_count, rules.throttles_for_exhausted_zones);
        let (mut reserve, mut free) = (0, 0);
        for &z in &self.nodes[node].zones {
            let zone = &self.zones[z];
            let counts = all || self.reclaimable_pages(z) > 0 || exhausted_counts && zone.nr_free_pages_exact() == 0;
            if zone.managed > 0 && zone.kind <= ZoneType::Normal && counts {
                reserve += zone.wmark(Wmark::Min);
                free += if exact { zone.nr_free_pages_exact() } else { zone.nr_free_pages() };
            }
        }
        if reserve == 0 || free > reserve / 2 {
            return true;
        }
        let kswapd = &mut self.nodes[node].kswapd;
        if !kswapd.running {
            // This holds even if kswapd has been asked for no zone since it slept: these are the
            // zones that are short now.
            kswapd.highest = Some(kswapd.highest.map_or(ZoneType::Normal, |highest| highest.min(ZoneType::Normal)));
            kswapd.running = true;
            self.wakes.add(Daemon::Kswapd(node));
        }
        false
    }

    /// Whether fewer pages than six times its reclaimable ones have been scanned since a page of
    /// the zone was freed.
    pub fn zone_reclaimable(&self, zone: ZoneId) -> bool {
        self.zones[zone].pages_scanned < 6 * self.reclaimable_pages(zone).max(0) as u64
    }

    /// The zone's reclaimable pages, as retry decisions count them. Some kernels count the free
    /// pages instead if there are none (§3.5).
    pub(crate) fn reclaimable_pages(&self, zone: ZoneId) -> i64 {
        let z = &self.zones[zone];
        let of = |backing: Backing| (z.nr_listed(backing.inactive()) + z.nr_listed(backing.active())) as i64;
        let mut pages = of(Backing::File);
        if self.can_reclaim_anon() {
            pages += of(Backing::Anon);
        }
        if pages == 0 && self.shared.profile.reclaim.free_counts_as_reclaimable {
            pages = z.nr_free_pages_exact() as i64;
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::MigrateOutcome;
    use crate::state::PageFlags;
    use crate::testing::{linux, ordered_machine, ordered_machine_with, user_page};
    use crate::types::{CpuId, Pfn};

    const NODE: NodeId = NodeId::new(0);

    /// A machine whose counter says that next to nothing is free, and which has a reclaimable page.
    fn short() -> Memory {
        let mut m = ordered_machine(1);
        user_page(&mut m, PageFlags::FILE);
        m.lru_add_drain(CpuId::new(0));
        let zone = &mut m.zones[ZoneId::new(0)];
        zone.free_pages = (zone.wmark(Wmark::Min) / 2) as i64;
        m
    }

    #[test]
    fn a_task_reclaims_only_where_more_than_half_the_min_mark_is_free() {
        let mut m = short();
        assert!(!m.allow_direct_reclaim(NODE));
        m.zones[ZoneId::new(0)].free_pages += 1;
        assert!(m.allow_direct_reclaim(NODE));
    }

    #[test]
    fn a_hopeless_node_or_one_with_nothing_to_reclaim_is_not_waited_for() {
        let mut m = short();
        m.nodes[NODE].kswapd.failures = crate::reclaim::MAX_RECLAIM_RETRIES;
        assert!(m.allow_direct_reclaim(NODE));
        let mut m = ordered_machine(1);
        m.zones[ZoneId::new(0)].free_pages = 0;
        assert!(m.allow_direct_reclaim(NODE));
    }

    #[test]
    fn a_zone_with_nothing_free_and_nothing_to_reclaim_makes_tasks_wait_by_7_2() {
        for (profile, waits) in [("6.1", false), ("7.2", true)] {
            let mut m = ordered_machine_with(1, linux(profile));
            m.zones[ZoneId::new(0)].free_pages = 0;
            assert_eq!(!m.allow_direct_reclaim(NODE), waits, "{profile}");
        }
    }

    /// An owner of no pages.
    struct NoneMoves;

    impl Owner for NoneMoves {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            false
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Failed
        }
    }

    #[test]
    fn a_task_that_may_not_enter_a_file_system_waits_a_second_once() {
        for (gfp, at_most_ns) in [(Gfp::KERNEL, None), (Gfp::RECLAIM | Gfp::IO, Some(1_000_000_000))] {
            let mut m = short();
            let request = Request::new(CpuId::new(0), NODE, gfp, Order::ZERO);
            let mut reclaim = DirectReclaim::new(request, Order::ZERO);
            let throttled = Step::Wait(Wait::Throttled { node: NODE, at_most_ns });
            assert_eq!(reclaim.step(&mut m, &mut NoneMoves), throttled);
            assert_eq!(reclaim.step(&mut m, &mut NoneMoves) == throttled, at_most_ns.is_none());
            assert_eq!(m.vmstat().get(VmEvent::PgscanDirectThrottle), 1, "counted once");
        }
    }

    #[test]
    fn pages_that_khugepaged_scans_are_counted_by_themselves_since_6_2() {
        for (profile, gfp, expected) in [
            ("6.1", Gfp::KERNEL | Gfp::BY_KHUGEPAGED, [true, false]),
            ("6.12", Gfp::KERNEL | Gfp::BY_KHUGEPAGED, [false, true]),
            ("6.12", Gfp::KERNEL, [true, false]),
        ] {
            let mut m = ordered_machine_with(4, linux(profile));
            for _ in 0..64 {
                user_page(&mut m, PageFlags::FILE);
            }
            m.lru_add_drain(CpuId::new(0));
            let mut reclaim = DirectReclaim::new(Request::new(CpuId::new(0), NODE, gfp, Order::ZERO), Order::ZERO);
            while !matches!(reclaim.step(&mut m, &mut NoneMoves), Step::Done(_)) {}
            let counted = [VmEvent::PgscanDirect, VmEvent::PgscanKhugepaged].map(|e| m.vmstat().get(e) > 0);
            assert_eq!(counted, expected, "{profile} {gfp}");
        }
    }

    #[test]
    fn compaction_could_work_for_those_only_that_may_compact() {
        let mut m = ordered_machine(64);
        for (gfp, ready) in [(Gfp::KERNEL, true), (Gfp::RECLAIM, false)] {
            let request = Request::new(CpuId::new(0), NODE, gfp, Order::new(9));
            let reclaim = DirectReclaim::new(request, Order::new(9));
            assert_eq!(reclaim.compaction_ready(&mut m, ZoneId::new(0)), ready, "{gfp}");
        }
    }

    #[test]
    fn the_kswapd_that_is_waited_for_looks_at_normal_and_below() {
        for asked_for in [None, Some(ZoneType::Movable), Some(ZoneType::Normal)] {
            let mut m = short();
            m.nodes[NODE].kswapd.highest = asked_for;
            assert!(!m.allow_direct_reclaim(NODE));
            assert!(m.nodes[NODE].kswapd.running);
            assert_eq!(m.nodes[NODE].kswapd.highest, Some(ZoneType::Normal), "{asked_for:?}");
            assert!(m.take_wakes().eq([Daemon::Kswapd(NODE)]));
        }
        let mut m = short();
        m.nodes[NODE].kswapd.highest = Some(ZoneType::Dma);
        m.allow_direct_reclaim(NODE);
        assert_eq!(m.nodes[NODE].kswapd.highest, Some(ZoneType::Dma));
    }

    /// A cache from which nothing can be freed; counts the calls.
    struct Asked(u32);

    impl Owner for Asked {
        fn may_isolate(&mut self, _: crate::types::Pfn) -> bool {
            false
        }
        fn migrate(&mut self, _: crate::types::Pfn, _: crate::types::Pfn, _: u32) -> crate::owner::MigrateOutcome {
            crate::owner::MigrateOutcome::Failed
        }
        fn shrinker(&mut self, _: NodeId, number: usize) -> Option<crate::owner::Shrinker> {
            self.0 += u32::from(number == 0);
            None
        }
    }

    #[test]
    fn in_3_13_caches_are_shrunk_at_each_priority_even_where_no_zone_is() {
        let asked = |profile: &str| {
            let mut m = crate::testing::two_zones(crate::testing::linux(profile));
            let request = Request::new(crate::types::CpuId::new(0), NodeId::new(0), Gfp::KERNEL, Order::ZERO);
            let (mut owner, mut reclaim) = (Asked(0), DirectReclaim::new(request, Order::ZERO));
            while !matches!(reclaim.step(&mut m, &mut owner), Step::Done(_)) {}
            (owner.0, m.vmstat().get(VmEvent::AllocstallNormal))
        };
        // Without pages on their lists the zones are looked at once only.
        assert_eq!((asked("3.13"), asked("4.6")), ((13, 1), (2, 2)));
    }

    #[test]
    fn in_3_13_zones_with_nothing_to_reclaim_count_for_the_throttle() {
        let allows = |profile: &str| {
            let mut m = crate::testing::two_zones(crate::testing::linux(profile));
            // Nothing is left of DMA32, and no zone has a page to reclaim.
            m.zones[ZoneId::new(0)].free_pages = 0;
            m.zones[ZoneId::new(1)].free_pages = 0;
            m.allow_direct_reclaim(NodeId::new(0))
        };
        assert_eq!([allows("3.13"), allows("4.6")], [false, true]);
    }
}
