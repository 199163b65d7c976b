//! Slab caches: kernel objects that share pages.
//!
//! A slab is a block of pages cut into objects of one kind. Its pages become free only when all its
//! objects are, which is rare when lifetimes mix: that makes slabs hard to reclaim. Which of a
//! slab's objects is used makes no difference to pages, so an object is identified by its slab.
//!
//! The machine file names the allocator, as a kernel's configuration does: [`slub`], or [`arrays`]
//! for SLAB, whose slabs are mostly single pages.

mod arrays;
mod slub;

use arrays::Arrays;
use kontig_mm::rules::SlabRules;
use kontig_mm::{CpuId, Gfp, Memory, NodeId, Order, Pfn};
use serde::{Deserialize, Serialize};
use slub::Slub;

/// The slab allocator of a kernel's configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Allocator {
    /// Slabs of up to eight pages (`CONFIG_SLUB`).
    #[default]
    Slub,
    /// Single pages, mostly (`CONFIG_SLAB`); kernels up to 6.7 could have it instead.
    Slab,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Cache {
    Inode,
    Dentry,
    /// `radix_tree_node`: a node of the page cache's trees.
    Node,
    /// `buffer_head`: a file system's state of a page written to.
    BufferHead,
    /// `filp`: an open file.
    Open,
    XfsInode,
    /// `xfs_ili`: an inode's log item.
    XfsInodeItem,
    XfsBuffer,
    /// `xfs_buf_item`: a buffer's log item.
    XfsBufferItem,
    /// `kmalloc-512`: a change of an item on its way to XFS's log.
    LogVector,
    /// `task_struct`, and what a process has one of beside it.
    Task,
    SignalHandlers,
    Signals,
    OpenFiles,
    /// `mm_struct`: its address space.
    AddressSpace,
    /// `vm_area_struct`: a mapping of a process.
    Mapping,
    /// `maple_node`: a node of the tree of its mappings.
    MappingNode,
    /// `anon_vma`: what finds the mappings of its pages.
    AnonMappings,
}

impl Cache {
    pub(crate) const ALL: [Cache; 18] = [
        Cache::Inode,
        Cache::Dentry,
        Cache::Node,
        Cache::BufferHead,
        Cache::Open,
        Cache::XfsInode,
        Cache::XfsInodeItem,
        Cache::XfsBuffer,
        Cache::XfsBufferItem,
        Cache::LogVector,
        Cache::Task,
        Cache::SignalHandlers,
        Cache::Signals,
        Cache::OpenFiles,
        Cache::AddressSpace,
        Cache::Mapping,
        Cache::MappingNode,
        Cache::AnonMappings,
    ];

