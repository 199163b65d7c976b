//! The read of an inode that is not in memory, on ext4: its block of the inode table comes from the
//! page cache, or from the disk together with the blocks around it.

use crate::base::context::Context;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::read_in::ReadIn;
use crate::state::file::{Files, Flags};
use kontig_mm::{AllocFailure, Gfp, Step};
use std::ops::Range;

/// Flags for a page of the disk itself: the file system holds locks.
const GFP: Gfp = Gfp::KERNEL.without(Gfp::FS).with(Gfp::HARDWALL);

#[derive(Clone)]
pub(crate) struct InodeRead {
    /// The disk's own file, the block in it, and those read ahead with it.
    disk: u32,
    block: u32,
    ahead: Range<u32>,
    /// Whether the block was missing, and nothing has been read ahead yet.
    missed: bool,
    reading: Option<ReadIn>,
}

impl InodeRead {
    /// The read of a file's inode; `None` with a file system that reads inodes otherwise.
    pub(crate) fn of(files: &mut Files, inode: u32) -> Option<InodeRead> {
        let (disk, block, ahead) = files.inode_block(inode)?;
        Some(InodeRead { disk, block, ahead, missed: false, reading: None })
    }

    /// A step; done when the block is in memory.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<(), AllocFailure>, Wait> {
        loop {
            if let Some(reading) = &mut self.reading {
                if let Err(failure) = done!(reading.step(k, c)) {
                    return Step::Done(Err(failure));
                }
                self.reading = None;
            }
            match k.pages.files().find(self.disk, self.block) {
                None => {
                    // The block itself may be moved; those around it only by older kernels.
                    self.reading = Some(ReadIn::one(self.disk, self.block, GFP | Gfp::MOVABLE));
                    self.missed = true;
                }
                Some(_) if self.missed => {
                    self.missed = false;
                    let unmovable = k.mem.profile().files.reads_inodes_ahead_unmovable;
                    let gfp = if unmovable { GFP } else { GFP | Gfp::MOVABLE };
                    self.reading = Some(ReadIn::of(self.disk, self.ahead.clone(), gfp));
                }
                Some(pfn) if k.pages.frames.flags(pfn).any(Flags::LOCKED) => return Step::Wait(k.wait_for_page(pfn)),
                Some(pfn) => {
                    k.mem.mark_accessed(c.cpu, pfn);
                    return Step::Done(Ok(()));
                }
            }
        }
    }
}
