//! The CPUs' parts of the counters, and the once-a-second worker that folds them in.
//!
//! Source: kernel-behaviour §1.6.

use crate::rules::PcpLists;
use crate::state::Memory;
use crate::types::CpuId;

impl Memory {
    /// The once-a-second vmstat work of a CPU: folds its parts of the counters in, and shrinks
    /// auto-tuned lists.
    pub fn vmstat_update(&mut self, cpu: CpuId) {
        self.fold_vmstat(cpu);
        if self.shared.profile.pcp.lists == PcpLists::AutoTuned {
            for zone in self.zones.ids() {
                self.locked(zone, cpu).pcp_decay();
            }
        }
    }

    /// Folds a CPU's parts of the counters in, as it does before it idles.
    pub fn fold_vmstat(&mut self, cpu: CpuId) {
        for zone in &mut self.zones {
            zone.free_pages += core::mem::take(&mut zone.pcps[cpu].free_diff);
            zone.lru.fold(cpu);
            zone.alloc_batch.fold(cpu);
        }
        self.lru.vecs.iter_mut().for_each(|vec| vec.stats.fold(cpu));
    }
}
