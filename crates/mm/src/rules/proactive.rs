//! Rules of proactive compaction.

use super::rule::{mechanism, variants};

variants! {
    /// Whether there is proactive compaction, and the score at which a zone stops.
    pub enum ProactiveScore {
        /// There is none. Up to 5.8.
        Off,
        /// By its weighted score: its share of the node's, so that small zones stop at once. From
        /// 5.9 to 5.11.
        Weighted,
        /// By its own score. Since 5.12.
        Own,
    }
}

variants! {
    /// The back-off after a run that did not lower the node's score.
    pub enum ProactiveBackoff {
        /// The next 64 checks that would start a run start none. Up to 5.14.
        SkipChecks,
        /// The daemon sleeps for 32 s, and for ever if proactiveness is 0. Since 5.15.
        LongSleep,
    }
}

mechanism! {
    /// kcompactd keeps a node's fragmentation score within bounds.
    pub struct ProactiveRules for "proactive" {
        /// Whether there is proactive compaction, and the score at which a zone stops.
        #[rule(section = "5.10")]
        pub score: ProactiveScore,
        /// The back-off after a run that did not lower the node's score.
        #[rule(section = "5.10")]
        pub backoff: ProactiveBackoff,
        /// Writing a `vm.compaction_proactiveness` that is not 0 wakes every kcompactd for a check.
        /// Since 5.15.
        #[rule(section = "5.10")]
        pub write_wakes: bool,
        /// Pages that proactive runs scan count in `compact_daemon_*` as well. Since 6.7.
        #[rule(section = "5.10")]
        pub counts_as_daemon: bool,
        /// The lower threshold of the score has no floor of 5, and the upper one is at most half as
        /// much higher; before, 10 higher.
        #[rule(section = "5.10")]
        pub half_leeway: bool,
    }
}
