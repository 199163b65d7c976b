//! Rules of a compaction run: suitability, the two scanners, migration and capture.

use super::rule::{mechanism, variants};
use crate::gfp::AllocFlags;
use crate::types::{CLUSTER_MAX, Order, ZoneType};

variants! {
    /// How the free scanner keeps the pages it isolates.
    pub enum Targets {
        /// As single pages, split at once; the last page of the last block is used first. Up to
        /// 6.8.
        Pages,
        /// As whole blocks, by order, until a page is needed; then the first block of the smallest
        /// order is split. Since 6.9.
        Blocks,
    }
}

variants! {
    /// How the pages of a batch are migrated.
    pub enum Migration {
        /// One at a time, each to a target found just before. Up to 6.2.
        OneByOne,
        /// Targets for the whole batch first, then all migrations; pages that stay busy are retried
        /// on their own. Since 6.3.
        Together,
    }
}

variants! {
    /// The search of the movable free lists for a pageblock that is already partly free.
    pub enum FastFind {
        /// None: pageblocks are scanned from low to high. Up to 5.0.
        Never,
        /// The limit is checked after the block, and only a search that the limit ended counts as
        /// failed. From 5.1 to 5.11.
        Original,
        /// The limit is checked first, and every search without a find counts as failed. Since
        /// 5.12, and in the stable series of 5.10.
        Corrected,
    }
}

variants! {
    /// An asynchronous run that needs the lock of the zone or of its LRU while another CPU holds
    /// it.
    pub enum HeldLock {
        /// Waits for the lock and goes on. Where others wait for the lock that it holds, it lets go
        /// of it, and ends with the batch. In 3.13.
        EndsWhereWanted,
        /// Ends at once. Up to 5.0.
        EndsRun,
        /// Waits for the lock, isolates the rest of its pageblock in one batch, and ends with the
        /// pageblock. Since 5.1.
        EndsPageblock,
    }
}

variants! {
    /// The place remembered for pages that were migrated and not drained since.
    pub enum Remembers {
        /// Where the scanner began in the pageblock of the first of them. Up to 4.7.
        FirstStart,
        /// The first of them. From 4.8 to 5.0.
        FirstPage,
        /// Where the last iteration began. From 5.1 to 6.5.
        Iteration,
        /// The pageblock of the last of them.
        LastPageblock,
    }
}

variants! {
    /// How the two scanners walk, and when they have met.
    pub enum Scanners {
        /// The migration scanner goes through the rest of one pageblock at a time, page by page,
        /// and counts what it looks at even where it then passes the pageblock over. The free
        /// scanner takes all that is free in a pageblock, and next begins at the highest one it
        /// took from. They have met when their page frames have.
        PageByPage,
        /// The migration scanner passes pageblocks over without looking into them; the free scanner
        /// stops within a pageblock, and goes on there. They have met when their pageblocks have.
        ByPageblock,
    }
}

variants! {
    /// Where the next run's scanners begin.
    pub enum Positions {
        /// One position for each scanner, whatever the run's mode. A run moves it only until it has
        /// isolated a page.
        OneUntilIsolated,
        /// A position of the migration scanner for each mode, moved by every pageblock that is done
        /// with. A run that returns free pages moves the free scanner's back to them.
        EachMode,
    }
}

