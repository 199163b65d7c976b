//! Address spaces: the mappings of processes, and the frames of their pages.
//!
//! A page table gives the frame of a page ([`super::page_table`]). The way back, from frame to
//! page, is the number that the engine keeps with a frame ([`crate::state::object`]). Page tables
//! themselves take kernel pages of the simulated machine, one for each 2 MiB, as real ones do.

use super::mapping::{Entry, FileMap, Mapping, Table, elsewhere};
use super::mmap_lock::{MappingLock, MmapLock};
use super::page_table::{Mark, PageTables};
use crate::base::id::{MappingId, Span, UserPage};
use crate::base::slots::Slots;
use crate::state::file::{Cache, Object};
use crate::state::object::{ObjectId, Objects, TABLE_PAGES};
use crate::state::swap::Slot;
use crate::state::swap::readahead::Window;
use kontig_mm::{GroupId, Order, Pfn};
use kontig_program::Region;

/// The mappings of a process.
#[derive(Clone, Default)]
pub(super) struct AddressSpace {
    /// The memory control group of the process.
    group: GroupId,
    pub(super) mappings: Slots<MappingId>,
    pub(super) lock: MmapLock,
    /// The blocks of the kernel that a forked process has, except its page tables: its stack, its
    /// description, and the tables above the page tables.
    own: Vec<(Pfn, Order)>,
    /// The slab objects that describe it.
    objects: Vec<(Cache, Object)>,
    /// Number of its threads on CPUs other than the running one, whose TLBs hold its translations.
    running: u32,
}

/// Memory of a process, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Size {
    pub(crate) in_memory: u64,
    pub(crate) in_swap: u64,
    pub(crate) page_tables: u64,
}

impl Size {
    /// Pages that its end would free.
    pub(crate) fn badness(self) -> u64 {
        self.in_memory + self.in_swap + self.page_tables
    }
}

/// State of a cleared entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unmapped {
    /// Whether the page was written through it.
    pub(crate) dirty: bool,
    /// Whether another CPU's TLB must be flushed.
    pub(crate) elsewhere: bool,
}

/// All address spaces of the machine.
#[derive(Clone, Default)]
pub(crate) struct AddressSpaces {
    pub(super) spaces: Slots<AddressSpace>,
    pub(super) mappings: Slots<Mapping>,
    /// Number of mappings removed so far, of all processes.
    left: u64,
    /// Whether all mappings keep marks from the start, as on machines that reclaim.
    keep_marks: bool,
    /// Whether the entries of a folio give up their marks of use as one.
    pub(super) takes_folios: bool,
    /// Whether page tables have marks of use of their own, for walks that age generations.
    pub(super) marks_tables: bool,
    /// The folios that a walk has found in one table.
    pub(super) found: Vec<Pfn>,
}

impl AddressSpaces {
    /// No address space yet; `reclaims` says whether the machine reclaims memory, `takes_folios`
    /// whether the entries of a folio give up their marks of use as one.
    pub(crate) fn new(reclaims: bool, takes_folios: bool) -> AddressSpaces {
        AddressSpaces { keep_marks: reclaims, takes_folios, ..AddressSpaces::default() }
    }

