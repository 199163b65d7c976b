//! What every zone shares: the profile, the tunables, the counters and the trace.

use crate::event::Trace;
use crate::profile::Profile;
use crate::sysctl::Tunables;
use crate::vmstat::Vmstat;
use crate::work::Work;

/// Shared by all zones of a machine.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) profile: Profile,
    pub(crate) tunables: Tunables,
    /// As boot set them.
    pub(crate) at_boot: Tunables,
    /// The settings, a bit for each, without which something would have been decided otherwise ([`crate::sysctl`]).
    pub(crate) mattered: u8,
    pub(crate) vmstat: Vmstat,
    pub(crate) trace: Trace,
    pub(crate) work: Work,
}
