//! The rules for one node: what is kept, and what that may cost.

use kontig_mm::compact::proactive::{fragmentation_score_high, fragmentation_score_low};
use kontig_mm::rules::ProactiveRules;
use serde::Serialize;

/// The state that is kept on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A number of blocks of an order at hand.
    Blocks { count: u64, order: u32 },
    /// The kernel's score: a compaction begins above the one, and ends at the other.
    Score { above: u64, until: u64 },
}

/// The rules for one node.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rules {
    pub target: Target,
    /// A compaction begins with fewer blocks than the target and this share of it, and ends with
    /// twice the share.
    pub headroom: f64,
    /// Share of a CPU that compactions may take in the long run, looks at the frames among them.
    pub cpu_share: f64,
    /// Seconds of a CPU that may be saved up.
    pub cpu_burst_s: f64,
    /// It rests while some task waits for a CPU for more than this share of the time.
    pub most_waited_cpu: f64,
    /// The same for memory.
    pub most_waited_memory: f64,
    /// It rests while more tasks want a CPU, for each CPU.
    pub most_load: f64,
    /// Whether dirty pages are written before the run that follows one without gain.
    pub sync: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            // The kernel's own default, a proactiveness of 20.
            target: Target::Score { above: 90, until: 80 },
            headroom: 0.05,
            cpu_share: 0.05,
            cpu_burst_s: 5.0,
            // On a busy host some task always waits, and the share of a CPU bounds it already.
            most_waited_cpu: 1.0,
            most_waited_memory: 0.2,
            most_load: 16.0,
            // Others' writes would wait for it.
            sync: false,
        }
    }
}

impl Target {
    /// The kernel's thresholds for a value of `vm.compaction_proactiveness`.
    pub fn of_proactiveness(rules: ProactiveRules, proactiveness: u32) -> Target {
        Target::Score {
            above: fragmentation_score_high(rules, proactiveness),
            until: fragmentation_score_low(rules, proactiveness),
        }
    }

    /// The order of the blocks in question; the score is about huge pages.
    pub fn order(self, huge_order: u32) -> u32 {
        match self {
            Target::Blocks { order, .. } => order,
            Target::Score { .. } => huge_order,
        }
    }
}
