//! ext4's inode tables: blocks of a disk that hold sixteen inodes each.
//!
//! They are in the page cache as pages of the disk itself. The block of an inode is read when the
//! inode is, and 32 blocks around it are read ahead; since 5.7 these are asked for as unmovable
//! (`ext4_sb_breadahead_unmovable`), so that pages which reclaim frees again and again lie in
//! unmovable blocks. Left out are the blocks of new inodes, which nothing reads, and writes.
//! Source: `fs/ext4/inode.c` (`__ext4_get_inode_loc`).

use super::{FileSystem, Files};
use crate::state::file::space::Extent;
use kontig_program::FileName;
use std::collections::BTreeSet;
use std::ops::Range;

/// Inodes of 256 bytes in a block.
const IN_BLOCK: u32 = 16;
/// Blocks read at a time: `inode_readahead_blks`.
const AHEAD: u32 = 32;
/// Inodes from one file that was there before the run to the next: between two that a program uses
/// lie others of the same tree. A traced build read 0.38 blocks for each inode it used.
const OF_LAID: u32 = 6;
/// A file system has an inode for every 64 blocks of its disk at least (`mke2fs`: one for 16 KiB).
const SHARE: u32 = 64;

/// The inode numbers of a disk.
#[derive(Clone, Default)]
pub(super) struct InodeTable {
    /// The file that stands for the disk's own pages, once one was read.
    file: Option<u32>,
    /// The first number never used, and those given back.
    end: u32,
    free: BTreeSet<u32>,
}

impl InodeTable {
    /// A number for a file that is made: the lowest that is free.
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }

    /// A number for a file that was there before the run.
    pub(super) fn take_laid(&mut self) -> u32 {
        self.end += OF_LAID;
        self.end - OF_LAID
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.free.insert(number);
    }

    /// The block that holds an inode, and those read with it.
    fn blocks(&self, number: u32) -> (u32, Range<u32>) {
        let (block, end) = (number / IN_BLOCK, self.end.div_ceil(IN_BLOCK));
        let first = block / AHEAD * AHEAD;
        (block, first..(first + AHEAD).min(end))
    }
}

impl Files {
    /// Where a file's inode lies: the disk's own file, the block, and those read ahead with it.
    /// `None` with a file system that reads inodes otherwise, and for inodes beyond the tables that
    /// a disk of this size has.
    pub(crate) fn inode_block(&mut self, inode: u32) -> Option<(u32, u32, Range<u32>)> {
        if self.filesystem(inode) != FileSystem::Ext4 {
            return None;
        }
        let (disk, number) = (self.disk_of(inode), self.inodes[inode].number);
        let table = usize::from(disk);
        let file = match self.tables[table].file {
            Some(file) => file,
            None => {
                let file = self.add_of_disk(disk, 0, self.inodes_of(disk));
                *self.tables[table].file.insert(file)
            }
        };
        let (block, ahead) = self.tables[table].blocks(number);
        (ahead.end <= self.inodes[file].length).then_some((file, block, ahead))
    }

    /// Adds a file that stands for pages of a disk itself. There are several such files, told apart
    /// by their number.
    pub(crate) fn add_of_disk(&mut self, disk: u8, number: u64, blocks: u32) -> u32 {
        // No program uses such a name.
        let file = self.add(FileName::new(disk, u64::MAX - number), 0);
        let of_disk = &mut self.inodes[file];
        of_disk.pin();
        of_disk.length = blocks;
        // Where it lies on the disk matters to its seeks alone, so it takes no room.
        of_disk.extents.add(Extent { index: 0, block: 0, blocks });
        file
    }

    /// Blocks of a disk's inode tables.
    fn inodes_of(&self, disk: u8) -> u32 {
        self.disks[usize::from(disk)].all_blocks() / SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_there_lie_among_others_and_new_ones_side_by_side() {
        let mut table = InodeTable::default();
        let laid: BTreeSet<u32> = (0..1170).map(|_| table.take_laid() / IN_BLOCK).collect();
        assert_eq!(laid.len(), 439, "0.38 blocks a file");
        let made: BTreeSet<u32> = (0..1600).map(|_| table.take() / IN_BLOCK).collect();
        assert_eq!(made.len(), 101);
        table.give_back(7);
        assert_eq!((table.take(), table.take()), (7, 1170 * 6 + 1600));
    }

    #[test]
    fn an_inode_is_read_with_the_blocks_around_it_that_hold_inodes() {
        let table = InodeTable { end: 16 * 70, ..InodeTable::default() };
        assert_eq!(table.blocks(16 * 33 + 3), (33, 32..64));
        assert_eq!(table.blocks(16 * 69), (69, 64..70));
    }
}
