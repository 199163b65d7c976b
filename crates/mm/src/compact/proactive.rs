//! Proactive compaction: the score thresholds, and the runs that keep a node's score between them.
//!
//! Source: kernel-behaviour §5.10 (S0), §10.4. [`crate::kcompactd`] decides when to check and how
//! long to back off.

use super::state::CompactControl;
use crate::event::MigrateMode;
use crate::gfp::{AllocFlags, Wmark};
use crate::rules::{CompactionRules, ProactiveRules, ProactiveScore};
use crate::state::Memory;
use crate::sysctl::COMPACTION_PROACTIVENESS;
use crate::types::{MigrateType, NodeId, ZoneType};

/// The score at which a proactive run stops, for a value of `vm.compaction_proactiveness`; never
/// below 5 in the older rules.
pub fn fragmentation_score_low(rules: ProactiveRules, proactiveness: u32) -> u64 {
    let low = u64::from(100u32.saturating_sub(proactiveness));
    if rules.half_leeway { low } else { low.max(5) }
}

/// The score above which a proactive run starts: ten more than the low one. The newer rules add at
/// most half of the low one.
pub fn fragmentation_score_high(rules: ProactiveRules, proactiveness: u32) -> u64 {
    let low = fragmentation_score_low(rules, proactiveness);
    let leeway = if rules.half_leeway { (low / 2).min(10) } else { 10 };
    (low + leeway).min(100)
}

impl Memory {
    /// Whether a proactive run must continue at this score.
    pub(crate) fn score_above_low(&mut self, score: u64) -> bool {
        let rules = self.shared.profile.proactive;
        self.shared.decide(&COMPACTION_PROACTIVENESS, |p| score > fragmentation_score_low(rules, p))
    }

    /// Whether the node's score calls for proactive compaction and kswapd is not running.
    pub fn should_proactive_compact_node(&mut self, node: NodeId) -> bool {
        let rules = self.shared.profile.proactive;
        if rules.score == ProactiveScore::Off || self.nodes[node].kswapd.running {
            return false;
        }
        let score = self.fragmentation_score_node(node);
        self.shared.decide(&COMPACTION_PROACTIVENESS, |p| p != 0 && score > fragmentation_score_high(rules, p))
    }
}

/// The parameters of a whole-zone run outside any allocation: proactive, or
/// `/proc/sys/vm/compact_memory`.
pub(crate) fn whole_zone_control(rules: &CompactionRules, proactive: bool) -> CompactControl {
    let honours_hints = rules.whole_zone_honours_hints && !proactive;
    CompactControl {
        order: None,
        migratetype: MigrateType::Unmovable,
        mode: if proactive || honours_hints { MigrateMode::SyncLight } else { MigrateMode::Sync },
        direct: false,
        whole_zone: !honours_hints,
        ignore_skip_hint: !honours_hints,
        ignore_block_suitable: false,
        proactive,
        alloc_flags: AllocFlags::mark(Wmark::Min),
        highest: ZoneType::WITHOUT_RESERVE,
        may_enter_fs: true,
        request_order: None,
        kswapd: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_of_the_published_vectors() {
        for (p, want) in [(1, (99, 100)), (20, (80, 90)), (40, (60, 70)), (90, (10, 20)), (95, (5, 15)), (100, (5, 15))]
        {
            let rules = crate::testing::linux("6.1").proactive;
            let got = (fragmentation_score_low(rules, p), fragmentation_score_high(rules, p));
            assert_eq!(got, want, "proactiveness {p}");
        }
        for (p, want) in [(20, (80, 90)), (90, (10, 15)), (95, (5, 7)), (100, (0, 0))] {
            let rules = crate::testing::linux("7.2").proactive;
            let got = (fragmentation_score_low(rules, p), fragmentation_score_high(rules, p));
            assert_eq!(got, want, "proactiveness {p} by the newer rules");
        }
    }
}
