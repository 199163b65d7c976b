//! Where a page is found used through a page table, its neighbours in that table are looked at: the
//! used ones become young, and their marks of use are taken away.
//!
//! A reclaimer that collects promoted pages, as kswapd does, promotes them where they are and
//! counts them at the end of the batch. Any other has them moved to the youngest generation by a
//! batch. Source: kernel-behaviour §4.10.2.

use super::walk::suits;
use crate::owner::{Around, Owner, References};
use crate::reclaim::control::{Promoted, ScanControl};
use crate::state::{Backing, BatchKind, Gen, Memory, PageFlags};
use crate::types::Pfn;

impl Memory {
    /// The references to a mapped page. The pages used beside it become young.
    pub(in crate::reclaim) fn references_around<O: Owner>(
        &mut self,
        owner: &mut O,
        pfn: Pfn,
        number: u32,
        sc: &mut ScanControl,
    ) -> References {
        let lruvec = self.lruvec_of(pfn);
        let file = self.lru.flags(pfn).has(PageFlags::FILE);
        let mut found = core::mem::take(&mut self.lru.aside);
        let mut hot = core::mem::take(&mut self.lru.hot_tables);
        let by_all_tiers = self.shared.profile.lru_gen.by_all_tiers();
        let fits = |pfn: Pfn| {
            let looked_at = match by_all_tiers {
                true => self.lru.used(pfn).generation().is_some(),
                // A file's page may have copies of its neighbours beside it.
                false => !file || self.lru.flags(pfn).has(PageFlags::FILE),
            };
            looked_at && self.lruvec_of(pfn) == lruvec
        };
        let groups = &self.groups;
        let counts = |group| sc.target.is_none_or(|target| groups.is_within(group, target));
        let by = owner.references_around(pfn, number, &counts, &fits, &mut |around| match around {
            Around::Page(pfn) => found.push(pfn),
            Around::Table { table, entries, young } if suits(entries, young) => hot.push(table),
            Around::Table { .. } => {}
        });
        let gens = self.lru.gens_mut(lruvec);
        let (seq, youngest) = (gens.max_seq, Gen::of(gens.max_seq));
        hot.drain(..).for_each(|table| gens.walker.insert(seq, table));
        self.lru.hot_tables = hot;
        let collects = sc.promoted.is_some();
        for pfn in found.drain(..) {
            if collects && let Some(promoted) = &mut sc.promoted {
                self.promote_and_note(pfn, youngest, promoted);
            } else {
                self.have_promoted(pfn, youngest, sc);
            }
        }
        self.lru.aside = found;
        by
    }

    /// Promotes a page where it is.
    pub(super) fn promote_and_note(&mut self, pfn: Pfn, youngest: Gen, promoted: &mut Promoted) {
        let Some(old) = self.promote(pfn, youngest).filter(|old| *old != youngest) else { return };
        let (at, pages) = (self.gen_place(pfn), i64::from(self.frames.tag(pfn).order().pages()));
        promoted.pages += 1;
        promoted.sizes[old.index()][at.kind()][at.zone_type.index()] -= pages;
        promoted.sizes[youngest.index()][at.kind()][at.zone_type.index()] += pages;
    }

    /// Has a page moved to the youngest generation through a batch.
    fn have_promoted(&mut self, pfn: Pfn, youngest: Gen, sc: &ScanControl) {
        if self.shared.profile.lru_gen.by_all_tiers() && !self.used_again(pfn) {
            return;
        }
        let flags = self.lru.flags(pfn);
        match self.lru.used(pfn).generation() {
            // Where all tiers decide, pages off the lists are not looked at.
            None => self.lru.set_flags(pfn, flags | PageFlags::REFERENCED),
            Some(of) if of != youngest && !flags.has(PageFlags::UNEVICTABLE) => {
                self.batch_add(sc.cpu, pfn, BatchKind::Activate);
            }
            Some(_) => {}
        }
    }

    /// Counts the pages promoted since this was done last.
    pub(super) fn count_promoted(&mut self, lruvec: crate::types::LruvecId, sc: &mut ScanControl) {
        let Some(promoted) = sc.promoted.as_mut().filter(|promoted| promoted.pages > 0) else { return };
        let promoted = core::mem::take(&mut **promoted);
        for of in Gen::all() {
            for backing in Backing::ALL {
                for i in 0..self.lru.vecs[lruvec].zones.len() {
                    let zone = self.lru.vecs[lruvec].zones[i];
                    let zone_type = self.zones[zone].kind.index();
                    let pages = promoted.sizes[of.index()][backing.index()][zone_type];
                    if pages == 0 {
                        continue;
                    }
                    let gens = self.lru.gens_mut(lruvec);
                    gens.nr_pages[of.index()][backing.index()][zone_type] += pages;
                    let active = gens.is_active(of);
                    let list = if active { backing.active() } else { backing.inactive() };
                    self.count_listed_of(sc.cpu, zone, lruvec, list, pages);
                }
            }
        }
    }
}
