//! Results in the layout of MMTests, so that its own scripts compare simulated kernels as they do
//! real ones.
//!
//! A directory has, for each experiment or case, a log directory with one entry a variant, and in
//! it one a repetition or round: an *iteration*. The layout is that of MMTests since May 2019
//! (`RUN/iter-N/BENCHMARK`), with each file where both the last version that has all benchmarks
//! (commit d15fa84b) and the newest look for it. An iteration is written when its run has ended,
//! whole or not at all, and nothing is overwritten. Older versions find the same files under other
//! names (see `flat`).
//!
//! MMTests has no benchmark for everything that is simulated. `usemem`, `thpscale` and
//! `thpfioscale` appear under their own names. Each distribution of another run appears as the
//! latencies of `stutter`, whose rows are minimum, quartiles, percentiles, maximum and mean; the
//! result of a driver of huge pages as pass 1 of `stress-highalloc`; and the time of the measured
//! phases as `timedalloc`. The monitors belong to each of them.

mod flat;
mod logs;
mod monitors;

use crate::vmstat::{VmCounters, zoneinfo};
use kontig_error::files::{check_directory, remove};
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_results::Round;
use kontig_sim::Machine;
pub(crate) use logs::Times;
pub(crate) use monitors::Monitors;
use std::path::{Path, PathBuf};

/// The place of a run's iterations.
#[derive(Clone, Debug)]
pub struct MmtestsRun {
    pub dir: PathBuf,
    /// The number of the first iteration.
    pub first: u32,
}

/// Begin and end of the benchmarks, with snapshots of the machine. Newer versions look for the
/// snapshots elsewhere.
const TIMESTAMPS: &str = "tests-timestamp";
/// The list of benchmarks.
const ACTIVITY: &str = "tests-activity";

/// The time printed for the machine's boot, seconds. MMTests takes 0 for a missing time.
const BOOT: u64 = 1_000_000_000;

/// A time of the machine in seconds on MMTests' clock.
fn epoch(ns: u64) -> u64 {
    BOOT + ns / 1_000_000_000
}

/// The same in milliseconds.
pub(crate) fn epoch_ms(ns: u64) -> i64 {
    (BOOT * 1000 + ns / 1_000_000) as i64
}

/// Checks before anything runs that nothing is in a variant's place.
///
/// # Errors
/// If something is.
pub(crate) fn check_new(run: &Path) -> Result<(), Error> {
    flat::check_name(run)?;
    if run.symlink_metadata().is_ok() {
        let reason = format!(
            "{} exists, and results are never overwritten: give --mmtests another directory, or remove this one first",
            run.display()
        );
        return Err(AskedWrongly::Value(reason).into());
    }
    flat::check(run)
}

/// Checks before anything runs that a variant can be written.
///
/// # Errors
/// If the directory cannot be written to.
pub(crate) fn check_writable(run: &Path) -> Result<(), Error> {
    check_directory(run.parent().unwrap_or(Path::new(".")))
}

/// Removes what a run that is resumed left of its iterations: their rounds are measured again.
///
/// # Errors
/// If something cannot be removed.
pub(crate) fn clear(of: &MmtestsRun, rounds: u32) -> Result<(), Error> {
    let of_round = |n: u32| [of.dir.join(format!("iter-{n}")), part_of(&of.dir, n), flat::stamps(&of.dir, n)];
    (of.first..of.first + rounds).flat_map(of_round).try_for_each(|path| remove(&path))
}

/// The name of an iteration that is being written: MMTests takes every name that begins with iter-
/// for an iteration.
fn part_of(run: &Path, n: u32) -> PathBuf {
    run.join(format!(".iter-{n}.part"))
}

/// Puts a file under a second name: as a hard link where possible.
fn same(from: &Path, to: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    let linked = std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop));
    linked.map_err(|e| (to.into(), e))
}

/// One iteration of a run, from the moment it begins.
#[derive(Clone)]
pub(crate) struct Iteration {
    began_ns: u64,
    start: Snapshot,
}

