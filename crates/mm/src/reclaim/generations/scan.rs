//! Takes pages from the tail of the oldest generation of a kind.
//!
//! Zones come in turn from the highest that helps downwards, then those above it. A page that
//! cannot be evicted now is sorted: it was promoted, it is of a protected tier, its zone does not
//! help, or it must be written first. What may not be isolated is passed over and goes back to the
//! head. 64 pages are isolated at a time. Where all tiers decide, only a batch of pages is looked
//! at, any may be isolated, and what cannot be evicted is found out then. Source: kernel-behaviour
//! §4.10.4, §4.10.9.

use super::MIN_LRU_BATCH;
use crate::event::{Event, Listen};
use crate::gfp::Gfp;
use crate::lru::generations::add::Place;
use crate::lru::generations::uses::Uses;
use crate::owner::{Owner, PageState};
use crate::reclaim::control::ScanControl;
use crate::reclaim::isolate::PGSCAN_SKIP;
use crate::state::{Backing, FrameKind, Gen, MIN_NR_GENS, Memory, PageFlags};
use crate::types::{LruvecId, Order, Pfn, ZoneType};
use crate::vmstat::VmEvent;
use alloc::vec::Vec;

/// Pages met on the lists.
#[derive(Default)]
struct Met {
    scanned: u64,
    sorted: u64,
    isolated: u64,
    skipped: u64,
    /// Folios of these that were passed over.
    folios_skipped: u64,
    /// Folios that may still be looked at.
    remaining: u64,
}

