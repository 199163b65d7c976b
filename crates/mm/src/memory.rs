//! The machine's memory: all state of the engine, and the allocator's fast path.

use crate::compact::ZoneCompaction;
use crate::event::{Event, Listen, Trace};
use crate::frame::{FrameKind, Frames, List, Tag};
use crate::gfp::{AllocFlags, Gfp, Wmark};
use crate::kcompactd::KcompactdState;
use crate::kswapd::{KswapdState, Wakes};
use crate::pageblock::Pageblocks;
use crate::pcp::{self, PerCpuPages};
use crate::profile::Profile;
use crate::shared::Shared;
use crate::sysctl::Tunables;
use crate::types::{CpuId, MigrateType, NR_ORDERS, NodeId, Order, PAGEBLOCK_PAGES, Pfn, ZoneId, ZoneType};
use crate::vmstat::{VmEvent, Vmstat};
use crate::watermark::Watermarks;
use crate::work::Work;
use crate::zone::{Locked, Zone};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// A zone to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneSpec {
    /// Node it belongs to.
    pub node: usize,
    /// Which of the node's zones.
    pub kind: ZoneType,
    /// First frame; must start a pageblock.
    pub start: u32,
    /// One past the last frame; must end a pageblock.
    pub end: u32,
    /// Frames that exist.
    pub present: u64,
    /// Frames the allocator gets; the difference to the span is reserved at the zone's start.
    pub managed: u64,
}

/// A machine to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Number of CPUs; CPU i belongs to node i × nodes / cpus.
    pub cpus: usize,
    /// Its zones, by node and then ascending.
    pub zones: Vec<ZoneSpec>,
    /// Whether transparent huge pages raise `vm.min_free_kbytes`.
    pub thp: bool,
}

/// A node: its zones and its daemons' state.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's number.
    pub id: NodeId,
    /// Its zones, lowest first.
    pub zones: Vec<ZoneId>,
    /// Its CPUs.
    pub cpus: Vec<CpuId>,
    /// Pages present.
    pub present: u64,
    /// What kswapd is asked for and how it fared.
    pub kswapd: KswapdState,
    /// What kcompactd is asked for and how it fared.
    pub kcompactd: KcompactdState,
    /// All zones a request starting here may use, in order of preference.
    pub(crate) zonelist: Vec<ZoneId>,
}

/// All memory of a machine.
#[derive(Clone)]
pub struct Memory {
    pub(crate) frames: Frames,
    pub(crate) blocks: Pageblocks,
    pub(crate) zones: Vec<Zone>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) sh: Shared,
    pub(crate) wakes: Wakes,
    cpus: usize,
}

/// The fast path had no page; the request has to go the slow way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoPage;

impl Memory {
    /// A machine with all its memory free, as after boot: every pageblock movable, the free lists in
    /// the order that boot leaves them in, all watermarks computed.
    ///
    /// # Errors
    /// Says in one line what is wrong with the specification.
    pub fn new(spec: &MachineSpec, profile: Profile) -> Result<Memory, String> {
        let mut memory = Memory::empty(spec, profile)?;
        for z in 0..memory.zones.len() {
            let zone = &memory.zones[z];
            let (start, end) = (zone.start, zone.end);
            let reserved = zone.spanned() - zone.managed;
            memory.reserve_start(start, reserved as u32);
            memory.free_range(ZoneId::new(z), start.plus(reserved as u32), end);
        }
        memory.sh.work = Work::default();
        Ok(memory)
    }

