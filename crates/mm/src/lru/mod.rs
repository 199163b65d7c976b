//! The LRU: puts pages on it and takes them off, and keeps the counts of node and zone.
//!
//! A user page waits in a CPU's batch and is then on one of the node's lists until it is freed,
//! except while compaction or reclaim has it isolated. [`access`] holds what its use does to it,
//! [`batch`] the batches, [`workingset`] the shadows of reclaimed pages, [`cost`] the cost of
//! reclaim.
//!
//! Where the order is not kept ([`crate::state::Lru::is_ordered`]), pages are only counted. Source:
//! kernel-behaviour §4.1, §5.4.

mod access;
mod batch;
mod cost;
pub(crate) mod generations;
mod groups;
mod row;
mod to_free;
mod workingset;

pub(crate) use to_free::ToFree;
pub use workingset::Shadow;

use crate::state::{BatchKind, FrameKind, Known, LruList, Memory, NodeStat, PageFlags, Tag};
use crate::types::{CpuId, LruvecId, Order, Pfn, ZoneId};

impl Memory {
    /// Turns an allocated page or huge page into a user page on its way to the LRU; once it is
    /// there, compaction may migrate it and reclaim may free it. `flags` say whether it is
    /// anonymous or of a file. A new anonymous page is active where the profile has it so.
    ///
    /// # Panics
    /// For a file page on a machine whose LRU keeps no order.
    #[inline(always)]
    pub fn lru_add(&mut self, cpu: CpuId, pfn: Pfn, order: Order, flags: PageFlags) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::Kernel, order));
        if self.lru.is_ordered() {
            self.lru_add_to_batch(cpu, pfn, order, flags);
        } else {
            assert!(!flags.has(PageFlags::FILE), "{pfn} is of a file, and this machine keeps no order of its pages");
            self.frames.set(pfn, FrameKind::Lru, order);
            self.count_unordered(pfn, i64::from(order.pages()));
        }
    }

    #[inline]
    fn lru_add_to_batch(&mut self, cpu: CpuId, pfn: Pfn, order: Order, flags: PageFlags) {
        self.lru.set_known(pfn, Known::new(self.flags_of_new(flags)).held());
        self.begin_uses(pfn, flags);
        // Moving the batch will set its place.
        self.lru.prefetch(pfn.get());
        self.batch_push(cpu, pfn, order, BatchKind::Add);
    }

    /// The flags of a page that is new to the LRU.
    #[inline(always)]
    fn flags_of_new(&self, flags: PageFlags) -> PageFlags {
        let new_anon = flags == PageFlags::ANON && !self.shared.profile.lru.new_anon_is_inactive;
        if new_anon { flags | PageFlags::ACTIVE } else { flags }
    }

    #[inline(always)]
    fn count_unordered(&mut self, pfn: Pfn, pages: i64) {
        let zone = &mut self.zones[self.blocks.zone_of(pfn)];
        zone.lru.add_to_total(LruList::InactiveAnon.index(), pages);
    }

    /// Takes a page that is being freed off the LRU. The caller sets its tag.
    #[inline(always)]
    pub(crate) fn lru_del(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        if self.lru.is_ordered() {
            self.unlink(cpu, pfn, order);
            let kept = self.lru.flags(pfn).without(PageFlags::ACTIVE).without(PageFlags::UNEVICTABLE);
            self.lru.set_flags(pfn, kept);
            self.begin_uses(pfn, PageFlags::default());
        } else {
            self.count_unordered(pfn, -i64::from(order.pages()));
        }
    }

    /// Counts pages that join, leave or change a list with the lock of the LRU held.
    #[inline(always)]
    pub(crate) fn count_lru_lock(&mut self, lruvec: LruvecId, pages: u64) {
        self.shared.work.lrus |= 1 << self.root_of(lruvec).index();
        self.shared.work.listed += pages;
    }

    /// Isolates a page for migration.
    #[inline(always)]
    pub(crate) fn lru_isolate(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::Lru, order));
        self.frames.set(pfn, FrameKind::IsolatedLru, order);
        let pages = i64::from(order.pages());
        if self.lru.is_ordered() {
            self.count_lru_lock(self.lruvec_of(pfn), 1);
            self.unlink(cpu, pfn, order);
        } else {
            self.count_unordered(pfn, -pages);
        }
        self.count_isolated(cpu, pfn, pages);
    }

    /// Adds to the counts of isolated pages of the page's zone and node.
    #[inline(always)]
    pub(crate) fn count_isolated(&mut self, cpu: CpuId, pfn: Pfn, pages: i64) {
        let zone = &mut self.zones[self.blocks.zone_of(pfn)];
        zone.nr_isolated = zone.nr_isolated.checked_add_signed(pages).expect("only isolated pages are put back");
        if self.lru.is_ordered() {
            let isolated = NodeStat::isolated(self.lru.flags(pfn).backing());
            self.lru.vecs[zone.lruvec].count(isolated, cpu, pages);
        }
    }

    /// Splits an isolated folio into single pages with the folio's LRU flags; `numbers` are their
    /// owner words.
    pub(crate) fn split_isolated(&mut self, pfn: Pfn, order: Order, numbers: &[u32]) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::IsolatedLru, order));
        for (i, number) in (0..order.pages()).zip(numbers) {
            let page = pfn.plus(i);
            self.frames.set(page, FrameKind::IsolatedLru, Order::ZERO);
            self.frames.set_owner(page, Order::ZERO, *number);
            if self.lru.is_ordered() {
                self.lru.set_flags(page, self.lru.flags(pfn));
                if self.lru.has_generations() {
                    *self.lru.used_mut(page) = self.lru.used(pfn);
                }
            }
        }
        self.split_group(pfn, order);
    }

    #[inline(always)]
    pub(crate) fn lru_putback(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::IsolatedLru, order));
        self.count_isolated(cpu, pfn, -i64::from(order.pages()));
        self.return_to_lru(cpu, pfn, order);
    }

    /// Whether pages are in generations, and all tiers decide.
    #[inline(always)]
    pub(crate) fn counts_all_tiers(&self) -> bool {
        self.lru.has_generations() && self.shared.profile.lru_gen.by_all_tiers()
    }

    /// Puts a migration target on the LRU with the flags of the page it replaces. Whether a batch
    /// frees that page.
    #[inline(always)]
    pub(crate) fn lru_migrated(&mut self, cpu: CpuId, from: Pfn, to: Pfn, order: Order) -> bool {
        self.count_isolated(cpu, from, -i64::from(order.pages()));
        if self.lru.is_ordered() {
            self.lru.set_flags(to, self.lru.flags(from));
            self.move_charge(from, to);
            self.begin_uses(to, PageFlags::default());
            if self.counts_all_tiers() {
                let refs = self.lru.used(from).refs();
                self.lru.used_mut(to).set_refs(refs);
            }
            if self.lru.used(from).in_swap_cache() {
                self.lru.used_mut(to).set_swap_cache(true);
            }
        }
        let leaves = self.shared.profile.compaction.frees_by_batch && order == Order::ZERO;
        if leaves {
            self.leave_by_batch(cpu, from);
        }
        self.return_to_lru(cpu, to, order);
        leaves
    }

    /// Returns a page that was isolated to the LRU, through a batch.
    #[inline(always)]
    fn return_to_lru(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        if self.lru.is_ordered() {
            self.frames.set(pfn, FrameKind::Kernel, order);
            self.batch_add(cpu, pfn, BatchKind::Add);
        } else {
            self.frames.set(pfn, FrameKind::Lru, order);
            self.count_unordered(pfn, i64::from(order.pages()));
            if self.shared.profile.compaction.frees_by_batch {
                self.wait_in_batch(cpu, None);
            }
        }
    }

    /// Links a page into the list its flags name, or into a generation, and counts it there. The
    /// caller sets its tag.
    #[inline(always)]
    pub(crate) fn link(&mut self, cpu: CpuId, pfn: Pfn, order: Order, tail: bool) {
        let flags = self.lru.flags(pfn);
        if self.lru.has_generations() && !flags.has(PageFlags::UNEVICTABLE) {
            // A page in a batch that is marked so has not been written: the mark goes with that.
            return self.gen_add(cpu, pfn, order, tail, flags.has(PageFlags::RECLAIM));
        }
        let list = flags.list();
        let zone = self.blocks.zone_of(pfn);
        let lruvec = self.lruvec_in(zone, pfn);
        self.count_listed_of(cpu, zone, lruvec, list, i64::from(order.pages()));
        self.lru.link(lruvec, pfn, list, tail);
    }

    /// Unlinks a page from the list its flags name, or from its generation.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        if self.lru.has_generations() && self.gen_del(cpu, pfn, order, false) {
            return;
        }
        let list = self.lru.flags(pfn).list();
        let zone = self.blocks.zone_of(pfn);
        let lruvec = self.lruvec_in(zone, pfn);
        self.count_listed_of(cpu, zone, lruvec, list, -i64::from(order.pages()));
        self.lru.unlink(lruvec, pfn, list);
    }

    /// Counts pages that joined one of these lists, or left it if `pages` is negative.
    #[inline(always)]
    pub(crate) fn count_listed_of(&mut self, cpu: CpuId, zone: ZoneId, lruvec: LruvecId, list: LruList, pages: i64) {
        if self.groups.are_kept() {
            self.count_listed_in_group(zone, lruvec, list, pages);
        }
        self.count_listed(cpu, zone, list, pages);
    }

    /// The same on the node and in the zone alone.
    #[inline(always)]
    pub(crate) fn count_listed(&mut self, cpu: CpuId, zone: ZoneId, list: LruList, pages: i64) {
        let zone = &mut self.zones[zone];
        let vec = &mut self.lru.vecs[zone.lruvec];
        vec.stats.add(list.index(), cpu, pages, vec.stat_threshold);
        zone.lru.add(list.index(), cpu, pages, zone.stat_threshold);
    }
}
