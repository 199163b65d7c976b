//! Map counts of frames, where they can differ from one.
//!
//! Without forks and without swap, every page of a process has exactly one page table entry and
//! nothing is kept. Otherwise two bytes per frame give the number of further entries, and a bit
//! says that there is none, as for a page of a file that is only read, or one in the swap cache.
//! The host's memory is used only for frames that were ever shared, and for bits that were ever
//! set.

use kontig_mm::{Order, Pfn, prefetch};

/// For each frame of a small page and each head of a huge page, the number of entries beyond the
/// first.
#[derive(Clone, Default)]
pub(crate) struct Mapcounts {
    more: Vec<u16>,
    /// A bit for each frame that has an owner and no entry; it has no further ones either.
    unmapped: Vec<u64>,
}

/// The bits of a folio that lie in one word.
#[inline(always)]
const fn bits(pfn: Pfn, order: Order) -> u64 {
    (!0 >> (64 - order.pages())) << (pfn.index() % 64)
}

impl Mapcounts {
    /// Counts from now on.
    pub(crate) fn keep(&mut self, frames: usize) {
        if self.more.is_empty() {
            self.more = vec![0; frames];
            self.unmapped = vec![0; frames.div_ceil(64)];
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
        self.unmapped.get(pfn.index() / 64).is_none_or(|word| word >> (pfn.index() % 64) & 1 == 0)
    }

    /// Marks a frame that still has an owner as unmapped. It had at most one entry.
    #[inline(always)]
    pub(crate) fn unmapped(&mut self, pfn: Pfn) {
        self.folio_unmapped(pfn, Order::ZERO);
    }

    /// Drops all entries of a frame that still has an owner.
    #[inline(always)]
    pub(crate) fn drop_all(&mut self, pfn: Pfn) {
        let more = &mut self.more[pfn.index()];
        // Most have none, and stay untouched memory of the host.
        if *more != 0 {
            *more = 0;
        }
        self.unmapped(pfn);
    }

    /// Adds an entry to a frame that may have had none.
    pub(crate) fn map_again(&mut self, pfn: Pfn) {
        if self.is_mapped(pfn) { self.share(pfn) } else { self.reset(pfn) }
    }

    /// Forgets that a frame is unmapped: it is free, or mapped once.
    #[inline(always)]
    pub(crate) fn reset(&mut self, pfn: Pfn) {
        self.reset_folio(pfn, Order::ZERO);
    }

    /// The same of a folio, which is free.
    #[inline(always)]
    pub(crate) fn reset_folio(&mut self, pfn: Pfn, order: Order) {
        self.change(pfn, order, |word, bits| word & !bits);
    }

    /// Marks the pages of a folio as unmapped. They had at most one entry each.
    #[inline(always)]
    pub(crate) fn folio_unmapped(&mut self, pfn: Pfn, order: Order) {
        debug_assert!(!self.unmapped.is_empty());
        self.change(pfn, order, |word, bits| word | bits);
    }

    /// Changes the bits of a folio, which is aligned to its size.
    #[inline(always)]
    fn change(&mut self, pfn: Pfn, order: Order, to: impl Fn(u64, u64) -> u64) {
        if self.unmapped.is_empty() {
            return;
        }
        debug_assert!((0..order.pages()).all(|i| self.more(pfn.plus(i)) == 0));
        let first = pfn.index() / 64;
        if order.pages() <= 64 {
            self.unmapped[first] = to(self.unmapped[first], bits(pfn, order));
        } else {
            let words = &mut self.unmapped[first..first + order.pages() as usize / 64];
            words.iter_mut().for_each(|word| *word = to(*word, !0));
        }
    }

    /// Adds an entry to a mapped frame.
    #[inline(always)]
    pub(crate) fn share(&mut self, pfn: Pfn) {
        let more = &mut self.more[pfn.index()];
        *more = more.checked_add(1).expect("at most 65,536 processes share a page");
    }

    /// Drops an entry; whether it was the last.
    #[inline(always)]
    pub(crate) fn drop_one(&mut self, pfn: Pfn) -> bool {
        debug_assert!(self.is_mapped(pfn));
        match self.more.get_mut(pfn.index()) {
            Some(more) if *more > 0 => {
                *more -= 1;
                false
            }
            _ => true,
        }
    }

    /// Moves the count to another frame.
    #[inline(always)]
    pub(crate) fn moved(&mut self, from: Pfn, to: Pfn) {
        let Some(more) = self.more.get_mut(from.index()) else { return };
        if *more != 0 {
            self.more[to.index()] = std::mem::take(more);
        } else if !self.is_mapped(from) {
            self.reset(from);
            self.unmapped(to);
        }
    }

    /// Splits a huge page: each of its small pages gets the head's count.
    pub(crate) fn split(&mut self, first: Pfn, pages: u32) {
        debug_assert!(self.is_mapped(first));
        let more = self.more(first);
        if more != 0 {
            self.more[first.index()..first.plus(pages).index()].fill(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(n: u8) -> Order {
        Order::new(n)
    }

    #[test]
    fn a_frame_has_several_entries_or_one_or_none() {
        let (mut counts, pfn, to) = (Mapcounts::default(), Pfn::new(70), Pfn::new(3));
        assert!(counts.is_mapped(pfn) && counts.drop_one(pfn), "nothing is kept: it has one");
        counts.keep(1024);
        counts.share(pfn);
        counts.share(pfn);
        counts.moved(pfn, to);
        assert_eq!((counts.more(pfn), counts.more(to)), (0, 2));
        assert!(!counts.drop_one(to) && !counts.drop_one(to) && counts.drop_one(to));
        counts.unmapped(to);
        counts.moved(to, pfn);
        assert_eq!((counts.is_mapped(to), counts.is_mapped(pfn)), (true, false));
        counts.map_again(pfn);
        assert_eq!((counts.is_mapped(pfn), counts.more(pfn)), (true, 0));
        counts.map_again(pfn);
        assert_eq!(counts.more(pfn), 1);
        counts.drop_all(pfn);
        assert_eq!((counts.is_mapped(pfn), counts.more(pfn)), (false, 0));
        counts.reset(pfn);
        assert!(counts.is_mapped(pfn));
    }

    #[test]
    fn a_folio_is_unmapped_as_one() {
        for (first, order) in [(8, order(3)), (64, order(6)), (512, order(9)), (65, order(0)), (96, order(5))] {
            let mut counts = Mapcounts::default();
            counts.keep(1024);
            counts.folio_unmapped(Pfn::new(first), order);
            let unmapped =
                |counts: &Mapcounts| (0..1024).filter(|n| !counts.is_mapped(Pfn::new(*n))).collect::<Vec<_>>();
            assert_eq!(unmapped(&counts), (first..first + order.pages()).collect::<Vec<_>>());
            counts.reset_folio(Pfn::new(first), order);
            assert_eq!(unmapped(&counts), [0u32; 0]);
        }
    }
}
