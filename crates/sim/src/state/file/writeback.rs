//! Bookkeeping of dirty pages: the files each flusher has to write, and reserved blocks.
//!
//! A page's block on the disk is reserved when it becomes dirty and chosen at writeback, so that
//! pages written together lie together (ext4's delayed allocation).

use super::tree::Tag;
use super::{Files, Writing};
use crate::base::error::SimError;
use crate::base::queue::{QueueId, Queues};
use kontig_mm::NodeId;
use std::ops::Range;

impl Files {
    /// Prefetches, into the host's cache, the files that will be written back soon: of those in a
    /// while the inode, then where its tree lies, and then the node.
    pub(crate) fn fetch_queued(&self, disk: u8) {
        const NODE: usize = 3;
        const LEAF: usize = 7;
        const INODE: usize = 11;
        for (at, inode) in self.writing[usize::from(disk)].queued.iter().take(INODE + 1).enumerate() {
            match at {
                NODE => self.prefetch_node(inode, self.inodes[inode].written_to),
                LEAF => self.prefetch_leaf(inode, self.inodes[inode].written_to),
                INODE => self.inodes.prefetch(inode),
                _ => {}
            }
        }
    }

    /// Pages of a node that are dirty or under writeback.
    pub(crate) fn write_pending(&self, node: NodeId) -> u64 {
        self.pending[node.index()]
    }

    fn writing_of(&mut self, inode: u32) -> &mut Writing {
        let disk = self.disk_of(inode);
        self.writing(disk)
    }

    /// Records that a page has become dirty, perhaps during its writeback, and with it this many
    /// pages of its folio: none, if the folio was dirty. Returns the flusher to wake, if it may be
    /// idle.
    ///
    /// # Errors
    /// If its disk has no block left for it.
    pub(crate) fn page_dirtied(
        &mut self,
        (inode, index): (u32, u32),
        number: u32,
        (node, pages): (NodeId, u32),
        is_written: bool,
        now: u64,
    ) -> Result<Option<QueueId>, SimError> {
        let disk = usize::from(self.disk_of(inode));
        if self.inodes[inode].extents.find(index).is_none() {
            let w = &mut self.writing[disk];
            if self.disks[disk].free_blocks() <= w.reserved {
                return Err(SimError::DiskFull { name: self.inodes[inode].name });
            }
            w.reserved += 1;
        }
        self.tag(number, Tag::Dirty, true);
        let i = &mut self.inodes[inode];
        i.dirty += pages;
        i.blocks_written = false;
        let w = &mut self.writing[disk];
        let mut flusher = None;
        if !w.queued.has(inode) && !w.taken.has(inode) {
            i.dirty_since = now;
            w.queued.add(inode);
            flusher = (w.queued.len() == 1).then_some(w.flusher);
        }
        let pages = u64::from(pages);
        w.bandwidth.dirtied += pages;
        if !is_written {
            w.bandwidth.pending += pages;
            self.pending[node.index()] += pages;
        }
        self.counts.dirty += pages;
        self.counts.dirtied += pages;
        Ok(flusher)
    }

    /// Records that dirty pages of a folio will not be written, of which `reserved` had a block
    /// reserved.
    pub(crate) fn dirty_forgotten(&mut self, inode: u32, pages: u32, reserved: u32, node: NodeId) {
        self.pending[node.index()] -= u64::from(pages);
        let w = self.writing_of(inode);
        w.bandwidth.pending -= u64::from(pages);
        w.reserved -= reserved;
    }

    /// Of these pages, those that are dirty and have no block yet.
    pub(crate) fn reserved_in(&self, inode: u32, mut pages: Range<u32>) -> u32 {
        let mut reserved = 0;
        while let Some(index) = self.next_tagged(inode, pages.start, Tag::Dirty).filter(|at| *at < pages.end) {
            reserved += u32::from(self.inodes[inode].extents.find(index).is_none());
            pages.start = index + 1;
        }
        reserved
    }

    /// Chooses the blocks of pages that had them reserved.
    pub(crate) fn allocate_reserved(&mut self, inode: u32, first: u32, pages: u32) {
        self.writing_of(inode).reserved -= pages;
        self.allocate(inode, first, pages);
    }

    /// Records the end of a folio's writeback; `again` if it has become dirty meanwhile.
    pub(crate) fn folio_written(&mut self, inode: u32, number: u32, (node, pages): (NodeId, u32), again: bool) {
        self.tag(number, Tag::Writeback, false);
        let pages = u64::from(pages);
        self.counts.writeback -= pages;
        self.counts.written += pages;
        let bandwidth = &mut self.writing_of(inode).bandwidth;
        bandwidth.written += pages;
        if !again {
            bandwidth.pending -= pages;
            self.pending[node.index()] -= pages;
        }
    }

    /// Wakes all flushers to write everything that is dirty.
    pub(crate) fn want_all_written(&mut self, queues: &mut Queues) {
        for w in &mut self.writing {
            w.all_wanted = true;
            queues.wake_all(w.flusher);
        }
    }
}
