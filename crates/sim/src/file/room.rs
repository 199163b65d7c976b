//! Objects of slab caches, taken before they are needed: making a slab may take long.

use super::slab::{Cache, Object};
use crate::allocation::Allocation;
use crate::context::Context;
use crate::kernel::Kernel;
use crate::wait::Wait;
use kontig_mm::{AllocFailure, Step};

/// Objects that are being taken.
#[derive(Clone)]
pub(crate) struct Room {
    cache: Cache,
    wanted: usize,
    grow: Option<Allocation>,
    got: Vec<Object>,
}

impl Room {
    /// So many objects of a cache.
    pub(crate) fn of(cache: Cache, wanted: usize) -> Room {
        Room { cache, wanted, grow: None, got: Vec::with_capacity(wanted) }
    }

    /// A step; done when all are there.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<(), AllocFailure>, Wait> {
        while self.got.len() < self.wanted {
            if let Some(grow) = &mut self.grow {
                match grow.step(k, c) {
                    Step::Working => return Step::Working,
                    Step::Wait(wait) => return Step::Wait(wait),
                    Step::Done(Ok(pfn)) => {
                        let node = super::node_of(&k.mem, pfn);
                        k.pages.files().slabs.grow(self.cache, c.cpu, node, pfn);
                        self.grow = None;
                    }
                    Step::Done(Err(failure)) => {
                        self.give_back(k, c);
                        return Step::Done(Err(failure));
                    }
                }
            }
            let slabs = &mut k.pages.files().slabs;
            match slabs.take(self.cache, c.cpu, c.node) {
                Some(object) => self.got.push(object),
                None => self.grow = Some(Allocation::new(self.cache.gfp(), slabs.order(self.cache))),
            }
        }
        Step::Done(Ok(()))
    }

    /// The objects, to be used.
    pub(crate) fn objects(&mut self) -> &mut Vec<Object> {
        &mut self.got
    }

    /// Gives back what was not used.
    pub(crate) fn give_back(&mut self, k: &mut Kernel, c: &mut Context) {
        for object in self.got.drain(..) {
            k.pages.files().slabs.free(&mut k.mem, c.cpu, self.cache, object);
        }
        k.charge(&mut c.now);
    }
}
