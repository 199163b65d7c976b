//! Files: their blocks on disks, and their pages in memory.
//!
//! A file has blocks on its disk ([`space`]) and, while it is known, an inode and a dentry in
//! memory, which are slab objects ([`slab`], [`inode`]). Its pages are in the page cache
//! ([`cache`]), whose trees ([`tree`]) keep a shadow in place of a reclaimed page. Pages are read
//! in with those after them ([`readahead`]), and reclaimed ([`reclaim`]). Pages written to are
//! dirty ([`dirty`]) until they are written back ([`writeback`]).
//!
//! Pages are in large folios where the kernel has these for the file system of the disk
//! ([`filesystem`]), which the machine file names. Metadata I/O is simulated for XFS ([`xfs`]); of
//! ext4's, only the reading of inodes ([`inode_table`]).
//! The nodes' own counters are in [`by_node`].
//! Left out: the inodes and dentries of directories themselves.

mod by_node;
mod by_zone;
mod cache;
mod dirty;
mod filesystem;
mod frames;
mod inode;
mod inode_table;
mod names;
mod readahead;
mod reclaim;
mod slab;
mod space;
mod tree;
mod writeback;
pub(crate) mod xfs;

pub use by_zone::ZoneCounts;
use by_zone::ZoneEvents;
pub(crate) use cache::Waiters;
pub(crate) use dirty::Limits;
pub use filesystem::FileSystem;
pub(crate) use frames::{Flags, Frames};
pub(crate) use inode::{Inode, OBJECTS, Open};
pub(crate) use readahead::{Asked, Folios, Readahead, Window};
pub use slab::{Allocator, SlabInfo};
pub(crate) use slab::{Cache, Object, Slabs};

use crate::base::queue::QueueId;
use crate::base::sequence::Sequence;
use crate::base::slots::Slots;
use dirty::{Bandwidth, Dirtier};
use inode_table::InodeTable;
use kontig_mm::vmstat::fewer;
use kontig_mm::{Counter, CpuId, Memory, NodeId, NodePages, Pfn, Wanted, ZoneId};
use names::Names;
use space::Space;
use tree::Nodes;
pub(crate) use tree::{PAGES as NODE_PAGES, Tag};
use xfs::Xfs;

/// All files of a machine, and their pages in memory.
#[derive(Clone)]
pub(crate) struct Files {
    /// The free blocks and the writeback state of each disk.
    disks: Vec<Space>,
    writing: Vec<Writing>,
    /// The metadata of each disk that has XFS.
    xfs: Vec<Option<Box<Xfs>>>,
    dirtiers: Vec<Dirtier>,
    /// The inode numbers of each disk; those of ext4 say where its inodes lie.
    tables: Vec<InodeTable>,
    names: Names,
    pub(crate) inodes: Slots<Inode>,
    pub(crate) opens: Slots<Open>,
    /// The open files of each process.
    of_process: Vec<Vec<u32>>,
    nodes: Nodes,
    pub(crate) slabs: Slabs,
    /// By node: files without users whose dentry can be dropped, and those whose inode can. The
    /// first goes first.
    unused_dentries: Vec<Sequence>,
    unused_inodes: Vec<Sequence>,
    /// Whether an inode goes with its clean pages (kernels before 5.16).
    inodes_take_pages: bool,
    /// Objects to free as soon as `Memory` is at hand.
    gone: Vec<(Cache, Object)>,
    pub(crate) counts: Counts,
    of_zones: Vec<ZoneEvents>,
    pub(crate) by_node: by_node::ByNode,
    /// Pages of each node that are dirty or under writeback.
    pub(crate) pending: Vec<u64>,
    /// By node: the number of shadow-only tree nodes worth keeping. Shadows are worth keeping for
    /// as many pages as there are in memory, and an eighth of a node's entries is assumed to be
    /// used.
    nodes_worth: Vec<u64>,
}

/// The writeback state of a disk.
#[derive(Clone)]
pub(crate) struct Writing {
    /// Files with dirty pages, in the order in which they became dirty; and those that have had
    /// their part but are still dirty.
    pub(crate) queued: Sequence,
    pub(crate) taken: Sequence,
    /// The queue that the flusher waits in.
    pub(crate) flusher: QueueId,
    /// A request to write everything that is dirty.
    pub(crate) all_wanted: bool,
    /// Blocks reserved for dirty pages that have none yet.
    reserved: u32,
    pub(crate) bandwidth: Bandwidth,
}

