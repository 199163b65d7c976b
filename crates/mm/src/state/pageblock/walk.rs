//! Walks over pageblocks to the first at which a scanner stops.
//!
//! Compaction walks over half a million blocks at a time and stops at a few. A summary says of
//! every word of the bitmaps whether it has a block of each kind that scanners look for, so a walk
//! over 1 TiB reads 128 words of it instead of 8,192.

use super::Pageblocks;
use crate::types::MigrateType;

/// The blocks at which a scanner stops: those of the wanted types, without those that have the skip
/// hint set, are huge, or start a large free block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockFilter {
    pub(crate) types: [bool; MigrateType::COUNT],
    pub(crate) honour_skip: bool,
    pub(crate) pass_huge: bool,
    pub(crate) pass_free: bool,
}

/// A bit for each of 64 words of the bitmaps: whether the word has a block that ...
#[derive(Clone, Copy, Default)]
pub(super) struct Summary {
    /// ... is of the type.
    types: [u64; MigrateType::COUNT],
    /// ... has no skip hint.
    unhinted: u64,
    /// ... is not huge.
    small: u64,
    /// ... is not huge and has a hint.
    small_hinted: u64,
    /// ... is not huge, has no hint and is of the type.
    small_unhinted: [u64; MigrateType::COUNT],
    /// ... does not start a large free block.
    unfree: u64,
    /// ... does not start a large free block and has no hint.
    unfree_unhinted: u64,
}

impl Summary {
    /// The words in which a block may pass the filter. None need pass: the conditions may hold for
    /// different blocks.
    #[inline(always)]
    fn may_pass(&self, f: &BlockFilter) -> u64 {
        let of_types = |words: &[u64; MigrateType::COUNT]| {
            words.iter().zip(f.types).fold(0, |all, (words, wanted)| if wanted { all | words } else { all })
        };
        let mut words = match (f.honour_skip, f.pass_huge) {
            (true, false) => of_types(&self.small_unhinted),
            (true, true) => of_types(&self.types) & self.unhinted,
            (false, false) => of_types(&self.types) & self.small,
            (false, true) => of_types(&self.types),
        };
        if !f.pass_free {
            words &= if f.honour_skip { self.unfree_unhinted } else { self.unfree };
        }
        words
    }
}

/// The bitmap that has changed.
#[derive(Clone, Copy)]
pub(super) enum Changed {
    Types,
    Skip,
    Huge,
    Free,
    All,
}

impl Pageblocks {
    /// Brings the summary of word `w` up to date, as far as it depends on the bitmap that has
    /// changed.
    #[inline(always)]
    pub(super) fn sum_up(&mut self, w: usize, changed: Changed) {
        let (hinted, huge, free) = (self.skip[w], self.huge[w], self.free[w]);
        let s = &mut self.summary[w >> 6];
        let say =
            |words: &mut u64, blocks: u64| *words = *words & !(1 << (w & 63)) | u64::from(blocks != 0) << (w & 63);
        if matches!(changed, Changed::Types | Changed::All) {
            s.types.iter_mut().zip(&self.types).for_each(|(words, blocks)| say(words, blocks[w]));
        }
        if matches!(changed, Changed::Skip | Changed::All) {
            say(&mut s.unhinted, !hinted);
        }
        if matches!(changed, Changed::Huge | Changed::All) {
            say(&mut s.small, !huge);
        }
        if matches!(changed, Changed::Huge | Changed::Skip | Changed::All) {
            say(&mut s.small_hinted, !huge & hinted);
        }
        if !matches!(changed, Changed::Free) {
            let of_types = s.small_unhinted.iter_mut().zip(&self.types);
            of_types.for_each(|(words, blocks)| say(words, blocks[w] & !huge & !hinted));
        }
        if matches!(changed, Changed::Free | Changed::All) {
            say(&mut s.unfree, !free);
        }
        if matches!(changed, Changed::Free | Changed::Skip | Changed::All) {
            say(&mut s.unfree_unhinted, !free & !hinted);
        }
    }

