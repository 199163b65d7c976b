//! The state counters of `/proc/zoneinfo` and `/proc/vmstat`, by the kernel's names.
//!
//! A counter with per-CPU parts shows only what CPUs have folded in, as in the kernel. With an
//! ordered LRU a node counts the pages on its lists, isolated pages and refaults; without one, a
//! node has the sums of its zones. The number of pages in use by processes and files is added up
//! from all places where they can be, with every CPU's part: the kernel has separate counters for
//! that.

use kontig_mm::state::{BatchKind, FrameKind, Lruvec};
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_mm::{Backing, CpuId, LruList, Memory, Node, NodeStat, Pfn, Zone};
use std::collections::BTreeSet;

/// The counters of the blocks a zone has given.
const NUMA: [&str; 6] = ["numa_hit", "numa_miss", "numa_foreign", "numa_interleave", "numa_local", "numa_other"];

/// Counters of one zone, or of several together.
#[derive(Default)]
pub(super) struct ZoneItems {
    free: i64,
    free_in_blocks: i64,
    listed: [u64; LruList::COUNT],
    isolated: u64,
    scanned: u64,
    alloc_batch: u64,
    /// Blocks given, in the order of [`NUMA`].
    numa: [u64; NUMA.len()],
    /// Huge pages in use by processes and files.
    huge: [u64; Backing::ALL.len()],
}

impl ZoneItems {
    /// The sums over these zones.
    pub(super) fn of<'a>(m: &Memory, zones: impl Iterator<Item = &'a Zone>) -> ZoneItems {
        let mut sum = ZoneItems::default();
        for z in zones {
            let unfolded: i64 = (0..m.nr_cpus()).map(|cpu| z.pcp(CpuId::new(cpu)).free_diff).sum();
            sum.free += z.nr_free_pages_exact() as i64 - unfolded;
            sum.free_in_blocks += z.free_pages_in_blocks();
            add(&mut sum.listed, LruList::ALL.map(|list| z.nr_listed_as_read(list)));
            sum.isolated += z.nr_isolated;
            sum.scanned += z.pages_scanned;
            sum.alloc_batch += z.nr_alloc_batch();
            let numa = z.numa();
            add(&mut sum.numa, [numa.hit(), numa.miss, numa.foreign, numa.interleave, numa.local(), numa.other]);
            add(&mut sum.huge, user_huge_pages(m, z));
        }
        sum
    }

    /// The counter of this name; `None` if the engine does not have it.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        Some(match name {
            // Without the CPUs' unfolded parts this can be negative; the kernel prints 0 then.
            "nr_free_pages" => self.free.max(0) as u64,
            "nr_pages_scanned" => self.scanned,
            "nr_alloc_batch" => self.alloc_batch,
            "nr_free_pages_blocks" => self.free_in_blocks.max(0) as u64,
            _ => match NUMA.iter().position(|numa| *numa == name) {
                Some(at) => self.numa[at],
                None => self.listed[list(name.strip_prefix("nr_zone_")?)?.index()],
            },
        })
    }
}

/// Counters of one node, or of several together.
#[derive(Default)]
pub(super) struct NodeItems {
    listed: [u64; LruList::COUNT],
    stats: [u64; NodeStat::ALL.len()],
    /// Pages in use by processes and files.
    used: [i64; Backing::ALL.len()],
    huge: [u64; Backing::ALL.len()],
}

