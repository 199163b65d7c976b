//! Rules of a compaction run: suitability, the two scanners, migration and capture.

use super::rule::{mechanism, variants};
use crate::types::{CLUSTER_MAX, Order};

variants! {
    /// How the free scanner keeps what it isolates.
    pub enum Targets {
        /// Split into single pages at once; the last page of the last block is used first.
        #[since("up to 6.8")]
        Pages,
        /// As whole blocks, by order, until a page of them is wanted; the first block of the smallest order is split.
        #[since("6.9")]
        Blocks,
    }
}

variants! {
    /// How the pages of a batch are moved.
    pub enum Migration {
        /// One at a time, each to a target found just before.
        #[since("up to 6.2")]
        OneByOne,
        /// Targets for the whole batch first, then all moves; what stays busy is tried on its own.
        #[since("6.3")]
        Together,
    }
}

variants! {
    /// How a pageblock that is already partly free is looked for on the movable lists.
    pub enum FastFind {
        /// Not at all: pageblocks are gone through from low to high.
        #[since("up to 5.0")]
        Never,
        /// The limit is looked at after the block, and only a search it ended counts as failed.
        #[since("5.1–5.11")]
        Original,
        /// The limit is looked at first, and every search without a find counts as failed.
        #[since("5.12, 5.10.y")]
        Corrected,
    }
}

