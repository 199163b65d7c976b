//! Parameters and progress of one reclaim: the kernel's `scan_control`.

use crate::gfp::Gfp;
use crate::rules::ReclaimRules;
use crate::state::Sizes;
use crate::types::{CpuId, GroupId, Order, ZoneType};
use alloc::boxed::Box;

/// The priority at which every reclaim starts: 1/4096 of each list is scanned.
pub(crate) const DEF_PRIORITY: i8 = 12;
/// Balance runs without progress after which kswapd gives its node up, and retries without progress
/// after which a request gives up.
pub(crate) const MAX_RECLAIM_RETRIES: u32 = 16;

/// Pages met since reclaim began with the node, by state.
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

#[derive(Clone, Debug)]
pub(crate) struct ScanControl {
    pub(crate) cpu: CpuId,
    pub(crate) kswapd: bool,
    pub(crate) gfp: Gfp,
    /// The order to reclaim for.
    pub(crate) order: Order,
    /// Each list is scanned by its size shifted right by this.
    pub(crate) priority: i8,
    /// The highest zone whose pages help.
    pub(crate) highest: ZoneType,
    pub(crate) nr_to_reclaim: u64,
    pub(crate) nr_scanned: u64,
    pub(crate) nr_reclaimed: u64,
    pub(crate) may_writepage: bool,
    pub(crate) may_unmap: bool,
    pub(crate) may_swap: bool,
    pub(crate) may_shrink_slab: bool,
    /// Active anonymous and active file pages may be deactivated.
    pub(super) may_deactivate: [bool; 2],
    pub(crate) force_deactivate: bool,
    /// An active list was not scanned.
    pub(crate) skipped_deactivate: bool,
    /// There are enough inactive file pages, so nothing else is scanned.
    pub(super) cache_trim_mode: bool,
    /// A pass in cache-trim mode reclaimed nothing.
    pub(crate) trim_failed: bool,
    pub(crate) no_trimming: bool,
    /// Scans some pages of each list, however short the lists are.
    pub(super) force_scan: bool,
    /// Hardly any file pages are left.
    pub(super) file_is_tiny: bool,
    /// The reclaim cost of anonymous and of file pages when reclaim began with the node.
    pub(super) cost: [u64; 2],
    /// Some zone has enough room for compaction and needs no reclaim.
    pub(crate) compaction_ready: bool,
    pub(super) met: Met,
    /// The memory control group whose limit is reclaimed for; none where the machine's memory is
    /// short.
    pub(crate) target: Option<GroupId>,
    /// All groups are walked over, and the position that walks share is left alone.
    pub(crate) full_walk: bool,
    /// Groups that `memory.low` covers are reclaimed from, too.
    pub(crate) low_reclaim: bool,
    /// Something was spared because of `memory.low`.
    pub(crate) low_skipped: bool,
    /// The protection of the group whose lists are scanned.
    pub(super) protection: Option<Protection>,
    /// It is what a command asks for.
    pub(super) proactive: bool,
    /// Pages promoted and not yet counted so, where the reclaimer collects them.
    pub(super) promoted: Option<Box<Promoted>>,
}

/// The protection of a part of a group: its lists are scanned by what is not protected of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Protection {
    /// Pages that are protected.
    pub(super) pages: u64,
    /// Pages that are charged.
    pub(super) usage: u64,
}

/// Pages that belong to the youngest generation since they were found used through page tables.
#[derive(Clone, Debug, Default)]
pub(in crate::reclaim) struct Promoted {
    pub(super) pages: u64,
    /// By how much each generation grew.
    pub(super) sizes: Sizes,
}

impl ScanControl {
    /// Whether reclaim counts on compaction to make the block of pages it frees.
    pub(super) fn counts_on_compaction(&self, rules: &ReclaimRules) -> bool {
        self.order > Order::ZERO && (self.gfp.has(Gfp::IO) || rules.room_without_io)
    }

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
            may_shrink_slab: true,
            may_deactivate: [false; 2],
            force_deactivate: false,
            skipped_deactivate: false,
            cache_trim_mode: false,
            file_is_tiny: false,
            force_scan: false,
            trim_failed: false,
            no_trimming: false,
            cost: [0; 2],
            compaction_ready: false,
            met: Met::default(),
            target: None,
            full_walk: false,
            low_reclaim: false,
            low_skipped: false,
            protection: None,
            proactive: false,
            promoted: None,
        }
    }
}
