//! `kontig history`: recorded hosts, killed writers, mistakes, and every command of the page.

use crate::common::frames::{ANON, FREE, SLAB};
use crate::common::page::documented;
use crate::common::whole_host::whole_host;
use crate::common::{kontig, program, refused};
use crate::host::hosts::Tree;
use kontig_program::SplitMix64;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PAGE: &str = include_str!("../../../../docs/operator/history.md");

fn run(dir: &Path, args: &[&str]) -> Output {
    kontig(dir, args).output().expect("run")
}

#[track_caller]
fn said(output: Output, code: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    String::from_utf8(output.stdout).expect("text")
}

/// The arguments of a record of the host below `DIR`, a few samples a second.
fn recorded<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let record = ["history", "record", "h", "--interval", "200ms", "--path.procfs", "proc", "--path.sysfs", "sys"];
    [&record, more].concat()
}

fn record(dir: &Path, more: &[&str]) -> Child {
    let mut command = Command::new(program());
    command.args(recorded(more)).current_dir(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
}

/// The number of samples and of damaged bytes, as the report has them.
fn found(dir: &Path) -> (u64, u64) {
    let report = said(run(dir, &["history", "report", "h", "--json"]), 0);
    let report = documented(&report, PAGE);
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    (number(&report["samples"]), number(&report["damage"]["bytes"]))
}

#[test]
fn a_writer_killed_at_any_moment_leaves_all_samples_and_the_next_one_goes_on() {
    let kills = std::env::var("KONTIG_KILLS").map_or(20, |kills| kills.parse().expect("KONTIG_KILLS is a number"));
    let tree = whole_host(|pfn| if pfn % 2 == 0 { ANON } else { FREE });
    let dir = tree.path();
    said(run(dir, &recorded(&["--for", "1s"])), 0);
    let (mut samples, _) = found(dir);
    let mut random = SplitMix64::new(1);
    for kill in 0..kills {
        let before = fs::read(dir.join("h")).expect("it is there");
        let mut writer = record(dir, &[]);
        std::thread::sleep(Duration::from_millis(20 + random.next_u64() % 500));
        writer.kill().expect("it runs");
        writer.wait().expect("it ended");
        let after = fs::read(dir.join("h")).expect("it is there");
        assert!(after.starts_with(&before), "kill {kill} changed what was written");
        let (now, damaged) = found(dir);
        assert!(now >= samples, "kill {kill}: {now} samples of {samples}");
        println!("kill {kill}: {} samples more, {damaged} bytes of none", now - samples);
        samples = now;
    }
    assert!(samples > 10, "the killed ones have written some of the {samples}");
}

#[test]
fn ctrl_c_ends_a_record_with_a_line_that_counts_its_samples() {
    let tree = whole_host(|_| FREE);
    let mut command = Command::new(program());
    command.args(recorded(&[])).current_dir(tree.path()).stderr(Stdio::piped());
    let writer = command.spawn().expect("started");
    let began = Instant::now();
    while !tree.path().join("h").metadata().is_ok_and(|about| about.len() > 17) {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing was written");
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = run(tree.path(), &recorded(&[]));
    refused(second, 2, "another 'kontig history record' writes it");
    let pid = rustix::process::Pid::from_raw(writer.id() as i32).expect("it runs");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let output = writer.wait_with_output().expect("it ended");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let last = stderr.lines().last().expect("a line");
    assert!(stderr.lines().count() == 2 && last.starts_with("kontig: h: ") && last.contains(" samples, "), "{stderr}");
    assert!(found(tree.path()).0 >= 1);
}

#[test]
fn a_full_disk_is_one_line_and_what_was_written_is_whole() {
    let tree = whole_host(|_| FREE);
    // A file may not grow beyond 4 KiB, as on a disk without more room.
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\"";
    let args = recorded(&["--snapshots", "200ms"]);
    let output = Command::new("bash").args(["-c", script, program()]).args(args).current_dir(tree.path()).output();
    let output = output.expect("bash runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().last().expect("a line");
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 2), "{stderr}");
    assert!(last.contains("what it has is whole"), "{stderr}");
    assert_eq!(found(tree.path()).1, 0, "no part of a sample is left");
}

#[test]
fn mistakes_are_one_line() {
    let tree = whole_host(|_| FREE);
    let dir = tree.path();
    fs::write(dir.join("notes"), "my notes\n").expect("written");
    said(run(dir, &recorded(&["--for", "500ms"])), 0);
    let cases: [(&[&str], i32, &str); 9] = [
        (&["history", "show", "none"], 2, "none: cannot be read"),
        (&["history", "show", "notes"], 2, "notes: line 1: this is no history"),
        (&["history", "record", "notes"], 2, "this is no history, and stays as it is"),
        (&["history", "record", "no/such/dir"], 1, "no/such/dir"),
        (&["history", "show", "h", "--at", "-3h"], 2, "h: it begins at "),
        (&["history", "show", "h", "--snapshot", "s"], 2, "--snapshots 1h"),
        (&["history", "report", "h@2030-01-01 00:00.."], 2, "no sample from 2030-01-01"),
        (&["check", "--need", "1x1M", "--history", "h", "--at", "-3h"], 2, "h: it begins at "),
        (&["explain", "--history", "notes"], 2, "this is no history"),
    ];
    for (args, code, says) in cases {
        refused(run(dir, args), code, says);
    }
    let said = run(dir, &["history", "show", "h", "--at", "yesterday"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("'yesterday' is no moment of a history"));
    assert_eq!(fs::read_to_string(dir.join("notes")).expect("it is there"), "my notes\n");
}

#[test]
fn check_answers_for_a_moment_by_the_frames_that_were_recorded_before_it() {
    // One pageblock in two is poisoned by a slab page, the others hold pages that can be moved.
    let tree = whole_host(|pfn| match (pfn / 512 % 2, pfn % 512) {
        (0, 7) => SLAB,
        (_, n) if n % 2 == 0 => ANON,
        _ => FREE,
    });
    let dir = tree.path();
    let check = |more: &[&str]| run(dir, &[&["check", "--need", "3x2M", "--json"], more].concat());
    said(run(dir, &recorded(&["--for", "500ms"])), 0);
    let of = |output: Output, code| -> serde_json::Value { serde_json::from_str(&said(output, code)).expect("JSON") };
    let without = of(check(&["--history", "h"]), 8);
    assert!(without["unknown"].as_str().is_some_and(|why| why.contains("no frame was recorded")), "{without}");
    said(run(dir, &recorded(&["--for", "500ms", "--snapshots", "1h"])), 0);
    let then = of(check(&["--history", "h"]), 4);
    let now = of(check(&["--path.procfs", "proc", "--path.sysfs", "sys"]), 4);
    assert_eq!(then["prediction"]["blocks"], now["prediction"]["blocks"]);
    assert_eq!(then["prediction"]["pages_moved"], now["prediction"]["pages_moved"]);
    said(run(dir, &["history", "show", "h", "--snapshot", "then.snap"]), 0);
    assert_eq!(of(check(&["--snapshot", "then.snap"]), 4)["prediction"]["blocks"], now["prediction"]["blocks"]);
}

#[test]
fn check_does_not_take_blocks_of_older_frames_for_there() {
    let tree = whole_host(|_| FREE);
    let dir = tree.path();
    let check = || run(dir, &["check", "--need", "31x2M", "--json", "--history", "h"]);
    said(run(dir, &recorded(&["--for", "500ms", "--snapshots", "1h"])), 0);
    said(check(), 0);
    fs::write(dir.join("proc/buddyinfo"), "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 0 10 \n").expect("written");
    said(run(dir, &recorded(&["--for", "500ms"])), 0);
    let then: serde_json::Value = serde_json::from_str(&said(check(), 8)).expect("JSON");
    assert_eq!((then["verdict"].as_str(), then["needs"][0]["now"].as_u64()), (Some("unknown"), Some(19)));
    assert!(then["unknown"].as_str().is_some_and(|why| why.starts_with("only the frames recorded ")), "{then}");
}

#[test]
fn a_moment_is_shown_as_the_host_was_then_and_its_files_are_read_as_a_host() {
    let tree = Tree::of("6.12");
    let dir = tempfile::tempdir().expect("a directory");
    let roots = [&tree.roots.procfs, &tree.roots.sysfs].map(|dir| dir.display().to_string());
    let roots = ["--path.procfs", &roots[0], "--path.sysfs", &roots[1]];
    let record = ["history", "record", "h", "--interval", "200ms", "--for", "300ms"];
    said(run(dir.path(), &[&record, &roots[..]].concat()), 0);
    let shown = said(run(dir.path(), &["history", "show", "h", "--files", "then"]), 0);
    let now = said(run(dir.path(), &[&["status"], &roots[..]].concat()), 0);
    let (head, then) = shown.split_once('\n').expect("lines");
    assert!(head.starts_with("As it was at ") && then.starts_with("Linux 6.12"), "{shown}");
    let lists = |text: &str| text.lines().take_while(|line| !line.starts_with("What")).map(str::to_string).collect();
    let (then, now): (Vec<String>, Vec<String>) = (lists(then), lists(&now));
    assert_eq!(then, now);
    let again = ["status", "--path.procfs", "then/proc", "--path.sysfs", "then/sys"];
    assert_eq!(lists(&said(run(dir.path(), &again), 0)), now);
    documented_moment(&said(run(dir.path(), &["history", "show", "h", "--json"]), 0));
}

/// The fields of the status are on another page.
fn documented_moment(text: &str) {
    let mut moment: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(moment["status"]["schema"], "kontig.status/2");
    moment["status"] = serde_json::Value::Null;
    let fields = moment.as_object_mut().expect("fields");
    let schema = fields.remove("schema").expect("a schema");
    let rest = serde_json::to_string(&fields).expect("JSON");
    documented(&format!("{{\"schema\":{schema},{}", &rest[1..]), PAGE);
}

#[test]
fn a_changed_setting_is_told_and_the_same_file_gives_the_same_bytes() {
    let tree = whole_host(|_| FREE);
    let dir = tree.path();
    let set = |value: &str| fs::write(dir.join("proc/sys/vm/compaction_proactiveness"), value).expect("written");
    set("20\n");
    said(run(dir, &recorded(&["--for", "2s"])), 0);
    set("60\n");
    said(run(dir, &recorded(&["--for", "2s"])), 0);
    let report = said(run(dir, &["history", "report", "h", "--html", "page.html"]), 0);
    assert!(report.contains("vm.compaction_proactiveness: 20 → 60"), "{report}");
    let page = fs::read_to_string(dir.join("page.html")).expect("written");
    assert!(page.contains("vm.compaction_proactiveness: 20 → 60") && page.contains("<svg"), "it is on the page, too");
    assert!(!page.contains("http://") && !page.contains("https://"), "the page needs nothing else");
    for args in [&["report", "h", "--json"][..], &["report", "h"], &["compare", "h", "h@-1s..", "--json"]] {
        let args = [&["history"], args].concat();
        assert_eq!(said(run(dir, &args), 0), said(run(dir, &args), 0));
    }
}

#[test]
fn compare_needs_five_samples_and_documents_its_fields() {
    let tree = whole_host(|_| FREE);
    let dir = tree.path();
    said(run(dir, &recorded(&["--for", "3s"])), 0);
    let comparison = said(run(dir, &["history", "compare", "h", "h", "--json"]), 0);
    let same = documented(&comparison, PAGE);
    assert_eq!(
        same["conclusion"],
        "B differs from A in no figure by more than each varies in itself. All settings are the same."
    );
    let few = said(run(dir, &["history", "compare", "h@first..first", "h"]), 0);
    assert!(few.starts_with("There are too few samples"), "{few}");
}

#[test]
fn every_command_of_the_page_works() {
    let tree = whole_host(|pfn| if pfn < 4096 { ANON } else { FREE });
    let dir = tree.path();
    let args = ["history", "record", "host.history", "--path.procfs", "proc", "--path.sysfs", "sys"];
    let short = ["--interval", "200ms", "--for", "2s", "--snapshots", "1h"];
    said(run(dir, &[&args[..], &short].concat()), 0);
    let commands: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("kontig ")).collect();
    assert!(commands.len() >= 12);
    for line in commands {
        let command = line.split('#').next().expect("a command").replace("-20s", "-1s").replace("-1h..", "..");
        let args: Vec<&str> = command.split_whitespace().skip(1).collect();
        match args.as_slice() {
            // The first has been tried above; the laboratory has tests of its own.
            ["history", "record", ..] | ["run", ..] => continue,
            // What a simulated machine has written.
            [_, _, "day.history", ..] => continue,
            ["check", ..] => assert!(!said(run(dir, &args), 0).is_empty(), "{line}"),
            _ => assert!(!said(run(dir, &args), 0).is_empty(), "{line}"),
        }
    }
}

#[test]
fn top_needs_a_terminal_and_a_history() {
    let tree = whole_host(|_| FREE);
    refused(run(tree.path(), &["top", "--path.procfs", "proc", "--path.sysfs", "sys"]), 2, "this is no terminal");
    refused(run(tree.path(), &["top", "--history", "none"]), 2, "none: cannot be read");
}

#[test]
fn top_ends_when_its_terminal_is_closed() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let tree = whole_host(|_| FREE);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("its other end");
    let name = ptsname(&terminal, Vec::new()).expect("its name");
    let end = || fs::File::options().read(true).write(true).open(name.to_str().expect("a path")).expect("opened");
    let mut command = Command::new(program());
    command.args(["top", "--path.procfs", "proc", "--path.sysfs", "sys"]).current_dir(tree.path());
    let mut top = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("started");
    // Its screen is there: it waits for keys.
    let mut drawn = [0; 1];
    rustix::io::read(&terminal, &mut drawn).expect("drawn");
    drop(terminal);
    let until = Instant::now() + Duration::from_secs(20);
    let ended = loop {
        match top.try_wait().expect("asked") {
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            ended => break ended,
        }
    };
    let _ = top.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "{ended:?}");
}
