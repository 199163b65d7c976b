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
use std::ops::Range;

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
    /// Marks a page of a file dirty after a write to it; the pages that became dirty with it, which
    /// are those of its folio.
    ///
    /// # Errors
    /// If its disk has no block left for it.
    pub(crate) fn dirty_page(&mut self, inode: u32, index: u32, pfn: Pfn, now: u64) -> Result<u32, SimError> {
        let folio = self.pages.frames.head(pfn);
        let flags = self.pages.frames.flags(folio);
        self.mem.mark_dirty(folio);
        let number = match flags.order() {
            Order::ZERO if flags.any(Flags::DIRTY) => return Ok(0),
            Order::ZERO => self.mem.frames().owner(pfn, Order::ZERO),
            _ => self.pages.files().number(inode, index),
        };
        if flags.any(Flags::DIRTY) && self.pages.files().is_tagged(number, Tag::Dirty) {
            return Ok(0);
        }
        let pages = if flags.any(Flags::DIRTY) { 0 } else { flags.order().pages() };
        let zone = self.mem.pageblocks().zone_of(folio);
        let node = self.mem.zone(zone).node;
        let is_written = flags.any(Flags::WRITEBACK);
        let files = self.pages.files();
        let flusher = files.page_dirtied((inode, index), number, (node, pages), is_written, now)?;
        files.events_of(zone).dirtied += u64::from(pages);
        files.by_node.with(folio).dirty += u64::from(pages);
        flusher.into_iter().for_each(|flusher| self.queues.wake_all(flusher));
        self.pages.frames.set(folio, Flags::DIRTY);
        Ok(pages)
    }

    /// Cancels the writeback of a dirty folio that is being truncated.
    pub(crate) fn forget_dirty(&mut self, inode: u32, index: u32, folio: Pfn) {
        let flags = self.pages.frames.flags(folio);
        if !flags.any(Flags::DIRTY) {
            return;
        }
        let order = flags.order();
        let number = self.mem.frames().owner(folio, order);
        let first = index & !(order.pages() - 1);
        let reserved = self.pages.files().reserved_in(inode, first..first + order.pages());
        self.pages.clear_dirty(inode, folio, number);
        let node = node_of(&self.mem, folio);
        self.pages.files().dirty_forgotten(inode, order.pages(), reserved, node);
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
            pass.left = pass.left.saturating_sub(u64::from(pages));
        }
    }

    /// Submits the run of dirty pages that begins at `from`, up to one under writeback, and what
    /// else is dirty of the first folio and the last; the number of pages from `from` on.
    pub(crate) fn write_run(&mut self, cpu: CpuId, inode: u32, from: u32, most: u32) -> u32 {
        let first = self.first_dirty_of_folio(inode, from);
        let pages = self.dirty_run(inode, first, most);
        if pages == 0 {
            return 0;
        }
        let end = first + self.request_of_dirty(inode, first, pages).1;
        // The last folio goes as a whole, though its pages may lie apart.
        let (_, last) = self.pages.folio_of(inode, end - 1);
        let rest = self.dirty_ranges(inode, end..last.end);
        let mut at = first;
        while at < end {
            let (folio, all) = self.pages.folio_of(inode, at);
            let number = self.mem.frames().owner(folio, self.pages.frames.flags(folio).order());
            self.pages.begin_writeback(inode, folio, number);
            at = all.end;
        }
        let disk = self.pages.files().disk_of(inode);
        let behind = if rest.is_empty() { end } else { last.end };
        for mut range in std::iter::once(first..end).chain(rest) {
            while !range.is_empty() {
                let (block, pages) = self.request_of_dirty(inode, range.start, range.len() as u32);
                let index = range.start;
                range.start += pages;
                self.pages.note_request(inode, index..range.start);
                let io = Io { target: Target::File { inode, index }, pages, write: true, cpu };
                self.pages.devices.add_to_plug(disk, block, io);
            }
        }
        behind - from
    }

    /// The first dirty page of the folio that a dirty page is in.
    fn first_dirty_of_folio(&mut self, inode: u32, index: u32) -> u32 {
        let (_, all) = self.pages.folio_of(inode, index);
        match all.len() {
            1 => index,
            _ => self.pages.files().next_tagged(inode, all.start, Tag::Dirty).map_or(index, |first| first.min(index)),
        }
    }

    /// The pages in a row from `first` on that are dirty, in folios that can be written now.
    fn dirty_run(&self, inode: u32, first: u32, most: u32) -> u32 {
        let may_go = |index: u32| {
            let files = self.pages.files.as_ref()?;
            let pfn = files.find(inode, index)?;
            let flags = self.pages.frames.flags(self.pages.frames.head(pfn));
            let is_dirty = flags.any(Flags::DIRTY)
                && (flags.order() == Order::ZERO || files.is_tagged(files.number(inode, index), Tag::Dirty));
            (is_dirty && !flags.any(Flags::WRITEBACK | Flags::LOCKED)).then_some(())
        };
        (first..first.saturating_add(most)).take_while(|i| may_go(*i).is_some()).count() as u32
    }

    /// The ranges of dirty pages among these, each without a gap.
    fn dirty_ranges(&mut self, inode: u32, mut pages: Range<u32>) -> Vec<Range<u32>> {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        while !pages.is_empty()
            && let Some(index) = self.pages.files().next_tagged(inode, pages.start, Tag::Dirty)
            && index < pages.end
        {
            match ranges.last_mut() {
                Some(last) if last.end == index => last.end += 1,
                _ => ranges.push(index..index + 1),
            }
            pages.start = index + 1;
        }
        ranges
    }

    /// The block of a page that will be written, and how many of these pages lie in a row with it.
    /// Blocks reserved for them are chosen now.
    fn request_of_dirty(&mut self, inode: u32, first: u32, pages: u32) -> (u32, u32) {
        let files = self.pages.files();
        let extents = &files.inodes[inode].extents;
        let hole = extents.hole(first, pages);
        if extents.find(first).is_none() && hole > 0 {
            files.allocate_reserved(inode, first, hole);
        }
        let (block, in_a_row) = files.inodes[inode].extents.find(first).expect("it has been allocated");
        (block, pages.min(in_a_row))
    }

    /// Completes a folio's writeback.
    pub(crate) fn end_writeback(&mut self, inode: u32, folio: Pfn, cpu: CpuId) {
        let flags = self.pages.frames.flags(folio);
        let order = flags.order();
        let number = self.mem.frames().owner(folio, order);
        let again = flags.any(Flags::DIRTY);
        let zone = self.mem.pageblocks().zone_of(folio);
        let node = self.mem.zone(zone).node;
        self.pages.frames.clear(folio, Flags::WRITEBACK);
        let files = self.pages.files();
        files.folio_written(inode, number, (node, order.pages()), again);
        files.events_of(zone).written += u64::from(order.pages());
        self.mem.end_writeback(cpu, folio, again);
        (0..order.pages()).for_each(|_| self.daemons.page_written(node, &mut self.queues));
        self.wake_waiters(folio);
    }
}
