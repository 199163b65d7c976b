//! A machine after boot: zones and nodes set up, all memory free, all marks computed.

use crate::event::Trace;
use crate::rules::Profile;
use crate::state::new_lruvecs;
use crate::state::{
    FrameKind, Frames, Groups, KcompactdState, KswapdState, List, Lru, MAX_FRAMES, Memory, Node, NumaCounts,
    Pageblocks, PerCpuPages, Shared, Stats, Table, Tunables, Watermarks, Zone, ZoneCompaction,
};
use crate::step::Wakes;
use crate::types::{CpuId, LruvecId, MigrateType, NR_ORDERS, NodeId, Order, PAGEBLOCK_PAGES, Pfn, ZoneId, ZoneType};
use crate::vmstat::Vmstat;
use crate::work::Work;
use crate::zonelist::{LOCAL_DISTANCE, REMOTE_DISTANCE};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// The specification of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneSpec {
    pub node: usize,
    /// The place in the node's zone table.
    pub kind: ZoneType,
    /// First frame; must start a pageblock.
    pub start: u32,
    /// One past the last frame; must end a pageblock.
    pub end: u32,
    pub present: u64,
    /// Frames the allocator gets; the rest of the span is reserved at the zone's start.
    pub managed: u64,
}

/// The first frame of a kernel's image on x86: 16 MiB.
const IMAGE: u32 = 16 << 8;
/// Frames that the image keeps of each of its pageblocks. The others held its init memory, which is
/// freed at the end of boot, and gaps between its sections: user memory gets in there, but never a
/// huge page. Source: `/proc/kpageflags` of Ubuntu's 3.13.0-24.
const IMAGE_KEEPS: [u32; 8] = [512, 512, 512, 301, 512, 335, 286, 368];

/// The specification of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// CPU i belongs to node i × nodes / cpus.
    pub cpus: usize,
    /// By node, then ascending.
    pub zones: Vec<ZoneSpec>,
    /// Whether transparent huge pages raise `vm.min_free_kbytes`.
    pub thp: bool,
    /// Whether pages are kept in the order of their use, so that reclaim can find the oldest. A
    /// machine with nothing to reclaim (only anonymous pages, no swap) behaves alike without, in
    /// half the memory.
    pub lru: bool,
}

/// Memory that is not free and movable when the machine is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// Pageblocks of another type, by their first frame, ascending.
    pub blocks: Vec<(u32, MigrateType)>,
    /// Frames that the kernel keeps to itself, ascending.
    pub frames: Vec<Range<u32>>,
}

/// The error in a specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrongSpec {
    /// The zone, if the error is in one.
    pub zone: Option<usize>,
    pub reason: String,
}

impl ZoneSpec {
    /// The frames that the allocator never gets, ascending: firmware, memmap and the kernel's
    /// image at the zone's start. An image with gaps lies at its place, if it is in this zone and
    /// fits, and all else behind it.
    fn reserved(&self, image_has_gaps: bool) -> Vec<Range<u32>> {
        let pages = self.end - self.start - self.managed as u32;
        let (image_end, image): (u32, u32) =
            (IMAGE + IMAGE_KEEPS.len() as u32 * PAGEBLOCK_PAGES, IMAGE_KEEPS.iter().sum());
        let fits = self.start <= IMAGE && pages >= image && image_end + (pages - image) <= self.end;
        if !(image_has_gaps && fits) {
            return core::iter::once(self.start..self.start + pages).collect();
        }
        let blocks = (IMAGE..image_end).step_by(PAGEBLOCK_PAGES as usize).zip(IMAGE_KEEPS);
        blocks.map(|(at, kept)| at..at + kept).chain(core::iter::once(image_end..image_end + pages - image)).collect()
    }
}

impl MachineSpec {
    /// Whether this zone is possible beside those before it.
    fn check_zone(&self, i: usize) -> Result<(), String> {
        let z = &self.zones[i];
        if z.node > 63 {
            return Err(format!("nodes are numbered 0 to 63, not {}", z.node));
        }
        let at = format!("node {} zone {}", z.node, z.kind.name());
        let aligned = |pfn: u32| pfn.is_multiple_of(PAGEBLOCK_PAGES);
        if !aligned(z.start) || !aligned(z.end) || z.start >= z.end {
            return Err(format!("{at}: pfns {} to {} are not whole pageblocks of 512 pages", z.start, z.end));
        }
        let same_node = |other: &&ZoneSpec| other.node == z.node && other.start < z.start;
        if let Some(other) = self.zones.iter().find(|o| same_node(o) && o.kind >= z.kind) {
            return Err(format!("{at}: lies above zone {} of the same node", other.kind.name()));
        }
        if self.zones[..i].last().is_some_and(|before| z.start < before.end) {
            return Err(format!("{at}: starts at pfn {}, inside the zone before it", z.start));
        }
        if z.end > MAX_FRAMES {
            return Err(format!("{at}: ends at pfn {}: a machine has at most 8 TiB, pfn {MAX_FRAMES}", z.end));
        }
        let spanned = u64::from(z.end - z.start);
        if z.managed > z.present || z.present > spanned {
            return Err(format!("{at}: managed {} ≤ present {} ≤ spanned {spanned} must hold", z.managed, z.present));
        }
        Ok(())
    }
}

