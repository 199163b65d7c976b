//! The parameters of a compaction run ([`CompactControl`]) and its state between two steps
//! ([`CompactRun`]).
//!
//! Each scanner has a state of its own; the code that moves it is in the file named after it.

use crate::event::MigrateMode;
use crate::gfp::AllocFlags;
use crate::state::{List, NIL};
use crate::types::{CpuId, MigrateType, NR_ORDERS, Order, PAGEBLOCK_PAGES, Pfn, ZoneId, ZoneType};
use alloc::vec::Vec;

/// Parameters of a compaction run: the kernel's `compact_control` (kernel-behaviour §5.1).
#[derive(Clone, Copy, Debug)]
pub struct CompactControl {
    /// Order of the free block to make; `None` compacts the whole zone.
    pub order: Option<Order>,
    /// Migrate type of the request. Daemons run with GFP_KERNEL, so theirs is unmovable.
    pub migratetype: MigrateType,
    /// Decides which pages the run leaves alone, and whether it waits for writeback.
    pub mode: MigrateMode,
    /// Runs in an allocating task, not in a daemon.
    pub direct: bool,
    /// Starts both scanners at the zone's ends instead of the cached positions.
    pub whole_zone: bool,
    /// Scans pageblocks whose skip hint is set, too.
    pub ignore_skip_hint: bool,
    /// Takes migration targets from pageblocks of any migrate type.
    pub ignore_block_suitable: bool,
    /// Stops at the low fragmentation score instead of at a free block.
    pub proactive: bool,
    /// The request's `alloc_flags`, for the watermark checks.
    pub alloc_flags: AllocFlags,
    /// The request's highest zone, for the watermark checks.
    pub highest: ZoneType,
    /// The request has `__GFP_FS`. Without it, file pages are not isolated (from 4.10 on).
    pub may_enter_fs: bool,
    /// The order of the request itself, where a larger block is made for it. A block of this order
    /// is captured as soon as it merges.
    pub request_order: Option<Order>,
    /// kswapd compacts; it neither restarts after a deferral nor has hints cleared.
    pub kswapd: bool,
}

/// A run in progress. It owns isolated pages between its steps, so it must be stepped until it is
/// done.
#[derive(Clone)]
pub struct CompactRun {
    pub(super) cc: CompactControl,
    pub(super) zone: ZoneId,
    pub(super) cpu: CpuId,
    pub(super) migrate: MigrateScanner,
    pub(super) free: FreeScanner,
    /// The scanners began at the zone's ends, so when they meet the whole zone has been covered.
    pub(super) whole_zone: bool,
    /// Consecutive free-list searches, of either scanner, that found nothing.
    pub(super) fast_search_fail: u32,
    /// The synchronous cached position follows the asynchronous one as long as nothing is isolated.
    pub(super) update_cached: bool,
    /// The zone was suitable and the scanners have been placed. A run over an unsuitable zone never
    /// starts.
    pub(super) started: bool,
    /// During this step another CPU holds the lock of the zone, or of its LRU; in 3.13, wants it.
    pub(super) contended: [bool; 2],
    /// The run has found such a lock held when it needed it, so it ends, at once or with its
    /// pageblock.
    pub(super) met_held_lock: bool,
    /// It has ended because another task waited for the CPU.
    pub(super) gave_way: bool,
    /// Goes on to the end of its pageblock, though a block of another type could be taken.
    pub(super) finishing_block: bool,
    /// The block captured for the request.
    pub(super) captured: Option<Pfn>,
}

/// The migration scanner: its position and the batch of pages it has isolated.
#[derive(Clone)]
pub(super) struct MigrateScanner {
    pub(super) pfn: Pfn,
    /// The isolated pages and folios, by head page; `count` entries are in use.
    pub(super) pages: [Pfn; PAGEBLOCK_PAGES as usize],
    pub(super) count: usize,
    /// Pages in the isolated entries, until the batch is migrated.
    pub(super) nr_pages: u32,
    /// Pages of folios that were split because no target was large enough.
    pub(super) split: Vec<Pfn>,
    /// Frames scanned by this run.
    pub(super) scanned: u64,
    /// The walk over pageblocks ran out of budget; the next step resumes it.
    pub(super) walking: bool,
    /// Isolate the whole pageblock instead of one cluster: this batch comes from the pageblock of
    /// the last one, or some of that one failed.
    pub(super) finish_pageblock: bool,
    /// Isolate the rest of the pageblock before checking whether the run is finished.
    pub(super) again_at_once: bool,
    /// A page has been isolated, so the next run's position stays where it is.
    pub(super) settled: bool,
    /// Start of the current batch.
    pub(super) iteration_start: Pfn,
    /// Where pages were last migrated from; `None` once the per-CPU lists have been drained since.
    pub(super) last_migrated_pfn: Option<Pfn>,
    /// Lowest free page a free-list search has seen.
    pub(super) fast_start_pfn: Option<Pfn>,
    /// The scanner has already gone back to that page.
    pub(super) fast_start_used: bool,
}

