//! `/proc/vmstat` of a machine: its state, and the events the engine counts.

use super::format::{FORMATS, Format};
use super::items::Items;
use crate::VmStat;
use kontig_mm::{Memory, VmEvent};

impl VmStat {
    /// The counters of a machine.
    pub fn of(m: &Memory) -> VmStat {
        let items = Items::of(m, m.zones().iter());
        let event = |name: &str| VmEvent::ALL.iter().find(|e| e.name() == name).map(|e| m.vmstat().get(*e));
        VmStat(Format::of(m.profile()).vmstat().0.with(|name| items.get(name).or_else(|| event(name)).unwrap_or(0)))
    }

    /// The names of the counters of all kernels whose texts are known, those of several as often.
    pub fn of_all_kernels() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().flat_map(Format::counter_names)
    }
}
