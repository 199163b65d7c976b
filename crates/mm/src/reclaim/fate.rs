//! Decides what becomes of a page taken off the tail of an inactive list: freed, kept, or
//! activated.
//!
//! The tests come in this order: locked; unevictable; mapped, where unmapping is not allowed; under
//! writeback; referenced; anonymous and not in the swap cache; mapped; dirty; private data of its
//! file system; other references. The page's owner answers them. Source: kernel-behaviour §4.3.

use super::control::ScanControl;
use super::isolate::Isolated;
use crate::event::{Event, Listen, ReclaimStat};
use crate::gfp::Gfp;
use crate::lru::{Shadow, ToFree};
use crate::owner::{Owner, PageState, Turn, WriteOut};
use crate::rules::{SlabShare, StallsFor};
use crate::state::{Backing, FrameKind, Memory, NodeStat, PageFlags};
use crate::types::{CLUSTER_MAX, LruvecId, Order, Pfn};
use crate::vmstat::VmEvent;

/// Result of checking a page's references (the kernel's `page_references`).
enum Use {
    None,
    /// A file page that was referenced once, some time ago: reclaim it only if it is clean.
    OnlyIfClean,
    Keep,
    Activate,
}

/// Pages in the largest page that can be split, a huge page.
const MOST_PAGES: usize = 1 << 9;

enum Fate {
    Free,
    Keep,
    Activate,
    /// Unevictable, but still on an evictable list.
    Cull,
    /// Split into single pages, which are isolated next.
    Split,
}

