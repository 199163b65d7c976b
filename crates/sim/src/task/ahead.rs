//! Prefetches, into the host's cache, what later operations of a batch will touch.
//!
//! A process that touches memory at random reaches one page table entry and one frame for every
//! page, and on a large machine neither is in the cache. A batch shows the operations to come: the
//! entry is prefetched first, and a few operations later the frame it names. This affects only the
//! host's speed.

use crate::base::id::ProcessId;
use crate::kernel::Kernel;
use kontig_program::{Batch, Op};

/// Distance, in operations, of the prefetch of a page table.
const TABLE_AHEAD: usize = 24;
/// Distance of the prefetch of a page table entry.
const ENTRY_AHEAD: usize = 16;
/// Distance of the prefetch of a frame.
const FRAME_AHEAD: usize = 8;

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
}
