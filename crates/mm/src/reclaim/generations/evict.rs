//! Evicts a batch of pages of the oldest generation.
//!
//! Which kind comes first: files without swap; the kind whose oldest generation is older; files at
//! swappiness 1, anonymous pages at 200; files if nothing may be written; else what the feedback
//! loop says. If the kind yields nothing the other is tried. Pages that could not be evicted,
//! though neither used nor dirty, are looked at once more; the others join the youngest generation.
//! Source: kernel-behaviour §4.10.4.

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
    /// Evicts one batch. Returns how many pages were looked at, and 0 if there is nothing to evict.
    pub(super) fn evict_folios<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        swappiness: u64,
        sc: &mut ScanControl,
    ) -> u64 {
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
            let last = tier.take().unwrap_or_else(|| self.lru.gens(lruvec).last_tier(kind));
            scanned = self.scan_folios(owner, lruvec, kind, last, sc, list);
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
        let reclaimed = self.examine(owner, lruvec, &list, sc, &mut stat, |pfn| kept.push(pfn));
        sc.met.unqueued_dirty += stat.unqueued_dirty;
        sc.nr_reclaimed += reclaimed;
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
        self.shared.vmstat.add(steal, reclaimed);
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
