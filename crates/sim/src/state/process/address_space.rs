//! Address spaces: the mappings of processes, and the frames of their pages.
//!
//! A page table gives the frame of a page ([`super::page_table`]). The way back, from frame to
//! page, is the number that the engine keeps with a frame ([`crate::state::object`]). Page tables
//! themselves take kernel pages of the simulated machine, one for each 2 MiB, as real ones do.

use super::mmap_lock::{MappingLock, MmapLock};
use super::page_table::{Mark, PageTables};
use crate::base::id::{MappingId, Span, UserPage};
use crate::base::rw_lock::Mode;
use crate::base::slots::Slots;
use crate::state::file::{Cache, Flags, Frames, Object, Readahead};
use crate::state::object::{ObjectId, Objects, TABLE_PAGES};
use crate::state::swap::Slot;
use crate::state::swap::readahead::Window;
use kontig_mm::{Around, GroupId, MemPolicy, Memory, NEIGHBOURS, Order, Pfn, TableWalk};
use kontig_program::Region;
use std::fmt;
use std::ops::Range;

/// Host bytes for each mapped page, at most: an entry of its own, and a bit.
pub const BYTES_PER_PAGE: u64 = 5;

/// A mapping of a process.
#[derive(Clone)]
pub(crate) struct Mapping {
    /// Its process, and its number there.
    process: u32,
    region: u32,
    pages: u32,
    object: ObjectId,
    /// Its place in the object's list of mappings.
    place: u32,
    /// The number of its first page, which is the object's.
    first: u32,
    huge: bool,
    /// Whether it begins inside a range of 2 MiB, which it shares with the mapping below it: the
    /// first fault there finds the range used or unmapped in part.
    begins_inside: bool,
    entries: PageTables,
    tables: Vec<Table>,
    /// Whether page tables have marks of use of their own, for walks that age generations.
    marks_tables: bool,
    swap_window: Window,
    /// The file it maps, if any.
    file: Option<FileMap>,
    pub(crate) lock: MappingLock,
    /// Whether it is being removed and can no longer be used.
    leaving: bool,
    /// Policies of ranges that differ from the process's. Where they overlap, the last one counts.
    policies: Vec<(Range<u32>, Option<MemPolicy>)>,
}

/// A part of a file, mapped for reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileMap {
    pub(crate) inode: u32,
    /// The page of the file at the start of the mapping.
    pub(crate) first: u32,
    pub(crate) readahead: Readahead,
}

/// Contents of a page table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    /// The page was never used.
    None,
    Frame(Pfn),
    /// The shared zero page: the page was only read.
    Zero,
    /// A slot in swap.
    Swap(Slot),
}

/// Stands for the zero page in place of a frame number.
const ZERO: u32 = u32::MAX - 1;

/// The contents of an entry marked as elsewhere.
fn elsewhere(at: Pfn) -> Entry {
    if at.get() == ZERO { Entry::Zero } else { Entry::Swap(Slot::new(at.get())) }
}

/// The page table of one 2 MiB range, without its entries for small pages.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Table {
    page: u32,
    /// First frame of the huge page, a multiple of 512, with flags in the low bits. Without one,
    /// only [`ACCESSED`] may be set: it is the table's own mark of use.
    huge: u32,
}

/// In [`Table::huge`]: there is a huge page.
const PRESENT: u32 = 1;
const PROTECTED: u32 = 2;
const ACCESSED: u32 = 4;

