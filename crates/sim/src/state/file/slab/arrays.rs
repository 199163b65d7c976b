//! SLAB: each CPU has an array of free objects, filled from slabs and emptied to them in batches.
//!
//! A slab is the smallest block that holds an object, or twice that where more than an eighth of
//! it would be left over; slabs of reclaimable caches never are. The list of a slab's free objects
//! leaves room for as many objects as without it. A CPU takes the object that it freed last. If
//! its array is empty, it takes a batch from the array that its node's CPUs share, else from a
//! slab in use, else from an empty slab. If its array is full, the batch that was freed first goes
//! to the shared array while that has room, else back to the slabs. A node keeps empty slabs up to
//! a limit of free objects. Every two seconds a fifth of each array that was not used goes back to
//! slabs, and every four a fifth of the node's limit is freed. Objects of another node go back at
//! once; the kernel first gathers twelve. Source: `mm/slab.c` of 4.19, `__do_tune_cpucache`,
//! `cache_alloc_refill`, `cache_flusharray`, `free_block`, `cache_reap`.

use super::{Cache, Object, PAGE};
use crate::base::sequence::Sequence;
use kontig_mm::{CpuId, Memory, NodeId, Order, Pfn};

#[derive(Clone, Copy)]
struct Slab {
    pfn: Pfn,
    /// Objects that are in use or in an array.
    active: u16,
    node: u16,
}

/// Free objects of a CPU or of a node's CPUs, the one freed last at the end.
#[derive(Clone)]
struct Array {
    objects: Vec<u32>,
    limit: usize,
    /// Objects were taken since it was last reaped.
    touched: bool,
}

impl Array {
    fn new(limit: usize) -> Array {
        Array { objects: Vec::with_capacity(limit), limit, touched: false }
    }

    /// How many of its objects to give back when it is reaped.
    fn idle(&mut self) -> usize {
        let (there, fifth) = (self.objects.len(), self.limit.div_ceil(5));
        match std::mem::take(&mut self.touched) {
            true => 0,
            false if fifth > there => there.div_ceil(2),
            false => fifth,
        }
    }
}

/// The slabs of a node.
#[derive(Clone)]
struct Node {
    shared: Array,
    /// Slabs with free objects and others, the next one to take from first, and empty slabs.
    partial: Sequence,
    empty: Sequence,
    /// Free objects in all slabs, and how many of them may be in empty slabs.
    free_objects: u64,
    free_limit: u64,
    /// Objects were taken from an empty slab since the last reap.
    touched: bool,
}

#[derive(Clone)]
pub(super) struct Arrays {
    order: Order,
    /// Objects of a slab.
    objects: u16,
    batch: usize,
    cpus: Vec<Array>,
    /// The node of each CPU.
    node_of: Vec<u16>,
    nodes: Vec<Node>,
    slabs: Vec<Slab>,
    unused: Vec<u32>,
    active: u64,
    /// Pages of its slabs, by node.
    pages: Vec<u64>,
}

/// A CPU whose array was not used lately takes no larger batch.
const MOST_AT_FIRST: usize = 16;
/// The shared array holds this many batches.
const SHARED_BATCHES: usize = 8;

