//! Shrinks an active list: pages from its tail are deactivated whether they were referenced or not;
//! only referenced executable file pages stay.
//!
//! Source: kernel-behaviour §4.2.

use super::control::ScanControl;
use crate::event::{Event, Listen};
use crate::owner::{Owner, PageState};
use crate::state::{Backing, LruList, Memory, NodeStat, PageFlags};
use crate::types::{CLUSTER_MAX, LruvecId, Pfn};
use crate::vmstat::VmEvent;

impl Memory {
    /// Scans `wanted` pages, at most a cluster.
    pub(super) fn shrink_active_list<O: Owner>(
        &mut self,
        owner: &mut O,
        lruvec: LruvecId,
        list: LruList,
        wanted: u64,
        sc: &ScanControl,
    ) {
        let backing = Backing::of(list);
        self.lru_add_drain(sc.cpu);
        let isolated = self.isolate_lru_pages(owner, lruvec, list, wanted, sc);
        self.count_refill(lruvec, isolated.scanned, sc);
        self.lru.vecs[lruvec].recent_scanned[backing.index()] += isolated.taken;
        let mut in_use = 0;
        // Pages that stay are put back before those that are deactivated.
        let (mut stay, mut nr_stay) = ([Pfn::default(); CLUSTER_MAX as usize], 0);
        let (mut leave, mut nr_leave) = ([Pfn::default(); CLUSTER_MAX as usize], 0);
        for &pfn in isolated.pages() {
            self.offer_cpu(owner);
            let number = self.frames.owner(pfn, self.frames.tag(pfn).order());
            let page = match self.lru.is_released(pfn) {
                true => PageState::default(),
                false => owner.page_state(pfn, number),
            };
            if page.unevictable {
                self.cull_isolated(pfn, sc);
                continue;
            }
            let by =
                if page.mapped { owner.references_within(self, pfn, number, sc.target) } else { Default::default() };
            if by.ptes > 0 {
                in_use += u64::from(self.frames.tag(pfn).order().pages());
            }
            if by.ptes > 0 && by.executable && backing == Backing::File {
                stay[nr_stay] = pfn;
                nr_stay += 1;
            } else {
                let flags = self.lru.flags(pfn).without(PageFlags::ACTIVE);
                let remembers = self.shared.profile.lru.remembers_workingset;
                self.lru.set_flags(pfn, if remembers { flags | PageFlags::WORKINGSET } else { flags });
                leave[nr_leave] = pfn;
                nr_leave += 1;
            }
        }
        let back = |m: &mut Memory, pages: &[Pfn]| {
            let mut count = 0;
            for &pfn in pages {
                let order = m.frames.tag(pfn).order();
                m.putback_isolated(pfn, order, sc);
                count += u64::from(order.pages());
            }
            count
        };
        let rotated = back(self, &stay[..nr_stay]);
        self.lru.vecs[lruvec].recent_rotated[backing.index()] += in_use;
        if self.shared.profile.lru.shadows_of_anon {
            self.age_nonresident(lruvec, rotated);
        }
        let deactivated = back(self, &leave[..nr_leave]);
        self.shared.vmstat.add(VmEvent::Pgdeactivate, deactivated);
        let of_root = self.root_of(lruvec);
        self.lru.vecs[of_root].count(NodeStat::isolated(backing), sc.cpu, -(isolated.taken as i64));
        if rotated > 0 && self.shared.profile.reclaim.cost_of_rotation {
            self.note_look(sc.cpu, lruvec, backing, 0, rotated);
        }
        let (nid, priority, nr_taken) = (self.lru.vecs[lruvec].node, sc.priority, isolated.taken);
        self.shared.emit(Listen::VMSCAN, || Event::LruShrinkActive {
            nid,
            nr_taken,
            nr_active: rotated,
            nr_deactivated: deactivated,
            nr_referenced: rotated,
            priority,
            backing,
        });
    }
}
