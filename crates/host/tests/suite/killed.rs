//! `kontig prepare` killed at any moment: its guard alone restores the host and the journal.

use crate::common::frames::{ANON, FREE, host};
use crate::common::{files, program};
use kontig_program::SplitMix64;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: &str = "proc/sys/vm/percpu_pagelist_high_fraction";
const WAS: &str = "8\n";

/// The number of kills. `KONTIG_KILLS=1000` takes some minutes.
fn kills() -> u32 {
    std::env::var("KONTIG_KILLS").map_or(20, |kills| kills.parse().expect("KONTIG_KILLS is a number"))
}

fn prepare(dir: &Path) -> Child {
    let mut command = Command::new(program());
    command.args(["prepare", "--need", "10x2M", "--execute", "--journal", "run/journal"]);
    command.args(["--path.procfs", "proc", "--path.sysfs", "sys"]).current_dir(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
}

#[test]
fn a_process_killed_at_any_moment_leaves_the_host_as_it_was() {
    let tree = host(|pfn| if pfn % 2 == 0 { ANON } else { FREE });
    let dir = tree.path();
    fs::write(dir.join(LIMIT), WAS).unwrap();
    fs::write(dir.join("proc/sys/vm/stat_refresh"), "").unwrap();
    fs::create_dir_all(dir.join("sys/devices/system/cpu")).unwrap();
    fs::write(dir.join("sys/devices/system/cpu/isolated"), "\n").unwrap();
    fs::create_dir(dir.join("run")).unwrap();
    let setting = || fs::read_to_string(dir.join(LIMIT)).unwrap();
    let began = Instant::now();
    prepare(dir).wait().unwrap();
    let takes = began.elapsed();
    let found = files(dir);
    assert_eq!(setting().trim(), WAS.trim());
    let (mut changed, mut at_work) = (0, 0);
    let mut random = SplitMix64::new(1);
    for kill in 0..kills() {
        let mut process = prepare(dir);
        std::thread::sleep(takes.mul_f64(random.next_u64() as f64 / u64::MAX as f64));
        process.kill().unwrap();
        changed += u32::from(setting().trim() != WAS.trim());
        at_work += u32::from(dir.join("run/journal").exists());
        process.wait().unwrap();
        let killed = Instant::now();
        while setting().trim() != WAS.trim() || files(dir) != found {
            let left = || format!("kill {kill}: '{}', {:?}", setting(), files(dir));
            assert!(killed.elapsed() < Duration::from_secs(30), "{}", left());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    println!("{} kills within {takes:?}: {at_work} left a journal, {changed} a setting, for the guard", kills());
    assert!(at_work > 0, "no kill met it at work");
}
