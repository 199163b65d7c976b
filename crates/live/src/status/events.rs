//! Counters of compaction, reclaim and huge pages: since boot, and over an interval.

use crate::host::Host;
use serde::Serialize;

/// Counters and pressure of a host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Events {
    /// Seconds of the interval; null if none was waited for.
    pub interval_s: Option<f64>,
    /// Counters of `/proc/vmstat`, in the order of [`COUNTERS`]; one that the kernel does not have
    /// is left out.
    pub counters: Vec<Counter>,
    /// How long tasks waited for memory (`/proc/pressure/memory`); null where the kernel does not
    /// tell.
    pub pressure: Option<Pressure>,
}

/// A counter of the host, since boot and lately.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Counter {
    /// `allocstall` and `allocstall_*` of each zone are one: `allocstall`.
    pub name: &'static str,
    pub since_boot: u64,
    /// Over the interval; null if none was waited for.
    pub interval: Option<u64>,
}

/// How long tasks waited for memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pressure {
    /// Some task waited: seconds since boot.
    pub some_s: f64,
    /// As a share of the last ten seconds.
    pub some_10s: Option<f64>,
    /// As a share of the last five minutes.
    pub some_300s: Option<f64>,
    /// Seconds of the interval that some task waited.
    pub some_interval_s: Option<f64>,
    /// All tasks waited: seconds since boot.
    pub full_s: Option<f64>,
}

/// The counters that are shown.
pub const COUNTERS: [&str; 25] = [
    "compact_stall",
    "compact_fail",
    "compact_success",
    "compact_daemon_wake",
    "compact_migrate_scanned",
    "compact_free_scanned",
    "compact_isolated",
    "compact_daemon_migrate_scanned",
    "compact_daemon_free_scanned",
    "pgmigrate_success",
    "pgmigrate_fail",
    "allocstall",
    "pgscan_direct",
    "pgsteal_direct",
    "pgscan_kswapd",
    "pgsteal_kswapd",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_fault_fallback_charge",
    "thp_collapse_alloc",
    "thp_collapse_alloc_failed",
    "thp_split_page",
    "thp_deferred_split_page",
    "htlb_buddy_alloc_success",
    "htlb_buddy_alloc_fail",
];

/// A counter of a host, those of several zones added up.
pub(crate) fn count(host: &Host, name: &str) -> Option<u64> {
    host.counter(name).or_else(|| {
        let vmstat = host.vmstat.as_ref().ok()?;
        let of_zones = vmstat.0.iter().filter(|(n, _)| n.strip_prefix(name).is_some_and(is_zone));
        of_zones.map(|(_, value)| value).reduce(u64::saturating_add)
    })
}

/// The ends of the names of counters of one zone.
const ZONES: [&str; 6] = ["_dma", "_dma32", "_normal", "_high", "_movable", "_device"];

/// Whether the rest after a counter's name is a zone's name.
fn is_zone(rest: &str) -> bool {
    ZONES.contains(&rest)
}

/// The name of a zone's counter without the zone's; `None` if it is of no zone.
pub(crate) fn without_zone(name: &str) -> Option<&str> {
    ZONES.iter().find_map(|zone| name.strip_suffix(zone))
}

impl Events {
    pub(super) fn of(host: &Host, before: Option<(&Host, f64)>) -> Events {
        let counter = |name: &'static str| {
            let since_boot = count(host, name)?;
            let earlier = before.and_then(|(before, _)| count(before, name));
            Some(Counter { name, since_boot, interval: earlier.map(|earlier| since_boot.saturating_sub(earlier)) })
        };
        Events {
            interval_s: before.map(|(_, seconds)| seconds),
            counters: COUNTERS.into_iter().filter_map(counter).collect(),
            pressure: pressure(host, before.map(|(before, _)| before)),
        }
    }

    /// A counter of the host, since boot and lately.
    pub fn get(&self, name: &str) -> Option<&Counter> {
        self.counters.iter().find(|counter| counter.name == name)
    }
}

fn pressure(host: &Host, before: Option<&Host>) -> Option<Pressure> {
    let seconds = |us: u64| us as f64 / 1e6;
    let some = |host: &Host| Some(host.pressure.as_ref().ok()?.stall("some")?.total_us);
    let stalls = host.pressure.as_ref().ok()?;
    let now = stalls.stall("some")?;
    let share = |s| now.share(s).map(|hundredths| f64::from(hundredths) / 10_000.0);
    Some(Pressure {
        some_s: seconds(now.total_us),
        some_10s: share(10),
        some_300s: share(300),
        some_interval_s: before.and_then(some).map(|earlier| seconds(now.total_us.saturating_sub(earlier))),
        full_s: stalls.stall("full").map(|full| seconds(full.total_us)),
    })
}
