//! The LRU: where pages are put on it and taken off, with the node's and the zone's accounts of it.
//!
//! A user's page waits in a CPU's batch, then is on one of the node's lists until it is freed, except while compaction or
//! reclaim holds it isolated. What happens to it meanwhile: [`access`]. How batches work: [`batch`]. What is remembered
//! of a page after it has been reclaimed: [`workingset`]. What reclaim has cost: [`cost`].
//!
//! Where the order is not kept ([`crate::state::Lru::is_ordered`]) pages are counted and nothing else.
//! Source: kernel-behaviour §4.1, §5.4.

mod access;
mod batch;
mod cost;
mod row;
mod to_free;
mod workingset;

pub(crate) use to_free::ToFree;
pub use workingset::Shadow;

use crate::state::{BatchKind, FrameKind, Known, LruList, Memory, NodeStat, PageFlags, Tag};
use crate::types::{CpuId, Order, Pfn, ZoneId};

impl Memory {
    /// Makes an allocated page or huge page one of a user's, on its way to the LRU: once it is there, compaction may
    /// move it and reclaim may take it. `flags` says what it is of; a new anonymous page is active where the profile
    /// has it so.
    ///
    /// # Panics
    /// For a page of a file, where the order of the LRU is not kept.
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
        // Its place will be set with the batch.
        self.lru.prefetch(pfn.get());
        self.batch_push(cpu, pfn, order, BatchKind::Add);
    }

    /// The flags of a page that is on its way to the LRU for the first time.
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

    /// Takes a page off the LRU because it is being freed; its tag is the caller's to set.
    #[inline(always)]
    pub(crate) fn lru_del(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        if self.lru.is_ordered() {
            self.unlink(cpu, pfn, order);
            let kept = self.lru.flags(pfn).without(PageFlags::ACTIVE).without(PageFlags::UNEVICTABLE);
            self.lru.set_flags(pfn, kept);
        } else {
            self.count_unordered(pfn, -i64::from(order.pages()));
        }
    }

    /// Takes a page off the LRU, to be migrated.
    #[inline(always)]
    pub(crate) fn lru_isolate(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::Lru, order));
        self.frames.set(pfn, FrameKind::IsolatedLru, order);
        let pages = i64::from(order.pages());
        if self.lru.is_ordered() {
            self.unlink(cpu, pfn, order);
        } else {
            self.count_unordered(pfn, -pages);
        }
        self.count_isolated(cpu, pfn, pages);
    }

    /// Counts pages that are (or are no longer) isolated, in their zone and their node.
    #[inline(always)]
    pub(crate) fn count_isolated(&mut self, cpu: CpuId, pfn: Pfn, pages: i64) {
        let zone = &mut self.zones[self.blocks.zone_of(pfn)];
        zone.nr_isolated = zone.nr_isolated.checked_add_signed(pages).expect("only isolated pages are put back");
        if self.lru.is_ordered() {
            let isolated = NodeStat::isolated(self.lru.flags(pfn).backing());
            self.lru.vecs[zone.lruvec].count(isolated, cpu, pages);
        }
    }

    /// Makes single pages of an isolated folio, each used as the folio was; `numbers` are their owners.
    pub(crate) fn split_isolated(&mut self, pfn: Pfn, order: Order, numbers: &[u32]) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::IsolatedLru, order));
        for (i, number) in (0..order.pages()).zip(numbers) {
            let page = pfn.plus(i);
            self.frames.set(page, FrameKind::IsolatedLru, Order::ZERO);
            self.frames.set_owner(page, Order::ZERO, *number);
            if self.lru.is_ordered() {
                self.lru.set_flags(page, self.lru.flags(pfn));
            }
        }
    }

    /// Puts an isolated page back.
    #[inline(always)]
    pub(crate) fn lru_putback(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::IsolatedLru, order));
        self.count_isolated(cpu, pfn, -i64::from(order.pages()));
        self.return_to_lru(cpu, pfn, order);
    }

    /// Puts the page that an isolated one has become on the LRU; it is used as the old one was.
    #[inline(always)]
    pub(crate) fn lru_migrated(&mut self, cpu: CpuId, from: Pfn, to: Pfn, order: Order) {
        self.count_isolated(cpu, from, -i64::from(order.pages()));
        if self.lru.is_ordered() {
            self.lru.set_flags(to, self.lru.flags(from));
        }
        self.return_to_lru(cpu, to, order);
    }

    /// A page that had been isolated goes to the LRU by way of a batch.
    #[inline(always)]
    fn return_to_lru(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        if self.lru.is_ordered() {
            self.frames.set(pfn, FrameKind::Kernel, order);
            self.batch_add(cpu, pfn, BatchKind::Add);
        } else {
            self.frames.set(pfn, FrameKind::Lru, order);
            self.count_unordered(pfn, i64::from(order.pages()));
        }
    }

    /// Links a page into the list its flags say, and counts it there. Its tag is the caller's to set.
    #[inline(always)]
    pub(crate) fn link(&mut self, cpu: CpuId, pfn: Pfn, order: Order, tail: bool) {
        let list = self.lru.flags(pfn).list();
        let zone = self.blocks.zone_of(pfn);
        self.count_listed(cpu, zone, list, i64::from(order.pages()));
        self.lru.link(self.zones[zone].lruvec, pfn, list, tail);
    }

    /// Takes a page out of the list its flags say.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        let list = self.lru.flags(pfn).list();
        let zone = self.blocks.zone_of(pfn);
        self.count_listed(cpu, zone, list, -i64::from(order.pages()));
        self.lru.unlink(self.zones[zone].lruvec, pfn, list);
    }

    /// Counts pages that joined (or left) a list.
    #[inline(always)]
    pub(crate) fn count_listed(&mut self, cpu: CpuId, zone: ZoneId, list: LruList, pages: i64) {
        let zone = &mut self.zones[zone];
        let vec = &mut self.lru.vecs[zone.lruvec];
        vec.stats.add(list.index(), cpu, pages, vec.stat_threshold);
        zone.lru.add(list.index(), cpu, pages, zone.stat_threshold);
    }
}