impl Arrays {
    /// An empty cache for this many nodes, and for CPUs of these.
    pub(super) fn new(cache: Cache, cpus: &[usize], nodes: usize) -> Arrays {
        let (order, objects) = size(cache);
        let limit = match cache.bytes() {
            0..=256 => 120,
            257..=1024 => 54,
            1025..=4096 => 24,
            _ => 8,
        };
        let batch = usize::div_ceil(limit, 2);
        let node = |node| {
            let cpus = cpus.iter().filter(|of| **of == node).count();
            Node {
                shared: Array::new(if cpus_share(cpus, cache) { SHARED_BATCHES * batch } else { 0 }),
                partial: Sequence::default(),
                empty: Sequence::default(),
                free_objects: 0,
                free_limit: (1 + cpus as u64) * batch as u64 + u64::from(objects),
                touched: false,
            }
        };
        Arrays {
            order,
            objects,
            batch,
            cpus: vec![Array::new(limit); cpus.len()],
            node_of: cpus.iter().map(|node| *node as u16).collect(),
            nodes: (0..nodes).map(node).collect(),
            slabs: Vec::new(),
            unused: Vec::new(),
            active: 0,
            pages: vec![0; nodes],
        }
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    pub(super) fn node(&self, object: Object) -> usize {
        usize::from(self.slabs[object.0 as usize].node)
    }

    /// Objects in use, those in arrays among them, as the kernel counts them.
    pub(super) fn objects(&self) -> u64 {
        self.active
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages.iter().sum()
    }

    pub(super) fn pages_of(&self, node: NodeId) -> u64 {
        self.pages[node.index()]
    }

    /// Each slab: its first page and its size in pages.
    pub(super) fn each(&self) -> Vec<(Pfn, u64)> {
        let mut is_there = vec![true; self.slabs.len()];
        self.unused.iter().for_each(|at| is_there[*at as usize] = false);
        let there = self.slabs.iter().zip(is_there).filter(|(_, is_there)| *is_there);
        there.map(|(slab, _)| (slab.pfn, u64::from(self.order.pages()))).collect()
    }

    /// Whether it has ever had a slab.
    pub(super) fn was_used(&self) -> bool {
        !self.slabs.is_empty()
    }

    /// Takes a free object; `None` if a slab must be added first ([`Arrays::grow`]).
    #[inline]
    pub(super) fn take(&mut self, cpu: CpuId) -> Option<Object> {
        let array = &mut self.cpus[cpu.index()];
        if let Some(object) = array.objects.pop() {
            array.touched = true;
            return Some(Object(object));
        }
        self.refill(cpu);
        self.cpus[cpu.index()].objects.pop().map(Object)
    }

    /// Fills a CPU's empty array with a batch of free objects, if there are any.
    #[inline(never)]
    fn refill(&mut self, cpu: CpuId) {
        let (array, node) = (&mut self.cpus[cpu.index()], &mut self.nodes[usize::from(self.node_of[cpu.index()])]);
        let batch = if array.touched { self.batch } else { self.batch.min(MOST_AT_FIRST) };
        let there = node.shared.objects.len();
        if there > 0 {
            array.objects.extend(node.shared.objects.drain(there - there.min(batch)..));
            (array.touched, node.shared.touched) = (true, true);
            return;
        }
        while self.cpus[cpu.index()].objects.len() < batch {
            let node = &mut self.nodes[usize::from(self.node_of[cpu.index()])];
            let at = match node.partial.first() {
                Some(at) => at,
                None => {
                    let Some(at) = node.empty.first() else { return };
                    node.touched = true;
                    at
                }
            };
            let wanted = batch - self.cpus[cpu.index()].objects.len();
            self.take_from(cpu, at, wanted);
        }
    }

    /// Takes an object from slabs of the first of these nodes that has a free one.
    pub(super) fn take_of(&mut self, cpu: CpuId, nodes: impl Iterator<Item = NodeId>) -> Option<Object> {
        let mut nodes = nodes.map(|node| node.index());
        let from = nodes.find(|node| self.nodes[*node].free_objects > 0)?;
        let node = &mut self.nodes[from];
        let at = node.partial.first().or_else(|| {
            node.touched = true;
            node.empty.first()
        })?;
        self.take_from(cpu, at, 1);
        self.cpus[cpu.index()].objects.pop().map(Object)
    }

    /// Moves up to this many objects of a slab to a CPU's array.
    fn take_from(&mut self, cpu: CpuId, at: u32, wanted: usize) {
        let slab = &mut self.slabs[at as usize];
        let taken = wanted.min(usize::from(self.objects - slab.active));
        slab.active += taken as u16;
        let node = &mut self.nodes[usize::from(slab.node)];
        node.partial.remove(at);
        node.empty.remove(at);
        if slab.active < self.objects {
            node.partial.add_first(at);
        }
        node.free_objects -= taken as u64;
        self.active += taken as u64;
        self.cpus[cpu.index()].objects.extend(std::iter::repeat_n(at, taken));
    }

    /// Adds a slab, from which this CPU takes a batch; of another node's slab, one object.
    pub(super) fn grow(&mut self, cpu: CpuId, node: NodeId, pfn: Pfn) {
        let slab = Slab { pfn, active: 0, node: node.index() as u16 };
        self.pages[node.index()] += u64::from(self.order.pages());
        let at = match self.unused.pop() {
            Some(at) => {
                self.slabs[at as usize] = slab;
                at
            }
            None => {
                self.slabs.push(slab);
                self.slabs.len() as u32 - 1
            }
        };
        self.nodes[node.index()].free_objects += u64::from(self.objects);
        let own = usize::from(self.node_of[cpu.index()]) == node.index();
        let touched = self.cpus[cpu.index()].touched;
        let batch = if touched { self.batch } else { self.batch.min(MOST_AT_FIRST) };
        self.take_from(cpu, at, if own { batch } else { 1 });
    }

    /// Frees an object; the number of pages freed with it.
    #[inline]
    pub(super) fn free(&mut self, m: &mut Memory, cpu: CpuId, object: Object) -> u64 {
        let (at, of) = (usize::from(self.node_of[cpu.index()]), self.node(object));
        if at != of {
            let shared = &mut self.nodes[of].shared;
            if shared.objects.len() < shared.limit {
                shared.objects.push(object.0);
                return 0;
            }
            return self.give_back(m, cpu, of, &[object.0]);
        }
        let array = &self.cpus[cpu.index()];
        let pages = if array.objects.len() == array.limit { self.flush(m, cpu, at) } else { 0 };
        self.cpus[cpu.index()].objects.push(object.0);
        pages
    }

    /// Makes room in a CPU's full array; the number of pages freed.
    #[inline(never)]
    fn flush(&mut self, m: &mut Memory, cpu: CpuId, node: usize) -> u64 {
        let (array, shared) = (&mut self.cpus[cpu.index()], &mut self.nodes[node].shared);
        let room = (shared.limit - shared.objects.len()).min(self.batch);
        if room > 0 {
            shared.objects.extend(array.objects.drain(..room));
            return 0;
        }
        let mut batch = std::mem::take(&mut array.objects);
        let pages = self.give_back(m, cpu, node, &batch[..self.batch]);
        batch.drain(..self.batch);
        self.cpus[cpu.index()].objects = batch;
        pages
    }

    /// Puts objects of a node back into their slabs; the number of pages freed.
    fn give_back(&mut self, m: &mut Memory, cpu: CpuId, node: usize, objects: &[u32]) -> u64 {
        let of = &mut self.nodes[node];
        of.free_objects += objects.len() as u64;
        self.active -= objects.len() as u64;
        for &at in objects {
            let slab = &mut self.slabs[at as usize];
            debug_assert!(slab.active > 0, "an object is given back twice");
            slab.active -= 1;
            of.partial.remove(at);
            match slab.active {
                0 => of.empty.add_first(at),
                _ => of.partial.add(at),
            }
        }
        self.shrink(m, cpu, node, u64::MAX, self.nodes[node].free_limit)
    }

    /// Frees empty slabs while the node has more than this many free objects; the number of pages.
    fn shrink(&mut self, m: &mut Memory, cpu: CpuId, node: usize, most: u64, limit: u64) -> u64 {
        let (of, mut freed) = (&mut self.nodes[node], 0);
        while freed < most && of.free_objects > limit {
            let Some(at) = of.empty.last() else { break };
            of.empty.remove(at);
            of.free_objects -= u64::from(self.objects);
            self.unused.push(at);
            m.free(cpu, self.slabs[at as usize].pfn, self.order);
            freed += 1;
        }
        let pages = freed * u64::from(self.order.pages());
        self.pages[node] -= pages;
        pages
    }

    /// Gives back a part of each array that was not used since the last time, and where `of_nodes`
    /// says so also of the arrays and empty slabs of nodes.
    pub(super) fn reap(&mut self, m: &mut Memory, of_nodes: bool) {
        let mut first_of = vec![None; self.nodes.len()];
        for at in 0..self.cpus.len() {
            let (cpu, node) = (CpuId::new(at), usize::from(self.node_of[at]));
            first_of[node].get_or_insert(cpu);
            let idle = self.cpus[at].idle();
            let objects: Vec<u32> = self.cpus[at].objects.drain(..idle).collect();
            self.give_back(m, cpu, node, &objects);
        }
        for (node, cpu) in first_of.into_iter().enumerate().filter(|_| of_nodes) {
            let cpu = cpu.unwrap_or(CpuId::new(0));
            let idle = self.nodes[node].shared.idle();
            let objects: Vec<u32> = self.nodes[node].shared.objects.drain(..idle).collect();
            self.give_back(m, cpu, node, &objects);
            if !std::mem::take(&mut self.nodes[node].touched) {
                let slabs = self.nodes[node].free_limit.div_ceil(5 * u64::from(self.objects));
                self.shrink(m, cpu, node, slabs, 0);
            }
        }
    }
}

/// Whether CPUs of a node have a shared array: not for objects larger than a page, nor one CPU.
fn cpus_share(cpus: usize, cache: Cache) -> bool {
    cpus > 1 && cache.bytes() <= PAGE
}

/// The order of a cache's slabs and their number of objects (`calculate_slab_order`).
fn size(cache: Cache) -> (Order, u16) {
    let bytes = cache.bytes();
    let least = bytes.div_ceil(PAGE).next_power_of_two().ilog2();
    let left_over = (PAGE << least) % bytes;
    let doubled = !cache.is_reclaimable() && least == 0 && left_over * 8 > PAGE;
    let order = least + u32::from(doubled);
    (Order::new(order as u8), ((PAGE << order) / bytes) as u16)
}

#[cfg(test)]
mod tests {
    use super::super::{Allocator, Slabs};
    use super::*;
    use kontig_mm::{Gfp, MachineSpec, Request, ZoneSpec, ZoneType};

