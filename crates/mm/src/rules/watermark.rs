//! Rules of the watermarks.

use super::rule::{mechanism, variants};

variants! {
    /// Who may dip into the reserves below the min watermark.
    pub enum Reserves {
        /// `ALLOC_HIGH` and `ALLOC_HARDER`: only HARDER counts the HIGHATOMIC reserve as free.
        #[since("up to 6.2")]
        HighHarder,
        /// `ALLOC_MIN_RESERVE` and `ALLOC_NON_BLOCK`: either counts it.
        #[since("6.3, 6.1.y")]
        MinReserveNonBlock,
    }
}

mechanism! {
    /// Free pages are kept back in each zone.
    pub struct WatermarkRules for "watermark" {
        /// Who may dip into the reserves below the min watermark.
        #[rule(section = "3.2")]
        pub reserves: Reserves,
        /// Ceiling of the computed `vm.min_free_kbytes`, kB: 262144; before, 65536.
        #[rule(since = "5.8", section = "1.3")]
        pub min_free_kbytes_cap: u32,
        /// The distance between marks is a part of the zone if that is more than a quarter of the min mark, and there is
        /// `vm.watermark_scale_factor`; before, a quarter always.
        #[rule(since = "4.6", section = "1.3")]
        pub spaced_by_size: bool,
        /// Largest `vm.watermark_scale_factor`: 3000; before, 1000.
        #[rule(since = "5.17", section = "7.8")]
        pub scale_factor_max: u32,
        /// A zone has no lowmem reserve against requests for a higher zone without memory; otherwise as much as against those for the zones below that.
        #[rule(since = "6.10–6.13, not 6.12", section = "1.4")]
        pub no_lowmem_reserve_for_empty_zones: bool,
    }
}
