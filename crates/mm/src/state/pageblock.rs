//! Per-pageblock state: migratetype, compaction's skip hint, and the zone of a block.
//!
//! Types and hints are bitmaps, one bit a block, so that compaction walks half a million blocks
//! sixty-four at a time, and faster still ([`walk`]).

mod walk;

pub(crate) use walk::BlockFilter;

use crate::types::{MigrateType, Pfn, ZoneId};
use alloc::vec;
use alloc::vec::Vec;
use walk::{Changed, Summary};

const NO_ZONE: u8 = u8::MAX;
/// Words of a bitmap whose set hints are counted together.
const STRETCH: usize = 16;
/// Pageblocks of a stretch.
const STRETCH_BLOCKS: usize = 64 * STRETCH;

/// The state of all pageblocks.
#[derive(Clone)]
pub struct Pageblocks {
    types: [Vec<u64>; MigrateType::COUNT],
    /// Blocks that are or were HIGHATOMIC: only those may lie free beside a free buddy, because
    /// they did not merge.
    ever_highatomic: Vec<u64>,
    skip: Vec<u64>,
    /// The number of hints set in each stretch of `skip`, so that a walk can count those it passed
    /// without reading them.
    skip_set: Vec<u16>,
    huge: Vec<u64>,
    free: Vec<u64>,
    zone: Vec<u8>,
    summary: Vec<Summary>,
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

impl Pageblocks {
    pub(crate) fn new(blocks: usize) -> Pageblocks {
        let words = blocks.div_ceil(64);
        let mut new = Pageblocks {
            types: [vec![0; words], vec![0; words], vec![0; words], vec![0; words]],
            ever_highatomic: vec![0; words],
            skip: vec![0; words],
            skip_set: vec![0; words.div_ceil(STRETCH)],
            huge: vec![0; words],
            free: vec![0; words],
            zone: vec![NO_ZONE; blocks],
            summary: vec![Summary::default(); words.div_ceil(64)],
        };
        (0..words).for_each(|w| new.sum_up(w, Changed::All));
        new
    }

    /// Number of pageblocks, holes included.
    pub fn len(&self) -> usize {
        self.zone.len()
    }
    /// Whether the machine has no pageblock.
    pub fn is_empty(&self) -> bool {
        self.zone.is_empty()
    }

    /// The migratetype of the block.
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
        self.sum_up(block >> 6, Changed::Types);
        if to == MigrateType::HighAtomic {
            put(&mut self.ever_highatomic, block, true);
        }
    }
    /// Whether the block is or was HIGHATOMIC.
    pub(crate) fn was_highatomic(&self, block: usize) -> bool {
        get(&self.ever_highatomic, block)
    }
    /// Notes that the block was HIGHATOMIC, for a state of which the past is not known.
    pub(crate) fn note_highatomic(&mut self, block: usize) {
        put(&mut self.ever_highatomic, block, true);
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
        self.sum_up(block >> 6, Changed::Skip);
    }
    /// Blocks of `[from, to)` with the skip hint set.
    #[inline]
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
        if (from | to).is_multiple_of(STRETCH_BLOCKS) {
            return whole;
        }
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
        self.sum_up(block >> 6, Changed::Huge);
    }
    /// Whether a free block of order 9 or 10 starts here. The second half of a block of order 10
    /// does not count: the kernel knows a free block by its first frame, and looks no further back
    /// than the pageblock's.
    #[inline(always)]
    pub fn is_free(&self, block: usize) -> bool {
        get(&self.free, block)
    }
    #[inline(always)]
    pub(crate) fn set_free(&mut self, block: usize, value: bool) {
        put(&mut self.free, block, value);
        self.sum_up(block >> 6, Changed::Free);
    }
    /// The zone of the block; `None` in a hole.
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
    /// If the frame is in no zone, and so cannot have been allocated.
    #[inline(always)]
    pub fn zone_of(&self, pfn: Pfn) -> ZoneId {
        let z = self.zone[pfn.pageblock()];
        assert!(z != NO_ZONE, "pfn {pfn} belongs to no zone");
        ZoneId::new(z as usize)
    }
    pub(crate) fn set_zone(&mut self, block: usize, zone: ZoneId) {
        self.zone[block] = zone.index() as u8;
    }

    /// Blocks of `[from, to)` of type `t`.
    pub fn count(&self, t: MigrateType, from: usize, to: usize) -> u64 {
        (from..to).filter(|&b| get(&self.types[t.index()], b)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
