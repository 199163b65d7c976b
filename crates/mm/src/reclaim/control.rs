//! What a reclaim is for, what it may do, and how far it is (the kernel's `scan_control`).

use crate::gfp::Gfp;
use crate::types::{CpuId, Order, ZoneType};

/// Every reclaim begins here: a 4096th of each list is looked at.
pub(crate) const DEF_PRIORITY: i8 = 12;
/// Balance runs of kswapd that reclaim nothing before it gives its node up, and tries of a request that do before it
/// gives up.
pub(crate) const MAX_RECLAIM_RETRIES: u32 = 16;

/// What was met since the node was begun with, in pages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    pub(super) dirty: u64,
    pub(super) unqueued_dirty: u64,
    pub(super) congested: u64,
    pub(super) writeback: u64,
    pub(super) immediate: u64,
    pub(super) file_taken: u64,
    pub(super) taken: u64,
}

/// A reclaim.
#[derive(Clone, Debug)]
pub(crate) struct ScanControl {
    pub(crate) cpu: CpuId,
    pub(crate) kswapd: bool,
    pub(crate) gfp: Gfp,
    /// The order of the request it is for.
    pub(crate) order: Order,
    /// Each list's size is shifted by this to say how much of it is looked at.
    pub(crate) priority: i8,
    /// The highest zone whose pages help.
    pub(crate) highest: ZoneType,
    pub(crate) nr_to_reclaim: u64,
    pub(crate) nr_scanned: u64,
    pub(crate) nr_reclaimed: u64,
    pub(crate) may_writepage: bool,
    pub(crate) may_unmap: bool,
    pub(crate) may_swap: bool,
    /// Active pages, of anonymous memory and of files, may become inactive.
    pub(super) may_deactivate: [bool; 2],
    pub(crate) force_deactivate: bool,
    /// An active list was left alone.
    pub(crate) skipped_deactivate: bool,
    /// There are enough inactive pages of files: no others are taken.
    pub(super) cache_trim_mode: bool,
    /// Trimming has failed, or is not to be tried.
    pub(crate) trim_failed: bool,
    pub(crate) no_trimming: bool,
    /// There are hardly any pages of files left.
    pub(super) file_is_tiny: bool,
    /// What reclaim has cost lately, as it was when the node was begun with.
    pub(super) cost: [u64; 2],
    /// A zone needs no reclaim but compaction.
    pub(crate) compaction_ready: bool,
    pub(super) met: Met,
}

impl ScanControl {
    /// A reclaim for a request of this order.
    pub(crate) fn new(cpu: CpuId, gfp: Gfp, order: Order, highest: ZoneType) -> ScanControl {
        ScanControl {
            cpu,
            kswapd: false,
            gfp,
            order,
            priority: DEF_PRIORITY,
            highest,
            nr_to_reclaim: u64::from(crate::types::CLUSTER_MAX),
            nr_scanned: 0,
            nr_reclaimed: 0,
            may_writepage: true,
            may_unmap: true,
            may_swap: true,
            may_deactivate: [false; 2],
            force_deactivate: false,
            skipped_deactivate: false,
            cache_trim_mode: false,
            file_is_tiny: false,
            trim_failed: false,
            no_trimming: false,
            cost: [0; 2],
            compaction_ready: false,
            met: Met::default(),
        }
    }
}
