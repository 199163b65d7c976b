//! Why guard leaves a node alone, and why a run gained nothing.

use serde::{Deserialize, Serialize};

/// Why a node is left alone.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Rest {
    /// It has what is kept.
    AtTarget,
    /// The operator has said so.
    Held,
    /// The kernel keeps the score by itself, with this proactiveness.
    KernelCompacts { proactiveness: u64 },
    /// It drives the kernel's setting, and the kernel begins above `above` at the earliest.
    BelowScore { above: u64 },
    /// Its free memory makes `possible` blocks at most, and it has nearly all of them.
    NoFreeMemory { possible: u64 },
    /// Tasks wait for a CPU, this share of the time.
    WaitsForCpu { share: f64 },
    /// Tasks wait for memory, this share of the time.
    WaitsForMemory { share: f64 },
    /// Tasks want the CPUs, `load` for each of them.
    Busy { load: f64 },
    /// The CPU time is used up; a run has to wait `for_s` seconds.
    Budget { for_s: f64 },
    /// The last run gained nothing; the next one has to wait `for_s` seconds.
    BackOff { for_s: f64, after: NoGain },
}

impl Rest {
    /// Its name in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Rest::AtTarget => "at_target",
            Rest::Held => "held",
            Rest::KernelCompacts { .. } => "kernel_compacts",
            Rest::BelowScore { .. } => "below_score",
            Rest::NoFreeMemory { .. } => "no_free_memory",
            Rest::WaitsForCpu { .. } => "waits_for_cpu",
            Rest::WaitsForMemory { .. } => "waits_for_memory",
            Rest::Busy { .. } => "busy",
            Rest::Budget { .. } => "budget",
            Rest::BackOff { .. } => "back_off",
        }
    }
}

/// Why a run gained nothing.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "no_gain", rename_all = "snake_case")]
pub enum NoGain {
    /// No block is without a page of the kernel's that stays.
    Poisoned {
        blocks: u64,
    },
    /// Blocks could be emptied, but there is no room outside them for their pages.
    NoRoom {
        emptiable: u64,
    },
    /// Nothing is left to empty.
    NotFragmented,
    /// Pages did not move: somebody holds them.
    Pinned {
        failed: u64,
    },
    /// The kernel looked at no frame.
    NothingScanned,
    /// Blocks were made, `most` at once, and somebody took them.
    Taken {
        most: u64,
    },
    /// Pages moved, and no block became whole.
    NoBlockWhole {
        moved: u64,
    },
    /// The frames would tell, and a look at them takes more of a CPU than the budget has.
    NotLooked {
        needs_s: f64,
    },
    /// The process that compacts was killed by somebody.
    Killed {
        signal: i32,
    },
    /// It was only asked what a run would gain.
    DryRun,
    Unknown,
}

impl NoGain {
    /// Its name in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            NoGain::Poisoned { .. } => "poisoned",
            NoGain::NoRoom { .. } => "no_room",
            NoGain::NotFragmented => "not_fragmented",
            NoGain::Pinned { .. } => "pinned",
            NoGain::NothingScanned => "nothing_scanned",
            NoGain::Taken { .. } => "taken",
            NoGain::NoBlockWhole { .. } => "no_block_whole",
            NoGain::NotLooked { .. } => "not_looked",
            NoGain::Killed { .. } => "killed",
            NoGain::DryRun => "dry_run",
            NoGain::Unknown => "unknown",
        }
    }

    /// Whether the next run may gain something though nothing else has changed: the kernel may have
    /// ended this one at a folio that it could not move then.
    pub const fn may_pass(self) -> bool {
        use NoGain::{NoBlockWhole, NotLooked, Taken, Unknown};
        matches!(self, NoBlockWhole { .. } | Taken { .. } | NotLooked { .. } | Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The names that the type itself lists where it knows none of this name.
    fn names<T: for<'a> Deserialize<'a> + std::fmt::Debug>(tag: &str) -> BTreeSet<String> {
        let refused = serde_json::from_str::<T>(&format!("{{\"{tag}\":\"\"}}")).expect_err("no name").to_string();
        let (_, listed) = refused.split_once("expected one of ").expect("a list");
        listed.split('`').skip(1).step_by(2).map(str::to_string).collect()
    }

    /// The name of a reason, once it is seen that the log has the same.
    fn name_of(value: &impl Serialize, tag: &str, name: &str) -> String {
        assert_eq!(serde_json::to_value(value).expect("JSON")[tag], name);
        name.to_string()
    }

    #[test]
    fn the_log_series_and_the_page_for_operators_have_one_name_for_each_reason() {
        let no_gain = [
            NoGain::Poisoned { blocks: 1 },
            NoGain::NoRoom { emptiable: 1 },
            NoGain::NotFragmented,
            NoGain::Pinned { failed: 1 },
            NoGain::NothingScanned,
            NoGain::Taken { most: 1 },
            NoGain::NoBlockWhole { moved: 1 },
            NoGain::NotLooked { needs_s: 1.0 },
            NoGain::Killed { signal: 9 },
            NoGain::DryRun,
            NoGain::Unknown,
        ];
        let why = [
            Rest::AtTarget,
            Rest::Held,
            Rest::KernelCompacts { proactiveness: 20 },
            Rest::BelowScore { above: 15 },
            Rest::NoFreeMemory { possible: 1 },
            Rest::WaitsForCpu { share: 1.0 },
            Rest::WaitsForMemory { share: 1.0 },
            Rest::Busy { load: 1.0 },
            Rest::Budget { for_s: 1.0 },
            Rest::BackOff { for_s: 1.0, after: NoGain::Unknown },
        ];
        let page = include_str!("../../../../docs/operator/guard.md");
        let in_table = |head: &str, name: &str| {
            let table =
                page.lines().skip_while(|line| !line.starts_with(head)).take_while(|line| line.starts_with('|'));
            let mut first = table.filter_map(|row| row.split('|').nth(1));
            first.any(|cell| cell.contains(&format!("`{name}`")))
        };
        let said = no_gain.iter().map(|why| name_of(why, "no_gain", why.name())).collect::<BTreeSet<_>>();
        assert_eq!(said, names::<NoGain>("no_gain"));
        said.iter().for_each(|name| assert!(in_table("| `no_gain` |", name), "{name}"));
        let said = why.iter().map(|why| name_of(why, "why", why.name())).collect::<BTreeSet<_>>();
        assert_eq!(said, names::<Rest>("why"));
        said.iter().for_each(|name| assert!(in_table("| reason (`why`) |", name), "{name}"));
    }
}
