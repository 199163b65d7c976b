//! The values of the sysctls. What may be written to them, and what follows, is in [`crate::sysctl`].

use crate::huge_page::HugeDefrag;
use crate::types::PAGE_SIZE;

/// The values in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunables {
    /// `vm.min_free_kbytes`, kB.
    pub min_free_kbytes: u32,
    /// `vm.watermark_scale_factor`, in 1/10,000 of a zone.
    pub watermark_scale_factor: u32,
    /// `vm.watermark_boost_factor`, in 1/10,000 of the high mark.
    pub watermark_boost_factor: u32,
    /// `vm.extfrag_threshold`: up to this fragmentation index, lack of memory is to blame.
    pub extfrag_threshold: u32,
    /// `vm.compaction_proactiveness`, 0 (off) to 100.
    pub compaction_proactiveness: u32,
    /// `vm.defrag_mode`: keep pageblocks whole before anything else.
    pub defrag_mode: bool,
    /// `vm.swappiness`: how readily anonymous pages are taken instead of those of files, 0 to 200.
    pub swappiness: u32,
    /// `vm.compact_unevictable_allowed`: whether mlocked pages may be migrated.
    pub compact_unevictable_allowed: bool,
    /// `vm.dirty_*`.
    pub dirty: Dirty,
    /// `thp.enabled`: 0 is always, 1 madvise, 2 never.
    pub thp_enabled: u32,
    /// `thp.defrag`.
    pub thp_defrag: HugeDefrag,
    /// `thp.khugepaged`.
    pub khugepaged: Khugepaged,
}

impl Default for Tunables {
    fn default() -> Self {
        Tunables {
            min_free_kbytes: 0,
            watermark_scale_factor: 10,
            watermark_boost_factor: 15_000,
            extfrag_threshold: 500,
            compaction_proactiveness: 20,
            defrag_mode: false,
            swappiness: 60,
            compact_unevictable_allowed: true,
            dirty: Dirty::default(),
            thp_enabled: 1,
            thp_defrag: HugeDefrag::Madvise,
            khugepaged: Khugepaged::default(),
        }
    }
}

/// How many there are.
pub(crate) const SYSCTL_COUNT: usize = 24;

/// A limit of dirty memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Per cent of the memory that could be dirty, as long as no bytes are set.
    pub(crate) ratio: u32,
    pub(crate) bytes: u32,
}

impl Limit {
    pub(crate) const fn of_ratio(ratio: u32) -> Limit {
        Limit { ratio, bytes: 0 }
    }
    pub(crate) const fn ratio(self) -> u32 {
        if self.bytes == 0 { self.ratio } else { 0 }
    }
    /// The limit in pages where so many could be dirty.
    pub fn pages(self, dirtyable: u64) -> u64 {
        match self.bytes {
            0 => dirtyable * u64::from(self.ratio) / 100,
            bytes => u64::from(bytes).div_ceil(PAGE_SIZE),
        }
    }
}

/// What is set of dirty pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dirty {
    /// Above this they are written in the background.
    pub background: Limit,
    /// So many there may be.
    pub limit: Limit,
    /// How often it is looked for old ones; 0 for never.
    pub writeback_centisecs: u32,
    /// When they are old.
    pub expire_centisecs: u32,
}

impl Default for Dirty {
    fn default() -> Dirty {
        Dirty {
            background: Limit::of_ratio(10),
            limit: Limit::of_ratio(20),
            writeback_centisecs: 500,
            expire_centisecs: 3000,
        }
    }
}

/// What is set for khugepaged, by the names of its files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Khugepaged {
    /// How long it sleeps when there is no huge page.
    pub alloc_sleep_millisecs: u32,
    /// Whether it reclaims and compacts for one: 0 or 1.
    pub defrag: u32,
    /// Pages that may be missing in a range.
    pub max_ptes_none: u32,
    /// Pages that others may have, too.
    pub max_ptes_shared: u32,
    /// Pages that may be in swap.
    pub max_ptes_swap: u32,
    /// Pages it looks at before it sleeps.
    pub pages_to_scan: u32,
    /// How long it sleeps then.
    pub scan_sleep_millisecs: u32,
}

impl Default for Khugepaged {
    fn default() -> Khugepaged {
        Khugepaged {
            alloc_sleep_millisecs: 60_000,
            defrag: 1,
            max_ptes_none: 511,
            max_ptes_shared: 256,
            max_ptes_swap: 64,
            pages_to_scan: 4096,
            scan_sleep_millisecs: 10_000,
        }
    }
}
