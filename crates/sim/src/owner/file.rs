//! The engine's questions about pages of files, mapped or not.
//!
//! Reclaim asks whether a mapped page was used, and unmaps it before freeing it. The mappings of a
//! file are kept with an object of no pages, as for anonymous memory.

use super::Pages;
use crate::device::{Io, Target};
use crate::state::file::{Flags, Readahead, Tag};
use crate::state::process::address_space::FileMap;
use kontig_mm::{MigrateOutcome, PageState, Pfn, References, WriteOut};
use kontig_program::Region;

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

    /// The state of a file's page.
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
            private: flags.any(Flags::PRIVATE),
            mapped: self.mapcounts.is_mapped(pfn),
            ..PageState::default()
        }
    }

    /// Counts and clears the accessed bits of a file's page.
    pub(crate) fn file_references(&mut self, pfn: Pfn, number: u32) -> References {
        let (inode, index) = self.files().place(number);
        let Some(object) = self.files().inodes[inode].object else { return References::default() };
        let mappings = self.objects.mappings(object).iter();
        let ptes = mappings.map(|mapping| u32::from(self.spaces.take_young(*mapping, index, pfn))).sum();
        References { ptes, ..References::default() }
    }

    /// Unmaps a file's page from all page tables.
    pub(crate) fn unmap_file_page(&mut self, pfn: Pfn, number: u32) -> bool {
        let (inode, index) = self.files().place(number);
        if let Some(object) = self.files().inodes[inode].object {
            for mapping in self.objects.mappings(object) {
                self.shootdowns += u64::from(self.spaces.unmap_page(*mapping, index, pfn));
            }
        }
        self.mapcounts.unmapped(pfn);
        true
    }

    /// Moves a file's page to another frame, unless it is under I/O.
    pub(crate) fn migrate_file(&mut self, from: Pfn, to: Pfn, number: u32) -> MigrateOutcome {
        if self.frames.flags(from).any(Flags::LOCKED | Flags::WRITEBACK) {
            return MigrateOutcome::Busy;
        }
        let (inode, index) = self.files().place(number);
        if let Some(object) = self.files().inodes[inode].object {
            for mapping in self.objects.mappings(object) {
                self.shootdowns += u64::from(self.spaces.page_moved(*mapping, index, from, to));
            }
        }
        self.files().page_moved(number, to);
        self.mapcounts.moved(from, to);
        self.frames.moved(from, to);
        MigrateOutcome::Moved
    }

    /// Clears a page's dirty state; whether it was dirty.
    pub(crate) fn clear_dirty(&mut self, inode: u32, pfn: Pfn, number: u32) -> bool {
        let was_dirty = self.frames.clear(pfn, Flags::DIRTY);
        if was_dirty {
            let files = self.files();
            files.tag(number, Tag::Dirty, false);
            files.counts.dirty -= 1;
            files.inodes[inode].dirty -= 1;
        }
        was_dirty
    }

    /// Marks a dirty page as under writeback.
    pub(crate) fn begin_writeback(&mut self, inode: u32, pfn: Pfn, number: u32) {
        self.clear_dirty(inode, pfn, number);
        self.frames.set(pfn, Flags::WRITEBACK);
        let files = self.files();
        files.tag(number, Tag::Writeback, true);
        files.counts.writeback += 1;
    }

    /// Writes a dirty page out from reclaim. One without a block is left to the flusher.
    pub(crate) fn write_out_page(&mut self, pfn: Pfn, number: u32) -> WriteOut {
        let cpu = self.cpu;
        let files = self.files();
        let (inode, index) = files.place(number);
        let Some((block, _)) = files.inodes[inode].extents.find(index) else { return WriteOut::Kept };
        let disk = files.disk_of(inode);
        self.begin_writeback(inode, pfn, number);
        self.devices.plug(disk, block, Io { target: Target::File { inode, index }, pages: 1, write: true, cpu });
        WriteOut::Queued
    }
}
