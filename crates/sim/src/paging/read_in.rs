//! Reading pages of a file: each is allocated, put into the page cache locked, and requested from
//! the device.
//!
//! Pages enter the cache one after the other; those adjacent on the disk are requested together,
//! once the last of them is in the cache. Readahead in large folios goes on with single pages where
//! there is no block for a folio, or a page of its range is there; it gives up where memory is
//! short. A page without a block on the disk is zeros. Source: `page_cache_ra_order` of 6.12 and
//! 7.2; kernel-behaviour §4.12.

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
use kontig_mm::rules::ReadaheadOrder;
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
    /// The order of the folios, where alignment and the end of the window admit it. Without it they
    /// are single pages.
    order: Option<Order>,
    /// The window as it was asked for, before the end of the file cut it.
    window: Option<Window>,
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
    Page(Allocation, Order),
    Node(Pfn, Order, Preload),
}

impl ReadIn {
    /// Reads a readahead window, up to the end of the file.
    pub(crate) fn ahead(k: &mut Kernel, inode: u32, window: Window) -> ReadIn {
        let rule = k.mem.profile().files.readahead;
        let files = k.pages.files();
        let length = files.inodes[inode].length;
        let mut gfp = files.page_gfp(inode) | Gfp::NORETRY | Gfp::NOWARN;
        if rule != ReadaheadOrder::SinglePages {
            // It holds locked pages, which reclaim on its behalf must not wait for.
            gfp = gfp.without(Gfp::FS);
        }
        let lookahead = window.mark.map(|mark| window.pages.end - mark);
        let end = window.pages.end.min(length);
        let mark = match rule {
            // Where the file ends, there is nothing to read after it.
            ReadaheadOrder::AboveLast => window.mark.filter(|_| window.pages.end < length),
            ReadaheadOrder::AboveMarked if window.order.is_some() => window.mark,
            _ => lookahead.and_then(|n| end.checked_sub(n)).filter(|mark| *mark >= window.pages.start),
        };
        let (pages, order) = (window.pages.start..end, window.order);
        ReadIn { mark, order, window: Some(window), ..ReadIn::of(inode, pages, gfp) }
    }

    /// The rest of the window in single pages, where large folios have failed.
    fn by_pages(&self, k: &mut Kernel) -> Option<ReadIn> {
        let Window { pages, mark, .. } = self.window.clone()?;
        let from = self.pages.start;
        let end = match k.mem.profile().files.readahead {
            // As many pages again as were asked for, beyond the window.
            ReadaheadOrder::AboveMarked => from + (pages.end - pages.start),
            _ => pages.end,
        };
        let mark = mark.map(|mark| end - (pages.end - mark)).filter(|mark| *mark >= from);
        let rest = ReadIn::ahead(k, self.inode, Window { pages: from..end, mark, order: None });
        Some(ReadIn { in_fault: self.in_fault, ..rest })
    }

    /// The order of the next folio.
    fn next_order(&self) -> Order {
        let Some(most) = self.order else { return Order::ZERO };
        let Range { start, end } = self.pages;
        let aligned = most.get().min(start.trailing_zeros() as u8);
        // The end is above the start.
        Order::new(aligned.min((end - start).ilog2() as u8))
    }

    /// Reads one page that the caller needs.
    pub(crate) fn one(inode: u32, index: u32, gfp: Gfp) -> ReadIn {
        ReadIn::of(inode, index..index + 1, gfp)
    }