impl Memory {
    /// Isolates pages up to the tier into `out`, in order, from a batch of folios. Returns the
    /// pages looked at, or, unless all tiers decide, 0 if none was isolated and there are more to
    /// look at; and the pages isolated.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn scan_folios<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        kind: usize,
        last_tier: usize,
        batch: u64,
        sc: &mut ScanControl,
        out: &mut Vec<Pfn>,
    ) -> (u64, u64) {
        if self.lru.gens(lruvec).nr_gens(kind) == MIN_NR_GENS {
            return (0, 0);
        }
        let mut met = Met { remaining: batch, ..Met::default() };
        for i in (1..=ZoneType::COUNT).rev() {
            let zone = (sc.highest.index() + i) % ZoneType::COUNT;
            self.scan_zone(owner, lruvec, (kind, zone), last_tier, sc, &mut met, out);
            if met.remaining == 0 || met.isolated >= MIN_LRU_BATCH {
                break;
            }
        }
        let backing = Backing::ALL[kind];
        let [scan, _] = self.counted_as(sc);
        if self.counts_for_machine(sc) {
            self.shared.vmstat.add(scan, met.isolated);
            self.shared.vmstat.add(VmEvent::Pgrefill, met.sorted);
        }
        if self.groups.are_kept() {
            self.count_scanned_in_group(lruvec, sc.kswapd, met.isolated);
        }
        self.shared.vmstat.add([VmEvent::PgscanAnon, VmEvent::PgscanFile][kind], met.isolated);
        // A folio is as much work as a page.
        let folios = batch - met.remaining;
        self.count_lru_lock(lruvec, folios);
        self.shared.work.reclaim_scanned += folios - met.folios_skipped;
        self.shared.work.reclaim_skipped += met.folios_skipped;
        self.shared.emit(Listen::VMSCAN, || Event::LruIsolate {
            highest_zoneidx: sc.highest,
            order: sc.order,
            nr_requested: batch,
            nr_scanned: met.scanned,
            nr_skipped: met.skipped,
            nr_taken: met.isolated,
            lru: backing.inactive(),
        });
        if backing == Backing::File {
            sc.met.file_taken += met.isolated;
        }
        let by_all_tiers = self.shared.profile.lru_gen.by_all_tiers();
        let some = met.isolated > 0 || met.remaining == 0;
        (if by_all_tiers || some { met.scanned } else { 0 }, met.isolated)
    }

    #[allow(clippy::too_many_arguments)]
    fn scan_zone<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        (kind, zone): (usize, usize),
        last_tier: usize,
        sc: &mut ScanControl,
        met: &mut Met,
        out: &mut Vec<Pfn>,
    ) {
        let oldest = Gen::of(self.lru.gens(lruvec).min_seq[kind]);
        let mut passed_over = core::mem::take(&mut self.lru.aside);
        let mut skipped = 0;
        while let Some(pfn) = self.lru.gens(lruvec).lists[oldest.index()][kind][zone].last() {
            let order = self.frames.tag(pfn).order();
            let pages = u64::from(order.pages());
            met.scanned += pages;
            let page = match self.lru.is_released(pfn) {
                true => PageState { anon: kind == 0, ..PageState::default() },
                false => owner.page_state(pfn, self.frames.owner(pfn, order)),
            };
            if self.sort_folio(pfn, order, page, last_tier, sc) {
                met.sorted += pages;
            } else if self.isolate_folio(pfn, order, page, sc) {
                out.push(pfn);
                met.isolated += pages;
            } else {
                let at = self.gen_place(pfn);
                self.lru.gen_unlink(lruvec, pfn, kind, at.zone_type);
                passed_over.push(pfn);
                skipped += pages;
            }
            met.remaining -= 1;
            if met.remaining == 0 || met.isolated.max(skipped) >= MIN_LRU_BATCH {
                break;
            }
        }
        met.folios_skipped += passed_over.len() as u64;
        for pfn in passed_over.drain(..) {
            let at = self.gen_place(pfn);
            self.lru.gen_link(lruvec, pfn, (oldest, kind, at.zone_type), false);
        }
        self.lru.aside = passed_over;
        met.skipped += skipped;
        self.shared.vmstat.add(PGSCAN_SKIP[zone], skipped);
    }

    /// Moves a page that is not to be evicted now; false if it may be.
    fn sort_folio(&mut self, pfn: Pfn, order: Order, page: PageState, last_tier: usize, sc: &mut ScanControl) -> bool {
        let at = self.gen_place(pfn);
        let pages = u64::from(order.pages());
        let by_all_tiers = self.shared.profile.lru_gen.by_all_tiers();
        if page.unevictable && by_all_tiers {
            return false;
        }
        if page.unevictable {
            self.gen_del(sc.cpu, pfn, order, true);
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::UNEVICTABLE);
            self.link(sc.cpu, pfn, order, false);
            self.shared.vmstat.add(VmEvent::UnevictablePgsCulled, pages);
            return true;
        }
        let (flags, used) = (self.lru.flags(pfn), self.lru.used(pfn));
        let gens = self.lru.gens(at.lruvec);
        let oldest = Gen::of(gens.min_seq[at.kind()]);
        if let Some(promoted) = used.generation().filter(|of| *of != oldest) {
            self.gen_move(pfn, promoted, false);
            return true;
        }
        let uses = Uses::of(&self.shared.profile.lru_gen, flags, used);
        if uses.tier > last_tier || uses.is_full {
            self.move_to_next(pfn, order, &at, sc, !by_all_tiers);
            if !by_all_tiers || !uses.is_full {
                self.lru.gens_mut(at.lruvec).tiers[at.kind()][uses.tier].protected += pages;
            }
            return true;
        }
        if at.zone_type > sc.highest {
            self.move_to_next(pfn, order, &at, sc, true);
            return true;
        }
        if by_all_tiers {
            return false;
        }
        let dirty = page.dirty && at.backing == Backing::File;
        if dirty {
            sc.met.file_taken += pages;
            sc.met.unqueued_dirty += if page.writeback { 0 } else { pages };
        }
        if page.locked || page.writeback || dirty {
            self.move_to_next(pfn, order, &at, sc, false);
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::RECLAIM);
            return true;
        }
        false
    }

    /// Moves a page of the oldest generation to the next.
    fn move_to_next(&mut self, pfn: Pfn, order: Order, at: &Place, sc: &ScanControl, tail: bool) {
        let next = self.inc_gen(sc.cpu, pfn, order, at);
        self.gen_move(pfn, next, tail);
    }

    /// Takes a page off its list to be looked at; false if what reclaims may not write it.
    fn isolate_folio(&mut self, pfn: Pfn, order: Order, page: PageState, sc: &ScanControl) -> bool {
        let by_all_tiers = self.shared.profile.lru_gen.by_all_tiers();
        let needs_io = page.dirty || page.anon && !page.swap_cache;
        if !by_all_tiers && !sc.gfp.has(Gfp::IO) && needs_io {
            return false;
        }
        if !self.lru.flags(pfn).has(PageFlags::REFERENCED) {
            self.forget_uses(pfn);
        }
        if !by_all_tiers {
            let flags = self.lru.flags(pfn).without(PageFlags::RECLAIM).without(PageFlags::REFERENCED);
            self.lru.set_flags(pfn, flags);
        }
        self.gen_del(sc.cpu, pfn, order, true);
        self.frames.set(pfn, FrameKind::IsolatedLru, order);
        self.zones[self.blocks.zone_of(pfn)].nr_isolated += u64::from(order.pages());
        true
    }
}
