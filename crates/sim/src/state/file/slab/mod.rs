//! Slab caches: kernel objects that share pages.
//!
//! A slab is a block of pages cut into objects of one kind. Its pages become free only when all its
//! objects are, which is rare when lifetimes mix: that makes slabs hard to reclaim. Each CPU fills
//! one slab at a time; then it takes its node's first slab with free objects, or a new one.
//!
//! Which of a slab's objects is used makes no difference to pages, so an object is identified by
//! its slab. SLUB's rule gives the size of a slab from the object's size and the number of CPUs; if
//! such a block is not available without effort, the slab is as small as an object allows. A CPU's
//! short list of partial slabs is left out. Source: `mm/slub.c` of 6.1.

use crate::base::sequence::Sequence;
use kontig_mm::rules::SlabRules;
use kontig_mm::{CpuId, Gfp, Memory, NodeId, Order, Pfn};

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
}

impl Cache {
    pub(crate) const ALL: [Cache; 10] = [
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
        }
    }

    /// Whether its pages count as reclaimable (`SLAB_RECLAIM_ACCOUNT`).
    const fn is_reclaimable(self) -> bool {
        matches!(self, Cache::Inode | Cache::Dentry | Cache::Node | Cache::BufferHead | Cache::XfsInode)
    }

    /// Flags for its slabs.
    pub(crate) fn gfp(self) -> Gfp {
        let gfp = match self {
            Cache::Dentry | Cache::Open => Gfp::KERNEL | Gfp::COMP,
            // The file system allocates these, so reclaim must not re-enter it.
            _ => Gfp::KERNEL.without(Gfp::FS) | Gfp::COMP,
        };
        if self.is_reclaimable() { gfp | Gfp::RECLAIMABLE } else { gfp }
    }

    /// Flags for slabs of tree nodes: those of the page that needs the node.
    pub(crate) fn gfp_of_nodes(page: Gfp) -> Gfp {
        page.without(Gfp::HIGHMEM | Gfp::MOVABLE | Gfp::HARDWALL) | Gfp::COMP | Gfp::RECLAIMABLE
    }

    /// Flags for the first try of a slab (`allocate_slab`). For a block larger than the minimum,
    /// nothing is reclaimed or compacted; older kernels wake kswapd for it, newer ones do not.
    pub(crate) fn first_gfp(gfp: Gfp, is_larger: bool, rules: &SlabRules) -> Gfp {
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

#[derive(Clone, Copy)]
struct Slab {
    pfn: Pfn,
    used: u16,
    node: u16,
    filled_by_cpu: bool,
    is_least: bool,
}

/// A size of slabs: the order, and the objects in one.
#[derive(Clone, Copy)]
struct Size {
    order: Order,
    objects: u16,
}

#[derive(Clone)]
struct OfKind {
    /// Usual and smallest size of its slabs.
    size: Size,
    least: Size,
    /// Empty slabs are kept while the list has fewer than this.
    keeps: u64,
    slabs: Vec<Slab>,
    unused: Vec<u32>,
    /// The slab that each CPU fills.
    cpus: Vec<u32>,
    /// By node: slabs with free objects that no CPU fills, the next one to fill first.
    partial: Vec<Sequence>,
    objects: u64,
    pages: u64,
}

/// A slab cache in `/proc/slabinfo`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlabInfo {
    pub name: &'static str,
    pub objects: u64,
    pub pages: u64,
    /// Whether its pages count as reclaimable.
    pub reclaimable: bool,
}

#[derive(Clone)]
pub(crate) struct Slabs {
    kinds: [OfKind; Cache::ALL.len()],
}

impl Slabs {
    /// Empty caches for this many CPUs and nodes.
    pub(crate) fn new(cpus: usize, nodes: usize) -> Slabs {
        Slabs { kinds: Cache::ALL.map(|cache| OfKind::new(cache, cpus, nodes)) }
    }

    /// The order of a cache's slabs.
    pub(crate) fn order(&self, cache: Cache) -> Order {
        self.kinds[cache as usize].size.order
    }

