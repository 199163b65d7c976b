//! `pread` of an open file, page by page from the page cache.
//!
//! A missing page is read with a readahead window; a page with the readahead mark starts the read
//! of the next window while this one is used up. Each page read is marked accessed. Source:
//! `filemap_read` of 6.1.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::read_in::ReadIn;
use crate::paging::xfs::Change;
use crate::state::file::{Asked, Flags};
use kontig_mm::{AllocFailure, Order, Step};
use kontig_program::Value;

/// A read in progress.
#[derive(Clone)]
pub(crate) struct Read {
    open: u32,
    inode: u32,
    first: u32,
    next: u32,
    end: u32,
    /// Whether the next page has been missing before and was read ahead.
    missed: bool,
    reading: Option<Box<ReadIn>>,
    /// The change of the access time, at the end.
    change: Option<Box<Change>>,
}

impl Read {
    /// A read of up to this many pages, limited by the file's length.
    pub(crate) fn new(k: &Kernel, open: u32, inode: u32, first: u32, pages: u32) -> Read {
        let length = k.pages.files.as_ref().map_or(0, |files| files.inodes[inode].length);
        let end = first.saturating_add(pages).min(length).max(first);
        Read { open, inode, first, next: first, end, missed: false, reading: None, change: None }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        if let Some(change) = &mut self.change {
            return Ok(change.step(k, c).map(|_| Value::Pages(u64::from(self.end - self.first))));
        }
        loop {
            if let Some(reading) = &mut self.reading {
                match done!(reading.step(k, c), Ok) {
                    // The caller was killed by the OOM killer and ends.
                    Err(AllocFailure::Failed) if reading.is_needed() => {
                        return Ok(Step::Done(Value::Pages(u64::from(self.next - self.first))));
                    }
                    // Readahead may fail.
                    Ok(()) | Err(AllocFailure::Failed) => self.reading = None,
                    Err(AllocFailure::OutOfMemory) => {
                        return Err(SimError::OutOfMemory { what: format!("page {} of a file", self.next) });
                    }
                }
            }
            if let Some(wait) = self.hits(k, c) {
                return Ok(wait);
            }
            if self.reading.is_none() {
                return Ok(Step::Working);
            }
        }
    }

    /// Reads pages in the cache. `None` if a page must be read in first or the turn must end.
    fn hits(&mut self, k: &mut Kernel, c: &mut Context) -> Option<Step<Value, Wait>> {
        let page_ns = ns(k.costs.read_page);
        while self.next < self.end {
            if k.must_yield(c) {
                return None;
            }
            let index = self.next;
            let files = k.pages.files.as_mut().expect("an open file is somewhere");
            let Some(pfn) = files.find(self.inode, index) else {
                let ahead = (!self.missed).then(|| self.window(k, None)).flatten();
                self.missed = true;
                let gfp = k.pages.files().page_gfp(self.inode);
                self.reading = Some(Box::new(ahead.unwrap_or_else(|| ReadIn::one(self.inode, index, gfp))));
                return None;
            };
            let (mut folio, mut order) = (pfn, Order::ZERO);
            // Most pages are folios of their own, read in and without a mark.
            if k.pages.frames.flags(pfn).any(Flags::LARGE | Flags::READAHEAD | Flags::LOCKED) {
                folio = k.pages.frames.head(pfn);
                let flags = k.pages.frames.flags(folio);
                order = flags.order();
                if flags.any(Flags::READAHEAD) && !flags.any(Flags::WRITEBACK) {
                    k.pages.frames.clear(folio, Flags::READAHEAD);
                    if let Some(ahead) = self.window(k, Some(order)) {
                        self.reading = Some(Box::new(ahead));
                        return None;
                    }
                }
                if flags.any(Flags::LOCKED) {
                    return Some(Step::Wait(k.wait_for_page(folio)));
                }
            }
            let readahead = &mut k.pages.files().opens[self.open].readahead;
            // A folio is used once, however many of its pages are read one after the other.
            let again = match order {
                Order::ZERO => index == self.first && readahead.after == Some(index + 1),
                _ => readahead.after.is_some_and(|a| a.wrapping_sub(1) >> order.get() == index >> order.get()),
            };
            readahead.after = Some(index + 1);
            if !again {
                k.mem.mark_accessed(c.cpu, folio);
            }
            c.now += page_ns + k.far_pages(c, pfn, 1);
            (self.next, self.missed) = (index + 1, false);
        }
        k.charge(&mut c.now);
        if let Some(change) = k.pages.files().read_by_somebody(self.inode) {
            self.change = Some(Box::new(change));
            return Some(Step::Working);
        }
        Some(Step::Done(Value::Pages(u64::from(self.end - self.first))))
    }

    /// The pages to read in from the next one on, or from the folio of this order that bears the
    /// mark.
    fn window(&self, k: &mut Kernel, marked: Option<Order>) -> Option<ReadIn> {
        let index = marked.map_or(self.next, |order| self.next & !(order.pages() - 1));
        let folios = k.pages.files().folios_of(&k.mem, self.inode);
        let files = k.pages.files();
        let mut readahead = files.opens[self.open].readahead;
        let there = |page| files.find(self.inode, page).is_some();
        let window = readahead.ask(Asked { index, wanted: self.end - index, marked }, folios, there);
        files.opens[self.open].readahead = readahead;
        window.map(|window| ReadIn::ahead(k, self.inode, window))
    }
}