impl Memory {
    /// Frees the isolated pages that can be freed and puts the others back on the LRU. Returns the
    /// pages freed.
    pub(super) fn shrink_page_list<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        isolated: &Isolated,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
    ) -> u64 {
        let (mut kept, mut nr_kept) = ([Pfn::default(); CLUSTER_MAX as usize], 0);
        let reclaimed = self.examine(owner, lruvec, isolated.pages(), sc, stat, |pfn| {
            kept[nr_kept] = pfn;
            nr_kept += 1;
        });
        for &pfn in &kept[..nr_kept] {
            if self.lru.flags(pfn).has(PageFlags::UNEVICTABLE) {
                self.cull_isolated(pfn, sc);
                continue;
            }
            self.putback_isolated(pfn, self.frames.tag(pfn).order(), sc);
            if self.lru.flags(pfn).has(PageFlags::ACTIVE) {
                let pages = u64::from(self.frames.tag(pfn).order().pages());
                let backing = self.lru.flags(pfn).backing();
                self.lru.vecs[lruvec].recent_rotated[backing.index()] += pages;
                if !self.shared.profile.lru.shadows_of_anon {
                    continue;
                }
                self.age_nonresident(lruvec, pages);
            }
        }
        reclaimed
    }

    /// Frees the isolated pages that can be freed, and hands the others to `keep`, in order.
    /// Returns the pages freed.
    #[inline]
    pub(super) fn examine<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        isolated: &[Pfn],
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
        mut keep: impl FnMut(Pfn),
    ) -> u64 {
        let mut reclaimed = 0;
        let mut free = ToFree::reclaimed(self);
        self.offer_cpu(owner);
        for &pfn in isolated {
            self.offer_cpu(owner);
            let order = self.frames.tag(pfn).order();
            let pages = u64::from(order.pages());
            match self.fate(owner, lruvec, pfn, order, sc, stat) {
                Fate::Free => {
                    reclaimed += pages;
                    self.no_longer_isolated(pfn, order);
                    free.add(self, sc.cpu, pfn);
                    continue;
                }
                Fate::Activate => {
                    let state = owner.page_state(pfn, self.frames.owner(pfn, order));
                    if state.swap_cache && 2 * self.lru.swap.free < self.lru.swap.total {
                        let number = self.frames.owner(pfn, order);
                        owner.may_free_swap(self, pfn, number);
                    }
                    let flags = self.lru.flags(pfn);
                    self.lru.set_flags(pfn, flags | PageFlags::ACTIVE);
                    stat.activate[flags.backing().index()] += pages;
                }
                Fate::Cull => self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::UNEVICTABLE),
                Fate::Split => continue,
                Fate::Keep => {}
            }
            keep(pfn);
        }
        free.free(self, sc.cpu);
        self.shared.vmstat.add(VmEvent::Pgactivate, stat.activate.iter().sum());
        reclaimed
    }

    fn fate<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        pfn: Pfn,
        order: Order,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
    ) -> Fate {
        let number = self.frames.owner(pfn, order);
        let pages = u64::from(order.pages());
        if self.lru.is_released(pfn) {
            // Its owner has freed it already; the batch that holds it frees it.
            sc.nr_scanned += pages;
            if !self.counts_all_tiers() {
                self.lru.set_flags(pfn, self.lru.flags(pfn).without(PageFlags::REFERENCED));
            }
            return Fate::Keep;
        }
        let mut page = owner.page_state(pfn, number);
        if page.locked {
            return Fate::Keep;
        }
        sc.nr_scanned += pages;
        if page.unevictable {
            return Fate::Cull;
        }
        if !sc.may_unmap && page.mapped {
            return Fate::Keep;
        }
        let referenced = page.mapped && self.lru.flags(pfn).has(PageFlags::REFERENCED);
        if self.lru.has_generations() && referenced && !self.counts_all_tiers() {
            // It was found used while it was isolated.
            return Fate::Keep;
        }
        if self.shared.profile.reclaim.slab_share == SlabShare::Scanned && (page.mapped || page.swap_cache) {
            sc.nr_scanned += pages;
        }
        let rules = &self.shared.profile.reclaim;
        let queue_full = rules.stalls_for == StallsFor::Congestion && owner.is_congested();
        self.note_dirty(pfn, page, pages, queue_full, stat);
        // The fate of dirty pages and of those under writeback: up to 4.10 they stay inactive.
        let unwritten = if self.shared.profile.reclaim.activates_unwritten { Fate::Activate } else { Fate::Keep };
        if page.writeback {
            let flags = self.lru.flags(pfn);
            if sc.kswapd && flags.has(PageFlags::RECLAIM) && self.lru.vecs[self.root_of(lruvec)].writeback {
                stat.immediate += pages;
            } else {
                self.lru.set_flags(pfn, flags | PageFlags::RECLAIM);
                stat.writeback += pages;
            }
            return unwritten;
        }
        let used = self.check_references(owner, pfn, number, page, sc);
        match used {
            Use::Activate => return Fate::Activate,
            Use::Keep => {
                stat.ref_keep += pages;
                return Fate::Keep;
            }
            Use::None | Use::OnlyIfClean => {}
        }
        let swapbacked = !self.lru.flags(pfn).has(PageFlags::FILE);
        if page.anon && swapbacked && !page.swap_cache {
            if !sc.gfp.has(Gfp::IO) || page.pinned {
                return Fate::Keep;
            }
            if order > Order::ZERO {
                return if self.split_to_reclaim(owner, pfn, order, sc) { Fate::Split } else { Fate::Activate };
            }
            if !owner.add_to_swap(self, pfn, number) {
                return Fate::Activate;
            }
            if self.lru.has_generations() {
                self.lru.used_mut(pfn).set_swap_cache(true);
            }
            page = owner.page_state(pfn, number);
        }
        if page.mapped {
            if !owner.unmap(pfn, number) {
                stat.unmap_fail += pages;
                if page.anon && !swapbacked {
                    // A lazyfree page that was written to after all is swap-backed again.
                    self.lru.set_flags(pfn, self.lru.flags(pfn).without(PageFlags::FILE));
                }
                return Fate::Activate;
            }
            page = owner.page_state(pfn, number);
        }
        if page.pinned {
            return Fate::Activate;
        }
        if page.dirty {
            let fate = self.write_dirty(owner, lruvec, pfn, pages, page, &used, sc, stat);
            if !matches!(fate, Fate::Free) {
                return fate;
            }
        }
        if page.private && !owner.release(pfn, number) {
            return Fate::Activate;
        }
        self.remove_mapping(owner, pfn, number, page, pages, sc)
    }

    /// Splits an isolated large page. The kernel goes on with its pages at once; here they go to
    /// the tail of the list, or of the oldest generation, where they are isolated next.
    fn split_to_reclaim<O: Owner>(&mut self, owner: &mut O, pfn: Pfn, order: Order, sc: &ScanControl) -> bool {
        let mut numbers = [0; MOST_PAGES];
        let numbers = &mut numbers[..order.pages() as usize];
        if self.lru.swap.free == 0 || !owner.split(pfn, self.frames.owner(pfn, order), numbers) {
            return false;
        }
        self.no_longer_isolated(pfn, order);
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, false);
        }
        let flags = self.lru.flags(pfn);
        self.frames.split_allocated(pfn, order);
        self.split_group(pfn, order);
        for (page, number) in (0..order.pages()).map(|i| pfn.plus(i)).zip(numbers) {
            self.frames.set(page, FrameKind::Lru, Order::ZERO);
            self.frames.set_owner(page, Order::ZERO, *number);
            self.lru.set_flags(page, flags);
            if self.lru.has_generations() {
                *self.lru.used_mut(page) = self.lru.used(pfn);
                self.gen_put_last(sc.cpu, page, Order::ZERO);
            } else {
                self.link(sc.cpu, page, Order::ZERO, true);
            }
        }
        true
    }

    /// Counts a file page that is dirty or under writeback. Up to 4.16 it also counts as congested
    /// if the queue it waits for is full.
    fn note_dirty(&self, pfn: Pfn, page: PageState, pages: u64, queue_full: bool, stat: &mut ReclaimStat) {
        let flags = self.lru.flags(pfn);
        if !flags.has(PageFlags::FILE) || page.anon {
            return;
        }
        // As `folio_check_dirty_writeback` does, lets the file system's blocks decide, whatever the
        // page's dirty bit says.
        let dirty = page.dirty && !page.blocks_written;
        if dirty || page.writeback {
            stat.dirty += pages;
        }
        if dirty && !page.writeback {
            stat.unqueued_dirty += pages;
        }
        let waits = dirty || page.writeback;
        if waits && queue_full || page.writeback && flags.has(PageFlags::RECLAIM) {
            stat.congested += pages;
        }
    }

    /// Checks a page's references. A mapped page gets a second round on the list, because the fault
    /// that mapped it left a reference already.
    fn check_references<O: Owner>(
        &mut self,
        owner: &mut O,
        pfn: Pfn,
        number: u32,
        page: PageState,
        sc: &mut ScanControl,
    ) -> Use {
        let by = match page.mapped {
            false => Default::default(),
            true if self.lru.has_generations() => self.references_around(owner, pfn, number, sc),
            true => owner.references_within(self, pfn, number, sc.target),
        };
        if self.counts_all_tiers() {
            return match () {
                () if by.mlocked => Use::Activate,
                () if by.ptes == 0 => Use::None,
                () if self.used_again(pfn) => Use::Activate,
                () => Use::Keep,
            };
        }
        let flags = self.lru.flags(pfn);
        let before = flags.has(PageFlags::REFERENCED);
        let file = flags.has(PageFlags::FILE);
        self.lru.set_flags(pfn, flags.without(PageFlags::REFERENCED));
        if by.mlocked {
            return Use::Activate;
        }
        if by.ptes > 0 {
            self.lru.set_flags(pfn, flags | PageFlags::REFERENCED);
            let once_is_enough = !file && !self.shared.profile.lru.new_anon_is_inactive;
            let active = once_is_enough || before || by.ptes > 1 || by.executable && file;
            return if active { Use::Activate } else { Use::Keep };
        }
        if before && file { Use::OnlyIfClean } else { Use::None }
    }

    /// Writes a dirty page, or leaves it to the flusher. `Free` means that it is clean now.
    #[allow(clippy::too_many_arguments)]
    fn write_dirty<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        pfn: Pfn,
        pages: u64,
        page: PageState,
        used: &Use,
        sc: &ScanControl,
        stat: &mut ReclaimStat,
    ) -> Fate {
        let flags = self.lru.flags(pfn);
        let of_root = self.root_of(lruvec);
        let vec = &mut self.lru.vecs[of_root];
        // The flusher writes file pages in file order, which reclaim cannot do. kswapd writes one
        // only if it has met it before and the node is flagged dirty, and from 6.16 on never.
        let rules = &self.shared.profile.reclaim;
        let (writes, heads) = (rules.writes_pages_of_files, rules.counts_heads);
        if flags.has(PageFlags::FILE) && !(writes && sc.kswapd && flags.has(PageFlags::RECLAIM) && vec.dirty) {
            vec.count_met(NodeStat::VmscanImmediate, sc.cpu, pages, heads);
            self.lru.set_flags(pfn, flags | PageFlags::RECLAIM);
            return if rules.activates_unwritten { Fate::Activate } else { Fate::Keep };
        }
        let may_enter_fs = sc.gfp.has(Gfp::FS) || page.swap_cache && sc.gfp.has(Gfp::IO);
        if matches!(used, Use::OnlyIfClean) || !may_enter_fs || !sc.may_writepage || self.is_held(pfn, page) {
            return Fate::Keep;
        }
        let order = self.frames.tag(pfn).order();
        let outcome = owner.write_out(pfn, self.frames.owner(pfn, order));
        match outcome {
            WriteOut::Kept => Fate::Keep,
            WriteOut::Activate => {
                self.lru.set_flags(pfn, flags.without(PageFlags::RECLAIM));
                Fate::Activate
            }
            WriteOut::Clean => Fate::Free,
            WriteOut::Written | WriteOut::Queued => {
                let queued = outcome == WriteOut::Queued;
                self.lru.set_flags(
                    pfn,
                    if queued { flags | PageFlags::RECLAIM } else { flags.without(PageFlags::RECLAIM) },
                );
                self.shared.emit(Listen::VMSCAN, || Event::WriteFolio { pfn, backing: flags.backing() });
                self.lru.vecs[of_root].count_met(NodeStat::VmscanWrite, sc.cpu, pages, heads);
                stat.pageout += pages;
                if queued { Fate::Keep } else { Fate::Free }
            }
        }
    }

    /// Whether anyone but its owner and reclaim holds a reference to the page.
    fn is_held(&self, pfn: Pfn, page: PageState) -> bool {
        page.held || self.lru.holds(pfn) > 0
    }

    /// Removes the page from its owner, which keeps a shadow entry in its place.
    fn remove_mapping<O: Owner>(
        &mut self,
        owner: &mut O,
        pfn: Pfn,
        number: u32,
        page: PageState,
        pages: u64,
        sc: &ScanControl,
    ) -> Fate {
        if self.is_held(pfn, page) {
            return Fate::Keep;
        }
        let backing = self.lru.flags(pfn).backing();
        let shadow: Option<Shadow> = if page.anon && backing == Backing::File {
            // A lazyfree page goes without a shadow.
            self.shared.vmstat.add(VmEvent::Pglazyfreed, pages);
            None
        } else if !self.shared.profile.lru.leaves_shadow(backing) {
            None
        } else {
            Some(self.workingset_eviction(pfn, pages, sc.target))
        };
        owner.removed(pfn, number, shadow);
        Fate::Free
    }

    /// A rescheduling point: offers the CPU to a task that waits for it.
    pub(super) fn offer_cpu<O: Owner>(&mut self, owner: &mut O) {
        if owner.is_awaited(self) {
            owner.turn(self, Turn::Offered);
        }
    }
}

#[cfg(test)]
mod tests;