    /// Whether a machine of this shape can be made.
    ///
    /// # Errors
    /// Says in one line what is wrong with the specification.
    pub fn check_spec(spec: &MachineSpec) -> Result<(), String> {
        if spec.cpus == 0 || spec.cpus > usize::from(u16::MAX) {
            return Err(format!("a machine has 1 to 65535 CPUs, not {}", spec.cpus));
        }
        if spec.zones.is_empty() {
            return Err("a machine has at least one zone".into());
        }
        // Sets of zones and of nodes are the bits of a word.
        if spec.zones.len() > 64 {
            return Err(format!("a machine has at most 64 zones, not {}", spec.zones.len()));
        }
        if let Some(z) = spec.zones.iter().find(|z| z.node > 63) {
            return Err(format!("nodes are numbered 0 to 63, not {}", z.node));
        }
        let mut last_end = 0;
        for z in &spec.zones {
            let at = format!("node {} zone {}", z.node, z.kind.name());
            let aligned = |pfn: u32| pfn.is_multiple_of(PAGEBLOCK_PAGES);
            if !aligned(z.start) || !aligned(z.end) || z.start >= z.end {
                return Err(format!("{at}: pfns {} to {} are not whole pageblocks of 512 pages", z.start, z.end));
            }
            let same_node = |other: &&ZoneSpec| other.node == z.node && other.start < z.start;
            if let Some(other) = spec.zones.iter().find(|o| same_node(o) && o.kind >= z.kind) {
                return Err(format!("{at}: lies above zone {} of the same node", other.kind.name()));
            }
            if z.start < last_end {
                return Err(format!("{at}: starts at pfn {}, inside the zone before it", z.start));
            }
            let spanned = u64::from(z.end - z.start);
            if z.managed > z.present || z.present > spanned {
                return Err(format!(
                    "{at}: managed {} ≤ present {} ≤ spanned {spanned} must hold",
                    z.managed, z.present
                ));
            }
            last_end = z.end;
        }
        Ok(())
    }

    /// A machine whose frames are in nobody's hands yet: neither free nor allocated nor reserved.
    pub(crate) fn empty(spec: &MachineSpec, profile: Profile) -> Result<Memory, String> {
        Memory::check_spec(spec)?;
        let nr_nodes = spec.zones.iter().map(|z| z.node).max().map_or(0, |n| n + 1);
        let frames = spec.zones.iter().map(|z| z.end).max().unwrap_or(0);
        let frames = Frames::new(frames);
        let mut blocks = Pageblocks::new(frames.nr_pageblocks());
        let zones: Vec<Zone> = spec.zones.iter().enumerate().map(|(i, z)| new_zone(i, z, spec.cpus)).collect();
        for z in &zones {
            for b in z.start.pageblock()..=z.last_pageblock().pageblock() {
                blocks.set_zone(b, z.id);
                blocks.set_migratetype(b, MigrateType::Movable);
            }
        }
        let nodes = (0..nr_nodes).map(|n| new_node(n, nr_nodes, spec.cpus, &zones)).collect();
        let mut memory = Memory {
            frames,
            blocks,
            zones,
            nodes,
            sh: Shared {
                profile,
                tunables: Tunables::default(),
                vmstat: Vmstat::default(),
                trace: Trace::default(),
                work: Work::default(),
            },
            wakes: Wakes::default(),
            cpus: spec.cpus,
        };
        memory.sh.tunables.min_free_kbytes = memory.default_min_free_kbytes(spec.thp);
        memory.setup_watermarks();
        Ok(memory)
    }

    /// Marks the first `pages` of a zone as reserved for good: firmware, kernel image, memmap. Whole pageblocks keep
    /// one tag.
    pub(crate) fn reserve_start(&mut self, start: Pfn, pages: u32) {
        let end = start.plus(pages);
        let mut at = start;
        while at < end {
            if at.is_pageblock_aligned() && at.plus(PAGEBLOCK_PAGES) <= end {
                self.frames.set(at, FrameKind::Reserved, Order::new(9));
                at = at.plus(PAGEBLOCK_PAGES);
            } else {
                self.frames.set(at, FrameKind::Reserved, Order::ZERO);
                at = at.plus(1);
            }
        }
    }

