//! Rules of the slow path.

use super::rule::{mechanism, variants};

variants! {
    /// The order of the slow path's attempts.
    pub enum Attempts {
        /// Compaction, for a request of any order; reclaim; compaction again. A huge page's request gives up where the first
        /// was put off.
        #[since("3.14–4.7")]
        CompactReclaimCompact,
        /// A first compaction before the loop of reclaim and compaction.
        #[since("4.8")]
        CompactThenLoop,
        /// One loop, whose first round leaves reclaim out for costly requests and those that are not movable.
        #[since("by 7.2")]
        OneLoop,
    }
}

variants! {
    /// When a direct compaction counts as a `compact_stall`.
    pub enum CompactStall {
        /// Always.
        #[since("5.1–5.12")]
        Always,
        /// Unless every zone was skipped.
        #[since("5.13")]
        UnlessSkipped,
        /// Unless every zone was skipped or put off.
        #[since("3.18–5.0, by 7.2")]
        UnlessSkippedOrDeferred,
    }
}

mechanism! {
    /// A request reclaims and compacts when no zone has a page to spare.
    pub struct SlowPathRules for "slow_path" {
        /// The order of the slow path's attempts.
        #[rule(section = "3.5")]
        pub attempts: Attempts,
        /// A request bound to one node that may not reclaim fails before anything is tried, and wakes nobody.
        #[rule(since = "up to 4.5", section = "3.6")]
        pub thisnode_fails_without_reclaim: bool,
        /// A costly NORETRY request bound to one node fails after one compaction and never reclaims.
        #[rule(since = "6.19, 5.10.y, 6.1.y, 6.12.y", section = "0.3")]
        pub thisnode_noretry_fails: bool,
        /// A costly NORETRY request fails where its first compaction was skipped for want of free memory, not only where it was
        /// put off; 5.4 does so from a pageblock on.
        #[rule(since = "5.5", section = "3.5")]
        pub noretry_fails_when_skipped: bool,
        /// In defrag_mode kswapd is asked for a whole pageblock, however small the request is.
        #[rule(since = "6.15", section = "4.8")]
        pub asks_for_pageblocks: bool,
        /// In defrag_mode direct reclaim and direct compaction make a whole pageblock for a request that is not movable, however
        /// small it is.
        #[rule(since = "by 7.2", section = "3.5.1")]
        pub makes_pageblocks: bool,
        /// In defrag_mode a request that neither reclaim nor compaction has helped may break pageblocks up, and tries once more;
        /// as first posted it tried for ever, and woke kswapd no more.
        #[rule(since = "6.15, not 6.15-posted", section = "4.8.1")]
        pub breaks_up_at_last: bool,
        /// In defrag_mode, a request that has whole pageblocks made for it compacts again whatever its size, does not when
        /// compaction was skipped, counts no reclaim as progress, and counts anew once it may break pageblocks up.
        #[rule(since = "7.3", section = "3.5.1")]
        pub retries_for_pageblocks: bool,
        /// When a direct compaction counts as a `compact_stall`.
        #[rule(section = "3.5")]
        pub compact_stall: CompactStall,
    }
}