impl Table {
    /// The kernel page that holds the table.
    pub(crate) fn page(&self) -> Option<Pfn> {
        self.page.checked_sub(1).map(Pfn::new)
    }
    pub(crate) fn set_page(&mut self, pfn: Option<Pfn>) {
        self.page = pfn.map_or(0, |p| p.get() + 1);
    }
    /// The huge page mapped in place of small pages.
    pub(crate) fn huge(&self) -> Option<Pfn> {
        (self.huge & PRESENT != 0).then(|| Pfn::new(self.huge & !(TABLE_PAGES - 1)))
    }
    pub(crate) fn set_huge(&mut self, pfn: Option<Pfn>) {
        self.huge = pfn.map_or(0, |p| p.get() | PRESENT);
    }
    /// Marks the huge page as accessed, or the table itself.
    pub(crate) fn set_accessed(&mut self) {
        self.huge |= ACCESSED;
    }
    fn is_accessed(&self) -> bool {
        self.huge & ACCESSED != 0
    }
    /// Tests and clears whether the huge page was accessed.
    fn take_accessed(&mut self) -> bool {
        let was = self.huge & ACCESSED != 0;
        self.huge &= !ACCESSED;
        was
    }
    /// Whether the huge page is write-protected in a writable mapping.
    pub(crate) fn is_protected(&self) -> bool {
        self.huge & PROTECTED != 0
    }
    pub(crate) fn set_protected(&mut self, on: bool) {
        self.huge = if on { self.huge | PROTECTED } else { self.huge & !PROTECTED };
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mapping {} of process {}", self.region, self.process)
    }
}

/// The number of the page table that has a page of a mapping.
fn table_number(mapping: u32, page: u32) -> u64 {
    u64::from(mapping) << 32 | u64::from(page / TABLE_PAGES)
}

/// The pages looked at around one of a mapping of this many: at most [`NEIGHBOURS`] of its table.
fn window(page: u32, pages: u32) -> Range<u32> {
    let most = NEIGHBOURS as u32;
    let start = page & !(TABLE_PAGES - 1);
    let end = (start + TABLE_PAGES).min(pages);
    match () {
        () if end - start <= most => start..end,
        () if page - start < most / 2 => start..start + most,
        () if end - page < most / 2 => end - most..end,
        () => page - most / 2..page + most / 2,
    }
}

impl Mapping {
    /// The number that the engine keeps with the frame of one of its pages.
    #[inline(always)]
    pub(crate) fn number(&self, page: u32) -> u32 {
        self.first + page
    }
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
    /// The frame of a small page.
    #[inline(always)]
    pub(crate) fn pte(&self, page: u32) -> Option<Pfn> {
        self.entries.get(page).filter(|_| !self.entries.is(page, Mark::Elsewhere))
    }
    /// The entry of a page that is not in a huge page.
    #[inline(always)]
    pub(crate) fn entry(&self, page: u32) -> Entry {
        match self.entries.get(page) {
            None => Entry::None,
            Some(at) if self.entries.is(page, Mark::Elsewhere) => elsewhere(at),
            Some(pfn) => Entry::Frame(pfn),
        }
    }
    /// Replaces a swap entry by a frame; it is protected unless `may_write`.
    pub(crate) fn swap_in(&mut self, page: u32, pfn: Pfn, may_write: bool) {
        self.entries.moved(page, pfn);
        self.entries.mark(page, Mark::Elsewhere, false);
        self.entries.mark(page, Mark::Protected, !may_write);
    }
    /// The file it maps, if any.
    #[inline(always)]
    pub(crate) fn file(&self) -> Option<&FileMap> {
        self.file.as_ref()
    }
    pub(crate) fn file_mut(&mut self) -> &mut FileMap {
        self.file.as_mut().expect("it maps a file")
    }
    /// The readahead window for swap.
    pub(crate) fn swap_window(&mut self) -> &mut Window {
        &mut self.swap_window
    }
    /// Whether a small page's entry is empty.
    #[inline(always)]
    pub(crate) fn is_none(&self, page: u32) -> bool {
        self.entries.get(page).is_none()
    }
    /// Maps the zero page, write-protected.
    pub(crate) fn set_zero(&mut self, page: u32) {
        self.entries.keep_marks();
        self.entries.map(page, Pfn::new(ZERO));
        self.entries.mark(page, Mark::Elsewhere, true);
        self.entries.mark(page, Mark::Protected, true);
    }
    /// Replaces the frame of a protected page and makes it writable.
    pub(crate) fn replace_pte(&mut self, page: u32, pfn: Pfn) {
        self.entries.moved(page, pfn);
        self.entries.mark(page, Mark::Elsewhere, false);
        self.entries.mark(page, Mark::Protected, false);
    }
    /// Whether a write to a mapped page faults.
    #[inline(always)]
    pub(crate) fn is_protected(&self, page: u32) -> bool {
        self.entries.is(page, Mark::Protected)
    }
    /// Whether a page was accessed.
    pub(crate) fn is_young(&self, page: u32) -> bool {
        self.entries.is(page, Mark::Accessed)
    }
    /// Takes the marks of use off the entries from this one on that are looked at as one, and end
    /// before `end`: an entry alone or, where those of a folio are taken together, as many as map
    /// its pages one after the other. Their number, and the folio if one was used and `fits` names
    /// it. A page in the swap cache learns from its entry that it was written.
    fn take_young(
        &mut self,
        page: u32,
        end: u32,
        together: bool,
        frames: &mut Frames,
        fits: &dyn Fn(Pfn) -> bool,
    ) -> (u32, Option<Pfn>) {
        let Some(pfn) = self.pte(page) else { return (1, None) };
        let mut entries = page..page + 1;
        let order = frames.flags(pfn).order();
        let folio = pfn.block_start(order);
        if together && order > Order::ZERO {
            let last = end.min(page + folio.plus(order.pages()).get() - pfn.get());
            let follows = |next: &u32| self.pte(*next) == Some(pfn.plus(*next - page));
            entries.end += (page + 1..last).take_while(follows).count() as u32;
        }
        let is_young = entries.clone().any(|page| self.is_young(page)) && fits(folio);
        if is_young {
            let written = entries.clone().any(|page| self.entries.is(page, Mark::Dirty));
            if written && frames.flags(folio).any(Flags::SWAP_CACHE) {
                frames.set(folio, Flags::DIRTY);
            }
            entries.clone().for_each(|page| self.entries.mark(page, Mark::Accessed, false));
        }
        (entries.len() as u32, is_young.then_some(folio))
    }