mechanism! {
    /// Movable pages move to the top of a zone until a large block is free.
    pub struct CompactionRules for "compaction" {
        /// Only requests that may enter a file system compact. Up to 4.8.
        #[rule(section = "3.5")]
        pub needs_file_system: bool,
        /// For every order, the low mark decides whether a page is available and whether there is
        /// room to migrate. Up to 4.8.
        #[rule(section = "5.2")]
        pub suits_by_low_mark: bool,
        /// For every order, the fragmentation index keeps a zone that lacks memory from being
        /// compacted; later, for costly orders only. Up to 4.8.
        #[rule(section = "5.2")]
        pub index_decides_for_all: bool,
        /// A run goes on, and counts for nothing, until the page is available above the low mark.
        /// Up to 4.8.
        #[rule(section = "5.6")]
        pub ends_by_low_mark: bool,
        /// All marks are asked as for a request without any rights, from which no zone keeps pages
        /// back; later, with the rights and the zones of the request itself.
        #[rule(section = "5.13.4")]
        pub ignores_rights: bool,
        /// Whether there is room to migrate is asked first, then the index, and last whether the
        /// page is available with that room to spare; later, the page comes first, without room.
        #[rule(section = "5.13.4")]
        pub asks_room_first: bool,
        /// A run ends only above the low mark and the size of the block, by a block on the list of
        /// the request's own type; for a whole pageblock, by any. Later, a block that the request
        /// could claim will do.
        #[rule(section = "5.13.4")]
        pub ends_by_own_type: bool,
        /// Deferral is asked and set for the zone that the request prefers, once for all its zones,
        /// and set after each synchronous compaction without a page; later, for each zone by its
        /// own result.
        #[rule(section = "5.13.4")]
        pub defers_preferred_zone: bool,
        /// This CPU's lists are drained, in all zones, once a direct compaction has run; later, in
        /// the zone, whenever a run leaves the block it migrated from.
        #[rule(section = "5.13.4")]
        pub drains_after_run: bool,
        /// Between two zones, an asynchronous compaction ends if another task waits for the CPU.
        #[rule(section = "5.9")]
        pub gives_way_between_zones: bool,
        /// A run that ended because another task waits for the CPU ends the whole compaction. In
        /// 4.4 and 4.6.
        #[rule(section = "5.9")]
        pub cut_off_ends_all: bool,
        /// How the two scanners walk, and when they have met.
        #[rule(section = "5.13.4")]
        pub scanners: Scanners,
        /// Where the next run's scanners begin.
        #[rule(section = "5.13.4")]
        pub positions: Positions,
        /// A run after the longest deferral clears the skip hints before it reads where to begin;
        /// before, afterwards, and so began where the last run had ended.
        #[rule(section = "5.12")]
        pub clears_hints_first: bool,
        /// The free scanner searches down to the migration scanner's pageblock, and notices when it
        /// gets there: the run is complete. Before, it stopped short of that, and the run ended
        /// without having met.
        #[rule(section = "5.12")]
        pub sees_meeting: bool,
        /// A pageblock that an asynchronous run passes over for its type gets the skip hint.
        #[rule(section = "5.12")]
        pub hints_unsuitable: bool,
        /// When the scanners meet, the next run begins at the zone's ends; before, only once the
        /// hints were cleared.
        #[rule(section = "5.12")]
        pub resets_on_meeting: bool,
        /// A write to `vm.compact_memory` begins where the last run has ended and honours the skip
        /// hints; later, it scans all of each zone.
        #[rule(section = "5.13.4")]
        pub whole_zone_honours_hints: bool,
        /// A target to which its page could not be moved goes back to the others that the free
        /// scanner has isolated; before, it was freed, at each try anew. Since 3.16.
        #[rule(section = "5.11")]
        pub keeps_failed_targets: bool,
        /// A page for which there is no target left counts as one failed migration. Since 4.7.
        #[rule(section = "5.11")]
        pub counts_missing_target: bool,
        /// A page that is busy at each of its ten tries counts as one failed migration. Since 4.4.
        #[rule(section = "5.11")]
        pub counts_still_busy: bool,
        /// After a reset the free scanner begins at the zone's end, where there is no pageblock;
        /// later, at the last one. Up to 4.5.
        #[rule(section = "5.7")]
        pub free_begins_at_end: bool,
        /// Migration targets are taken only above the low mark, and the scan goes on after a
        /// refusal; later, above the min mark. Up to 4.8.
        #[rule(section = "2.10")]
        pub takes_by_low_mark: bool,
        /// When the scanners meet, the whole zone counts as covered, wherever they began.
        #[rule(section = "5.6")]
        pub meeting_is_complete: bool,
        /// In the result over several zones, a deferred zone ranks below a skipped one.
        #[rule(section = "5.3")]
        pub deferred_counts_least: bool,
        /// An asynchronous run ends when another task waits for its CPU. Up to 5.0.
        #[rule(section = "5.4.2")]
        pub async_gives_way: bool,
        /// Another CPU holds the lock of the zone or of its LRU, and an asynchronous run needs it.
        #[rule(section = "5.4.2")]
        pub async_at_held_lock: HeldLock,
        /// Asynchronous runs isolate from movable pageblocks whatever the request; later, direct
        /// ones isolate from pageblocks of the type of the request. Up to 4.11.
        #[rule(section = "5.4.1")]
        pub async_from_movable: bool,
        /// A direct asynchronous run leaves the aligned block of the wanted order as soon as a page
        /// in it cannot be isolated. Since 4.7.
        #[rule(section = "5.4.2")]
        pub async_leaves_at_failure: bool,
        /// Light synchronous runs, too, leave pages that must first be written; before, only
        /// asynchronous ones did. Since 4.7.
        #[rule(section = "5.4.2")]
        pub light_leaves_unwritten: bool,
        /// Only a pageblock in which nothing was isolated gets the skip hint, and the next run
        /// begins at its start; every pageblock is scanned from its first page to its last. Up to
        /// 5.0.
        #[rule(section = "5.4.2")]
        pub hints_where_nothing_found: bool,
        /// The hints of all pageblocks of a zone are cleared; later, only of those that look
        /// useful. Up to 5.0.
        #[rule(section = "5.7")]
        pub clears_all_hints: bool,
        /// Runs that ignore skip hints set them all the same. From 4.15 to 5.0.
        #[rule(section = "5.4.2")]
        pub hints_though_ignored: bool,
        /// The place remembered for pages that were migrated and not drained since.
        #[rule(section = "5.3")]
        pub remembers: Remembers,
        /// A synchronous run that ends because its request can take a block from another type goes
        /// on to the end of the pageblock, unless the request is movable, and looks again. From
        /// 4.12 to 5.0.
        #[rule(section = "5.6")]
        pub finishes_before_taking: bool,
        /// The start of synchronous runs follows asynchronous ones while those isolate nothing.
        /// Since 5.1.
        #[rule(section = "5.3")]
        pub sync_follows_async: bool,
        /// A batch from the pageblock of the previous one takes all that is left in it. Since 5.1.
        #[rule(section = "5.3")]
        pub takes_rest_of_pageblock: bool,
        /// A run ends only between two pageblocks. Since 5.1.
        #[rule(section = "5.6")]
        pub ends_between_pageblocks: bool,
        /// Migration targets are searched for on the free lists first. Since 5.1.
        #[rule(section = "5.5.1")]
        pub searches_free_lists: bool,
        /// A direct run claims the block it makes as soon as it merges. Since 5.1.
        #[rule(section = "5.9")]
        pub captures: bool,
        /// The gap above the mark that compaction needs is at most 32 pages; before, twice the
        /// block wanted.
        #[rule(section = "5.13.1")]
        pub gap_is_capped: bool,
        /// Callers check whether the page is available already; suitability no longer traces that
        /// answer. Since 6.5.
        #[rule(section = "5.2")]
        pub success_is_untraced: bool,
        /// Free pages alone decide whether reclaim could make room for compaction, even if the page
        /// is available already. Since 6.5.
        #[rule(section = "3.5")]
        pub retry_asks_room_only: bool,
        /// After compaction was skipped, a page that is available already is reason enough to try
        /// again.
        #[rule(section = "3.5")]
        pub retries_for_page_there: bool,
        /// The room needed is measured from the caller's mark (costly orders: plus the distance
        /// from min to low); before, from low for costly orders and from min for others.
        #[rule(section = "5.2")]
        pub room_above_callers_mark: bool,
        /// Direct asynchronous runs that make a whole pageblock isolate from movable pageblocks for
        /// any request; before, from those of the type of the request.
        #[rule(section = "5.13.1")]
        pub whole_blocks_from_movable: bool,
        /// The search of the movable free lists for a pageblock that is already partly free.
        #[rule(section = "5.4.3")]
        pub fast_find: FastFind,
        /// That search leaves the skip hint of the pageblock it finds clear; before, it set it.
        /// Since 6.5.
        #[rule(section = "5.4.3")]
        pub fast_find_leaves_hint: bool,
        /// The migration scanner counts every page of the free blocks and compound pages it jumps,
        /// and the free scanner of compound pages; before, one for each block. Since 6.4. Up to
        /// 4.2 there are no jumps, so that all count.
        #[rule(section = "5.4.2")]
        pub counts_jumped_pages: bool,
        /// Compound pages smaller than the wanted order are migrated if they are on the LRU, and
        /// scanned page by page if not; before, all were passed over. Since 6.9.
        #[rule(section = "5.4.2")]
        pub moves_small_folios: bool,
        /// Of a folio that is split because there is no target of its size, the last page is
        /// migrated first; since 6.15, the second one. The first page comes last.
        #[rule(section = "5.11")]
        pub splits_from_the_end: bool,
        /// A pageblock gets its skip hint if its scan began at its first page; before, if the first
        /// page isolated was its first. Since 6.5.
        #[rule(section = "5.4.2")]
        pub hint_by_scan_start: bool,
        /// After a batch with failures the rest of the pageblock is isolated at once; before,
        /// direct asynchronous runs left the block of the wanted order. Since 6.3.
        #[rule(section = "5.3")]
        pub finishes_pageblock: bool,
        /// A run that has captured a block has succeeded, however it ended.
        #[rule(section = "5.9")]
        pub captured_is_success: bool,
        /// Capture is checked right after migration; before, after the per-CPU lists were drained.
        /// Since 6.3.
        #[rule(section = "5.3")]
        pub capture_before_drain: bool,
        /// A movable request may capture a block smaller than a pageblock from a movable one.
        #[rule(section = "5.9")]
        pub captures_movable: bool,
        /// A capture across types is traced as `mm_page_alloc_extfrag`.
        #[rule(section = "5.9")]
        pub traces_capture: bool,
        /// How the pages of a batch are migrated.
        #[rule(section = "5.11")]
        pub migration: Migration,
        /// Compaction also moves pages locked into memory, unless
        /// `vm.compact_unevictable_allowed` is 0; here none is locked, so the rule decides only
        /// whether there is such a sysctl. Since 4.1.
        #[rule(section = "5.4.2")]
        pub moves_locked: bool,
        /// After the migration of a mapped page the LRU's batches are drained, so that a page
        /// locked into memory is counted as unevictable; elsewhere, only after such a page.
        #[rule(section = "5.11")]
        pub drains_for_mapped: bool,
        /// A page of the LRU that was migrated from goes back to the batch of pages to add, beside
        /// the one it was moved to, and is free when that batch moves; later, at once. Up to 4.6.
        #[rule(section = "5.11")]
        pub frees_by_batch: bool,
        /// How the free scanner keeps the pages it isolates.
        #[rule(section = "5.5.2")]
        pub targets: Targets,
        /// A target found is one less to look for. Since 6.9.
        #[rule(section = "5.13.1")]
        pub targets_count_down: bool,
        /// A pageblock whose first free block is as large as the one wanted is no target. Since
        /// 6.9.
        #[rule(section = "5.5.2")]
        pub spares_large_blocks: bool,
        /// The search of the free lists for targets remembers the best block of each order; before,
        /// one across orders. Since 5.11, and in the stable series of 5.10.
        #[rule(section = "5.13")]
        pub fast_isolate_best_by_order: bool,
        /// The search of the free lists for targets tries more than one block of an order, up to
        /// half of the limit for sources; before, one, unless the scan is just beginning.
        #[rule(section = "5.5.1")]
        pub fast_isolate_looks_further: bool,
        /// When the search of the free lists for targets finds nothing, it takes the highest block
        /// it saw only above the middle; before, anywhere.
        #[rule(section = "5.5.1")]
        pub fast_isolate_above_middle: bool,
        /// The free scanner counts every page of a block it takes; before, one.
        #[rule(section = "5.13")]
        pub counts_taken_pages: bool,
        /// The search of the free lists for targets ends as soon as it has enough; before, it chose
        /// the next order first. Since 6.5.
        #[rule(section = "5.5.1")]
        pub fast_isolate_stops_at_enough: bool,
        /// When the search of the free lists for targets finds nothing, a direct run scans the
        /// middle pageblock only if that is a suitable target.
        #[rule(section = "5.5.1")]
        pub fast_isolate_tests_target: bool,
        /// The pageblock around a target from the free lists is scanned to its last page; before,
        /// to the last but one. Since 5.11, and in the stable series of 5.10.
        #[rule(section = "5.13")]
        pub fast_isolate_to_last_page: bool,
        /// The pageblock around a target from the free lists gets its skip hint if it was scanned
        /// to its end; before, if too little was found. Since 6.5.
        #[rule(section = "5.13.1")]
        pub fast_isolate_hint_by_end: bool,
        /// The next run's free scanner starts at the pageblock below the last one scanned; before,
        /// at that one. Since 6.6.
        #[rule(section = "5.5.2")]
        pub cached_free_below: bool,
    }
}

