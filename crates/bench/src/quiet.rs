//! Whether the machine was quiet: CPU time that others used while a benchmark ran.

use crate::usage::own_and_children_s;
use std::fs;

/// Others that use less of a CPU than this do not matter.
const QUIET: f64 = 0.05;

/// The time a measurement began, in CPU time of the machine and of this process.
pub struct Watch(Option<Times>);

/// CPU time and elapsed time since boot, in seconds.
#[derive(Clone, Copy)]
struct Times {
    /// Of all programs and interrupts, and what a hypervisor took.
    busy: f64,
    /// Of this process and the children it has waited for.
    own: f64,
    now: f64,
}

impl Watch {
    pub fn start() -> Watch {
        Watch(times())
    }

    /// CPUs that others have used since the start, on average; `None` if `/proc/stat` cannot be
    /// read or no time has passed.
    pub fn others(&self) -> Option<f64> {
        let (before, after) = (self.0?, times()?);
        let elapsed = after.now - before.now;
        let others = (after.busy - before.busy) - (after.own - before.own);
        (elapsed > 0.0).then(|| (others / elapsed).max(0.0))
    }
}

/// Says that the machine was not quiet, if others used this many CPUs.
pub fn not_quiet(others: Option<f64>) -> Option<String> {
    let others = others.filter(|others| *others > QUIET)?;
    Some(format!("NOT QUIET: other programs used {others:.2} CPUs meanwhile; times and ranges are not the machine's"))
}

fn times() -> Option<Times> {
    // SAFETY: a number that the system always has.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let busy = busy(&fs::read_to_string("/proc/stat").ok()?)? as f64 / ticks;
    let now = fs::read_to_string("/proc/uptime").ok()?.split_whitespace().next()?.parse().ok()?;
    Some(Times { busy, own: own_and_children_s()?, now })
}

/// Ticks of all CPUs but idle and waiting ones. Guests' time is part of the user's.
fn busy(stat: &str) -> Option<u64> {
    let mut words = stat.lines().find_map(|line| line.strip_prefix("cpu "))?.split_whitespace();
    let mut sum = 0;
    for name in ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"] {
        let ticks: u64 = words.next()?.parse().ok()?;
        if !matches!(name, "idle" | "iowait") {
            sum += ticks;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_cpus_are_not_busy() {
        assert_eq!(busy("cpu  10 20 30 4000 500 6 7 8 9 0\ncpu0 1 2 3\n"), Some(81));
        assert_eq!(busy("cpu0 1 2 3\n"), None);
    }

    #[test]
    fn others_are_what_this_process_did_not_use() {
        let at = |busy, own| Watch(Some(Times { busy, own, now: times().expect("/proc/stat").now - 10.0 }));
        let now = times().expect("/proc/stat");
        let busy = not_quiet(at(now.busy - 30.0, now.own - 10.0).others()).expect("two CPUs are busy");
        assert!(busy.starts_with("NOT QUIET: other programs used "), "{busy}");
        assert!(at(now.busy - 30.0, now.own - 10.0).others().expect("time has passed") > 1.0);
        assert_eq!([not_quiet(Some(0.01)), not_quiet(None)], [None, None]);
    }
}
