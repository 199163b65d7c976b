//! Per-pageblock state: migratetype, compaction's skip hint, and the zone a block belongs to.
//!
//! Types and hints are bitmaps, one bit a block, so that compaction can walk half a million blocks sixty-four at a
//! time: the whole state of a 1 TiB machine fits a CPU's second-level cache.

use crate::types::{MigrateType, Pfn, ZoneId};
use alloc::vec;
use alloc::vec::Vec;

const NO_ZONE: u8 = u8::MAX;
/// Words of a bitmap taken together: where nothing is expected to be found, and where set hints are counted.
const STRETCH: usize = 16;
/// Pageblocks of a stretch.
const STRETCH_BLOCKS: usize = 64 * STRETCH;

/// The state of all pageblocks.
#[derive(Clone)]
pub struct Pageblocks {
    types: [Vec<u64>; MigrateType::COUNT],
    /// Blocks that are or were HIGHATOMIC: those alone may lie free beside a free buddy, because they did not merge.
    ever_highatomic: Vec<u64>,
    skip: Vec<u64>,
    /// How many hints are set in each stretch of `skip`, so that a walk can count those it passed without reading them.
    skip_set: Vec<u16>,
    huge: Vec<u64>,
    free: Vec<u64>,
    zone: Vec<u8>,
}

#[inline(always)]
fn get(bits: &[u64], block: usize) -> bool {
    bits[block >> 6] >> (block & 63) & 1 != 0
}
#[inline(always)]
fn put(bits: &mut [u64], block: usize, value: bool) {
    let (word, bit) = (&mut bits[block >> 6], 1u64 << (block & 63));
    if value { *word |= bit } else { *word &= !bit }
}

/// Which blocks a scanner stops at: those of the wanted types, less those with the skip hint set, huge, or starting
/// a large free block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockFilter {
    pub(crate) types: [bool; MigrateType::COUNT],
    pub(crate) honour_skip: bool,
    pub(crate) pass_huge: bool,
    pub(crate) pass_free: bool,
}

impl Pageblocks {
    pub(crate) fn new(blocks: usize) -> Pageblocks {
        let words = blocks.div_ceil(64);
        Pageblocks {
            types: [vec![0; words], vec![0; words], vec![0; words], vec![0; words]],
            ever_highatomic: vec![0; words],
            skip: vec![0; words],
            skip_set: vec![0; words.div_ceil(STRETCH)],
            huge: vec![0; words],
            free: vec![0; words],
            zone: vec![NO_ZONE; blocks],
        }
    }

    /// Number of pageblocks, holes included.
    pub fn len(&self) -> usize {
        self.zone.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.zone.is_empty()
    }

    /// The block's migratetype.
    #[inline(always)]
    pub fn migratetype(&self, block: usize) -> MigrateType {
        if get(&self.types[MigrateType::Movable.index()], block) {
            MigrateType::Movable
        } else if get(&self.types[MigrateType::Unmovable.index()], block) {
            MigrateType::Unmovable
        } else if get(&self.types[MigrateType::Reclaimable.index()], block) {
            MigrateType::Reclaimable
        } else {
            MigrateType::HighAtomic
        }
    }
    pub(crate) fn set_migratetype(&mut self, block: usize, to: MigrateType) {
        for t in MigrateType::ALL {
            put(&mut self.types[t.index()], block, t == to);
        }
        if to == MigrateType::HighAtomic {
            put(&mut self.ever_highatomic, block, true);
        }
    }
    /// Whether the block is or was HIGHATOMIC.
    pub(crate) fn was_highatomic(&self, block: usize) -> bool {
        get(&self.ever_highatomic, block)
    }
    /// Compaction's hint that the block is not worth scanning.
    #[inline(always)]
    pub fn skip(&self, block: usize) -> bool {
        get(&self.skip, block)
    }
    #[inline(always)]
    pub(crate) fn set_skip(&mut self, block: usize, value: bool) {
        let set = &mut self.skip_set[block / STRETCH_BLOCKS];
        match (get(&self.skip, block), value) {
            (false, true) => *set += 1,
            (true, false) => *set -= 1,
            _ => return,
        }
        put(&mut self.skip, block, value);
    }
    /// How many blocks of `[from, to)` have the skip hint set.
    pub(crate) fn count_skip(&self, from: usize, to: usize) -> u64 {
        let bits = |from: usize, to: usize| -> u64 {
            let mut n = 0;
            let mut at = from;
            while at < to {
                let end = ((at | 63) + 1).min(to);
                let range = (!0u64 << (at & 63)) & (!0 >> (63 - ((end - 1) & 63)));
                n += u64::from((self.skip[at >> 6] & range).count_ones());
                at = end;
            }
            n
        };
        let (first, last) = (from.div_ceil(STRETCH_BLOCKS), to / STRETCH_BLOCKS);
        if first >= last {
            return bits(from, to);
        }
        let whole: u64 = self.skip_set[first..last].iter().map(|&n| u64::from(n)).sum();
        bits(from, first * STRETCH_BLOCKS) + whole + bits(last * STRETCH_BLOCKS, to)
    }
    /// Whether the block is one allocated huge page (or half of a larger one).
    #[inline(always)]
    pub fn is_huge(&self, block: usize) -> bool {
        get(&self.huge, block)
    }
    #[inline(always)]
    pub(crate) fn set_huge(&mut self, block: usize, value: bool) {
        put(&mut self.huge, block, value);
    }
    /// Whether a free block of order 9 or 10 starts here. The second half of one of order 10 does not count: the
    /// kernel knows a free block by its first frame, and looks no further back than the pageblock's.
    #[inline(always)]
    pub fn is_free(&self, block: usize) -> bool {
        get(&self.free, block)
    }
    #[inline(always)]
    pub(crate) fn set_free(&mut self, block: usize, value: bool) {
        put(&mut self.free, block, value);
    }
    /// The zone the block belongs to; `None` in a hole.
    #[inline(always)]
    pub fn zone(&self, block: usize) -> Option<ZoneId> {
        match self.zone[block] {
            NO_ZONE => None,
            z => Some(ZoneId::new(z as usize)),
        }
    }
    /// The zone of an allocated frame.
    ///
    /// # Panics
    /// If the frame is in no zone: it cannot have been allocated.
    #[inline(always)]
    pub fn zone_of(&self, pfn: Pfn) -> ZoneId {
        let z = self.zone[pfn.pageblock()];
        assert!(z != NO_ZONE, "pfn {pfn} belongs to no zone");
        ZoneId::new(z as usize)
    }
    pub(crate) fn set_zone(&mut self, block: usize, zone: ZoneId) {
        self.zone[block] = zone.index() as u8;
    }

