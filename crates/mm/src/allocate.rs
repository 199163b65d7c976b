//! The allocator's fast path: takes a block from the first zone that can spare one.
//!
//! It never waits, reclaims or compacts; a request it cannot serve goes on in [`crate::AllocSlow`].
//! Source: kernel-behaviour §2.4, §3.3, §3.4.

use crate::event::{Event, Listen};
use crate::fallback::RmqueueMode;
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::pcp;
use crate::request::Request;
use crate::rules::{PcpLists, ZonelistRules};
use crate::state::{FrameKind, Locked, Memory, Zone};
use crate::types::{CpuId, MigrateType, Order, Pfn, ZoneId, ZoneType};
use crate::vmstat::VmEvent;

/// The fast path found no page; the request must take the slow path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoPage;

/// The zone in which the zonelist walk found a page: lets [`Memory::alloc_again`] find the next one
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageSource {
    zone: ZoneId,
    /// Zones the walk tried beyond the first: each page from this source costs that in
    /// [`crate::Work::zones_tried`].
    pub zones_tried: u64,
    /// The watermark was checked again after the first page, which may have come with a refill.
    above_mark: bool,
}

/// A walk over the zones of a request, in the order in which it tries them.
#[derive(Clone, Debug)]
pub(crate) struct ZonelistWalk {
    /// The request's `alloc_flags`, of which the walk drops some on its way.
    pub(crate) flags: AllocFlags,
    /// The zone that the request prefers.
    first: ZoneId,
    /// It has been tried already.
    tried_first: bool,
    /// Position in the zonelist.
    at: usize,
    /// Nodes whose kswapd is at work are left for last, and one was.
    skip_busy: bool,
    skipped: bool,
    /// A zone has given its share.
    depleted: bool,
}

impl ZonelistWalk {
    pub(crate) fn new(first: ZoneId, flags: AllocFlags) -> ZonelistWalk {
        ZonelistWalk { flags, first, tried_first: false, at: 0, skip_busy: true, skipped: false, depleted: false }
    }

    /// The next zone to try. The walk may go over the zones more than once.
    #[inline(always)]
    pub(crate) fn next(&mut self, m: &mut Memory, r: &Request) -> Option<ZoneId> {
        loop {
            while let Some(id) = m.next_zone(r, &mut self.at) {
                let is_far = |of: &ZonelistWalk| m.zones[id].node != m.zones[of.first].node;
                if self.flags.any(AllocFlags::FAIR) {
                    if is_far(self) {
                        break;
                    }
                    if m.zones[id].fair_depleted {
                        self.depleted = true;
                        continue;
                    }
                }
                if core::mem::take(&mut self.tried_first) && id == self.first {
                    continue;
                }
                if self.flags.any(AllocFlags::NOFRAGMENT) && !m.shared.tunables.defrag_mode && is_far(self) {
                    self.flags = self.flags.without(AllocFlags::NOFRAGMENT);
                    self.begin_again();
                    continue;
                }
                if self.skip_busy && m.leave_for_last(id) {
                    self.skipped = true;
                    continue;
                }
                return Some(id);
            }
            if !self.goes_round_again(m, r) {
                return None;
            }
        }
    }

    fn begin_again(&mut self) {
        (self.at, self.skipped, self.depleted) = (0, false, false);
    }

    /// After the last zone: whether the walk tries them once more, and by other rules.
    #[inline(always)]
    fn goes_round_again(&mut self, m: &mut Memory, r: &Request) -> bool {
        if self.flags.any(AllocFlags::FAIR) {
            if m.shared.profile.zonelist.fills_up_on_slow_path {
                return false;
            }
            // Once more, without the fair zone policy and on all nodes.
            self.flags = self.flags.without(AllocFlags::FAIR);
            if self.depleted {
                m.refill_alloc_batches(self.first, r.cpu);
            }
            if self.depleted || m.nodes.len() > 1 {
                self.begin_again();
                return true;
            }
        }
        if self.skip_busy && self.skipped {
            self.skip_busy = false;
            self.begin_again();
            return true;
        }
        if !self.flags.any(AllocFlags::NOFRAGMENT) || m.shared.tunables.defrag_mode {
            return false;
        }
        self.flags = self.flags.without(AllocFlags::NOFRAGMENT);
        self.begin_again();
        true
    }
}

