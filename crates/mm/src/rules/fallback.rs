//! Rules of fallback: where a type without free blocks of its own gets one.

use super::rule::{mechanism, variants};

variants! {
    /// How a type without free blocks of its own gets one.
    pub enum Fallback {
        /// Takes the largest foreign block and, unless it claims the pageblock, leaves the rest
        /// where it was. An unmovable request moves other free blocks only where a movable one
        /// would, too. If there is no foreign block, takes one of the RESERVE.
        LargestThenReserve,
        /// Takes the largest foreign block, after moving the other free blocks of its pageblock to
        /// the heads of its own lists; it keeps the rest of the block. From 4.1 to 4.12.
        TakeLargest,
        /// Moves foreign blocks to its own lists, then takes from those. From 4.13 to 6.9.
        MoveThenTake,
        /// Claims a whole pageblock or, failing that, takes a single block and leaves the rest
        /// where it is. Since 6.15, and in the stable series of 6.12 and 6.14.
        ClaimOrSteal,
    }
}

mechanism! {
    /// A type without free blocks of its own takes another type's.
    pub struct FallbackRules for "fallback" {
        /// How a type without free blocks of its own gets one.
        #[rule(section = "2.6")]
        pub takes: Fallback,
        /// When a pageblock is taken over, a compound page of order 1 counts as one movable page:
        /// the field of its second page that holds its size is the one that would mark it movable.
        /// From 5.9 to 5.17.
        #[rule(section = "2.5.2")]
        pub pairs_look_movable: bool,
        /// `vm.fragment_stall_order` exists: a movable request on the slow path at first takes no
        /// foreign block below that order, but waits for kswapd. Posted for 5.0, and never merged.
        #[rule(section = "3.10")]
        pub stalls_movable: bool,
        /// `vm.defrag_mode` exists: when set, no request splits a foreign pageblock until reclaim
        /// and compaction have been tried.
        #[rule(section = "3.3")]
        pub defrag_mode: bool,
    }
}
