//! Slab objects allocated before they are needed, since growing a cache may take the slow path.
//!
//! A slab is tried for twice. SLUB first tries one of the usual order, with little effort if it
//! could be smaller, then one of the smallest order with the cache's flags. SLAB first tries the
//! CPU's node, then takes a free object of any node, then tries any node. Source: `allocate_slab`
//! in `mm/slub.c`, `cache_alloc_refill` and `fallback_alloc` in `mm/slab.c`.

use crate::base::context::Context;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::state::file::{Cache, Object};
use kontig_mm::{AllocFailure, Gfp, Memory, NodeId, Order, Step};

/// A number of objects of one cache, allocated step by step.
#[derive(Clone)]
pub(crate) struct Preload {
    cache: Cache,
    /// Flags for the last try of a slab.
    gfp: Gfp,
    wanted: usize,
    grow: Option<Box<Grow>>,
    got: Vec<Object>,
}

/// A slab being allocated.
#[derive(Clone)]
struct Grow {
    order: Order,
    /// Whether another try follows.
    is_first: bool,
    allocation: Allocation,
}

impl Preload {
    /// Allocates this many objects of a cache.
    pub(crate) fn new(cache: Cache, wanted: usize) -> Preload {
        Preload { cache, gfp: cache.gfp(), wanted, grow: None, got: Vec::with_capacity(wanted) }
    }

    /// Allocates this many nodes of a file's tree, for a page allocated with the flags `page`.
    pub(crate) fn of_nodes(wanted: usize, page: Gfp) -> Preload {
        Preload { gfp: Cache::gfp_of_nodes(page), ..Preload::new(Cache::Node, wanted) }
    }

    /// A step; done when all objects are allocated.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<(), AllocFailure>, Wait> {
        while self.got.len() < self.wanted {
            if let Some(grow) = &mut self.grow {
                match done!(grow.allocation.step(k, c)) {
                    Ok(pfn) => {
                        let node = crate::base::numa::node_of(&k.mem, pfn);
                        k.pages.files().slabs.grow(self.cache, c.cpu, node, pfn, grow.order);
                        self.grow = None;
                    }
                    Err(_) if grow.is_first => {
                        let nodes = nearest_first(&k.mem, c.node);
                        if let Some(object) = k.pages.files().slabs.take_of(self.cache, c.cpu, nodes) {
                            self.got.push(object);
                            self.grow = None;
                            continue;
                        }
                        let order = k.pages.files().slabs.last_order(self.cache);
                        **grow = Grow { order, is_first: false, allocation: Allocation::new(self.gfp, order) };
                        continue;
                    }
                    Err(failure) => {
                        self.give_back(k, c);
                        return Step::Done(Err(failure));
                    }
                }
            }
            let slabs = &mut k.pages.files().slabs;
            match slabs.take(self.cache, c.cpu, c.node) {
                Some(object) => self.got.push(object),
                None => {
                    let (order, gfp) = slabs.first_try(self.cache, self.gfp, &k.mem.profile().slab);
                    let allocation = Allocation::new(gfp, order);
                    self.grow = Some(Box::new(Grow { order, is_first: true, allocation }));
                }
            }
        }
        Step::Done(Ok(()))
    }

    /// The allocated objects; the caller takes what it uses.
    pub(crate) fn objects(&mut self) -> &mut Vec<Object> {
        &mut self.got
    }

    /// Frees the objects that were not used.
    pub(crate) fn give_back(&mut self, k: &mut Kernel, c: &mut Context) {
        for object in self.got.drain(..) {
            k.pages.files().slabs.free(&mut k.mem, c.cpu, self.cache, object);
        }
        k.charge(&mut c.now);
    }
}

/// The nodes of the machine, those nearest to this one first.
fn nearest_first(mem: &Memory, from: NodeId) -> impl Iterator<Item = NodeId> {
    let mut nodes: Vec<NodeId> = mem.nodes().iter().map(|node| node.id).collect();
    nodes.sort_by_key(|node| mem.distance(from, *node));
    nodes.into_iter()
}