mechanism! {
    /// Movable pages move to the top of a zone until a large block is free.
    pub struct CompactionRules for "compaction" {
        /// Only requests that may enter a file system compact.
        #[rule(since = "up to 4.8", section = "3.5")]
        pub needs_file_system: bool,
        /// Whether a page is there, and whether there is room to move pages about in, is asked of the low mark, for every
        /// order.
        #[rule(since = "up to 4.8", section = "5.2")]
        pub suits_by_low_mark: bool,
        /// Of no order is a zone compacted that lacks memory rather than is in pieces; later this is asked for costly orders
        /// only.
        #[rule(since = "up to 4.8", section = "5.2")]
        pub index_decides_for_all: bool,
        /// A run goes on, and what it has done counts as nothing, until the page is there by the low mark.
        #[rule(since = "up to 4.8", section = "5.6")]
        pub ends_by_low_mark: bool,
        /// Free pages are taken to move others to only from above the low mark, and where that refuses one the scan goes on;
        /// later from above the min mark.
        #[rule(since = "up to 4.8", section = "2.10")]
        pub takes_by_low_mark: bool,
        /// A zone has been covered as a whole where its scanners meet, wherever they began.
        #[rule(since = "up to 4.6", section = "5.6")]
        pub meeting_is_complete: bool,
        /// In the result over several zones one that was put off counts less than one that was skipped.
        #[rule(since = "up to 4.6", section = "5.3")]
        pub deferred_counts_least: bool,
        /// An asynchronous run ends where somebody waits for its CPU.
        #[rule(since = "up to 5.0", section = "5.4.2")]
        pub async_gives_way: bool,
        /// Asynchronous runs take from movable pageblocks, whoever they are for; later direct ones from those of the
        /// request's own type.
        #[rule(since = "up to 4.11", section = "5.4.1")]
        pub async_from_movable: bool,
        /// Direct asynchronous runs leave the block of the wanted order where a page of it stays.
        #[rule(since = "4.7", section = "5.4.2")]
        pub async_leaves_at_failure: bool,
        /// Light synchronous runs, too, leave pages that would have to be written first; before, asynchronous ones alone.
        #[rule(since = "4.7", section = "5.4.2")]
        pub light_leaves_unwritten: bool,
        /// Only a pageblock in which nothing was isolated gets the skip hint, and the next run begins at its start; every
        /// pageblock is looked at from its first page to its last.
        #[rule(since = "up to 5.0", section = "5.4.2")]
        pub hints_where_nothing_found: bool,
        /// Hints are cleared of all pageblocks of a zone; later, of those that look useful.
        #[rule(since = "up to 5.0", section = "5.7")]
        pub clears_all_hints: bool,
        /// Where a batch came from is remembered as where the first since the last drain began.
        #[rule(since = "up to 5.0", section = "5.3")]
        pub remembers_first_place: bool,
        /// Where synchronous runs begin follows asynchronous ones as long as those find nothing.
        #[rule(since = "5.1", section = "5.3")]
        pub sync_follows_async: bool,
        /// A batch from the pageblock of the last one takes all that is left in it.
        #[rule(since = "5.1", section = "5.3")]
        pub takes_rest_of_pageblock: bool,
        /// A run ends only between two pageblocks.
        #[rule(since = "5.1", section = "5.6")]
        pub ends_between_pageblocks: bool,
        /// Free pages to move others to are first looked for on the free lists.
        #[rule(since = "5.1", section = "5.5.1")]
        pub searches_free_lists: bool,
        /// A direct run claims the block it makes as soon as it merges.
        #[rule(since = "5.1", section = "5.9")]
        pub captures: bool,
        /// The gap above the mark that compaction needs is at most 32 pages; before, twice the block wanted.
        #[rule(since = "by 7.2", section = "5.13.1")]
        pub gap_is_capped: bool,
        /// Whether the page is there already is for callers to see: that answer is no longer traced as suitability.
        #[rule(since = "6.5", section = "5.2")]
        pub success_is_untraced: bool,
        /// Whether reclaim could make room for compaction is asked of the free pages alone, even where the page is
        /// there already.
        #[rule(since = "6.5", section = "3.5")]
        pub retry_asks_room_only: bool,
        /// Where compaction was skipped, that the page is there already is reason enough to try again.
        #[rule(since = "up to 5.10", section = "3.5")]
        pub retries_for_page_there: bool,
        /// Room is needed above the mark the caller names (costly orders: and the distance from min to low); before,
        /// above low for costly orders and else above min.
        #[rule(since = "6.15", section = "5.2")]
        pub room_above_callers_mark: bool,
        /// Direct asynchronous runs that make a whole pageblock take from movable pageblocks for any request; before,
        /// from those of the request's own type.
        #[rule(since = "by 7.2", section = "5.13.1")]
        pub whole_blocks_from_movable: bool,
        /// How a pageblock that is already partly free is looked for on the movable lists.
        #[rule(section = "5.4.3")]
        pub fast_find: FastFind,
        /// The search for a pageblock that is partly free leaves the skip hint of the one it finds clear; before, it set
        /// it.
        #[rule(since = "6.5", section = "5.4.3")]
        pub fast_find_leaves_hint: bool,
        /// The migration scanner counts every page of the free blocks and compound pages it jumps, the free scanner of
        /// compound pages; before, one for each.
        #[rule(since = "6.4", section = "5.4.2")]
        pub counts_jumped_pages: bool,
        /// Compound pages smaller than the order wanted are moved where they are on the LRU, and looked at page by page
        /// where not; before, all are passed over.
        #[rule(since = "6.9", section = "5.4.2")]
        pub moves_small_folios: bool,
        /// The skip hint of a pageblock is set where its scan began at its first page; before, where the first page
        /// isolated was its first.
        #[rule(since = "6.5", section = "5.4.2")]
        pub hint_by_scan_start: bool,
        /// After a batch with failures the rest of the pageblock is isolated at once; before, direct asynchronous runs
        /// left the block of the wanted order.
        #[rule(since = "6.3", section = "5.3")]
        pub finishes_pageblock: bool,
        /// Where a batch came from is remembered as the pageblock of its last page; before, as where the iteration
        /// began.
        #[rule(since = "6.6", section = "5.3")]
        pub remembers_last_pageblock: bool,
        /// A run that has captured a block has succeeded, however it ended.
        #[rule(since = "by 6.1", section = "5.9")]
        pub captured_is_success: bool,
        /// Whether a block was captured is looked at right after migration; before, after per-CPU lists were drained.
        #[rule(since = "6.3", section = "5.3")]
        pub capture_before_drain: bool,
        /// A movable request may capture a block smaller than a pageblock from a movable one.
        #[rule(since = "by 6.12", section = "5.9")]
        pub captures_movable: bool,
        /// A capture across types is traced as `mm_page_alloc_extfrag`.
        #[rule(since = "6.15", section = "5.9")]
        pub traces_capture: bool,
        /// How the pages of a batch are moved.
        #[rule(section = "5.11")]
        pub migration: Migration,
        /// After a mapped page has been moved the LRU's batches are moved, too, so that a page that is locked into memory is
        /// counted as such; elsewhere only after such a page.
        #[rule(since = "by 6.1, gone by 6.12", section = "5.11")]
        pub drains_for_mapped: bool,
        /// How the free scanner keeps what it isolates.
        #[rule(section = "5.5.2")]
        pub targets: Targets,
        /// A target found is one less to look for.
        #[rule(since = "6.9", section = "5.13.1")]
        pub targets_count_down: bool,
        /// A pageblock whose first free block is as large as the one wanted is no target.
        #[rule(since = "6.9", section = "5.5.2")]
        pub spares_large_blocks: bool,
        /// The quick search for free pages remembers the best block of each order; before, one across orders.
        #[rule(since = "5.11, 5.10.y", section = "5.13")]
        pub fast_isolate_best_by_order: bool,
        /// The quick search looks at more than one block of an order, up to half as many as are looked at for a source;
        /// before, at one, unless the scan begins.
        #[rule(since = "by 6.1", section = "5.5.1")]
        pub fast_isolate_looks_further: bool,
        /// Where the quick search finds nothing, the highest block it saw is taken only from above the middle; before,
        /// from anywhere.
        #[rule(since = "by 6.1", section = "5.5.1")]
        pub fast_isolate_above_middle: bool,
        /// The free scanner counts every page of a block it takes; before, one.
        #[rule(since = "by 6.1", section = "5.13")]
        pub counts_taken_pages: bool,
        /// The quick search ends as soon as it has enough; before, it chose the next order first.
        #[rule(since = "6.5", section = "5.5.1")]
        pub fast_isolate_stops_at_enough: bool,
        /// Where the quick search finds nothing, a direct run scans the middle block only if that is a suitable target.
        #[rule(since = "by 6.12", section = "5.5.1")]
        pub fast_isolate_tests_target: bool,
        /// The pageblock around a block the quick search found is scanned to its last page; before, to the last but one.
        #[rule(since = "5.11, 5.10.y", section = "5.13")]
        pub fast_isolate_to_last_page: bool,
        /// The pageblock around a block the quick search found gets its skip hint if it was scanned to its end; before,
        /// if too little was found.
        #[rule(since = "6.5", section = "5.13.1")]
        pub fast_isolate_hint_by_end: bool,
        /// The next run's free scanner starts at the pageblock below the last one scanned; before, at that one.
        #[rule(since = "6.6", section = "5.5.2")]
        pub cached_free_below: bool,
    }
}

impl CompactionRules {
    /// Free pages beyond the mark that make compaction for `order` worth its while (`compact_gap`, §5.2).
    pub fn gap(&self, order: Order) -> u64 {
        let twice = 2 << order.get();
        if self.gap_is_capped { twice.min(u64::from(CLUSTER_MAX)) } else { twice }
    }
}
