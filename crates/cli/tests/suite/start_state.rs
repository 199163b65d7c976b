//! Machines that begin in a state estimated from pasted files, or drawn from a distribution.

use crate::common::{kontig, write};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// tiny-64m's zone, used for a while.
const BUDDYINFO: &str = "\
Node 0, zone    DMA32    651    212     91     31     90     41     17      9      5      3      2 
";

fn workload(prepare: &str, machine: &str) -> String {
    format!(
        "summary = 's'\nmachine = '{machine}'\nprepare = {{ {prepare} }}\n\
         measure = {{ kind = 'hugealloc', gfp = 'GFP_KERNEL|__GFP_COMP|__GFP_NOWARN' }}\n"
    )
}

fn json(dir: &Path, args: &[&str]) -> Value {
    let said = kontig(dir, args).assert().code(0);
    serde_json::from_slice(&said.get_output().stdout).expect("JSON")
}

/// The line that an attempt was refused with.
fn refused(dir: &Path, args: &[&str]) -> String {
    let said = kontig(dir, args).assert().code(2);
    let stderr = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert_eq!((stderr.lines().count(), said.get_output().stdout.len()), (1, 0), "{stderr}");
    stderr
}

#[test]
fn a_run_begins_with_the_free_blocks_pasted_says_what_is_made_up_and_can_be_rerun_without_the_files() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("mine")).unwrap();
    write(dir.path(), "mine/buddyinfo.txt", BUDDYINFO);
    write(dir.path(), "mine/mine.toml", &workload("kind = 'proc', buddyinfo = 'buddyinfo.txt'", "tiny-64m"));
    let args = ["run", "mine/mine.toml", "--json", "--out", "result", "--procfs", "proc", "--repetitions", "2"];
    let table = &json(dir.path(), &args)["experiments"][0];
    for repetition in ["0", "1"] {
        let printed = dir.path().join("proc/mine/6.1").join(repetition).join("start/buddyinfo");
        assert_eq!(fs::read_to_string(printed).unwrap(), BUDDYINFO);
    }
    let remarks = table["remarks"].to_string();
    assert!(remarks.contains("an estimate: starts with the free blocks of mine/buddyinfo.txt"), "{remarks}");
    assert!(remarks.contains("made up, because these files do not show it"), "{remarks}");
    fs::remove_file(dir.path().join("mine/buddyinfo.txt")).unwrap();
    kontig(dir.path(), &["rerun", "result"]).assert().code(0);
}

#[test]
fn a_paste_that_is_no_buddyinfo_is_refused_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "mine.toml", &workload("kind = 'proc', buddyinfo = 'buddyinfo.txt'", "tiny-64m"));
    let said = |text: &str| {
        write(dir.path(), "buddyinfo.txt", text);
        refused(dir.path(), &["run", "mine.toml"])
    };
    let both = format!("{BUDDYINFO}Node 0, zone   Normal  x  1\n");
    assert!(said(&both).contains("buddyinfo.txt:2: 'x' is not a number"), "{}", said(&both));
    assert!(said("").contains("buddyinfo.txt:1: the file is empty"));
    let normal = BUDDYINFO.replace(" DMA32", "Normal");
    assert!(said(&normal).contains("another machine, or add pagetypeinfo"), "{}", said(&normal));
    fs::remove_file(dir.path().join("buddyinfo.txt")).unwrap();
    assert!(refused(dir.path(), &["run", "mine.toml"]).contains("buddyinfo.txt: cannot be read"));
}

#[test]
fn a_drawn_state_is_the_seeds_and_is_refused_where_it_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    let occupancy = |more: &str| format!("kind = 'occupancy', movable = [{{ share = 100, pages = [0, 500] }}]{more}");
    write(dir.path(), "mine.toml", &workload(&occupancy(""), "tiny-64m"));
    let args = ["run", "mine.toml", "--json", "--repetitions", "2"];
    let cell = json(dir.path(), &args)["experiments"][0]["rows"].as_array().unwrap().iter().find_map(|row| {
        let cell = &row["measured"][0];
        (row["name"] == "free memory before").then(|| cell.clone())
    });
    let cell = cell.expect("the row is there");
    assert_ne!(cell["low"], cell["high"], "{cell}");
    write(dir.path(), "mine.toml", &workload(&occupancy(", files = 10"), "tiny-64m"));
    assert!(refused(dir.path(), &["run", "mine.toml"]).contains("tiny-64m has no disk, and no page cache"));
    write(dir.path(), "mine.toml", &workload(&occupancy(", files = 110"), "box-2g"));
    assert!(refused(dir.path(), &["run", "mine.toml"]).contains("mine.toml:3: files = 110 is not from 0 to 100"));
}
