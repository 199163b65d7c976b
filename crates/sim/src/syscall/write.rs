//! `pwrite` to an open file, by whole pages: each is added to the page cache if missing, and
//! becomes dirty.
//!
//! Where the file may have large folios, a missing page comes in one as large as what is still to
//! be written, or, where there is no such block, in a smaller one. A dirty folio of ext4 has buffer
//! heads, slab objects, until it is clean and reclaimed. A task that dirties more than the disk can
//! write is throttled. Source: `generic_perform_write`, `balance_dirty_pages_ratelimited` of 6.1,
//! `__filemap_get_folio` of 7.2; kernel-behaviour §4.12.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::ProcessId;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::paging::preload::Preload;
use crate::paging::read_in::Added;
use crate::paging::xfs::Change;
use crate::state::file::{Cache, Flags};
use kontig_mm::types::MAX_ORDER;
use kontig_mm::{AllocFailure, Gfp, Order, Pfn, Step};
use kontig_program::Value;

/// Above every order that a folio can have.
const LARGEST: Order = MAX_ORDER;

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
    /// The largest order of the next folio: one order less with each that failed.
    largest: Order,
}

#[derive(Clone)]
enum Stage {
    Times,
    Change(Box<Change>),
    Look,
    Page(Allocation, Order),
    Node(Pfn, Order, Preload),
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
            largest: LARGEST,
        }
    }

    /// The order of the folio to add for the next page.
    fn next_order(&self, k: &mut Kernel) -> Order {
        let most = k.pages.files().folios_of(&k.mem, self.inode).largest;
        if most == Order::ZERO {
            return most;
        }
        // The kernel copies as much at a time as the largest folio has.
        let chunk = most.pages() - (self.next & (most.pages() - 1));
        let wanted = chunk.min(self.end - self.next).ilog2();
        Order::new(wanted.min(self.next.trailing_zeros()) as u8).min(self.largest)
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
                        let order = self.next_order(k);
                        let light = Gfp::NORETRY | Gfp::NOWARN;
                        let with = if order > Order::ZERO { gfp | light } else { gfp };
                        self.stage = Stage::Page(Allocation::new(with, order).charged_to(c.group, gfp), order);
                        continue;
                    };
                    let folio = k.pages.frames.head(pfn);
                    let flags = k.pages.frames.flags(folio);
                    if flags.any(Flags::LOCKED) {
                        return Ok(Step::Wait(k.wait_for_page(folio)));
                    }
                    if self.has_buffer_heads && !flags.any(Flags::PRIVATE) {
                        let object = match flags.order() {
                            Order::ZERO => k.pages.files().slabs.take(Cache::BufferHead, c.cpu, c.node),
                            _ => None,
                        };
                        match object {
                            Some(object) => k.pages.frames.set_buffers(folio, [object]),
                            None => {
                                let pages = flags.order().pages() as usize;
                                self.stage = Stage::Buffers(Preload::new(Cache::BufferHead, pages));
                                continue;
                            }
                        }
                    }
                    if let Some(pause) = self.write(k, c, folio)? {
                        return Ok(Step::Wait(Wait::Time(pause)));
                    }
                }
                Stage::Page(allocation, order) => match done!(allocation.step(k, c), Ok) {
                    Err(_) if *order > Order::ZERO => {
                        self.largest = Order::new(order.get() - 1);
                        self.stage = Stage::Look;
                    }
                    Err(failure) => return self.no_memory(failure),
                    Ok(pfn) => {
                        let (order, files) = (*order, k.pages.files());
                        let (missing, gfp) = (files.missing(self.inode, self.next, order), files.page_gfp(self.inode));
                        self.stage = Stage::Node(pfn, order, Preload::of_nodes(missing, gfp));
                    }
                },
                Stage::Node(pfn, order, preload) => {
                    let got = done!(preload.step(k, c), Ok);
                    let (pfn, order, files) = (*pfn, *order, k.pages.files());
                    let missing = files.missing_if_absent(self.inode, self.next, order);
                    if got.is_ok() && missing.is_some_and(|missing| missing <= preload.objects().len()) {
                        k.add_to_cache(c, (self.inode, self.next), (pfn, order), preload, Added::ToWrite);
                        self.largest = LARGEST;
                    } else {
                        preload.give_back(k, c);
                        k.mem.free(c.cpu, pfn, order);
                        k.charge(&mut c.now);
                    }
                    self.stage = Stage::Look;
                    match got {
                        Ok(()) if missing.is_some() => {}
                        _ if order > Order::ZERO => self.largest = Order::new(order.get() - 1),
                        Ok(()) => {}
                        Err(failure) => return self.no_memory(failure),
                    }
                }
                Stage::Buffers(preload) => {
                    let got = done!(preload.step(k, c), Ok);
                    // The page may have changed, so look it up again. A free object of another node
                    // would not be found again.
                    let page = k.pages.files().find(self.inode, self.next);
                    let folio = page.map(|pfn| k.pages.frames.head(pfn));
                    let folio = folio.filter(|pfn| !k.pages.frames.flags(*pfn).any(Flags::LOCKED | Flags::PRIVATE));
                    if let Some(folio) = folio {
                        let pages = k.pages.frames.flags(folio).order().pages() as usize;
                        if let Some(rest) = preload.objects().len().checked_sub(pages) {
                            k.pages.frames.set_buffers(folio, preload.objects().drain(rest..));
                        }
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

    /// Writes to the pages of a folio in the cache that has buffers, all at once, since the kernel
    /// holds it locked meanwhile; returns the throttling pause.
    fn write(&mut self, k: &mut Kernel, c: &mut Context, folio: Pfn) -> Result<Option<u64>, SimError> {
        let mask = k.pages.frames.flags(folio).order().pages() - 1;
        let end = ((self.next | mask) + 1).min(self.end);
        let mut dirtied = 0;
        while self.next < end {
            let (index, pfn) = (self.next, folio.plus(self.next & mask));
            let files = k.pages.files();
            let length = &mut files.inodes[self.inode].length;
            *length = (*length).max(index + 1);
            dirtied += k.dirty_page(self.inode, index, pfn, c.now)?;
            c.now += ns(k.costs.write_page) + k.far_pages(c, pfn, 1);
            self.next += 1;
        }
        if k.mem.profile().lru.writes_count_as_use {
            k.mem.mark_accessed(c.cpu, folio);
        }
        if dirtied == 0 {
            return Ok(None);
        }
        let dirtier = k.pages.files().dirtier(self.process);
        dirtier.dirtied += u64::from(dirtied);
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
