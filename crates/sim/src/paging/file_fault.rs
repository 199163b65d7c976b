//! Faults on files mapped for reading.
//!
//! A fault on a page in memory also maps the pages around it that are in memory, 16 at most, where
//! the kernel has this (fault-around). A missing page is read with the pages around it, unless that
//! has missed too often. Source: `mm/filemap.c` (`filemap_fault`, `filemap_map_pages`),
//! `mm/memory.c` (`do_fault_around`) of 6.1.

use super::read_in::ReadIn;
use crate::base::context::Context;
use crate::base::id::At;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::owner::Pages;
use crate::state::file::{Asked, Flags};
use crate::state::process::mapping::FileMap;
use kontig_mm::{AllocFailure, Gfp, Pfn, Step, VmEvent};

/// `fault_around_bytes` is 64 KiB.
const AROUND: u32 = 16;
/// Pages read ahead when a fault meets the readahead mark (`ra_pages`).
const AHEAD: u32 = 32;

impl Kernel {
    /// Maps a page of a mapped file that is in memory, with those around it. False if it must be
    /// read or waited for.
    pub(crate) fn fault_file(&mut self, c: &mut Context, at: At) -> bool {
        let Some(FileMap { inode, first, .. }) = self.pages.spaces.mapping(at.mapping).file().copied() else {
            return false;
        };
        let is_ready = |pages: &Pages, page: u32| {
            let pfn = pages.files.as_ref()?.find(inode, first + page)?;
            let folio = pages.frames.head(pfn);
            (!pages.frames.flags(folio).any(Flags::LOCKED | Flags::READAHEAD)).then_some(pfn)
        };
        if is_ready(&self.pages, at.page).is_none() {
            return false;
        }
        self.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
        let around = if self.mem.profile().faults.maps_around { AROUND } else { 1 };
        let start = at.page & !(around - 1);
        let end = (start + around).min(self.pages.spaces.mapping(at.mapping).pages());
        let mut mapped = 0;
        for page in start..end {
            if !self.pages.spaces.mapping(at.mapping).is_none(page) {
                continue;
            }
            if let Some(pfn) = is_ready(&self.pages, page) {
                self.map_file_page(at.mapping, page, pfn);
                mapped += 1;
            }
        }
        let missed = &mut self.pages.spaces.mapping(at.mapping).file_mut().readahead.missed;
        *missed = missed.saturating_sub(mapped);
        c.now += self.fault_ns(at, self.costs.zero_page + self.costs.map_page * u64::from(mapped));
        true
    }

    fn map_file_page(&mut self, mapping: crate::base::id::MappingId, page: u32, pfn: Pfn) {
        let m = self.pages.spaces.mapping(mapping);
        m.set_pte(page, pfn);
        m.used(page, false);
        let is_new = !self.pages.mapcounts.is_mapped(pfn);
        self.pages.files().by_node.with(pfn).mapped += u64::from(is_new);
        self.pages.mapcounts.map_again(pfn);
    }
}

/// A fault on a page of a file that must be read or waited for.
#[derive(Clone)]
pub(crate) struct FileFault {
    at: At,
    missed: bool,
    reading: Option<Box<ReadIn>>,
}

impl FileFault {
    pub(crate) fn new(at: At) -> FileFault {
        FileFault { at, missed: false, reading: None }
    }

    /// Whether it waits for a page that is being read.
    pub(crate) fn waits_for_page(&self) -> bool {
        self.reading.is_none()
    }

    /// A step; when done, the caller looks at the page again.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<(), AllocFailure>, Wait> {
        let Some(FileMap { inode, first, .. }) = k.pages.spaces.mapping(self.at.mapping).file().copied() else {
            return Step::Done(Ok(()));
        };
        let index = first + self.at.page;
        loop {
            if let Some(reading) = &mut self.reading {
                match done!(reading.step(k, c)) {
                    Err(failure) if reading.is_needed() => return Step::Done(Err(failure)),
                    _ => self.reading = None,
                }
            }
            let Some(pfn) = k.pages.files().find(inode, index) else {
                let window = match std::mem::replace(&mut self.missed, true) {
                    true => None,
                    false => {
                        k.pages.files().counts.major_faults += 1;
                        let folios = k.pages.files().folios_of(&k.mem, inode);
                        k.pages.spaces.mapping(self.at.mapping).file_mut().readahead.around(index, folios)
                    }
                };
                let ahead = window.map(|window| ReadIn::ahead(k, inode, window));
                // A fault holds no lock of the file system (`__get_fault_gfp_mask`).
                let gfp = k.pages.files().page_gfp(inode) | Gfp::FS;
                self.reading = Some(Box::new(ahead.unwrap_or_else(|| ReadIn::one(inode, index, gfp)).in_fault()));
                continue;
            };
            let folio = k.pages.frames.head(pfn);
            let flags = k.pages.frames.flags(folio);
            if flags.any(Flags::READAHEAD) {
                k.pages.frames.clear(folio, Flags::READAHEAD);
                let folios = k.pages.files().folios_of(&k.mem, inode);
                let Pages { spaces, files, .. } = &mut k.pages;
                let (ra, files) = (&mut spaces.mapping(self.at.mapping).file_mut().readahead, files.as_ref());
                ra.missed = ra.missed.saturating_sub(1);
                let there = |page| files.is_some_and(|files| files.find(inode, page).is_some());
                // The kernel goes from the page of the fault here, not from the folio's first.
                let asked = Asked { index, wanted: AHEAD, marked: Some(flags.order()) };
                if let Some(window) = ra.ask(asked, folios, there).filter(|_| !flags.any(Flags::WRITEBACK)) {
                    self.reading = Some(Box::new(ReadIn::ahead(k, inode, window).in_fault()));
                    continue;
                }
            }
            if flags.any(Flags::LOCKED) {
                return Step::Wait(k.wait_for_page(folio));
            }
            if self.missed && k.pages.spaces.mapping(self.at.mapping).is_none(self.at.page) {
                // Only the page that was waited for: the next fault maps those around it.
                k.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
                k.map_file_page(self.at.mapping, self.at.page, pfn);
                c.now += k.fault_ns(self.at, k.costs.zero_page + k.costs.map_page);
            }
            k.charge(&mut c.now);
            return Step::Done(Ok(()));
        }
    }
}
