//! Rules of the watermark boost that follows a fragmenting fallback.

use super::rule::{mechanism, variants};
use crate::gfp::AllocFlags;

variants! {
    /// The order-0 requests that may ignore a boost.
    pub enum IgnoresBoost {
        /// None. Up to 5.8.
        None,
        /// Those marked `__GFP_ATOMIC`. Up to 6.2.
        MarkedAtomic,
        /// Those with `__GFP_HIGH`. Since 6.3.
        MinReserve,
    }
}

impl IgnoresBoost {
    /// Whether a request with these flags may.
    #[inline(always)]
    pub(crate) fn holds_for(self, flags: AllocFlags) -> bool {
        match self {
            IgnoresBoost::None => false,
            IgnoresBoost::MarkedAtomic => flags.any(AllocFlags::ATOMIC_MARK),
            IgnoresBoost::MinReserve => flags.any(AllocFlags::MIN_RESERVE),
        }
    }
}

mechanism! {
    /// A fragmenting fallback raises the zone's watermarks for a while.
    pub struct BoostRules for "boost" {
        /// Fallbacks boost the watermarks, and `vm.watermark_boost_factor` exists. Since 5.0.
        #[rule(section = "2.7")]
        pub raises_marks: bool,
        /// Zones of fewer than four pageblocks are never boosted. Since 5.7.
        #[rule(section = "2.7")]
        pub spares_small_zones: bool,
        /// Only a request that may wake kswapd wakes it for a boost that another request left
        /// behind.
        #[rule(section = "2.7")]
        pub woken_for_by_kswapd_requests: bool,
        /// The order-0 requests that, on failure, are retried against the unboosted min mark.
        #[rule(section = "3.2")]
        pub ignored_by: IgnoresBoost,
    }
}
