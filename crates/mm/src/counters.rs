//! The CPUs' parts of the counters, and the once-a-second worker that folds them in.
//!
//! Source: kernel-behaviour §1.6.

use crate::rules::PcpLists;
use crate::state::Memory;
use crate::types::{CpuId, ZoneId};

/// Folds after which lists of another node's zone that were not used give back a batch.
const IDLE_FOLDS: u8 = 3;

impl Memory {
    /// The once-a-second vmstat work of a CPU: folds its parts of the counters in, shrinks
    /// auto-tuned lists, and empties those of other nodes' zones that it no longer uses.
    pub fn vmstat_update(&mut self, cpu: CpuId) {
        let own_node = self.node_of_cpu(cpu);
        for zone in self.zones.ids() {
            self.fold_zone(zone, cpu);
            let is_own = self.zones[zone].node == own_node;
            let mut locked = self.locked(zone, cpu);
            if locked.shared.profile.pcp.lists == PcpLists::AutoTuned {
                locked.pcp_decay();
            }
            locked.pcp_expire(is_own);
        }
        self.fold_nodes(cpu);
    }

    /// Folds a CPU's parts of the counters in, as it does before it idles.
    pub fn fold_vmstat(&mut self, cpu: CpuId) {
        for zone in self.zones.ids() {
            self.fold_zone(zone, cpu);
        }
        self.fold_nodes(cpu);
    }

    fn fold_zone(&mut self, zone: ZoneId, cpu: CpuId) {
        let zone = &mut self.zones[zone];
        let pcp = &mut zone.pcps[cpu];
        let free = core::mem::take(&mut pcp.free_diff);
        zone.free_pages += free;
        let any = zone.lru.fold(cpu) | zone.alloc_batch.fold(cpu);
        if any || free != 0 {
            pcp.expire = IDLE_FOLDS;
        }
    }

    fn fold_nodes(&mut self, cpu: CpuId) {
        self.lru.vecs.iter_mut().for_each(|vec| _ = vec.stats.fold(cpu));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::{MachineSpec, ZoneSpec};
    use crate::gfp::Gfp;
    use crate::request::Request;
    use crate::types::{NodeId, Order, ZoneType};

    #[test]
    fn lists_of_another_nodes_zone_that_are_not_used_are_emptied_batch_by_batch() {
        let zone = |node| {
            let start = (node as u32 + 1) << 18;
            let pages = 1 << 18;
            ZoneSpec { node, kind: ZoneType::Normal, start, end: start + (1 << 18), present: pages, managed: pages }
        };
        let spec = MachineSpec { cpus: 2, zones: alloc::vec![zone(0), zone(1)], thp: false, lru: false };
        let mut m = Memory::new(&spec, crate::testing::linux("6.1")).expect("a valid machine");
        let cpu = CpuId::new(0);
        let kept = |m: &mut Memory, node: usize| {
            let id = NodeId::new(node);
            let page = Request::new(cpu, id, Gfp::KERNEL.with(Gfp::THISNODE), Order::ZERO);
            let pages: alloc::vec::Vec<_> = (0..200).map(|_| m.alloc(page).expect("memory is free")).collect();
            pages.into_iter().for_each(|pfn| m.free(cpu, pfn, Order::ZERO));
            // A part of the counter, which the first fold finds.
            m.alloc(Request::new(cpu, id, Gfp::KERNEL.with(Gfp::THISNODE), Order::new(4))).expect("memory is free");
            let before = m.zones[ZoneId::new(node)].pcps[cpu].count;
            let after = (0..5).map(|_| {
                m.vmstat_update(cpu);
                before - m.zones[ZoneId::new(node)].pcps[cpu].count
            });
            after.collect::<alloc::vec::Vec<_>>()
        };
        assert_eq!(kept(&mut m, 0), [0; 5]);
        // The threshold is 20, so a batch of 63 leaves no part that would begin the count anew.
        assert_eq!(kept(&mut m, 1), [0, 0, 63, 63, 63]);
    }
}
