//! Address spaces: which page of which process is where, and moving it when compaction asks.
//!
//! Four bytes a page: a page-table entry. The way back, from frame to page, is the frame's owner ([`UserPage`]).
//! Page tables themselves take kernel pages of the simulated machine, one for each 2 MiB, as real ones do.

pub(crate) use crate::owner::TABLE_PAGES;
use crate::owner::{Owners, UserPage};
use kontig_mm::{MigrateOutcome, Owner, Pfn};
use kontig_program::Region;

/// Host bytes for each page that was ever mapped.
pub const BYTES_PER_PAGE: u64 = 4;

/// A mapping of a process. The entries are untouched host memory until pages are mapped.
#[derive(Clone)]
pub(crate) struct Mapping {
    process: usize,
    pages: u32,
    /// The number of its first page as an owner.
    first: u32,
    huge: bool,
    /// Frame + 1 of every page; 0 where none is mapped singly.
    ptes: Vec<u32>,
    tables: Vec<Table>,
}

/// The page table of one 2 MiB range.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Table {
    page: u32,
    huge: u32,
    mapped: u32,
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
    /// Whether nothing is mapped.
    pub(crate) fn is_empty(&self) -> bool {
        self.mapped == 0 && self.huge == 0
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
        self.ptes[page as usize].checked_sub(1).map(Pfn::new)
    }
    #[inline(always)]
    pub(crate) fn set_pte(&mut self, page: u32, pfn: Pfn) {
        self.ptes[page as usize] = pfn.get() + 1;
        self.table_mut(page).mapped += 1;
    }
    #[inline(always)]
    pub(crate) fn clear_pte(&mut self, page: u32) {
        self.ptes[page as usize] = 0;
        self.table_mut(page).mapped -= 1;
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
            ptes: vec![0; pages as usize],
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

    /// Asks for the entry of a region's first page; the region may be no region at all.
    #[inline(always)]
    pub(crate) fn prefetch_pte(&self, r: Region) {
        if let Some(m) = self.mappings.get(r.mapping as usize) {
            kontig_mm::prefetch(m.ptes.as_ptr().wrapping_add(r.first as usize));
        }
    }

    /// The frame that a region's first page is mapped to singly; the region may be no region at all.
    #[inline(always)]
    pub(crate) fn peek_pte(&self, r: Region) -> Option<Pfn> {
        let entry = self.mappings.get(r.mapping as usize)?.ptes.get(r.first as usize)?;
        entry.checked_sub(1).map(Pfn::new)
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
        m.ptes[page as usize] = to.get() + 1;
        self.shootdowns += u64::from(self.running[m.process]);
        MigrateOutcome::Moved
    }
}
