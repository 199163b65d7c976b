//! Rules of the slow path.

use super::rule::{mechanism, variants};

variants! {
    /// The order of the slow path's attempts.
    pub enum Attempts {
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
        #[since("by 7.2")]
        UnlessSkippedOrDeferred,
    }
}

mechanism! {
    /// A request reclaims and compacts when no zone has a page to spare.
    pub struct SlowPathRules for "slow_path" {
        /// The order of the slow path's attempts.
        #[rule(section = "3.5")]
        pub attempts: Attempts,
        /// A costly NORETRY request bound to one node fails after one compaction and never reclaims.
        #[rule(since = "6.19, 5.10.y+", section = "0.3")]
        pub thisnode_noretry_never_reclaims: bool,
        /// In defrag_mode, a request that has whole pageblocks made for it compacts again whatever its size, does not when
        /// compaction was skipped, counts no reclaim as progress, and counts anew once it may break pageblocks up.
        #[rule(since = "7.3", section = "3.5.1")]
        pub retries_for_pageblocks: bool,
        /// When a direct compaction counts as a `compact_stall`.
        #[rule(section = "3.5")]
        pub compact_stall: CompactStall,
    }
}
