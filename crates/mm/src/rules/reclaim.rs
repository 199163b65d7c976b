//! Rules of reclaim: its share of the lists and the caches, its waits, and its end.

use super::rule::{mechanism, variants};

variants! {
    /// The measure by which scanning is split between the anonymous and the file lists.
    pub enum BalancedBy {
        /// The share of recently scanned pages that were in use. Up to 5.7.
        Rotations,
        /// The recent cost of taking pages from either. Since 5.8.
        Costs,
    }
}

variants! {
    /// The event a task waits for when reclaim outruns its success.
    pub enum StallsFor {
        /// A device whose queue is full, after each cluster, if pages of the zone wait for one: 100
        /// ms at most. Up to 4.16.
        Congestion,
        /// Progress of reclaim, after each node: a tick, or 100 ms. That is the rule from 5.16 on;
        /// kernels from 4.17 to 5.15, which wait for congestion once a node, are taken to do the
        /// same.
        Progress,
    }
}

variants! {
    /// The share of a cache that is scanned.
    pub enum SlabShare {
        /// The share of the lists that was scanned, with mapped pages counted twice; the rest is
        /// deferred as far as it was due. Up to 4.15.
        Scanned,
        /// The share that the priority sets. Since 4.16.
        Priority,
    }
}

mechanism! {
    /// A request frees other tasks' pages.
    pub struct ReclaimRules for "reclaim" {
        /// The measure by which scanning is split between the anonymous and the file lists.
        #[rule(section = "4.2")]
        pub balance: BalancedBy,
        /// If there are enough inactive file pages, everything else is spared, however few of them
        /// are scanned.
        #[rule(section = "4.2")]
        pub trims_however_little: bool,
        /// A request stops as soon as it has its pages, and only kswapd adjusts the shares, once,
        /// and scans the rest of them to the end. Later, both adjust them, stop where one kind of
        /// page is done, and a request scans all of them at its first priority.
        #[rule(section = "4.2")]
        pub requests_stop_at_target: bool,
        /// Reclaim for a large request makes room for compaction, and stops where there is room,
        /// even if the request may do no I/O and so cannot compact. Up to 5.9.
        #[rule(section = "4.5")]
        pub room_without_io: bool,
        /// The event a task waits for when reclaim outruns its success.
        #[rule(section = "4.3")]
        pub stalls_for: StallsFor,
        /// The share of a cache that is scanned.
        #[rule(section = "4.6")]
        pub slab_share: SlabShare,
        /// Whoever takes a cluster of dirty pages that nobody has queued for writing waits, kswapd,
        /// too. From 3.11 to 3.15.
        #[rule(section = "4.3")]
        pub waits_for_unqueued: bool,
        /// Reclaim by khugepaged is counted by itself, not as direct reclaim. Since 6.2.
        #[rule(section = "4.3")]
        pub counts_khugepaged_apart: bool,
        /// Caches are shrunk by the scan of all zones: after each priority of a request, and after
        /// each zone of kswapd; later, with the highest zone of a node, by the scan of its lists.
        #[rule(section = "4.6")]
        pub slab_after_zones: bool,
        /// However little of a cache is due, a batch of its objects is scanned each time, or all of
        /// a smaller cache. 4.19 and 4.20.
        #[rule(section = "4.6")]
        pub shrinks_a_batch_at_least: bool,
        /// An unused inode goes together with its clean pages and the shadows of evicted ones;
        /// later, it stays as long as there are any. Up to 5.15.
        #[rule(section = "4.6")]
        pub inodes_take_pages: bool,
        /// Pages that are dirty or under writeback are activated, to be out of the way; before,
        /// they stayed inactive. Since 4.11.
        #[rule(section = "4.3")]
        pub activates_unwritten: bool,
        /// For a costly request reclaim continues until it has freed enough for compaction to work
        /// with, whatever is free already. Up to 5.3.
        #[rule(section = "4.5")]
        pub frees_enough_for_compaction: bool,
        /// Direct reclaim wakes the flushers once it has scanned half as many pages again as it
        /// must free; later, when all pages of a cluster are dirty and not queued for writing. Up
        /// to 4.11.
        #[rule(section = "4.3")]
        pub scanning_wakes_flushers: bool,
        /// The largest `vm.swappiness`: 100 up to 5.7, then 200.
        #[rule(section = "4.2")]
        pub swappiness_max: u32,
        /// A list is charged 32 for each page written and 1 for each page scanned that stayed;
        /// before, 1 for each page written. Since 6.2.
        #[rule(section = "4.2")]
        pub cost_of_rotation: bool,
        /// Costs decay only when a new one is added.
        #[rule(section = "4.2")]
        pub fades_by_costs_only: bool,
        /// Costs are read from counters when reclaim of a node begins, and halved until they are at
        /// most a quarter of the lists; before, each was added when it arose, and all were halved
        /// once.
        #[rule(section = "4.2")]
        pub costs_from_counters: bool,
        /// The most pages of ineligible zones that one isolation passes over; after that, it takes
        /// them like others.
        #[rule(section = "4.2")]
        pub passed_over_max: u32,
        /// A dirty file page that kswapd meets a second time, and nobody has queued for writing, is
        /// written by kswapd itself.
        #[rule(section = "4.3")]
        pub writes_pages_of_files: bool,
        /// A page that reclaim has written, or marked for reclaim, counts as one, whatever its
        /// size. Up to 5.18.
        #[rule(section = "4.3")]
        pub counts_heads: bool,
        /// A part of the deferred objects of a cache counts, and the part grows as priority does;
        /// before, all counted, but no more than half the cache unless much of it is due now. Since
        /// 5.13.
        #[rule(section = "4.6")]
        pub deferred_by_priority: bool,
        /// The exact count of free pages decides whether tasks are throttled until kswapd has made
        /// progress.
        #[rule(section = "4.5")]
        pub throttles_by_exact_count: bool,
        /// All zones count in that decision, whatever there is to reclaim.
        #[rule(section = "4.5")]
        pub throttles_for_all_zones: bool,
        /// A zone with nothing to reclaim and nothing free counts in that decision; before, no zone
        /// with nothing to reclaim did.
        #[rule(section = "4.5")]
        pub throttles_for_exhausted_zones: bool,
        /// The free pages of a zone with nothing to reclaim count as reclaimable, so that a request
        /// that fails is retried again and again. It came with the stable series of 5.10.
        #[rule(section = "3.5")]
        pub free_counts_as_reclaimable: bool,
        /// Reclaim without success walks all memory control groups once more, which counts a second
        /// `allocstall`. Up to 4.11, and again later.
        #[rule(section = "4.5")]
        pub stalls_twice: bool,
        /// Reclaim is skipped for compaction that could already work by the high mark; before, by
        /// the low mark (costly orders) and then by the high mark and the gap.
        #[rule(section = "4.5")]
        pub compaction_ready_by_high_mark: bool,
    }
}
