//! `/proc/vmstat` of a machine: its state, and the events the engine counts.

use super::format::{FORMATS, Format};
use super::items::{NodeItems, ZoneItems};
use crate::{Counters, VmStat};
use kontig_mm::{Memory, VmEvent};

impl VmStat {
    /// The counters of a machine.
    pub fn of(m: &Memory) -> VmStat {
        let counted = VmStat::counted(m);
        VmStat(Format::of(m.profile()).vmstat().0.with(|name| counted.get(name).unwrap_or(0)))
    }

    /// The counters that the engine has; the others are 0 in [`VmStat::of`].
    pub fn counted(m: &Memory) -> Counters {
        let (zones, nodes) = (ZoneItems::of(m, m.zones().iter()), NodeItems::of(m, m.nodes().iter()));
        let value = |name: &str| zones.get(name).or_else(|| nodes.get(name)).or_else(|| event(m, name));
        let names = Format::of(m.profile()).vmstat();
        names.0.names().filter_map(|name| Some((name.to_string(), value(name)?))).collect()
    }

    /// The counter names of all known kernels; a name that several kernels list occurs several
    /// times.
    pub fn of_all_kernels() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().flat_map(Format::counter_names)
    }
}

/// The event counter of this name, if the engine has it.
pub(super) fn event(m: &Memory, name: &str) -> Option<u64> {
    if name == "allocstall" {
        // Up to 4.7 it is a single counter, whatever zones the request could use.
        let stalls = m.vmstat().iter().filter(|(e, _)| e.name().starts_with("allocstall_"));
        return Some(stalls.map(|(_, n)| n).sum());
    }
    VmEvent::ALL.iter().find(|e| e.name() == name).map(|e| m.vmstat().get(*e))
}