    /// Takes the marks of use off the entries of some pages, and hands on each folio that was used
    /// and fits, once where its entries follow each other. The number of entries that count as
    /// used.
    fn take_all_young(
        &mut self,
        pages: Range<u32>,
        together: bool,
        frames: &mut Frames,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Pfn),
    ) -> u32 {
        let (mut at, mut young, mut last) = (pages.start, 0, None);
        while at < pages.end {
            // A row begins with an entry that was used; those before it count for nothing.
            if !self.is_young(at) {
                at += 1;
                continue;
            }
            let (entries, folio) = self.take_young(at, pages.end, together, frames, fits);
            at += entries;
            let Some(folio) = folio else { continue };
            young += entries;
            if last.replace(folio) != Some(folio) {
                found(folio);
            }
        }
        young
    }
    /// Makes a page writable.
    pub(crate) fn unprotect(&mut self, page: u32) {
        self.entries.mark(page, Mark::Protected, false);
    }
    /// Pages of the mapping in memory.
    pub(crate) fn rss(&self) -> u64 {
        let huge = self.tables.iter().filter(|table| table.huge().is_some()).count() as u64;
        self.entries.frames() + huge * u64::from(TABLE_PAGES)
    }
    /// Pages of the mapping in swap.
    pub(crate) fn swapped(&self) -> u64 {
        self.entries.elsewhere().filter(|entry| *entry != ZERO).count() as u64
    }
    /// Page tables of the mapping.
    pub(crate) fn page_tables(&self) -> u64 {
        self.tables.iter().filter(|table| table.page().is_some()).count() as u64
    }
    #[inline(always)]
    pub(crate) fn set_pte(&mut self, page: u32, pfn: Pfn) {
        self.entries.map(page, pfn);
    }
    /// The processor marks a page table as used with each of its entries.
    #[inline(always)]
    fn use_table(&mut self, page: u32) {
        if self.marks_tables {
            self.table_mut(page).set_accessed();
        }
    }
    /// Marks a page as accessed, and as dirty if it was written.
    #[inline(always)]
    pub(crate) fn used(&mut self, page: u32, written: bool) {
        self.use_table(page);
        self.entries.used(page, written);
    }
    /// Marks pages in the same way from this one on, while each holds a frame and needs no fault;
    /// their number, of this many of one table.
    #[inline(always)]
    pub(crate) fn used_while_there(&mut self, page: u32, most: u32, written: bool) -> u32 {
        self.use_table(page);
        self.entries.used_while_there(page, most, written)
    }
    /// Calls `found` for the frames of mapped pages of one table, in order, with a first frame and
    /// how many follow it in its pageblock.
    #[inline(always)]
    pub(crate) fn frames_of(&self, page: u32, pages: u32, found: impl FnMut(Pfn, u32)) {
        self.entries.frames_of(page, pages, found);
    }
    /// The number of small pages with frames among these of one table.
    pub(crate) fn frames(&self, page: u32, pages: u32) -> u32 {
        self.entries.frames_among(page, pages)
    }
    /// The number of empty entries from this one on, among this many of one table.
    #[inline(always)]
    pub(crate) fn unmapped(&self, page: u32, most: u32) -> u32 {
        self.entries.unmapped(page, most)
    }
    /// Maps frames at empty entries of one table and marks them as written.
    #[inline(always)]
    pub(crate) fn map_written(&mut self, page: u32, frames: &[Pfn]) {
        self.use_table(page);
        self.entries.map_written(page, frames);
    }
    /// Clears entries of one table from this one on, while each holds a frame, and returns the
    /// frames; their number.
    #[inline(always)]
    pub(crate) fn take_frames(&mut self, page: u32, frames: &mut [Pfn]) -> usize {
        self.entries.take_frames(page, frames)
    }
    /// Clears a small page's entry; its contents, and whether the page was accessed.
    #[inline(always)]
    pub(crate) fn take(&mut self, page: u32) -> Option<(Entry, bool)> {
        let taken = self.entries.take(page)?;
        Some((if taken.is_elsewhere { elsewhere(taken.at) } else { Entry::Frame(taken.at) }, taken.was_accessed))
    }
    /// Whether nothing in a page's 2 MiB range is mapped.
    pub(crate) fn is_range_empty(&self, page: u32) -> bool {
        self.entries.is_empty(page) && self.table(page).huge().is_none()
    }
    /// The policy of a page, if it differs from the process's.
    #[inline(always)]
    pub(crate) fn policy(&self, page: u32) -> Option<MemPolicy> {
        let of_page = |(range, policy): &(Range<u32>, _)| range.contains(&page).then_some(*policy);
        if self.policies.is_empty() { None } else { self.policies.iter().rev().find_map(of_page)? }
    }
    /// Whether any page may have a policy of its own.
    #[inline(always)]
    pub(crate) fn has_policies(&self) -> bool {
        !self.policies.is_empty()
    }
    /// Sets the policy of a range; `None` for the process's.
    pub(crate) fn bind(&mut self, pages: Range<u32>, policy: Option<MemPolicy>) {
        self.policies.retain(|(range, _)| range.start < pages.start || pages.end < range.end);
        self.policies.push((pages, policy));
    }
    /// Whether the program has asked for huge pages.
    pub(crate) fn is_advised_huge(&self) -> bool {
        self.huge
    }
    /// Whether a fault at `page` may take a huge page: its whole range is in the mapping, and
    /// nothing in it is mapped.
    pub(crate) fn has_room_for_huge(&self, page: u32) -> bool {
        self.has_range_of(page) && self.is_range_empty(page)
    }
    /// Whether all of the 2 MiB around `page` is in the mapping. Of one that begins inside such a
    /// range, the first and the last page are in one that is not.
    pub(crate) fn has_range_of(&self, page: u32) -> bool {
        let start = page & !(TABLE_PAGES - 1);
        start >= self.first_range() && start + TABLE_PAGES <= self.pages
    }
    /// The first page whose 2 MiB may be in the mapping.
    pub(crate) fn first_range(&self) -> u32 {
        if self.begins_inside { TABLE_PAGES } else { 0 }
    }
    pub(crate) fn advise_huge(&mut self) {
        self.huge = true;
    }
}