    #[inline(always)]
    fn word(&self, w: usize, f: &BlockFilter) -> u64 {
        let mut m = 0;
        for t in 0..MigrateType::COUNT {
            if f.types[t] {
                m |= self.types[t][w];
            }
        }
        if f.honour_skip {
            m &= !self.skip[w];
        }
        if !f.pass_huge {
            m &= !self.huge[w];
        }
        if !f.pass_free {
            m &= !self.free[w];
        }
        m
    }

    /// Walks blocks upwards from `from` to the first of `[from, to)` that passes the filter. Also
    /// returns the last block before it whose skip hint is clear (or ignored) but which did not
    /// pass: visited, and found unsuitable.
    pub(crate) fn first(&self, from: usize, to: usize, f: &BlockFilter) -> (Option<usize>, Option<usize>) {
        let found = self.first_of(from, to, |s| s.may_pass(f), |w| self.word(w, f));
        let end = found.unwrap_or(to);
        (found, if from < end { self.last_seen(end - 1, from, f) } else { None })
    }

    /// The last block of `[to, from]` whose skip hint is clear or ignored.
    fn last_seen(&self, from: usize, to: usize, f: &BlockFilter) -> Option<usize> {
        if !f.honour_skip {
            return Some(from);
        }
        self.last_of(from, to, |s| s.unhinted, |w| !self.skip[w])
    }

    /// Walks blocks downwards from `from` to the first of `[to, from]` that passes the filter.
    pub(crate) fn last(&self, from: usize, to: usize, f: &BlockFilter) -> Option<usize> {
        self.last_of(from, to, |s| s.may_pass(f), |w| self.word(w, f))
    }

    /// The first block of `[from, to)` that a reset of the hints must sample for pages to move: one
    /// that is not huge and has the skip hint set or, until one has been `found`, any that is not
    /// huge.
    pub(crate) fn first_to_sample(&self, from: usize, to: usize, found: bool) -> Option<usize> {
        if found {
            self.first_of(from, to, |s| s.small_hinted, |w| self.skip[w] & !self.huge[w])
        } else {
            self.first_of(from, to, |s| s.small, |w| !self.huge[w])
        }
    }

    /// The same downwards, for a block with free pages to move to; until one has been found, any
    /// movable block.
    pub(crate) fn last_to_sample(&self, from: usize, to: usize, found: bool) -> Option<usize> {
        let movable = MigrateType::Movable.index();
        if found {
            self.last_of(from, to, |s| s.small_hinted, |w| self.skip[w] & !self.huge[w])
        } else {
            self.last_of(from, to, |s| s.small & s.types[movable], |w| self.types[movable][w] & !self.huge[w])
        }
    }

    /// The first block of `[from, to)` whose bit of `word` is set, going upwards. It can only be in
    /// `words`.
    #[inline(always)]
    fn first_of(
        &self,
        from: usize,
        to: usize,
        words: impl Fn(&Summary) -> u64,
        word: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        if from >= to {
            return None;
        }
        let (first, last) = (from >> 6, (to - 1) >> 6);
        let at = |w: usize, range: u64| {
            let set = word(w) & range;
            (set != 0).then(|| (w << 6) + set.trailing_zeros() as usize).filter(|b| *b < to)
        };
        let here = at(first, !0 << (from & 63));
        if here.is_some() || first == last {
            return here;
        }
        let mut range = !0u64 << ((first + 1) & 63);
        for s in (first + 1) >> 6..=last >> 6 {
            let mut left = words(&self.summary[s]) & range;
            while left != 0 {
                let w = (s << 6) + left.trailing_zeros() as usize;
                if w > last {
                    return None;
                }
                if let Some(b) = at(w, !0) {
                    return Some(b);
                }
                left &= left - 1;
            }
            range = !0;
        }
        None
    }

