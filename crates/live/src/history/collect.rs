//! The files of a sample, and how they are read.
//!
//! Most are read every time. Two of them cost the kernel more, since it walks lists under a lock:
//! they are read once a minute, and a sample between repeats them. The lists of files are made
//! anew as often: groups, pools and threads come and go.

use super::sample::{BOOT_ID, INTERVAL, PAGE_SIZE, Sample, Stored};
use crate::clock::since_1970;
use crate::error::Unread;
use crate::host::page_size;
use crate::roots::{Roots, names};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Files below `/proc` that every sample has.
const EVERY_TIME: [&str; 10] = [
    "buddyinfo",
    "zoneinfo",
    "vmstat",
    "meminfo",
    "pressure/memory",
    "pressure/cpu",
    "pressure/io",
    "uptime",
    "loadavg",
    "sys/kernel/osrelease",
];

/// Other files that a point takes.
const FOR_POINTS: [&str; 3] = [
    "proc/sys/vm/compaction_proactiveness",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
];

/// Files below `/proc` that are dear: 13 ms and 7 ms on a host of 24 GiB, others' allocations wait
/// meanwhile.
const SELDOM: [&str; 2] = ["pagetypeinfo", "slabinfo"];
const SELDOM_EVERY: Duration = Duration::from_secs(60);

/// Directories below `/sys` of which every number and word counts, with those in them.
const SYS_DIRS: [&str; 3] = ["kernel/mm/transparent_hugepage", "kernel/mm/hugepages", "kernel/mm/lru_gen"];

/// Kernel threads that make room: their CPU time is the price.
const THREADS: [&str; 3] = ["kcompactd", "kswapd", "khugepaged"];

/// No more control groups than these are read, those nearer to the root first.
const GROUPS: usize = 64;
/// How deep below the root they are.
const GROUP_DEPTH: usize = 2;
/// Files on the events of a group, read every time; and on its memory and limits, read seldom.
const GROUP_EVENTS: [&str; 3] = ["memory.events", "memory.pressure", "memory.failcnt"];
const GROUP_STATE: [&str; 5] =
    ["memory.current", "memory.max", "memory.high", "memory.usage_in_bytes", "memory.limit_in_bytes"];

/// Files that trigger an action when written; nobody can read them.
const WRITE_ONLY: [&str; 3] = ["compact_memory", "drop_caches", "stat_refresh"];

/// Takes samples of a host.
pub struct Collector {
    roots: Roots,
    /// Files that are read every time, by their path in a sample.
    every_time: Vec<Arc<str>>,
    /// The last texts of those that are read seldom.
    seldom: BTreeMap<Arc<str>, Stored>,
    read_seldom: Option<Instant>,
    /// Facts in no file of the kernel's: seconds between samples, and the size of a page.
    own: BTreeMap<Arc<str>, Stored>,
}

impl Collector {
    /// Of this host, for samples that are `interval_s` seconds apart.
    pub fn of(roots: Roots, interval_s: f64) -> Collector {
        let line = |value: String| Stored::Text((value + "\n").into());
        let mut own = BTreeMap::from([(INTERVAL.into(), line(interval_s.to_string()))]);
        own.extend(page_size::told(&roots).map(|bytes| (PAGE_SIZE.into(), line(bytes.to_string()))));
        Collector { roots, every_time: Vec::new(), seldom: BTreeMap::new(), read_seldom: None, own }
    }

    /// The host's files now.
    pub fn take(&mut self) -> Sample {
        if self.read_seldom.is_none_or(|at| at.elapsed() >= SELDOM_EVERY) {
            let (every_time, seldom) = files(&self.roots);
            self.every_time = every_time;
            self.seldom = seldom.into_iter().filter_map(|path| self.read(&path)).collect();
            self.read_seldom = Some(Instant::now());
        }
        let mut sample = Sample { unix_ms: now_ms(), files: self.seldom.clone() };
        sample.files.extend(self.every_time.iter().filter_map(|path| self.read(path)));
        sample.files.extend(self.own.clone());
        sample
    }

    /// The little that a point takes, read once: nothing of it is dear.
    pub fn few(roots: &Roots) -> Sample {
        let collector = Collector::of(roots.clone(), 0.0);
        let mut paths: Vec<String> = EVERY_TIME.map(|file| format!("proc/{file}")).into();
        paths.extend(FOR_POINTS.map(str::to_string));
        paths.extend(threads(roots));
        let files = paths.into_iter().filter_map(|path| collector.read(&path.into()));
        Sample { unix_ms: now_ms(), files: collector.own.clone().into_iter().chain(files).collect() }
    }

