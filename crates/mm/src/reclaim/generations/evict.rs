//! Evicts a batch of pages of the oldest generation.
//!
//! Which kind comes first: files without swap; the kind whose oldest generation is older; files at
//! swappiness 1, anonymous pages at 200; files if nothing may be written; else what the feedback
//! loop says. If the kind yields nothing the other is tried. Pages that could not be evicted,
//! though neither used nor dirty, are looked at once more; the others join the youngest generation.
//! Where all tiers decide, swappiness and the feedback loop alone choose the kind, the other is
//! tried only if this one has nothing to look at, and a page that is kept goes where its flags say,
//! unless that is the oldest generation. Source: kernel-behaviour §4.10.4, §4.10.9.

use super::MAX_LRU_BATCH;
use crate::event::{Event, Listen, ReclaimStat};
use crate::gfp::Gfp;
use crate::owner::{Owner, PageState};
use crate::reclaim::control::ScanControl;
use crate::state::{Backing, FrameKind, MIN_NR_GENS, Memory, PageFlags};
use crate::types::{LruvecId, Pfn};
use crate::vmstat::VmEvent;
use alloc::vec::Vec;

const ANON: usize = Backing::Anon.index();
const FILE: usize = Backing::File.index();
const MAX_SWAPPINESS: u64 = 200;