    const NODE: NodeId = NodeId::new(0);

    fn memory() -> Memory {
        let zone = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: 8192, present: 8192, managed: 8192 };
        let spec = MachineSpec { cpus: 2, zones: vec![zone], thp: false, lru: true };
        Memory::new(&spec, kontig_profiles::linux("4.20-rc3")).expect("a valid machine")
    }

    fn take(s: &mut Slabs, m: &mut Memory, cpu: usize, cache: Cache) -> Object {
        let cpu = CpuId::new(cpu);
        s.take(cache, cpu, NODE).unwrap_or_else(|| {
            let pfn = m.alloc(Request::new(cpu, NODE, cache.gfp(), s.order(cache))).expect("memory is free");
            s.grow(cache, cpu, NODE, pfn, s.order(cache));
            s.take(cache, cpu, NODE).expect("it has just grown")
        })
    }

    fn caches() -> (Memory, Slabs) {
        (memory(), Slabs::new(Allocator::Slab, &[0, 0], 1))
    }

    #[test]
    fn slabs_are_single_pages_unless_much_would_be_left_over() {
        let of_files = [(0, 3), (0, 21), (0, 7), (0, 39), (0, 16), (0, 4), (0, 21), (0, 10), (0, 15), (0, 8)];
        let of_processes = [(1, 1), (1, 3), (1, 7), (1, 11), (1, 5), (0, 21), (0, 16), (0, 39)];
        let all = Cache::ALL.map(|cache| (size(cache).0.get(), size(cache).1));
        assert_eq!(all.to_vec(), [&of_files[..], &of_processes].concat());
    }

