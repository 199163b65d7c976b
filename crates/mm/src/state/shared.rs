//! The state that all zones share: the profile, the tunables, the counters and the trace.

use super::{SYSCTL_COUNT, Tunables};
use crate::event::{Event, Listen, Trace};
use crate::rules::Profile;
use crate::vmstat::Vmstat;
use crate::work::Work;

/// Shared by all zones of a machine.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) profile: Profile,
    pub(crate) tunables: Tunables,
    /// The values set at boot, or those of a host when it was imported.
    pub(crate) at_boot: Tunables,
    /// For each of [`crate::sysctl::SYSCTLS`], whether some decision would have differed without
    /// the setting.
    pub(crate) mattered: [bool; SYSCTL_COUNT],
    pub(crate) vmstat: Vmstat,
    pub(crate) trace: Trace,
    pub(crate) work: Work,
    /// A compaction run has begun since boot.
    pub(crate) has_compacted: bool,
}

impl Shared {
    /// Records an event if somebody listens to its group.
    #[inline(always)]
    pub(crate) fn emit(&mut self, what: Listen, event: impl FnOnce() -> Event) {
        if self.trace.listens_to(what) {
            self.record(event());
        }
    }

    #[cold]
    fn record(&mut self, event: Event) {
        // Makes sure that the next charge happens, so that this event gets a time.
        self.work.any = true;
        self.trace.push(event, self.work);
    }
}