impl Memory {
    /// Allocates a block on the fast path, against the low watermark, without waiting, reclaiming
    /// or compacting.
    ///
    /// `cpu` is the CPU the request runs on, `node` the node it prefers. The block's tag says
    /// "kernel memory" until [`Memory::lru_add`] changes it.
    ///
    /// # Errors
    /// [`NoPage`] if no zone has a page to spare, or if the request would reclaim on a near node
    /// before it goes to the next zone; [`crate::AllocSlow`] goes on from there.
    #[inline(always)]
    pub fn alloc(&mut self, r: Request) -> Result<Pfn, NoPage> {
        let first = self.preferred_zone(&r).ok_or(NoPage)?;
        let flags = self.fast_path_flags(&r, first);
        self.get_page_from(first, &r, flags).ok_or(NoPage)
    }

    /// The `alloc_flags` of the fast path; `preferred` is the request's preferred zone.
    #[inline(always)]
    pub(crate) fn fast_path_flags(&self, r: &Request, preferred: ZoneId) -> AllocFlags {
        let mut flags = AllocFlags::mark(Wmark::Low);
        if r.gfp.has(Gfp::KSWAPD_RECLAIM) {
            flags = flags.with(AllocFlags::KSWAPD);
        }
        let rules = &self.shared.profile.zonelist;
        if rules.goes_round && takes_turns(r, rules) {
            flags = flags.with(AllocFlags::FAIR);
        }
        if self.shared.tunables.defrag_mode || rules.avoids_fragmentation && self.may_avoid_fragmentation(preferred) {
            flags = flags.with(AllocFlags::NOFRAGMENT);
        }
        if self.shared.profile.highatomic.serves_at_once && r.is_highatomic() {
            flags = flags.with(AllocFlags::HIGHATOMIC);
        }
        flags
    }

    /// [`Memory::alloc`] of a single page that also returns its source.
    ///
    /// # Errors
    /// [`NoPage`] if no zone has a page to spare.
    #[inline(always)]
    pub fn alloc_from(&mut self, r: Request) -> Result<(Pfn, PageSource), NoPage> {
        debug_assert!(r.order == Order::ZERO);
        let before = self.shared.work.zones_tried;
        let pfn = self.alloc(r)?;
        let zones_tried = self.shared.work.zones_tried - before;
        Ok((pfn, PageSource { zone: self.blocks.zone_of(pfn), zones_tried, above_mark: false }))
    }

    /// Allocates more pages for the request whose first page came from `source`, as long as this
    /// CPU's list there has some, without another zonelist walk, which would end at the same zone.
    /// Returns how many.
    ///
    /// This is valid as long as `cpu` has done nothing else, and no other CPU anything at all,
    /// since the first page. That page may have come with a refill, which lowers the zone's free
    /// pages, so the watermark is checked once more. After that nothing changes: taking a page off
    /// a per-CPU list does not change a zone's free pages, so the zones before this one still have
    /// none to spare, and this one still has.
    ///
    /// The caller counts the cost of the walk ([`PageSource::zones_tried`]) and must put each page
    /// on the LRU at once ([`Memory::lru_add_pages`]); the pages end where that would free others.
    /// Nobody may listen to allocations, since these emit no events.
    #[inline(always)]
    pub fn alloc_again(&mut self, r: Request, source: &mut PageSource, pages: &mut [Pfn]) -> usize {
        debug_assert!(!self.shared.trace.listens_to(Listen::KMEM));
        let zone = &self.zones[source.zone];
        if zone.fair_depleted {
            return 0;
        }
        if !source.above_mark {
            let Some(preferred) = self.preferred_zone(&r) else { return 0 };
            let flags = self.fast_path_flags(&r, preferred);
            source.above_mark = self.above_mark(source.zone, &r, flags);
            if !source.above_mark {
                return 0;
            }
        }
        // The last page may exhaust the zone's batch or flush a pagevec, so stop there.
        let mut most = pages.len().min(self.until_batch_frees(r.cpu));
        if self.shared.profile.zonelist.goes_round {
            most = most.min(self.zones[source.zone].until_given(r.cpu) as usize);
        }
        let count = self.locked(source.zone, r.cpu).pcp_pop(r.gfp.migratetype(), &mut pages[..most]);
        if count > 0 {
            self.zones[source.zone].numa.given += count as u64;
            if self.nodes.len() > 1 {
                self.count_far(source.zone, r, count as u64);
            }
            pages[..count].iter().for_each(|pfn| self.frames.set(*pfn, FrameKind::Kernel, Order::ZERO));
            self.count_given(source.zone, &r, count as u32);
        }
        count
    }