impl Memory {
    /// A machine with all its memory free, as after boot: every pageblock movable, the free lists
    /// in boot's order, all watermarks computed.
    ///
    /// # Errors
    /// The error in the specification, in one line.
    pub fn new(spec: &MachineSpec, profile: Profile) -> Result<Memory, String> {
        Memory::in_use(spec, profile, &InUse::default())
    }

    /// A machine with some of its memory in use.
    ///
    /// # Errors
    /// The error in the specification, in one line.
    pub fn in_use(spec: &MachineSpec, profile: Profile, used: &InUse) -> Result<Memory, String> {
        let mut memory = Memory::empty(spec, profile)?;
        for (first, migratetype) in &used.blocks {
            memory.blocks.set_migratetype(Pfn::new(*first).pageblock(), *migratetype);
        }
        for z in memory.zones.ids() {
            let zone = &memory.zones[z];
            let (start, end) = (zone.start, zone.end);
            let reserved = spec.zones[z.index()].reserved(memory.shared.profile.boot.image_has_gaps);
            reserved.iter().for_each(|frames| memory.reserve(Pfn::new(frames.start)..Pfn::new(frames.end)));
            let in_zone = used.frames.iter().filter(|f| f.end > start.get() && f.start < end.get());
            let mut kept: Vec<(&Range<u32>, bool)> =
                reserved.iter().map(|frames| (frames, false)).chain(in_zone.map(|frames| (frames, true))).collect();
            kept.sort_by_key(|(frames, _)| frames.start);
            let mut at = start;
            for (frames, is_used) in kept {
                let first = at.max(Pfn::new(frames.start));
                memory.free_range(z, at, first);
                at = at.max(end.min(Pfn::new(frames.end)));
                let of_kernel = if is_used { first.get()..at.get() } else { 0..0 };
                of_kernel.for_each(|f| memory.frames.set(Pfn::new(f), FrameKind::Kernel, Order::ZERO));
            }
            memory.free_range(z, at, end);
        }
        memory.setup_fixed_reserve();
        memory.shared.work = Work::default();
        Ok(memory)
    }

    /// Whether a machine of this shape can be made.
    ///
    /// # Errors
    /// The error in the specification, in one line.
    pub fn check_spec(spec: &MachineSpec) -> Result<(), WrongSpec> {
        let wrong = |reason: String| Err(WrongSpec { zone: None, reason });
        if spec.cpus == 0 || spec.cpus > usize::from(u16::MAX) {
            return wrong(format!("a machine has 1 to 65535 CPUs, not {}", spec.cpus));
        }
        if spec.zones.is_empty() {
            return wrong("a machine has at least one zone".into());
        }
        // Sets of zones and of nodes are the bits of a word.
        if spec.zones.len() > 64 {
            return wrong(format!("a machine has at most 64 zones, not {}", spec.zones.len()));
        }
        (0..spec.zones.len()).try_for_each(|i| spec.check_zone(i).map_err(|reason| WrongSpec { zone: Some(i), reason }))
    }

