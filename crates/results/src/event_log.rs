//! Event logs: tracepoints with their times, and the number of each kind, stored or not.

use serde::{Deserialize, Serialize};

/// An event with its time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct TimedEvent {
    pub at_ns: u64,
    /// The tracepoint in the kernel's format.
    pub event: String,
}

/// The number of events of one kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct EventCount {
    pub happened: u64,
    /// Counted, but not stored.
    pub dropped: u64,
}
