//! Rules of kcompactd's own runs.

use super::rule::{mechanism, variants};

variants! {
    /// The mark kcompactd works for.
    pub enum KcompactdMark {
        /// The min mark, always.
        Min,
        /// The min mark when it is woken, the high mark while it works, with or without
        /// defrag_mode.
        HighAtWork,
        /// The high mark in defrag_mode, else the min mark.
        HighInDefragMode,
    }
}

variants! {
    /// When kcompactd stops, in defrag_mode.
    pub enum KcompactdGoal {
        /// When the block that was requested is free.
        Page,
        /// When the whole free pageblocks alone meet the high mark.
        BlocksToHighMark,
        /// When all free pages but `scattered_max` are in whole pageblocks, as the review of 6.15's
        /// patches proposed.
        FreeInBlocks,
        /// When either is true.
        BlocksToHighMarkOrFreeInBlocks,
    }
}

mechanism! {
    /// A daemon on each node compacts when kswapd, or a request, asks for a block.
    pub struct KcompactdRules for "kcompactd" {
        /// There is such a daemon. Since 4.6.
        #[rule(section = "5.9")]
        pub exists: bool,
        /// It also scans pageblocks that have the skip hint, and sets none. Up to 4.14.
        #[rule(section = "5.9")]
        pub ignores_hints: bool,
        /// It has succeeded if the block is available above the low mark, however its run ended. Up
        /// to 4.8.
        #[rule(section = "5.9")]
        pub succeeds_by_low_mark: bool,
        /// The mark kcompactd works for.
        #[rule(section = "5.2")]
        pub mark: KcompactdMark,
        /// When kcompactd stops, in defrag_mode. For the pageblock goals, only whole free
        /// pageblocks count when deciding whether to run at all.
        #[rule(section = "5.6")]
        pub goal: KcompactdGoal,
        /// Free pages of a zone that may lie outside whole pageblocks when the goal is that all
        /// free pages are in pageblocks. 511 pages are the most that cannot make a pageblock.
        #[rule(section = "4.8.1")]
        pub scattered_max: u32,
        /// After a failure the zone's per-CPU lists are drained. Since 4.18.
        #[rule(section = "5.9")]
        pub drains_after_failure: bool,
    }
}
