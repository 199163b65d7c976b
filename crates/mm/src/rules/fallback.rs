//! Rules of fallback: what a type without free blocks of its own does.

use super::rule::{mechanism, variants};

variants! {
    /// What a type without free blocks of its own does.
    pub enum Fallback {
        /// Takes the largest foreign block there is, after it has moved what else is free in its pageblock to the heads of
        /// its own lists; what is left of the block is its own.
        #[since("4.1–4.12")]
        TakeLargest,
        /// Moves foreign blocks to its own lists, then takes from those.
        #[since("4.13–6.9")]
        MoveThenTake,
        /// Claims a whole pageblock or, failing that, takes a single block and leaves the rest where it is.
        #[since("6.15, 6.12.y, 6.14.y")]
        ClaimOrSteal,
    }
}

mechanism! {
    /// A type without free blocks of its own takes another type's.
    pub struct FallbackRules for "fallback" {
        /// What a type without free blocks of its own does.
        #[rule(section = "2.6")]
        pub takes: Fallback,
        /// Where a pageblock is taken over, a compound page of order 1 counts as one movable page: how many pages it
        /// has is kept where its second page would say that it is movable, and reads as just that.
        #[rule(since = "5.9–5.17", section = "2.5.2")]
        pub pairs_look_movable: bool,
        /// There is `vm.defrag_mode`: no request splits a foreign pageblock before reclaim and compaction have been
        /// tried.
        #[rule(since = "6.15", section = "3.3")]
        pub defrag_mode: bool,
    }
}