    /// A machine whose frames are neither free nor allocated nor reserved yet.
    pub(crate) fn empty(spec: &MachineSpec, profile: Profile) -> Result<Memory, String> {
        Memory::check_spec(spec).map_err(|wrong| wrong.reason)?;
        let nr_nodes = spec.zones.iter().map(|z| z.node).max().map_or(0, |n| n + 1);
        let frames = spec.zones.iter().map(|z| z.end).max().unwrap_or(0);
        let frames = Frames::new(frames);
        let mut blocks = Pageblocks::new(frames.nr_pageblocks());
        let per_zone = profile.lru.lists_per_zone;
        let zones: Table<ZoneId, Zone> =
            spec.zones.iter().enumerate().map(|(i, z)| new_zone(i, z, spec.cpus, per_zone)).collect();
        for z in &zones {
            for b in z.start.pageblock()..=z.last_pageblock().pageblock() {
                blocks.set_zone(b, z.id);
                blocks.set_migratetype(b, MigrateType::Movable);
            }
        }
        let nodes: Table<NodeId, Node> = (0..nr_nodes).map(|n| new_node(n, nr_nodes, spec.cpus, &zones)).collect();
        let lru = Lru::new(spec.lru, frames.nr_frames(), new_lruvecs(&nodes, &zones, spec.cpus, per_zone), spec.cpus);
        let mut memory = Memory {
            frames,
            blocks,
            lru,
            zones,
            nodes,
            shared: Shared {
                profile,
                tunables: Tunables::default(),
                at_boot: Tunables::default(),
                mattered: Default::default(),
                vmstat: Vmstat::default(),
                trace: Trace::default(),
                work: Work::default(),
                has_compacted: false,
            },
            groups: Groups::default(),
            wakes: Wakes::default(),
            cpus: spec.cpus,
        };
        memory.build_zonelists();
        memory.shared.tunables.min_free_kbytes = memory.default_min_free_kbytes(spec.thp);
        let managed = memory.zones.iter().map(|z| z.managed).sum();
        crate::sysctl::at_boot(&mut memory.shared.tunables, &memory.shared.profile, managed);
        memory.shared.at_boot = memory.shared.tunables;
        memory.setup_watermarks();
        memory.setup_drift();
        Ok(memory)
    }

    /// Moves all CPUs to one node.
    pub(crate) fn put_cpus_on(&mut self, node: NodeId) {
        let all: Vec<CpuId> = (0..self.cpus).map(CpuId::new).collect();
        self.nodes.iter_mut().for_each(|n| n.cpus = if n.id == node { all.clone() } else { Vec::new() });
        self.build_zonelists();
    }

    /// Marks frames as reserved for good: firmware, kernel image, memmap. Whole pageblocks keep
    /// one tag.
    pub(crate) fn reserve(&mut self, frames: Range<Pfn>) {
        let mut at = frames.start;
        while at < frames.end {
            if at.is_pageblock_aligned() && at.plus(PAGEBLOCK_PAGES) <= frames.end {
                self.frames.set(at, FrameKind::Reserved, Order::new(9));
                at = at.plus(PAGEBLOCK_PAGES);
            } else {
                self.frames.set(at, FrameKind::Reserved, Order::ZERO);
                at = at.plus(1);
            }
        }
    }

    /// Frees `[from, to)` in blocks as large as alignment and the types of pageblocks allow, in
    /// ascending order.
    fn free_range(&mut self, zone: ZoneId, from: Pfn, to: Pfn) {
        let to_tail = self.shared.profile.boot.frees_to_tail;
        let mut locked = self.locked(zone, CpuId::new(0));
        let mut at = from;
        while at < to {
            let migratetype = locked.blocks.migratetype(at.pageblock());
            let alike = |o: &Order| {
                let last = at.plus(o.pages() - 1).pageblock();
                (at.pageblock() + 1..=last).all(|b| locked.blocks.migratetype(b) == migratetype)
            };
            let order = Order::all()
                .rev()
                .find(|o| at.is_aligned(*o) && at.get() + o.pages() <= to.get() && alike(o))
                .expect("order 0 always fits");
            locked.mod_free_pages(i64::from(order.pages()));
            locked.add_to_free_list(at, order, migratetype, to_tail);
            at = at.plus(order.pages());
        }
        locked.zone.free_pages = locked.zone.nr_free_pages_exact() as i64;
        locked.zone.pcps.iter_mut().for_each(|p| p.free_diff = 0);
    }
}

fn new_zone(index: usize, z: &ZoneSpec, cpus: usize, lists_per_zone: bool) -> Zone {
    let threshold = crate::watermark::stat_threshold(cpus, z.managed);
    Zone {
        id: ZoneId::new(index),
        node: NodeId::new(z.node),
        lruvec: LruvecId::new(if lists_per_zone { index } else { z.node }),
        kind: z.kind,
        start: Pfn::new(z.start),
        end: Pfn::new(z.end),
        whole_end: Pfn::new(z.end),
        present: z.present,
        managed: z.managed,
        watermarks: Watermarks::default(),
        watermark_boost: 0,
        lowmem_reserve: [0; ZoneType::COUNT],
        nr_reserved_highatomic: 0,
        nr_free_highatomic: 0,
        below_high: false,
        boosted_flag: false,
        reclaim_active: false,
        compaction: ZoneCompaction::default(),
        stat_threshold: threshold,
        largest_threshold: threshold,
        percpu_drift_mark: 0,
        pages_scanned: 0,
        nr_isolated: 0,
        lru: Stats::new(cpus),
        numa: NumaCounts::default(),
        alloc_batch: Stats::new(cpus),
        fair_depleted: false,
        free_pages: 0,
        nr_free: [0; NR_ORDERS],
        lists: [const { [const { List::new() }; MigrateType::COUNT] }; NR_ORDERS],
        pcps: (0..cpus).map(|_| PerCpuPages::new()).collect(),
    }
}

