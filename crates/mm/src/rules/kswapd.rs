//! Rules of kswapd, and of when it gets a CPU.

use super::rule::{mechanism, variants};

variants! {
    /// When a daemon gets the CPU of the task that woke it, on hosts where the two share one.
    pub enum Preemption {
        /// When the task yields: at the earliest when its request waits, else when it is done.
        Voluntary,
        /// At once if the daemon is of a real-time class, as kswapd is in recordings.
        Immediate,
    }
}

variants! {
    /// The free pages that count when a node is checked for balance, in defrag_mode.
    pub enum BalancedIn {
        /// All free pages of the node.
        Pages,
        /// Those of whole free pageblocks, whatever the order: kswapd reclaims until it has made
        /// them.
        Blocks,
        /// Those of whole free pageblocks while a block is wanted. Once kswapd has gone on to
        /// single pages all free pages count, so that it sleeps and hands over to kcompactd.
        BlocksForBlocks,
    }
}

mechanism! {
    /// A daemon on each node reclaims until the node is balanced.
    pub struct KswapdRules for "kswapd" {
        /// Where zones are balanced one by one: for a block, a zone is balanced when the block is
        /// available above the high mark and compaction would not be skipped; a run ends for single
        /// pages once it has reclaimed twice the block in a round. Later, enough single pages for
        /// the block will do, and a run keeps its order.
        #[rule(section = "4.4.1")]
        pub works_for_blocks: bool,
        /// It compacts the node's zones itself, asynchronously, after a round that reclaimed more
        /// than its zones were to give, if none of them had the block above its low mark.
        #[rule(section = "4.4.1")]
        pub compacts: bool,
        /// Skip hints are cleared when kswapd sleeps until it is woken; later, before the nap that
        /// comes first.
        #[rule(section = "4.4.1")]
        pub clears_hints_after_nap: bool,
        /// Where nodes are balanced: kswapd that could not sleep, and was not asked again, balances
        /// the lowest zone alone; later, the zones as before. Before it sleeps it goes by the
        /// highest zone that it was or is asked for; later, by that which it is. In 4.20 and 5.0.
        #[rule(section = "4.4")]
        pub unasked_balances_lowest_zone: bool,
        /// A run that a boost started does not count as failed if it reclaims nothing.
        #[rule(section = "4.4")]
        pub boosted_runs_never_fail: bool,
        /// Reclaim for a boost leaves slab caches alone. From 5.0 to 5.2.
        #[rule(section = "4.4")]
        pub boost_spares_slabs: bool,
        /// Pages that shrinkers freed count as scanned when deciding whether to raise the priority.
        #[rule(section = "4.4")]
        pub counts_reclaimed_as_scanned: bool,
        /// A run that reclaimed nothing but spared everything except inactive pages of files is
        /// repeated once without sparing it. Since 6.10.
        #[rule(section = "4.4")]
        pub retries_without_trimming: bool,
        /// Only a balanced node stops being hopeless; before, any page reclaimed was enough.
        #[rule(section = "4.4")]
        pub hopeless_until_balanced: bool,
        /// The free pages that count when a node is checked for balance, in defrag_mode.
        #[rule(section = "4.4")]
        pub balanced_in: BalancedIn,
        /// The check for balance ignores what CPUs have not folded in, even close to the marks.
        #[rule(section = "4.4")]
        pub balance_may_drift: bool,
        /// When a daemon gets the CPU of the task that woke it.
        #[rule(section = "3.5")]
        pub preemption: Preemption,
    }
}
