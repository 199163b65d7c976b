//! How many page table entries map a frame, where it can be more than one.
//!
//! Without forks and without swap every page of a process has one entry, and nothing is kept. Otherwise two bytes a frame
//! say how many more there are, or that there is none, as of a page of the swap cache; the host gives memory only for
//! frames that were shared or swapped.

use kontig_mm::{Pfn, prefetch};

/// For each frame of a user, or each huge page's first, the entries that map it beside one.
#[derive(Clone, Default)]
pub(crate) struct Mapcounts {
    more: Vec<u16>,
}

/// In place of the number of further entries: there is none at all.
const UNMAPPED: u16 = u16::MAX;

impl Mapcounts {
    /// Counts from now on.
    pub(crate) fn keep(&mut self, frames: usize) {
        if self.more.is_empty() {
            self.more = vec![0; frames];
        }
    }

    /// Entries beside one.
    #[inline(always)]
    pub(crate) fn more(&self, pfn: Pfn) -> u16 {
        self.more.get(pfn.index()).copied().unwrap_or(0)
    }

    /// Asks for what is kept of a frame.
    #[inline(always)]
    pub(crate) fn prefetch(&self, pfn: Pfn) {
        prefetch(self.more.as_ptr().wrapping_add(pfn.index()));
    }

    /// Whether an entry maps the frame.
    #[inline(always)]
    pub(crate) fn is_mapped(&self, pfn: Pfn) -> bool {
        self.more(pfn) != UNMAPPED
    }

    /// No entry maps the frame any more, and yet it is somebody's.
    pub(crate) fn unmapped(&mut self, pfn: Pfn) {
        self.more[pfn.index()] = UNMAPPED;
    }

    /// Another entry maps the frame, which may have had none.
    pub(crate) fn map_again(&mut self, pfn: Pfn) {
        if self.is_mapped(pfn) { self.share(pfn) } else { self.reset(pfn) }
    }

    /// The frame is nobody's, or mapped once.
    pub(crate) fn reset(&mut self, pfn: Pfn) {
        if let Some(more) = self.more.get_mut(pfn.index()) {
            *more = 0;
        }
    }

    /// Another entry maps the frame.
    #[inline(always)]
    pub(crate) fn share(&mut self, pfn: Pfn) {
        let more = &mut self.more[pfn.index()];
        *more += 1;
        assert!(*more != UNMAPPED, "fewer than 65,536 processes share a page");
    }

    /// An entry no longer maps the frame; whether it was the last.
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

    /// A page has moved.
    #[inline(always)]
    pub(crate) fn moved(&mut self, from: Pfn, to: Pfn) {
        if let Some(more) = self.more.get_mut(from.index()) {
            self.more[to.index()] = std::mem::take(more);
        }
    }

    /// A huge page is mapped by its small pages from now on, by whoever mapped it before.
    pub(crate) fn split(&mut self, first: Pfn, pages: u32) {
        if let Some(more) = self.more.get(first.index()).copied() {
            self.more[first.index()..first.plus(pages).index()].fill(more);
        }
    }
}