    /// Frees `[from, to)` in blocks as large as alignment allows, in ascending order.
    fn free_range(&mut self, zone: ZoneId, from: Pfn, to: Pfn) {
        let to_tail = self.sh.profile.boot_frees_to_tail;
        let mut locked = self.locked(zone, CpuId::new(0));
        let mut at = from;
        while at < to {
            let order = Order::all()
                .rev()
                .find(|o| at.is_aligned(*o) && at.get() + o.pages() <= to.get())
                .expect("order 0 always fits");
            locked.mod_free_pages(i64::from(order.pages()));
            locked.add_to_free_list(at, order, MigrateType::Movable, to_tail);
            at = at.plus(order.pages());
        }
        locked.zone.free_pages = locked.zone.nr_free_pages_exact() as i64;
        locked.zone.pcps.iter_mut().for_each(|p| p.free_diff = 0);
    }

    /// The populated zones.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }
    /// One zone.
    pub fn zone(&self, id: ZoneId) -> &Zone {
        &self.zones[id.index()]
    }
    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    /// State of every frame.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }
    /// State of every pageblock.
    pub fn pageblocks(&self) -> &Pageblocks {
        &self.blocks
    }
    /// The kernel generation.
    pub fn profile(&self) -> &Profile {
        &self.sh.profile
    }
    /// Event counters.
    pub fn vmstat(&self) -> &Vmstat {
        &self.sh.vmstat
    }
    /// Event counters, for what happens above the engine: page faults, huge page splits.
    pub fn vmstat_mut(&mut self) -> &mut Vmstat {
        &mut self.sh.vmstat
    }
    /// Tracepoints.
    pub fn trace(&mut self) -> &mut Trace {
        &mut self.sh.trace
    }
    /// Number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.cpus
    }
    /// The work done since last asked; the count starts anew.
    #[inline(always)]
    pub fn take_work(&mut self) -> Work {
        core::mem::take(&mut self.sh.work)
    }
    /// Whether any work was done since last asked beyond hits in per-CPU lists.
    #[inline(always)]
    pub fn has_work(&self) -> bool {
        self.sh.work.any
    }
    /// Free pages of the machine, exact.
    pub fn nr_free_pages(&self) -> u64 {
        self.zones.iter().map(Zone::nr_free_pages_exact).sum()
    }
    /// The node a CPU belongs to.
    pub fn node_of_cpu(&self, cpu: CpuId) -> NodeId {
        self.nodes.iter().find(|n| n.cpus.contains(&cpu)).map_or(NodeId::default(), |n| n.id)
    }

    #[inline(always)]
    pub(crate) fn locked(&mut self, zone: ZoneId, cpu: CpuId) -> Locked<'_> {
        Locked {
            zone: &mut self.zones[zone.index()],
            frames: &mut self.frames,
            blocks: &mut self.blocks,
            sh: &mut self.sh,
            cpu,
        }
    }

    /// Allocates a block without waiting, reclaiming or compacting: the fast path, against the low watermark.
    ///
    /// `cpu` is the CPU the request runs on, `node` the node it prefers. The block's tag says "kernel memory" until
    /// [`Memory::lru_add`] says otherwise.
    ///
    /// # Errors
    /// [`NoPage`] if no zone has a page to spare; [`crate::AllocSlow`] goes on from there.
    #[inline(always)]
    pub fn alloc(&mut self, cpu: CpuId, node: NodeId, gfp: Gfp, order: Order) -> Result<Pfn, NoPage> {
        let mut flags = AllocFlags::mark(Wmark::Low);
        if gfp.has(Gfp::KSWAPD_RECLAIM) {
            flags = flags.with(AllocFlags::KSWAPD);
        }
        if self.may_avoid_fragmentation(node, gfp) {
            flags = flags.with(AllocFlags::NOFRAGMENT);
        }
        self.get_page_from_freelist(cpu, node, gfp, order, flags).ok_or(NoPage)
    }

    /// Whether a request should rather take a lower zone than split a foreign pageblock (§3.3): only where the
    /// preferred zone is Normal and the node has, or on a single node is assumed to have, a DMA32 zone below it.
    #[inline(always)]
    fn may_avoid_fragmentation(&self, node: NodeId, gfp: Gfp) -> bool {
        let Some(first) = self.preferred_zone(node, gfp) else {
            return false;
        };
        let zone = &self.zones[first.index()];
        zone.kind == ZoneType::Normal
            && (self.nodes.len() == 1
                || self.nodes[zone.node.index()].zones.iter().any(|z| self.zones[z.index()].kind == ZoneType::Dma32))
    }

    /// The first zone of the node's list that the request may use.
    #[inline(always)]
    pub(crate) fn preferred_zone(&self, node: NodeId, gfp: Gfp) -> Option<ZoneId> {
        let highest = gfp.highest_zone();
        let this_node = gfp.has(Gfp::THISNODE);
        self.nodes[node.index()].zonelist.iter().copied().find(|z| {
            let z = &self.zones[z.index()];
            z.kind <= highest && (!this_node || z.node == node)
        })
    }

    /// Walks the zones and takes a block from the first that can spare one (§3.4).
    #[inline(always)]
    pub(crate) fn get_page_from_freelist(
        &mut self,
        cpu: CpuId,
        node: NodeId,
        gfp: Gfp,
        order: Order,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        let first = self.preferred_zone(node, gfp)?;
        if let Some(pfn) = self.try_zone(first, cpu, gfp, order, flags) {
            return Some(pfn);
        }
        self.walk_zonelist(first, cpu, node, gfp, order, flags)
    }

    /// The rest of the walk, after the preferred zone had nothing.
    #[inline(never)]
    fn walk_zonelist(
        &mut self,
        first: ZoneId,
        cpu: CpuId,
        node: NodeId,
        gfp: Gfp,
        order: Order,
        mut flags: AllocFlags,
    ) -> Option<Pfn> {
        let highest = gfp.highest_zone();
        let mut tried_first = true;
        'walk: loop {
            for i in 0..self.nodes[node.index()].zonelist.len() {
                let id = self.nodes[node.index()].zonelist[i];
                let zone = &self.zones[id.index()];
                if zone.kind > highest || gfp.has(Gfp::THISNODE) && zone.node != node {
                    continue;
                }
                if core::mem::take(&mut tried_first) && id == first {
                    continue;
                }
                if flags.any(AllocFlags::NOFRAGMENT) && id != first && zone.node != self.zones[first.index()].node {
                    flags = flags.without(AllocFlags::NOFRAGMENT);
                    continue 'walk;
                }
                self.sh.work.any = true;
                self.sh.work.zones_tried += 1;
                if let Some(pfn) = self.try_zone(id, cpu, gfp, order, flags) {
                    return Some(pfn);
                }
            }
            if !flags.any(AllocFlags::NOFRAGMENT) {
                return None;
            }
            flags = flags.without(AllocFlags::NOFRAGMENT);
        }
    }

    /// One zone of the walk: the watermark, then the lists.
    #[inline(always)]
    fn try_zone(&mut self, id: ZoneId, cpu: CpuId, gfp: Gfp, order: Order, flags: AllocFlags) -> Option<Pfn> {
        if let Some(mark) = flags.wmark {
            let zone = &self.zones[id.index()];
            let profile = &self.sh.profile;
            let mark = zone.wmark(mark);
            let highest = gfp.highest_zone();
            if !zone.watermark_fast(order, mark, highest, flags, profile.reserves, profile.atomic_ignores_boost) {
                return None;
            }
        }
        let pfn = self.locked(id, cpu).rmqueue(order, gfp.migratetype(), flags);
        if self.zones[id.index()].boosted_flag {
            self.zones[id.index()].boosted_flag = false;
            let highest = self.zones[id.index()].kind;
            self.wakeup_kswapd(id, Gfp::NONE, Order::ZERO, highest);
        }
        let pfn = pfn?;
        self.account_alloc(id, pfn, order, gfp);
        if flags.any(AllocFlags::HIGHATOMIC) {
            self.locked(id, cpu).reserve_highatomic(pfn);
        }
        Some(pfn)
    }

    /// Tags and counts a block that has just been taken from the lists.
    #[inline(always)]
    pub(crate) fn account_alloc(&mut self, zone: ZoneId, pfn: Pfn, order: Order, gfp: Gfp) {
        self.frames.set(pfn, FrameKind::Kernel, order);
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, true);
        }
        let kind = self.zones[zone.index()].kind;
        self.sh.vmstat.add(PGALLOC[kind.index()], u64::from(order.pages()));
        self.sh.trace.emit(Listen::KMEM, || Event::PageAlloc { pfn, order, migratetype: gfp.migratetype() });
    }

    /// Keeps the bitmap of huge pageblocks in step.
    pub(crate) fn mark_huge(&mut self, pfn: Pfn, order: Order, huge: bool) {
        for b in 0..(order.pages() / PAGEBLOCK_PAGES) as usize {
            self.blocks.set_huge(pfn.pageblock() + b, huge);
        }
    }

    /// Makes an allocated page or huge page one of a user's, on the LRU: from now on compaction may move it.
    #[inline(always)]
    pub fn lru_add(&mut self, pfn: Pfn, order: Order) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::Kernel, order));
        self.frames.set(pfn, FrameKind::Lru, order);
        self.zones[self.blocks.zone_of(pfn).index()].nr_lru += u64::from(order.pages());
    }

    /// Makes an allocated order-0 page movable through operations of its owner, not on the LRU.
    pub fn set_movable_ops(&mut self, pfn: Pfn) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::Kernel, Order::ZERO));
        self.frames.set(pfn, FrameKind::MovableOps, Order::ZERO);
    }

    /// Stores the owner's two words with an allocated block.
    #[inline(always)]
    pub fn set_owner(&mut self, pfn: Pfn, order: Order, owner: (u32, u32)) {
        self.frames.set_owner(pfn, order, owner);
    }

    /// Frees an allocated block.
    ///
    /// # Panics
    /// If the block is not allocated with exactly this order: a double free, or a free of something else.
    #[inline(always)]
    pub fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        let tag = self.frames.tag_of(pfn, order);
        if !tag.is_allocated_of(order) {
            self.bad_free(pfn, order);
        }
        let id = self.blocks.zone_of(pfn);
        if tag.is_lru() {
            self.zones[id.index()].nr_lru -= u64::from(order.pages());
        }
        self.free_untagged(id, cpu, pfn, order);
    }

    #[cold]
    #[inline(never)]
    fn bad_free(&self, pfn: Pfn, order: Order) -> ! {
        panic!("free of {pfn} {order:?}, which is {:?}", self.frames.tag(pfn).kind())
    }

    /// Frees a block whose tag says nothing of value any more.
    #[inline(always)]
    pub(crate) fn free_untagged(&mut self, id: ZoneId, cpu: CpuId, pfn: Pfn, order: Order) {
        self.sh.vmstat.add(VmEvent::Pgfree, u64::from(order.pages()));
        self.sh.trace.emit(Listen::KMEM, || Event::PageFree { pfn, order });
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, false);
        }
        let pcp_allowed = pcp::allows(self.sh.profile.pcp, order);
        let mut locked = self.locked(id, cpu);
        if pcp_allowed {
            locked.pcp_free(pfn, order);
        } else {
            locked.count_lock();
            let t = locked.blocks.migratetype(pfn.pageblock());
            locked.frames.clear(pfn, order);
            locked.free_one_block(pfn, order, t, false);
        }
    }

    /// Splits an allocated block into single pages, each to be freed on its own.
    pub fn split_page(&mut self, pfn: Pfn, order: Order) {
        let tag = self.frames.tag(pfn);
        assert!(tag.is_allocated() && tag.order() == order, "split of {pfn} {order:?}, which is {:?}", tag.kind());
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, false);
        }
        self.frames.split_allocated(pfn, order);
    }

    /// Folds this CPU's parts of the free-page counters in, as its vmstat worker does once a second.
    pub fn fold_vmstat(&mut self, cpu: CpuId) {
        for z in &mut self.zones {
            z.free_pages += core::mem::take(&mut z.pcps[cpu.index()].free_diff);
        }
    }

    /// Gives back what this CPU's lists of all zones hold.
    pub fn drain_cpu(&mut self, cpu: CpuId) {
        for z in 0..self.zones.len() {
            self.locked(ZoneId::new(z), cpu).pcp_drain();
        }
    }
}

