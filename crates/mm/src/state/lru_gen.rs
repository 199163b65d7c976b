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

    /// Puts the empty LRU into generations.
    pub(crate) fn keep_generations(&mut self) {
        self.generations = true;
        self.used = alloc::vec![Used::default(); self.nr_frames()];
        self.vecs.iter_mut().for_each(|vec| vec.generations = Some(alloc::boxed::Box::new(Generations::new())));
    }

    /// The byte that a page carries.
    #[inline(always)]
    pub fn used(&self, pfn: Pfn) -> Used {
        self.used.get(pfn.index()).copied().unwrap_or_default()
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