    /// The smallest order that holds an object.
    pub(crate) fn least_order(&self, cache: Cache) -> Order {
        self.kinds[cache as usize].least.order
    }

    /// The node of an object.
    pub(crate) fn node(&self, cache: Cache, object: Object) -> usize {
        usize::from(self.kinds[cache as usize].slabs[object.0 as usize].node)
    }

    pub(crate) fn objects(&self, cache: Cache) -> u64 {
        self.kinds[cache as usize].objects
    }

    pub(crate) fn pages(&self, cache: Cache) -> u64 {
        self.kinds[cache as usize].pages
    }

    /// All caches; those of XFS only once it has used them.
    pub(crate) fn info(&self) -> impl Iterator<Item = SlabInfo> {
        let of = |cache: Cache| SlabInfo {
            name: cache.name(),
            objects: self.objects(cache),
            pages: self.pages(cache),
            reclaimable: cache.is_reclaimable(),
        };
        let is_known = |cache: &Cache| *cache <= Cache::Open || !self.kinds[*cache as usize].slabs.is_empty();
        Cache::ALL.into_iter().filter(is_known).map(of)
    }

    /// Takes a free object; `None` if a slab must be added first ([`Slabs::grow`]).
    #[inline]
    pub(crate) fn take(&mut self, cache: Cache, cpu: CpuId, node: NodeId) -> Option<Object> {
        let kind = &mut self.kinds[cache as usize];
        let mut at = kind.cpus[cpu.index()];
        if at == NIL || kind.is_full(at) {
            kind.let_go(cpu);
            at = kind.partial[node.index()].first()?;
            kind.partial[node.index()].remove(at);
            kind.slabs[at as usize].filled_by_cpu = true;
            kind.cpus[cpu.index()] = at;
        }
        kind.slabs[at as usize].used += 1;
        kind.objects += 1;
        Some(Object(at))
    }

    /// Adds a slab, a block of one of the cache's two orders, for this CPU to fill.
    pub(crate) fn grow(&mut self, cache: Cache, cpu: CpuId, node: NodeId, pfn: Pfn, order: Order) {
        let kind = &mut self.kinds[cache as usize];
        kind.let_go(cpu);
        debug_assert!(order == kind.size.order || order == kind.least.order, "{cache:?} has no slabs of {order:?}");
        let is_least = order != kind.size.order;
        let slab = Slab { pfn, used: 0, node: node.index() as u16, filled_by_cpu: true, is_least };
        kind.pages += u64::from(order.pages());
        let at = match kind.unused.pop() {
            Some(at) => {
                kind.slabs[at as usize] = slab;
                at
            }
            None => {
                kind.slabs.push(slab);
                kind.slabs.len() as u32 - 1
            }
        };
        kind.cpus[cpu.index()] = at;
    }

    /// Frees an object; the number of pages freed with it.
    #[inline]
    pub(crate) fn free(&mut self, m: &mut Memory, cpu: CpuId, cache: Cache, object: Object) -> u64 {
        let kind = &mut self.kinds[cache as usize];
        let was_full = kind.is_full(object.0);
        let slab = &mut kind.slabs[object.0 as usize];
        debug_assert!(slab.used > 0, "an object of {cache:?} is given back twice");
        slab.used -= 1;
        kind.objects -= 1;
        let Slab { pfn, used, node, filled_by_cpu, .. } = *slab;
        if filled_by_cpu {
            return 0;
        }
        let partial = &mut kind.partial[usize::from(node)];
        if used == 0 && partial.len() >= kind.keeps {
            partial.remove(object.0);
            kind.unused.push(object.0);
            let order = kind.size_of(object.0).order;
            kind.pages -= u64::from(order.pages());
            m.free(cpu, pfn, order);
            return u64::from(order.pages());
        }
        if was_full {
            partial.add(object.0);
        }
        0
    }
}

