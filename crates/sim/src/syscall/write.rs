//! `pwrite` to an open file, by whole pages: each is added to the page cache if missing, and
//! becomes dirty.
//!
//! A dirty page of ext4 has a buffer head, a slab object, until it is clean and reclaimed. A task
//! that dirties more than the disk can write is throttled. Source: `generic_perform_write`,
//! `balance_dirty_pages_ratelimited` of 6.1.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::ProcessId;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::paging::preload::Preload;
use crate::paging::xfs::Change;
use crate::state::file::{Cache, Flags};
use kontig_mm::{AllocFailure, Order, Pfn, Step};
use kontig_program::Value;

/// A write in progress.
#[derive(Clone)]
pub(crate) struct Write {
    process: ProcessId,
    inode: u32,
    disk: u8,
    pages: u32,
    next: u32,
    end: u32,
    has_buffer_heads: bool,
    /// Whether it was throttled at the hard limit and must check again before it goes on.
    looks_again: bool,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    Times,
    Change(Box<Change>),
    Look,
    Page(Allocation),
    Node(Pfn, Preload),
    Buffers(Preload),
}

impl Write {
    /// A write of this many pages.
    pub(crate) fn new(k: &mut Kernel, process: ProcessId, inode: u32, first: u32, pages: u32) -> Write {
        let files = k.pages.files();
        files.knows_dirtier(process);
        let (disk, end) = (files.disk_of(inode), first.saturating_add(pages));
        let has_buffer_heads = files.filesystem(inode).has_buffer_heads();
        Write {
            process,
            inode,
            disk,
            pages,
            next: first,
            end,
            has_buffer_heads,
            looks_again: false,
            stage: Stage::Times,
        }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        loop {
            match &mut self.stage {
                Stage::Times => {
                    let change = k.pages.files().written_to(self.inode, c.now);
                    self.stage = change.map_or(Stage::Look, |change| Stage::Change(Box::new(change)));
                }
                Stage::Change(change) => match done!(change.step(k, c), Ok) {
                    Err(failure) => return self.no_memory(failure),
                    Ok(()) => self.stage = Stage::Look,
                },
                Stage::Look => {
                    if std::mem::take(&mut self.looks_again)
                        && let Some(pause) = self.balance(k, c)
                    {
                        return Ok(Step::Wait(Wait::Time(pause)));
                    }
                    if self.next == self.end {
                        k.charge(&mut c.now);
                        return Ok(Step::Done(Value::Pages(u64::from(self.pages))));
                    }
                    if k.must_yield(c) {
                        return Ok(Step::Working);
                    }
                    let Some(pfn) = k.pages.files().find(self.inode, self.next) else {
                        let gfp = k.pages.files().page_gfp(self.inode);
                        self.stage = Stage::Page(Allocation::new(gfp, Order::ZERO).charged_to(c.group, gfp));
                        continue;
                    };
                    let flags = k.pages.frames.flags(pfn);
                    if flags.any(Flags::LOCKED) {
                        return Ok(Step::Wait(k.wait_for_page(pfn)));
                    }
                    if self.has_buffer_heads && !flags.any(Flags::PRIVATE) {
                        match k.pages.files().slabs.take(Cache::BufferHead, c.cpu, c.node) {
                            Some(object) => k.pages.frames.set_buffers(pfn, object),
                            None => {
                                self.stage = Stage::Buffers(Preload::new(Cache::BufferHead, 1));
                                continue;
                            }
                        }
                    }
                    if let Some(pause) = self.write(k, c, pfn)? {
                        return Ok(Step::Wait(Wait::Time(pause)));
                    }
                }
                Stage::Page(allocation) => match done!(allocation.step(k, c), Ok) {
                    Err(failure) => return self.no_memory(failure),
                    Ok(pfn) => {
                        let files = k.pages.files();
                        let (missing, gfp) = (files.missing(self.inode, self.next), files.page_gfp(self.inode));
                        self.stage = Stage::Node(pfn, Preload::of_nodes(missing, gfp));
                    }
                },
                Stage::Node(pfn, preload) => {
                    let got = done!(preload.step(k, c), Ok);
                    let (pfn, files) = (*pfn, k.pages.files());
                    let is_there = files.find(self.inode, self.next).is_some();
                    if got.is_ok() && !is_there && files.missing(self.inode, self.next) <= preload.objects().len() {
                        k.add_to_cache(c, (self.inode, self.next), pfn, preload, false);
                    } else {
                        preload.give_back(k, c);
                        k.mem.free(c.cpu, pfn, Order::ZERO);
                        k.charge(&mut c.now);
                    }
                    self.stage = Stage::Look;
                    if let Err(failure) = got {
                        return self.no_memory(failure);
                    }
                }
                Stage::Buffers(preload) => {
                    let got = done!(preload.step(k, c), Ok);
                    // The page may have changed, so look it up again. A free object of another node
                    // would not be found again.
                    let page = k.pages.files().find(self.inode, self.next);
                    let page = page.filter(|pfn| !k.pages.frames.flags(*pfn).any(Flags::LOCKED | Flags::PRIVATE));
                    if let Some(pfn) = page
                        && let Some(object) = preload.objects().pop()
                    {
                        k.pages.frames.set_buffers(pfn, object);
                    }
                    preload.give_back(k, c);
                    self.stage = Stage::Look;
                    if let Err(failure) = got {
                        return self.no_memory(failure);
                    }
                }
            }
        }
    }

    /// Writes to a page in the cache that has buffers; returns the throttling pause.
    fn write(&mut self, k: &mut Kernel, c: &mut Context, pfn: Pfn) -> Result<Option<u64>, SimError> {
        let was_dirty = k.pages.frames.flags(pfn).any(Flags::DIRTY);
        let index = self.next;
        let files = k.pages.files();
        let length = &mut files.inodes[self.inode].length;
        *length = (*length).max(index + 1);
        k.dirty_page(self.inode, index, pfn, c.now)?;
        c.now += ns(k.costs.write_page) + k.far_pages(c, pfn, 1);
        if k.mem.profile().lru.writes_count_as_use {
            k.mem.mark_accessed(c.cpu, pfn);
        }
        self.next += 1;
        if was_dirty {
            return Ok(None);
        }
        let dirtier = k.pages.files().dirtier(self.process);
        dirtier.dirtied += 1;
        if dirtier.dirtied < dirtier.looks_after {
            return Ok(None);
        }
        Ok(self.balance(k, c))
    }

    /// Checks the dirty limits; returns the throttling pause.
    fn balance(&mut self, k: &mut Kernel, c: &mut Context) -> Option<u64> {
        k.charge(&mut c.now);
        let Kernel { mem, pages, queues, .. } = k;
        let files = pages.files();
        let balance = files.balance_dirty(mem, self.disk, self.process, c.now);
        if balance.background {
            queues.wake_all(files.writing(self.disk).flusher);
        }
        self.looks_again = balance.again;
        (balance.pause > 0).then_some(balance.pause)
    }

    /// Ends the call of a killed process.
    fn no_memory(&self, failure: AllocFailure) -> Result<Step<Value, Wait>, SimError> {
        match failure {
            AllocFailure::Failed => Ok(Step::Done(Value::Pages(0))),
            AllocFailure::OutOfMemory => {
                Err(SimError::OutOfMemory { what: format!("page {} of a file that is written", self.next) })
            }
        }
    }
}
