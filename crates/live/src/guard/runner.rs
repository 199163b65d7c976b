//! One compaction of a node: a child writes to the node's file, and is killed as soon as that is
//! enough or the CPU time is used up.
//!
//! The kernel compacts on behalf of the process that writes, charges it with the time, and gives up
//! when it is killed. So the time is measured, and nothing is left behind whoever is killed: the
//! child ends with its parent.

use crate::prepare::release;
use crate::roots::{self, Roots};
use kontig_procfs::{ProcessStat, VmStat};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at the free blocks.
const INTERVAL: Duration = Duration::from_millis(5);
/// Seconds after which a run ends, whatever it has cost: it waits for a CPU then.
const LONGEST: Duration = Duration::from_secs(20);

/// The exit code of a writer that may not write the file, as of every command.
const NO_PERMISSION: i32 = 5;

/// The cost and the effect of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ran {
    pub seconds: f64,
    pub cpu_s: f64,
    /// Pages moved and not moved meanwhile, by anybody; `None` where the kernel does not say.
    pub moved: Option<u64>,
    pub failed: Option<u64>,
    /// Frames that compaction's scanners looked at.
    pub scanned: Option<u64>,
    /// The signal by which somebody else has killed the child, as the kernel does without memory.
    pub killed: Option<i32>,
}

/// The file that compacts a node; `None` where there is none that compacts this one alone. A kernel
/// without NUMA has only the one for all memory.
pub fn file(roots: &Roots, node: u32, is_only_node: bool) -> Option<PathBuf> {
    let own = roots.sys(format!("devices/system/node/node{node}/compact"));
    if own.exists() { Some(own) } else { is_only_node.then(|| roots.proc("sys/vm/compact_memory")) }
}

/// Whether this process may write a file, with all that may keep it from that, without writing.
///
/// # Errors
/// Why it may not.
pub fn may_write(file: &Path) -> io::Result<()> {
    Ok(accessat(CWD, file, Access::WRITE_OK, AtFlags::EACCESS)?)
}

/// Gives free pages on CPUs' lists back, where the count of free blocks does not see them. A kernel
/// without the file keeps few there.
pub fn drain(roots: &Roots, stop: &AtomicBool) {
    if let Some(path) = release::refresh(roots) {
        let _ = release::all(roots, &path, || stop.load(Ordering::Relaxed));
    }
}

/// Starts a process that writes 1 to a file.
pub type Writer<'a> = dyn Fn(&Path) -> io::Result<Child> + 'a;

/// Compacts by a write to this file, for `cpu_s` seconds of a CPU at most. `enough` is asked every
/// few milliseconds.
///
/// # Errors
/// The kernel's, if the file cannot be written or no process started.
pub fn run(
    roots: &Roots,
    path: &Path,
    (writer, stop): (&Writer, &AtomicBool),
    cpu_s: f64,
    mut enough: impl FnMut() -> bool,
) -> io::Result<Ran> {
    let (before, began) = (counters(roots), Instant::now());
    let mut child = Running(writer(path)?);
    let mut ran = Ran::default();
    loop {
        // The kernel keeps the time of a process that has ended until it is waited for.
        ran.cpu_s = on_cpu(child.0.id()).unwrap_or(ran.cpu_s);
        if let Some(status) = child.0.try_wait()? {
            ran.killed = status.signal();
            match status.code() {
                Some(0) | None => break,
                Some(NO_PERMISSION) => return Err(io::ErrorKind::PermissionDenied.into()),
                _ => return Err(io::Error::other("the process that writes to it failed")),
            }
        }
        if enough() || ran.cpu_s >= cpu_s || began.elapsed() > LONGEST || stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(INTERVAL);
    }
    ran.cpu_s = child.end(|| _ = enough()).unwrap_or(ran.cpu_s);
    drain(roots, stop);
    let after = counters(roots);
    let grown = |i: usize| Some(after[i]?.saturating_sub(before[i]?));
    let scanned = grown(2).zip(grown(3)).map(|(migrate, free)| migrate.saturating_add(free));
    Ok(Ran { seconds: began.elapsed().as_secs_f64(), moved: grown(0), failed: grown(1), scanned, ..ran })
}

const COUNTERS: [&str; 4] = ["pgmigrate_success", "pgmigrate_fail", "compact_migrate_scanned", "compact_free_scanned"];

fn counters(roots: &Roots) -> [Option<u64>; 4] {
    let vmstat = roots.parse_proc("vmstat", VmStat::parse).ok();
    COUNTERS.map(|name| vmstat.as_ref()?.get(name))
}

