//! Shrinks an inactive list: isolates a cluster from its tail and frees what can be freed.
//!
//! Source: kernel-behaviour §4.3.

use super::control::ScanControl;
use crate::event::{Event, Listen, ReclaimStat};
use crate::gfp::Gfp;
use crate::owner::Owner;
use crate::state::{Backing, LruList, Memory, NodeStat};
use crate::types::LruvecId;
use crate::vmstat::VmEvent;

/// Reclaim events by zone, where each zone has its own lists.
const PGSCAN: [[VmEvent; 4]; 2] = [
    [VmEvent::PgscanDirectDma, VmEvent::PgscanDirectDma32, VmEvent::PgscanDirectNormal, VmEvent::PgscanDirectMovable],
    [VmEvent::PgscanKswapdDma, VmEvent::PgscanKswapdDma32, VmEvent::PgscanKswapdNormal, VmEvent::PgscanKswapdMovable],
];
const PGSTEAL: [[VmEvent; 4]; 2] = [
    [
        VmEvent::PgstealDirectDma,
        VmEvent::PgstealDirectDma32,
        VmEvent::PgstealDirectNormal,
        VmEvent::PgstealDirectMovable,
    ],
    [
        VmEvent::PgstealKswapdDma,
        VmEvent::PgstealKswapdDma32,
        VmEvent::PgstealKswapdNormal,
        VmEvent::PgstealKswapdMovable,
    ],
];
const PGREFILL: [VmEvent; 4] =
    [VmEvent::PgrefillDma, VmEvent::PgrefillDma32, VmEvent::PgrefillNormal, VmEvent::PgrefillMovable];

impl Memory {
    /// Counts pages by zone, where each zone has its own lists.
    fn count_by_zone(&mut self, lruvec: LruvecId, events: &[VmEvent; 4], pages: u64) {
        if self.shared.profile.lru.lists_per_zone {
            let zone = self.lru.vecs[lruvec].zones[0];
            let event = events[self.zones[zone].kind.index().min(events.len() - 1)];
            self.shared.vmstat.add(event, pages);
        }
    }

    /// Counts scanned active pages, unless they are scanned for a group's limit.
    pub(super) fn count_refill(&mut self, lruvec: LruvecId, pages: u64, sc: &ScanControl) {
        if !self.counts_for_machine(sc) {
            return;
        }
        self.shared.vmstat.add(VmEvent::Pgrefill, pages);
        self.count_by_zone(lruvec, &PGREFILL, pages);
    }

    /// Whether more pages are isolated than a direct reclaimer may add to without waiting.
    pub(super) fn too_many_isolated(&self, lruvec: LruvecId, backing: Backing, sc: &ScanControl) -> bool {
        let vec = &self.lru.vecs[self.root_of(lruvec)];
        let inactive = vec.size(backing.inactive());
        // A request without I/O or FS may isolate more, so that it does not wait for reclaimers
        // that wait for it.
        let inactive = if sc.gfp.has(Gfp::IO | Gfp::FS) { inactive >> 3 } else { inactive };
        !sc.kswapd && vec.stat(NodeStat::isolated(backing)) > inactive
    }

    /// Whether what is scanned and reclaimed counts for the machine. For a group's limit it may
    /// count for the group alone.
    pub(super) fn counts_for_machine(&self, sc: &ScanControl) -> bool {
        sc.target.is_none() || self.shared.profile.groups.limits_count_for_machine
    }

    /// The counters of pages scanned and reclaimed, by who reclaims.
    pub(super) fn counted_as(&self, sc: &ScanControl) -> [VmEvent; 2] {
        let apart = self.shared.profile.reclaim.counts_khugepaged_apart;
        match sc.kswapd {
            true => [VmEvent::PgscanKswapd, VmEvent::PgstealKswapd],
            false if apart && sc.gfp.has(Gfp::BY_KHUGEPAGED) => [VmEvent::PgscanKhugepaged, VmEvent::PgstealKhugepaged],
            false if sc.proactive && self.shared.profile.lru_gen.by_all_tiers() => {
                [VmEvent::PgscanProactive, VmEvent::PgstealProactive]
            }
            false => [VmEvent::PgscanDirect, VmEvent::PgstealDirect],
        }
    }

    /// Scans `wanted` pages, at most a cluster. Returns the pages freed.
    pub(super) fn shrink_inactive_list<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        list: LruList,
        wanted: u64,
        sc: &mut ScanControl,
    ) -> u64 {
        let backing = Backing::of(list);
        self.lru_add_drain(sc.cpu);
        let isolated = self.isolate_lru_pages(owner, lruvec, list, wanted, sc);
        let [scan, steal] = self.counted_as(sc);
        let of_machine = self.counts_for_machine(sc);
        if of_machine {
            self.shared.vmstat.add(scan, isolated.scanned);
        }
        self.count_by_zone(lruvec, &PGSCAN[usize::from(sc.kswapd)], isolated.scanned);
        self.shared.vmstat.add([VmEvent::PgscanAnon, VmEvent::PgscanFile][backing.index()], isolated.scanned);
        if self.groups.are_kept() {
            self.count_scanned_in_group(lruvec, sc.kswapd, isolated.scanned);
        }
        if isolated.taken == 0 {
            return 0;
        }
        self.lru.vecs[lruvec].recent_scanned[backing.index()] += isolated.taken;
        let mut stat = ReclaimStat::default();
        let reclaimed = self.shrink_page_list(owner, lruvec, &isolated, sc, &mut stat);
        let of_root = self.root_of(lruvec);
        self.lru.vecs[of_root].count(NodeStat::isolated(backing), sc.cpu, -(isolated.taken as i64));
        if of_machine {
            self.shared.vmstat.add(steal, reclaimed);
        }
        self.count_by_zone(lruvec, &PGSTEAL[usize::from(sc.kswapd)], reclaimed);
        self.shared.vmstat.add([VmEvent::PgstealAnon, VmEvent::PgstealFile][backing.index()], reclaimed);
        if self.groups.are_kept() {
            self.count_reclaimed_in_group(lruvec, sc.kswapd, reclaimed);
        }
        self.note_look(sc.cpu, lruvec, backing, stat.pageout, isolated.scanned - reclaimed);
        if stat.unqueued_dirty == isolated.taken && !self.shared.profile.reclaim.scanning_wakes_flushers {
            owner.wake_flushers();
        }
        let met = &mut sc.met;
        met.dirty += stat.dirty;
        met.congested += stat.congested;
        met.unqueued_dirty += stat.unqueued_dirty;
        met.writeback += stat.writeback;
        met.immediate += stat.immediate;
        met.taken += isolated.taken;
        if backing == Backing::File {
            met.file_taken += isolated.taken;
        }
        let (nid, priority, nr_scanned) = (self.lru.vecs[lruvec].node, sc.priority, isolated.scanned);
        self.shared.emit(Listen::VMSCAN, || Event::LruShrinkInactive {
            nid,
            nr_scanned,
            nr_reclaimed: reclaimed,
            stat,
            priority,
            backing,
        });
        reclaimed
    }
}