    #[test]
    fn a_cpu_takes_the_object_that_it_freed_last_and_no_other_cpu_does() {
        let (mut m, mut s) = caches();
        let all: Vec<Object> = (0..16).map(|_| take(&mut s, &mut m, 0, Cache::XfsInode)).collect();
        s.free(&mut m, CpuId::new(0), Cache::XfsInode, all[9]);
        assert_ne!(take(&mut s, &mut m, 1, Cache::XfsInode), all[9], "the other CPU gets a new slab");
        assert_eq!(take(&mut s, &mut m, 0, Cache::XfsInode), all[9]);
    }

    #[test]
    fn a_slab_of_which_an_object_is_in_an_array_is_not_free() {
        let (mut m, mut s) = caches();
        // The array holds 54 objects, the shared one 216. Beyond that they go back to their slabs,
        // 27 at a time, and a node keeps (1 + 2 CPUs) * 27 + 4 free ones.
        let all: Vec<Object> = (0..400).map(|_| take(&mut s, &mut m, 0, Cache::XfsInode)).collect();
        assert_eq!(s.pages(Cache::XfsInode), 100);
        let (kept, more) = all.split_at(54 + 216 + 3 * 27);
        let mut free = |objects: &[Object]| -> u64 {
            objects.iter().map(|object| s.free(&mut m, CpuId::new(0), Cache::XfsInode, *object)).sum()
        };
        assert_eq!((free(kept), free(&more[..1]), free(&more[1..])), (0, 6, 7), "to 85 free objects at most");
        assert_eq!(s.pages(Cache::XfsInode), 87);
    }