impl CompactionRules {
    /// Whether a run that met a held lock ends at once.
    pub(crate) fn ends_at_held_lock(&self) -> bool {
        self.async_at_held_lock == HeldLock::EndsRun
    }

    /// The rights with which a request asks for the marks: its own or, by the oldest rules, none.
    pub(crate) fn rights(&self, flags: AllocFlags, highest: ZoneType) -> (AllocFlags, ZoneType) {
        match self.ignores_rights {
            false => (flags, highest),
            true => (AllocFlags::mark(flags.wmark), ZoneType::WITHOUT_RESERVE),
        }
    }

    /// These rules, but for those that nothing but a compaction run reads once it has begun: they
    /// are those of `other`.
    pub(super) fn with_runs_of(&self, other: &CompactionRules) -> CompactionRules {
        let &CompactionRules { clears_hints_first, sees_meeting, hints_unsuitable, resets_on_meeting, .. } = other;
        CompactionRules { clears_hints_first, sees_meeting, hints_unsuitable, resets_on_meeting, ..*self }
    }

    /// Free pages that compaction for `order` needs beyond the mark (`compact_gap`, §5.2).
    pub fn gap(&self, order: Order) -> u64 {
        let twice = 2 << order.get();
        if self.gap_is_capped { twice.min(u64::from(CLUSTER_MAX)) } else { twice }
    }
}
