//! The values of the sysctls. What may be written to them, and what follows, is in [`crate::sysctl`].

use crate::huge_page::HugeDefrag;
use crate::sysctl::{Dirty, Khugepaged};

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