/// The files MMTests keeps from before and after a benchmark.
#[derive(Clone)]
struct Snapshot {
    vmstat: String,
    zoneinfo: String,
}

impl Snapshot {
    fn of(m: &Machine) -> Snapshot {
        Snapshot { vmstat: vmstat(m), zoneinfo: zoneinfo(m).to_string() }
    }
}

/// `/proc/vmstat`, followed by the sum of the stalls that kernels since 4.8 count by zone: MMTests
/// gives all of them one name and takes the last line.
fn vmstat(m: &Machine) -> String {
    let vmstat = VmCounters::of(m);
    format!("{}allocstall {}\n", vmstat.text(m), vmstat.get("allocstall").unwrap_or(0))
}

impl Iteration {
    pub(crate) fn begin(m: &Machine) -> Iteration {
        Iteration { began_ns: m.now(), start: Snapshot::of(m) }
    }

    /// Writes it as the run's `n`th.
    ///
    /// # Errors
    /// The file that could not be written.
    pub(crate) fn write(
        self,
        run: &Path,
        n: u32,
        m: &Machine,
        of: (&Round, &Times),
        monitors: &mut Monitors,
    ) -> Result<(), Error> {
        let (round, times) = of;
        let benchmarks = logs::benchmarks(round, times);
        let whole = run.join(format!("iter-{n}"));
        let part = part_of(run, n);
        let mut write = || -> Result<(), (PathBuf, std::io::Error)> {
            let put = |name: &str, bytes: &[u8]| {
                let path = part.join(name);
                let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
                made.and_then(|()| std::fs::write(&path, bytes)).map_err(|e| (path, e))
            };
            let same = |name: &str, as_well: &str| same(&part.join(name), &part.join(as_well));
            put(TIMESTAMPS, self.stamps(&benchmarks, times, m.now(), &Snapshot::of(m)).as_bytes())?;
            same(TIMESTAMPS, "tests-sysstate")?;
            for benchmark in &benchmarks {
                benchmark.files.iter().try_for_each(|(name, bytes)| put(name, bytes))?;
            }
            for (monitor, bytes) in monitors.finish() {
                // All benchmarks are names of one measurement.
                let names: Vec<String> = benchmarks.iter().map(|b| format!("{monitor}-{}.gz", b.name)).collect();
                put(&names[0], &bytes)?;
                names[1..].iter().try_for_each(|name| same(&names[0], name))?;
            }
            put(ACTIVITY, logs::activity(&benchmarks).as_bytes())?;
            // Scripts also look for it beside the iterations, where each iteration puts the same.
            same(ACTIVITY, &format!("{ACTIVITY}.run"))?;
            let beside = run.join(ACTIVITY);
            std::fs::rename(part.join(format!("{ACTIVITY}.run")), &beside).map_err(|e| (beside, e))?;
            std::fs::rename(&part, &whole).map_err(|e| (whole.clone(), e))?;
            flat::add(run, n, &benchmarks)
        };
        write().map_err(|(path, e)| {
            let _ = std::fs::remove_dir_all(&part);
            Failed::Write { path: path.display().to_string(), reason: e.to_string() }.into()
        })
    }

    /// Begin and end of each benchmark, with the machine before and after it.
    fn stamps(&self, benchmarks: &[logs::Benchmark], times: &Times, now: u64, end: &Snapshot) -> String {
        let (began, ended) = (epoch(self.began_ns), epoch(now));
        let mut text = format!("start :: {began}\n");
        for logs::Benchmark { name, .. } in benchmarks {
            text += &format!("test begin :: {name} {began}\n");
            for (when, Snapshot { vmstat, zoneinfo }) in [("start", &self.start), ("end", end)] {
                text += &format!("file {when} :: /proc/vmstat\n{vmstat}file {when} :: /proc/zoneinfo\n{zoneinfo}");
            }
            text += &format!("test end :: {name} {ended}\n");
            text += &format!(
                "time :: {name} {:.2} user {:.2} system {:.2} elapsed\n",
                times.user_s, times.system_s, times.elapsed_s
            );
        }
        text + &format!("finish :: {ended}\n")
    }
}
