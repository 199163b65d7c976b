//! The LRU whose pages are in generations: links pages into their lists and takes them out.

use super::generations::{Gen, Generations, Used};
use super::{Lru, Lruvec};
use crate::types::{LruvecId, Pfn, ZoneType};

impl Lru {
    /// Whether the pages are in generations.
    #[inline(always)]
    pub fn has_generations(&self) -> bool {
        self.generations
    }

    /// Switches between generations and lists. The pages stay where they are.
    pub(crate) fn set_generations(&mut self, on: bool) {
        self.generations = on;
        if on {
            self.used = alloc::vec![Used::default(); self.nr_frames()];
            for vec in self.vecs.iter_mut() {
                vec.begin_generations();
            }
        }
    }

    /// Forgets the byte of every page.
    pub(crate) fn forget_used(&mut self) {
        self.used = alloc::vec::Vec::new();
    }

    /// The byte that a page carries.
    #[inline(always)]
    pub fn used(&self, pfn: Pfn) -> Used {
        self.used.get(pfn.index()).copied().unwrap_or_default()
    }

    /// Whether the page is in the swap cache, as far as its owner has said.
    pub fn is_in_swap_cache(&self, pfn: Pfn) -> bool {
        self.used(pfn).in_swap_cache()
    }

    #[inline(always)]
    pub(crate) fn used_mut(&mut self, pfn: Pfn) -> &mut Used {
        &mut self.used[pfn.index()]
    }

    /// The generations of these lists.
    #[inline(always)]
    pub(crate) fn gens(&self, lruvec: LruvecId) -> &Generations {
        self.vecs[lruvec].gens()
    }

    #[inline(always)]
    pub(crate) fn gens_mut(&mut self, lruvec: LruvecId) -> &mut Generations {
        self.vecs[lruvec].gens_mut()
    }

    /// Links a page into the list of a generation, at the head or at the tail.
    pub(crate) fn gen_link(
        &mut self,
        lruvec: LruvecId,
        pfn: Pfn,
        (of, kind, zone): (Gen, usize, ZoneType),
        tail: bool,
    ) {
        let list = &mut self.gens_mut(lruvec).lists[of.index()][kind][zone.index()];
        let place = if tail { list.push_back(pfn) } else { list.push_front(pfn) };
        self.set_place(pfn, place);
        self.used_mut(pfn).set_listed(of);
    }

    /// Takes a page out of the list of the generation that it is on.
    pub(crate) fn gen_unlink(&mut self, lruvec: LruvecId, pfn: Pfn, kind: usize, zone: ZoneType) {
        let (of, place) = (self.used(pfn).listed(), self.place(pfn));
        let list = &mut self.gens_mut(lruvec).lists[of.index()][kind][zone.index()];
        list.remove(pfn, place);
        if list.is_sparse() {
            let mut list = core::mem::take(list);
            list.pack(|pfn, place| self.set_place(pfn, place));
            self.gens_mut(lruvec).lists[of.index()][kind][zone.index()] = list;
        }
    }
}

impl Lruvec {
    /// Has generations from now on, unless it had some before.
    pub(crate) fn begin_generations(&mut self) {
        self.generations.get_or_insert_with(|| alloc::boxed::Box::new(Generations::new()));
    }
    /// The same, to be set.
    ///
    /// # Panics
    /// As [`Lruvec::gens`].
    pub fn gens_mut(&mut self) -> &mut Generations {
        self.generations.as_mut().expect("the LRU has generations")
    }
    /// The generations of these lists.
    ///
    /// # Panics
    /// If the LRU has none.
    pub fn gens(&self) -> &Generations {
        self.generations.as_ref().expect("the LRU has generations")
    }
}
