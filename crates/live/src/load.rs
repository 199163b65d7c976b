//! How busy a host is: the tasks that want its CPUs, and the share of the time in which some wait.
//!
//! Work at an ordinary priority takes as many times longer as tasks share a CPU: starting a
//! process, looking at the result, the kernel's own workers. The compaction itself has the highest
//! priority ([`crate::prepare::hurry`]) and hardly waits, unless this process is in a control group
//! with a share of the CPUs.

use crate::cgroup;
use crate::host::proc;
use crate::roots::Roots;
use kontig_procfs::{Pressure, ZoneInfo};
use kontig_text::percent;
use serde::{Deserialize, Serialize};

/// The load of a host. A field is `None` if the kernel does not report it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Load {
    pub cpus: u64,
    /// Tasks that run or want to: the load average of the last minute, or the tasks of this moment
    /// where there are more.
    pub tasks: f64,
    /// The share of the time in which some task waited for a CPU, of the last 10 or 60 seconds:
    /// whichever is more.
    pub waited_cpu: Option<f64>,
    /// The same for memory.
    pub waited_memory: Option<f64>,
    /// The same for files and swap.
    pub waited_io: Option<f64>,
    /// This process is in a control group that shares the CPUs with others. A priority counts
    /// within the group only, so what it starts cannot go before all others.
    #[serde(default)]
    pub in_cpu_group: bool,
}

impl Load {
    /// The load now; `None` where the host reports neither its load nor its CPUs.
    pub fn read(roots: &Roots) -> Option<Load> {
        let zones = proc(roots, "zoneinfo", ZoneInfo::parse).ok()?;
        let cpus = zones.cpus()? as u64;
        let text = roots.read_proc("loadavg").ok()?;
        let mut fields = text.split_whitespace();
        let average: f64 = fields.next()?.parse().ok()?;
        // `13/161` of all tasks; one of them is this.
        let running =
            fields.nth(2).and_then(|field| field.split_once('/')?.0.parse().ok()).map_or(0.0, |n: f64| n - 1.0);
        Some(Load {
            cpus: cpus.max(1),
            tasks: average.max(running),
            waited_cpu: waited(roots, "cpu"),
            waited_memory: waited(roots, "memory"),
            waited_io: waited(roots, "io"),
            in_cpu_group: cgroup::shares_cpus(roots),
        })
    }

    /// Upper bound on the slowdown of CPU-bound work: 1 + tasks per CPU × the largest share of time
    /// in which some task stalls. Without PSI that share is 1.
    pub fn stretch(&self) -> f64 {
        let waits = [self.waited_cpu, self.waited_memory, self.waited_io];
        let share = waits.into_iter().flatten().reduce(f64::max).unwrap_or(1.0);
        1.0 + self.tasks / self.cpus as f64 * share
    }

    /// The same for the compaction itself, which goes before all other tasks where it can.
    pub fn stretch_of_compaction(&self) -> f64 {
        if self.in_cpu_group { self.stretch() } else { 1.0 }
    }

    /// The load in words.
    pub fn words(&self) -> String {
        let waits = [("CPUs", self.waited_cpu), ("memory", self.waited_memory), ("disks", self.waited_io)];
        let said: Vec<String> =
            waits.iter().filter_map(|(what, share)| Some(format!("for {what} {}", percent((*share)?)))).collect();
        let waited = match said.is_empty() {
            true => "it is not known how long they wait".into(),
            false => format!("some waited {} of the time", said.join(", ")),
        };
        let group = if self.in_cpu_group { "; a control group keeps the compaction from going first" } else { "" };
        format!("{:.1} tasks on {} CPUs; {waited}{group}", self.tasks, self.cpus)
    }
}

fn waited(roots: &Roots, what: &str) -> Option<f64> {
    let pressure = proc(roots, &format!("pressure/{what}"), Pressure::parse).ok()?;
    let some = pressure.stall("some")?;
    [10, 60].into_iter().filter_map(|seconds| some.share(seconds)).max().map(|share| f64::from(share) / 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ZONEINFO: &str = "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     \
        1024\n        min      1\n        low      2\n        high     3\n        spanned  4096\n        \
        present  4096\n        managed  4096\n        protection: (0)\n      nr_free_pages \
        1024\n  pagesets\n    cpu: 0\n              count: 0\n    cpu: 1\n              \
        count: 0\n  node_unreclaimable:  0\n  start_pfn:           0\n";

    fn host(loadavg: &str, cpu: &str) -> (tempfile::TempDir, Roots) {
        let tree = tempfile::tempdir().expect("a directory");
        fs::create_dir(tree.path().join("pressure")).expect("made");
        let write = |file: &str, text: &str| fs::write(tree.path().join(file), text).expect("written");
        write("zoneinfo", ZONEINFO);
        write("loadavg", loadavg);
        if !cpu.is_empty() {
            write("pressure/cpu", &format!("some {cpu} avg300=0.00 total=7\n"));
        }
        let roots = Roots { procfs: tree.path().into(), ..Roots::default() };
        (tree, roots)
    }

    #[test]
    fn a_busy_host_takes_as_many_times_longer_as_tasks_share_a_cpu() {
        let (_tree, roots) = host("10.00 9.00 6.00 7/161 2996\n", "avg10=80.00 avg60=50.00");
        let load = Load::read(&roots).expect("it says both");
        assert_eq!((load.cpus, load.tasks, load.waited_cpu, load.waited_io), (2, 10.0, Some(0.8), None));
        assert_eq!(load.stretch(), 5.0);
        assert_eq!(load.stretch_of_compaction(), 1.0);
        assert_eq!(load.words(), "10.0 tasks on 2 CPUs; some waited for CPUs 80 % of the time");
    }

    #[test]
    fn a_host_at_rest_takes_no_longer_and_one_that_has_just_become_busy_does() {
        let stretch = |loadavg: &str, cpu: &str| {
            let (_tree, roots) = host(loadavg, cpu);
            Load::read(&roots).map(|load| load.stretch())
        };
        assert_eq!(stretch("0.00 0.00 0.00 1/161 2996\n", "avg10=0.00 avg60=0.00"), Some(1.0));
        assert_eq!(stretch("0.00 0.00 0.00 5/161 2996\n", "avg10=100.00 avg60=10.00"), Some(3.0));
        assert_eq!(stretch("4.00 0.00 0.00 1/161 2996\n", ""), Some(3.0), "without PSI tasks always wait");
        assert_eq!(stretch("", ""), None);
    }

    #[test]
    fn in_a_group_with_a_share_of_the_cpus_the_compaction_waits_as_all_others_do() {
        let (tree, roots) = host("10.00 9.00 6.00 7/161 2996\n", "avg10=80.00 avg60=50.00");
        fs::create_dir(tree.path().join("self")).expect("made");
        let stretch = |groups: &str| {
            fs::write(tree.path().join("self/cgroup"), groups).expect("written");
            Load::read(&roots).map(|load| load.stretch_of_compaction())
        };
        assert_eq!(stretch("4:cpu,cpuacct:/\n3:memory:/a\n"), Some(1.0));
        assert_eq!(stretch("4:cpu,cpuacct:/a\n"), Some(5.0));
    }
}
