//! Reading pages of a file: each is allocated, put into the page cache locked, and requested from
//! the device.
//!
//! Pages enter the cache one after the other; those adjacent on the disk are requested together,
//! once the last of them is in the cache. Readahead gives up where memory is short. A page without
//! a block on the disk is zeros.

use super::preload::Preload;
use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::device::{Io, Target};
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::state::file::Flags;
use crate::state::file::Window;
use kontig_mm::{AllocFailure, Gfp, Order, PageFlags, Pfn, Step};
use std::ops::Range;

/// The most pages in one request (`BIO_MAX_VECS`).
const MOST_AT_ONCE: u32 = 256;

/// A read in progress.
#[derive(Clone)]
pub(crate) struct ReadIn {
    inode: u32,
    /// Pages not looked at yet.
    pages: Range<u32>,
    mark: Option<u32>,
    /// Pages in the cache, locked and not requested yet; they end where `pages` begins.
    locked: u32,
    gfp: Gfp,
    /// Whether a page fault reads them.
    in_fault: bool,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    Next,
    Page(Allocation),
    Node(Pfn, Preload),
}

impl ReadIn {
    /// Reads a readahead window, up to the end of the file.
    pub(crate) fn ahead(k: &mut Kernel, inode: u32, window: Window) -> ReadIn {
        let length = k.pages.files().inodes[inode].length;
        let lookahead = window.mark.map(|mark| window.pages.end - mark);
        let end = window.pages.end.min(length);
        let mark = lookahead.and_then(|n| end.checked_sub(n)).filter(|mark| *mark >= window.pages.start);
        let gfp = k.pages.files().page_gfp(inode) | Gfp::NORETRY | Gfp::NOWARN;
        ReadIn { inode, pages: window.pages.start..end, mark, locked: 0, gfp, in_fault: false, stage: Stage::Next }
    }

    /// Reads one page that the caller needs.
    pub(crate) fn one(inode: u32, index: u32, gfp: Gfp) -> ReadIn {
        ReadIn::of(inode, index..index + 1, gfp)
    }

    /// Reads these pages, all of which the caller needs.
    pub(crate) fn of(inode: u32, pages: Range<u32>, gfp: Gfp) -> ReadIn {
        ReadIn { inode, pages, mark: None, locked: 0, gfp, in_fault: false, stage: Stage::Next }
    }

    /// The same by a page fault.
    pub(crate) fn in_fault(self) -> ReadIn {
        ReadIn { in_fault: true, ..self }
    }

    /// Whether the caller needs the page, so that a failure counts.
    pub(crate) fn is_needed(&self) -> bool {
        !self.gfp.has(Gfp::NORETRY)
    }

    /// A step; done when every page is requested, or memory has run short.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<(), AllocFailure>, Wait> {
        loop {
            match &mut self.stage {
                Stage::Next => {
                    if self.pages.is_empty() {
                        self.ask(k, c);
                        return Step::Done(Ok(()));
                    }
                    if k.must_yield(c) {
                        return Step::Working;
                    }
                    if k.pages.files().find(self.inode, self.pages.start).is_some() {
                        self.ask(k, c);
                        self.pages.start += 1;
                        continue;
                    }
                    self.stage = Stage::Page(Allocation::new(self.gfp, Order::ZERO).charged_to(c.group, self.gfp));
                }
                Stage::Page(allocation) => match done!(allocation.step(k, c)) {
                    Err(failure) => return self.give_up(k, c, failure),
                    Ok(pfn) => {
                        let missing = k.pages.files().missing(self.inode, self.pages.start);
                        self.stage = Stage::Node(pfn, Preload::of_nodes(missing, self.gfp));
                    }
                },
                Stage::Node(pfn, preload) => {
                    if let Err(failure) = done!(preload.step(k, c)) {
                        let pfn = *pfn;
                        k.mem.free(c.cpu, pfn, Order::ZERO);
                        return self.give_up(k, c, failure);
                    }
                    let (pfn, index) = (*pfn, self.pages.start);
                    let files = k.pages.files();
                    if files.find(self.inode, index).is_some()
                        || files.missing(self.inode, index) > preload.objects().len()
                    {
                        // Another task has added the page, or the tree now needs more nodes.
                        preload.give_back(k, c);
                        k.mem.free(c.cpu, pfn, Order::ZERO);
                        k.charge(&mut c.now);
                        self.stage = Stage::Next;
                        continue;
                    }
                    k.add_to_cache(c, (self.inode, index), pfn, preload, self.in_fault);
                    let mark = if self.mark == Some(index) { Flags::READAHEAD } else { Flags::FILE };
                    k.pages.frames.set(pfn, Flags::LOCKED | mark);
                    self.locked += 1;
                    self.pages.start += 1;
                    self.stage = Stage::Next;
                }
            }
        }
    }

    fn give_up(
        &mut self,
        k: &mut Kernel,
        c: &mut Context,
        failure: AllocFailure,
    ) -> Step<Result<(), AllocFailure>, Wait> {
        self.ask(k, c);
        let may_fail = self.gfp.has(Gfp::NORETRY);
        Step::Done(Err(if may_fail { AllocFailure::Failed } else { failure }))
    }

    /// Requests the locked pages, in pieces that are contiguous on the disk.
    fn ask(&mut self, k: &mut Kernel, c: &mut Context) {
        let end = self.pages.start;
        let mut index = end - std::mem::take(&mut self.locked);
        while index < end {
            let files = k.pages.files();
            let device = files.disk_of(self.inode);
            match files.inodes[self.inode].extents.find(index) {
                Some((block, in_a_row)) => {
                    let pages = in_a_row.min(end - index).min(MOST_AT_ONCE);
                    let target = Target::File { inode: self.inode, index };
                    k.pages.devices.plug(device, block, Io { target, pages, write: false, cpu: c.cpu });
                    index += pages;
                }
                None => {
                    let pfn = files.find(self.inode, index).expect("it is locked, and stays");
                    k.pages.frames.clear(pfn, Flags::LOCKED);
                    k.wake_waiters(pfn);
                    index += 1;
                }
            }
        }
        k.charge(&mut c.now);
    }
}

impl Kernel {
    /// Puts a page into the page cache and on the LRU; a refault activates it if its shadow says
    /// so.
    pub(crate) fn add_to_cache(
        &mut self,
        c: &mut Context,
        (inode, index): (u32, u32),
        pfn: Pfn,
        preload: &mut Preload,
        in_fault: bool,
    ) {
        let (number, shadow) = self.pages.files().add_page(inode, index, pfn, preload.objects());
        self.pages.frames.reset(pfn, Flags::FILE);
        self.pages.mapcounts.unmapped(pfn);
        let (cpu, flags) = (c.cpu, PageFlags::FILE);
        let flags = match shadow {
            Some(shadow) if in_fault => self.mem.workingset_refault_in_fault(cpu, pfn, flags, shadow),
            Some(shadow) => self.mem.workingset_refault(cpu, pfn, flags, shadow),
            None => flags,
        };
        match in_fault {
            true => self.mem.lru_add_in_fault(cpu, pfn, Order::ZERO, flags),
            false => self.mem.lru_add(cpu, pfn, Order::ZERO, flags),
        }
        self.mem.set_owner(pfn, Order::ZERO, number);
        c.now += ns(self.costs.cache_page);
        preload.give_back(self, c);
    }
}
