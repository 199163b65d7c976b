//! Pages that batches or reclaim free together, once nothing holds them.
//!
//! Up to 6.8 they are collected on a list and freed last to first, large pages at once. From 6.9 on
//! they are collected in an array of at most 31, which is freed when full: first the pages that are
//! too large for the per-CPU lists, then the others, first to last. Source: kernel-behaviour §4.1.

use crate::pcp;
use crate::state::{BATCH_MAX, Memory};
use crate::types::{CLUSTER_MAX, CpuId, Order, Pfn};

/// Pages to free. Of their tags, only the order still means anything.
pub(crate) struct ToFree {
    pages: [Pfn; CLUSTER_MAX as usize],
    count: usize,
    /// To the tails of the per-CPU lists.
    cold: bool,
}

impl ToFree {
    pub(crate) const fn new() -> ToFree {
        ToFree { pages: [Pfn::new(0); CLUSTER_MAX as usize], count: 0, cold: false }
    }

    /// Pages that reclaim frees, which some kernels put to the tails of the per-CPU lists.
    pub(crate) fn reclaimed(m: &Memory) -> ToFree {
        ToFree { cold: m.shared.profile.pcp.reclaimed_to_tail, ..ToFree::new() }
    }

    /// Adds a page of any order.
    pub(crate) fn add(&mut self, m: &mut Memory, cpu: CpuId, pfn: Pfn) {
        let in_order = m.shared.profile.lru.frees_in_order;
        if !in_order && m.frames.tag(pfn).order() > Order::ZERO {
            free(m, cpu, pfn);
            return;
        }
        self.pages[self.count] = pfn;
        self.count += 1;
        if in_order && self.count == BATCH_MAX {
            core::mem::replace(self, ToFree::new()).free(m, cpu);
        }
    }

    /// Frees all of the collected pages.
    pub(crate) fn free(mut self, m: &mut Memory, cpu: CpuId) {
        if !m.shared.profile.lru.frees_in_order {
            let free = if self.cold { free_cold } else { free };
            self.pages[..self.count].iter().rev().for_each(|pfn| free(m, cpu, *pfn));
            return;
        }
        let mut small = 0;
        for i in 0..self.count {
            let pfn = self.pages[i];
            if pcp::allows(m.shared.profile.pcp.lists, m.frames.tag(pfn).order()) {
                self.pages[small] = pfn;
                small += 1;
            } else {
                free(m, cpu, pfn);
            }
        }
        self.pages[..small].iter().for_each(|pfn| free(m, cpu, *pfn));
    }
}

fn free(m: &mut Memory, cpu: CpuId, pfn: Pfn) {
    let order = m.frames.tag(pfn).order();
    m.free_untagged(m.blocks.zone_of(pfn), cpu, pfn, order);
}

/// Frees a single page to the tail of its per-CPU list.
fn free_cold(m: &mut Memory, cpu: CpuId, pfn: Pfn) {
    m.free_untagged_cold(m.blocks.zone_of(pfn), cpu, pfn);
}
