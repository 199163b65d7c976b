//! SLUB: a slab is as large as enough objects need, and each CPU fills one at a time.
//!
//! The rule gives the size of a slab from the object's size and the number of CPUs; if such a block
//! is not available without effort, the slab is as small as an object allows. A CPU's short list of
//! partial slabs is left out. Source: `mm/slub.c` of 6.1.

use super::{Cache, NIL, Object, PAGE};
use crate::base::sequence::Sequence;
use kontig_mm::{CpuId, Memory, NodeId, Order, Pfn};

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
pub(super) struct Slub {
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
    /// Pages of its slabs, by node.
    pages: Vec<u64>,
}

impl Slub {
    /// An empty cache for this many CPUs and nodes.
    pub(super) fn new(cache: Cache, cpus: usize, nodes: usize) -> Slub {
        let of_order = |order: Order| Size { order, objects: (order.pages() * PAGE / cache.bytes()) as u16 };
        let least = cache.bytes().div_ceil(PAGE).next_power_of_two().ilog2();
        // Between `MIN_PARTIAL` and `MAX_PARTIAL`.
        let keeps = u64::from(cache.bytes().ilog2() / 2).clamp(5, 10);
        Slub {
            size: of_order(order(cache.bytes(), cpus)),
            least: of_order(Order::new(least as u8)),
            keeps,
            slabs: Vec::new(),
            unused: Vec::new(),
            cpus: vec![NIL; cpus],
            partial: vec![Sequence::default(); nodes],
            objects: 0,
            pages: vec![0; nodes],
        }
    }

    /// The order of its slabs.
    pub(super) fn order(&self) -> Order {
        self.size.order
    }

    /// The smallest order that holds an object.
    pub(super) fn least_order(&self) -> Order {
        self.least.order
    }

    pub(super) fn node(&self, object: Object) -> usize {
        usize::from(self.slabs[object.0 as usize].node)
    }

    pub(super) fn objects(&self) -> u64 {
        self.objects
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
        let there = (0..).zip(&self.slabs).zip(is_there).filter(|(_, is_there)| *is_there);
        there.map(|((at, slab), _)| (slab.pfn, self.size_of(at).order.pages().into())).collect()
    }

    /// Whether it has ever had a slab.
    pub(super) fn was_used(&self) -> bool {
        !self.slabs.is_empty()
    }

    /// Takes a free object; `None` if a slab must be added first ([`Slub::grow`]).
    #[inline]
    pub(super) fn take(&mut self, cpu: CpuId, node: NodeId) -> Option<Object> {
        let mut at = self.cpus[cpu.index()];
        if at == NIL || self.is_full(at) {
            self.let_go(cpu);
            at = self.partial[node.index()].first()?;
            self.partial[node.index()].remove(at);
            self.slabs[at as usize].filled_by_cpu = true;
            self.cpus[cpu.index()] = at;
        }
        self.slabs[at as usize].used += 1;
        self.objects += 1;
        Some(Object(at))
    }

    /// Adds a slab, a block of one of the cache's two orders, for this CPU to fill.
    pub(super) fn grow(&mut self, cpu: CpuId, node: NodeId, pfn: Pfn, order: Order) {
        self.let_go(cpu);
        debug_assert!(order == self.size.order || order == self.least.order, "no slabs of {order:?}");
        let is_least = order != self.size.order;
        let slab = Slab { pfn, used: 0, node: node.index() as u16, filled_by_cpu: true, is_least };
        self.pages[node.index()] += u64::from(order.pages());
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
        self.cpus[cpu.index()] = at;
    }

    /// Frees an object; the number of pages freed with it.
    #[inline]
    pub(super) fn free(&mut self, m: &mut Memory, cpu: CpuId, object: Object) -> u64 {
        let was_full = self.is_full(object.0);
        let slab = &mut self.slabs[object.0 as usize];
        debug_assert!(slab.used > 0, "an object is given back twice");
        slab.used -= 1;
        self.objects -= 1;
        let Slab { pfn, used, node, filled_by_cpu, .. } = *slab;
        if filled_by_cpu {
            return 0;
        }
        let partial = &mut self.partial[usize::from(node)];
        if used == 0 && partial.len() >= self.keeps {
            partial.remove(object.0);
            self.unused.push(object.0);
            let order = self.size_of(object.0).order;
            self.pages[usize::from(node)] -= u64::from(order.pages());
            m.free(cpu, pfn, order);
            return u64::from(order.pages());
        }
        if was_full {
            partial.add(object.0);
        }
        0
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

    #[test]
    fn slabs_are_as_large_as_the_kernels() {
        // Objects and pages of a slab, as in /proc/slabinfo of a machine with two CPUs.
        let of = |cache: Cache| {
            let kind = Slub::new(cache, 2, 1);
            (kind.size.objects, kind.size.order.pages())
        };
        let of_files = [(14, 4), (21, 1), (14, 2), (39, 1), (16, 1), (16, 4), (21, 1), (21, 2), (15, 1), (16, 2)];
        let of_processes = [(5, 8), (15, 8), (14, 4), (23, 4), (20, 8), (21, 1), (16, 1), (39, 1)];
        assert_eq!(Cache::ALL.map(of).to_vec(), [&of_files[..], &of_processes].concat());
        // And as known of machines with eight and more.
        assert_eq!((order(584, 8).get(), order(192, 16).get(), order(192, 32).get()), (2, 1, 1));
    }
}
