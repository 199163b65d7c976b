//! An event, as a line of the log.

use super::reason::{NoGain, Rest};
use super::rules::Rules;
use crate::bound::Effort;
use crate::clock::unix_s;
use serde::{Deserialize, Serialize};

/// Name and version of a line's schema.
pub const SCHEMA: &str = "kontig.guard/1";

/// A line of the log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Event {
    pub schema: &'static str,
    pub unix_s: f64,
    /// `None` where all nodes are meant.
    pub node: Option<u32>,
    #[serde(flatten)]
    pub what: What,
}

impl Event {
    /// An event of this moment.
    pub fn now(node: Option<u32>, what: What) -> Event {
        Event { schema: SCHEMA, unix_s: unix_s(), node, what }
    }
}

/// The kinds of events.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// A node is watched from now on, or by new rules.
    Watches {
        rules: Rules,
        /// The kernel compacts beside it, with this proactiveness.
        beside_kernel: Option<u64>,
    },
    /// The node is left alone, and why; told when the reason changes, and every ten minutes.
    Rests {
        at_hand: u64,
        score: u64,
        #[serde(flatten)]
        why: Rest,
    },
    /// Dirty pages were written ahead of a run, which waited this long for them.
    Synced { seconds: f64 },
    /// A run of this program.
    Compacted {
        before: u64,
        after: u64,
        score: u64,
        pages_moved: Option<u64>,
        pages_not_moved: Option<u64>,
        cpu_s: f64,
        seconds: f64,
        /// Blocks used up in a second, of late.
        demand: f64,
        #[serde(flatten)]
        no_gain: Option<NoGain>,
    },
    /// A run that was only thought of.
    WouldCompact {
        at_hand: u64,
        score: u64,
        /// Blocks that it lacks.
        lacks: u64,
        /// The gain and cost of the kernel's compaction, by the engine; null where the frames
        /// may not be read.
        predicted: Option<Effort>,
        /// The fewest page moves for as many blocks.
        fewest_moves: Option<u64>,
        not_predicted: Option<String>,
    },
    /// The kernel was set to compact by itself.
    Drives { proactiveness: u64, at_hand: u64 },
    /// The kernel's setting is as it was.
    Released { before: u64, at_hand: u64 },
    /// A setting keeps the value that somebody else has given it while it was changed.
    Left { path: String, was: String, is: String },
    /// A setting has its value again that a killed guard had changed.
    Restored { path: String, was: String },
    /// It has not: it could not be written, or the journal could not be read, and then path and
    /// value are null.
    NotRestored { path: Option<String>, was: Option<String>, journal: String, why: String },
    /// The policy was read anew.
    PolicyRead,
    /// It was not: the old one holds.
    PolicyRefused { why: String },
    /// A file could not be read or written; it goes on.
    Failed { why: String },
    /// The end, with what it all came to. Of guard's own CPU time, looks at every frame took
    /// `looks_cpu_s`.
    Ended { seconds: f64, own_cpu_s: f64, looks_cpu_s: f64, nodes: Vec<Tally> },
}

/// All that was found and done on a node.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    pub node: u32,
    /// Seconds for which it was watched.
    pub watched_s: f64,
    /// Those in which it had what is kept.
    pub kept_s: f64,
    pub runs: u64,
    /// Runs that gained nothing.
    pub fruitless: u64,
    /// Blocks that there were more after runs which moved pages than before them, whoever freed
    /// them.
    pub gained: u64,
    /// Null where the kernel compacts by itself, or does not count them.
    pub pages_moved: Option<u64>,
    /// Seconds of a CPU for the runs; null where the kernel's own thread has them.
    pub cpu_s: Option<f64>,
}

impl Tally {
    /// Of a node for which nothing was done yet, where runs are counted.
    pub fn counted(node: u32) -> Tally {
        Tally { pages_moved: Some(0), cpu_s: Some(0.0), ..Tally::driven(node) }
    }

    /// Of a node that the kernel compacts by itself: nobody counts what that costs.
    pub fn driven(node: u32) -> Tally {
        Tally { node, ..Tally::default() }
    }
}
