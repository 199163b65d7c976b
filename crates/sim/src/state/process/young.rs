//! Marks of use: what reclaim and the walks that age generations learn from page tables.
//!
//! The processor marks an entry as used, and on some kernels its table. The caller that asks clears
//! the mark. Sources: `mm/rmap.c`, and of generations `lru_gen_look_around` and `walk_mm` in
//! `mm/vmscan.c`.

use super::address_space::AddressSpaces;
use super::mapping::Mapping;
use super::page_table::Mark;
use crate::base::rw_lock::Mode;
use crate::state::file::{Flags, Frames};
use crate::state::object::TABLE_PAGES;
use kontig_mm::{Around, Memory, NEIGHBOURS, Order, Pfn, TableWalk};
use std::ops::Range;

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
}

impl AddressSpaces {
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

    /// Tests and clears whether a page of a file was accessed through a mapping.
    pub(crate) fn take_young(&mut self, mapping: u32, index: u32, pfn: Pfn) -> bool {
        self.maps(mapping, index, pfn).is_some_and(|page| self.test_and_clear_young(mapping, page, pfn))
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::file::Readahead;
    use crate::state::object::Objects;
    use crate::state::process::mapping::FileMap;
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