    /// Whether a request should rather use a lower zone than split a foreign pageblock (§3.3): only
    /// if the preferred zone is Normal and the node has a DMA32 zone below it, which on a single
    /// node is assumed.
    #[inline(always)]
    fn may_avoid_fragmentation(&self, preferred: ZoneId) -> bool {
        let zone = &self.zones[preferred];
        zone.kind == ZoneType::Normal
            && (self.nodes.len() == 1
                || self.nodes[zone.node].zones.iter().any(|z| self.zones[*z].kind == ZoneType::Dma32))
    }

    /// Walks the zonelist and takes a block from the first zone that can spare one (§3.4).
    #[inline(always)]
    pub(crate) fn get_page_from_freelist(&mut self, r: &Request, flags: AllocFlags) -> Option<Pfn> {
        self.get_page_from(self.preferred_zone(r)?, r, flags)
    }

    /// The same with the preferred zone, `first`, already known.
    #[inline(always)]
    fn get_page_from(&mut self, first: ZoneId, r: &Request, flags: AllocFlags) -> Option<Pfn> {
        let passed_over = self.leave_for_last(first) || flags.any(AllocFlags::FAIR) && self.zones[first].fair_depleted;
        if !passed_over && let Some(pfn) = self.try_zone(first, r, flags) {
            return Some(pfn);
        }
        self.walk_zonelist(first, !passed_over, *r, flags)
    }

    /// Takes a block from the zones of the preferred one's node alone.
    pub(crate) fn get_local_page(&mut self, r: &Request, flags: AllocFlags) -> Option<Pfn> {
        let node = self.zones[self.preferred_zone(r)?].node;
        let mut at = 0;
        while let Some(id) = self.next_zone(r, &mut at).filter(|id| self.zones[*id].node == node) {
            if let Some(pfn) = self.try_zone(id, r, flags) {
                return Some(pfn);
            }
        }
        None
    }

    /// Whether kswapd is at work on the zone's node, so that other nodes should be tried first.
    #[inline(always)]
    fn leave_for_last(&self, zone: ZoneId) -> bool {
        self.shared.profile.zonelist.busy_nodes_last
            && self.nodes.len() > 1
            && self.nodes[self.zones[zone].node].kswapd.running
    }

    /// The rest of the walk, after the preferred zone had nothing or was skipped. A request that
    /// would reclaim on the way finds nothing here: [`crate::AllocSlow`] walks for it.
    #[inline(never)]
    fn walk_zonelist(&mut self, first: ZoneId, tried_first: bool, r: Request, flags: AllocFlags) -> Option<Pfn> {
        if self.shared.tunables.zone_reclaim_mode != 0 && self.reclaims_on_the_way(&r) {
            return None;
        }
        let mut walk = ZonelistWalk { tried_first, ..ZonelistWalk::new(first, flags) };
        while let Some(id) = walk.next(self, &r) {
            self.shared.work.any = true;
            self.shared.work.zones_tried += 1;
            if let Some(pfn) = self.try_zone(id, &r, walk.flags) {
                return Some(pfn);
            }
        }
        None
    }

    /// Refills NR_ALLOC_BATCH in the zones of the preferred zone's node, up to that zone.
    fn refill_alloc_batches(&mut self, preferred: ZoneId, cpu: CpuId) {
        let (node, highest) = (self.zones[preferred].node, self.zones[preferred].kind);
        for z in self.zones.iter_mut().filter(|z| z.node == node && z.kind <= highest) {
            z.refill_alloc_batch(cpu);
        }
    }