/// The counters that `/proc` has of files and swap, in pages; `Counts::DECLARED` describes each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    pub file_pages: u64,
    pub dirty: u64,
    pub writeback: u64,
    pub dirtied: u64,
    pub written: u64,
    pub read_in: u64,
    pub written_out: u64,
    pub swapped_in: u64,
    pub swapped_out: u64,
    pub major_faults: u64,
    /// Clean pages that went with their inodes, by who shrank these.
    pub inodes_took: u64,
    pub inodes_took_in_kswapd: u64,
}

impl Counts {
    /// The counters of `/proc/vmstat`, each with how its value is read.
    pub(crate) const DECLARED: &[Declared] = &[
        (Counter::level("nr_file_pages", "Pages in the page cache and the swap cache"), |c| c.file_pages),
        (Counter::level("nr_dirty", "Dirty pages"), |c| c.dirty),
        (Counter::level("nr_writeback", "Pages under writeback"), |c| c.writeback),
        (Counter::new("nr_dirtied", "pages", Wanted::Either, "Pages dirtied"), |c| c.dirtied),
        (Counter::new("nr_written", "pages", Wanted::Either, "Pages written back"), |c| c.written),
        (fewer("pgpgin", "KiB", "Read from disks, swap included"), |c| c.read_in * KIB),
        (fewer("pgpgout", "KiB", "Written to disks, swap included"), |c| c.written_out * KIB),
        (fewer("pswpin", "pages", "Pages read from swap"), |c| c.swapped_in),
        (fewer("pswpout", "pages", "Pages written to swap"), |c| c.swapped_out),
        (fewer("pgmajfault", "faults", "Page faults that waited for a disk"), |c| c.major_faults),
        (fewer("pginodesteal", "pages", "Pages freed with their inodes by processes"), |c| c.inodes_took),
        (fewer("kswapd_inodesteal", "pages", "Pages freed with their inodes by kswapd"), |c| c.inodes_took_in_kswapd),
    ];
}

/// A counter, and how it is read.
type Declared = (Counter, fn(&Counts) -> u64);

/// KiB of a page.
const KIB: u64 = 4;

/// The slab counters of `/proc/vmstat`, by whether they are of reclaimable caches.
const SLABS: [(Counter, bool); 2] = [
    (Counter::level("nr_slab_reclaimable", "Pages of slab caches with a shrinker"), true),
    (Counter::level("nr_slab_unreclaimable", "Pages of slab caches without a shrinker"), false),
];

/// The counters of `/proc/vmstat` that files, swap and slabs have.
pub(crate) fn declared() -> impl Iterator<Item = Counter> {
    Counts::DECLARED.iter().map(|(counter, _)| *counter).chain(SLABS.into_iter().map(|(counter, _)| counter))
}

impl Files {
    /// An empty set of files, on disks with these blocks for them.
    pub(crate) fn new(m: &Memory, allocator: Allocator, disks: Vec<(std::ops::Range<u32>, QueueId)>) -> Files {
        let nodes = m.nodes().len();
        let node_of = |cpu: usize| m.nodes().iter().position(|node| node.cpus.contains(&CpuId::new(cpu)));
        let cpus: Vec<usize> = (0..m.nr_cpus()).map(|cpu| node_of(cpu).unwrap_or(0)).collect();
        let writing = |flusher| Writing {
            queued: Sequence::default(),
            taken: Sequence::default(),
            flusher,
            all_wanted: false,
            reserved: 0,
            bandwidth: Bandwidth::default(),
        };
        Files {
            writing: disks.iter().map(|(_, flusher)| writing(*flusher)).collect(),
            tables: vec![InodeTable::default(); disks.len()],
            disks: disks.into_iter().map(|(blocks, _)| Space::new(blocks)).collect(),
            dirtiers: Vec::new(),
            xfs: Vec::new(),
            names: Names::default(),
            inodes: Slots::default(),
            opens: Slots::default(),
            of_process: Vec::new(),
            nodes: Nodes::default(),
            slabs: Slabs::new(allocator, &cpus, nodes),
            unused_dentries: vec![Sequence::default(); nodes],
            unused_inodes: vec![Sequence::default(); nodes],
            inodes_take_pages: m.profile().reclaim.inodes_take_pages,
            gone: Vec::new(),
            counts: Counts::default(),
            of_zones: vec![ZoneEvents::default(); m.zones().len()],
            by_node: by_node::ByNode::new(m),
            pending: vec![0; nodes],
            nodes_worth: m.nodes().iter().map(|node| pages_of(m, node.id) >> 3).collect(),
        }
    }

