//! `/proc/vmstat`: state counters of the whole machine, then events since it started.
//!
//! All events of 6.1 are listed in its order; those the engine counts ([`VmEvent`]) are found by their names. The
//! dirty thresholds between the two are 0: nothing here can be dirty. Source: kernel-behaviour §7.4.

use super::items::{self, Counters};
use super::text;
use crate::state::Memory;
use crate::vmstat::VmEvent;
use alloc::string::String;
use core::fmt::Write;

impl Memory {
    /// `/proc/vmstat`: a line `name value` for every counter.
    pub fn vmstat_text(&self) -> String {
        let counters = Counters::of(self.zones.iter(), &self.frames);
        let state = items::OF_ZONE.iter().chain(&items::OF_NODE).map(|&name| (name, counters.get(name)));
        let events = EVENTS.iter().map(|&name| (name, self.event_named(name)));
        text(|w| state.chain(THRESHOLDS).chain(events).try_for_each(|(name, value)| writeln!(w, "{name} {value}")))
    }

    fn event_named(&self, name: &str) -> u64 {
        VmEvent::ALL.iter().find(|e| e.name() == name).map_or(0, |e| self.sh.vmstat.get(*e))
    }
}

const THRESHOLDS: [(&str, u64); 2] = [("nr_dirty_threshold", 0), ("nr_dirty_background_threshold", 0)];

/// Every event counter of 6.1, in its order.
const EVENTS: [&str; 109] = [
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "pgalloc_dma",
    "pgalloc_dma32",
    "pgalloc_normal",
    "pgalloc_movable",
    "pgalloc_device",
    "allocstall_dma",
    "allocstall_dma32",
    "allocstall_normal",
    "allocstall_movable",
    "allocstall_device",
    "pgskip_dma",
    "pgskip_dma32",
    "pgskip_normal",
    "pgskip_movable",
    "pgskip_device",
    "pgfree",
    "pgactivate",
    "pgdeactivate",
    "pglazyfree",
    "pgfault",
    "pgmajfault",
    "pglazyfreed",
    "pgrefill",
    "pgreuse",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgdemote_kswapd",
    "pgdemote_direct",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgscan_direct_throttle",
    "pgscan_anon",
    "pgscan_file",
    "pgsteal_anon",
    "pgsteal_file",
    "zone_reclaim_failed",
    "pginodesteal",
    "slabs_scanned",
    "kswapd_inodesteal",
    "kswapd_low_wmark_hit_quickly",
    "kswapd_high_wmark_hit_quickly",
    "pageoutrun",
    "pgrotated",
    "drop_pagecache",
    "drop_slab",
    "oom_kill",
    "numa_pte_updates",
    "numa_huge_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "pgmigrate_success",
    "pgmigrate_fail",
    "thp_migration_success",
    "thp_migration_fail",
    "thp_migration_split",
    "compact_migrate_scanned",
    "compact_free_scanned",
    "compact_isolated",
    "compact_stall",
    "compact_fail",
    "compact_success",
    "compact_daemon_wake",
    "compact_daemon_migrate_scanned",
    "compact_daemon_free_scanned",
    "htlb_buddy_alloc_success",
    "htlb_buddy_alloc_fail",
    "unevictable_pgs_culled",
    "unevictable_pgs_scanned",
    "unevictable_pgs_rescued",
    "unevictable_pgs_mlocked",
    "unevictable_pgs_munlocked",
    "unevictable_pgs_cleared",
    "unevictable_pgs_stranded",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_fault_fallback_charge",
    "thp_collapse_alloc",
    "thp_collapse_alloc_failed",
    "thp_file_alloc",
    "thp_file_fallback",
    "thp_file_fallback_charge",
    "thp_file_mapped",
    "thp_split_page",
    "thp_split_page_failed",
    "thp_deferred_split_page",
    "thp_split_pmd",
    "thp_scan_exceed_none_pte",
    "thp_scan_exceed_swap_pte",
    "thp_scan_exceed_share_pte",
    "thp_split_pud",
    "thp_zero_page_alloc",
    "thp_zero_page_alloc_failed",
    "thp_swpout",
    "thp_swpout_fallback",
    "balloon_inflate",
    "balloon_deflate",
    "balloon_migrate",
    "swap_ra",
    "swap_ra_hit",
    "ksm_swpin_copy",
    "cow_ksm",
    "direct_map_level2_splits",
    "direct_map_level3_splits",
    "nr_unstable",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_the_engine_counts_is_listed_once() {
        for e in VmEvent::ALL {
            assert_eq!(EVENTS.iter().filter(|n| **n == e.name()).count(), 1, "{}", e.name());
        }
    }
}
