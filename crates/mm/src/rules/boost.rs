//! Rules of the watermark boost that follows a fragmenting fallback.

use super::rule::{mechanism, variants};
use crate::gfp::AllocFlags;

variants! {
    /// Single pages that are not held to the boosted min mark.
    pub enum IgnoresBoost {
        /// None.
        #[since("up to 5.8")]
        None,
        /// Those marked `__GFP_ATOMIC`.
        #[since("5.9–6.2")]
        MarkedAtomic,
        /// Those with `__GFP_HIGH`.
        #[since("6.3")]
        MinReserve,
    }
}

impl IgnoresBoost {
    /// Whether it holds for a request with these flags.
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
        /// There is a boost, and `vm.watermark_boost_factor`.
        #[rule(since = "5.0", section = "2.7")]
        pub raises_marks: bool,
        /// Zones of fewer than four pageblocks are never boosted.
        #[rule(since = "5.7", section = "2.7")]
        pub spares_small_zones: bool,
        /// Only a request that may wake kswapd wakes it for a boost that another request left behind.
        #[rule(since = "by 6.12", section = "2.7")]
        pub woken_for_by_kswapd_requests: bool,
        /// Which order-0 requests that fail try once more, against the unboosted min mark.
        #[rule(section = "3.2")]
        pub ignored_by: IgnoresBoost,
    }
}
