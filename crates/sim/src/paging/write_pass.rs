//! Writeback: submits a file's dirty pages in the order of their offsets.
//!
//! A page becomes dirty when it is written to. Its block on the disk is reserved then and chosen at
//! writeback, so that pages written together lie together (ext4's delayed allocation). A page
//! written to again during writeback becomes dirty again. Source: `fs/fs-writeback.c`,
//! `fs/ext4/inode.c` of 6.1.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::numa::node_of;
use crate::base::queue::QueueId;
use crate::device::{Io, Target};
use crate::kernel::Kernel;
use crate::state::file::Flags;
use crate::state::file::Tag;
use kontig_mm::{CpuId, Order, Pfn};

/// The most pages in one request (`BIO_MAX_VECS`).
const MOST_AT_ONCE: u32 = 256;

/// The reason that a pass stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Halt {
    /// All pages wanted were submitted, or none is dirty any more.
    Done,
    /// The turn has to end.
    Turn,
    /// The device takes no more writes until this queue is woken.
    Full(QueueId),
}

/// A walk over a file's dirty pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub(crate) inode: u32,
    pub(crate) next: u32,
    /// Pages that may still be written.
    pub(crate) left: u64,
}

impl Kernel {
    /// Marks a page of a file dirty after a write to it.
    ///
    /// # Errors
    /// If its disk has no block left for it.
    pub(crate) fn dirty_page(&mut self, inode: u32, index: u32, pfn: Pfn, now: u64) -> Result<(), SimError> {
        let number = self.mem.frames().owner(pfn, Order::ZERO);
        self.mem.mark_dirty(pfn);
        let flags = self.pages.frames.flags(pfn);
        if flags.any(Flags::DIRTY) {
            return Ok(());
        }
        let node = node_of(&self.mem, pfn);
        let is_written = flags.any(Flags::WRITEBACK);
        let flusher = self.pages.files().page_dirtied((inode, index), number, node, is_written, now)?;
        flusher.into_iter().for_each(|flusher| self.queues.wake_all(flusher));
        self.pages.frames.set(pfn, Flags::DIRTY);
        Ok(())
    }

    /// Cancels the writeback of a dirty page that is being truncated.
    pub(crate) fn forget_dirty(&mut self, inode: u32, index: u32, pfn: Pfn) {
        let number = self.mem.frames().owner(pfn, Order::ZERO);
        if !self.pages.clear_dirty(inode, pfn, number) {
            return;
        }
        let node = node_of(&self.mem, pfn);
        self.pages.files().dirty_forgotten(inode, index, node);
    }

    /// Writes dirty pages of a file, run by run.
    pub(crate) fn write_pass(&mut self, c: &mut Context, pass: &mut Pass) -> Halt {
        let page_ns = ns(self.costs.write_back);
        loop {
            let files = self.pages.files();
            if files.inodes.get(pass.inode).is_none() {
                return Halt::Done;
            }
            let disk = files.disk_of(pass.inode);
            let Some(first) = files.next_tagged(pass.inode, pass.next, Tag::Dirty).filter(|_| pass.left > 0) else {
                self.charge(&mut c.now);
                return Halt::Done;
            };
            if !self.pages.devices.device(disk).takes_writes() {
                self.charge(&mut c.now);
                if !self.pages.devices.device(disk).takes_writes() {
                    return Halt::Full(self.pages.devices.room(disk));
                }
            }
            if self.must_yield(c) {
                self.charge(&mut c.now);
                return Halt::Turn;
            }
            let most = u32::try_from(pass.left).unwrap_or(u32::MAX).min(MOST_AT_ONCE);
            let pages = self.write_run(c.cpu, pass.inode, first, most);
            c.now += page_ns * u64::from(pages);
            pass.next = first + pages.max(1);
            pass.left -= u64::from(pages);
        }
    }

    /// Submits the run of dirty pages that begins at `first`, up to one under writeback; the number
    /// of pages.
    pub(crate) fn write_run(&mut self, cpu: CpuId, inode: u32, first: u32, most: u32) -> u32 {
        let may_go = |k: &Kernel, index: u32| {
            let files = k.pages.files.as_ref()?;
            let pfn = files.find(inode, index)?;
            let flags = k.pages.frames.flags(pfn);
            (flags.any(Flags::DIRTY) && !flags.any(Flags::WRITEBACK | Flags::LOCKED)).then_some(pfn)
        };
        let mut pages = (first..first.saturating_add(most)).take_while(|i| may_go(self, *i).is_some()).count() as u32;
        if pages == 0 {
            return 0;
        }
        let files = self.pages.files();
        let disk = files.disk_of(inode);
        let extents = &files.inodes[inode].extents;
        let hole = extents.hole(first, pages);
        if extents.find(first).is_none() && hole > 0 {
            files.allocate_reserved(inode, first, hole);
        }
        let (block, in_a_row) = files.inodes[inode].extents.find(first).expect("it has been allocated");
        pages = pages.min(in_a_row);
        for index in first..first + pages {
            let pfn = self.pages.files().find(inode, index).expect("it is dirty, and there");
            let number = self.mem.frames().owner(pfn, Order::ZERO);
            self.pages.begin_writeback(inode, pfn, number);
        }
        let io = Io { target: Target::File { inode, index: first }, pages, write: true, cpu };
        self.pages.devices.plug(disk, block, io);
        pages
    }

    /// Completes a page's writeback.
    pub(crate) fn end_writeback(&mut self, inode: u32, pfn: Pfn, cpu: CpuId) {
        let number = self.mem.frames().owner(pfn, Order::ZERO);
        let again = self.pages.frames.flags(pfn).any(Flags::DIRTY);
        let node = node_of(&self.mem, pfn);
        self.pages.frames.clear(pfn, Flags::WRITEBACK);
        self.pages.files().page_written(inode, number, node, again);
        self.mem.end_writeback(cpu, pfn, again);
        self.daemons.page_written(node, &mut self.queues);
        self.wake_waiters(pfn);
    }
}
