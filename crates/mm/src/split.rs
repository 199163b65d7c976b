//! Allocated blocks split into single pages and joined again, and the map of huge pageblocks that goes with it.

use crate::state::Memory;
use crate::types::{Order, PAGEBLOCK_PAGES, Pfn};

impl Memory {
    /// Splits an allocated block into single pages, each to be freed on its own.
    pub fn split_page(&mut self, pfn: Pfn, order: Order) {
        let tag = self.frames.tag(pfn);
        assert!(tag.is_allocated() && tag.order() == order, "split of {pfn} {order:?}, which is {:?}", tag.kind());
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, false);
        }
        self.frames.split_allocated(pfn, order);
    }

    /// Joins the single pages of an allocated block again, so that it can be freed as one: the other way of
    /// [`Memory::split_page`], for hosts whose blocks are not compound pages.
    ///
    /// # Panics
    /// If they are not allocated single pages of one kind.
    pub fn join_page(&mut self, pfn: Pfn, order: Order) {
        self.frames.join_allocated(pfn, order);
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, true);
        }
    }

    /// Keeps the bitmap of huge pageblocks in step.
    pub(crate) fn mark_huge(&mut self, pfn: Pfn, order: Order, huge: bool) {
        for b in 0..(order.pages() / PAGEBLOCK_PAGES) as usize {
            self.blocks.set_huge(pfn.pageblock() + b, huge);
        }
    }
}
