//! `/proc/vmstat` of a machine: its state, and the events the engine counts.

use super::format::{FORMATS, Format};
use super::items::{NodeItems, ZoneItems};
use crate::VmStat;
use kontig_mm::{Memory, VmEvent};

impl VmStat {
    /// The counters of a machine.
    pub fn of(m: &Memory) -> VmStat {
        let (zones, nodes) = (ZoneItems::of(m, m.zones().iter()), NodeItems::of(m, m.nodes().iter()));
        let value = |name: &str| zones.get(name).or_else(|| nodes.get(name)).or_else(|| event(m, name)).unwrap_or(0);
        VmStat(Format::of(m.profile()).vmstat().0.with(value))
    }

    /// The names of the counters of all kernels whose texts are known, those of several as often.
    pub fn of_all_kernels() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().flat_map(Format::counter_names)
    }
}

/// The event counter of this name, if the engine has it.
pub(super) fn event(m: &Memory, name: &str) -> Option<u64> {
    VmEvent::ALL.iter().find(|e| e.name() == name).map(|e| m.vmstat().get(*e))
}
