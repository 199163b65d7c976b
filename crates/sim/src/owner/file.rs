//! The engine's questions about pages of files, mapped or not.
//!
//! Reclaim asks whether a mapped page was used, and unmaps it before freeing it. The mappings of a
//! file are kept with an object of no pages, as for anonymous memory.

use super::Pages;
use crate::device::{Io, Target};
use crate::state::file::{Flags, Readahead, Tag};
use crate::state::process::mapping::FileMap;
use kontig_mm::{MigrateOutcome, Order, PageState, Pfn, References, WriteOut};
use kontig_program::Region;
use std::ops::Range;

impl Pages {
    /// Maps a part of a file into a process. `None` if the range goes beyond the file.
    pub(crate) fn mmap_file(&mut self, process: u32, inode: u32, first: u32, pages: u32) -> Option<Region> {
        let files = self.files.as_mut()?;
        let i = &mut files.inodes[inode];
        if pages == 0 || first.checked_add(pages)? > i.length {
            return None;
        }
        let object = match i.object {
            Some(object) => object,
            None => *i.object.insert(self.objects.add(0)?),
        };
        i.pin();
        let file = FileMap { inode, first, readahead: Readahead::default() };
        Some(self.spaces.map_file(&mut self.objects, process, object, pages, file))
    }

    /// The folio that a file's page in memory is in: its first frame, and its pages in the file.
    #[inline]
    pub(crate) fn folio_of(&mut self, inode: u32, index: u32) -> (Pfn, Range<u32>) {
        let pfn = self.files().find(inode, index).expect("it is under I/O, and stays");
        let order = self.frames.flags(pfn).order();
        let first = index & !(order.pages() - 1);
        (pfn.block_start(order), first..first + order.pages())
    }

    /// Notes a request for some pages of a file, where it has only a part of a folio: the folio is
    /// done when all such parts are. Only its first and its last folio may lie beyond it.
    pub(crate) fn note_request(&mut self, inode: u32, pages: Range<u32>) {
        let mut ends_at = pages.start;
        for index in [pages.start, pages.end - 1] {
            if index < ends_at {
                break;
            }
            let (folio, all) = self.folio_of(inode, index);
            ends_at = all.end;
            let part = all.start.max(pages.start)..all.end.min(pages.end);
            if part != all {
                *self.parts.entry(folio).or_default() += part.len() as u32;
            }
        }
    }

    /// Whether a folio is done with a request for this many of its pages.
    pub(crate) fn is_done_with(&mut self, folio: Pfn, part: u32) -> bool {
        if self.parts.is_empty() {
            return true;
        }
        let Some(left) = self.parts.get_mut(&folio) else { return true };
        *left -= part;
        let is_done = *left == 0;
        if is_done {
            self.parts.remove(&folio);
        }
        is_done
    }

    /// Whether any page of a folio is mapped.
    #[inline(always)]
    pub(crate) fn is_folio_mapped(&self, folio: Pfn) -> bool {
        match self.frames.flags(folio).order() {
            Order::ZERO => self.mapcounts.is_mapped(folio),
            order => (0..order.pages()).any(|i| self.mapcounts.is_mapped(folio.plus(i))),
        }
    }

    /// The state of a file's folio.
    pub(crate) fn file_state(&mut self, pfn: Pfn, number: u32) -> PageState {
        let flags = self.frames.flags(pfn);
        let blocks_written = flags.any(Flags::DIRTY) && {
            let files = self.files();
            files.inodes[files.place(number).0].blocks_written
        };
        PageState {
            locked: flags.any(Flags::LOCKED),
            dirty: flags.any(Flags::DIRTY),
            blocks_written,
            writeback: flags.any(Flags::WRITEBACK),
            private: flags.any(Flags::PRIVATE | Flags::HELD),
            mapped: self.is_folio_mapped(pfn),
            ..PageState::default()
        }
    }

    /// Counts the mappings through which a file's folio was accessed, and clears the accessed bits.
    pub(crate) fn file_references(&mut self, pfn: Pfn, number: u32) -> References {
        let (inode, index) = self.files().place(number);
        let Some(object) = self.files().inodes[inode].object else { return References::default() };
        let pages = self.frames.flags(pfn).order().pages();
        let mut ptes = 0;
        for &mapping in self.objects.mappings(object) {
            let young = |i| self.spaces.take_young(mapping, index + i, pfn.plus(i));
            ptes += u32::from((0..pages).map(young).fold(false, |any, one| any | one));
        }
        References { ptes, ..References::default() }
    }

