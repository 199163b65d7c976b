//! A zone's watermarks. [`crate::watermark`] computes and uses them.

use crate::gfp::Wmark;

/// The marks of a zone, in pages, without boost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watermarks {
    /// Below it only requests with a right to the reserves may allocate.
    pub min: u64,
    /// Below it kswapd is woken.
    pub low: u64,
    /// Above it kswapd sleeps.
    pub high: u64,
    /// Above it kswapd stops promoting for memory tiers.
    pub promo: u64,
}

impl Watermarks {
    /// The mark with this index.
    #[inline(always)]
    pub const fn get(&self, mark: Wmark) -> u64 {
        match mark {
            Wmark::Min => self.min,
            Wmark::Low => self.low,
            Wmark::High => self.high,
        }
    }
}