/// The mappings of a process.
#[derive(Clone, Default)]
struct AddressSpace {
    /// The memory control group of the process.
    group: GroupId,
    mappings: Slots<MappingId>,
    lock: MmapLock,
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
    spaces: Slots<AddressSpace>,
    mappings: Slots<Mapping>,
    /// Number of mappings removed so far, of all processes.
    left: u64,
    /// Whether all mappings keep marks from the start, as on machines that reclaim.
    keep_marks: bool,
    /// Whether the entries of a folio give up their marks of use as one.
    takes_folios: bool,
    /// Whether page tables have marks of use of their own, for walks that age generations.
    marks_tables: bool,
    /// The folios that a walk has found in one table.
    found: Vec<Pfn>,
}

impl AddressSpaces {
    /// No address space yet; `reclaims` says whether the machine reclaims memory, `takes_folios`
    /// whether the entries of a folio give up their marks of use as one.
    pub(crate) fn new(reclaims: bool, takes_folios: bool) -> AddressSpaces {
        AddressSpaces { keep_marks: reclaims, takes_folios, ..AddressSpaces::default() }
    }

    /// From now on page tables have marks of use of their own, or no longer. Those there are may
    /// have been used.
    pub(crate) fn mark_tables(&mut self, on: bool) {
        if std::mem::replace(&mut self.marks_tables, on) == on {
            return;
        }
        for mapping in self.mappings.iter_mut() {
            mapping.marks_tables = on;
            let small = mapping.tables.iter_mut().filter(|table| table.huge().is_none());
            small.for_each(|table| if on { table.set_accessed() } else { table.huge = 0 });
        }
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

    /// Tests and clears whether a page of a file was accessed through a mapping.
    pub(crate) fn take_young(&mut self, mapping: u32, index: u32, pfn: Pfn) -> bool {
        self.maps(mapping, index, pfn).is_some_and(|page| self.test_and_clear_young(mapping, page, pfn))
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

    /// Tests and clears whether a page was accessed through a mapping.
    pub(crate) fn test_and_clear_young(&mut self, mapping: u32, page: u32, pfn: Pfn) -> bool {
        let m = &mut self.mappings[mapping];
        if page >= m.pages {
            return false;
        }
        if m.table(page).huge() == Some(pfn) {
            return m.table_mut(page).take_accessed();
        }
        m.pte(page) == Some(pfn) && {
            let young = m.entries.is(page, Mark::Accessed);
            m.entries.mark(page, Mark::Accessed, false);
            young
        }
    }

    /// Whether a mapping maps this page of its object as the first of a huge page.
    pub(crate) fn maps_huge(&self, mapping: u32, page: u32, pfn: Pfn) -> bool {
        let m = &self.mappings[mapping];
        page < m.pages && m.table(page).huge() == Some(pfn)
    }

    /// The folios used in the window around a page of a mapping, in the order of their entries, as
    /// [`kontig_mm::Owner::references_around`] has it, and the table. The marks of use of those
    /// that `fits` names are cleared.
    pub(crate) fn young_around(
        &mut self,
        mapping: u32,
        page: u32,
        frames: &mut Frames,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Around),
    ) {
        let m = &mut self.mappings[mapping];
        let window = window(page, m.pages);
        let entries = window.len() as u32;
        let folio = &mut |folio| found(Around::Page(folio));
        let young = 1 + m.take_all_young(window, self.takes_folios, frames, fits, folio);
        if entries > 1 {
            found(Around::Table { table: table_number(mapping, page), entries, young });
        }
    }

    /// Takes the marks of use off the entries that map a folio of a file, from its page `first` of
    /// the file on, and looks around each that was used, or each row of them where they are taken
    /// together. Whether any was used.
    pub(crate) fn folio_young_around(
        &mut self,
        mapping: u32,
        (first, folio): (u32, Pfn),
        frames: &mut Frames,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Around),
    ) -> bool {
        let pages = frames.flags(folio).order().pages();
        let (mut at, mut used) = (0, false);
        while at < pages {
            let Some(page) = self.maps(mapping, first + at, folio.plus(at)) else {
                at += 1;
                continue;
            };
            let m = &mut self.mappings[mapping];
            let end = ((page / TABLE_PAGES + 1) * TABLE_PAGES).min(m.pages);
            let (entries, young) = m.take_young(page, end, self.takes_folios, frames, &|_| true);
            at += entries;
            if young.is_some() {
                used = true;
                self.young_around(mapping, page, frames, fits, found);
            }
        }
        used
    }

