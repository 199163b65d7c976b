//! Rules of the HIGHATOMIC reserve: pageblocks kept for atomic requests of high order.

use super::rule::{mechanism, variants};

variants! {
    /// The largest reserve of a zone.
    pub enum HighAtomicLimit {
        /// As many movable pageblocks at the zone's start as the min mark fills, at most two,
        /// chosen when the marks are set: a RESERVE of blocks for any request that finds none
        /// elsewhere.
        FixedByMark,
        /// 1 % of the zone and a pageblock. From 4.4 to 6.7.
        PercentAndBlock,
        /// 1 % of the zone, rounded up to pageblocks; none in zones of which 1 % is less than a
        /// pageblock. Since 6.8.
        PercentRoundedUp,
    }
}

mechanism! {
    /// Pageblocks are kept in reserve for atomic requests of high order.
    pub struct HighAtomicRules for "highatomic" {
        /// The largest reserve of a zone.
        #[rule(section = "2.8")]
        pub limit: HighAtomicLimit,
        /// A block of at least a pageblock reserves all its pageblocks, and a pageblock that
        /// reaches beyond the zone is not reserved. Since 6.10.
        #[rule(section = "2.8")]
        pub reserves_by_block: bool,
        /// Watermark checks subtract only the free pages of the reserve, not all its pages.
        #[rule(section = "2.8")]
        pub free_counts: bool,
        /// An atomic request of high order goes to the buddy lists without refilling the per-CPU
        /// lists, and only a block from the buddy lists reserves its pageblock.
        #[rule(section = "2.6.1")]
        pub bypasses_pcp: bool,
        /// An atomic request of high order may take from the reserve in its first pass over the
        /// lists; before, only below the low mark.
        #[rule(section = "2.8")]
        pub serves_at_once: bool,
        /// A request that may not wait takes a page from the reserve when there is none elsewhere.
        /// Since 6.12, and in the stable series of 6.1.
        #[rule(section = "2.8")]
        pub last_resort_of_non_blocking: bool,
        /// A request that leaves the retry loop, for any reason, first takes a pageblock out of the
        /// reserve; before, only after sixteen retries. Since 6.8, and in the stable series of 6.1.
        #[rule(section = "3.5")]
        pub unreserves_for_any_reason: bool,
    }
}
