//! Rules of reclaim: what it takes from the lists and the caches, what it waits for, and when it is over.

use super::rule::{mechanism, variants};

variants! {
    /// What tells how much of the anonymous lists is looked at, and how much of those of files.
    pub enum BalancedBy {
        /// How many of the pages looked at lately were in use.
        #[since("up to 5.7")]
        Rotations,
        /// What taking pages has cost lately.
        #[since("5.8")]
        Costs,
    }
}

variants! {
    /// What a task waits for where reclaim goes on faster than it can have success.
    pub enum StallsFor {
        /// A device whose queue is full, after each cluster, if the zone's pages wait for one: 100 ms at most.
        #[since("up to 4.16")]
        Congestion,
        /// Progress of reclaim, once a node has been gone through: a tick, or 100 ms. So it is from 5.16 on; kernels from 4.17 to 5.15, which wait for
        /// congestion once a node, are taken to do the same.
        #[since("4.17")]
        Progress,
    }
}

variants! {
    /// How much of a cache is looked at.
    pub enum SlabShare {
        /// As large a part as has been looked at of the lists, mapped pages counting twice. What is not done is done later as
        /// far as it was due.
        #[since("up to 4.15")]
        Scanned,
        /// The part that the priority says.
        #[since("4.16")]
        Priority,
    }
}

mechanism! {
    /// A request frees other tasks' pages.
    pub struct ReclaimRules for "reclaim" {
        /// What tells how much of the anonymous lists is looked at, and how much of those of files.
        #[rule(section = "4.2")]
        pub balance: BalancedBy,
        /// Where inactive pages of files are enough, others are spared however few of them are looked at.
        #[rule(since = "up to 4.5", section = "4.2")]
        pub trims_however_little: bool,
        /// What a task waits for where reclaim goes on faster than it can have success.
        #[rule(section = "4.3")]
        pub stalls_for: StallsFor,
        /// How much of a cache is looked at.
        #[rule(section = "4.6")]
        pub slab_share: SlabShare,
        /// However little is due of a cache, a batch of its objects is looked at each time, or all of a smaller one.
        #[rule(since = "4.19–4.20", section = "4.6")]
        pub shrinks_a_batch_at_least: bool,
        /// An inode that nobody uses goes with its clean pages, and what is remembered of others; later it stays as long as there are
        /// any.
        #[rule(since = "up to 5.15", section = "4.6")]
        pub inodes_take_pages: bool,
        /// Pages that have to be written first, or are being written, become active so that they are out of the way; before,
        /// they stayed inactive.
        #[rule(since = "4.11", section = "4.3")]
        pub activates_unwritten: bool,
        /// For a large request reclaim goes on until it has freed enough for compaction to work with, whatever is free already.
        #[rule(since = "up to 5.3", section = "4.5")]
        pub frees_enough_for_compaction: bool,
        /// Flushers are woken by direct reclaim that has looked at half as many pages again as it has to free; later, where all
        /// pages of a cluster have to be written.
        #[rule(since = "up to 4.11", section = "4.3")]
        pub scanning_wakes_flushers: bool,
        /// The largest `vm.swappiness`.
        #[rule(since = "100 up to 5.7, then 200", section = "4.2")]
        pub swappiness_max: u32,
        /// What a list costs counts 32 for each page written and one for each looked at that stayed; before, one for each
        /// page written.
        #[rule(since = "6.2", section = "4.2")]
        pub cost_of_rotation: bool,
        /// Costs fade only when there is a new one.
        #[rule(since = "by 7.2", section = "4.2")]
        pub fades_by_costs_only: bool,
        /// Costs are read from counters when a node is begun with, and halved until they are no more than a quarter of the
        /// lists; before, each was noted when it arose, and all halved once.
        #[rule(since = "7.3", section = "4.2")]
        pub costs_from_counters: bool,
        /// Pages of zones that do not help that are passed over at most, in one go; then they are taken like others.
        #[rule(since = "none up to 6.12, 32768 by 6.14", section = "4.2")]
        pub passed_over_max: u32,
        /// Pages of files are written by kswapd when it meets them a second time and nobody has queued them for writing.
        #[rule(since = "up to 6.15", section = "4.3")]
        pub writes_pages_of_files: bool,
        /// What reclaim has written, or marked, counts as one page, whatever its size.
        #[rule(since = "up to 5.18", section = "4.3")]
        pub counts_heads: bool,
        /// Of the objects of a cache that were deferred, a part counts that grows with the priority; before, all did, but
        /// no more than half the cache unless much of it is due now.
        #[rule(since = "5.13", section = "4.6")]
        pub deferred_by_priority: bool,
        /// Whether tasks have to wait for kswapd is told by the exact count of free pages.
        #[rule(since = "by 6.12", section = "4.5")]
        pub throttles_by_exact_count: bool,
        /// A zone with nothing to reclaim counts among those whose free pages tell that, where nothing of it is free.
        #[rule(since = "by 7.2", section = "4.5")]
        pub throttles_for_exhausted_zones: bool,
        /// Where a zone has nothing to reclaim, its free pages are taken for it, so that a request that fails is tried
        /// again and again.
        #[rule(since = "5.10.y+, gone by 7.2", section = "3.5")]
        pub free_counts_as_reclaimable: bool,
        /// Reclaim without success goes through all memory control groups once more, which counts a second
        /// `allocstall`.
        #[rule(since = "up to 4.11, by 6.12", section = "4.5")]
        pub stalls_twice: bool,
        /// Whether compaction could work already, so that reclaim has nothing to do, is asked of compaction with the
        /// high mark; before, of the low mark (costly orders) and then of the high mark and the gap.
        #[rule(since = "6.15", section = "4.5")]
        pub compaction_ready_by_high_mark: bool,
    }
}
