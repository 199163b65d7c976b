//! Why guard leaves a node alone, and why a run gained nothing.

use serde::{Deserialize, Serialize};

/// Why a node is left alone.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Rest {
    /// It has what is kept.
    AtTarget,
    /// The operator has said so.
    Held,
    /// The kernel keeps the score by itself, with this proactiveness.
    KernelCompacts { proactiveness: u64 },
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
