//! An entry of a cache: a page, the shadow of a reclaimed page, or nothing.
//!
//! The page cache and the swap cache keep one such word for every page they could hold, so it has
//! 4 bytes, half of the kernel's. A page is its frame number. A shadow needs more: the eviction
//! clock of its LRU lists, their number and one more bit. Pages that lie together are mostly
//! evicted together, so their shadows share the clock's upper bits and the lists. These are kept
//! once for a run of entries, such as a node of the page cache's trees, and an entry has the lower
//! bits. A shadow that shares less with its neighbours is kept apart, in [`Shadows`].

use kontig_mm::{LruvecId, Pfn, Shadow};
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CacheEntry(u32);

/// The highest bit is a page's, the next that of a shadow whose lower bits follow. With neither it
/// is one more than the number of a shadow kept apart.
const PAGE: u32 = 1 << 31;
const LOWER: u32 = 1 << LOWER_BITS;
const LOWER_BITS: u32 = 30;

impl CacheEntry {
    pub(crate) const EMPTY: CacheEntry = CacheEntry(0);

    /// An entry for a page. A machine has at most 2³¹.
    #[inline(always)]
    pub(crate) const fn of_page(pfn: Pfn) -> CacheEntry {
        debug_assert!(pfn.get() < PAGE);
        CacheEntry(pfn.get() | PAGE)
    }

    /// The page, if it is one.
    #[inline(always)]
    pub(crate) const fn page(self) -> Option<Pfn> {
        if self.0 & PAGE != 0 { Some(Pfn::new(self.0 & !PAGE)) } else { None }
    }

    #[inline(always)]
    pub(crate) const fn is_shadow(self) -> bool {
        self.0 & PAGE == 0 && self.0 != 0
    }
}

impl fmt::Debug for CacheEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.page() {
            Some(pfn) => write!(f, "page {pfn}"),
            None if self.is_shadow() => f.write_str("a shadow"),
            None => f.write_str("nothing"),
        }
    }
}

/// The upper bits of shadows, which a run of entries has in common.
pub(crate) type Upper = u16;

/// Bits of a shadow's word: whether it was part of the working set, the clock's lower bits, the
/// lower bits of the lists' number, the rest of the clock, and that of the lists' number. The
/// lists are up to 2¹⁶, those of a thousand groups on 64 nodes, and the clock goes up to 2⁴⁷
/// evictions, 512 PiB of pages.
const CLOCK_BIT: u32 = 1;
const CLOCK: u64 = (1 << (LOWER_BITS - CLOCK_BIT)) - 1;
const LRUVEC_BITS: u32 = 13;
const LRUVEC: u64 = (1 << LRUVEC_BITS) - 1;
const LATER_BIT: u32 = LOWER_BITS + LRUVEC_BITS;
const LATER: u64 = (1 << (HIGH_BIT - LATER_BIT)) - 1;
const HIGH_BIT: u32 = 61;

fn word_of(Shadow { lruvec, eviction, workingset }: Shadow) -> u64 {
    let (lruvec, later) = (lruvec.index() as u64, eviction >> (LOWER_BITS - CLOCK_BIT));
    let high = lruvec >> LRUVEC_BITS;
    debug_assert!(high < 1 << (64 - HIGH_BIT) && later <= LATER);
    high << HIGH_BIT
        | later << LATER_BIT
        | (lruvec & LRUVEC) << LOWER_BITS
        | (eviction & CLOCK) << CLOCK_BIT
        | u64::from(workingset)
}

fn shadow_of(word: u64) -> Shadow {
    let lruvec = word >> HIGH_BIT << LRUVEC_BITS | word >> LOWER_BITS & LRUVEC;
    Shadow {
        lruvec: LruvecId::new(lruvec as usize),
        eviction: (word >> LATER_BIT & LATER) << (LOWER_BITS - CLOCK_BIT) | word >> CLOCK_BIT & CLOCK,
        workingset: word & 1 != 0,
    }
}

/// The shadows of a cache that share too little with their neighbours: of other lists, of a time
/// more than half a billion evictions away, or of a clock beyond 2³² evictions (16 TiB of pages).
#[derive(Clone, Default)]
pub(crate) struct Shadows {
    words: Vec<u64>,
    unused: Vec<u32>,
}