    /// Its name in `/proc/slabinfo`.
    const fn name(self) -> &'static str {
        match self {
            Cache::Inode => "ext4_inode_cache",
            Cache::Dentry => "dentry",
            Cache::Node => "radix_tree_node",
            Cache::BufferHead => "buffer_head",
            Cache::Open => "filp",
            Cache::XfsInode => "xfs_inode",
            Cache::XfsInodeItem => "xfs_ili",
            Cache::XfsBuffer => "xfs_buf",
            Cache::XfsBufferItem => "xfs_buf_item",
            Cache::LogVector => "kmalloc-512",
            Cache::Task => "task_struct",
            Cache::SignalHandlers => "sighand_cache",
            Cache::Signals => "signal_cache",
            Cache::OpenFiles => "files_cache",
            Cache::AddressSpace => "mm_struct",
            Cache::Mapping => "vm_area_struct",
            Cache::MappingNode => "maple_node",
            Cache::AnonMappings => "anon_vma",
        }
    }

    /// Bytes of an object with its alignment, as in `/proc/slabinfo` of x86-64 kernels. Most are of
    /// a 6.18; `filp` is `struct file` of 6.1 (232 bytes, aligned to cache lines of 64). XFS's
    /// inodes and buffers have the same size in lists of 3.10 to 6.18; its log items are from lists
    /// of 5.4 ("about 190 bytes", in slabs of 192) and 5.10. A log vector has a head of 56 bytes,
    /// 16 for each of three pieces, and their 248 bytes with 24 for alignment: 376, which `kmalloc`
    /// rounds up.
    const fn bytes(self) -> u32 {
        match self {
            Cache::Inode => 1128,
            Cache::Dentry => 192,
            Cache::Node => 584,
            Cache::BufferHead => 104,
            Cache::Open => 256,
            Cache::XfsInode => 1024,
            Cache::XfsInodeItem => 192,
            Cache::XfsBuffer => 384,
            Cache::XfsBufferItem => 272,
            Cache::LogVector => 512,
            Cache::Task => 5888,
            Cache::SignalHandlers => 2112,
            Cache::Signals => 1152,
            Cache::OpenFiles => 704,
            Cache::AddressSpace => 1600,
            Cache::Mapping => 192,
            Cache::MappingNode => 256,
            Cache::AnonMappings => 104,
        }
    }

    /// Whether its pages count as reclaimable (`SLAB_RECLAIM_ACCOUNT`).
    const fn is_reclaimable(self) -> bool {
        matches!(self, Cache::Inode | Cache::Dentry | Cache::Node | Cache::BufferHead | Cache::XfsInode)
    }

    /// Whether XFS alone uses it.
    const fn is_xfs(self) -> bool {
        (Cache::XfsInode as u8) <= self as u8 && self as u8 <= Cache::LogVector as u8
    }

    /// Flags for its slabs.
    pub(crate) fn gfp(self) -> Gfp {
        let gfp = match self {
            // The file system allocates these, so reclaim must not re-enter it.
            Cache::Inode | Cache::Node | Cache::BufferHead => Gfp::KERNEL.without(Gfp::FS) | Gfp::COMP,
            cache if cache.is_xfs() => Gfp::KERNEL.without(Gfp::FS) | Gfp::COMP,
            _ => Gfp::KERNEL | Gfp::COMP,
        };
        if self.is_reclaimable() { gfp | Gfp::RECLAIMABLE } else { gfp }
    }

    /// Flags for slabs of tree nodes: those of the page that needs the node.
    pub(crate) fn gfp_of_nodes(page: Gfp) -> Gfp {
        page.without(Gfp::HIGHMEM | Gfp::MOVABLE | Gfp::HARDWALL) | Gfp::COMP | Gfp::RECLAIMABLE
    }

    /// Flags for SLUB's first try of a slab (`allocate_slab`). For a block larger than the minimum,
    /// nothing is reclaimed or compacted; older kernels wake kswapd for it, newer ones do not.
    fn first_gfp(gfp: Gfp, is_larger: bool, rules: &SlabRules) -> Gfp {
        let gfp = gfp | Gfp::NOWARN | Gfp::NORETRY;
        match (is_larger, rules.large_try_wakes_kswapd) {
            (false, _) => gfp,
            (true, true) => (gfp | Gfp::NOMEMALLOC).without(Gfp::DIRECT_RECLAIM),
            (true, false) => (gfp | Gfp::NOMEMALLOC).without(Gfp::RECLAIM),
        }
    }
}

/// An object, identified by its slab, of a known cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Object(u32);

impl Object {
    /// Restores it from its number.
    pub(crate) const fn of_number(number: u32) -> Object {
        Object(number)
    }
    /// A number to store.
    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}

const NIL: u32 = u32::MAX;
const PAGE: u32 = 4096;

/// A slab cache in `/proc/slabinfo`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlabInfo {
    pub name: &'static str,
    pub objects: u64,
    pub pages: u64,
    /// Whether its pages count as reclaimable.
    pub reclaimable: bool,
}

/// The slabs of a cache, by allocator.
#[derive(Clone)]
enum CacheState {
    Slub(Slub),
    Slab(Arrays),
}

#[derive(Clone)]
pub(crate) struct Slabs {
    kinds: [CacheState; Cache::ALL.len()],
}

