//! The means of carrying a plan out: the host and the limits, the blocks that can be had, and the
//! counters that tell what a step cost.

use super::receipt::{Cost, Ended};
use crate::caller::Caller;
use crate::deferred;
use crate::error::ReadError;
use crate::host::buddyinfo;
use crate::need::Need;
use crate::roots::Roots;
use crate::snapshot::take::{found_zones, possible};
use crate::supply::Supply;
use kontig_procfs::VmStat;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How a plan is carried out.
pub struct Execution<'a> {
    pub roots: &'a Roots,
    /// The program that needs the blocks.
    pub caller: &'a Caller,
    pub journal: &'a Path,
    pub time: Duration,
    /// Raised to stop it early.
    pub stop: &'a AtomicBool,
    /// Starts a process that writes 1 to a file; with true, once dirty pages are on disk.
    pub writer: &'a dyn Fn(&Path, bool) -> std::io::Result<Child>,
}

impl Execution<'_> {
    /// The reason to end now a preparation that began then, if there is one.
    pub(super) fn over(&self, began: Instant) -> Option<Ended> {
        if self.stop.load(Ordering::Relaxed) {
            return Some(Ended::Stopped);
        }
        (began.elapsed() >= self.time).then_some(Ended::TimeOver)
    }

    pub(super) fn is_met(&self, needs: &[Need]) -> bool {
        supply(self.roots).is_ok_and(|supply| supply.for_caller(self.caller).meets(needs))
    }
}

/// The exit code of a child that may not write to the file.
pub const EXIT_NOT_PERMITTED: i32 = 5;

/// Blocks that can be had now, by files that anybody may read.
///
/// # Errors
/// If `zoneinfo` or `buddyinfo` cannot be read.
pub fn supply(roots: &Roots) -> Result<Supply, ReadError> {
    supply_of(roots, rustix::param::page_size() as u64)
}

/// The same of a host with pages of this size.
///
/// # Errors
/// As of [`supply`].
pub fn supply_of(roots: &Roots, page_size: u64) -> Result<Supply, ReadError> {
    let zones = deferred::zones(roots, page_size)?;
    let zones = found_zones(&zones, &buddyinfo(roots)?, None);
    possible(roots, &zones)?;
    Ok(Supply::of_zones(&zones))
}

/// The host's counters at one moment; `None` for those that cannot be read.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) moved: Option<u64>,
    not_moved: Option<u64>,
    scanned: Option<u64>,
    file_pages: Option<u64>,
}

pub(super) fn counters(roots: &Roots) -> Counters {
    let Ok(vmstat) = roots.parse_proc("vmstat", VmStat::parse) else { return Counters::default() };
    let scanned = vmstat.get("compact_migrate_scanned").zip(vmstat.get("compact_free_scanned"));
    Counters {
        moved: vmstat.get("pgmigrate_success"),
        not_moved: vmstat.get("pgmigrate_fail"),
        scanned: scanned.map(|(migrate, free)| migrate.saturating_add(free)),
        file_pages: vmstat.get("nr_file_pages"),
    }
}

impl Counters {
    pub(super) fn until(&self, roots: &Roots, took: Duration, cpu_seconds: Option<f64>, drops_cache: bool) -> Cost {
        let now = counters(roots);
        let grown = |before: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(before?));
        let cache = self.file_pages.zip(now.file_pages).filter(|_| drops_cache);
        Cost {
            seconds: took.as_secs_f64(),
            cpu_seconds,
            pages_moved: grown(self.moved, now.moved),
            pages_not_moved: grown(self.not_moved, now.not_moved),
            frames_scanned: grown(self.scanned, now.scanned),
            cache_bytes: cache.map(|(before, now)| [before, now].map(|n| n * rustix::param::page_size() as u64)),
        }
    }
}
