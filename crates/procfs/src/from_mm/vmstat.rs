//! `/proc/vmstat` of a machine: its state, and the events the engine counts.

use super::format::{FORMATS, Format};
use super::items::{NodeItems, OF_NODES, OF_ZONES, ZoneItems};
use crate::VmStat;
use kontig_mm::{Counter, Memory, NodeStat, Profile, VmEvent};

/// Up to 4.7 one counter, whatever zones the request could use.
const ALLOCSTALL: Counter = Counter {
    name: "allocstall",
    words: "Direct reclaims; counted by zone since 4.8",
    ..VmEvent::AllocstallNormal.counter()
};

/// Up to 4.4 one counter, whether a mapping was split or the page.
const THP_SPLIT: Counter =
    Counter { name: "thp_split", words: "Huge pages split; two counters since 4.5", ..VmEvent::ThpSplitPage.counter() };

impl VmStat {
    /// The counters of the engine alone; what it does not count is 0.
    pub fn of(m: &Memory) -> VmStat {
        let counted = VmStat::counted(m);
        let value = |name: &str| counted.iter().find(|(counter, _)| counter.name == name).map(|(_, value)| *value);
        VmStat::of_kernel(m.profile(), |name| value(name).unwrap_or(0))
    }

    /// The text of the profile's kernel with these values.
    pub fn of_kernel(profile: &Profile, value: impl Fn(&str) -> u64) -> VmStat {
        VmStat(Format::of(profile).vmstat().0.with(value))
    }

    /// Everything the engine counts, under each kernel's name for it.
    pub fn counted(m: &Memory) -> Vec<(Counter, u64)> {
        let (zones, nodes) = (ZoneItems::of(m, m.zones().iter()), NodeItems::of(m, m.nodes().iter()));
        // Without an order of the LRU nothing is reclaimed, and nothing of reclaim is counted.
        let ordered = m.lru().is_ordered();
        let of_reclaim = |counter: &Counter| !ordered && !counter.is_level;
        let of_zones = OF_ZONES.iter().map(|(counter, value)| (*counter, value(&zones)));
        let of_nodes = OF_NODES.iter().map(|(counter, value)| (*counter, value(&nodes)));
        let stats = NodeStat::ALL.iter().map(|stat| (stat.counter(), nodes.stat(*stat)));
        let events = m.vmstat().iter().map(|(event, n)| (event.counter(), n));
        let of_nodes = of_nodes.chain(stats).filter(|(counter, _)| !of_reclaim(counter));
        of_zones.chain(of_nodes).chain(events).chain(older(m)).collect()
    }

    /// The declarations of all of these.
    pub fn declared() -> impl Iterator<Item = Counter> {
        let zones = OF_ZONES.iter().map(|(counter, _)| *counter);
        let nodes = OF_NODES.iter().map(|(counter, _)| *counter);
        let events = VmEvent::ALL.into_iter().map(VmEvent::counter);
        zones
            .chain(nodes)
            .chain(NodeStat::ALL.into_iter().map(NodeStat::counter))
            .chain(events)
            .chain([ALLOCSTALL, THP_SPLIT])
    }

    /// The names of the counters of all kernels whose texts are known, with repetitions.
    pub fn of_all_kernels() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().flat_map(Format::counter_names)
    }
}

/// Counts under names that only older kernels have.
fn older(m: &Memory) -> [(Counter, u64); 2] {
    [(ALLOCSTALL, stalls(m)), (THP_SPLIT, m.vmstat().get(VmEvent::ThpSplitPage))]
}

fn stalls(m: &Memory) -> u64 {
    m.vmstat().iter().filter(|(event, _)| event.name().starts_with("allocstall_")).map(|(_, n)| n).sum()
}

/// The event counter of this name, if the engine has it.
pub(super) fn event(m: &Memory, name: &str) -> Option<u64> {
    VmEvent::ALL.into_iter().find(|event| event.name() == name).map(|event| m.vmstat().get(event))
}
