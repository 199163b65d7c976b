//! Address spaces: which mappings a process has, and which frame each of their pages is mapped to.
//!
//! Where a page is, its page table says ([`super::page_table`]). The way back, from frame to page, is the number that the
//! engine keeps with a frame ([`crate::object`]).
//! Page tables themselves take kernel pages of the simulated machine, one for each 2 MiB, as real ones do.

use super::page_table::PageTables;
use crate::object::{ObjectId, Objects, TABLE_PAGES};
use crate::pages::UserPage;
use crate::slots::Slots;
use kontig_mm::Pfn;
use kontig_program::Region;

/// Host bytes for each page that is mapped, at most: an entry of its own, and a bit.
pub const BYTES_PER_PAGE: u64 = 5;

/// The number of a mapping among those of all processes. Regions name it otherwise: by its number in its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappingId(pub(crate) u32);

/// A page of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) mapping: MappingId,
    pub(crate) page: u32,
}

/// A stretch of a mapping: a region of which it is known that its process has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) mapping: MappingId,
    pub(crate) first: u32,
    pub(crate) pages: u32,
}

/// A mapping of a process.
#[derive(Clone)]
pub(crate) struct Mapping {
    /// Its process, and its number there.
    process: u32,
    region: u32,
    pages: u32,
    object: ObjectId,
    /// Its place among the mappings of the object.
    place: u32,
    /// The number of its first page, which is the object's.
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
    /// The number that the engine keeps with the frame of one of its pages.
    #[inline(always)]
    pub(crate) fn number(&self, page: u32) -> u32 {
        self.first + page
    }
    /// Its length in pages.
    pub(crate) fn pages(&self) -> u32 {
        self.pages
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

/// A process's mappings.
#[derive(Clone, Default)]
struct AddressSpace {
    mappings: Slots<MappingId>,
    /// Whether the process is on another CPU than the one whose turn it is, with its translations live there.
    running: bool,
}

/// All address spaces of the machine.
#[derive(Clone, Default)]
pub(crate) struct AddressSpaces {
    spaces: Slots<AddressSpace>,
    mappings: Slots<Mapping>,
}

impl AddressSpaces {
    /// Adds a process; its number.
    pub(crate) fn add_process(&mut self) -> u32 {
        self.spaces.add(AddressSpace::default())
    }

    /// Says whether a process is on another CPU than the one whose turn it is.
    pub(crate) fn set_running(&mut self, process: u32, running: bool) {
        self.spaces[process].running = running;
    }

    /// Maps an object of so many pages for a process.
    pub(crate) fn map_object(&mut self, objects: &mut Objects, process: u32, object: ObjectId, pages: u32) -> Region {
        let tables = pages.div_ceil(TABLE_PAGES) as usize;
        let id = MappingId(self.mappings.add(Mapping {
            process,
            region: 0,
            pages,
            object,
            place: 0,
            first: objects.first(object),
            huge: false,
            entries: PageTables::new(pages),
            tables: vec![Table::default(); tables],
        }));
        let region = self.spaces[process].mappings.add(id);
        let m = self.mapping(id);
        m.region = region;
        m.place = objects.map(object, id.0);
        Region { mapping: region, first: 0, pages }
    }

    /// Takes away a mapping of which no page is mapped any more. The object it had, if no other mapping has it.
    pub(crate) fn unmap_object(&mut self, objects: &mut Objects, id: MappingId) -> Option<ObjectId> {
        let m = self.mappings.remove(id.0);
        debug_assert!((0..m.pages).step_by(TABLE_PAGES as usize).all(|page| m.is_range_empty(page)));
        self.spaces[m.process].mappings.remove(m.region);
        if let Some(moved) = objects.unmap(m.object, m.place) {
            self.mapping(MappingId(moved)).place = m.place;
        }
        objects.mappings(m.object).is_empty().then_some(m.object)
    }

    /// The stretch that a region is, if `process` has all of it.
    #[inline(always)]
    pub(crate) fn span(&self, process: u32, r: Region) -> Option<Span> {
        let mapping = *self.spaces[process].mappings.get(r.mapping)?;
        let m = &self.mappings[mapping.0];
        (r.first.checked_add(r.pages)? <= m.pages).then_some(Span { mapping, first: r.first, pages: r.pages })
    }

    /// The mapping that a region of a process names, if there is one.
    #[inline(always)]
    fn peek(&self, process: u32, r: Region) -> Option<&Mapping> {
        let id = self.spaces.get(process)?.mappings.get(r.mapping)?;
        self.mappings.get(id.0)
    }

    /// The entries of the mapping of a region, which may be no region at all.
    #[inline(always)]
    pub(crate) fn entries_of(&self, process: u32, r: Region) -> Option<&PageTables> {
        self.peek(process, r).map(|m| &m.entries)
    }

    /// The frame that a region's first page is mapped to singly; the region may be no region at all.
    #[inline(always)]
    pub(crate) fn peek_pte(&self, process: u32, r: Region) -> Option<Pfn> {
        let m = self.peek(process, r)?;
        (r.first < m.pages).then(|| m.pte(r.first))?
    }

    #[inline(always)]
    pub(crate) fn mapping(&mut self, id: MappingId) -> &mut Mapping {
        &mut self.mappings[id.0]
    }

    /// If a mapping maps a page of its object to this frame, singly or in a huge page: as which page.
    pub(crate) fn mapped_as(&self, mapping: u32, page: u32, pfn: Pfn) -> Option<UserPage> {
        let m = &self.mappings[mapping];
        let is_there = page < m.pages && (m.pte(page) == Some(pfn) || m.table(page).huge() == Some(pfn));
        is_there.then_some(UserPage { process: m.process, mapping: m.region, page })
    }

    /// If a mapping maps a page of its object singly to the frame `from`, it maps it to `to` from now on. Whether another
    /// CPU has to be told.
    #[inline(always)]
    pub(crate) fn moved(&mut self, mapping: u32, page: u32, from: Pfn, to: Pfn) -> bool {
        let m = &mut self.mappings[mapping];
        if page >= m.pages || m.pte(page) != Some(from) {
            return false;
        }
        m.entries.moved(page, to);
        self.spaces[m.process].running
    }
}