    /// Unmaps a file's folio from all page tables.
    pub(crate) fn unmap_file_page(&mut self, pfn: Pfn, number: u32) -> bool {
        let (inode, index) = self.files().place(number);
        let order = self.frames.flags(pfn).order();
        if let Some(object) = self.files().inodes[inode].object {
            for mapping in self.objects.mappings(object) {
                for i in 0..order.pages() {
                    self.shootdowns += u64::from(self.spaces.unmap_page(*mapping, index + i, pfn.plus(i)));
                }
            }
        }
        for page in (0..order.pages()).map(|i| pfn.plus(i)) {
            let was_mapped = self.mapcounts.is_mapped(page);
            self.files().by_node.with(page).mapped -= u64::from(was_mapped);
            self.mapcounts.drop_all(page);
        }
        true
    }

    /// Moves a file's folio to other frames, unless it is under I/O or its file system holds it.
    pub(crate) fn migrate_file(&mut self, from: Pfn, to: Pfn, number: u32) -> MigrateOutcome {
        let flags = self.frames.flags(from);
        if flags.any(Flags::LOCKED | Flags::WRITEBACK | Flags::HELD) {
            return MigrateOutcome::Busy;
        }
        let order = flags.order();
        let (inode, index) = self.files().place(number);
        if let Some(object) = self.files().inodes[inode].object {
            for mapping in self.objects.mappings(object) {
                for i in 0..order.pages() {
                    let (from, to) = (from.plus(i), to.plus(i));
                    self.shootdowns += u64::from(self.spaces.page_moved(*mapping, index + i, from, to));
                }
            }
        }
        self.files().folio_moved(number, to, order);
        (0..order.pages()).for_each(|i| self.mapcounts.moved(from.plus(i), to.plus(i)));
        self.frames.folio_moved(from, to, order);
        MigrateOutcome::Moved
    }

    /// Splits a file's folio that is neither dirty nor under I/O, and fills in the number of each
    /// page. Its buffers go.
    pub(crate) fn split_file(&mut self, pfn: Pfn, number: u32, numbers: &mut [u32]) -> bool {
        let flags = self.frames.flags(pfn);
        if flags.any(Flags::LOCKED | Flags::WRITEBACK | Flags::DIRTY) {
            return false;
        }
        let Pages { files, frames, .. } = self;
        let files = files.as_mut().expect("it is a folio of a file");
        files.drop_buffers(frames, pfn);
        for (page, number) in files.numbers_of(number, flags.order()).zip(numbers) {
            *number = page;
        }
        for i in 0..flags.order().pages() {
            let kept = if i == 0 && flags.any(Flags::READAHEAD) { Flags::READAHEAD } else { Flags::FILE };
            frames.reset(pfn.plus(i), Flags::FILE | kept);
        }
        true
    }

    /// Clears a folio's dirty state; whether it was dirty.
    pub(crate) fn clear_dirty(&mut self, inode: u32, pfn: Pfn, number: u32) -> bool {
        let order = self.frames.flags(pfn).order();
        let was_dirty = self.frames.clear(pfn, Flags::DIRTY);
        if was_dirty {
            let files = self.files();
            files.clear_tags(number, order, Tag::Dirty);
            files.counts.dirty -= u64::from(order.pages());
            files.by_node.with(pfn).dirty -= u64::from(order.pages());
            files.inodes[inode].dirty -= order.pages();
        }
        was_dirty
    }

    /// Marks a dirty folio as under writeback.
    pub(crate) fn begin_writeback(&mut self, inode: u32, pfn: Pfn, number: u32) {
        let pages = self.frames.flags(pfn).order().pages();
        self.clear_dirty(inode, pfn, number);
        self.frames.set(pfn, Flags::WRITEBACK);
        let files = self.files();
        files.tag(number, Tag::Writeback, true);
        files.counts.writeback += u64::from(pages);
    }

    /// Writes a dirty page out from reclaim. One without a block is left to the flusher, as is a
    /// large folio.
    pub(crate) fn write_out_page(&mut self, pfn: Pfn, number: u32) -> WriteOut {
        let cpu = self.cpu;
        if self.frames.flags(pfn).order() > Order::ZERO {
            return WriteOut::Kept;
        }
        let files = self.files();
        let (inode, index) = files.place(number);
        let Some((block, _)) = files.inodes[inode].extents.find(index) else { return WriteOut::Kept };
        let disk = files.disk_of(inode);
        self.begin_writeback(inode, pfn, number);
        let io = Io { target: Target::File { inode, index }, pages: 1, write: true, cpu };
        self.devices.add_to_plug(disk, block, io);
        WriteOut::Queued
    }
}