    /// The first block of `[to, from]` whose bit of `word` is set, going downwards. It can only be
    /// in `words`.
    #[inline(always)]
    fn last_of(
        &self,
        from: usize,
        to: usize,
        words: impl Fn(&Summary) -> u64,
        word: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        if from < to {
            return None;
        }
        let (first, last) = (from >> 6, to >> 6);
        let at = |w: usize, range: u64| {
            let set = word(w) & range;
            (set != 0).then(|| (w << 6) + 63 - set.leading_zeros() as usize).filter(|b| *b >= to)
        };
        let here = at(first, !0 >> (63 - (from & 63)));
        if here.is_some() || first == last {
            return here;
        }
        let mut range = !0u64 >> (63 - ((first - 1) & 63));
        for s in (last >> 6..=(first - 1) >> 6).rev() {
            let mut left = words(&self.summary[s]) & range;
            while left != 0 {
                let bit = 63 - left.leading_zeros() as usize;
                let w = (s << 6) + bit;
                if w < last {
                    return None;
                }
                if let Some(b) = at(w, !0) {
                    return Some(b);
                }
                left &= !(1 << bit);
            }
            range = !0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pageblocks with long stretches that have nothing to stop at, so that whole words of the
    /// summary are passed.
    fn blocks(n: usize) -> Pageblocks {
        let mut p = Pageblocks::new(n);
        for b in 0..n {
            let rare = b % 2999 == 17;
            p.set_migratetype(b, MigrateType::from_index(if rare { 0 } else { 1 + b / 700 % 2 }));
            p.set_skip(b, !rare && (b / 900) % 2 == 0);
            p.set_huge(b, !rare && b % 97 != 0);
            p.set_free(b, (b / 500) % 3 != 0);
        }
        p
    }

    #[test]
    fn a_walk_by_the_summary_finds_what_a_walk_by_blocks_finds() {
        const BLOCKS: usize = 10_000;
        let p = blocks(BLOCKS);
        let types = [[true; 4], [false, true, false, false], [true, false, false, false], [false, true, true, false]];
        let edges = [0, 1, 63, 64, 65, 700, 4095, 4096, 4160, 5000, 8191, 8192, 9999, BLOCKS];
        for (types, n) in types.into_iter().flat_map(|t| (0..8).map(move |n| (t, n))) {
            let f = BlockFilter { types, honour_skip: n & 1 != 0, pass_huge: n & 2 != 0, pass_free: n & 4 != 0 };
            let seen = |b: usize| !f.honour_skip || !p.skip(b);
            let passes = |b: usize| {
                let stays = seen(b) && (f.pass_huge || !p.is_huge(b)) && (f.pass_free || !p.is_free(b));
                stays && f.types[p.migratetype(b).index()]
            };
            for (from, to) in edges.into_iter().flat_map(|from| edges.map(|to| (from, to))) {
                let up = (from..to).find(|&b| passes(b));
                let unsuitable = (from..up.unwrap_or(to)).rfind(|&b| seen(b));
                assert_eq!(p.first(from, to, &f), (up, unsuitable), "upwards in {from}..{to} with {f:?}");
                let top = to.min(BLOCKS - 1);
                let down = (from..=top).rfind(|&b| passes(b));
                assert_eq!(p.last(top, from, &f), down, "downwards from {top} to {from} with {f:?}");
            }
        }
    }

    #[test]
    fn samples_are_the_same_by_the_summary_and_by_blocks() {
        const BLOCKS: usize = 9_000;
        let p = blocks(BLOCKS);
        let up = |b: usize, found: bool| !p.is_huge(b) && (!found || p.skip(b));
        let down = |b: usize, found: bool| {
            !p.is_huge(b) && if found { p.skip(b) } else { p.types[1][b >> 6] >> (b & 63) & 1 != 0 }
        };
        for (from, found) in (0..BLOCKS).step_by(61).flat_map(|from| [(from, false), (from, true)]) {
            for to in [from, from + 1, 5000, BLOCKS - 1] {
                assert_eq!(p.first_to_sample(from, to, found), (from..to).find(|&b| up(b, found)), "{from}..{to}");
                assert_eq!(p.last_to_sample(to, from, found), (from..=to).rfind(|&b| down(b, found)), "{to} to {from}");
            }
        }
    }
}
