//! Allocated blocks split into single pages and joined again, and the matching map of huge
//! pageblocks.

use crate::state::Memory;
use crate::types::{CpuId, Order, PAGEBLOCK_PAGES, Pfn};

impl Memory {
    /// Splits an allocated block into single pages, each to be freed on its own.
    ///
    /// # Panics
    /// If it is not allocated, or is on an LRU that keeps the order of its pages.
    pub fn split_page(&mut self, pfn: Pfn, order: Order) {
        let tag = self.frames.tag(pfn);
        assert!(tag.is_allocated() && tag.order() == order, "split of {pfn} {order:?}, which is {:?}", tag.kind());
        assert!(!self.lru.is_ordered() || !tag.is_lru(), "split of {pfn} {order:?}, which has one place on the LRU");
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, false);
        }
        self.frames.split_allocated(pfn, order);
        self.split_group(pfn, order);
    }

    /// Splits a user's large page into single pages. If the order of the LRU is kept, each of them
    /// gets its own place there, at the head of the list.
    ///
    /// # Panics
    /// If it is not on the LRU.
    pub fn split_lru_page(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        assert!(self.is_on_lru(pfn), "split of {pfn} {order:?}, which is not on the LRU");
        if !self.lru.is_ordered() {
            return self.split_page(pfn, order);
        }
        let (flags, generation) = (self.lru.flags(pfn), self.lru.used(pfn).generation());
        match generation {
            Some(_) => self.gen_unlink_to_split(pfn),
            None => self.unlink(cpu, pfn, order),
        }
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, false);
        }
        self.frames.split_allocated(pfn, order);
        self.split_group(pfn, order);
        for page in (0..order.pages()).rev().map(|i| pfn.plus(i)) {
            self.lru.set_flags(page, flags);
            match generation {
                Some(_) => self.gen_link_part(pfn, page),
                None => self.link(cpu, page, Order::ZERO, false),
            }
        }
    }

    /// Joins the single pages of an allocated block again, so that it can be freed as one: the
    /// inverse of [`Memory::split_page`], for hosts whose blocks are not compound pages.
    ///
    /// # Panics
    /// If they are not allocated single pages of one kind, or on an LRU that keeps their order.
    pub fn join_page(&mut self, pfn: Pfn, order: Order) {
        let listed = self.lru.is_ordered() && self.frames.tag(pfn).is_lru();
        assert!(!listed, "the pages at {pfn} have a place on the LRU each and cannot be joined");
        self.frames.join_allocated(pfn, order);
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, true);
        }
    }

    /// Updates the bitmap of huge pageblocks.
    pub(crate) fn mark_huge(&mut self, pfn: Pfn, order: Order, huge: bool) {
        for b in 0..(order.pages() / PAGEBLOCK_PAGES) as usize {
            self.blocks.set_huge(pfn.pageblock() + b, huge);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::request::Request;
    use crate::state::{LruList, PageFlags};
    use crate::testing::ordered_machine;
    use crate::types::NodeId;

    #[test]
    fn the_pages_of_a_large_page_on_the_lru_have_a_place_each_when_it_is_split() {
        let mut m = ordered_machine(2);
        let (cpu, order) = (CpuId::new(0), Order::new(2));
        let large = m.alloc(Request::new(cpu, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, order)).expect("memory is free");
        m.lru_add(cpu, large, order, PageFlags::ANON);
        m.set_owner(large, order, 70);
        m.split_lru_page(cpu, large, order);
        let vec = m.lru().of_node(NodeId::new(0));
        let list: alloc::vec::Vec<Pfn> = vec.list(LruList::InactiveAnon).collect();
        assert_eq!(list, [0, 1, 2, 3].map(|i| large.plus(i)));
        assert_eq!(vec.size_exact(LruList::InactiveAnon), 4);
        m.check().expect("consistent");
        for (i, page) in list.into_iter().enumerate() {
            assert_eq!(m.frames().owner(page, Order::ZERO), 70 + i as u32);
            m.free(cpu, page, Order::ZERO);
        }
        m.check().expect("consistent");
    }

    #[test]
    #[should_panic(expected = "which has one place on the LRU")]
    fn a_large_page_with_its_place_on_the_lru_is_not_split() {
        let mut m = ordered_machine(2);
        let (cpu, order) = (CpuId::new(0), Order::new(2));
        let large = m.alloc(Request::new(cpu, NodeId::new(0), Gfp::HIGHUSER_MOVABLE, order)).expect("memory is free");
        m.lru_add(cpu, large, order, PageFlags::ANON);
        m.split_page(large, order);
    }
}
