//! Event logs: tracepoints with their times, and how many there were of each kind, kept or not.

use serde::{Deserialize, Serialize};

/// An event with its time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct TimedEvent {
    /// When it happened on the simulated machine, ns.
    pub at_ns: u64,
    /// The tracepoint in the kernel's format.
    pub event: String,
}

/// Events of one kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct EventCount {
    /// How often it happened.
    pub happened: u64,
    /// How many of those are not among the events kept.
    pub dropped: u64,
}
