//! A node's memory by use, and so what compaction and reclaim can do with it.
//!
//! An estimate from counters, for users who cannot read every frame's state: a counter says how
//! many pages are of a kind, not where they are. Memory that no counter names is a kind of its own.

use crate::host::Host;
use kontig_procfs::zoneinfo::Zone;
use serde::Serialize;

/// The memory of a node of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Purpose {
    pub kind: Kind,
    pub can: Can,
    /// `None` where a counter that says it is missing.
    pub bytes: Option<u64>,
}

/// A use of memory that counters know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// On the free lists.
    Free,
    /// Free, on lists of single CPUs.
    OnCpus,
    /// Private memory of processes, and shared memory without a file.
    Anonymous,
    /// Contents of files as they are on the disk.
    CleanFile,
    /// Contents of files to be written first.
    DirtyFile,
    /// Locked in memory, by `mlock` or otherwise not for reclaim.
    Locked,
    /// Objects of the kernel that it can do without.
    ReclaimableSlab,
    /// Objects of the kernel that stay where they are.
    Slab,
    PageTables,
    /// Stacks of threads in the kernel.
    KernelStacks,
    /// Huge pages in pools.
    Pools,
    /// Memory that no counter names: drivers, network buffers, `vmalloc`, a kernel's own tables.
    Uncounted,
}

/// The best that can happen to memory of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Can {
    /// Be used at once.
    BeUsed,
    /// Be moved by compaction.
    Move,
    /// Be moved by compaction, and be dropped.
    MoveOrDrop,
    /// Be given back by the kernel on request; it cannot be moved.
    Shrink,
    Stay,
}

impl Kind {
    /// The words for it in tables.
    pub fn text(self) -> &'static str {
        match self {
            Kind::Free => "free",
            Kind::OnCpus => "free, on lists of single CPUs",
            Kind::Anonymous => "processes and shared memory",
            Kind::CleanFile => "file contents, clean",
            Kind::DirtyFile => "file contents, to be written",
            Kind::Locked => "locked in memory",
            Kind::ReclaimableSlab => "kernel objects, reclaimable",
            Kind::Slab => "kernel objects",
            Kind::PageTables => "page tables",
            Kind::KernelStacks => "kernel stacks",
            Kind::Pools => "pools of huge pages",
            Kind::Uncounted => "not counted by the kernel",
        }
    }
}

impl Can {
    /// The words for it in tables.
    pub fn text(self) -> &'static str {
        match self {
            Can::BeUsed => "can be used",
            Can::Move => "can be moved",
            Can::MoveOrDrop => "can be moved or dropped",
            Can::Shrink => "can be reclaimed, not moved",
            Can::Stay => "stays where it is",
        }
    }
}

/// A node's memory by use, without kinds that are empty; those that the kernel does not count stay.
pub(super) fn of(host: &Host, node: u32, page_bytes: u64) -> Vec<Purpose> {
    let Ok(info) = &host.zoneinfo else { return vec![] };
    let zones: Vec<&Zone> = info.zones.iter().filter(|zone| zone.at.node == node).collect();
    let bytes = |pages: u64| pages.saturating_mul(page_bytes);
    // A counter is the node's, or on older kernels of each zone.
    let counter = |name: &str| {
        let own = zones.iter().find_map(|zone| zone.node_stats.as_ref()?.get(name));
        let each = || zones.iter().filter_map(|zone| zone.populated.as_ref()?.counters.get(name));
        own.or_else(|| each().next().is_some().then(|| each().fold(0, u64::saturating_add)))
    };
    let sum = |names: &[&str]| names.iter().map(|name| counter(name)).sum::<Option<u64>>();
    let lists = zones.iter().filter_map(|zone| zone.populated.as_ref()).flat_map(|p| &p.cpus);
    let dirty = sum(&["nr_dirty", "nr_writeback"]);
    let file = sum(&["nr_inactive_file", "nr_active_file"]).zip(dirty);
    let locked_moves = host.sysctl_number("compact_unevictable_allowed") != Some(0);
    let found = [
        (Kind::Free, Can::BeUsed, counter("nr_free_pages").map(bytes)),
        (Kind::OnCpus, Can::BeUsed, Some(bytes(lists.filter_map(|cpu| cpu.lists.get("count")).sum()))),
        (Kind::Anonymous, Can::Move, sum(&["nr_inactive_anon", "nr_active_anon"]).map(bytes)),
        (Kind::CleanFile, Can::MoveOrDrop, file.map(|(file, dirty)| bytes(file.saturating_sub(dirty)))),
        (Kind::DirtyFile, Can::Move, file.map(|(file, dirty)| bytes(file.min(dirty)))),
        (Kind::Locked, if locked_moves { Can::Move } else { Can::Stay }, counter("nr_unevictable").map(bytes)),
        (Kind::ReclaimableSlab, Can::Shrink, counter("nr_slab_reclaimable").map(bytes)),
        (Kind::Slab, Can::Stay, counter("nr_slab_unreclaimable").map(bytes)),
        (Kind::PageTables, Can::Stay, counter("nr_page_table_pages").map(bytes)),
        // The only one of the counters that is in KiB.
        (Kind::KernelStacks, Can::Stay, counter("nr_kernel_stack").map(|kb| kb.saturating_mul(1024))),
        (Kind::Pools, Can::Stay, pools(host, node)),
    ];
    let managed: u64 = zones.iter().filter_map(|zone| zone.sizes.get("managed")).fold(0, u64::saturating_add);
    // Memory of a missing counter cannot be told from memory that none counts.
    let counted = found.iter().map(|(_, _, bytes)| *bytes).sum::<Option<u64>>();
    let rest = (Kind::Uncounted, Can::Stay, counted.map(|counted| bytes(managed).saturating_sub(counted)));
    let purposes = found.into_iter().chain([rest]).filter(|(_, _, bytes)| *bytes != Some(0));
    purposes.map(|(kind, can, bytes)| Purpose { kind, can, bytes }).collect()
}

/// Huge pages that a node's pools hold.
fn pools(host: &Host, node: u32) -> Option<u64> {
    let pools = host.pools.as_ref().ok()?;
    let of_node = pools.iter().filter_map(|pool| {
        let (_, numbers) = pool.of_node.iter().find(|(number, _)| *number == node)?;
        let pages = numbers.get("nr_hugepages")?;
        Some(pages.saturating_mul(pool.bytes))
    });
    Some(of_node.fold(0, u64::saturating_add))
}
