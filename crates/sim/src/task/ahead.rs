//! Prefetches, into the host's cache, what later operations of a batch will touch.
//!
//! A process that touches memory at random reaches one page table entry and one frame for every
//! page, and on a large machine neither is in the cache. A batch shows the operations to come: the
//! entry is prefetched first, and a few operations later the frame it names. A page of a file is
//! four steps away: the open file names the inode, the inode the leaf, the leaf the node, the node
//! the frame. A new batch takes each step for all of its operations before the next step. This
//! affects only the host's speed.

use crate::base::id::ProcessId;
use crate::kernel::Kernel;
use kontig_mm::Pfn;
use kontig_program::{Batch, Op};

/// Distance, in operations, of the prefetch of a page table.
const TABLE_AHEAD: usize = 24;
/// Distance of the prefetch of a page table entry.
const ENTRY_AHEAD: usize = 16;
/// Distance of the prefetch of a frame.
const FRAME_AHEAD: usize = 8;
/// The most operations on files that are prefetched together. What others need would have left the
/// cache before its turn.
const FILES: usize = 32;

impl Kernel {
    /// Prefetches for the operations to come.
    #[inline(always)]
    pub(crate) fn fetch_ahead(&mut self, process: ProcessId, todo: &Batch) {
        if let Some(Op::Touch(r) | Op::Munmap(r)) = todo.ahead(TABLE_AHEAD)
            && let Some(entries) = self.pages.spaces.entries_of(process, *r)
        {
            entries.prefetch_table(r.first);
        }
        if let Some(Op::Touch(r) | Op::Munmap(r)) = todo.ahead(ENTRY_AHEAD)
            && let Some(entries) = self.pages.spaces.entries_of(process, *r)
        {
            entries.prefetch_entry(r.first);
        }
        if let Some(Op::Munmap(r)) = todo.ahead(FRAME_AHEAD)
            && let Some(pfn) = self.pages.spaces.peek_pte(process, *r)
        {
            self.mem.prefetch(pfn);
        }
    }

    /// Prefetches what a new batch reads and writes of files.
    #[inline(always)]
    pub(crate) fn fetch_files(&self, todo: &Batch) {
        if let Some(Op::Read { .. } | Op::Write { .. } | Op::Stat(_) | Op::Unlink(_)) = todo.ahead(1) {
            self.fetch_pages_of_files(todo);
        }
    }

    #[inline(never)]
    fn fetch_pages_of_files(&self, todo: &Batch) {
        let Some(files) = &self.pages.files else { return };
        let each = || (0..FILES).map_while(|n| todo.ahead(n));
        for op in each() {
            if let Op::Read { file, .. } | Op::Write { file, .. } = op {
                files.opens.prefetch(file.get());
            }
        }
        // A file is looked at, or removed, by its name.
        let inodes = || {
            each().filter_map(|op| match op {
                Op::Read { file, first, .. } | Op::Write { file, first, .. } => {
                    Some((files.opens.get(file.get())?.inode, *first))
                }
                Op::Stat(name) | Op::Unlink(name) => Some((files.named(*name)?, 0)),
                _ => None,
            })
        };
        inodes().for_each(|(inode, _)| files.inodes.prefetch(inode));
        inodes().for_each(|(inode, page)| files.prefetch_leaf(inode, page));
        inodes().for_each(|(inode, page)| files.prefetch_node(inode, page));
        inodes().filter_map(|(inode, page)| files.peek(inode, page)).for_each(|pfn: Pfn| {
            self.mem.prefetch(pfn);
            self.pages.frames.prefetch(pfn);
        });
    }
}