    /// Fills up NR_ALLOC_BATCH in the zones of the preferred zone's node that the request may use.
    pub(crate) fn fill_up_shares(&mut self, r: &Request) {
        let Some(preferred) = self.preferred_zone(r) else { return };
        let (node, mut at) = (self.zones[preferred].node, 0);
        while let Some(id) = self.next_zone(r, &mut at) {
            if self.zones[id].node == node {
                self.zones[id].fill_up_share(r.cpu);
            }
        }
    }

    /// Tries one zone: the watermark, then the lists.
    #[inline(always)]
    fn try_zone(&mut self, id: ZoneId, r: &Request, flags: AllocFlags) -> Option<Pfn> {
        if self.above_mark(id, r, flags) { self.take_from_zone(id, r, flags) } else { None }
    }

    /// Takes a block from the lists of a zone that has enough.
    #[inline(always)]
    pub(crate) fn take_from_zone(&mut self, id: ZoneId, r: &Request, flags: AllocFlags) -> Option<Pfn> {
        let mut locked = self.locked(id, r.cpu);
        let pfn = locked.rmqueue(r.order, r.gfp.migratetype(), flags);
        locked.zone.numa.given += u64::from(pfn.is_some());
        let boosted = locked.zone.boosted_flag;
        let may_wake = flags.any(AllocFlags::KSWAPD) || !self.shared.profile.boost.woken_for_by_kswapd_requests;
        if boosted && may_wake {
            self.zones[id].boosted_flag = false;
            let highest = self.zones[id].kind;
            self.wakeup_kswapd(id, Gfp::NONE, Order::ZERO, highest);
        }
        let pfn = pfn?;
        if self.nodes.len() > 1 {
            self.count_far(id, *r, 1);
        }
        self.account_alloc(id, pfn, r);
        if flags.any(AllocFlags::HIGHATOMIC) && !self.shared.profile.highatomic.bypasses_pcp {
            self.locked(id, r.cpu).reserve_highatomic(pfn, r.order);
        }
        Some(pfn)
    }

    /// Whether the zone has enough free pages for the request. Where the per-CPU lists are
    /// auto-tuned, the high watermark is checked first, and a zone below it is marked as such.
    #[inline(always)]
    pub(crate) fn above_mark(&mut self, id: ZoneId, r: &Request, flags: AllocFlags) -> bool {
        let zone = &mut self.zones[id];
        let (profile, highest, order) = (&self.shared.profile, r.gfp.highest_zone(), r.order);
        if profile.pcp.lists == PcpLists::AutoTuned && !zone.below_high {
            if zone.watermark_fast(order, zone.wmark(Wmark::High), highest, flags, profile) {
                return true;
            }
            zone.below_high = true;
        }
        zone.watermark_fast(order, zone.wmark(flags.wmark), highest, flags, profile)
    }

    /// Counts allocated blocks by preferred node and by the CPU's node, on machines with several
    /// nodes. The request is passed by value: a pointer would force it into memory on the fast
    /// path, too.
    #[inline(never)]
    fn count_far(&mut self, zone: ZoneId, r: Request, blocks: u64) {
        let node = self.zones[zone].node;
        if let Some(preferred) = self.preferred_zone(&r)
            && self.zones[preferred].node != node
        {
            self.zones[zone].numa.miss += blocks;
            self.zones[preferred].numa.foreign += blocks;
        }
        let is_local = self.nodes[node].cpus.binary_search(&r.cpu).is_ok();
        let numa = &mut self.zones[zone].numa;
        numa.other += if is_local { 0 } else { blocks };
        numa.interleave += if r.interleaves() && r.node == node { blocks } else { 0 };
    }

    /// Tags and counts a block that has just been taken from the lists.
    #[inline(always)]
    fn account_alloc(&mut self, zone: ZoneId, pfn: Pfn, r: &Request) {
        self.count_given(zone, r, 1);
        self.tag_alloc(pfn, r);
    }

