//! The processes with the most memory, and how much of it is in huge pages.
//!
//! Adding up a large process's pages takes the kernel a while, so only the largest are asked: those
//! with the most resident pages.

use crate::prepare::got::in_memory;
use crate::roots::{Roots, names};

/// A process by its memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heavy {
    pub pid: u32,
    pub name: String,
    pub resident_bytes: u64,
    /// Of those, in huge pages; `None` where that may not be seen.
    pub huge_bytes: Option<u64>,
}

/// The processes with the most memory, the largest first.
pub fn heaviest(roots: &Roots, page_bytes: u64, count: usize) -> Vec<Heavy> {
    let pids = names(&roots.procfs).unwrap_or_default().into_iter().filter_map(|name| name.parse::<u32>().ok());
    let resident = |pid: u32| {
        let statm = roots.read_proc(format!("{pid}/statm")).ok()?;
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        Some((pages, pid)).filter(|(pages, _)| *pages > 0)
    };
    let mut all: Vec<(u64, u32)> = pids.filter_map(resident).collect();
    all.sort_unstable_by_key(|(pages, pid)| (std::cmp::Reverse(*pages), *pid));
    let heavy = |(pages, pid): &(u64, u32)| {
        let name = roots.read_proc(format!("{pid}/comm")).ok()?.trim().to_string();
        let seen = in_memory(roots, *pid);
        let resident_bytes = seen.map_or(pages * page_bytes, |(resident, _)| resident);
        Some(Heavy { pid: *pid, name, resident_bytes, huge_bytes: seen.map(|(_, huge)| huge) })
    };
    all.iter().filter_map(heavy).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_largest_come_first_and_a_process_that_may_not_be_seen_has_no_share() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().into(), ..Roots::default() };
        let process = |pid: u32, name: &str, pages: u64, sums: Option<&str>| {
            let dir = tree.path().join(pid.to_string());
            fs::create_dir(&dir).expect("made");
            fs::write(dir.join("comm"), format!("{name}\n")).expect("written");
            fs::write(dir.join("statm"), format!("9999 {pages} 1 1 0 1 0\n")).expect("written");
            if let Some(sums) = sums {
                let head = "10000-7fff00000000 ---p 00000000 00:00 0                  [rollup]\n";
                fs::write(dir.join("smaps_rollup"), format!("{head}{sums}")).expect("written");
            }
        };
        process(3, "small", 10, None);
        process(4, "java", 1000, Some("Rss: 4000 kB\nAnonHugePages: 2048 kB\n"));
        process(5, "kthread", 0, None);
        process(6, "other", 500, None);
        let found = heaviest(&roots, 4096, 2);
        let java = Heavy { pid: 4, name: "java".into(), resident_bytes: 4_096_000, huge_bytes: Some(2 << 20) };
        let other = Heavy { pid: 6, name: "other".into(), resident_bytes: 500 * 4096, huge_bytes: None };
        assert_eq!(found, [java, other]);
    }
}