impl Memory {
    /// Evicts one batch, which looks at no more folios than `batch`. Returns how many pages were
    /// looked at, and 0 if there is nothing to evict.
    pub(super) fn evict_folios<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        swappiness: u64,
        batch: u64,
        sc: &mut ScanControl,
    ) -> u64 {
        if self.shared.profile.lru_gen.by_all_tiers() {
            return self.evict_batch(owner, lruvec, swappiness, batch, sc);
        }
        let can_swap = swappiness > 0;
        let mut list = Vec::new();
        let (kind, mut scanned) = self.isolate_folios(owner, lruvec, swappiness, sc, &mut list);
        scanned += u64::from(self.try_to_inc_min_seq(lruvec, can_swap));
        if self.lru.gens(lruvec).nr_gens(usize::from(!can_swap)) == MIN_NR_GENS {
            scanned = 0;
        }
        let mut again = false;
        while !list.is_empty() {
            list = self.evict_list(owner, lruvec, kind, list, scanned, again, sc);
            again = true;
        }
        scanned
    }

    /// The same where all tiers decide.
    fn evict_batch<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        swappiness: u64,
        batch: u64,
        sc: &mut ScanControl,
    ) -> u64 {
        self.try_to_inc_min_seq(lruvec, swappiness > 0);
        let mut list = Vec::new();
        let mut kind = match swappiness {
            0 | 1 => FILE,
            MAX_SWAPPINESS => ANON,
            _ => self.lru.gens(lruvec).kind_by_all_tiers(swappiness),
        };
        let (mut total, mut scanned) = (0, 0);
        for _ in usize::from(swappiness == 0)..2 {
            let last = self.lru.gens(lruvec).last_tier(kind, &self.shared.profile.lru_gen);
            let isolated;
            (scanned, isolated) = self.scan_folios(owner, lruvec, kind, last, batch, sc, &mut list);
            total += scanned;
            if isolated > 0 {
                break;
            }
            if scanned == 0 {
                kind ^= 1;
            }
        }
        if total > 0 {
            self.try_to_inc_min_seq(lruvec, swappiness > 0);
        }
        let mut again = false;
        while !list.is_empty() {
            list = self.evict_list(owner, lruvec, kind, list, scanned, again, sc);
            again = true;
        }
        total
    }

    fn isolate_folios<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        swappiness: u64,
        sc: &mut ScanControl,
        list: &mut Vec<Pfn>,
    ) -> (usize, u64) {
        let gens = self.lru.gens(lruvec);
        let (mut kind, mut tier) = match swappiness {
            0 => (FILE, None),
            _ if gens.min_seq[ANON] < gens.min_seq[FILE] => (ANON, None),
            1 => (FILE, None),
            MAX_SWAPPINESS => (ANON, None),
            _ if !sc.gfp.has(Gfp::IO) => (FILE, None),
            _ => {
                let (kind, tier) = gens.kind_to_evict(swappiness);
                (kind, Some(tier))
            }
        };
        let mut scanned = 0;
        for _ in usize::from(swappiness == 0)..2 {
            let rules = &self.shared.profile.lru_gen;
            let last = tier.take().unwrap_or_else(|| self.lru.gens(lruvec).last_tier(kind, rules));
            (scanned, _) = self.scan_folios(owner, lruvec, kind, last, MAX_LRU_BATCH, sc, list);
            if scanned > 0 {
                break;
            }
            kind = 1 - kind;
        }
        (kind, scanned)
    }

    /// Frees the isolated pages that can be freed and puts the others back, except those to look at
    /// again, which it returns.
    #[allow(clippy::too_many_arguments)]
    fn evict_list<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        kind: usize,
        list: Vec<Pfn>,
        nr_scanned: u64,
        again: bool,
        sc: &mut ScanControl,
    ) -> Vec<Pfn> {
        let (mut stat, mut kept) = (ReclaimStat::default(), Vec::new());
        let isolated = list.iter().map(|pfn| u64::from(self.frames.tag(*pfn).order().pages())).sum::<u64>();
        let reclaimed = self.examine(owner, lruvec, &list, sc, &mut stat, |pfn| kept.push(pfn));
        sc.nr_reclaimed += reclaimed;
        if !self.shared.profile.lru_gen.by_all_tiers() {
            sc.met.unqueued_dirty += stat.unqueued_dirty;
        } else if !again {
            if stat.unqueued_dirty == isolated {
                owner.wake_flushers();
            }
            sc.met.dirty += stat.dirty;
            sc.met.congested += stat.congested;
        }
        let (nid, priority, backing) = (self.lru.vecs[lruvec].node, sc.priority, Backing::ALL[kind]);
        self.shared.emit(Listen::VMSCAN, || Event::LruShrinkInactive {
            nid,
            nr_scanned,
            nr_reclaimed: reclaimed,
            stat,
            priority,
            backing,
        });
        let mut retried = Vec::new();
        kept.retain(|pfn| {
            let back = self.prepare_putback(owner, *pfn, again, sc);
            if back == Back::Retry {
                retried.push(*pfn);
            }
            back == Back::ToList
        });
        for pfn in kept {
            self.put_in_generation(owner, pfn, sc);
        }
        self.count_promoted(lruvec, sc);
        let [_, steal] = self.counted_as(sc);
        if self.counts_for_machine(sc) {
            self.shared.vmstat.add(steal, reclaimed);
        }
        if self.groups.are_kept() {
            self.count_reclaimed_in_group(lruvec, sc.kswapd, reclaimed);
        }
        self.shared.vmstat.add([VmEvent::PgstealAnon, VmEvent::PgstealFile][kind], reclaimed);
        retried
    }

    fn state_of<O: Owner>(&self, owner: &mut O, pfn: Pfn) -> PageState {
        match self.lru.is_released(pfn) {
            true => PageState::default(),
            false => owner.page_state(pfn, self.frames.owner(pfn, self.frames.tag(pfn).order())),
        }
    }

    /// Decides where a page goes that could not be evicted, and sets its flags so.
    fn prepare_putback<O: Owner>(&mut self, owner: &mut O, pfn: Pfn, again: bool, sc: &ScanControl) -> Back {
        let flags = self.lru.flags(pfn);
        if flags.has(PageFlags::UNEVICTABLE) {
            self.cull_isolated(pfn, sc);
            return Back::Culled;
        }
        let page = self.state_of(owner, pfn);
        if self.shared.profile.lru_gen.by_all_tiers() {
            return self.prepare_putback_of_all(page, pfn, again);
        }
        let unwritten = page.dirty || page.writeback;
        if flags.has(PageFlags::RECLAIM) && unwritten {
            if flags.has(PageFlags::WORKINGSET) {
                self.lru.set_flags(pfn, flags | PageFlags::REFERENCED);
            }
            return Back::ToList;
        }
        let used = flags.has(PageFlags::ACTIVE) || flags.has(PageFlags::REFERENCED);
        if again || used || page.mapped || page.locked || unwritten {
            self.forget_uses(pfn);
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::ACTIVE);
            return Back::ToList;
        }
        Back::Retry
    }

    /// The same where all tiers decide.
    fn prepare_putback_of_all(&mut self, page: PageState, pfn: Pfn, again: bool) -> Back {
        let flags = self.lru.flags(pfn);
        let unwritten = page.dirty || page.writeback;
        if !again && !flags.has(PageFlags::ACTIVE) && !page.mapped && !unwritten {
            return Back::Retry;
        }
        self.lru.used_mut(pfn).set_swap_cache(page.swap_cache);
        let place = self.gen_place(pfn);
        let waits = flags.has(PageFlags::RECLAIM) && unwritten;
        if self.seq_to_join(pfn, &place, false, waits) == self.lru.gens(place.lruvec).min_seq[place.kind()] {
            self.forget_uses(pfn);
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::ACTIVE);
        }
        Back::ToList
    }

    /// Puts an isolated page into the generation that its flags say.
    fn put_in_generation<O: Owner>(&mut self, owner: &mut O, pfn: Pfn, sc: &ScanControl) {
        let order = self.frames.tag(pfn).order();
        let page = self.state_of(owner, pfn);
        let waits = self.lru.flags(pfn).has(PageFlags::RECLAIM) && (page.dirty || page.writeback);
        self.lru.used_mut(pfn).set_swap_cache(page.swap_cache);
        self.frames.set(pfn, FrameKind::Lru, order);
        self.count_lru_lock(self.lruvec_of(pfn), 1);
        self.gen_add(sc.cpu, pfn, order, false, waits);
        self.no_longer_isolated(pfn, order);
    }
}

/// The place of a page that could not be evicted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Back {
    ToList,
    Culled,
    Retry,
}
