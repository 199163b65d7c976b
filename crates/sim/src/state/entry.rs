//! An entry of a cache: a page, the shadow of a reclaimed page, or nothing.
//!
//! The page cache and the swap cache keep one such word for every page they could hold, so it is
//! packed like the kernel's entries: a page is its frame number; a shadow is the eviction clock of
//! its LRU lists, their number and one more bit.

use kontig_mm::{LruvecId, Pfn, Shadow};
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CacheEntry(u64);

/// Kind of entry, in the lowest bits.
const PAGE: u64 = 1;
const SHADOW: u64 = 2;
const WORKINGSET: u64 = 4;
const CLOCK_BIT: u32 = 13;
const LRUVEC_BIT: u32 = 3;
const LRUVECS: u64 = 1 << (CLOCK_BIT - LRUVEC_BIT);

impl CacheEntry {
    pub(crate) const EMPTY: CacheEntry = CacheEntry(0);

    /// An entry for a page.
    #[inline(always)]
    pub(crate) const fn of_page(pfn: Pfn) -> CacheEntry {
        CacheEntry((pfn.get() as u64) << 32 | PAGE)
    }

    /// An entry for a shadow. Its clock holds 2⁵¹ evictions: years of them.
    #[inline]
    pub(crate) fn of_shadow(shadow: Option<Shadow>) -> CacheEntry {
        let Some(Shadow { lruvec, eviction, workingset }) = shadow else { return CacheEntry::EMPTY };
        let lruvec = lruvec.index() as u64;
        debug_assert!(lruvec < LRUVECS && eviction < 1 << (64 - CLOCK_BIT));
        CacheEntry(eviction << CLOCK_BIT | lruvec << LRUVEC_BIT | if workingset { WORKINGSET } else { 0 } | SHADOW)
    }

    /// The page, if it is one.
    #[inline(always)]
    pub(crate) const fn page(self) -> Option<Pfn> {
        if self.0 & PAGE != 0 { Some(Pfn::new((self.0 >> 32) as u32)) } else { None }
    }

    /// The shadow, if it is one.
    #[inline]
    pub(crate) fn shadow(self) -> Option<Shadow> {
        (self.0 & SHADOW != 0).then(|| Shadow {
            lruvec: LruvecId::new((self.0 >> LRUVEC_BIT & (LRUVECS - 1)) as usize),
            eviction: self.0 >> CLOCK_BIT,
            workingset: self.0 & WORKINGSET != 0,
        })
    }

    #[inline(always)]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for CacheEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.page(), self.shadow()) {
            (Some(pfn), _) => write!(f, "page {pfn}"),
            (None, Some(shadow)) => write!(f, "{shadow:?}"),
            (None, None) => f.write_str("nothing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_page_or_a_shadow_or_nothing() {
        for pfn in [0, 1, u32::MAX - 1].map(Pfn::new) {
            let entry = CacheEntry::of_page(pfn);
            assert_eq!((entry.page(), entry.shadow(), entry.is_empty()), (Some(pfn), None, false));
        }
        for (lruvec, eviction, workingset) in [(0, 0, false), (1, 5, true), (255, (1 << 51) - 1, true)] {
            let shadow = Some(Shadow { lruvec: LruvecId::new(lruvec), eviction, workingset });
            let entry = CacheEntry::of_shadow(shadow);
            assert_eq!((entry.page(), entry.shadow(), entry.is_empty()), (None, shadow, false));
        }
        assert_eq!((CacheEntry::EMPTY.page(), CacheEntry::EMPTY.shadow()), (None, None));
        assert!(CacheEntry::of_shadow(None).is_empty());
    }
}
