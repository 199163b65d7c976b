//! `kontig guard replay` on histories that lack something: facts that were not recorded, and
//! samples that cannot be read.

use crate::common::frames::{ANON, FREE};
use crate::common::page::documented;
use crate::common::whole_host::whole_host;
use crate::common::{kontig, refused};
use kontig_live::Roots;
use kontig_live::history::sample::PAGE_SIZE;
use kontig_live::history::{Collector, Sample, Stored, Writer};
use serde_json::Value;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

const GUARD: &str = include_str!("../../../../docs/operator/guard.md");
const HISTORY: &str = include_str!("../../../../docs/operator/history.md");
const RELEASE: &str = "proc/sys/kernel/osrelease";

/// A host of which every other page is free, and a sample of it that tells the size of a page.
fn recorded() -> (TempDir, Sample) {
    let tree = whole_host(|pfn| if pfn % 2 == 0 { ANON } else { FREE });
    let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
    let mut sample = Collector::of(roots, 10.0).take();
    sample.files.insert(PAGE_SIZE.into(), Stored::Text("4096\n".into()));
    (tree, sample)
}

/// Writes `h` in `dir`: `count` samples, 10 s apart.
fn write(dir: &Path, sample: &Sample, count: i64) {
    let path = dir.join("h");
    if path.exists() {
        std::fs::remove_file(&path).expect("removed");
    }
    let mut writer = Writer::append(&path).expect("a new file");
    for nr in 0..count {
        let mut sample = Sample { unix_ms: sample.unix_ms + 10_000 * nr, ..sample.clone() };
        sample.files.insert("proc/uptime".into(), Stored::Text(format!("{}.00 1.00\n", 100 + 10 * nr).into()));
        writer.sample(&sample).expect("there is room");
    }
}

fn replay(dir: &Path, more: &[&str]) -> Output {
    kontig(dir, &[&["guard", "replay", "h", "--keep", "10x2M"], more].concat()).output().expect("run")
}

#[track_caller]
fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_fact_that_no_sample_tells_is_named() {
    let (tree, sample) = recorded();
    let without = |facts: &[&str]| {
        let mut sample = sample.clone();
        sample.files.retain(|path, _| !facts.contains(&&**path));
        write(tree.path(), &sample, 3);
        replay(tree.path(), &[])
    };
    let all = said(&without(&[]));
    assert!(all.contains("of 3 samples") && all.contains("runs that make 11 blocks"), "{all}");
    // The size of a page also follows from used and free memory.
    assert_eq!(said(&without(&[PAGE_SIZE])), all);
    refused(without(&[PAGE_SIZE, "proc/meminfo"]), 2, "h: no sample in it tells the size of a page");
    refused(without(&["proc/buddyinfo"]), 2, "h: no sample in it tells the free lists");
    refused(without(&[RELEASE]), 2, "h: no sample in it tells the kernel's release");
    // Chosen rules need no release.
    assert_eq!(said(&replay(tree.path(), &["--profile", "6.1"])).split("node").count(), 2);
}

#[test]
fn a_fact_may_be_told_by_a_later_sample_than_another() {
    let (tree, sample) = recorded();
    write(
        tree.path(),
        &Sample { files: [(RELEASE.into(), sample.files[RELEASE].clone())].into(), ..sample.clone() },
        1,
    );
    let mut writer = Writer::append(&tree.path().join("h")).expect("it goes on");
    let mut later = sample;
    later.files.remove(RELEASE);
    writer.sample(&later).expect("there is room");
    let text = said(&replay(tree.path(), &[]));
    assert!(text.contains("1 samples tell no free lists") && text.contains("of 1 samples"), "{text}");
}

#[test]
fn every_report_says_what_cannot_be_read() {
    let (tree, sample) = recorded();
    let dir = tree.path();
    write(dir, &sample, 1);
    let whole = std::fs::read(dir.join("h")).expect("written").len();
    write(dir, &sample, 122);
    assert!(!said(&replay(dir, &[])).contains("cannot be read"));
    let damage = |at: usize| {
        let mut bytes = std::fs::read(dir.join("h")).expect("written");
        bytes[at] ^= 0x10;
        std::fs::write(dir.join("h"), bytes).expect("written");
    };
    damage(whole + 10);
    let run = |args: &[&str]| said(&kontig(dir, args).output().expect("run"));
    let report: Value = serde_json::from_str(&run(&["history", "report", "h", "--json"])).expect("JSON");
    let lost = &report["damage"];
    assert_eq!(lost["samples"], 59, "all up to the next that stands by itself");
    let compared = documented(&run(&["history", "compare", "h@first..first", "h", "--json"]), HISTORY);
    assert_eq!(compared["damage"], serde_json::json!([lost, lost]));
    let replayed = documented(&said(&replay(dir, &["--json"])), GUARD);
    assert_eq!((&replayed["damage"], &replayed["nodes"][0]["samples"]), (lost, &62.into()));
    let texts = [run(&["history", "report", "h"]), run(&["history", "compare", "h", "h"]), said(&replay(dir, &[]))];
    for text in texts {
        assert!(text.contains("are damaged, and 59 samples that build on that cannot be read."), "{text}");
    }
    write(dir, &sample, 3);
    damage(whole - 1);
    refused(replay(dir, &[]), 2, "and 2 samples that build on that cannot be read");
}
