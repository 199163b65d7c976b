//! Rules of kswapd, and of when it gets a CPU.

use super::rule::{mechanism, variants};

variants! {
    /// When a daemon gets the CPU of the task that has woken it, for hosts on which the two share one.
    pub enum Preemption {
        /// Where the task offers it: no sooner than its request waits, and else when it is done.
        #[since("up to 6.15")]
        Voluntary,
        /// At once, if the daemon is of a real-time class, as kswapd is made for recordings.
        #[since("by 7.2")]
        Immediate,
    }
}

variants! {
    /// What is free where it is asked whether a node is balanced, in defrag_mode.
    pub enum BalancedIn {
        /// Every free page.
        #[since("up to 6.14")]
        Pages,
        /// Whole free pageblocks, of whatever order the question is: kswapd goes on reclaiming until it has made them.
        #[since("6.15-posted")]
        Blocks,
        /// Whole free pageblocks where a block is asked for. Once kswapd goes on for single pages every free page counts, so that
        /// it sleeps and hands over to kcompactd.
        #[since("6.15, not 6.15-posted")]
        BlocksForBlocks,
    }
}

mechanism! {
    /// A daemon on each node reclaims until the node is balanced.
    pub struct KswapdRules for "kswapd" {
        /// A run that a boost has started does not count as failed if it reclaims nothing.
        #[rule(since = "by 7.2", section = "4.4")]
        pub boosted_runs_never_fail: bool,
        /// What shrinkers freed counts, beside what was looked at, for whether to look harder.
        #[rule(since = "by 6.12", section = "4.4")]
        pub counts_reclaimed_as_scanned: bool,
        /// A run that reclaimed nothing because it spared everything but inactive pages of files goes on once without that.
        #[rule(since = "6.10", section = "4.4")]
        pub retries_without_trimming: bool,
        /// Only where the node is balanced does reclaim take back that it is hopeless.
        #[rule(since = "by 7.2", section = "4.4")]
        pub hopeless_until_balanced: bool,
        /// What is free where it is asked whether a node is balanced, in defrag_mode.
        #[rule(section = "4.4")]
        pub balanced_in: BalancedIn,
        /// The free pages that it is asked with lack what CPUs have not folded in, close to the marks, too.
        #[rule(since = "6.15-posted", section = "4.4")]
        pub balance_may_drift: bool,
        /// When a daemon gets the CPU of the task that has woken it.
        #[rule(section = "3.5")]
        pub preemption: Preemption,
    }
}
