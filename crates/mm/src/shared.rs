//! What every zone shares: the profile, the tunables, the counters and the trace.

use crate::event::Trace;
use crate::profile::Profile;
use crate::sysctl::{SYSCTL_COUNT, Tunables};
use crate::vmstat::Vmstat;
use crate::work::Work;

/// Shared by all zones of a machine.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) profile: Profile,
    pub(crate) tunables: Tunables,
    /// As boot set them.
    pub(crate) at_boot: Tunables,
    /// Whether something would have been decided otherwise without the setting, for each of [`crate::sysctl::SYSCTLS`].
    pub(crate) mattered: [bool; SYSCTL_COUNT],
    pub(crate) vmstat: Vmstat,
    pub(crate) trace: Trace,
    pub(crate) work: Work,
}
