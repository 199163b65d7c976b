//! What a compaction run is asked to do, and where it stands between its steps.
//!
//! Each scanner has a state of its own; what it does is in the file of its name.

use crate::event::MigrateMode;
use crate::gfp::AllocFlags;
use crate::state::{List, NIL};
use crate::types::{CpuId, MigrateType, NR_ORDERS, Order, PAGEBLOCK_PAGES, Pfn, ZoneId, ZoneType};
use alloc::vec::Vec;

/// What a run is asked to do (kernel-behaviour §5.1).
#[derive(Clone, Copy, Debug)]
pub struct CompactControl {
    /// Make a free block of this order; `None` compacts the whole zone.
    pub order: Option<Order>,
    /// For a request of this type.
    pub migratetype: MigrateType,
    /// How hard to try.
    pub mode: MigrateMode,
    /// On behalf of an allocating task.
    pub direct: bool,
    /// Start at the zone's ends.
    pub whole_zone: bool,
    /// Scan pageblocks with the skip hint set, too.
    pub ignore_skip_hint: bool,
    /// Move to pageblocks of any type.
    pub ignore_block_suitable: bool,
    /// Stop at the proactive score.
    pub proactive: bool,
    /// The request's allocation flags.
    pub alloc_flags: AllocFlags,
    /// The request's highest zone.
    pub highest: ZoneType,
    /// The request may enter a file system (`__GFP_FS`): without that right pages of files stay (from 4.10 on).
    pub may_enter_fs: bool,
    /// The order of the request itself, where a larger block is made for it; a block of this order is claimed as soon
    /// as it merges.
    pub request_order: Option<Order>,
}

/// A run in progress. It holds isolated pages between its steps: step it until it is done, or they are lost.
#[derive(Clone)]
pub struct CompactRun {
    pub(super) cc: CompactControl,
    pub(super) zone: ZoneId,
    pub(super) cpu: CpuId,
    pub(super) migrate: MigrateScanner,
    pub(super) free: FreeScanner,
    /// The run has covered the zone from one end to the other when its scanners meet.
    pub(super) whole_zone: bool,
    /// Searches through the free lists, of either scanner, that failed one after the other.
    pub(super) fast_search_fail: u32,
    /// The position cached for synchronous runs follows the asynchronous one as long as nothing is isolated.
    pub(super) update_cached: bool,
    /// It has found the zone suitable, and its scanners stand somewhere in it. A run that finds otherwise is done.
    pub(super) started: bool,
    /// The block it has claimed for its request.
    pub(super) captured: Option<Pfn>,
}

/// The migration scanner: where it is, and the batch of pages it has isolated.
#[derive(Clone)]
pub(super) struct MigrateScanner {
    pub(super) pfn: Pfn,
    /// What is isolated, pages and folios by their first pages: the first `count` of these.
    pub(super) pages: [Pfn; PAGEBLOCK_PAGES as usize],
    pub(super) count: usize,
    /// How many pages these have, until they are moved.
    pub(super) nr_pages: u32,
    /// Pages of folios that no target was large enough for.
    pub(super) split: Vec<Pfn>,
    /// Frames looked at.
    pub(super) scanned: u64,
    /// A walk over pageblocks has run out of budget: the next step goes on with it.
    pub(super) walking: bool,
    /// This batch comes from the pageblock of the last one, or of one that failed: take all of it.
    pub(super) finish_pageblock: bool,
    /// Isolate the rest of the pageblock before asking whether the run is finished.
    pub(super) again_at_once: bool,
    /// Where the batch was begun.
    pub(super) iteration_start: Pfn,
    /// Where pages were last migrated from, until the per-CPU lists have been drained for them.
    pub(super) last_migrated_pfn: Option<Pfn>,
    /// Lowest block a search through the free lists has seen.
    pub(super) fast_start_pfn: Option<Pfn>,
    /// The scanner has gone back to that block.
    pub(super) fast_start_used: bool,
}

/// The free scanner: where it is, and the free pages it has taken.
#[derive(Clone)]
pub(super) struct FreeScanner {
    pub(super) pfn: Pfn,
    pub(super) stock: Stock,
    /// Pages the stock is to hold. Where targets are found for a whole batch first, each target taken lowers it.
    pub(super) wanted: u32,
    /// Targets of the batch's pages, where all are found before any page is moved.
    pub(super) targets: [Pfn; PAGEBLOCK_PAGES as usize],
    /// Frames looked at.
    pub(super) scanned: u64,
    /// The order at which the next search through the free lists begins.
    pub(super) search_order: u8,
}

/// Free pages taken off the free lists and not yet moved to.
#[derive(Clone)]
pub(super) struct Stock {
    /// The top of the stack of single pages.
    pub(super) stack: u32,
    /// Whole blocks, by order.
    pub(super) blocks: [List; NR_ORDERS],
    /// Pages in stock.
    pub(super) pages: u32,
}

/// What is left of a run for the next, where one call compacts zone after zone: the kernel does so with one control. Runs over whole zones for no
/// order leave nothing that the next would heed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Carried {
    whole_zone: bool,
    fast_search_fail: u32,
    search_order: u8,
}

impl CompactRun {
    /// A run over `zone` by `cpu`; nothing happens before its first step.
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
            },
            whole_zone: cc.whole_zone,
            fast_search_fail: 0,
            update_cached: false,
            started: false,
            captured: None,
        }
    }

    /// What it leaves for a run over the next zone.
    pub(crate) fn carried(&self) -> Carried {
        let CompactRun { whole_zone, fast_search_fail, free: FreeScanner { search_order, .. }, .. } = *self;
        Carried { whole_zone, fast_search_fail, search_order }
    }

    /// The same run, not yet begun, after another of the same call.
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
        let run = CompactRun::new(whole_zone_control(true), ZoneId::new(0), CpuId::new(0));
        let left = Carried { whole_zone: false, fast_search_fail: 3, search_order: 5 };
        assert_eq!(run.after(left).carried(), left);
    }
}
