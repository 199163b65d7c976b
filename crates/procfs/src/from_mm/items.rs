//! The state counters of `/proc/zoneinfo` and `/proc/vmstat`, by the kernel's names.
//!
//! A counter with per-CPU parts shows only what CPUs have folded in, as in the kernel. With an
//! ordered LRU a node counts the pages on its lists, isolated pages and refaults; without one, a
//! node has the sums of its zones. The number of pages in use by processes and files is added up
//! from all places where they can be, with every CPU's part: the kernel has separate counters for
//! that.

use kontig_mm::state::{BatchKind, FrameKind, Lruvec};
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_mm::{Backing, Counter, CpuId, LruList, Memory, Node, NodeStat, Pfn, Wanted, Zone};
use std::collections::BTreeSet;

/// A counter, and how it is read from a sum.
pub(super) type Item<Sum> = (Counter, fn(&Sum) -> u64);

const fn numa(name: &'static str, words: &'static str) -> Counter {
    Counter::new(name, "blocks", Wanted::Either, words)
}

/// The counters of zones, by every kernel's name.
pub(super) const OF_ZONES: &[Item<ZoneItems>] = &[
    // Without the CPUs' unfolded parts, which can make the rest negative: the kernel shows 0 then.
    (Counter::level("nr_free_pages", "Free pages"), |z| z.free.max(0) as u64),
    (Counter::level("nr_free_pages_blocks", "Free pages in whole pageblocks"), |z| z.free_in_blocks.max(0) as u64),
    (Counter::level("nr_pages_scanned", "Pages scanned since a page was last freed; up to 4.7"), |z| z.scanned),
    (Counter::level("nr_alloc_batch", "Pages the zone may still give before the next one's turn"), |z| z.alloc_batch),
    (Counter::level("nr_zone_inactive_anon", "Inactive anonymous pages"), |z| z.on(LruList::InactiveAnon)),
    (Counter::level("nr_zone_active_anon", "Active anonymous pages"), |z| z.on(LruList::ActiveAnon)),
    (Counter::level("nr_zone_inactive_file", "Inactive file pages"), |z| z.on(LruList::InactiveFile)),
    (Counter::level("nr_zone_active_file", "Active file pages"), |z| z.on(LruList::ActiveFile)),
    (Counter::level("nr_zone_unevictable", "Unevictable pages"), |z| z.on(LruList::Unevictable)),
    (numa("numa_hit", "Blocks allocated on the node that was preferred"), |z| z.numa[0]),
    (numa("numa_miss", "Blocks allocated here though another node was preferred"), |z| z.numa[1]),
    (numa("numa_foreign", "Blocks preferred here and allocated on another node"), |z| z.numa[2]),
    (numa("numa_interleave", "Interleaved blocks allocated on the node whose turn it was"), |z| z.numa[3]),
    (numa("numa_local", "Blocks allocated on the CPU's own node"), |z| z.numa[4]),
    (numa("numa_other", "Blocks allocated on another node than the CPU's"), |z| z.numa[5]),
];

/// Beside these a node has each [`NodeStat`].
pub(super) const OF_NODES: &[Item<NodeItems>] = &[
    (Counter::level("nr_anon_pages", "Anonymous pages"), |n| n.used(Backing::Anon)),
    (Counter::level("nr_file_pages", "File pages"), |n| n.used(Backing::File)),
    (huge("nr_anon_transparent_hugepages", "Anonymous huge pages"), |n| n.huge[Backing::Anon.index()]),
    (huge("nr_file_hugepages", "Huge pages of files"), |n| n.huge[Backing::File.index()]),
    (Counter::level("nr_inactive_anon", "Inactive anonymous pages"), |n| n.on(LruList::InactiveAnon)),
    (Counter::level("nr_active_anon", "Active anonymous pages"), |n| n.on(LruList::ActiveAnon)),
    (Counter::level("nr_inactive_file", "Inactive file pages"), |n| n.on(LruList::InactiveFile)),
    (Counter::level("nr_active_file", "Active file pages"), |n| n.on(LruList::ActiveFile)),
    (Counter::level("nr_unevictable", "Unevictable pages"), |n| n.on(LruList::Unevictable)),
    // Up to 5.8 only file pages leave shadows, so only they refault.
    (before_5_9("workingset_refault", NodeStat::WorkingsetRefaultFile), |n| n.stat(NodeStat::WorkingsetRefaultFile)),
    (before_5_9("workingset_activate", NodeStat::WorkingsetActivateFile), |n| n.stat(NodeStat::WorkingsetActivateFile)),
];