    /// How many blocks of `[from, to)` are of type `t`.
    pub fn count(&self, t: MigrateType, from: usize, to: usize) -> u64 {
        (from..to).filter(|&b| get(&self.types[t.index()], b)).count() as u64
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

    /// Walks blocks upwards from `from` to the first of `[from, to)` that passes the filter. Also returns the last
    /// block before it whose skip hint is clear (or ignored) but which did not pass: seen, and found unsuitable.
    ///
    /// A walk over a terabyte visits 8,192 words hundreds of thousands of times: whole stretches in which no block
    /// passes are stepped over without looking at single words.
    pub(crate) fn first(&self, from: usize, to: usize, f: &BlockFilter) -> (Option<usize>, Option<usize>) {
        if from >= to {
            return (None, None);
        }
        let seen = |w: usize| if f.honour_skip { !self.skip[w] } else { !0 };
        let (first, last) = (from >> 6, (to - 1) >> 6);
        let range = |w: usize| {
            let low = if w == first { !0 << (from & 63) } else { !0u64 };
            let high = if w == last { !0 >> (63 - ((to - 1) & 63)) } else { !0u64 };
            low & high
        };
        let mut w = first;
        let mut found = None;
        while w <= last {
            if w > first && w + STRETCH <= last && self.stretch_is_empty(w, f) {
                w += STRETCH;
                continue;
            }
            let passing = self.word(w, f) & range(w);
            if passing != 0 {
                found = Some((w << 6) + passing.trailing_zeros() as usize);
                break;
            }
            w += 1;
        }
        // Backwards from where the walk ended to the last block it saw: rarely far.
        let end = found.unwrap_or(to);
        let unsuitable = (first..=(end.max(from + 1) - 1) >> 6).rev().find_map(|w| {
            let before = if end >> 6 == w { (1 << (end & 63)) - 1 } else { !0 };
            let seen = seen(w) & range(w) & before;
            (seen != 0).then(|| (w << 6) + 63 - seen.leading_zeros() as usize)
        });
        (found, unsuitable)
    }

    /// Whether no block of the words `[w, w + STRETCH)` passes. The loops have a fixed length, so that they become
    /// vector instructions.
    #[inline(always)]
    fn stretch_is_empty(&self, w: usize, f: &BlockFilter) -> bool {
        let of = |bits: &[u64]| -> [u64; STRETCH] { bits[w..w + STRETCH].try_into().expect("a stretch of words") };
        let mut passing = [0u64; STRETCH];
        if f.types == [true; MigrateType::COUNT] {
            passing = [!0; STRETCH];
        } else {
            for (t, _) in f.types.iter().enumerate().filter(|(_, wanted)| **wanted) {
                passing.iter_mut().zip(of(&self.types[t])).for_each(|(p, t)| *p |= t);
            }
        }
        for (applies, without) in [(f.honour_skip, &self.skip), (!f.pass_huge, &self.huge), (!f.pass_free, &self.free)]
        {
            if applies {
                passing.iter_mut().zip(of(without)).for_each(|(p, x)| *p &= !x);
            }
        }
        passing.iter().fold(0, |all, p| all | p) == 0
    }

    /// Walks blocks downwards from `from` to the first of `[to, from]` that passes the filter.
    pub(crate) fn last(&self, from: usize, to: usize, f: &BlockFilter) -> Option<usize> {
        last_of(from, to, |w| self.word(w, f))
    }

    /// The first block of `[from, to)` that a reset of the hints has to sample for pages to move: one with the skip
    /// hint set and not huge or, while none has been `found`, any that is not huge.
    pub(crate) fn first_to_sample(&self, from: usize, to: usize, found: bool) -> Option<usize> {
        first_of(from, to, |w| if found { self.skip[w] & !self.huge[w] } else { !self.huge[w] })
    }

    /// The same downwards, for a block with free pages to move to: until one has been found, any movable one.
    pub(crate) fn last_to_sample(&self, from: usize, to: usize, found: bool) -> Option<usize> {
        let movable = &self.types[MigrateType::Movable.index()];
        last_of(from, to, |w| if found { self.skip[w] & !self.huge[w] } else { movable[w] & !self.huge[w] })
    }
}

/// The first block of `[from, to)` whose bit is set, going upwards.
#[inline(always)]
fn first_of(from: usize, to: usize, word: impl Fn(usize) -> u64) -> Option<usize> {
    if from >= to {
        return None;
    }
    let mut range = !0u64 << (from & 63);
    for w in from >> 6..=(to - 1) >> 6 {
        let set = word(w) & range;
        if set != 0 {
            let b = (w << 6) + set.trailing_zeros() as usize;
            return (b < to).then_some(b);
        }
        range = !0;
    }
    None
}

/// The first block of `[to, from]` whose bit is set, going downwards.
#[inline(always)]
fn last_of(from: usize, to: usize, word: impl Fn(usize) -> u64) -> Option<usize> {
    if from < to {
        return None;
    }
    let mut range = !0u64 >> (63 - (from & 63));
    for w in (to >> 6..=from >> 6).rev() {
        let set = word(w) & range;
        if set != 0 {
            let b = (w << 6) + 63 - set.leading_zeros() as usize;
            return (b >= to).then_some(b);
        }
        range = !0;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: BlockFilter = BlockFilter { types: [true; 4], honour_skip: true, pass_huge: false, pass_free: true };

    #[test]
    fn walking_by_words_finds_what_walking_by_blocks_finds() {
        let mut p = Pageblocks::new(300);
        for b in 0..300 {
            p.set_migratetype(b, MigrateType::from_index(b % 3));
            p.set_skip(b, b % 7 != 0);
            p.set_huge(b, b % 5 == 0);
        }
        let passes = |b: usize| !p.skip(b) && !p.is_huge(b);
        for from in 0..300 {
            for to in [from, from + 1, 200, 300] {
                let up = (from..to).find(|&b| passes(b));
                let unsuitable = (from..up.unwrap_or(to)).rfind(|&b| !p.skip(b));
                assert_eq!(p.first(from, to, &ALL), (up, unsuitable), "upwards in {from}..{to}");
                let down = (from.min(to)..=to.min(299)).rfind(|&b| passes(b));
                assert_eq!(p.last(to.min(299), from.min(to), &ALL), down, "downwards from {to} to {from}");
            }
        }
    }

    #[test]
    fn hints_are_counted_by_stretches_as_one_by_one() {
        let mut p = Pageblocks::new(5000);
        for b in 0..5000 {
            p.set_skip(b, b % 7 < 3);
            p.set_skip(b, b % 5 < 3);
        }
        for (from, to) in [(0, 5000), (0, 0), (1, 1023), (1000, 1100), (64, 4096), (1023, 2049), (4095, 5000), (70, 71)]
        {
            assert_eq!(p.count_skip(from, to), (from..to).filter(|&b| p.skip(b)).count() as u64, "{from}..{to}");
        }
    }

    #[test]
    fn a_block_has_exactly_one_type() {
        let mut p = Pageblocks::new(2);
        for t in MigrateType::ALL {
            p.set_migratetype(1, t);
            assert_eq!(p.migratetype(1), t);
            assert_eq!(MigrateType::ALL.iter().filter(|t| p.count(**t, 1, 2) == 1).count(), 1);
        }
    }
}
