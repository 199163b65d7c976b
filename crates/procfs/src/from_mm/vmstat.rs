//! `/proc/vmstat` of a machine: its state, and the events the engine counts.

use super::format::Format;
use super::items::Items;
use crate::VmStat;
use kontig_mm::{Memory, VmEvent};

impl VmStat {
    /// The counters of a machine.
    pub fn of(m: &Memory) -> VmStat {
        let items = Items::of(m, m.zones().iter());
        let event = |name: &str| VmEvent::ALL.iter().find(|e| e.name() == name).map(|e| m.vmstat().get(*e));
        // Up to 4.7 counted once, whatever zones the request could use.
        let all_stalls =
            || m.vmstat().iter().filter(|(e, _)| e.name().starts_with("allocstall_")).map(|(_, n)| n).sum();
        let event = |name: &str| if name == "allocstall" { Some(all_stalls()) } else { event(name) };
        VmStat(Format::of(m.profile()).vmstat().0.with(|name| items.get(name).or_else(|| event(name)).unwrap_or(0)))
    }
}