impl NodeItems {
    /// The sums over these nodes.
    pub(super) fn of<'a>(m: &Memory, nodes: impl Iterator<Item = &'a Node>) -> NodeItems {
        let mut sum = NodeItems::default();
        for node in nodes {
            let zones = ZoneItems::of(m, node.zones.iter().map(|z| m.zone(*z)));
            add(&mut sum.huge, zones.huge);
            match m.lru().is_ordered() {
                true => sum.add_ordered(m, node),
                false => sum.add_unordered(&zones),
            }
        }
        sum
    }

    fn add_ordered(&mut self, m: &Memory, node: &Node) {
        for vec in m.lru().vecs().iter().filter(|vec| vec.node == node.id) {
            add(&mut self.listed, LruList::ALL.map(|list| vec.size(list)));
            add(&mut self.stats, NodeStat::ALL.map(|stat| vec.stat(stat)));
            for backing in Backing::ALL {
                self.used[backing.index()] += listed_and_isolated(vec, backing);
            }
        }
        for pfn in in_batches(m).into_iter().filter(|pfn| m.zone(m.pageblocks().zone_of(*pfn)).node == node.id) {
            let tag = m.frames().tag(pfn);
            let pages = match (tag.kind(), m.lru().is_released(pfn)) {
                // On its way to the LRU.
                (FrameKind::Kernel, false) => i64::from(tag.order().pages()),
                // Freed already, but still held by a batch.
                (FrameKind::Lru, true) => -i64::from(tag.order().pages()),
                _ => 0,
            };
            self.used[m.lru().flags(pfn).backing().index()] += pages;
        }
    }

    fn stat(&self, item: NodeStat) -> u64 {
        NodeStat::ALL.iter().position(|stat| *stat == item).map_or(0, |at| self.stats[at])
    }

    /// Adds the zones' user pages, all of which are anonymous.
    fn add_unordered(&mut self, zones: &ZoneItems) {
        add(&mut self.listed, zones.listed);
        self.used[Backing::Anon.index()] += (zones.listed.iter().sum::<u64>() + zones.isolated) as i64;
        add(&mut self.stats, NodeStat::ALL.map(|stat| if stat == NodeStat::IsolatedAnon { zones.isolated } else { 0 }));
    }

    /// The counter of this name; `None` if the engine does not have it.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        let used = |backing: Backing| self.used[backing.index()].max(0) as u64;
        Some(match name {
            "nr_anon_pages" => used(Backing::Anon),
            "nr_file_pages" => used(Backing::File),
            "nr_anon_transparent_hugepages" => self.huge[Backing::Anon.index()],
            "nr_file_hugepages" => self.huge[Backing::File.index()],
            // Up to 5.8 only file pages leave shadows, so only they refault.
            "workingset_refault" => self.stat(NodeStat::WorkingsetRefaultFile),
            "workingset_activate" => self.stat(NodeStat::WorkingsetActivateFile),
            _ => match NodeStat::ALL.iter().position(|stat| stat.name() == name) {
                Some(at) => self.stats[at],
                None => self.listed[list(name.strip_prefix("nr_")?)?.index()],
            },
        })
    }
}

/// The list with this name.
fn list(name: &str) -> Option<LruList> {
    LruList::ALL.into_iter().find(|list| list.name() == name)
}

/// The pages that wait in some batch, each once.
fn in_batches(m: &Memory) -> BTreeSet<Pfn> {
    let of_cpu = |cpu| BatchKind::ALL.into_iter().flat_map(move |kind| m.lru().batch(CpuId::new(cpu), kind));
    (0..m.nr_cpus()).flat_map(of_cpu).copied().collect()
}

/// Pages of the node that have been put on the LRU and are not free.
fn listed_and_isolated(vec: &Lruvec, backing: Backing) -> i64 {
    let isolated = match backing {
        Backing::Anon => NodeStat::IsolatedAnon,
        Backing::File => NodeStat::IsolatedFile,
    };
    vec.size_exact(backing.inactive()) + vec.size_exact(backing.active()) + vec.stat_exact(isolated) as i64
}

/// Huge user pages of a zone, by backing.
fn user_huge_pages(m: &Memory, zone: &Zone) -> [u64; Backing::ALL.len()] {
    let mut huge = [0; Backing::ALL.len()];
    for block in zone.start.pageblock()..=zone.last_pageblock().pageblock() {
        let tag = m.frames().block_tag(block);
        if matches!(tag.kind(), FrameKind::Lru | FrameKind::IsolatedLru) {
            let backing = m.lru().flags(Pfn::of_pageblock(block)).backing();
            huge[backing.index()] += u64::from(tag.order().pages() / PAGEBLOCK_PAGES);
        }
    }
    huge
}

fn add<const N: usize>(sums: &mut [u64; N], more: [u64; N]) {
    sums.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
}
