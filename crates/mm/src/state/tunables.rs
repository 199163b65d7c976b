//! The values of the sysctls. [`crate::sysctl`] has their ranges and the effects of a write.

use crate::huge_page::HugeDefrag;
use crate::types::PAGE_SIZE;

/// The current values of all sysctls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunables {
    pub min_free_kbytes: u32,
    /// `vm.watermark_scale_factor`, in 1/10,000 of a zone.
    pub watermark_scale_factor: u32,
    /// `vm.watermark_boost_factor`, in 1/10,000 of the high mark.
    pub watermark_boost_factor: u32,
    /// `vm.fragment_stall_order`: movable requests would rather wait than take foreign blocks below
    /// this order; 0 for never.
    pub fragment_stall_order: u32,
    /// `vm.extfrag_threshold`: up to this fragmentation index, a failure is put down to lack of
    /// memory.
    pub extfrag_threshold: u32,
    /// `vm.compaction_proactiveness`, 0 (off) to 100.
    pub compaction_proactiveness: u32,
    /// `vm.defrag_mode`: keep pageblocks whole before anything else.
    pub defrag_mode: bool,
    /// `vm.swappiness`: the readiness to take anonymous pages rather than file pages, 0 to 200.
    pub swappiness: u32,
    /// `vm.compact_unevictable_allowed`: whether mlocked pages may be migrated.
    pub compact_unevictable_allowed: bool,
    /// `vm.zone_reclaim_mode`: whether a request reclaims on a near node before it goes to the next
    /// one, and what that may do; 0 for never.
    pub zone_reclaim_mode: u32,
    /// `vm.min_unmapped_ratio`: it reclaims where more per cent of a node are pages of files that
    /// it may take.
    pub min_unmapped_ratio: u32,
    /// `vm.min_slab_ratio`: or more per cent are reclaimable slab.
    pub min_slab_ratio: u32,
    pub dirty: Dirty,
    /// `thp.enabled`: 0 is always, 1 madvise, 2 never.
    pub thp_enabled: u32,
    pub thp_defrag: HugeDefrag,
    pub khugepaged: Khugepaged,
    /// `lru_gen.enabled`: the parts of the multi-generational LRU that are on ([`LruGen`]).
    pub lru_gen: LruGen,
}

impl Default for Tunables {
    fn default() -> Self {
        Tunables {
            min_free_kbytes: 0,
            watermark_scale_factor: 10,
            watermark_boost_factor: 15_000,
            fragment_stall_order: 4,
            extfrag_threshold: 500,
            compaction_proactiveness: 20,
            defrag_mode: false,
            swappiness: 60,
            compact_unevictable_allowed: true,
            zone_reclaim_mode: 0,
            min_unmapped_ratio: 1,
            min_slab_ratio: 5,
            dirty: Dirty::default(),
            thp_enabled: 1,
            thp_defrag: HugeDefrag::Madvise,
            khugepaged: Khugepaged::default(),
            lru_gen: LruGen(0),
        }
    }
}

pub(crate) const SYSCTL_COUNT: usize = 29;

/// A limit of dirty memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Per cent of the memory that could be dirty, if no bytes are set.
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
    /// The limit in pages when `dirtyable` pages could be dirty.
    pub fn pages(self, dirtyable: u64) -> u64 {
        match self.bytes {
            0 => dirtyable * u64::from(self.ratio) / 100,
            bytes => u64::from(bytes).div_ceil(PAGE_SIZE),
        }
    }
}

/// The settings for dirty pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dirty {
    /// Above this, pages are written back in the background.
    pub background: Limit,
    /// The most dirty pages allowed.
    pub limit: Limit,
    /// The interval of checks for old dirty pages; 0 for no checks.
    pub writeback_centisecs: u32,
    /// The age at which a dirty page is old.
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

/// The parts of the multi-generational LRU that are on, as a mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LruGen(pub u32);

impl LruGen {
    /// All of them: what distributions boot with.
    pub const ALL: LruGen = LruGen(7);

    /// Pages are kept in generations.
    pub const fn is_on(self) -> bool {
        self.0 & 1 != 0
    }
    /// Aging walks page tables.
    pub(crate) const fn walks(self) -> bool {
        self.0 & 2 != 0
    }
    /// A walk passes over page tables none of whose entries was used.
    pub(crate) const fn skips_unused(self) -> bool {
        self.0 & 4 != 0
    }
}

/// The settings for khugepaged, named as its files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Khugepaged {
    /// Sleep after it failed to allocate a huge page.
    pub alloc_sleep_millisecs: u32,
    /// Whether it reclaims and compacts for a huge page: 0 or 1.
    pub defrag: u32,
    /// The most pages of a range that may be missing.
    pub max_ptes_none: u32,
    /// The most pages of a range that other processes may share.
    pub max_ptes_shared: u32,
    /// The most pages of a range that may be in swap.
    pub max_ptes_swap: u32,
    /// Pages it scans before it sleeps.
    pub pages_to_scan: u32,
    /// Sleep after these pages.
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
