//! The pages that are in use while a trace is read, by the allocation that they are of.
//!
//! What was allocated together may be freed apart: the pages of a huge page that was split, or of a
//! block that the kernel split.

use std::collections::BTreeMap;

/// An allocation: its process, and its place among that process's.
pub(super) type Of = (u32, usize);

/// Pages of an allocation that lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) of: Of,
    /// Its first page, counted from the allocation's.
    pub(super) first: u32,
    pub(super) pages: u32,
}

/// The pieces in use by their first page frame.
#[derive(Default)]
pub(super) struct Live(BTreeMap<u64, Piece>);

impl Live {
    /// Records an allocation. None of its frames may be in use.
    pub(super) fn take(&mut self, pfn: u64, pages: u32, of: Of) {
        self.0.insert(pfn, Piece { of, first: 0, pages });
    }

    /// Whether a frame is in use.
    pub(super) fn holds(&self, pfn: u64) -> bool {
        let last = self.0.range(..=pfn).next_back();
        last.is_some_and(|(first, piece)| pfn - first < u64::from(piece.pages))
    }

    /// Frames are freed: what of them was in use.
    pub(super) fn free(&mut self, pfn: u64, pages: u32) -> Vec<Piece> {
        self.cut(pfn, pages).into_iter().map(|(_, piece)| piece).collect()
    }

    /// What is in use of these frames is moved to others, which are free; how many pages that is.
    pub(super) fn shift(&mut self, pfn: u64, pages: u32, to: u64) -> u32 {
        let pieces = self.cut(pfn, pages);
        let moved = pieces.iter().map(|(_, piece)| piece.pages).sum();
        self.0.extend(pieces.into_iter().map(|(first, piece)| (first - pfn + to, piece)));
        moved
    }

    /// Takes out what is in use of these frames, with the first of each.
    fn cut(&mut self, pfn: u64, pages: u32) -> Vec<(u64, Piece)> {
        let after = |first: u64, pages: u32| first.saturating_add(u64::from(pages));
        let end = after(pfn, pages);
        let from_last = self.0.range(..end).rev();
        let starts: Vec<u64> =
            from_last.take_while(|(first, of)| after(**first, of.pages) > pfn).map(|(first, _)| *first).collect();
        let mut freed = Vec::with_capacity(starts.len());
        for start in starts {
            let Some(piece) = self.0.remove(&start) else { continue };
            let part = |from: u64, to: u64| {
                let (first, pages) = ((from - start) as u32, (to - from) as u32);
                Piece { first: piece.first + first, pages, ..piece }
            };
            let ends = after(start, piece.pages);
            let (from, to) = (start.max(pfn), ends.min(end));
            if start < from {
                self.0.insert(start, part(start, from));
            }
            if to < ends {
                self.0.insert(to, part(to, ends));
            }
            freed.push((from, part(from, to)));
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_an_allocation_stays_in_use() {
        let mut live = Live::default();
        live.take(512, 512, (7, 0));
        let piece = |first, pages| Piece { of: (7, 0), first, pages };
        assert_eq!(live.free(520, 1), [piece(8, 1)]);
        assert_eq!(live.free(520, 1), []);
        assert_eq!(live.free(516, 8), [piece(9, 3), piece(4, 4)], "what is in use of it, the last first");
        assert_eq!(live.free(0, 1024), [piece(12, 500), piece(0, 4)]);
        assert!(live.0.is_empty());
    }

    #[test]
    fn what_is_moved_is_in_use_where_it_is_then() {
        let mut live = Live::default();
        live.take(512, 512, (7, 0));
        assert_eq!(live.shift(516, 4, 4096), 4);
        assert_eq!(live.shift(516, 4, 8192), 0, "nothing is left there");
        assert_eq!(
            [515, 516, 520, 1024, 4095, 4096, 4099, 4100].map(|pfn| live.holds(pfn)),
            [true, false, true, false, false, true, true, false]
        );
        assert_eq!(live.free(4097, 1), [Piece { of: (7, 0), first: 5, pages: 1 }]);
    }

    #[test]
    fn neighbours_are_no_part_of_it() {
        let mut live = Live::default();
        (0..3u32).for_each(|i| live.take(u64::from(4 * i), 4, (i, 0)));
        assert_eq!(live.free(4, 4), [Piece { of: (1, 0), first: 0, pages: 4 }]);
        assert_eq!(live.0.keys().copied().collect::<Vec<_>>(), [0, 8]);
        assert_eq!(live.free(u64::MAX, 512), []);
    }
}
