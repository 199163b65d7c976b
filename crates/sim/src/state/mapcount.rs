//! Map counts of frames, where they can differ from one.
//!
//! Without forks and without swap, every page of a process has exactly one page table entry and
//! nothing is kept. Otherwise two bytes per frame give the number of further entries, or say that
//! there is none, as for a page only in the swap cache. The host's memory is used only for frames
//! that were ever shared or swapped.

use kontig_mm::{Order, Pfn, prefetch};

/// For each frame of a small page and each head of a huge page, the number of entries beyond the
/// first.
#[derive(Clone, Default)]
pub(crate) struct Mapcounts {
    more: Vec<u16>,
}

/// Value for a frame without any entry.
const UNMAPPED: u16 = u16::MAX;

impl Mapcounts {
    /// Counts from now on.
    pub(crate) fn keep(&mut self, frames: usize) {
        if self.more.is_empty() {
            self.more = vec![0; frames];
        }
    }

    /// Number of entries beyond the first.
    #[inline(always)]
    pub(crate) fn more(&self, pfn: Pfn) -> u16 {
        self.more.get(pfn.index()).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, pfn: Pfn) {
        prefetch(self.more.as_ptr().wrapping_add(pfn.index()));
    }

    /// Whether an entry maps the frame.
    #[inline(always)]
    pub(crate) fn is_mapped(&self, pfn: Pfn) -> bool {
        self.more(pfn) != UNMAPPED
    }

    /// Marks a frame that still has an owner as unmapped.
    pub(crate) fn unmapped(&mut self, pfn: Pfn) {
        self.more[pfn.index()] = UNMAPPED;
    }

    /// Adds an entry to a frame that may have had none.
    pub(crate) fn map_again(&mut self, pfn: Pfn) {
        if self.is_mapped(pfn) { self.share(pfn) } else { self.reset(pfn) }
    }

    /// Forgets the count: the frame is free, or mapped once.
    pub(crate) fn reset(&mut self, pfn: Pfn) {
        if let Some(more) = self.more.get_mut(pfn.index()) {
            *more = 0;
        }
    }

    /// Forgets the counts of a folio, which is free.
    #[inline(always)]
    pub(crate) fn reset_folio(&mut self, pfn: Pfn, order: Order) {
        match order {
            Order::ZERO => self.reset(pfn),
            _ => (0..order.pages()).for_each(|i| self.reset(pfn.plus(i))),
        }
    }

    /// Marks the pages of a folio as unmapped.
    #[inline(always)]
    pub(crate) fn folio_unmapped(&mut self, pfn: Pfn, order: Order) {
        match order {
            Order::ZERO => self.unmapped(pfn),
            _ => (0..order.pages()).for_each(|i| self.unmapped(pfn.plus(i))),
        }
    }

    /// Adds an entry to a mapped frame.
    #[inline(always)]
    pub(crate) fn share(&mut self, pfn: Pfn) {
        let more = &mut self.more[pfn.index()];
        *more += 1;
        assert!(*more != UNMAPPED, "fewer than 65,536 processes share a page");
    }

    /// Drops an entry; whether it was the last.
    #[inline(always)]
    pub(crate) fn drop_one(&mut self, pfn: Pfn) -> bool {
        match self.more.get_mut(pfn.index()) {
            Some(more) if *more > 0 => {
                debug_assert!(*more != UNMAPPED);
                *more -= 1;
                false
            }
            _ => true,
        }
    }

    /// Moves the count to another frame.
    #[inline(always)]
    pub(crate) fn moved(&mut self, from: Pfn, to: Pfn) {
        if let Some(more) = self.more.get_mut(from.index()) {
            self.more[to.index()] = std::mem::take(more);
        }
    }

    /// Splits a huge page: each of its small pages gets the head's count.
    pub(crate) fn split(&mut self, first: Pfn, pages: u32) {
        if let Some(more) = self.more.get(first.index()).copied() {
            self.more[first.index()..first.plus(pages).index()].fill(more);
        }
    }
}
