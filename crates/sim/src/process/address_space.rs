//! Address spaces: which page of which process is where, and moving it when compaction asks.
//!
//! Where a page is, its page table says ([`super::page_table`]). The way back, from frame to page, is the frame's owner
//! ([`UserPage`]).
//! Page tables themselves take kernel pages of the simulated machine, one for each 2 MiB, as real ones do.

use super::page_table::PageTables;
pub(crate) use crate::owner::TABLE_PAGES;
use crate::owner::{Owners, UserPage};
use kontig_mm::{MigrateOutcome, Owner, Pfn};
use kontig_program::Region;

/// Host bytes for each page that is mapped, at most: an entry of its own, and a bit.
pub const BYTES_PER_PAGE: u64 = 5;

/// A mapping of a process.
#[derive(Clone)]
pub(crate) struct Mapping {
    process: usize,
    pages: u32,
    /// The number of its first page as an owner.
    first: u32,
    huge: bool,
    entries: PageTables,
    tables: Vec<Table>,
}

/// The page table of one 2 MiB range, single pages aside.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Table {
    page: u32,
    huge: u32,
}

impl Table {
    /// The kernel page that holds the table.
    pub(crate) fn page(&self) -> Option<Pfn> {
        self.page.checked_sub(1).map(Pfn::new)
    }
    pub(crate) fn set_page(&mut self, pfn: Option<Pfn>) {
        self.page = pfn.map_or(0, |p| p.get() + 1);
    }
    /// The huge page mapped instead of single pages.
    pub(crate) fn huge(&self) -> Option<Pfn> {
        self.huge.checked_sub(1).map(Pfn::new)
    }
    pub(crate) fn set_huge(&mut self, pfn: Option<Pfn>) {
        self.huge = pfn.map_or(0, |p| p.get() + 1);
    }
}

impl Mapping {
    /// The number of one of its pages as an owner.
    #[inline(always)]
    pub(crate) fn owner(&self, page: u32) -> u32 {
        self.first + page
    }
    #[inline(always)]
    pub(crate) fn table(&self, page: u32) -> Table {
        self.tables[(page / TABLE_PAGES) as usize]
    }
    #[inline(always)]
    pub(crate) fn table_mut(&mut self, page: u32) -> &mut Table {
        &mut self.tables[(page / TABLE_PAGES) as usize]
    }
    /// The frame a page is mapped to singly.
    #[inline(always)]
    pub(crate) fn pte(&self, page: u32) -> Option<Pfn> {
        self.entries.get(page)
    }
    #[inline(always)]
    pub(crate) fn set_pte(&mut self, page: u32, pfn: Pfn) {
        self.entries.map(page, pfn);
    }
    #[inline(always)]
    pub(crate) fn clear_pte(&mut self, page: u32) {
        self.entries.unmap(page);
    }
    /// Whether nothing of a page's 2 MiB range is mapped.
    pub(crate) fn is_range_empty(&self, page: u32) -> bool {
        self.entries.is_empty(page) && self.table(page).huge == 0
    }
    /// Whether a fault at `page` may take a huge page: advised, its whole range in the mapping, no table there yet.
    pub(crate) fn wants_huge(&self, page: u32) -> bool {
        let start = page & !(TABLE_PAGES - 1);
        self.huge && self.table(page).page().is_none() && start + TABLE_PAGES <= self.pages
    }
    /// `madvise(MADV_HUGEPAGE)`.
    pub(crate) fn advise_huge(&mut self) {
        self.huge = true;
    }
}

/// All mappings of the machine.
#[derive(Clone, Default)]
pub(crate) struct AddressSpaces {
    mappings: Vec<Mapping>,
    owners: Owners,
    /// Whether a process is on another CPU than the one whose turn it is, with its translations live there.
    running: Vec<bool>,
    /// Migrations since last asked that had to interrupt another CPU.
    shootdowns: u64,
}

impl AddressSpaces {
    /// Adds a process; its number.
    pub(crate) fn add_process(&mut self) -> usize {
        self.running.push(false);
        self.running.len() - 1
    }

    /// Says whether a process is on another CPU than the one whose turn it is.
    pub(crate) fn set_running(&mut self, process: usize, running: bool) {
        self.running[process] = running;
    }

    /// Maps so many pages for a process; `None` if so much has been mapped that there is no room left.
    pub(crate) fn mmap(&mut self, process: usize, pages: u32) -> Option<Region> {
        let first = self.owners.add(pages)?;
        let tables = pages.div_ceil(TABLE_PAGES) as usize;
        self.mappings.push(Mapping {
            process,
            pages,
            first,
            huge: false,
            entries: PageTables::new(pages),
            tables: vec![Table::default(); tables],
        });
        Some(Region { mapping: self.mappings.len() as u32 - 1, first: 0, pages })
    }

    /// The owner whose number is kept with a frame.
    pub(crate) fn owner(&self, number: u32) -> UserPage {
        self.owners.of_number(number)
    }

    /// The mapping of a region, if `process` has it and it holds the whole region.
    pub(crate) fn get(&self, process: usize, r: Region) -> Option<&Mapping> {
        let m = self.mappings.get(r.mapping as usize)?;
        (m.process == process && r.first.checked_add(r.pages)? <= m.pages).then_some(m)
    }

    /// The entries of the mapping of a region, which may be no region at all.
    #[inline(always)]
    pub(crate) fn entries_of(&self, r: Region) -> Option<&PageTables> {
        self.mappings.get(r.mapping as usize).map(|m| &m.entries)
    }

    /// The frame that a region's first page is mapped to singly; the region may be no region at all.
    #[inline(always)]
    pub(crate) fn peek_pte(&self, r: Region) -> Option<Pfn> {
        let m = self.mappings.get(r.mapping as usize)?;
        (r.first < m.pages).then(|| m.pte(r.first))?
    }

    /// Migrations since last asked that had to interrupt another CPU.
    pub(crate) fn take_shootdowns(&mut self) -> u64 {
        std::mem::take(&mut self.shootdowns)
    }

    #[inline(always)]
    pub(crate) fn mapping(&mut self, mapping: u32) -> &mut Mapping {
        &mut self.mappings[mapping as usize]
    }
}

impl Owner for AddressSpaces {
    fn may_isolate(&mut self, _pfn: Pfn) -> bool {
        // Nothing pins user pages on this machine: no direct I/O, no device access.
        true
    }

    #[inline]
    fn migrate(&mut self, _from: Pfn, to: Pfn, owner: u32) -> MigrateOutcome {
        let UserPage { mapping, page } = self.owners.of_number(owner);
        let m = &mut self.mappings[mapping as usize];
        m.entries.moved(page, to);
        self.shootdowns += u64::from(self.running[m.process]);
        MigrateOutcome::Moved
    }
}
