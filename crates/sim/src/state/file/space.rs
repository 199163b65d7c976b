//! Block allocation of files, in runs as long as possible.
//!
//! Blocks are allocated at writeback (ext4's delayed allocation), so that data appended bit by bit
//! still lies together: behind the file's last block if that is free, else in the first free run
//! after it that is long enough, else in the longest run found.

use std::collections::BTreeMap;

/// A run of a file's blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// Index of its first page in the file.
    pub(crate) index: u32,
    /// First block on the disk.
    pub(crate) block: u32,
    pub(crate) blocks: u32,
}

/// The free blocks of a disk.
#[derive(Clone)]
pub(crate) struct Space {
    /// First block and length of each free run.
    free: BTreeMap<u32, u32>,
    blocks: u32,
    all: u32,
}

impl Space {
    /// A disk with these blocks free.
    pub(crate) fn new(blocks: std::ops::Range<u32>) -> Space {
        let free = blocks.end - blocks.start;
        Space { free: BTreeMap::from([(blocks.start, free)]), blocks: free, all: free }
    }

    pub(crate) fn free_blocks(&self) -> u32 {
        self.blocks
    }

    pub(crate) fn all_blocks(&self) -> u32 {
        self.all
    }

    /// Takes up to this many blocks, from `goal` on if they are free; the first, and how many.
    /// `None` if none is free.
    pub(crate) fn take(&mut self, goal: u32, wanted: u32) -> Option<(u32, u32)> {
        let around = self.free.range(..=goal).next_back().filter(|(at, length)| *at + *length > goal);
        let (run, first) = match around {
            Some((at, _)) => (*at, goal),
            None => {
                let behind = self.free.range(goal..).find(|(_, length)| **length >= wanted);
                let any = || self.free.iter().find(|(_, length)| **length >= wanted);
                let longest = || self.free.iter().max_by_key(|(at, length)| (**length, std::cmp::Reverse(**at)));
                let (at, _) = behind.or_else(any).or_else(longest)?;
                (*at, *at)
            }
        };
        let length = self.free.remove(&run)?;
        let taken = wanted.min(run + length - first);
        if first > run {
            self.free.insert(run, first - run);
        }
        if first + taken < run + length {
            self.free.insert(first + taken, run + length - first - taken);
        }
        self.blocks -= taken;
        Some((first, taken))
    }

    pub(crate) fn give_back(&mut self, mut first: u32, mut blocks: u32) {
        self.blocks += blocks;
        if let Some((&at, &length)) = self.free.range(..first).next_back()
            && at + length == first
        {
            (first, blocks) = (at, length + blocks);
        }
        if let Some(length) = self.free.remove(&(first + blocks)) {
            blocks += length;
        }
        self.free.insert(first, blocks);
    }
}

/// The runs of a file's blocks.
#[derive(Clone, Default)]
pub(crate) struct Extents(Vec<Extent>);

impl Extents {
    /// The block of a page, and the number of pages contiguous from there on; `None` if it has no
    /// block.
    pub(crate) fn find(&self, index: u32) -> Option<(u32, u32)> {
        let at = self.0.partition_point(|extent| extent.index <= index).checked_sub(1)?;
        let Extent { index: first, block, blocks } = self.0[at];
        (index - first < blocks).then(|| (block + (index - first), blocks - (index - first)))
    }

    /// The number of pages without a block from `index` on, `most` at most.
    pub(crate) fn hole(&self, index: u32, most: u32) -> u32 {
        let next = self.0.get(self.0.partition_point(|extent| extent.index <= index));
        next.map_or(most, |extent| most.min(extent.index - index))
    }

    /// The block behind the last one before `index`.
    pub(crate) fn behind(&self, index: u32) -> Option<u32> {
        let before = self.0.partition_point(|extent| extent.index <= index).checked_sub(1)?;
        Some(self.0[before].block + self.0[before].blocks)
    }

    /// Adds a run in a hole; whether it could not be merged into another.
    pub(crate) fn add(&mut self, new: Extent) -> bool {
        let at = self.0.partition_point(|extent| extent.index < new.index);
        if let Some(before) = at.checked_sub(1).and_then(|i| self.0.get_mut(i))
            && before.index + before.blocks == new.index
            && before.block + before.blocks == new.block
        {
            before.blocks += new.blocks;
            return false;
        }
        self.0.insert(at, new);
        true
    }

    /// Removes all blocks from a page on.
    pub(crate) fn cut(&mut self, index: u32) -> Vec<Extent> {
        let at = self.0.partition_point(|extent| extent.index + extent.blocks <= index);
        let mut gone = self.0.split_off(at);
        if let Some(first) = gone.first_mut()
            && first.index < index
        {
            let stays = index - first.index;
            self.0.push(Extent { blocks: stays, ..*first });
            *first = Extent { index, block: first.block + stays, blocks: first.blocks - stays };
        }
        gone
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Extent> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_blocks_follow_the_last_run() {
        let mut space = Space::new(10..1000);
        let mut extents = Extents::default();
        assert_eq!(space.take(10, 8), Some((10, 8)));
        assert!(extents.add(Extent { index: 0, block: 10, blocks: 8 }));
        assert_eq!(space.take(extents.behind(8).expect("a run"), 8), Some((18, 8)));
        assert!(!extents.add(Extent { index: 8, block: 18, blocks: 8 }), "the same run goes on");
        assert_eq!((extents.find(15), extents.find(16), extents.hole(16, 5)), (Some((25, 1)), None, 5));
        extents.add(Extent { index: 20, block: 500, blocks: 1 });
        assert_eq!((extents.hole(16, 9), extents.find(20)), (4, Some((500, 1))));
        let gone = extents.cut(10).into_iter().map(|e| (e.index, e.block, e.blocks)).collect::<Vec<_>>();
        assert_eq!(gone, [(10, 20, 6), (20, 500, 1)]);
        assert_eq!((extents.find(9), extents.find(10)), (Some((19, 1)), None));
    }

    #[test]
    fn blocks_are_taken_in_a_row_if_they_can_be_and_join_when_they_come_back() {
        let mut space = Space::new(0..100);
        assert_eq!([space.take(0, 10), space.take(10, 10), space.take(20, 10)], [0, 10, 20].map(|at| Some((at, 10))));
        space.give_back(10, 10);
        assert_eq!(space.take(5, 20), Some((30, 20)), "the hole is too short");
        assert_eq!(space.take(12, 5), Some((12, 5)), "where it is wanted");
        assert_eq!(space.take(90, 60), Some((90, 10)), "and as much as there is");
        assert_eq!(space.take(0, 60), Some((50, 40)), "the longest");
        assert_eq!(space.free_blocks(), 5);
        [(0, 10), (12, 5), (20, 10), (30, 70)].into_iter().for_each(|(at, n)| space.give_back(at, n));
        assert_eq!((space.take(0, 100), space.take(0, 1)), (Some((0, 100)), None));
    }
}