impl Shadows {
    /// An entry for a shadow in a run of entries. The first of a run decides what its shadows
    /// share.
    #[inline(always)]
    pub(crate) fn add(&mut self, upper: &mut Upper, is_first: bool, shadow: Shadow) -> CacheEntry {
        let word = word_of(shadow);
        if is_first {
            *upper = (word >> LOWER_BITS) as Upper;
        }
        if word >> LOWER_BITS == u64::from(*upper) {
            CacheEntry(LOWER | word as u32 & (LOWER - 1))
        } else {
            self.keep_apart(word)
        }
    }

    #[cold]
    fn keep_apart(&mut self, word: u64) -> CacheEntry {
        let number = match self.unused.pop() {
            Some(number) => {
                self.words[number as usize] = word;
                number
            }
            None => {
                self.words.push(word);
                self.words.len() as u32 - 1
            }
        };
        assert!(number < LOWER - 1, "a billion shadows that share nothing with their neighbours");
        CacheEntry(number + 1)
    }

    /// The shadow of an entry that is overwritten, if it is one.
    #[inline(always)]
    pub(crate) fn take(&mut self, upper: Upper, entry: CacheEntry) -> Option<Shadow> {
        if !entry.is_shadow() {
            return None;
        }
        if entry.0 & LOWER == 0 {
            self.unused.push(entry.0 - 1);
        }
        self.get(upper, entry)
    }

    /// The shadow of an entry, if it is one.
    #[inline(always)]
    fn get(&self, upper: Upper, entry: CacheEntry) -> Option<Shadow> {
        entry.is_shadow().then(|| {
            shadow_of(match entry.0 & LOWER {
                0 => self.words[entry.0 as usize - 1],
                _ => u64::from(upper) << LOWER_BITS | u64::from(entry.0 & (LOWER - 1)),
            })
        })
    }

    /// The number of shadows kept apart.
    #[cfg(test)]
    pub(crate) fn kept_apart(&self) -> usize {
        self.words.len() - self.unused.len()
    }

    /// The shadow of an entry, which stays.
    #[cfg(test)]
    pub(crate) fn peek(&self, upper: Upper, entry: CacheEntry) -> Option<Shadow> {
        self.get(upper, entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_page_or_a_shadow_or_nothing() {
        let mut shadows = Shadows::default();
        for pfn in [0, 1, PAGE - 1].map(Pfn::new) {
            let entry = CacheEntry::of_page(pfn);
            assert_eq!((entry.page(), entry.is_shadow(), shadows.take(7, entry)), (Some(pfn), false, None));
        }
        let entry = CacheEntry::EMPTY;
        assert_eq!((entry.page(), entry.is_shadow(), shadows.take(7, entry)), (None, false, None));
    }

    #[test]
    fn shadows_that_share_nothing_with_their_neighbours_are_kept_apart() {
        let shadow = |lruvec, eviction, workingset| Shadow { lruvec: LruvecId::new(lruvec), eviction, workingset };
        let later = 1 << (LOWER_BITS - CLOCK_BIT);
        let like = [shadow(3, later, false), shadow(3, 2 * later - 1, true), shadow(3, later + 7, false)];
        let unlike =
            [shadow(3, later - 1, false), shadow(3, 2 * later, true), shadow(0, later, true), shadow(8191, 0, true)];
        let far = [shadow(8191, 1 << 35, false), shadow(5, (1 << 47) - 1, true), shadow(65_535, 7, true)];
        let (mut shadows, mut upper) = (Shadows::default(), 0);
        let mut add = |shadows: &mut Shadows, all: &[Shadow], first| {
            let entries = all.iter().enumerate().map(|(i, s)| shadows.add(&mut upper, first && i == 0, *s));
            entries.collect::<Vec<_>>()
        };
        let mut entries = add(&mut shadows, &like, true);
        assert_eq!(shadows.kept_apart(), 0);
        entries.extend(add(&mut shadows, &[&unlike[..], &far].concat(), false));
        assert_eq!(shadows.kept_apart(), unlike.len() + far.len());
        assert!(entries.iter().all(|entry| entry.is_shadow() && entry.page().is_none()));
        let taken: Vec<_> = entries.iter().filter_map(|entry| shadows.take(upper, *entry)).collect();
        assert_eq!(taken, [&like[..], &unlike, &far].concat());
        assert_eq!(shadows.kept_apart(), 0);
        // Clocks and lists beyond what a run can share.
        for shadow in far {
            let entry = shadows.add(&mut upper, true, shadow);
            assert_eq!((shadows.kept_apart(), shadows.take(upper, entry)), (1, Some(shadow)));
        }
        assert_eq!(shadows.words.len(), unlike.len() + far.len(), "places are used again");
    }
}
