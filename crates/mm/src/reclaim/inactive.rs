//! Shrinks an inactive list: takes a cluster of pages off its end and frees what can be freed.
//!
//! Source: kernel-behaviour §4.3.

use super::control::ScanControl;
use super::fate::ReclaimStat;
use crate::event::{Event, Listen};
use crate::gfp::Gfp;
use crate::host::Owner;
use crate::state::{Backing, LruList, Memory, NodeStat};
use crate::types::NodeId;
use crate::vmstat::VmEvent;

impl Memory {
    /// Whether so many pages are isolated already that a task that reclaims itself has to wait.
    pub(super) fn too_many_isolated(&self, node: NodeId, backing: Backing, sc: &ScanControl) -> bool {
        let vec = &self.lru.vecs[node];
        let inactive = vec.size(backing.inactive());
        // Who may not do I/O may isolate more: others may wait for it.
        let inactive = if sc.gfp.has(Gfp::IO | Gfp::FS) { inactive >> 3 } else { inactive };
        !sc.kswapd && vec.stat(NodeStat::isolated(backing)) > inactive
    }

    /// Looks at `wanted` pages, at most a cluster. Returns the pages freed.
    pub(super) fn shrink_inactive_list<O: Owner>(
        &mut self,
        owner: &mut O,
        node: NodeId,
        list: LruList,
        wanted: u64,
        sc: &mut ScanControl,
    ) -> u64 {
        let backing = Backing::of(list);
        self.lru_add_drain(sc.cpu);
        let isolated = self.isolate_lru_pages(owner, node, list, wanted, sc);
        let scan = if sc.kswapd { VmEvent::PgscanKswapd } else { VmEvent::PgscanDirect };
        self.shared.vmstat.add(scan, isolated.scanned);
        self.shared.vmstat.add([VmEvent::PgscanAnon, VmEvent::PgscanFile][backing.index()], isolated.scanned);
        if isolated.taken == 0 {
            return 0;
        }
        let mut stat = ReclaimStat::default();
        let reclaimed = self.shrink_page_list(owner, node, &isolated, sc, &mut stat);
        self.lru.vecs[node].count(NodeStat::isolated(backing), sc.cpu, -(isolated.taken as i64));
        let steal = if sc.kswapd { VmEvent::PgstealKswapd } else { VmEvent::PgstealDirect };
        self.shared.vmstat.add(steal, reclaimed);
        self.shared.vmstat.add([VmEvent::PgstealAnon, VmEvent::PgstealFile][backing.index()], reclaimed);
        self.note_look(sc.cpu, node, backing, stat.pageout, isolated.scanned - reclaimed);
        if stat.unqueued_dirty == isolated.taken {
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
        let (priority, nr_scanned) = (sc.priority, isolated.scanned);
        self.shared.emit(Listen::VMSCAN, || Event::LruShrinkInactive {
            nid: node,
            nr_scanned,
            nr_reclaimed: reclaimed,
            stat,
            priority,
            backing,
        });
        reclaimed
    }
}
