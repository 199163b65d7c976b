//! A host made of files that a history can be recorded of.

use super::frames::host;
use std::fs;
use tempfile::TempDir;

/// The host of [`host`], with what `kontig status` and a history take beside the frames. Its time
/// is this host's.
pub fn whole_host(word: impl Fn(usize) -> u64) -> TempDir {
    let tree = host(word);
    let proc = tree.path().join("proc");
    let zoneinfo = fs::read_to_string(proc.join("zoneinfo")).unwrap();
    let free = zoneinfo.split("pages free").nth(1).and_then(|rest| rest.split_whitespace().next());
    let free: u64 = free.unwrap().parse().unwrap();
    let meminfo = format!("MemTotal: 65536 kB\nMemFree: {} kB\nHugepagesize: 2048 kB\n", free * 4);
    fs::write(proc.join("meminfo"), meminfo).unwrap();
    fs::create_dir_all(proc.join("sys/kernel/random")).unwrap();
    fs::write(proc.join("sys/kernel/random/boot_id"), "2a1c\n").unwrap();
    std::os::unix::fs::symlink("/proc/uptime", proc.join("uptime")).unwrap();
    tree
}
