//! A mapping of a process: its pages' entries and page tables, and what is said of its ranges.

use super::mmap_lock::MappingLock;
use super::page_table::{Mark, PageTables};
use crate::state::file::Readahead;
use crate::state::object::{ObjectId, TABLE_PAGES};
use crate::state::swap::Slot;
use crate::state::swap::readahead::Window;
use kontig_mm::{MemPolicy, Pfn};
use std::fmt;
use std::ops::Range;

/// Host bytes for each mapped page, at most: an entry of its own, and a bit.
pub const BYTES_PER_PAGE: u64 = 5;

/// A mapping of a process.
#[derive(Clone)]
pub(crate) struct Mapping {
    /// Its process, and its number there.
    pub(super) process: u32,
    pub(super) region: u32,
    pub(super) pages: u32,
    pub(super) object: ObjectId,
    /// Its place in the object's list of mappings.
    pub(super) place: u32,
    /// The number of its first page, which is the object's.
    pub(super) first: u32,
    pub(super) huge: bool,
    /// Whether it begins inside a range of 2 MiB, which it shares with the mapping below it: the
    /// first fault there finds the range used or unmapped in part.
    pub(super) begins_inside: bool,
    pub(super) entries: PageTables,
    pub(super) tables: Vec<Table>,
    /// Whether page tables have marks of use of their own, for walks that age generations.
    pub(super) marks_tables: bool,
    pub(super) swap_window: Window,
    /// The file it maps, if any.
    pub(super) file: Option<FileMap>,
    pub(crate) lock: MappingLock,
    /// Whether it is being removed and can no longer be used.
    pub(super) leaving: bool,
    /// Policies of ranges that differ from the process's. Where they overlap, the last one counts.
    pub(super) policies: Vec<(Range<u32>, Option<MemPolicy>)>,
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
pub(super) fn elsewhere(at: Pfn) -> Entry {
    if at.get() == ZERO { Entry::Zero } else { Entry::Swap(Slot::new(at.get())) }
}

/// The page table of one 2 MiB range, without its entries for small pages.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Table {
    page: u32,
    /// First frame of the huge page, a multiple of 512, with flags in the low bits. Without one,
    /// only [`ACCESSED`] may be set: it is the table's own mark of use.
    pub(super) huge: u32,
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
    pub(super) fn is_accessed(&self) -> bool {
        self.huge & ACCESSED != 0
    }
    /// Tests and clears whether the huge page was accessed.
    pub(super) fn take_accessed(&mut self) -> bool {
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
    pub(super) fn use_table(&mut self, page: u32) {
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