impl Slabs {
    /// Empty caches for this many nodes, and for CPUs of these.
    pub(crate) fn new(allocator: Allocator, cpus: &[usize], nodes: usize) -> Slabs {
        let kind = |cache| match allocator {
            Allocator::Slub => CacheState::Slub(Slub::new(cache, cpus.len(), nodes)),
            Allocator::Slab => CacheState::Slab(Arrays::new(cache, cpus, nodes)),
        };
        Slabs { kinds: Cache::ALL.map(kind) }
    }

    /// The order of a cache's slabs.
    #[cfg(test)]
    pub(crate) fn order(&self, cache: Cache) -> Order {
        match &self.kinds[cache as usize] {
            CacheState::Slub(slub) => slub.order(),
            CacheState::Slab(arrays) => arrays.order(),
        }
    }

    /// The order and the flags with which a slab is first tried for, given those of the cache.
    pub(crate) fn first_try(&self, cache: Cache, gfp: Gfp, rules: &SlabRules) -> (Order, Gfp) {
        match &self.kinds[cache as usize] {
            CacheState::Slub(slub) => (slub.order(), Cache::first_gfp(gfp, slub.order() > slub.least_order(), rules)),
            // `gfp_exact_node`: nobody is woken or waits for a page of this node.
            CacheState::Slab(arrays) => (arrays.order(), gfp.without(Gfp::RECLAIM) | Gfp::THISNODE | Gfp::NOWARN),
        }
    }

    /// The order of the last try, which has the cache's own flags.
    pub(crate) fn last_order(&self, cache: Cache) -> Order {
        match &self.kinds[cache as usize] {
            CacheState::Slub(slub) => slub.least_order(),
            CacheState::Slab(arrays) => arrays.order(),
        }
    }

    /// The node of an object.
    pub(crate) fn node(&self, cache: Cache, object: Object) -> usize {
        match &self.kinds[cache as usize] {
            CacheState::Slub(slub) => slub.node(object),
            CacheState::Slab(arrays) => arrays.node(object),
        }
    }

    pub(crate) fn objects(&self, cache: Cache) -> u64 {
        match &self.kinds[cache as usize] {
            CacheState::Slub(slub) => slub.objects(),
            CacheState::Slab(arrays) => arrays.objects(),
        }
    }

    pub(crate) fn pages(&self, cache: Cache) -> u64 {
        match &self.kinds[cache as usize] {
            CacheState::Slub(slub) => slub.pages(),
            CacheState::Slab(arrays) => arrays.pages(),
        }
    }

    /// Pages of a node in caches with a shrinker.
    pub(crate) fn reclaimable_pages(&self, node: NodeId) -> u64 {
        let of = |cache: &Cache| match &self.kinds[*cache as usize] {
            CacheState::Slub(slub) => slub.pages_of(node),
            CacheState::Slab(arrays) => arrays.pages_of(node),
        };
        Cache::ALL.iter().filter(|cache| cache.is_reclaimable()).map(of).sum()
    }

    /// All caches; those of XFS and of processes only once they were used.
    pub(crate) fn info(&self) -> impl Iterator<Item = SlabInfo> {
        let of = |cache: Cache| SlabInfo {
            name: cache.name(),
            objects: self.objects(cache),
            pages: self.pages(cache),
            reclaimable: cache.is_reclaimable(),
        };
        let was_used = |cache: Cache| match &self.kinds[cache as usize] {
            CacheState::Slub(slub) => slub.was_used(),
            CacheState::Slab(arrays) => arrays.was_used(),
        };
        Cache::ALL.into_iter().filter(move |cache| *cache <= Cache::Open || was_used(*cache)).map(of)
    }