    /// The mappings of a process, in order.
    pub(crate) fn mappings_of(&self, process: u32) -> Vec<u32> {
        self.spaces.get(process).iter().flat_map(|space| space.mappings.iter().map(|id| id.0)).collect()
    }

    /// Whether nobody holds or awaits the memory map of a process to change it.
    pub(crate) fn may_be_walked(&self, process: u32) -> bool {
        self.spaces.get(process).is_some_and(|space| space.lock.map.is_open(Mode::Read))
    }

    /// Walks the page tables of a mapping. The number of entries looked at.
    pub(crate) fn walk(
        &mut self,
        mapping: u32,
        memory: &mut Memory,
        frames: &mut Frames,
        walk: &mut dyn TableWalk,
    ) -> u64 {
        let m = &mut self.mappings[mapping];
        let mut entries = 0;
        for first in (0..m.pages).step_by(TABLE_PAGES as usize) {
            if m.table(first).page().is_none() {
                continue;
            }
            if let Some(pfn) = m.table(first).huge() {
                entries += 1;
                if m.table(first).is_accessed() && walk.fits(memory, pfn) {
                    m.table_mut(first).take_accessed();
                    walk.found(memory, pfn);
                }
                continue;
            }
            let table = table_number(mapping, first);
            let pages = first..(first + TABLE_PAGES).min(m.pages);
            let was_used = m.table(first).is_accessed();
            let mut used = was_used;
            let wanted = walk.wants(memory, table, &mut used);
            if was_used && !used {
                m.table_mut(first).take_accessed();
            }
            if !wanted {
                continue;
            }
            let looked_at = pages.len() as u32;
            let mut found = std::mem::take(&mut self.found);
            let fits = |folio| walk.fits(memory, folio);
            let young = m.take_all_young(pages, self.takes_folios, frames, &fits, &mut |folio| found.push(folio));
            found.drain(..).for_each(|folio| walk.found(memory, folio));
            self.found = found;
            walk.leave(memory, table, looked_at, young);
            entries += u64::from(looked_at);
        }
        entries
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

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::{MachineSpec, ZoneSpec, ZoneType};

    /// Entries that map a folio of 16 pages from its third page on, beside two single pages. Used
    /// are one page of each half of the folio and a single one. The folios found around the first
    /// page, and what is said of the table.
    fn found_around_first(takes_folios: bool) -> (Vec<u32>, Option<Around>) {
        let (mut spaces, mut objects) = (AddressSpaces::new(true, takes_folios), Objects::default());
        let mut frames = Frames::new(64);
        let order = Order::new(4);
        frames.begin_folio(Pfn::new(16), order);
        let (process, object) = (spaces.add_process(), objects.add(0).expect("a number is left"));
        let file = FileMap { inode: 0, first: 2, readahead: Readahead::default() };
        let region = spaces.map_file(&mut objects, process, object, 17, file);
        let id = spaces.spaces[process].mappings[region.mapping];
        let m = spaces.mapping(id);
        (0..14).for_each(|page| m.set_pte(page, Pfn::new(18 + page)));
        (14..16).for_each(|page| m.set_pte(page, Pfn::new(40 + page)));
        [3, 11, 15].iter().for_each(|page| m.used(*page, false));
        let (mut pages, mut table) = (Vec::new(), None);
        spaces.young_around(id.0, 0, &mut frames, &|_| true, &mut |around| match around {
            Around::Page(pfn) => pages.push(pfn.get()),
            Around::Table { .. } => table = Some(around),
        });
        assert!((0..17).all(|page| !spaces.of(id).is_young(page)), "the marks of use are gone");
        (pages, table)
    }

    /// Looks at every table that was used, whose mark of use it clears, makes nothing young, and
    /// counts them.
    struct Used(u32);

    impl TableWalk for Used {
        fn includes_anon(&self) -> bool {
            true
        }
        fn wants(&self, _: &Memory, _: u64, used: &mut bool) -> bool {
            std::mem::take(used)
        }
        fn fits(&self, _: &Memory, _: Pfn) -> bool {
            false
        }
        fn found(&mut self, _: &mut Memory, _: Pfn) {}
        fn leave(&mut self, _: &mut Memory, _: u64, _: u32, _: u32) {
            self.0 += 1;
        }
    }

    #[test]
    fn a_table_is_used_again_when_an_entry_is_though_that_was_young_already() {
        let (mut spaces, mut objects) = (AddressSpaces::new(true, false), Objects::default());
        spaces.mark_tables(true);
        let mut frames = Frames::new(2048);
        let zone = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: 2048, present: 2048, managed: 2048 };
        let spec = MachineSpec { cpus: 1, zones: vec![zone], thp: false, lru: true };
        let mut memory = Memory::new(&spec, kontig_profiles::linux("6.12")).expect("a valid machine");
        let (process, object) = (spaces.add_process(), objects.add(1024).expect("a number is left"));
        let region = spaces.map_object(&mut objects, process, object, 1024);
        let id = spaces.spaces[process].mappings[region.mapping];
        for page in [5, 700] {
            let m = spaces.mapping(id);
            m.table_mut(page).set_page(Some(Pfn::new(page)));
            m.set_pte(page, Pfn::new(1000 + page));
            m.used(page, false);
        }
        let mut used = |spaces: &mut AddressSpaces| {
            let mut walk = Used(0);
            spaces.walk(id.0, &mut memory, &mut frames, &mut walk);
            walk.0
        };
        assert_eq!(used(&mut spaces), 2);
        assert!(spaces.of(id).is_young(5), "its page did not fit, and is young still");
        assert_eq!(used(&mut spaces), 0);
        spaces.mapping(id).used(5, false);
        assert_eq!(used(&mut spaces), 1);
    }

