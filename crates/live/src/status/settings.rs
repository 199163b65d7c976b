//! Settings that decide about large blocks: as read, since distributions differ in their defaults.

use crate::host::Host;
use kontig_procfs::Choice;
use serde::Serialize;

/// A setting as it was read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// A sysctl as `vm.min_free_kbytes`, or a file below `/sys/kernel/mm` as
    /// `transparent_hugepage/enabled`.
    pub name: String,
    /// Null where the kernel has no such setting, or does not tell.
    pub value: Option<String>,
}

/// The sysctls below `vm` that decide about large blocks.
const SYSCTLS: [&str; 12] = [
    "compaction_proactiveness",
    "defrag_mode",
    "extfrag_threshold",
    "compact_unevictable_allowed",
    "min_free_kbytes",
    "watermark_scale_factor",
    "watermark_boost_factor",
    "percpu_pagelist_high_fraction",
    "zone_reclaim_mode",
    "swappiness",
    "nr_hugepages",
    "nr_overcommit_hugepages",
];

const KHUGEPAGED: [&str; 4] = ["defrag", "max_ptes_none", "pages_to_scan", "scan_sleep_millisecs"];

pub(super) fn of(host: &Host) -> Vec<Setting> {
    let sysctls = SYSCTLS.map(|name| (format!("vm.{name}"), host.sysctl(name).map(str::to_string)));
    let thp = host.thp.as_ref().ok();
    let chosen = |choice: Option<&Choice>| choice.map(|choice| choice.chosen.clone());
    let mut found = Vec::from(sysctls);
    let mut set = |name: &str, value| found.push((format!("transparent_hugepage/{name}"), value));
    set("enabled", chosen(thp.map(|thp| &thp.enabled)));
    set("defrag", chosen(thp.and_then(|thp| thp.defrag.as_ref().ok())));
    set("shmem_enabled", chosen(thp.and_then(|thp| thp.shmem_enabled.as_ref().ok())));
    for name in KHUGEPAGED {
        set(&format!("khugepaged/{name}"), thp.and_then(|thp| thp.khugepaged(name)).map(|n| n.to_string()));
    }
    for size in thp.iter().flat_map(|thp| &thp.sizes) {
        if let Some(choice) = &size.enabled {
            set(&format!("hugepages-{}kB/enabled", size.bytes / 1024), Some(choice.chosen.clone()));
        }
    }
    found.push(("lru_gen/enabled".into(), host.lru_gen.as_ref().ok().map(|mask| format!("{mask:#06x}"))));
    found.into_iter().map(|(name, value)| Setting { name, value }).collect()
}