    /// Tags a block that is given to a request. One that compaction has captured comes from no
    /// list, and the kernel does not count it.
    #[inline(always)]
    pub(crate) fn tag_alloc(&mut self, pfn: Pfn, r: &Request) {
        let (order, migratetype) = (r.order, r.gfp.migratetype());
        self.frames.set(pfn, FrameKind::Kernel, order);
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, true);
        }
        self.shared.emit(Listen::KMEM, || Event::PageAlloc { pfn, order, migratetype });
    }

    /// Counts blocks that a zone has given for a request.
    #[inline(always)]
    fn count_given(&mut self, zone: ZoneId, r: &Request, blocks: u32) {
        let pages = r.order.pages() * blocks;
        let rules = &self.shared.profile.zonelist;
        if rules.goes_round && takes_turns(r, rules) {
            self.zones[zone].count_given(r.cpu, pages);
        }
        let kind = self.zones[zone].kind;
        self.shared.vmstat.add(PGALLOC[kind.index()], u64::from(pages));
    }
}

/// Whether a request takes part where zones give in turn.
#[inline(always)]
fn takes_turns(r: &Request, rules: &ZonelistRules) -> bool {
    rules.bound_go_round || !r.gfp.has(Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN)
}

const PGALLOC: [VmEvent; ZoneType::COUNT] = [
    VmEvent::PgallocDma,
    VmEvent::PgallocDma32,
    VmEvent::PgallocNormal,
    VmEvent::PgallocMovable,
    VmEvent::PgallocDevice,
];

impl Zone {
    /// Charges pages to NR_ALLOC_BATCH. Readers see only what CPUs have folded in.
    #[inline(always)]
    fn count_given(&mut self, cpu: CpuId, pages: u32) {
        self.alloc_batch.add(0, cpu, -i64::from(pages), self.stat_threshold);
        self.fair_depleted |= self.alloc_batch.get(0) == 0;
    }

    /// How many single pages this CPU can take until its charge is folded in, including the one
    /// that folds it.
    #[inline(always)]
    fn until_given(&self, cpu: CpuId) -> u32 {
        self.alloc_batch.until_folded(0, cpu, self.stat_threshold)
    }

    /// Sets NR_ALLOC_BATCH to what was recorded.
    pub(crate) fn set_share(&mut self, pages: i64) {
        self.alloc_batch.add_to_total(0, pages - self.alloc_batch.total(0));
        self.fair_depleted = self.alloc_batch.get(0) == 0;
    }

    /// Refills NR_ALLOC_BATCH with the distance from the low to the high watermark.
    pub(crate) fn refill_alloc_batch(&mut self, cpu: CpuId) {
        let missing = (self.watermarks.high - self.watermarks.low) as i64 - self.alloc_batch.total(0);
        self.alloc_batch.add(0, cpu, missing, self.stat_threshold);
        self.fair_depleted = false;
    }
}

impl Zone {
    /// Adds to NR_ALLOC_BATCH what readers see it lack. They see no less than nothing, so a zone
    /// that gave a large block may have to be filled up more than once.
    fn fill_up_share(&mut self, cpu: CpuId) {
        let missing = (self.watermarks.high - self.watermarks.low) as i64 - self.alloc_batch.get(0) as i64;
        self.alloc_batch.add(0, cpu, missing, self.stat_threshold);
        self.fair_depleted = self.alloc_batch.get(0) == 0;
    }
}