/// The free scanner: its position and the free pages it has isolated.
#[derive(Clone)]
pub(super) struct FreeScanner {
    pub(super) pfn: Pfn,
    pub(super) stock: Stock,
    /// Pages the stock must hold. Where targets are found for a whole batch first, each target
    /// taken lowers it.
    pub(super) wanted: u32,
    /// Targets of the batch's pages, where all are found before any page is moved.
    pub(super) targets: [Pfn; PAGEBLOCK_PAGES as usize],
    /// Frames scanned by this run.
    pub(super) scanned: u64,
    /// Order at which the next free-list search starts.
    pub(super) search_order: u8,
    /// A page has been isolated, so the next run's position stays where it is.
    pub(super) settled: bool,
}

/// Free pages isolated and not yet used as targets.
#[derive(Clone)]
pub(super) struct Stock {
    /// Top of the stack of single pages.
    pub(super) stack: u32,
    /// Whole blocks, by order.
    pub(super) blocks: [List; NR_ORDERS],
    pub(super) pages: u32,
}

/// State carried from one zone's run to the next when one call compacts several zones: the kernel
/// uses one `compact_control` for all of them. Whole-zone runs (order -1) carry nothing that the
/// next run would use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Carried {
    whole_zone: bool,
    fast_search_fail: u32,
    search_order: u8,
}

impl CompactRun {
    /// A run over `zone` on `cpu`. Nothing happens before its first step.
    pub fn new(cc: CompactControl, zone: ZoneId, cpu: CpuId) -> CompactRun {
        CompactRun {
            cc,
            zone,
            cpu,
            migrate: MigrateScanner {
                pfn: Pfn::default(),
                pages: [Pfn::default(); PAGEBLOCK_PAGES as usize],
                count: 0,
                nr_pages: 0,
                split: Vec::new(),
                scanned: 0,
                walking: false,
                finish_pageblock: false,
                again_at_once: false,
                settled: false,
                iteration_start: Pfn::default(),
                last_migrated_pfn: None,
                fast_start_pfn: None,
                fast_start_used: false,
            },
            free: FreeScanner {
                pfn: Pfn::default(),
                stock: Stock { stack: NIL, blocks: [const { List::new() }; NR_ORDERS], pages: 0 },
                wanted: 0,
                targets: [Pfn::default(); PAGEBLOCK_PAGES as usize],
                scanned: 0,
                search_order: cc.order.map_or(0, Order::get),
                settled: false,
            },
            whole_zone: cc.whole_zone,
            fast_search_fail: 0,
            update_cached: false,
            started: false,
            contended: [false; 2],
            met_held_lock: false,
            gave_way: false,
            finishing_block: false,
            captured: None,
        }
    }

    /// The state to carry to the run over the next zone.
    pub(crate) fn carried(&self) -> Carried {
        let CompactRun { whole_zone, fast_search_fail, free: FreeScanner { search_order, .. }, .. } = *self;
        Carried { whole_zone, fast_search_fail, search_order }
    }

    /// This run, not yet started, with the state carried from the previous zone's run.
    pub(crate) fn after(mut self, Carried { whole_zone, fast_search_fail, search_order }: Carried) -> CompactRun {
        assert!(!self.started, "what is carried over is there from the beginning");
        (self.whole_zone, self.fast_search_fail, self.free.search_order) = (whole_zone, fast_search_fail, search_order);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::proactive::whole_zone_control;

    #[test]
    fn a_run_takes_over_all_that_another_has_left() {
        let rules = crate::testing::linux("6.1").compaction;
        let run = CompactRun::new(whole_zone_control(&rules, true), ZoneId::new(0), CpuId::new(0));
        let left = Carried { whole_zone: false, fast_search_fail: 3, search_order: 5 };
        assert_eq!(run.after(left).carried(), left);
    }
}