    /// All mappings of all processes.
    pub(crate) fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter()
    }

    /// The kernel's blocks of all processes, except page tables.
    pub(crate) fn all_own(&self) -> impl Iterator<Item = (Pfn, Order)> {
        self.spaces.iter().flat_map(|space| space.own.iter().copied())
    }

    /// Adds a process; its number.
    pub(crate) fn add_process(&mut self) -> u32 {
        self.spaces.add(AddressSpace::default())
    }

    /// Adds a process with a copy of each of the parent's mappings, none of whose pages is mapped
    /// yet.
    pub(crate) fn fork(&mut self, objects: &mut Objects, parent: u32) -> u32 {
        let mut mappings = self.spaces[parent].mappings.clone();
        let child = self.spaces.add(AddressSpace { group: self.spaces[parent].group, ..AddressSpace::default() });
        for id in mappings.iter_mut() {
            let m = &self.mappings[id.0];
            let (object, pages, region, file) = (m.object, m.pages, m.region, m.file);
            let (huge, begins_inside, policies) = (m.huge, m.begins_inside, m.policies.clone());
            *id = self.add_mapping(objects, child, object, pages);
            let copy = self.mapping(*id);
            (copy.region, copy.file, copy.policies) = (region, file, policies);
            (copy.huge, copy.begins_inside) = (huge, begins_inside);
        }
        self.spaces[child].mappings = mappings;
        child
    }

    /// The memory control group that a process's pages are charged to.
    #[inline(always)]
    pub(crate) fn group_of(&self, process: u32) -> GroupId {
        self.spaces[process].group
    }

    pub(crate) fn set_group(&mut self, process: u32, group: GroupId) {
        self.spaces[process].group = group;
    }

    /// Removes a process with its mappings; returns its lock.
    pub(crate) fn remove_process(&mut self, process: u32) -> MmapLock {
        let space = self.spaces.remove(process);
        debug_assert!(space.mappings.iter().next().is_none() && space.own.is_empty() && space.objects.is_empty());
        space.lock
    }

    /// The lock of a process's memory map.
    #[inline(always)]
    pub(crate) fn lock(&mut self, process: u32) -> &mut MmapLock {
        &mut self.spaces.get_mut(process).expect("the caller runs in it").lock
    }

    /// Marks a mapping as being removed.
    pub(crate) fn leave(&mut self, mapping: MappingId) {
        self.mapping(mapping).leaving = true;
        self.left += 1;
    }

    /// Number of mappings removed so far. If it has changed, a mapping looked up before may be
    /// gone.
    #[inline(always)]
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Whether a mapping is being removed.
    pub(crate) fn is_leaving(&self, mapping: MappingId) -> bool {
        self.mappings[mapping.0].leaving
    }

    /// The process's first mapping with a number of at least `region`.
    pub(crate) fn next_mapping(&self, process: u32, region: u32) -> Option<(u32, MappingId)> {
        self.spaces[process].mappings.next(region).map(|(region, id)| (region, *id))
    }

    /// The whole of a mapping.
    pub(crate) fn whole(&self, mapping: MappingId) -> Span {
        Span { mapping, first: 0, pages: self.mappings[mapping.0].pages }
    }

    /// The kernel's blocks of a process, except page tables.
    pub(crate) fn own(&mut self, process: u32) -> &mut Vec<(Pfn, Order)> {
        &mut self.spaces[process].own
    }

    /// The slab objects that describe a process, if it was forked.
    pub(crate) fn objects(&mut self, process: u32) -> &mut Vec<(Cache, Object)> {
        &mut self.spaces[process].objects
    }

    /// Memory of a process.
    pub(crate) fn size(&self, process: u32) -> Size {
        let mut size = Size::default();
        for id in self.spaces[process].mappings.iter() {
            let m = &self.mappings[id.0];
            size.in_memory += m.rss();
            size.in_swap += m.swapped();
            size.page_tables += m.page_tables();
        }
        size
    }

    fn both(&mut self, a: MappingId, b: MappingId) -> (&mut Mapping, &mut Mapping) {
        self.mappings.both(a.0, b.0)
    }

    /// Records whether a thread occupies a CPU other than the running one.
    pub(crate) fn set_running(&mut self, process: u32, running: bool) {
        if let Some(space) = self.spaces.get_mut(process) {
            space.running = if running { space.running + 1 } else { space.running - 1 };
        }
    }

    /// Threads of a mapping's process on CPUs other than the running one.
    #[inline(always)]
    pub(crate) fn running_beside(&self, mapping: MappingId) -> u32 {
        self.spaces[self.mappings[mapping.0].process].running
    }

    /// Whether a thread of a process occupies a CPU other than the running one.
    #[inline(always)]
    pub(crate) fn is_running(&self, process: u32) -> bool {
        self.spaces[process].running > 0
    }

    /// Maps an object of this many pages into a process.
    pub(crate) fn map_object(&mut self, objects: &mut Objects, process: u32, object: ObjectId, pages: u32) -> Region {
        let id = self.add_mapping(objects, process, object, pages);
        let region = self.spaces[process].mappings.add(id);
        self.mapping(id).region = region;
        Region { mapping: region, first: 0, pages }
    }

    /// Notes that a mapping begins inside a range of 2 MiB.
    pub(crate) fn begin_inside(&mut self, process: u32, region: Region) {
        let id = self.spaces[process].mappings[region.mapping];
        self.mapping(id).begins_inside = true;
    }

    /// Maps a part of a file into a process; the object lists the file's mappings.
    pub(crate) fn map_file(
        &mut self,
        objects: &mut Objects,
        process: u32,
        object: ObjectId,
        pages: u32,
        file: FileMap,
    ) -> Region {
        let region = self.map_object(objects, process, object, pages);
        let id = self.spaces[process].mappings[region.mapping];
        self.mapping(id).file = Some(file);
        region
    }

    /// Whether a region of a process maps a file, and cannot be written to.
    #[inline(always)]
    pub(crate) fn maps_file(&self, process: u32, r: Region) -> bool {
        self.peek(process, r).is_some_and(|m| m.file.is_some())
    }

    /// The files that a process maps, once for each mapping.
    pub(crate) fn files_of(&self, process: u32) -> impl Iterator<Item = u32> {
        self.spaces[process].mappings.iter().filter_map(|id| self.mappings[id.0].file.map(|file| file.inode))
    }

    /// The page of a mapping that maps this page of a file to this frame.
    pub(crate) fn maps(&self, mapping: u32, index: u32, pfn: Pfn) -> Option<u32> {
        let m = &self.mappings[mapping];
        let page = index.checked_sub(m.file?.first).filter(|page| *page < m.pages)?;
        (m.pte(page) == Some(pfn)).then_some(page)
    }

    /// Unmaps a page of a file from a mapping, if it is there; whether another CPU's TLB must be
    /// flushed.
    pub(crate) fn unmap_page(&mut self, mapping: u32, index: u32, pfn: Pfn) -> bool {
        let Some(page) = self.maps(mapping, index, pfn) else { return false };
        let m = &mut self.mappings[mapping];
        m.take(page);
        self.spaces[m.process].running > 0
    }

    /// Moves a page of a file to another frame in a mapping, if it is there; whether another CPU's
    /// TLB must be flushed.
    pub(crate) fn page_moved(&mut self, mapping: u32, index: u32, from: Pfn, to: Pfn) -> bool {
        self.maps(mapping, index, from).is_some_and(|page| self.moved(mapping, page, from, to))
    }

    fn add_mapping(&mut self, objects: &mut Objects, process: u32, object: ObjectId, pages: u32) -> MappingId {
        let tables = pages.div_ceil(TABLE_PAGES) as usize;
        let mut entries = PageTables::new(pages);
        if self.keep_marks {
            entries.keep_marks();
        }
        let id = MappingId(self.mappings.add(Mapping {
            process,
            region: 0,
            pages,
            object,
            place: 0,
            first: objects.first(object),
            huge: false,
            begins_inside: false,
            entries,
            tables: vec![Table::default(); tables],
            marks_tables: self.marks_tables,
            swap_window: Window::default(),
            file: None,
            lock: MappingLock::default(),
            leaving: false,
            policies: Vec::new(),
        }));
        self.mapping(id).place = objects.map(object, id.0);
        id
    }

    /// Removes a mapping that maps no pages. Returns the object if that was its last mapping.
    pub(crate) fn unmap_object(&mut self, objects: &mut Objects, id: MappingId) -> Option<ObjectId> {
        let m = self.mappings.remove(id.0);
        debug_assert!((0..m.pages).step_by(TABLE_PAGES as usize).all(|page| m.is_range_empty(page)));
        self.spaces[m.process].mappings.remove(m.region);
        if let Some(moved) = objects.unmap(m.object, m.place) {
            self.mapping(MappingId(moved)).place = m.place;
        }
        objects.mappings(m.object).is_empty().then_some(m.object)
    }

    /// The process of a mapping.
    pub(crate) fn process_of(&self, mapping: MappingId) -> u32 {
        self.mappings[mapping.0].process
    }

    /// The span of a region, if `process` has all of it.
    #[inline(always)]
    pub(crate) fn span(&self, process: u32, r: Region) -> Option<Span> {
        let mapping = *self.spaces[process].mappings.get(r.mapping)?;
        let m = &self.mappings[mapping.0];
        (!m.leaving && r.first.checked_add(r.pages)? <= m.pages).then_some(Span {
            mapping,
            first: r.first,
            pages: r.pages,
        })
    }

    /// The mapping of a region, if there is one.
    #[inline(always)]
    fn peek(&self, process: u32, r: Region) -> Option<&Mapping> {
        let id = self.spaces.get(process)?.mappings.get(r.mapping)?;
        self.mappings.get(id.0)
    }

    /// The page tables of a region, which may be invalid.
    #[inline(always)]
    pub(crate) fn entries_of(&self, process: u32, r: Region) -> Option<&PageTables> {
        self.peek(process, r).map(|m| &m.entries)
    }

    /// The frame of a region's first page, if a small one is mapped; the region may be invalid.
    #[inline(always)]
    pub(crate) fn peek_pte(&self, process: u32, r: Region) -> Option<Pfn> {
        let m = self.peek(process, r)?;
        (r.first < m.pages).then(|| m.pte(r.first))?
    }

    #[inline(always)]
    pub(crate) fn of(&self, id: MappingId) -> &Mapping {
        &self.mappings[id.0]
    }

    #[inline(always)]
    pub(crate) fn mapping(&mut self, id: MappingId) -> &mut Mapping {
        &mut self.mappings[id.0]
    }

    /// The page of a mapping that maps this page of its object to this frame, as a small page or
    /// part of a huge page.
    pub(crate) fn mapped_as(&self, mapping: u32, page: u32, pfn: Pfn) -> Option<UserPage> {
        let m = &self.mappings[mapping];
        let is_there = page < m.pages && (m.pte(page) == Some(pfn) || m.table(page).huge() == Some(pfn));
        is_there.then_some(UserPage { process: m.process, mapping: m.region, page })
    }

    /// The entry of a process's page, and its frame if it is in a huge page.
    pub(crate) fn entry_of(&self, at: UserPage) -> Option<(Entry, Option<Pfn>)> {
        let id = self.spaces.get(at.process)?.mappings.get(at.mapping)?;
        let m = &self.mappings[id.0];
        (at.page < m.pages)
            .then(|| (m.entry(at.page), m.table(at.page).huge().map(|pfn| pfn.plus(at.page % TABLE_PAGES))))
    }

    /// Moves a small page to another frame in a mapping that maps it to `from`. Whether another
    /// CPU's TLB must be flushed.
    #[inline(always)]
    pub(crate) fn moved(&mut self, mapping: u32, page: u32, from: Pfn, to: Pfn) -> bool {
        let m = &mut self.mappings[mapping];
        if page >= m.pages || m.pte(page) != Some(from) {
            return false;
        }
        m.entries.moved(page, to);
        self.spaces[m.process].running > 0
    }

    /// Whether a mapping maps this page of its object as the first of a huge page.
    pub(crate) fn maps_huge(&self, mapping: u32, page: u32, pfn: Pfn) -> bool {
        let m = &self.mappings[mapping];
        page < m.pages && m.table(page).huge() == Some(pfn)
    }

    /// Replaces a mapping's entry for this frame by a slot in swap.
    pub(crate) fn swap_out(&mut self, mapping: u32, page: u32, pfn: Pfn, slot: Slot) -> Option<Unmapped> {
        let m = &mut self.mappings[mapping];
        if page >= m.pages || m.pte(page) != Some(pfn) {
            return None;
        }
        let dirty = m.entries.is(page, Mark::Dirty);
        m.entries.moved(page, Pfn::new(slot.get()));
        m.entries.mark(page, Mark::Elsewhere, true);
        m.entries.mark(page, Mark::Accessed, false);
        m.entries.mark(page, Mark::Dirty, false);
        Some(Unmapped { dirty, elsewhere: self.spaces[m.process].running > 0 })
    }

    /// Splits a huge page in a mapping that maps it; the small pages keep its state.
    pub(crate) fn split_huge(&mut self, id: MappingId, page: u32, pfn: Pfn) {
        let m = &mut self.mappings[id.0];
        if page >= m.pages || m.table(page).huge() != Some(pfn) {
            return;
        }
        let protected = m.table(page).is_protected();
        let accessed = m.table_mut(page).take_accessed();
        m.table_mut(page).set_huge(None);
        if accessed {
            m.use_table(page);
        }
        if protected {
            m.entries.keep_marks();
        }
        for i in 0..TABLE_PAGES {
            m.entries.map(page + i, pfn.plus(i));
            m.entries.mark(page + i, Mark::Protected, protected);
            m.entries.mark(page + i, Mark::Accessed, accessed);
            m.entries.mark(page + i, Mark::Dirty, true);
        }
    }

    /// Copies one page table from one mapping of an object to another; both already have the table
    /// page. Calls `shared` for every entry.
    pub(crate) fn copy_table(&mut self, from: MappingId, to: MappingId, page: u32, mut shared: impl FnMut(Entry)) {
        let (from, to) = self.both(from, to);
        if let Some(pfn) = from.table(page).huge() {
            shared(Entry::Frame(pfn));
            from.table_mut(page).set_protected(true);
            to.table_mut(page).set_huge(Some(pfn));
            to.table_mut(page).set_protected(true);
        } else {
            let of = |at: Pfn, is_elsewhere| if is_elsewhere { elsewhere(at) } else { Entry::Frame(at) };
            to.entries.copy_table(&mut from.entries, page, |at, is_elsewhere| shared(of(at, is_elsewhere)));
        }
    }
}