    #[test]
    fn a_folio_is_found_once_and_counts_by_its_used_entries_or_by_all_from_the_first_used_on() {
        let table = |young| Some(Around::Table { table: 0, entries: 17, young });
        assert_eq!(found_around_first(false), (vec![16, 55], table(1 + 3)));
        assert_eq!(found_around_first(true), (vec![16, 55], table(1 + 11 + 1)));
    }

    #[test]
    fn a_folio_is_looked_around_once_for_each_entry_that_was_used_or_for_all_that_follow_each_other() {
        let around = |takes_folios| {
            let (mut spaces, mut objects) = (AddressSpaces::new(true, takes_folios), Objects::default());
            let mut frames = Frames::new(64);
            frames.begin_folio(Pfn::new(16), Order::new(4));
            let (process, object) = (spaces.add_process(), objects.add(0).expect("a number is left"));
            let file = FileMap { inode: 0, first: 0, readahead: Readahead::default() };
            let region = spaces.map_file(&mut objects, process, object, 16, file);
            let id = spaces.spaces[process].mappings[region.mapping];
            (0..16).for_each(|page| spaces.mapping(id).set_pte(page, Pfn::new(16 + page)));
            [2, 9].iter().for_each(|page| spaces.mapping(id).used(*page, false));
            let mut tables = 0;
            // What reclaim looks at is off the lists, and does not fit.
            let found = &mut |around| tables += u32::from(matches!(around, Around::Table { .. }));
            assert!(spaces.folio_young_around(id.0, (0, Pfn::new(16)), &mut frames, &|_| false, found));
            tables
        };
        assert_eq!([false, true].map(around), [2, 1]);
    }
}
