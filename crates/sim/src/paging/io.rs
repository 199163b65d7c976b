//! Completion of I/O on files, buffers, logs and swap.

use crate::device::{Io, Target};
use crate::kernel::Kernel;
use crate::state::file::Flags;
use crate::state::swap::Slot;
use kontig_mm::CpuId;

impl Kernel {
    /// Handles a device's completions.
    pub(crate) fn io_done(&mut self, number: u8, now: u64) {
        let Kernel { pages, queues, .. } = self;
        let mut done = std::mem::take(&mut pages.io_done);
        pages.devices.complete(number, now, queues, &mut done);
        done.drain(..).for_each(|io| self.end_io(io));
        self.pages.io_done = done;
        self.pages.devices.look_again(&mut self.timers);
    }

    /// Completes a request and wakes those that wait for its pages.
    pub(crate) fn end_io(&mut self, io: Io) {
        let counts = &mut self.pages.files().counts;
        match io.write {
            true => counts.written_out += u64::from(io.pages),
            false => counts.read_in += u64::from(io.pages),
        }
        match io.target {
            Target::File { inode, index } => {
                let (mut page, end) = (index, index + io.pages);
                while page < end {
                    let (folio, all) = self.pages.folio_of(inode, page);
                    let part = all.end.min(end) - page;
                    page += part;
                    if !self.pages.is_done_with(folio, part) {
                        continue;
                    }
                    if io.write {
                        self.end_writeback(inode, folio, io.cpu);
                    } else {
                        self.pages.frames.clear(folio, Flags::LOCKED);
                        self.wake_waiters(folio);
                    }
                }
            }
            Target::Buffer { disk, number } => {
                let Kernel { mem, pages, queues, .. } = self;
                pages.files().end_buffer_io(mem, queues, io.cpu, (disk, number), io.write);
            }
            Target::Log(disk) => self.pages.files().end_log_io(&mut self.queues, disk),
            Target::Swap(first) => self.end_swap_io(first, io.pages, io.write, io.cpu),
        }
    }

    /// Completes the I/O of pages in swap from slot `first` on.
    pub(crate) fn end_swap_io(&mut self, first: u32, pages: u32, write: bool, cpu: CpuId) {
        for slot in (first..first + pages).map(Slot::new) {
            let pfn = self.pages.swap().area.page(slot).expect("it is locked or being written, and stays");
            if write {
                self.run_deferred_swap();
                self.pages.frames.clear(pfn, Flags::WRITEBACK);
                self.pages.swap().writeback -= 1;
                let zone = self.mem.pageblocks().zone_of(pfn);
                let node = self.mem.zone(zone).node;
                let files = self.pages.files();
                files.counts.writeback -= 1;
                files.counts.written += 1;
                files.events_of(zone).written += 1;
                files.pending[node.index()] -= 1;
                let dirty = self.pages.frames.flags(pfn).any(Flags::DIRTY);
                self.mem.end_writeback(cpu, pfn, dirty);
                self.daemons.page_written(node, &mut self.queues);
            } else {
                self.pages.frames.clear(pfn, Flags::LOCKED);
            }
            self.wake_waiters(pfn);
        }
    }
}
