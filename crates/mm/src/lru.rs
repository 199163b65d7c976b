//! The LRU: the only place that puts pages on it and takes them off, with the zone's accounts of it.
//!
//! A user's page is on the LRU from the fault until it is freed, except while compaction holds it isolated. The engine
//! reclaims nothing yet, so the order of the pages is not kept: a zone counts them.
//! Source: kernel-behaviour §4.1, §5.4.

use crate::state::{FrameKind, Memory, Tag};
use crate::types::{Order, Pfn, ZoneId};

impl Memory {
    /// Makes an allocated page or huge page one of a user's, on the LRU: from now on compaction may move it.
    #[inline(always)]
    pub fn lru_add(&mut self, pfn: Pfn, order: Order) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::Kernel, order));
        self.frames.set(pfn, FrameKind::Lru, order);
        self.zones[self.blocks.zone_of(pfn)].nr_lru += u64::from(order.pages());
    }

    /// Takes a page off the LRU because it is being freed; its tag is the caller's to set.
    #[inline(always)]
    pub(crate) fn lru_del(&mut self, zone: ZoneId, order: Order) {
        self.zones[zone].nr_lru -= u64::from(order.pages());
    }

    /// Takes a single page off the LRU, to be migrated.
    #[inline(always)]
    pub(crate) fn lru_isolate(&mut self, zone: ZoneId, pfn: Pfn) {
        debug_assert!(self.frames.tag(pfn) == Tag::LRU_PAGE);
        self.frames.set(pfn, FrameKind::IsolatedLru, Order::ZERO);
        let zone = &mut self.zones[zone];
        zone.nr_lru -= 1;
        zone.nr_isolated += 1;
    }

    /// Puts an isolated page back.
    #[inline(always)]
    pub(crate) fn lru_putback(&mut self, zone: ZoneId, pfn: Pfn) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::IsolatedLru, Order::ZERO));
        self.lru_migrated(zone, pfn);
    }

    /// Puts the page that an isolated one has become on the LRU.
    #[inline(always)]
    pub(crate) fn lru_migrated(&mut self, zone: ZoneId, to: Pfn) {
        self.frames.set(to, FrameKind::Lru, Order::ZERO);
        let zone = &mut self.zones[zone];
        zone.nr_lru += 1;
        zone.nr_isolated -= 1;
    }
}
