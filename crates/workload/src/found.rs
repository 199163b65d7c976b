//! A machine that begins as a real host was found: `prepare = { kind = "snapshot", file =
//! "host.snap" }`.
//!
//! It is no work, so it has no task. The laboratory builds the machine from it, with the host's
//! zones, CPUs and settings; the named machine gives costs and disks.

use serde::{Deserialize, Serialize};

/// The snapshot to begin with.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FoundState {
    /// A file of `kontig snapshot`.
    pub file: String,
}
