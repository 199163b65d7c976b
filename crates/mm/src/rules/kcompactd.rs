//! Rules of kcompactd's own runs.

use super::rule::{mechanism, variants};

variants! {
    /// The mark kcompactd works for.
    pub enum KcompactdMark {
        /// The min mark.
        #[since("up to 6.14")]
        Min,
        /// The min mark where it is woken, the high one where it works, with or without defrag_mode.
        #[since("6.15-posted")]
        HighAtWork,
        /// The high mark in defrag_mode, else the min mark.
        #[since("6.15, not 6.15-posted")]
        HighInDefragMode,
    }
}

variants! {
    /// When kcompactd has done enough, in defrag_mode.
    pub enum KcompactdGoal {
        /// When the block it was asked for is there.
        #[since("up to 6.14")]
        Page,
        /// When whole free pageblocks alone meet the high mark.
        #[since("6.15")]
        BlocksToHighMark,
        /// When all that is free is in whole pageblocks, but for what may be scattered: what the review of 6.15's proposed.
        #[since("none")]
        FreeInBlocks,
        /// When one of both is so.
        #[since("none")]
        BlocksToHighMarkOrFreeInBlocks,
    }
}

mechanism! {
    /// A daemon on each node compacts where kswapd, or a request, asks for a block.
    pub struct KcompactdRules for "kcompactd" {
        /// It scans pageblocks with the skip hint, too, and sets none.
        #[rule(since = "up to 4.14", section = "5.9")]
        pub ignores_hints: bool,
        /// It has succeeded where the page is there by the low mark, however its run ended.
        #[rule(since = "up to 4.8", section = "5.9")]
        pub succeeds_by_low_mark: bool,
        /// The mark kcompactd works for.
        #[rule(section = "5.2")]
        pub mark: KcompactdMark,
        /// When kcompactd has done enough, in defrag_mode. Where it is not for a page, only whole pageblocks are looked at for
        /// whether there is anything to do, too.
        #[rule(section = "5.6")]
        pub goal: KcompactdGoal,
        /// Free pages of a zone that may be outside of whole pageblocks where all others are in them. 511: as many as make no
        /// pageblock.
        #[rule(section = "4.8.1")]
        pub scattered_max: u32,
        /// After a failure the zone's per-CPU lists are drained.
        #[rule(since = "4.18", section = "5.9")]
        pub drains_after_failure: bool,
    }
}
