//! Rules of kswapd, and of when it gets a CPU.

use super::rule::{mechanism, variants};

variants! {
    /// When a daemon gets the CPU of the task that has woken it, for hosts on which the two share one.
    pub enum Preemption {
        /// Where the task offers it: no sooner than its request waits, and else when it is done.
        #[since("up to 6.12")]
        Voluntary,
        /// At once, if the daemon is of a real-time class, as kswapd is made for recordings.
        #[since("by 7.2")]
        Immediate,
    }
}

mechanism! {
    /// A daemon on each node reclaims until the node is balanced.
    pub struct KswapdRules for "kswapd" {
        /// A run that a boost has started does not count as failed if it reclaims nothing.
        #[rule(since = "by 7.2", section = "4.4")]
        pub boosted_runs_never_fail: bool,
        /// When a daemon gets the CPU of the task that has woken it.
        #[rule(section = "3.5")]
        pub preemption: Preemption,
    }
}