const PGALLOC: [VmEvent; ZoneType::COUNT] = [
    VmEvent::PgallocDma,
    VmEvent::PgallocDma32,
    VmEvent::PgallocNormal,
    VmEvent::PgallocMovable,
    VmEvent::PgallocDevice,
];

impl Locked<'_> {
    /// Takes a block from the per-CPU lists or the free lists (§2.4, §2.8).
    #[inline(always)]
    fn rmqueue(&mut self, order: Order, t: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        if pcp::allows(self.sh.profile.pcp, order)
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
        let mut pfn = pfn.or_else(|| self.rmqueue_buddy_types(order, t, flags));
        if pfn.is_none() && flags.any(AllocFlags::NON_BLOCK) {
            pfn = self.rmqueue_smallest(order, MigrateType::HighAtomic);
        }
        let pfn = pfn?;
        self.mod_free_pages(-i64::from(order.pages()));
        Some(pfn)
    }
}

fn new_zone(index: usize, z: &ZoneSpec, cpus: usize) -> Zone {
    Zone {
        id: ZoneId::new(index),
        node: NodeId::new(z.node),
        kind: z.kind,
        start: Pfn::new(z.start),
        end: Pfn::new(z.end),
        present: z.present,
        managed: z.managed,
        watermarks: Watermarks::default(),
        watermark_boost: 0,
        lowmem_reserve: [0; ZoneType::COUNT],
        nr_reserved_highatomic: 0,
        boosted_flag: false,
        reclaim_active: false,
        compaction: ZoneCompaction::default(),
        stat_threshold: 0,
        percpu_drift_mark: 0,
        nr_lru: 0,
        nr_isolated: 0,
        free_pages: 0,
        nr_free: [0; NR_ORDERS],
        lists: [[List::EMPTY; MigrateType::COUNT]; NR_ORDERS],
        pcps: vec![PerCpuPages::new(); cpus],
    }
}

fn new_node(n: usize, nr_nodes: usize, cpus: usize, zones: &[Zone]) -> Node {
    let id = NodeId::new(n);
    let own: Vec<ZoneId> = zones.iter().filter(|z| z.node == id).map(|z| z.id).collect();
    // Local node first, then the others in ring order; within a node the highest zone first (§1.5).
    let zonelist = (0..nr_nodes)
        .map(|i| NodeId::new((n + i) % nr_nodes))
        .flat_map(|node| {
            let mut of_node: Vec<&Zone> = zones.iter().filter(|z| z.node == node && z.managed > 0).collect();
            of_node.sort_by_key(|z| core::cmp::Reverse(z.kind));
            of_node.into_iter().map(|z| z.id)
        })
        .collect();
    Node {
        id,
        present: zones.iter().filter(|z| z.node == id).map(|z| z.present).sum(),
        zones: own,
        cpus: (0..cpus).filter(|c| c * nr_nodes / cpus == n).map(CpuId::new).collect(),
        kswapd: KswapdState::default(),
        kcompactd: KcompactdState::default(),
        zonelist,
    }
}