/// Seconds that a process has had a CPU; to a tick of 10 ms where the kernel has no `schedstat`.
pub(super) fn on_cpu(pid: u32) -> Option<f64> {
    let read = |file: &str| roots::read(Path::new(&format!("/proc/{pid}/{file}"))).ok();
    if let Some(text) = read("schedstat") {
        let ns: f64 = text.split_whitespace().next()?.parse().ok()?;
        return Some(ns / 1e9);
    }
    let stat = ProcessStat::parse("stat", &read("stat")?).ok()?;
    Some(stat.ticks() as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// A process that does not outlive this value.
pub(super) struct Running(pub Child);

impl Running {
    /// Kills it; returns the seconds that it has had a CPU in all, which the kernel keeps until it
    /// is waited for. One that waits for a page's I/O ends after that; `meanwhile` is called every
    /// few milliseconds.
    pub fn end(mut self, mut meanwhile: impl FnMut()) -> Option<f64> {
        let _ = self.0.kill();
        let pid = Pid::from_raw(self.0.id().try_into().ok()?)?;
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while waitid(WaitId::Pid(pid), ended).ok()?.is_none() {
            meanwhile();
            std::thread::sleep(INTERVAL);
        }
        on_cpu(self.0.id())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn shell(script: &str, cpu_s: f64, enough: impl FnMut() -> bool) -> io::Result<Ran> {
        let roots = Roots { procfs: "/nowhere".into(), sysfs: "/nowhere".into() };
        let writer = |path: &Path| Command::new("/bin/sh").arg("-c").arg(script).arg(path).spawn();
        run(&roots, Path::new("/nowhere/compact"), (&writer, &AtomicBool::new(false)), cpu_s, enough)
    }

    #[test]
    fn a_run_ends_when_that_is_enough_and_when_its_time_is_used_up() {
        let ran = shell("exec sleep 60", 1.0, || true).expect("it ran");
        assert!(ran.cpu_s < 1.0 && ran.seconds < 30.0, "{ran:?}");
        let ran = shell("while :; do :; done", 0.05, || false).expect("it ran");
        assert!(ran.cpu_s >= 0.05 && ran.seconds < 20.0, "{ran:?}");
    }

    #[test]
    fn a_child_that_somebody_kills_is_no_failure_of_the_file() {
        let ran = shell("kill -9 $$", 1.0, || false).expect("it ran");
        assert_eq!(ran.killed, Some(9));
    }

    #[test]
    fn the_file_for_all_memory_is_for_a_host_with_one_node() {
        let roots = Roots { procfs: "/nowhere".into(), sysfs: "/nowhere".into() };
        assert_eq!(file(&roots, 0, true), Some("/nowhere/sys/vm/compact_memory".into()));
        assert_eq!(file(&roots, 0, false), None);
    }

    #[test]
    fn a_file_that_may_not_be_written_is_told_from_one_that_fails() {
        let kind = |script| shell(script, 1.0, || false).expect_err("it failed").kind();
        assert_eq!(kind("exit 5"), io::ErrorKind::PermissionDenied);
        assert_eq!(kind("exit 2"), io::ErrorKind::Other);
    }

    #[test]
    fn after_a_run_cpus_lists_are_emptied() {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().into(), sysfs: tree.path().join("sys") };
        let zoneinfo = concat!(
            "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     4096\n",
            "        min      10\n        low      20\n        high     30\n        spanned  8192\n",
            "        present  8192\n        managed  8192\n        protection: (0)\n      nr_free_pages 4096\n",
            "  pagesets\n    cpu: 0\n              count: 64\n  node_unreclaimable:  0\n  start_pfn:           0\n",
        );
        std::fs::create_dir_all(roots.proc("sys/vm")).expect("made");
        std::fs::write(roots.proc("zoneinfo"), zoneinfo).expect("written");
        std::fs::write(roots.proc("sys/vm/stat_refresh"), "").expect("written");
        std::fs::create_dir_all(roots.sys("devices/system/cpu")).expect("made");
        std::fs::write(roots.sys("devices/system/cpu/isolated"), "\n").expect("written");
        let looks = init(CreateFlags::NONBLOCK).expect("a watch");
        add_watch(&looks, roots.proc("sys/vm/stat_refresh"), WatchFlags::OPEN).expect("watched");
        let writer = |_: &Path| Command::new("/bin/true").spawn();
        let stop = AtomicBool::new(false);
        run(&roots, Path::new("/nowhere/compact"), (&writer, &stop), 1.0, || false).expect("it ran");
        assert!(rustix::io::read(&looks, &mut [0; 256]).is_ok_and(|bytes| bytes > 0), "nobody has read it");
    }
}