    /// A file; `None` where there is none.
    fn read(&self, path: &Arc<str>) -> Option<(Arc<str>, Stored)> {
        let stored = match crate::roots::read(&place(&self.roots, path)) {
            Ok(text) => Stored::Text(text.into()),
            Err(e) => match e.why {
                Unread::Missing => return None,
                Unread::NoPermission => Stored::NoPermission,
                Unread::Malformed { reason, .. } | Unread::Failed(reason) => Stored::Failed(reason.into()),
            },
        };
        Some((Arc::clone(path), stored))
    }
}

/// The host's clock: milliseconds since 1970.
fn now_ms() -> i64 {
    i64::try_from(since_1970().as_millis()).unwrap_or(i64::MAX)
}

/// Where a file of a sample is on the host.
fn place(roots: &Roots, path: &str) -> PathBuf {
    match path.strip_prefix("proc/") {
        Some(file) => roots.proc(file),
        None => roots.sys(path.trim_start_matches("sys/")),
    }
}

/// The files that are read every time, and those that are read seldom.
fn files(roots: &Roots) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
    let mut every_time: Vec<String> = EVERY_TIME.map(|file| format!("proc/{file}")).into();
    every_time.push(BOOT_ID.into());
    let mut seldom: Vec<String> = SELDOM.map(|file| format!("proc/{file}")).into();
    let sysctls = names(&roots.proc("sys/vm")).unwrap_or_default();
    let readable = sysctls.into_iter().filter(|name| !WRITE_ONLY.contains(&name.as_str()));
    every_time.extend(readable.map(|name| format!("proc/sys/vm/{name}")));
    every_time.extend(threads(roots));
    for dir in SYS_DIRS {
        walk(roots, &format!("sys/{dir}"), 3, &mut every_time);
    }
    const NODES: &str = "sys/devices/system/node";
    let nodes = names(&place(roots, NODES)).unwrap_or_default();
    for node in nodes.iter().filter(|name| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok())) {
        every_time.push(format!("{NODES}/{node}/meminfo"));
        walk(roots, &format!("{NODES}/{node}/hugepages"), 1, &mut every_time);
    }
    groups(roots, &mut every_time, &mut seldom);
    let shared = |paths: Vec<String>| paths.into_iter().map(Arc::from).collect();
    (shared(every_time), shared(seldom))
}

/// Adds the files of a directory that may be read, and those of the directories in it.
fn walk(roots: &Roots, dir: &str, depth: usize, found: &mut Vec<String>) {
    for name in names(&place(roots, dir)).unwrap_or_default() {
        let path = format!("{dir}/{name}");
        let Ok(about) = place(roots, &path).symlink_metadata() else { continue };
        if about.is_dir() && depth > 0 {
            walk(roots, &path, depth - 1, found);
        } else if about.is_file() && about.permissions().mode() & 0o444 != 0 {
            found.push(path);
        }
    }
}

/// The accounts of the kernel's threads that make room.
fn threads(roots: &Roots) -> Vec<String> {
    let processes = names(&roots.procfs).unwrap_or_default();
    let mut pids: Vec<u32> = processes.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    let is_one = |pid: &u32| {
        let name = roots.read_proc(format!("{pid}/comm")).unwrap_or_default();
        // A process of a user's may have such a name; it has memory of its own.
        THREADS.iter().any(|thread| name.starts_with(thread))
            && roots.read_proc(format!("{pid}/cmdline")).is_ok_and(|line| line.is_empty())
    };
    pids.iter().filter(|pid| is_one(pid)).map(|pid| format!("proc/{pid}/stat")).collect()
}

/// Adds the files of the control groups, of version 2 and of version 1.
fn groups(roots: &Roots, every_time: &mut Vec<String>, seldom: &mut Vec<String>) {
    let mut left = GROUPS;
    for root in ["sys/fs/cgroup", "sys/fs/cgroup/unified", "sys/fs/cgroup/memory"] {
        // What is mounted there has this file; a directory of mounts has not.
        if !place(roots, root).join("cgroup.procs").exists() {
            continue;
        }
        let mut level = vec![root.to_string()];
        for depth in 0..=GROUP_DEPTH {
            level.truncate(left);
            left -= level.len();
            for group in &level {
                let there = |file: &&&str| place(roots, &format!("{group}/{file}")).exists();
                every_time.extend(GROUP_EVENTS.iter().filter(there).map(|file| format!("{group}/{file}")));
                seldom.extend(GROUP_STATE.iter().filter(there).map(|file| format!("{group}/{file}")));
            }
            if depth < GROUP_DEPTH {
                level = level.iter().flat_map(|group| below(roots, group)).collect();
            }
        }
    }
}

/// The groups in a group.
fn below(roots: &Roots, group: &str) -> Vec<String> {
    let dir = place(roots, group);
    let is_group = |name: &String| Path::new(&dir).join(name).is_dir();
    names(&dir).unwrap_or_default().into_iter().filter(is_group).map(|name| format!("{group}/{name}")).collect()
}
