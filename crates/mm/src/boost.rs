//! The watermark boost: a fallback that mixes types in a pageblock raises the zone's watermarks for
//! a while, so that kswapd and kcompactd make room.
//!
//! Source: kernel-behaviour §2.7. kswapd takes the boost back once it has balanced the node.

use crate::state::Locked;
use crate::sysctl::WATERMARK_BOOST_FACTOR;
use crate::types::PAGEBLOCK_PAGES;

impl Locked<'_> {
    /// Raises the zone's watermarks by this many pageblocks, up to a ceiling; false if the zone is
    /// too small or boosting is off.
    pub(crate) fn boost_watermark(&mut self, pageblocks: u64) -> bool {
        let pageblock = u64::from(PAGEBLOCK_PAGES);
        if !self.shared.profile.boost.raises_marks {
            return false;
        }
        if self.shared.profile.boost.spares_small_zones && 4 * pageblock > self.zone.managed {
            return false;
        }
        let (boost, high) = (self.zone.watermark_boost, self.zone.watermarks.high);
        let raised = self.shared.decide(&WATERMARK_BOOST_FACTOR, |factor| {
            let ceiling = high * u64::from(factor) / 10_000;
            (ceiling > 0).then(|| (boost + pageblocks * pageblock).min(ceiling.max(pageblock)))
        });
        if let Some(raised) = raised {
            self.zone.watermark_boost = raised;
        }
        raised.is_some()
    }
}
