//! Isolation: takes pages off the tail of a list, to be examined without the LRU lock.
//!
//! Pages of zones that do not help are set aside and go to the head of the list, so that they are
//! not met again at once. Source: kernel-behaviour §4.2.

use super::control::ScanControl;
use crate::event::{Event, Listen};
use crate::owner::Owner;
use crate::state::{Backing, BatchKind, FrameKind, LruList, Memory, NodeStat, PageFlags};
use crate::types::{CLUSTER_MAX, LruvecId, Order, Pfn, ZoneType};
use crate::vmstat::VmEvent;

pub(super) const PGSCAN_SKIP: [VmEvent; ZoneType::COUNT] = [
    VmEvent::PgscanSkipDma,
    VmEvent::PgscanSkipDma32,
    VmEvent::PgscanSkipNormal,
    VmEvent::PgscanSkipMovable,
    VmEvent::PgscanSkipDevice,
];

/// Isolated pages, in the order they were isolated.
#[derive(Clone)]
pub(super) struct Isolated {
    pages: [Pfn; CLUSTER_MAX as usize],
    count: usize,
    /// Pages scanned, including those of zones that do not help.
    pub(super) scanned: u64,
    pub(super) taken: u64,
}

impl Isolated {
    pub(super) fn pages(&self) -> &[Pfn] {
        &self.pages[..self.count]
    }
}

impl Memory {
    /// Scans up to `wanted` pages, at most a cluster, from the tail of a list.
    pub(super) fn isolate_lru_pages<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        list: LruList,
        wanted: u64,
        sc: &ScanControl,
    ) -> Isolated {
        let mut out = Isolated { pages: [Pfn::default(); CLUSTER_MAX as usize], count: 0, scanned: 0, taken: 0 };
        let (mut skipped, mut taken) = ([0u64; ZoneType::COUNT], [0u64; ZoneType::COUNT]);
        // Skipped pages are kept beside the list and go to its head at the end.
        let mut aside = core::mem::take(&mut self.lru.aside);
        let passed_over_max = self.shared.profile.reclaim.passed_over_max as usize;
        let mut scan = 0;
        while scan < wanted
            && let Some(pfn) = self.lru.vecs[lruvec].lists[list.index()].last()
        {
            self.prefetch_from_end(lruvec, list);
            let order = self.frames.tag(pfn).order();
            let pages = u64::from(order.pages());
            out.scanned += pages;
            let zone = self.blocks.zone_of(pfn);
            self.lru.unlink(lruvec, pfn, list);
            let kind = self.zones[zone].kind;
            if kind > sc.highest && aside.len() < passed_over_max {
                skipped[kind.index()] += pages;
                aside.push(pfn);
                continue;
            }
            scan += pages;
            if !sc.may_unmap && owner.page_state(pfn, self.frames.owner(pfn, order)).mapped {
                self.lru.link(lruvec, pfn, list, false);
                continue;
            }
            self.frames.set(pfn, FrameKind::IsolatedLru, order);
            taken[kind.index()] += pages;
            out.pages[out.count] = pfn;
            out.count += 1;
            out.taken += pages;
        }
        for pfn in aside.drain(..) {
            self.lru.link(lruvec, pfn, list, false);
        }
        self.lru.aside = aside;
        for i in 0..self.lru.vecs[lruvec].zones.len() {
            let zone = self.lru.vecs[lruvec].zones[i];
            let pages = taken[self.zones[zone].kind.index()];
            if pages > 0 {
                self.count_listed_of(sc.cpu, zone, lruvec, list, -(pages as i64));
                self.zones[zone].nr_isolated += pages;
            }
        }
        let of_root = self.root_of(lruvec);
        self.lru.vecs[of_root].count(NodeStat::isolated(Backing::of(list)), sc.cpu, out.taken as i64);
        if self.shared.profile.lru.lists_per_zone {
            let zone = self.lru.vecs[lruvec].zones[0];
            self.zones[zone].pages_scanned += out.scanned;
        }
        for (event, pages) in PGSCAN_SKIP.iter().zip(skipped) {
            self.shared.vmstat.add(*event, pages);
        }
        let passed_over: u64 = skipped.iter().sum();
        self.count_lru_lock(lruvec, out.scanned);
        self.shared.work.reclaim_scanned += out.scanned - passed_over;
        self.shared.work.reclaim_skipped += passed_over;
        let (scanned, taken) = (out.scanned, out.taken);
        self.shared.emit(Listen::VMSCAN, || Event::LruIsolate {
            highest_zoneidx: sc.highest,
            order: sc.order,
            nr_requested: wanted,
            nr_scanned: scanned,
            nr_skipped: passed_over,
            nr_taken: taken,
            lru: list,
        });
        out
    }

    /// Prefetches the frame of a page that is isolated a few pages later.
    #[inline(always)]
    fn prefetch_from_end(&self, lruvec: LruvecId, list: LruList) {
        if let Some(pfn) = self.lru.vecs[lruvec].lists[list.index()].near_the_last(8) {
            self.frames.prefetch_frame(pfn);
            self.lru.prefetch(pfn);
        }
    }

    /// Puts an isolated page on the list its flags name. The caller updates the node's count of
    /// isolated pages.
    pub(super) fn putback_isolated(&mut self, pfn: Pfn, order: Order, sc: &ScanControl) {
        self.frames.set(pfn, FrameKind::Lru, order);
        self.count_lru_lock(self.lruvec_of(pfn), 1);
        self.link(sc.cpu, pfn, order, false);
        self.no_longer_isolated(pfn, order);
    }

    /// Moves an isolated page that is unevictable, through a batch, to where reclaim does not meet
    /// it again.
    pub(super) fn cull_isolated(&mut self, pfn: Pfn, sc: &ScanControl) {
        let order = self.frames.tag(pfn).order();
        self.lru.set_flags(pfn, self.lru.flags(pfn).without(PageFlags::ACTIVE) | PageFlags::UNEVICTABLE);
        self.frames.set(pfn, FrameKind::Kernel, order);
        self.no_longer_isolated(pfn, order);
        self.shared.vmstat.add(VmEvent::UnevictablePgsCulled, u64::from(order.pages()));
        self.batch_add(sc.cpu, pfn, BatchKind::Add);
    }

    /// Uncounts an isolated page in its zone. The caller updates the node's count.
    pub(super) fn no_longer_isolated(&mut self, pfn: Pfn, order: Order) {
        self.zones[self.blocks.zone_of(pfn)].nr_isolated -= u64::from(order.pages());
    }
}
