//! Rules of proactive compaction.

use super::rule::{mechanism, variants};

variants! {
    /// Whether there is proactive compaction, and by which score a zone stops.
    pub enum ProactiveScore {
        /// There is none.
        #[since("up to 5.8")]
        Off,
        /// By its weighted score: its share of the node's, so that small zones stop at once.
        #[since("5.9–5.11")]
        Weighted,
        /// By its own score.
        #[since("5.12")]
        Own,
    }
}

variants! {
    /// What follows a run that did not lower the node's score.
    pub enum ProactiveBackoff {
        /// The next 64 checks that would start a run start none.
        #[since("up to 5.14")]
        SkipChecks,
        /// The daemon sleeps for 32 s, and for ever where proactiveness is 0.
        #[since("5.15")]
        LongSleep,
    }
}

mechanism! {
    /// kcompactd keeps a node's fragmentation score within bounds.
    pub struct ProactiveRules for "proactive" {
        /// Whether there is proactive compaction, and by which score a zone stops.
        #[rule(section = "5.10")]
        pub score: ProactiveScore,
        /// What follows a run that did not lower the node's score.
        #[rule(section = "5.10")]
        pub backoff: ProactiveBackoff,
        /// Writing a `vm.compaction_proactiveness` that is not 0 wakes every kcompactd for a check.
        #[rule(since = "5.15", section = "5.10")]
        pub write_wakes: bool,
        /// What a proactive run scans counts in `compact_daemon_*`, too.
        #[rule(since = "6.7", section = "5.10")]
        pub counts_as_daemon: bool,
        /// The lower threshold of the score has no floor of 5, and the upper one is at most half as much higher; before, 10
        /// higher.
        #[rule(since = "6.15", section = "5.10")]
        pub half_leeway: bool,
    }
}
