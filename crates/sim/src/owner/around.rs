//! The references to a page and to those beside it, where pages are in generations, and walks of
//! all page tables of a process.
//!
//! Each page table that maps the page is looked at for itself, one after the other: if its entry
//! was used, so may be those around it (`lru_gen_look_around`). Of a huge page only its own entry
//! is. A folio of a file has an entry for each page; 7.2 looks around once for all that follow each
//! other. Source: `mm/rmap.c`, `mm/vmscan.c` of 6.12 and 7.2; kernel-behaviour §4.10.2, §4.10.9.

use super::Pages;
use crate::base::id::MappingId;
use kontig_mm::{Around, GroupId, Memory, Pfn, References, TableWalk};

impl Pages {
    /// Those of an anonymous page.
    pub(super) fn anon_references_around(
        &mut self,
        pfn: Pfn,
        number: u32,
        counts: &dyn Fn(GroupId) -> bool,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Around),
    ) -> References {
        let (object, page) = self.objects.at(number);
        let Pages { spaces, objects, frames, .. } = self;
        let mut ptes = 0;
        for &mapping in objects.mappings(object) {
            if !counts(spaces.group_of(spaces.process_of(MappingId(mapping)))) {
                continue;
            }
            if spaces.maps_huge(mapping, page, pfn) {
                ptes += u32::from(spaces.test_and_clear_young(mapping, page, pfn));
            } else if spaces.test_and_clear_young(mapping, page, pfn) {
                ptes += 1;
                spaces.young_around(mapping, page, frames, fits, found);
            }
        }
        References { ptes, ..References::default() }
    }

    /// Those of a file's folio: a mapping in which any of its pages was used counts once. Its
    /// entries say nothing of writes: files are mapped for reading.
    pub(super) fn file_references_around(
        &mut self,
        pfn: Pfn,
        number: u32,
        counts: &dyn Fn(GroupId) -> bool,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Around),
    ) -> References {
        let (inode, index) = self.files().place(number);
        let Some(object) = self.files().inodes[inode].object else { return References::default() };
        let Pages { spaces, objects, frames, .. } = self;
        let mut ptes = 0;
        for &mapping in objects.mappings(object) {
            if !counts(spaces.group_of(spaces.process_of(MappingId(mapping)))) {
                continue;
            }
            ptes += u32::from(spaces.folio_young_around(mapping, (index, pfn), frames, fits, found));
        }
        References { ptes, ..References::default() }
    }

    /// Walks the page tables of a process, unless it is changing its memory map.
    pub(super) fn walk_process(&mut self, m: &mut Memory, process: u32, walk: &mut dyn TableWalk) {
        let Pages { spaces, frames, walked, .. } = self;
        if !spaces.may_be_walked(process) {
            return;
        }
        for mapping in spaces.mappings_of(process) {
            if walk.includes_anon() || spaces.of(MappingId(mapping)).file().is_some() {
                *walked += spaces.walk(mapping, m, frames, walk);
            }
        }
    }
}