    /// Reads these pages, all of which the caller needs.
    pub(crate) fn of(inode: u32, pages: Range<u32>, gfp: Gfp) -> ReadIn {
        let (mark, order, window) = (None, None, None);
        ReadIn { inode, pages, mark, order, window, locked: 0, gfp, in_fault: false, stage: Stage::Next }
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
                    if self.order.is_none() && k.pages.files().find(self.inode, self.pages.start).is_some() {
                        self.ask(k, c);
                        self.pages.start += 1;
                        continue;
                    }
                    let order = self.next_order();
                    let allocation = Allocation::new(self.gfp, order).charged_to(c.group, self.gfp);
                    self.stage = Stage::Page(allocation, order);
                }
                Stage::Page(allocation, order) => match done!(allocation.step(k, c)) {
                    Err(failure) => match self.switch_rules_pages(k, c) {
                        true => {}
                        false => return self.give_up(k, c, failure),
                    },
                    Ok(pfn) => {
                        let order = *order;
                        let missing = k.pages.files().missing(self.inode, self.pages.start, order);
                        self.stage = Stage::Node(pfn, order, Preload::of_nodes(missing, self.gfp));
                    }
                },
                Stage::Node(pfn, order, preload) => {
                    let (pfn, order) = (*pfn, *order);
                    if let Err(failure) = done!(preload.step(k, c)) {
                        k.mem.free(c.cpu, pfn, order);
                        if self.switch_rules_pages(k, c) {
                            continue;
                        }
                        return self.give_up(k, c, failure);
                    }
                    let index = self.pages.start;
                    let files = k.pages.files();
                    let missing = files.missing_if_absent(self.inode, index, order);
                    if missing.is_none_or(|missing| missing > preload.objects().len()) {
                        // Another task has added a page, or the tree now needs more nodes.
                        preload.give_back(k, c);
                        k.mem.free(c.cpu, pfn, order);
                        k.charge(&mut c.now);
                        self.stage = Stage::Next;
                        if missing.is_none() {
                            self.switch_rules_pages(k, c);
                        }
                        continue;
                    }
                    let added = if self.in_fault { Added::InFault } else { Added::ToRead };
                    k.add_to_cache(c, (self.inode, index), (pfn, order), preload, added);
                    let is_marked = self.mark.is_some_and(|mark| mark & !(order.pages() - 1) == index);
                    let mark = if is_marked { Flags::READAHEAD } else { Flags::FILE };
                    k.pages.frames.set(pfn, Flags::LOCKED | mark);
                    self.locked += order.pages();
                    self.pages.start += order.pages();
                    self.stage = Stage::Next;
                }
            }
        }
    }

    /// Requests what is locked, and goes on with single pages. False if they are single pages
    /// already.
    fn switch_rules_pages(&mut self, k: &mut Kernel, c: &mut Context) -> bool {
        let Some(rest) = self.order.and_then(|_| self.by_pages(k)) else { return false };
        self.ask(k, c);
        *self = rest;
        true
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
                    k.pages.note_request(self.inode, index..index + pages);
                    let target = Target::File { inode: self.inode, index };
                    k.pages.devices.add_to_plug(device, block, Io { target, pages, write: false, cpu: c.cpu });
                    index += pages;
                }
                None => {
                    let (folio, pages) = k.pages.folio_of(self.inode, index);
                    // Zeros; a folio of which something is read is unlocked when that is done.
                    let reads =
                        pages.clone().any(|page| k.pages.files().inodes[self.inode].extents.find(page).is_some());
                    if !reads {
                        k.pages.frames.clear(folio, Flags::LOCKED);
                        k.wake_waiters(folio);
                    }
                    index = if reads { index + 1 } else { pages.end };
                }
            }
        }
        k.charge(&mut c.now);
    }
}

/// Why a folio is put into the page cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    ToRead,
    InFault,
    ToWrite,
}

impl Kernel {
    /// Puts a folio into the page cache and on the LRU; a refault activates it if its shadow says
    /// so. What is written anew is no refault where the kernel tells the two apart.
    pub(crate) fn add_to_cache(
        &mut self,
        c: &mut Context,
        (inode, index): (u32, u32),
        (pfn, order): (Pfn, Order),
        preload: &mut Preload,
        added: Added,
    ) {
        let (number, shadow) = self.pages.files().add_folio(inode, index, (pfn, order), preload.objects());
        self.pages.frames.begin_folio(pfn, order);
        self.pages.mapcounts.folio_unmapped(pfn, order);
        let (cpu, flags) = (c.cpu, PageFlags::FILE);
        let refaults = added != Added::ToWrite || self.mem.profile().lru.writes_refault;
        let in_fault = added == Added::InFault;
        let flags = match shadow.filter(|_| refaults) {
            Some(shadow) if in_fault => self.mem.workingset_refault_in_fault(cpu, pfn, flags, shadow),
            Some(shadow) => self.mem.workingset_refault(cpu, pfn, flags, shadow),
            None => flags,
        };
        match in_fault {
            true => self.mem.lru_add_in_fault(cpu, pfn, order, flags),
            false => self.mem.lru_add(cpu, pfn, order, flags),
        }
        self.mem.set_owner(pfn, order, number);
        c.now += ns(self.costs.cache_page);
        preload.give_back(self, c);
    }
}
