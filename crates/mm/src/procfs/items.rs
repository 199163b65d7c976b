//! The state counters `/proc/zoneinfo` and `/proc/vmstat` list: their names in 6.1's order, and their values.
//!
//! User memory counts as *inactive* anonymous memory: since 5.9 a faulted page starts on that list, and without
//! reclaim nothing ever activates it (the recordings show 127,139 user pages inactive, none active). The `numa_*`
//! counters read 0, as on a kernel with `vm.numa_stat` off. Source: kernel-behaviour §7.3, §7.4.

use crate::state::{FrameKind, Frames, Zone};
use crate::types::PAGEBLOCK_PAGES;

/// Counters kept for each zone, then those of NUMA placement.
pub(super) const OF_ZONE: [&str; 17] = [
    "nr_free_pages",
    "nr_zone_inactive_anon",
    "nr_zone_active_anon",
    "nr_zone_inactive_file",
    "nr_zone_active_file",
    "nr_zone_unevictable",
    "nr_zone_write_pending",
    "nr_mlock",
    "nr_bounce",
    "nr_zspages",
    "nr_free_cma",
    "numa_hit",
    "numa_miss",
    "numa_foreign",
    "numa_interleave",
    "numa_local",
    "numa_other",
];

/// Counters kept for each node.
pub(super) const OF_NODE: [&str; 43] = [
    "nr_inactive_anon",
    "nr_active_anon",
    "nr_inactive_file",
    "nr_active_file",
    "nr_unevictable",
    "nr_slab_reclaimable",
    "nr_slab_unreclaimable",
    "nr_isolated_anon",
    "nr_isolated_file",
    "workingset_nodes",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "workingset_nodereclaim",
    "nr_anon_pages",
    "nr_mapped",
    "nr_file_pages",
    "nr_dirty",
    "nr_writeback",
    "nr_writeback_temp",
    "nr_shmem",
    "nr_shmem_hugepages",
    "nr_shmem_pmdmapped",
    "nr_file_hugepages",
    "nr_file_pmdmapped",
    "nr_anon_transparent_hugepages",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_dirtied",
    "nr_written",
    "nr_throttled_written",
    "nr_kernel_misc_reclaimable",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_kernel_stack",
    "nr_page_table_pages",
    "nr_sec_page_table_pages",
    "nr_swapcached",
    "pgpromote_success",
    "pgpromote_candidate",
];

/// What is counted of a zone, a node or the machine.
#[derive(Default)]
pub(super) struct Counters {
    free: i64,
    lru: u64,
    isolated: u64,
    huge: u64,
}

impl Counters {
    /// The sum over some zones.
    pub(super) fn of<'a>(zones: impl Iterator<Item = &'a Zone>, frames: &Frames) -> Counters {
        let mut sum = Counters::default();
        for z in zones {
            sum.free += z.free_pages;
            sum.lru += z.nr_lru;
            sum.isolated += z.nr_isolated;
            sum.huge += user_huge_pages(z, frames);
        }
        sum
    }

    /// The counter of this name; 0 for what the machine does not have.
    pub(super) fn get(&self, item: &str) -> u64 {
        match item {
            // Without the CPUs' unfolded parts, which can make the rest negative: the kernel shows 0 then.
            "nr_free_pages" => self.free.max(0) as u64,
            "nr_zone_inactive_anon" | "nr_inactive_anon" => self.lru,
            "nr_isolated_anon" => self.isolated,
            // Mapped, on the LRU or not.
            "nr_anon_pages" => self.lru + self.isolated,
            "nr_anon_transparent_hugepages" => self.huge,
            _ => 0,
        }
    }
}

/// Huge pages of user memory in a zone.
fn user_huge_pages(zone: &Zone, frames: &Frames) -> u64 {
    (zone.start.pageblock()..=zone.last_pageblock().pageblock())
        .map(|b| frames.block_tag(b))
        .filter(|t| matches!(t.kind(), FrameKind::Lru | FrameKind::IsolatedLru))
        .map(|t| u64::from(t.order().pages() / PAGEBLOCK_PAGES))
        .sum()
}