impl OfKind {
    fn new(cache: Cache, cpus: usize, nodes: usize) -> OfKind {
        let of_order = |order: Order| Size { order, objects: (order.pages() * PAGE / cache.bytes()) as u16 };
        let least = cache.bytes().div_ceil(PAGE).next_power_of_two().ilog2();
        // Between `MIN_PARTIAL` and `MAX_PARTIAL`.
        let keeps = u64::from(cache.bytes().ilog2() / 2).clamp(5, 10);
        OfKind {
            size: of_order(order(cache.bytes(), cpus)),
            least: of_order(Order::new(least as u8)),
            keeps,
            slabs: Vec::new(),
            unused: Vec::new(),
            cpus: vec![NIL; cpus],
            partial: vec![Sequence::default(); nodes],
            objects: 0,
            pages: 0,
        }
    }

    /// The size of a slab.
    fn size_of(&self, at: u32) -> Size {
        if self.slabs[at as usize].is_least { self.least } else { self.size }
    }

    /// Whether a slab has no free object.
    fn is_full(&self, at: u32) -> bool {
        self.slabs[at as usize].used == self.size_of(at).objects
    }

    /// Detaches the CPU from its slab.
    fn let_go(&mut self, cpu: CpuId) {
        let at = std::mem::replace(&mut self.cpus[cpu.index()], NIL);
        if at != NIL {
            let is_full = self.is_full(at);
            let slab = &mut self.slabs[at as usize];
            slab.filled_by_cpu = false;
            if !is_full {
                self.partial[usize::from(slab.node)].add(at);
            }
        }
    }
}

const PAGE: u32 = 4096;
/// The largest order of a slab (`slub_max_order`).
const MOST_ORDER: u32 = 3;

/// The order of slabs for objects of this size (`calculate_order`): the smallest that holds enough
/// objects, more of them with more CPUs, and wastes at most a sixteenth; else an eighth, or a
/// quarter; else with fewer objects.
fn order(bytes: u32, cpus: usize) -> Order {
    let enough = 4 * (cpus.max(1).ilog2() + 2);
    for objects in (1..=enough.min((PAGE << MOST_ORDER) / bytes)).rev() {
        let least = (objects * bytes).div_ceil(PAGE).next_power_of_two().ilog2();
        for waste in [16, 8, 4] {
            let fits = |order: &u32| (PAGE << order) % bytes <= (PAGE << order) / waste;
            if let Some(order) = (least..=MOST_ORDER).find(fits) {
                return Order::new(order as u8);
            }
        }
    }
    Order::new(MOST_ORDER as u8)
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
    fn slabs_are_as_large_as_the_kernels() {
        // Objects and pages of a slab, as in /proc/slabinfo of a machine with two CPUs.
        let of = |cache: Cache| {
            let kind = OfKind::new(cache, 2, 1);
            (kind.size.objects, kind.size.order.pages())
        };
        let all = [(14, 4), (21, 1), (14, 2), (39, 1), (16, 1), (16, 4), (21, 1), (21, 2), (15, 1), (16, 2)];
        assert_eq!(Cache::ALL.map(of), all);
        // And as known of machines with eight and more.
        assert_eq!((order(584, 8).get(), order(192, 16).get(), order(192, 32).get()), (2, 1, 1));
    }

    #[test]
    fn a_slab_is_free_when_all_its_objects_are_and_enough_others_have_room() {
        let (mut m, mut s) = (memory(), Slabs::new(2, 1));
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
        let (mut m, mut s) = (memory(), Slabs::new(2, 1));
        let (order, least) = (s.order(Cache::Inode), s.least_order(Cache::Inode));
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
    fn what_has_room_is_filled_before_a_slab_is_made() {
        let (mut m, mut s) = (memory(), Slabs::new(2, 1));
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
        let (mut m, mut s) = (memory(), Slabs::new(2, 1));
        take(&mut s, &mut m, Cache::Open);
        assert_eq!(s.take(Cache::Open, CpuId::new(1), NODE), None, "the other CPU's slab is not on the list");
    }
}