    /// Each counter of `/proc/vmstat` with its value.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (Counter, u64)> {
        let pages = |reclaimable| {
            self.slabs.info().filter(|slab| slab.reclaimable == reclaimable).map(|slab| slab.pages).sum::<u64>()
        };
        let counts = Counts::DECLARED.iter().map(|(counter, value)| (*counter, value(&self.counts)));
        counts.chain(SLABS.into_iter().map(move |(counter, reclaimable)| (counter, pages(reclaimable))))
    }

    /// The counters of each zone. Levels are added up here: from the pages in the files' trees,
    /// those in the swap cache, and the slabs.
    pub(crate) fn by_zone(
        &self,
        m: &Memory,
        frames: &Frames,
        in_swap_cache: impl Iterator<Item = Pfn>,
    ) -> Vec<ZoneCounts> {
        let zone_of = |pfn: Pfn| m.pageblocks().zone_of(pfn).index();
        let mut all: Vec<ZoneCounts> = self.of_zones.iter().copied().map(ZoneCounts::of_events).collect();
        let mut inode = 0;
        while let Some((number, _)) = self.inodes.next(inode) {
            inode = number + 1;
            for (_, pfn) in self.pages_from(number, 0) {
                // The flags of a folio are its first page's.
                let flags = frames.flags(frames.head(pfn));
                all[zone_of(pfn)].add_page(flags.any(Flags::DIRTY), flags.any(Flags::WRITEBACK));
            }
        }
        for pfn in in_swap_cache {
            all[zone_of(pfn)].add_page(false, frames.flags(pfn).any(Flags::WRITEBACK));
        }
        self.slabs.each().for_each(|(pfn, pages, reclaimable)| all[zone_of(pfn)].add_slab(pages, reclaimable));
        all
    }

    /// The events of a zone, to be counted.
    pub(crate) fn events_of(&mut self, zone: ZoneId) -> &mut ZoneEvents {
        &mut self.of_zones[zone.index()]
    }

    /// A node's pages by their use.
    pub(crate) fn node_pages(&self, node: NodeId) -> NodePages {
        NodePages { reclaimable_slab: self.slabs.reclaimable_pages(node), ..self.by_node.of(node) }
    }

    /// The writeback state of a disk.
    pub(crate) fn writing(&mut self, disk: u8) -> &mut Writing {
        &mut self.writing[usize::from(disk)]
    }

    /// Makes room for a process's state as a writer.
    pub(crate) fn knows_dirtier(&mut self, process: u32) {
        if self.dirtiers.len() <= process as usize {
            self.dirtiers.resize(process as usize + 1, Dirtier::default());
        }
    }

    /// A process's state as a writer.
    pub(crate) fn dirtier(&mut self, process: u32) -> &mut Dirtier {
        &mut self.dirtiers[process as usize]
    }

    /// Whether objects wait to be freed.
    #[inline(always)]
    pub(crate) fn has_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Frees the objects that had to wait; the number of pages freed with them.
    pub(crate) fn free_gone(&mut self, m: &mut Memory, cpu: CpuId) -> u64 {
        self.gone.drain(..).map(|(cache, object)| self.slabs.free(m, cpu, cache, object)).sum()
    }
}

/// Host bytes for each frame of a machine with disks: its flags and word, its map count, its place
/// in the LRU, and an entry of a tree with as much again for shadows.
pub(crate) const BYTES_PER_FRAME: usize =
    Frames::BYTES_PER_FRAME + 2 + kontig_mm::state::Lru::BYTES_PER_FRAME + 2 * tree::Node::BYTES_PER_PAGE;

/// Pages of a node.
fn pages_of(m: &Memory, node: NodeId) -> u64 {
    m.zones().iter().filter(|zone| zone.node == node).map(|zone| zone.present).sum()
}
