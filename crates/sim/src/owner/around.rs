//! The references to a page and to those beside it, where pages are in generations.
//!
//! Each page table that maps the page is looked at for itself, one after the other: if its entry
//! was used, so may be those around it (`lru_gen_look_around`). Of a huge page only its own entry
//! is. Source: `mm/rmap.c`, `mm/vmscan.c` of 6.12; kernel-behaviour §4.10.2.

use super::Pages;
use crate::state::file::Flags;
use kontig_mm::{Pfn, References};

impl Pages {
    /// Those of an anonymous page.
    pub(super) fn anon_references_around(
        &mut self,
        pfn: Pfn,
        number: u32,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Pfn),
    ) -> References {
        let (object, page) = self.objects.at(number);
        let Pages { spaces, objects, frames, .. } = self;
        let mut ptes = 0;
        for &mapping in objects.mappings(object) {
            if spaces.maps_huge(mapping, page, pfn) {
                ptes += u32::from(spaces.test_and_clear_young(mapping, page, pfn));
            } else if spaces.test_and_clear_young(mapping, page, pfn) {
                ptes += 1;
                spaces.young_around(mapping, page, fits, |young, written| {
                    // What is in the swap cache learns of a write from its entry.
                    if written && frames.flags(young).any(Flags::SWAP_CACHE) {
                        frames.set(young, Flags::DIRTY);
                    }
                    found(young);
                });
            }
        }
        References { ptes, ..References::default() }
    }

    /// Those of a file's page. Its entries say nothing of writes: files are mapped for reading.
    pub(super) fn file_references_around(
        &mut self,
        pfn: Pfn,
        number: u32,
        fits: &dyn Fn(Pfn) -> bool,
        found: &mut dyn FnMut(Pfn),
    ) -> References {
        let (inode, index) = self.files().place(number);
        let Some(object) = self.files().inodes[inode].object else { return References::default() };
        let Pages { spaces, objects, .. } = self;
        let mut ptes = 0;
        for &mapping in objects.mappings(object) {
            let Some(page) = spaces.maps(mapping, index, pfn) else { continue };
            if spaces.test_and_clear_young(mapping, page, pfn) {
                ptes += 1;
                spaces.young_around(mapping, page, fits, |young, _| found(young));
            }
        }
        References { ptes, ..References::default() }
    }
}
