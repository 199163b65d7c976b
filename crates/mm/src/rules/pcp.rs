//! Rules of the per-CPU page lists.

use super::rule::{mechanism, variants};

variants! {
    /// What per-CPU lists hold, and how many pages.
    pub enum PcpLists {
        /// Order 0 only; high is 6 × batch; a full list gives back one batch, round-robin with growing shares.
        #[since("up to 5.12")]
        OrderZero,
        /// Orders 0–3 and huge pages; high follows the low watermark; consecutive frees give back ever more.
        #[since("5.13–6.6")]
        MultiOrder,
        /// The same lists; high moves with use between the low watermark's share and an eighth of the zone, refills of
        /// single pages double while nothing is freed.
        #[since("6.7")]
        AutoTuned,
    }
}

mechanism! {
    /// Each CPU keeps lists of free pages of its own.
    pub struct PcpRules for "pcp" {
        /// What per-CPU lists hold, and how many pages.
        #[rule(section = "2.4")]
        pub lists: PcpLists,
        /// A quarter of so many pages is the largest batch.
        #[rule(since = "128 up to 4.18, then 256", section = "1.7")]
        pub batch_limit: u32,
        /// Blocks of orders 1 to 3 that come back in a row are given back only once those are a batch and half of the
        /// least `high`; before, a batch.
        #[rule(since = "by 7.2", section = "2.4")]
        pub keeps_more_freed_blocks: bool,
        /// What is given back goes in portions of a batch, each starting with the list just freed to; before, at once.
        #[rule(since = "by 7.2", section = "2.6.1")]
        pub gives_back_in_batches: bool,
    }
}
