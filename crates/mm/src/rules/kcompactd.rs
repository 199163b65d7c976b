//! Rules of kcompactd's own runs.

use super::rule::mechanism;

mechanism! {
    /// A daemon on each node compacts where kswapd, or a request, asks for a block.
    pub struct KcompactdRules for "kcompactd" {
        /// It scans pageblocks with the skip hint, too, and sets none.
        #[rule(since = "up to 4.14", section = "5.9")]
        pub ignores_hints: bool,
        /// It has succeeded where the page is there by the low mark, however its run ended.
        #[rule(since = "up to 4.8", section = "5.9")]
        pub succeeds_by_low_mark: bool,
        /// After a failure the zone's per-CPU lists are drained.
        #[rule(since = "4.18", section = "5.9")]
        pub drains_after_failure: bool,
    }
}
