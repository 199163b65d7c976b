//! Machines that begin as a host was found: `prepare = { kind = "snapshot", file = "host.snap" }`,
//! or `{ kind = "proc", buddyinfo = "buddyinfo.txt" }`.
//!
//! They are no work, so they have no task. The laboratory builds the machine from them; the named
//! machine gives costs and disks.

use crate::limits::within;
use serde::{Deserialize, Serialize};

/// The snapshot to begin with.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FoundState {
    /// A file of `kontig snapshot`.
    pub file: String,
}

/// Files of a host from which its state is estimated.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FoundProc {
    /// A copy of `/proc/buddyinfo`.
    pub buddyinfo: String,
    /// A copy of `/proc/pagetypeinfo`, which has the number of pageblocks. Without it zones are as
    /// large as the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagetypeinfo: Option<String>,
    /// The share of pages in use in movable pageblocks that are clean pages of files, %.
    #[serde(default)]
    pub files: f64,
}

impl FoundProc {
    /// Whether it can be read.
    pub(crate) fn check(&self) -> Result<(), String> {
        within("files", self.files, 100.0)
    }
}