    /// Each slab: its first page, its size in pages, and whether it counts as reclaimable.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Pfn, u64, bool)> {
        let of = |cache: Cache| {
            let slabs = match &self.kinds[cache as usize] {
                CacheState::Slub(slub) => slub.each(),
                CacheState::Slab(arrays) => arrays.each(),
            };
            slabs.into_iter().map(move |(pfn, pages)| (pfn, pages, cache.is_reclaimable()))
        };
        Cache::ALL.into_iter().flat_map(of)
    }

    /// Takes a free object; `None` if a slab must be added first ([`Slabs::grow`]).
    #[inline]
    pub(crate) fn take(&mut self, cache: Cache, cpu: CpuId, node: NodeId) -> Option<Object> {
        match &mut self.kinds[cache as usize] {
            CacheState::Slub(slub) => slub.take(cpu, node),
            CacheState::Slab(arrays) => arrays.take(cpu),
        }
    }

    /// Takes a free object of the first of these nodes that has one, after the first try of a slab
    /// has failed. Only SLAB does so before it makes a slab on another node (`fallback_alloc`).
    pub(crate) fn take_of(&mut self, cache: Cache, cpu: CpuId, nodes: impl Iterator<Item = NodeId>) -> Option<Object> {
        match &mut self.kinds[cache as usize] {
            CacheState::Slub(_) => None,
            CacheState::Slab(arrays) => arrays.take_of(cpu, nodes),
        }
    }

    /// Adds a slab, a block of one of the cache's two orders, for this CPU to take from.
    pub(crate) fn grow(&mut self, cache: Cache, cpu: CpuId, node: NodeId, pfn: Pfn, order: Order) {
        match &mut self.kinds[cache as usize] {
            CacheState::Slub(slub) => slub.grow(cpu, node, pfn, order),
            CacheState::Slab(arrays) => arrays.grow(cpu, node, pfn),
        }
    }

    /// Frees an object; the number of pages freed with it.
    #[inline]
    pub(crate) fn free(&mut self, m: &mut Memory, cpu: CpuId, cache: Cache, object: Object) -> u64 {
        match &mut self.kinds[cache as usize] {
            CacheState::Slub(slub) => slub.free(m, cpu, object),
            CacheState::Slab(arrays) => arrays.free(m, cpu, object),
        }
    }

    /// Gives back what caches have not used since the last time; every other time also what is
    /// free on nodes. Only SLAB does so.
    pub(crate) fn reap(&mut self, m: &mut Memory, of_nodes: bool) {
        for kind in &mut self.kinds {
            if let CacheState::Slab(arrays) = kind {
                arrays.reap(m, of_nodes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::{MachineSpec, Request, ZoneSpec, ZoneType};

    const CPU: CpuId = CpuId::new(0);
    const NODE: NodeId = NodeId::new(0);

    fn memory() -> Memory {
        let zone = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: 8192, present: 8192, managed: 8192 };
        let spec = MachineSpec { cpus: 2, zones: vec![zone], thp: false, lru: true };
        Memory::new(&spec, kontig_profiles::linux("6.1")).expect("a valid machine")
    }

    fn take(s: &mut Slabs, m: &mut Memory, cache: Cache) -> Object {
        s.take(cache, CPU, NODE).unwrap_or_else(|| {
            let pfn = m.alloc(Request::new(CPU, NODE, cache.gfp(), s.order(cache))).expect("memory is free");
            s.grow(cache, CPU, NODE, pfn, s.order(cache));
            s.take(cache, CPU, NODE).expect("it has just grown")
        })
    }

    #[test]
    fn a_slab_is_free_when_all_its_objects_are_and_enough_others_have_room() {
        let (mut m, mut s) = (memory(), Slabs::new(Allocator::Slub, &[0, 0], 1));
        let free = m.nr_free_pages();
        let all: Vec<Object> = (0..21 * 20).map(|_| take(&mut s, &mut m, Cache::Dentry)).collect();
        assert_eq!((s.objects(Cache::Dentry), s.pages(Cache::Dentry)), (420, 20));
        // One object of each slab stays, so nothing is freed.
        let (stay, go): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(i, _)| i % 21 == 0);
        let freed: u64 = go.iter().map(|(_, object)| s.free(&mut m, CPU, Cache::Dentry, **object)).sum();
        assert_eq!((freed, s.pages(Cache::Dentry)), (0, 20));
        let freed: u64 = stay.iter().map(|(_, object)| s.free(&mut m, CPU, Cache::Dentry, **object)).sum();
        // Four are on the list, one is the CPU's.
        assert_eq!((freed, s.pages(Cache::Dentry), s.objects(Cache::Dentry)), (15, 5, 0));
        m.drain_cpu(CPU);
        assert_eq!(m.nr_free_pages(), free - 5);
    }

    #[test]
    fn a_slab_may_be_as_small_as_an_object_allows() {
        let (mut m, mut s) = (memory(), Slabs::new(Allocator::Slub, &[0, 0], 1));
        let (order, least) = (s.order(Cache::Inode), s.last_order(Cache::Inode));
        assert_eq!((order.pages(), least.pages()), (4, 1));
        let pfn = m.alloc(Request::new(CPU, NODE, Cache::Inode.gfp(), least)).expect("memory is free");
        s.grow(Cache::Inode, CPU, NODE, pfn, least);
        let three: Vec<Object> = std::iter::from_fn(|| s.take(Cache::Inode, CPU, NODE)).collect();
        assert_eq!((three.len(), s.pages(Cache::Inode)), (3, 1), "of 1128 bytes in a page");
        // The next slab filled is one with free objects, and no fuller than any other.
        take(&mut s, &mut m, Cache::Inode);
        for object in three {
            s.free(&mut m, CPU, Cache::Inode, object);
        }
        assert_eq!((s.pages(Cache::Inode), s.objects(Cache::Inode)), (5, 1));
    }

    #[test]
    fn a_larger_slab_than_has_to_be_is_tried_for_lightly_and_up_to_4_5_wakes_kswapd() {
        let rights = |profile: &str, is_larger| {
            let gfp = Cache::first_gfp(Cache::Inode.gfp(), is_larger, &kontig_profiles::linux(profile).slab);
            (gfp.has(Gfp::DIRECT_RECLAIM), gfp.has(Gfp::KSWAPD_RECLAIM))
        };
        assert_eq!([rights("4.4-kcompactd", true), rights("4.6", true)], [(false, true), (false, false)]);
        assert_eq!(rights("6.1", false), (true, true));
    }

    #[test]
    fn a_tree_s_nodes_are_asked_for_as_the_page_is_and_are_kernel_memory() {
        let ahead = Gfp::HIGHUSER_MOVABLE.without(Gfp::FS) | Gfp::NORETRY;
        let gfp = Cache::gfp_of_nodes(ahead);
        assert!(gfp.has(Gfp::NORETRY) && !gfp.has(Gfp::FS));
        assert_eq!(Cache::gfp_of_nodes(Gfp::HIGHUSER_MOVABLE), Gfp::KERNEL | Gfp::COMP | Gfp::RECLAIMABLE);
    }

    #[test]
    fn slabs_with_room_are_filled_before_another_is_made() {
        let (mut m, mut s) = (memory(), Slabs::new(Allocator::Slub, &[0, 0], 1));
        let all: Vec<Object> = (0..40).map(|_| take(&mut s, &mut m, Cache::Dentry)).collect();
        assert_eq!(s.pages(Cache::Dentry), 2);
        s.free(&mut m, CPU, Cache::Dentry, all[3]);
        for _ in 0..3 {
            take(&mut s, &mut m, Cache::Dentry);
        }
        assert_eq!((s.pages(Cache::Dentry), s.objects(Cache::Dentry)), (2, 42));
        take(&mut s, &mut m, Cache::Dentry);
        assert_eq!(s.pages(Cache::Dentry), 3);
    }

    #[test]
    fn each_cpu_fills_a_slab_of_its_own() {
        let (mut m, mut s) = (memory(), Slabs::new(Allocator::Slub, &[0, 0], 1));
        take(&mut s, &mut m, Cache::Open);
        assert_eq!(s.take(Cache::Open, CpuId::new(1), NODE), None, "the other CPU's slab is not on the list");
    }
}
