//! Rules of the per-CPU page lists.

use super::rule::{mechanism, variants};

variants! {
    /// The orders that per-CPU lists hold, and how many pages.
    pub enum PcpLists {
        /// Order 0 only; `high` is 6 × batch; a full list gives back one batch, round-robin with
        /// growing shares. Up to 5.12.
        OrderZero,
        /// Orders 0–3 and huge pages; `high` follows the low watermark; consecutive frees give back
        /// ever more. From 5.13 to 6.6.
        MultiOrder,
        /// The same lists; `high` moves with use between its share of the low watermark and an
        /// eighth of the zone; refills of single pages double while nothing is freed. Since 6.7.
        AutoTuned,
    }
}

mechanism! {
    /// Each CPU keeps lists of free pages of its own.
    pub struct PcpRules for "pcp" {
        /// The orders that per-CPU lists hold, and how many pages.
        #[rule(section = "2.4")]
        pub lists: PcpLists,
        /// Four times the largest batch, in pages: 128 up to 4.18, then 256.
        #[rule(section = "1.7")]
        pub batch_limit: u32,
        /// Where lists give back in turn, reclaimable pages come before movable ones, as the types
        /// were then numbered. Up to 4.3.
        #[rule(section = "2.4")]
        pub reclaimable_before_movable: bool,
        /// Pages that reclaim frees go to the tails of the lists: they are used last and given back
        /// first. Up to 4.14.
        #[rule(section = "2.4")]
        pub reclaimed_to_tail: bool,
        /// A run of frees of orders 1 to 3 is given back once it reaches a batch and half of the
        /// smallest `high`; before, a batch.
        #[rule(section = "2.4")]
        pub keeps_more_freed_blocks: bool,
        /// Pages are given back a batch at a time, each batch starting with the list just freed to;
        /// before, all at once.
        #[rule(section = "2.6.1")]
        pub gives_back_in_batches: bool,
        /// A CPU that wants all lists given back does it for the others, and counts the pages as
        /// its own; before, each CPU does it for itself. Since 6.0.
        #[rule(section = "1.7")]
        pub drains_others_lists: bool,
    }
}