const fn huge(name: &'static str, words: &'static str) -> Counter {
    Counter { unit: "huge pages", ..Counter::level(name, words) }
}

const fn before_5_9(name: &'static str, since: NodeStat) -> Counter {
    Counter { name, ..since.counter() }
}

/// Counters of one zone, or of several together.
#[derive(Default)]
pub(super) struct ZoneItems {
    free: i64,
    free_in_blocks: i64,
    listed: [u64; LruList::COUNT],
    isolated: u64,
    scanned: u64,
    alloc_batch: u64,
    /// Blocks given, in the order of the `numa_*` counters.
    numa: [u64; 6],
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

    fn on(&self, list: LruList) -> u64 {
        self.listed[list.index()]
    }

    /// `None` if the engine does not count it.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        OF_ZONES.iter().find(|(counter, _)| counter.name == name).map(|(_, value)| value(self))
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
            sum.add(m, &zones, |vec| vec.node == node.id, |zone| zone.node == node.id);
        }
        sum
    }

    /// The same of a zone that has its own lists.
    pub(super) fn of_zone(m: &Memory, zone: &Zone) -> NodeItems {
        let mut sum = NodeItems::default();
        let own = ZoneItems::of(m, std::iter::once(zone));
        sum.add(m, &own, |vec| vec.zones() == [zone.id], |of| of.id == zone.id);
        sum
    }

    fn add(&mut self, m: &Memory, zones: &ZoneItems, lists: impl Fn(&Lruvec) -> bool, is_in: impl Fn(&Zone) -> bool) {
        add(&mut self.huge, zones.huge);
        match m.lru().is_ordered() {
            true => self.add_ordered(m, lists, is_in),
            false => self.add_unordered(zones),
        }
    }

    fn add_ordered(&mut self, m: &Memory, lists: impl Fn(&Lruvec) -> bool, is_in: impl Fn(&Zone) -> bool) {
        for vec in m.lru().vecs().iter().filter(|vec| lists(vec)) {
            add(&mut self.listed, LruList::ALL.map(|list| vec.size(list)));
            add(&mut self.stats, NodeStat::ALL.map(|stat| vec.stat(stat)));
            for backing in Backing::ALL {
                self.used[backing.index()] += listed_and_isolated(vec, backing);
            }
        }
        for pfn in in_batches(m).into_iter().filter(|pfn| is_in(m.zone(m.pageblocks().zone_of(*pfn)))) {
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

    fn on(&self, list: LruList) -> u64 {
        self.listed[list.index()]
    }

    fn used(&self, backing: Backing) -> u64 {
        self.used[backing.index()].max(0) as u64
    }

    pub(super) fn stat(&self, item: NodeStat) -> u64 {
        NodeStat::ALL.iter().position(|stat| *stat == item).map_or(0, |at| self.stats[at])
    }

    /// Adds the zones' user pages, all of which are anonymous.
    fn add_unordered(&mut self, zones: &ZoneItems) {
        add(&mut self.listed, zones.listed);
        self.used[Backing::Anon.index()] += (zones.listed.iter().sum::<u64>() + zones.isolated) as i64;
        add(&mut self.stats, NodeStat::ALL.map(|stat| if stat == NodeStat::IsolatedAnon { zones.isolated } else { 0 }));
    }

    /// `None` if the engine does not count it.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        let stat = || NodeStat::ALL.into_iter().find(|stat| stat.name() == name);
        let item = OF_NODES.iter().find(|(counter, _)| counter.name == name);
        item.map(|(_, value)| value(self)).or_else(|| stat().map(|stat| self.stat(stat)))
    }
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