    #[test]
    fn slabs_unused_for_some_seconds_are_given_back_fifth_by_fifth() {
        let (mut m, mut s) = caches();
        let free = m.nr_free_pages();
        let all: Vec<Object> = (0..400).map(|_| take(&mut s, &mut m, 0, Cache::XfsInode)).collect();
        all.iter().for_each(|object| {
            s.free(&mut m, CpuId::new(0), Cache::XfsInode, *object);
        });
        let mut pages = vec![s.pages(Cache::XfsInode)];
        // The first time only notes that the arrays were used.
        for round in 0..40 {
            s.reap(&mut m, round % 2 == 1);
            pages.push(s.pages(Cache::XfsInode));
        }
        assert_eq!(pages[0], pages[1]);
        assert!(pages.windows(2).all(|two| two[0] >= two[1]) && pages[40] == 0, "{pages:?}");
        m.drain_cpu(CpuId::new(0));
        m.drain_cpu(CpuId::new(1));
        assert_eq!(m.nr_free_pages(), free);
    }

    #[test]
    fn a_slab_is_first_tried_for_on_the_own_node_without_reclaim() {
        let (m, s) = caches();
        let gfp = Cache::XfsInode.gfp();
        let (order, first) = s.first_try(Cache::XfsInode, gfp, &m.profile().slab);
        assert_eq!((order, first), (Order::ZERO, gfp.without(Gfp::RECLAIM) | Gfp::THISNODE | Gfp::NOWARN));
    }

    #[test]
    fn an_object_of_another_node_goes_back_to_it() {
        let zone = |node: usize, kind| {
            let start = 8192 * node as u32;
            ZoneSpec { node, kind, start, end: start + 8192, present: 8192, managed: 8192 }
        };
        let zones = vec![zone(0, ZoneType::Normal), zone(1, ZoneType::Normal)];
        let spec = MachineSpec { cpus: 2, zones, thp: false, lru: true };
        let mut m = Memory::new(&spec, kontig_profiles::linux("4.20-rc3")).expect("a valid machine");
        let mut s = Slabs::new(Allocator::Slab, &[0, 1], 2);
        let (first, second) = (CpuId::new(0), CpuId::new(1));
        let (other, cache) = (NodeId::new(1), Cache::Dentry);
        let pfn = m.alloc(Request::new(first, other, cache.gfp(), Order::ZERO)).expect("memory is free");
        s.grow(cache, first, other, pfn, Order::ZERO);
        let object = s.take(cache, first, NODE).expect("one object of it");
        assert_eq!((s.node(cache, object), s.take(cache, first, NODE)), (1, None), "the rest is the other node's");
        let rest = || [NODE, other].into_iter();
        let more: Vec<Object> = (0..20).filter_map(|_| s.take_of(cache, first, rest())).collect();
        assert_eq!(
            (more.len(), s.take_of(cache, first, rest())),
            (20, None),
            "and is taken before another slab is made"
        );
        for object in more.into_iter().chain([object]) {
            s.free(&mut m, first, cache, object);
        }
        let all: Vec<Object> = (0..21).filter_map(|_| s.take(cache, second, other)).collect();
        assert_eq!(all.len(), 21, "the other CPU has all of them");
    }
}
