//! `kontig trial` on a host made of files, where compaction changes nothing, and
//! the tables of an earlier trial.

use crate::common::frames::{ANON, FREE, host};
use crate::common::{files, kontig, unwrapped};
use serde_json::Value;
use std::fs;

const TRIAL: [&str; 15] = [
    "trial",
    "--execute",
    "--gib",
    "0.004",
    "--pattern",
    "runs",
    "--tries",
    "2",
    "--more",
    "10",
    "--time",
    "20",
    "--journal",
    "j",
    "--json",
];
const ROOTS: [&str; 4] = ["--path.procfs", "proc", "--path.sysfs", "sys"];

#[test]
fn predictions_stand_beside_the_outcome() {
    let tree = host(|pfn| if pfn % 2 == 0 { ANON } else { FREE });
    fs::write(tree.path().join("proc/loadavg"), "1.50 1.00 1.00 1/100 1\n").unwrap();
    let said = kontig(tree.path(), &[&TRIAL[..], &ROOTS].concat()).assert().code(0);
    let json = String::from_utf8(said.get_output().stdout.clone()).unwrap();
    let trial: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&trial["schema"], &trial["kernel"]), (&"kontig.trial/2".into(), &"6.12.9".into()));
    let [first, second] = trial["tries"].as_array().unwrap().as_slice() else { panic!("{json}") };
    assert_eq!((&first["seed"], &second["seed"], &first["need"]), (&1.into(), &2.into(), &"10x2M".into()));
    assert!(first["predicted"]["pages_moved"].as_u64().unwrap() > 1000, "{json}");
    assert_eq!((&first["counted"]["pages_moved"], &first["reached"]), (&0.into(), &false.into()));
    assert!(!tree.path().join("j").exists());
    fs::write(tree.path().join("trial.json"), &json).unwrap();
    let table = kontig(tree.path(), &["trial", "--of", "trial.json", "--markdown"]).assert().code(0);
    let table = String::from_utf8(table.get_output().stdout.clone()).unwrap();
    assert!(table.starts_with("| pattern | ") && table.contains("\n| `runs` | "), "{table}");
    let load = "1.5 tasks on 1 CPUs; it is not known how long they wait";
    let summary = format!(
        "It was least busy with {load}, most busy with {load}. 0 of 2 tries reached them; pages were predicted \
         within 25 % in 0, the farthest off unknown. "
    );
    assert!(table.split_whitespace().collect::<Vec<_>>().join(" ").contains(&summary), "{table}");
    let most = first["predicted"]["seconds_at_most"].as_f64().unwrap();
    let least = first["predicted"]["seconds"].as_f64().unwrap();
    // The compaction goes first; what has an ordinary priority takes 2.5 times as long.
    assert!((most - ((least - 0.03) * 2.0 + 0.06 * 2.5)).abs() < 0.001, "{json}");
}

fn of_host<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&TRIAL[..8], more, &["--journal", "j"], &ROOTS[..]].concat()
}

#[test]
fn without_execute_it_only_says_what_would_be_done() {
    let tree = host(|pfn| if pfn % 2 == 0 { ANON } else { FREE });
    fs::write(tree.path().join("proc/sys/vm/percpu_pagelist_high_fraction"), "8\n").unwrap();
    fs::write(tree.path().join("proc/sys/vm/stat_refresh"), "").unwrap();
    fs::create_dir_all(tree.path().join("sys/devices/system/cpu")).unwrap();
    fs::write(tree.path().join("sys/devices/system/cpu/isolated"), "\n").unwrap();
    let found = files(tree.path());
    let plan: Vec<&str> = of_host(&[]).into_iter().filter(|arg| *arg != "--execute").collect();
    let said = kontig(tree.path(), &plan).assert().code(0);
    let text = String::from_utf8(said.get_output().stdout.clone()).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    let text = unwrapped(&text);
    assert!(
        text.starts_with("plan (nothing was done; --execute does it): 2 times, with the patterns runs\n"),
        "{text}"
    );
    assert!(text.contains("write 2147483647 to proc/sys/vm/percpu_pagelist_high_fraction until the end"), "{text}");
    assert!(text.contains("compact node 0: write 1 to sys/devices/system/node/node0/compact\n"), "{text}");
    let compact = fs::read_to_string(tree.path().join("sys/devices/system/node/node0/compact")).unwrap();
    assert_eq!((files(tree.path()), compact), (found, String::new()));
    let json = [&plan[..], &["--json"]].concat();
    let refused = kontig(tree.path(), &json).assert().code(2);
    let says = "kontig: --json prints what was tried, and without --execute nothing is: add --execute\n";
    assert_eq!(std::str::from_utf8(&refused.get_output().stderr).unwrap(), says);
}

#[test]
fn impossible_trials_are_refused_in_one_line() {
    let tree = host(|pfn| if pfn % 2 == 0 { ANON } else { FREE });
    let said = |args: &[&str], code: i32| {
        let said = kontig(tree.path(), args).assert().code(code);
        let text = String::from_utf8(said.get_output().stderr.clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    assert!(said(&of_host(&["--more", "4000"]), 1).contains("no 4000 more blocks are predicted: "), "too many");
    assert!(said(&of_host(&["--block", "3M"]), 2).starts_with("kontig: --block: 3M is no power of two"));
    fs::write(tree.path().join("proc/iomem"), "00000000-00000000 : System RAM\n").unwrap();
    assert_eq!(
        said(&of_host(&["--more", "9"]), 5),
        format!("kontig: proc/iomem: no permission to read it: {}\n", kontig_live::error::remedy())
    );
    let nothing = said(&[&TRIAL[..6], &["--tries", "0"], &ROOTS].concat(), 2);
    assert!(nothing.starts_with("kontig: --tries 0: nothing would be tried; ask for at least 1"), "{nothing}");
    fs::write(tree.path().join("t.json"), "{}").unwrap();
    assert!(
        said(&["trial", "--of", "t.json"], 2)
            .starts_with("kontig: t.json: this is not what 'kontig trial --execute --json' prints: ")
    );
    assert!(said(&["trial", "--of", "/dev/zero"], 2).contains("/dev/zero: cannot be read: it is longer than 64 MiB"));
}

#[test]
fn a_plan_that_a_control_groups_limit_would_end_says_so() {
    let tree = host(|pfn| if pfn % 2 == 0 { ANON } else { FREE });
    let plan = || {
        let said = kontig(tree.path(), &[&["trial", "--gib", "2"], &ROOTS[..]].concat()).assert().code(0);
        unwrapped(std::str::from_utf8(&said.get_output().stdout).unwrap())
    };
    fs::write(tree.path().join("proc/meminfo"), "MemTotal: 8388608 kB\nMemAvailable: 8388608 kB\n").unwrap();
    assert!(!plan().contains("refused"), "{}", plan());
    fs::create_dir_all(tree.path().join("proc/self")).unwrap();
    fs::create_dir_all(tree.path().join("sys/fs/cgroup/a")).unwrap();
    for (file, text) in [
        ("proc/self/cgroup", "0::/a\n"),
        ("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/a/memory.max", "536870912\n"),
        ("sys/fs/cgroup/a/memory.current", "1048576\n"),
    ] {
        fs::write(tree.path().join(file), text).unwrap();
    }
    let says = "with --execute it would be refused: 2 GiB are asked for, 494 MiB may be taken under the limit of \
                control group /a (sys/fs/cgroup/a/memory.max is 512 MiB)";
    assert!(plan().contains(says), "{}", plan());
}