impl Locked<'_> {
    /// Takes a block from the per-CPU lists or the free lists (§2.4, §2.8).
    #[inline(always)]
    fn rmqueue(&mut self, order: Order, t: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        if pcp::allows(self.shared.profile.pcp.lists, order)
            && let Some(pfn) = self.pcp_alloc(order, t, flags)
        {
            return Some(pfn);
        }
        self.rmqueue_direct(order, t, flags)
    }

    #[inline(never)]
    fn rmqueue_direct(&mut self, order: Order, t: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        self.count_lock();
        let mut pfn = None;
        if flags.any(AllocFlags::HIGHATOMIC) {
            pfn = self.rmqueue_smallest(order, MigrateType::HighAtomic);
        }
        let mut mode = RmqueueMode::Normal;
        let mut pfn = pfn.or_else(|| self.rmqueue_any_type(order, t, flags, &mut mode));
        if pfn.is_none()
            && flags.any(AllocFlags::NON_BLOCK)
            && self.shared.profile.highatomic.last_resort_of_non_blocking
        {
            pfn = self.rmqueue_smallest(order, MigrateType::HighAtomic);
        }
        let pfn = pfn?;
        self.account_taken(order.pages());
        // A block taken at the low watermark leaves enough for the next request.
        let needy = flags.wmark != Wmark::Low;
        if flags.any(AllocFlags::HIGHATOMIC) && needy && self.shared.profile.highatomic.bypasses_pcp {
            self.reserve_highatomic(pfn, order);
        }
        Some(pfn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::{MachineSpec, ZoneSpec};
    use crate::rules::Profile;
    use crate::testing::linux;
    use crate::types::NodeId;
    use alloc::vec::Vec;

    /// Three nodes; the first has a DMA32 zone below its Normal one.
    fn three_nodes(profile: Profile) -> Memory {
        let zone = |node, kind, first: u32, blocks: u32| ZoneSpec {
            node,
            kind,
            start: first * 512,
            end: (first + blocks) * 512,
            present: u64::from(blocks) * 512,
            managed: u64::from(blocks) * 512,
        };
        let zones = [
            zone(0, ZoneType::Dma32, 8, 24),
            zone(0, ZoneType::Normal, 2048, 40),
            zone(1, ZoneType::Normal, 2088, 32),
            zone(2, ZoneType::Normal, 2120, 16),
        ];
        Memory::new(&MachineSpec { cpus: 6, zones: zones.to_vec(), thp: false, lru: false }, profile)
            .expect("a valid machine")
    }

    /// Fills the machine from node 0. Returns all pages, the cost of the walks, and what is left
    /// free.
    fn fill(m: &mut Memory, runs: bool) -> (Vec<Pfn>, u64, Vec<u64>) {
        let (cpu, node, gfp) = (CpuId::new(0), NodeId::default(), Gfp::HIGHUSER_MOVABLE);
        let (mut pfns, mut zones_tried) = (Vec::new(), 0);
        while let Ok((pfn, mut source)) = m.alloc_from(Request::new(cpu, node, gfp, Order::ZERO)) {
            pfns.push(pfn);
            let alone = pfns.len().is_multiple_of(97);
            if runs && !alone {
                let mut pages = [Pfn::default(); 20];
                while let count @ 1.. =
                    m.alloc_again(Request::new(cpu, node, gfp, Order::ZERO), &mut source, &mut pages)
                {
                    pfns.extend(&pages[..count]);
                    zones_tried += count as u64 * source.zones_tried;
                }
            }
        }
        zones_tried += m.take_work().zones_tried;
        (pfns, zones_tried, m.zones().iter().map(Zone::nr_free_pages_exact).collect())
    }

    /// Single pages allocated on the first node, by the zone they came from.
    fn given(profile: &str, pages: usize) -> (Memory, [i64; 4]) {
        let mut m = three_nodes(linux(profile));
        let mut of = [0; 4];
        for _ in 0..pages {
            let r = Request::new(CpuId::new(0), NodeId::default(), Gfp::HIGHUSER_MOVABLE, Order::ZERO);
            let pfn = m.alloc(r).expect("most of the machine is free");
            of[m.blocks.zone_of(pfn).index()] += 1;
        }
        (m, of)
    }

    #[test]
    fn up_to_4_7_requests_go_round_the_zones_of_their_node_by_what_each_has_to_give() {
        let (m, of) = given("4.6", 4000);
        let [low, high] = [0, 1].map(|z| (m.zones()[z].watermarks.high - m.zones()[z].watermarks.low) as i64);
        assert!((of[0] * high - of[1] * low).abs() < of[1] * low / 4, "{of:?} of {low} and {high}");
        assert_eq!(of[2..], [0, 0], "other nodes come last");
        let (_, of) = given("5.6", 4000);
        assert_eq!(of, [0, 4000, 0, 0], "the preferred zone gives all it can");
    }

    #[test]
    fn a_zone_that_has_given_its_share_gives_again_once_all_have() {
        let (mut m, _) = given("4.6", 4000);
        let normal = ZoneId::new(1);
        m.zones[normal].fair_depleted = true;
        let r = Request::new(CpuId::new(0), NodeId::default(), Gfp::HIGHUSER_MOVABLE, Order::ZERO);
        let pfn = m.alloc(r).expect("DMA32 has not");
        assert_eq!(m.blocks.zone_of(pfn), ZoneId::new(0));
        m.zones.iter_mut().for_each(|z| z.fair_depleted = true);
        let pfn = m.alloc(r).expect("they begin anew");
        assert_eq!(m.blocks.zone_of(pfn), normal);
        assert!(!m.zones[normal].fair_depleted);
    }

    #[test]
    fn only_since_5_0_a_request_takes_a_lower_zone_rather_than_split_a_foreign_pageblock() {
        for (profile, avoids) in [("4.6", false), ("5.6", true)] {
            let m = three_nodes(linux(profile));
            let r = Request::new(CpuId::new(0), NodeId::default(), Gfp::KERNEL, Order::ZERO);
            let preferred = m.preferred_zone(&r).expect("a zone it may use");
            assert_eq!(m.fast_path_flags(&r, preferred).any(AllocFlags::NOFRAGMENT), avoids, "{profile}");
        }
    }

    #[test]
    fn a_page_allocated_again_is_the_page_a_new_walk_would_find() {
        for profile in ["5.6", "6.1", "7.2"].map(linux) {
            let (mut runs, mut singly) = (three_nodes(profile.clone()), three_nodes(profile));
            let (of_runs, of_single) = (fill(&mut runs, true), fill(&mut singly, false));
            // The failing walk at the end tries every zone in both cases.
            assert_eq!(of_runs, of_single);
            assert_eq!(runs.vmstat(), singly.vmstat());
            // 112 pageblocks are 57,344 pages, minus what the watermarks keep.
            assert!(of_runs.0.len() > 50_000, "most of the machine was allocated: {}", of_runs.0.len());
        }
    }

    #[test]
    fn in_3_13_a_request_that_finds_all_shares_used_up_takes_the_slow_path_which_fills_them_up() {
        let mut m = three_nodes(linux("3.13"));
        let r = Request::new(CpuId::new(0), NodeId::default(), Gfp::HIGHUSER_MOVABLE, Order::ZERO);
        let shares = [0, 1].map(|z| m.zones()[z].watermarks.high - m.zones()[z].watermarks.low);
        let before_slow_path = |m: &mut Memory| core::iter::from_fn(|| m.alloc(r).ok()).count() as u64;
        let given = before_slow_path(&mut m);
        let seen = 2 * m.zones[ZoneId::new(0)].stat_threshold as u64;
        assert!(given.abs_diff(shares.iter().sum()) <= seen, "{given} of {shares:?}");
        assert!(m.nr_free_pages() > 40 * 512, "although most of the node is free");
        assert!(m.alloc_pages(&mut crate::testing::AllMove, r).is_ok());
        assert!(before_slow_path(&mut m).abs_diff(given) <= seen, "and so on");
    }

    #[test]
    fn a_share_overdrawn_by_a_large_block_is_filled_up_bit_by_bit() {
        let mut m = three_nodes(linux("3.13"));
        let zone = ZoneId::new(1);
        let share = (m.zones[zone].watermarks.high - m.zones[zone].watermarks.low) as i64;
        m.zones[zone].alloc_batch.add_to_total(0, -share - 2 * share);
        let r = Request::new(CpuId::new(0), NodeId::default(), Gfp::HIGHUSER_MOVABLE, Order::ZERO);
        let mut depleted = || {
            m.fill_up_shares(&r);
            m.zones[zone].fair_depleted
        };
        assert_eq!([depleted(), depleted(), depleted()], [true, true, false]);
    }
}