/// A node without a zonelist. Its distances are the kernel's for firmware without a SLIT.
fn new_node(n: usize, nr_nodes: usize, cpus: usize, zones: &[Zone]) -> Node {
    let id = NodeId::new(n);
    let own: Vec<ZoneId> = zones.iter().filter(|z| z.node == id).map(|z| z.id).collect();
    Node {
        id,
        present: zones.iter().filter(|z| z.node == id).map(|z| z.present).sum(),
        zones: own,
        cpus: (0..cpus).filter(|c| c * nr_nodes / cpus == n).map(CpuId::new).collect(),
        kswapd: KswapdState::default(),
        kcompactd: KcompactdState::default(),
        deferred: Vec::new(),
        distances: (0..nr_nodes).map(|other| if other == n { LOCAL_DISTANCE } else { REMOTE_DISTANCE }).collect(),
        zonelist: Vec::new(),
        is_reclaimed: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::linux;
    use alloc::vec;

    #[test]
    fn used_pages_are_not_free_and_blocks_have_the_types_stated() {
        let zone = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: 8192, present: 8192, managed: 8000 };
        let spec = MachineSpec { cpus: 1, zones: vec![zone], thp: false, lru: true };
        let used = InUse { blocks: vec![(1024, MigrateType::Unmovable)], frames: vec![1024..1100, 1101..1200] };
        let m = Memory::in_use(&spec, linux("6.1"), &used).expect("a machine");
        assert_eq!(m.nr_free_pages(), 8000 - 76 - 99);
        let free = |order: usize, t: MigrateType| m.zones()[0].free_list(Order::new(order as u8), t).len();
        // The page in between, and the rest of its pageblock from 1200 on: 16, 64 and 256 pages.
        let unmovable: Vec<_> = (0..NR_ORDERS).map(|order| free(order, MigrateType::Unmovable)).collect();
        assert_eq!(unmovable, [1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0]);
        // The other half of the 1024 pages is movable and cannot be joined with it.
        assert_eq!(free(9, MigrateType::Movable), 2);
        m.check().expect("a consistent machine");
    }

    #[test]
    fn the_kernels_image_leaves_parts_of_four_pageblocks_to_users() {
        let zone = |start: u32, pages: u32, reserved: u32| {
            let end = start + pages;
            ZoneSpec {
                node: 0,
                kind: ZoneType::Dma32,
                start,
                end,
                present: pages.into(),
                managed: (pages - reserved).into(),
            }
        };
        // 100 MiB reserved of 1 GiB from 16 MiB on: the image, whose last block is 4096 + 7 × 512,
        // and all other pages behind it.
        let dma32 = zone(4096, 1 << 18, 25_600);
        let reserved = dma32.reserved(true);
        assert_eq!(reserved[2..5], [5120..5632, 5632..5933, 6144..6656]);
        assert_eq!(reserved[7..], [7680..8048, 8192..8192 + 25_600 - 3338]);
        let spec = MachineSpec { cpus: 1, zones: vec![dma32], thp: false, lru: true };
        for (profile, gaps) in [("3.13", 4), ("4.4-kcompactd", 0)] {
            let m = Memory::new(&spec, linux(profile)).expect("a machine");
            assert_eq!(m.nr_free_pages(), (1 << 18) - 25_600);
            m.check().expect("a consistent machine");
            let is_free = |block: usize| (0..512).any(|at| m.frames.tag(Pfn::of_pageblock(block).plus(at)).is_buddy());
            assert_eq!((8..16).filter(|block| is_free(*block)).count(), gaps, "{profile}");
        }
        // No room for an image, and a zone above it.
        assert_eq!(zone(4096, 1 << 14, 256).reserved(true).as_slice(), core::slice::from_ref(&(4096..4352)));
        let behind = 1 << 20..(1 << 20) + 25_600;
        assert_eq!(zone(1 << 20, 1 << 18, 25_600).reserved(true).as_slice(), core::slice::from_ref(&behind));
    }
}
