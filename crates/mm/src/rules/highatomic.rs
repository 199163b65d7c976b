//! Rules of the HIGHATOMIC reserve: pageblocks kept for atomic requests of high order.

use super::rule::{mechanism, variants};

variants! {
    /// How much of a zone may be reserved.
    pub enum HighAtomicLimit {
        /// 1 % of the zone and a pageblock.
        #[since("4.4–6.7")]
        PercentAndBlock,
        /// 1 % of the zone, rounded up to pageblocks, and none in zones where that is less than a pageblock.
        #[since("6.8")]
        PercentRoundedUp,
    }
}

mechanism! {
    /// Pageblocks are kept in reserve for atomic requests of high order.
    pub struct HighAtomicRules for "highatomic" {
        /// How much of a zone may be reserved.
        #[rule(section = "2.8")]
        pub limit: HighAtomicLimit,
        /// A block of pageblock size or more reserves all its pageblocks, and a pageblock that reaches beyond the zone
        /// is not reserved.
        #[rule(since = "6.10", section = "2.8")]
        pub reserves_by_block: bool,
        /// Watermarks leave out only what of the reserve is free, not all that is reserved.
        #[rule(since = "6.12", section = "2.8")]
        pub free_counts: bool,
        /// An atomic request of high order does not refill per-CPU lists but goes to the buddy lists, and only a block
        /// from there reserves its pageblock.
        #[rule(since = "by 7.2", section = "2.6.1")]
        pub bypasses_pcp: bool,
        /// An atomic request of high order takes from the reserve at its first look at the lists; before, only below the low
        /// mark.
        #[rule(since = "7.3", section = "2.8")]
        pub serves_at_once: bool,
        /// A request that may not wait takes from the reserve what it finds nowhere else.
        #[rule(since = "6.12, 6.1.y", section = "2.8")]
        pub last_resort_of_non_blocking: bool,
        /// A request that gives up in the retry loop, for any reason, takes a pageblock out of the reserve first;
        /// before, only one that had retried sixteen times did.
        #[rule(since = "6.8, 6.1.y", section = "3.5")]
        pub unreserves_for_any_reason: bool,
    }
}
