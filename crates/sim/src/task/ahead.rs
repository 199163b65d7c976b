//! What the operations of a batch will touch is fetched into the host's cache while those before them are carried out.
//!
//! A process that touches memory at random reaches, for every page, one entry of a page table and one frame, and on a
//! large machine neither is in the cache. A batch says what comes next: the entry is asked for first, and the frame that
//! it names, when it is there, a few operations later. Nothing is decided here, and nothing waits.

use crate::base::id::ProcessId;
use crate::kernel::Kernel;
use kontig_program::{Batch, Op};

/// How many operations ahead is asked for what says where a page's entry is.
const TABLE_AHEAD: usize = 24;
/// How many operations ahead a page's entry is asked for.
const ENTRY_AHEAD: usize = 16;
/// How many operations ahead the frame that the entry names is.
const FRAME_AHEAD: usize = 8;

impl Kernel {
    /// Asks for what operations still to come will touch.
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
