//! Rules of the slow path.

use super::rule::{mechanism, variants};

variants! {
    /// The order of the slow path's attempts.
    pub enum Attempts {
        /// Compaction for a request of any order, asynchronous at first and synchronous from then
        /// on; reclaim; compaction again. kswapd is woken once. A request that does not wake it
        /// gives up if its compaction was deferred.
        AsyncThenSync,
        /// Compaction, for a request of any order; reclaim; compaction again. A request for a huge
        /// page gives up if the first compaction was deferred. From 3.14 to 4.7.
        CompactReclaimCompact,
        /// A first compaction before the loop of reclaim and compaction. Since 4.8.
        CompactThenLoop,
        /// One loop, whose first round omits reclaim for costly and for unmovable requests.
        OneLoop,
    }
}

variants! {
    /// When a direct compaction counts as a `compact_stall`.
    pub enum CompactStall {
        /// Where a compaction that the request's flags allow is not deferred, even if it then skips
        /// every zone.
        AtEntry,
        /// Always. From 5.1 to 5.12.
        Always,
        /// Unless every zone was skipped. Since 5.13.
        UnlessSkipped,
        /// Unless every zone was skipped or deferred. From 3.18 to 5.0, and again later.
        UnlessSkippedOrDeferred,
    }
}

mechanism! {
    /// A request reclaims and compacts when no zone has a page to spare.
    pub struct SlowPathRules for "slow_path" {
        /// The order of the slow path's attempts.
        #[rule(section = "3.5")]
        pub attempts: Attempts,
        /// A request with THISNODE, NORETRY and NOWARN fails before it tries anything, and wakes
        /// nobody.
        #[rule(section = "3.7")]
        pub bound_fails_at_once: bool,
        /// A request bound to one node that may not reclaim fails before it tries anything, and
        /// wakes nobody. Up to 4.5.
        #[rule(section = "3.6")]
        pub thisnode_fails_without_reclaim: bool,
        /// A costly NORETRY request bound to one node fails after one compaction and never
        /// reclaims. Since 6.19, and in the stable series of 5.10, 6.1 and 6.12.
        #[rule(section = "0.3")]
        pub thisnode_noretry_fails: bool,
        /// A costly NORETRY request fails if its first compaction was skipped for want of free
        /// memory, not only if it was deferred. Since 5.5; 5.4 does so from the order of a
        /// pageblock on.
        #[rule(section = "3.5")]
        pub noretry_fails_when_skipped: bool,
        /// In defrag_mode kswapd is asked for a whole pageblock, however small the request.
        #[rule(section = "4.8")]
        pub asks_for_pageblocks: bool,
        /// In defrag_mode direct reclaim and direct compaction make a whole pageblock for an
        /// unmovable request, however small.
        #[rule(section = "3.5.1")]
        pub makes_pageblocks: bool,
        /// In defrag_mode a request that neither reclaim nor compaction has helped may break up
        /// pageblocks, and tries once more; as first posted, it retried for ever and no longer woke
        /// kswapd.
        #[rule(section = "4.8.1")]
        pub breaks_up_at_last: bool,
        /// In defrag_mode a request that has whole pageblocks made for it compacts again whatever
        /// its size, but not after compaction was skipped, counts no reclaim as progress, and
        /// resets its counts once it may break up pageblocks.
        #[rule(section = "3.5.1")]
        pub retries_for_pageblocks: bool,
        /// An atomic request that a policy binds to nodes tries all of them in the end. Since 4.19.
        #[rule(section = "3.5")]
        pub atomic_leaves_nodes: bool,
        /// When a direct compaction counts as a `compact_stall`.
        #[rule(section = "3.5")]
        pub compact_stall: CompactStall,
    }
}
