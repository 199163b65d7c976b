//! Huge pages that the command got, and the processes it starts, seen while they run.
//!
//! A process that has ended says nothing any more, so the largest amount that was seen counts.
//! Adding up a large process's pages takes the kernel a while, and the process waits if it maps
//! memory meanwhile; so the longer a look takes, the rarer they are.

use crate::roots::Roots;
use kontig_procfs::Smaps;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Memory that a command had at most.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Got {
    pub program: String,
    /// Seconds that it ran.
    pub seconds: f64,
    /// The exit code a shell would have.
    pub exit_code: u8,
    /// Bytes in memory when it had the most in huge pages; `None` where it was never seen.
    pub resident_bytes: Option<u64>,
    /// Bytes of those in huge pages.
    pub huge_bytes: Option<u64>,
    /// Times it was looked at.
    pub looks: u64,
    /// Of the whole host meanwhile: huge pages given at the first touch, refused, and requests that
    /// waited for compaction.
    pub of_host: HostGot,
}

/// Counts of the whole host meanwhile; `None` where it does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HostGot {
    /// Huge pages at first touches (`thp_fault_alloc`).
    pub given: Option<u64>,
    /// First touches that got none (`thp_fault_fallback`).
    pub refused: Option<u64>,
    /// Requests that compacted themselves (`compact_stall`).
    pub waited: Option<u64>,
}

/// Looks at a process and those it has started.
pub struct Watch<'a> {
    roots: &'a Roots,
    pid: u32,
    /// Bytes in memory and in huge pages, when the most was in huge pages.
    most: Option<(u64, u64)>,
    looks: u64,
    next: Instant,
}

/// Between two looks at least.
const INTERVAL: Duration = Duration::from_millis(100);
/// A look takes a fiftieth of the time at most.
const SHARE: u32 = 50;
/// Fields of `smaps_rollup` for memory mapped by the page table's middle level, and for pages of a
/// pool.
const HUGE: [&str; 5] = ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb"];

impl<'a> Watch<'a> {
    /// Watches the process with this number.
    pub fn of(roots: &'a Roots, pid: u32) -> Watch<'a> {
        Watch { roots, pid, most: None, looks: 0, next: Instant::now() }
    }

    /// Looks if it is time to.
    pub fn look(&mut self) {
        let began = Instant::now();
        if began < self.next {
            return;
        }
        let seen: Vec<(u64, u64)> = self.tree().into_iter().filter_map(|pid| in_memory(self.roots, pid)).collect();
        if !seen.is_empty() {
            let now = seen.iter().fold((0, 0), |sum, (resident, huge)| (sum.0 + resident, sum.1 + huge));
            self.looks += 1;
            let most = self.most.filter(|most| (most.1, most.0) >= (now.1, now.0));
            self.most = most.or(Some(now));
        }
        self.next = Instant::now() + INTERVAL.max(began.elapsed() * SHARE);
    }

    /// Bytes in memory and in huge pages, when the most was in huge pages; and the number of looks.
    pub fn seen(&self) -> (Option<(u64, u64)>, u64) {
        (self.most, self.looks)
    }

    /// It and all it has started, by the kernel's lists of children.
    fn tree(&self) -> Vec<u32> {
        let mut all = vec![self.pid];
        let mut next = 0;
        while let Some(pid) = all.get(next) {
            let tasks = crate::roots::names(&self.roots.proc(format!("{pid}/task"))).unwrap_or_default();
            let lists = tasks.iter().map(|tid| self.roots.read_proc(format!("{pid}/task/{tid}/children")));
            let children: Vec<u32> = lists
                .flatten()
                .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>())
                .collect();
            all.extend(children);
            next += 1;
        }
        all
    }
}

/// A process's bytes in memory, and in huge pages; `None` of one that has ended, or is another
/// user's.
pub fn in_memory(roots: &Roots, pid: u32) -> Option<(u64, u64)> {
    let file = format!("{pid}/smaps_rollup");
    let sums = Smaps::parse(&file, &roots.read_proc(&file).ok()?).ok()?;
    let sum = sums.mappings.first()?;
    let huge: u64 = HUGE.iter().filter_map(|name| sum.kb(name)).sum();
    let pools: u64 = HUGE[3..].iter().filter_map(|name| sum.kb(name)).sum();
    // Pages of a pool are not in what the kernel calls resident.
    Some(((sum.kb("Rss")? + pools) * 1024, huge * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn it_and_what_it_started_count_when_they_had_the_most() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().into(), ..Roots::default() };
        let process = |pid: u32, children: &str, rss: u64, huge: u64| {
            let task = roots.proc(format!("{pid}/task/{pid}"));
            fs::create_dir_all(&task).expect("made");
            fs::write(task.join("children"), children).expect("written");
            let sums = format!(
                "10000-7fff00000000 ---p 00000000 00:00 0                  [rollup]\nRss: {rss} kB\n\
                    AnonHugePages: {huge} kB\n"
            );
            fs::write(roots.proc(format!("{pid}/smaps_rollup")), sums).expect("written");
        };
        let mut watch = Watch::of(&roots, 7);
        let look = |watch: &mut Watch| {
            watch.next = Instant::now();
            watch.look();
        };
        process(7, "8 9 ", 100, 0);
        process(8, "", 5000, 4096);
        look(&mut watch);
        assert_eq!(watch.seen(), (Some((5100 << 10, 4096 << 10)), 1));
        process(8, "", 9000, 2048);
        look(&mut watch);
        assert_eq!(watch.seen(), (Some((5100 << 10, 4096 << 10)), 2));
        fs::remove_dir_all(roots.proc("7")).expect("it ended");
        fs::remove_dir_all(roots.proc("8")).expect("it ended");
        look(&mut watch);
        assert_eq!(watch.seen(), (Some((5100 << 10, 4096 << 10)), 2));
    }
}
