//! Rules of the watermarks.

use super::rule::{mechanism, variants};

variants! {
    /// The requests that may dip into the reserves below the min watermark.
    pub enum Reserves {
        /// `ALLOC_HIGH` and `ALLOC_HARDER`, which is for any request that cannot wait. Up to 4.3.
        HighWaitless,
        /// `ALLOC_HIGH` and `ALLOC_HARDER`, which is for requests marked atomic: only HARDER counts
        /// the HIGHATOMIC reserve as free. From 4.4 to 6.2.
        HighHarder,
        /// `ALLOC_MIN_RESERVE` and `ALLOC_NON_BLOCK`: either counts it. Since 6.3, and in the
        /// stable series of 6.1.
        MinReserveNonBlock,
    }
}

mechanism! {
    /// Free pages are kept back in each zone.
    pub struct WatermarkRules for "watermark" {
        /// The requests that may dip into the reserves below the min watermark.
        #[rule(section = "3.2")]
        pub reserves: Reserves,
        /// For a block, free memory in blocks of at least each smaller order, too, must exceed the
        /// mark, halved once an order; later, it is enough that a block is there. Up to 4.3.
        #[rule(section = "3.2")]
        pub halves_by_order: bool,
        /// The quick check, which decides for most single pages, counts the HIGHATOMIC reserve as
        /// free for every request. From 4.7 to 5.8.
        #[rule(section = "3.2")]
        pub quick_check_counts_reserve: bool,
        /// Ceiling of the computed `vm.min_free_kbytes`, in kB: 65536 up to 5.7, then 262144.
        #[rule(section = "1.3")]
        pub min_free_kbytes_cap: u32,
        /// The marks are `vm.watermark_scale_factor` of the zone apart if that is more than a
        /// quarter of the min mark; before, always a quarter.
        #[rule(section = "1.3")]
        pub spaced_by_size: bool,
        /// Largest `vm.watermark_scale_factor`: 1000 up to 5.16, then 3000.
        #[rule(section = "7.8")]
        pub scale_factor_max: u32,
        /// A zone has no lowmem reserve against requests for a higher zone without memory;
        /// otherwise, the same as against requests for the zones below that one. From 6.10 to 6.13,
        /// until stable releases, 6.12.19 among them, took it back.
        #[rule(section = "1.4")]
        pub no_lowmem_reserve_for_empty_zones: bool,
        /// With several CPUs a zone that needs no drift mark keeps the one of early boot, so that
        /// its CPUs' parts of counters change their size with kswapd. Recorded of 5.10, 6.1 and
        /// 6.12. From 6.13 on kernels set the marks once all CPUs are up, as recorded of 7.2.
        #[rule(section = "1.6")]
        pub keeps_early_drift_mark: bool,
    }
}
