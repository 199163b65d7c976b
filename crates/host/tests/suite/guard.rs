//! `kontig guard`, on hosts made of files: what it does, when it rests, and what it leaves behind.

use crate::common::frames::{ANON, CLEAN_FILE, FREE, SLAB, host};
use crate::common::{self, files, kontig, program, streams};
use kontig_program::SplitMix64;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ROOTS: [&str; 6] = ["--path.procfs", "proc", "--path.sysfs", "sys", "--control", "run"];
const COMPACT: &str = "sys/devices/system/node/node0/compact";
const DRIVEN: &str = "proc/sys/vm/compaction_proactiveness";
const WHOLE: &str = "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 0 8\n";

/// A host of which every other page is free, with a directory to control a guard.
fn fragmented() -> TempDir {
    let tree = common::fragmented();
    fs::create_dir(tree.path().join("run")).unwrap();
    tree
}

/// A guard and its log, until this is dropped.
struct Guard {
    child: Child,
    log: BufReader<std::process::ChildStdout>,
}

impl Guard {
    fn start(tree: &TempDir, args: &[&str]) -> Guard {
        let mut command = Command::new(program());
        command.args(["guard", "--json"]).args(args).args(ROOTS).current_dir(tree.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
        let log = BufReader::new(child.stdout.take().expect("piped"));
        Guard { child, log }
    }

    /// The next event of this name.
    fn wait_for(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.log.read_line(&mut line).unwrap() > 0, "it ended before '{event}'");
            let read: Value = serde_json::from_str(&line).expect("a line of JSON");
            assert_eq!(read["schema"], "kontig.guard/1");
            if read["event"] == event {
                return read;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).expect("it runs");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(tree: &TempDir, file: &str) -> String {
    fs::read_to_string(tree.path().join(file)).unwrap()
}

fn write(tree: &TempDir, file: &str, text: &str) {
    fs::write(tree.path().join(file), text).unwrap();
}

/// Both streams of a guard that ends by itself.
fn said(tree: &TempDir, args: &[&str], code: i32) -> (String, String) {
    streams(tree, &[&["guard"], args, &ROOTS].concat(), code)
}

#[test]
fn without_execute_it_says_what_a_run_would_gain_and_touches_nothing() {
    let tree = fragmented();
    let before = files(tree.path());
    let mut guard = Guard::start(&tree, &["--keep", "10x2M"]);
    let event = guard.wait_for("would_compact");
    assert_eq!((&event["at_hand"], &event["lacks"]), (&0.into(), &11.into()));
    let predicted = &event["predicted"];
    let (moved, least) = (predicted["pages_moved"].as_u64().unwrap(), predicted["fewest_moves"].as_u64().unwrap());
    assert!(predicted["more"].as_u64().unwrap() >= 11 && moved >= least && least == 11 * 256, "{event}");
    assert_eq!(guard.wait_for("rests")["after"]["no_gain"], "dry_run");
    assert_eq!((read(&tree, COMPACT), files(tree.path())), (String::new(), before));
}

#[test]
fn it_compacts_until_the_blocks_are_there_and_tells_what_that_cost() {
    let tree = fragmented();
    let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute"]);
    assert_eq!(guard.wait_for("watches")["rules"]["target"]["blocks"]["count"], 10);
    // A kernel that takes its time.
    while read(&tree, COMPACT).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    write(&tree, "proc/buddyinfo", WHOLE);
    let event = guard.wait_for("compacted");
    assert_eq!(event["before"], 0);
    let rests = loop {
        // A run that ended before this kernel was done has gained nothing.
        let event = guard.wait_for("rests");
        if event["why"] != "back_off" {
            break event;
        }
    };
    assert_eq!((&rests["why"], &rests["at_hand"]), (&"at_target".into(), &15.into()));
    guard.signal(Signal::TERM);
    let end = guard.wait_for("ended");
    assert!(end["nodes"][0]["runs"].as_u64().unwrap() >= 1, "{end}");
    assert!(guard.child.wait().unwrap().success());
}

#[test]
fn it_keeps_blocks_beside_the_kernel_and_leaves_a_score_to_it() {
    let tree = fragmented();
    write(&tree, DRIVEN, "20\n");
    let (text, _) = said(&tree, &["--execute", "--time", "1"], 0);
    assert!(text.contains("the kernel compacts by itself (vm.compaction_proactiveness is 20)"), "{text}");
    assert_eq!(read(&tree, COMPACT), "");
    let (text, _) = said(&tree, &["--keep", "10x2M", "--execute", "--time", "1"], 0);
    assert!(text.contains("the kernel compacts as well (vm.compaction_proactiveness is 20)"), "{text}");
    assert_eq!(read(&tree, COMPACT), "1");
}

#[test]
fn it_says_why_nothing_was_gained() {
    let tree = poisoned();
    let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute"]);
    let event = guard.wait_for("compacted");
    assert_eq!((&event["no_gain"], &event["blocks"]), (&"poisoned".into(), &32.into()));
    // There is nothing free that could be moved together.
    let tree = host(|_| CLEAN_FILE);
    fs::create_dir(tree.path().join("run")).unwrap();
    let (text, _) = said(&tree, &["--keep", "10x2M", "--execute", "--time", "1"], 0);
    assert!(text.contains("no free memory: it makes 0 blocks at most"), "{text}");
    assert_eq!(read(&tree, COMPACT), "");
}

/// A host with a page that stays in every block.
fn poisoned() -> TempDir {
    let tree = host(|pfn| match pfn % 512 {
        0 => SLAB,
        n if n % 2 == 1 => FREE,
        _ => ANON,
    });
    fs::create_dir(tree.path().join("run")).unwrap();
    tree
}

#[test]
fn a_look_at_the_frames_that_the_budget_does_not_have_is_not_taken() {
    let tree = poisoned();
    // As if of 256 GiB: that takes 11 s of a CPU, and 5 s are saved up at most.
    let zones = read(&tree, "proc/zoneinfo");
    let large = |size: &str| (format!("{size}  16384"), format!("{size}  67108864"));
    let [(spanned, spans), (present, has)] = [large("spanned"), large("present")];
    assert!(zones.contains(&spanned) && zones.contains(&present), "{zones}");
    write(&tree, "proc/zoneinfo", &zones.replace(&spanned, &spans).replace(&present, &has));
    let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute"]);
    let event = guard.wait_for("compacted");
    assert_eq!(event["no_gain"], "not_looked", "{event}");
    assert!(event["needs_s"].as_f64().unwrap() > 5.0, "{event}");
}

#[test]
fn a_look_at_the_frames_keeps_it_from_neither_a_stop_nor_a_hold() {
    for held in [false, true] {
        let tree = poisoned();
        // Nobody writes to it: a look would never end.
        fs::remove_file(tree.path().join("proc/kpageflags")).unwrap();
        let fifo = tree.path().join("proc/kpageflags");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute"]);
        let began = Instant::now();
        while read(&tree, COMPACT).is_empty() || look_of(guard.child.id()).is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not look");
            std::thread::sleep(Duration::from_millis(1));
        }
        if held {
            write(&tree, "run/guard.hold", "");
            assert_eq!(guard.wait_for("rests")["why"], "held");
        } else {
            guard.signal(Signal::TERM);
            guard.wait_for("ended");
        }
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}

/// The child of a process that looks at the frames.
fn look_of(guard: u32) -> Option<u32> {
    child_with(guard, "look-at-frames")
}

#[test]
fn a_hold_keeps_it_from_compacting_until_it_is_resumed() {
    let tree = fragmented();
    let control = |command: &[&str]| {
        let args = [&["guard"], command, &["--control", "run"]].concat();
        let output = kontig(tree.path(), &args).assert().code(0).get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    };
    let said = control(&["hold", "--time", "600"]);
    assert_eq!(said, "held for 600 s (run/guard.hold); no guard is at work there, the next one will be\n");
    let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute"]);
    assert_eq!(guard.wait_for("rests")["why"], "held");
    assert_eq!(control(&["hold", "--time", "600"]), "held for 600 s (run/guard.hold)\n");
    assert_eq!(read(&tree, COMPACT), "");
    assert_eq!([control(&["resume"]), control(&["resume"])], ["resumed\n", "it was not held\n"]);
    guard.wait_for("compacted");
}

#[test]
fn a_policy_is_read_anew_and_a_bad_one_leaves_the_old() {
    let tree = fragmented();
    write(&tree, "policy.toml", "keep = \"10x2M\"\n");
    let mut guard = Guard::start(&tree, &["--policy", "policy.toml"]);
    guard.wait_for("would_compact");
    write(&tree, "policy.toml", "keep = \"10x2M\"\ncpu_percent = 200\n");
    guard.signal(Signal::HUP);
    let why = guard.wait_for("policy_refused")["why"].clone();
    assert_eq!(why, "policy.toml:2: cpu_percent is a number from 0.1 to 100");
    write(&tree, "policy.toml", "keep = \"3x2M\"\n");
    guard.signal(Signal::HUP);
    guard.wait_for("policy_read");
    assert_eq!(guard.wait_for("watches")["rules"]["target"]["blocks"]["count"], 3);
}

#[test]
fn the_kernels_setting_is_raised_while_blocks_are_lacking_and_restored_then() {
    let tree = fragmented();
    write(&tree, DRIVEN, "0\n");
    let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute", "--drive-sysctl"]);
    let raised = guard.wait_for("drives")["proactiveness"].as_u64().unwrap();
    assert_eq!(read(&tree, DRIVEN), raised.to_string());
    write(&tree, "proc/buddyinfo", WHOLE);
    assert_eq!(guard.wait_for("released")["at_hand"], 15);
    assert_eq!((read(&tree, DRIVEN).trim(), read(&tree, COMPACT).as_str()), ("0", ""));
    // What the kernel's thread has moved and taken is not known, which is not 0.
    let tells_no_cost = |node: &Value| {
        assert!(node["runs"].as_u64() >= Some(1) && node["cpu_s"].is_null() && node["pages_moved"].is_null(), "{node}");
    };
    while read(&tree, "run/guard.state").contains("\"runs\":0") {
        std::thread::sleep(Duration::from_millis(10));
    }
    tells_no_cost(&serde_json::from_str::<Value>(&read(&tree, "run/guard.state")).unwrap()["nodes"][0]);
    guard.signal(Signal::TERM);
    tells_no_cost(&guard.wait_for("ended")["nodes"][0]);
}

#[test]
fn a_setting_that_would_start_no_compaction_is_not_raised() {
    let tree = fragmented();
    write(&tree, DRIVEN, "0\n");
    // 1,900 of 14,188 free pages are in pieces, a score of 13; kernels before 6.15 begin above 15.
    write(&tree, "proc/buddyinfo", "Node 0, zone   Normal 1900 0 0 0 0 0 0 0 0 0 12\n");
    let drive = ["--keep", "26x2M", "--execute", "--drive-sysctl"];
    write(&tree, "proc/sys/kernel/osrelease", "6.14.3\n");
    let mut guard = Guard::start(&tree, &drive);
    let rests = guard.wait_for("rests");
    assert_eq!((&rests["why"], &rests["above"]), (&"below_score".into(), &15.into()), "{rests}");
    assert_eq!(read(&tree, DRIVEN), "0\n");
    drop(guard);
    write(&tree, "proc/sys/kernel/osrelease", "6.15.0\n");
    Guard::start(&tree, &drive).wait_for("drives");
}

#[test]
fn killed_at_any_moment_it_leaves_every_setting_as_it_was() {
    let tree = fragmented();
    write(&tree, DRIVEN, "7\n");
    // One that ends by itself leaves the files of its locks.
    said(&tree, &["--keep", "10x2M", "--execute", "--drive-sysctl", "--time", "1"], 0);
    // What guard says of itself stays after a kill, and grows old.
    let is_said = |file: &std::path::PathBuf| file.to_string_lossy().starts_with("run/guard.state");
    let files = |dir| files(dir).into_iter().filter(|file| !is_said(file)).collect::<Vec<_>>();
    let found = files(tree.path());
    let (mut random, mut changed) = (SplitMix64::new(1), 0);
    for kill in 0..std::env::var("KONTIG_KILLS").map_or(10, |kills| kills.parse().expect("a number")) {
        let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute", "--drive-sysctl"]);
        // Every other time with the setting changed, however slow the machine is.
        if kill % 2 == 1 {
            guard.wait_for("drives");
        }
        std::thread::sleep(Duration::from_millis(random.next_u64() % 100));
        guard.child.kill().unwrap();
        changed += u32::from(read(&tree, DRIVEN).trim() != "7");
        guard.child.wait().unwrap();
        let killed = Instant::now();
        while read(&tree, DRIVEN).trim() != "7" || files(tree.path()) != found {
            let left = (read(&tree, DRIVEN), files(tree.path()));
            assert!(killed.elapsed() < Duration::from_secs(30), "kill {kill}: {left:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(changed > 0, "no kill met it with a changed setting");
}

/// A second node like the first.
fn second_node(tree: &TempDir) {
    let zone = read(tree, "proc/zoneinfo");
    let second = zone.replace("Node 0", "Node 1").replace("start_pfn:           0", "start_pfn:           16384");
    write(tree, "proc/zoneinfo", &(zone + &second));
    let free = read(tree, "proc/buddyinfo");
    write(tree, "proc/buddyinfo", &(free.clone() + &free.replace("Node 0", "Node 1")));
}

#[test]
fn the_kernels_setting_is_driven_once_for_all_nodes() {
    let tree = fragmented();
    second_node(&tree);
    write(&tree, DRIVEN, "7\n");
    let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute", "--drive-sysctl"]);
    let [first, second] = [guard.wait_for("drives"), guard.wait_for("drives")];
    assert_eq!((&first["node"], &second["node"]), (&0.into(), &1.into()));
    // The one has its blocks, and the other not yet.
    write(&tree, "proc/buddyinfo", &(WHOLE.to_string() + "Node 1, zone   Normal 8192 0 0 0 0 0 0 0 0 0 0\n"));
    assert_eq!(guard.wait_for("released")["node"], 0);
    assert_eq!(read(&tree, DRIVEN), second["proactiveness"].to_string());
    write(&tree, "proc/buddyinfo", &(WHOLE.to_string() + &WHOLE.replace("Node 0", "Node 1")));
    assert_eq!(guard.wait_for("released")["node"], 1);
    assert_eq!(read(&tree, DRIVEN).trim(), "7");
    drop(guard);
    let (_, error) = said(&tree, &["--keep", "1x2M@0", "--execute", "--drive-sysctl", "--time", "1"], 2);
    assert!(error.contains("the policy leaves node 1 alone") && error.lines().count() == 1, "{error}");
}

/// The child of a process that restores its settings.
fn restorer(guard: u32) -> u32 {
    child_with(guard, "restore-at-end").expect("a child restores")
}

/// The child of a process that has this command.
fn child_with(parent: u32, command: &str) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let of = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_it = |pid: &u32| of(pid).split(|b| *b == 0).any(|word| word == command.as_bytes());
    children.split_whitespace().map(|pid| pid.parse().unwrap()).find(is_it)
}

#[test]
fn the_next_guard_restores_what_is_left_where_the_restorer_was_killed_too() {
    let tree = fragmented();
    write(&tree, DRIVEN, "7\n");
    let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute", "--drive-sysctl"]);
    let raised = guard.wait_for("drives")["proactiveness"].as_u64().unwrap();
    let restorer = restorer(guard.child.id());
    kill_process(Pid::from_raw(restorer.try_into().unwrap()).unwrap(), Signal::KILL).expect("it runs");
    drop(guard);
    assert_eq!(read(&tree, DRIVEN), raised.to_string(), "nobody is left who restores");
    // A dry run changes nothing.
    said(&tree, &["--keep", "1x2M", "--time", "1"], 0);
    assert_eq!(read(&tree, DRIVEN), raised.to_string());
    let (text, _) = said(&tree, &["--keep", "1x2M", "--execute", "--time", "1"], 0);
    assert!(text.contains("compaction_proactiveness to 7, as the guard that had changed it was killed"), "{text}");
    assert_eq!(read(&tree, DRIVEN).trim(), "7");
}

/// A file that even root may not write, as all of `/proc/sys` under `ProtectKernelTunables`.
fn not_writable(tree: &TempDir, file: &str) {
    fs::remove_file(tree.path().join(file)).unwrap();
    std::os::unix::fs::symlink("/proc/sys/kernel/ostype", tree.path().join(file)).unwrap();
}

#[test]
fn a_setting_that_it_cannot_restore_keeps_it_from_nothing_and_the_journal_stays() {
    let tree = fragmented();
    write(&tree, DRIVEN, "7\n");
    let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute", "--drive-sysctl"]);
    let raised = guard.wait_for("drives")["proactiveness"].as_u64().unwrap();
    let restorer = restorer(guard.child.id());
    kill_process(Pid::from_raw(restorer.try_into().unwrap()).unwrap(), Signal::KILL).expect("it runs");
    drop(guard);
    not_writable(&tree, DRIVEN);
    // As if that were the value it was raised to.
    let journal = read(&tree, "run/guard.journal").replace(&format!("\"{raised}\""), "\"Linux\"");
    write(&tree, "run/guard.journal", &journal);
    let mut guard = Guard::start(&tree, &["--keep", "10x2M", "--execute"]);
    let event = guard.wait_for("not_restored");
    assert!(event["path"].as_str().unwrap().ends_with("compaction_proactiveness"), "{event}");
    assert!(event["was"] == "7" && event["journal"] == "run/guard.journal", "{event}");
    guard.wait_for("compacted");
    drop(guard);
    let (text, _) = said(&tree, &["--keep", "1x2M", "--execute", "--time", "1"], 0);
    let restores = "'kontig prepare --need 1xorder0 --execute --journal run/guard.journal' restores it";
    assert!(text.lines().filter(|line| line.contains(restores)).count() == 1, "{text}");
    // One that drives could do nothing.
    let (_, error) = said(&tree, &["--keep", "1x2M", "--execute", "--drive-sysctl", "--time", "1"], 5);
    assert!(error.lines().count() == 1, "{error}");
    assert_eq!(read(&tree, "run/guard.journal"), journal);
    // Beside a guard at work, the command does it.
    let guard = Guard::start(&tree, &["--keep", "1x2M", "--execute"]);
    fs::remove_file(tree.path().join(DRIVEN)).unwrap();
    write(&tree, DRIVEN, "Linux\n");
    let prepare = ["prepare", "--need", "1xorder0", "--execute", "--journal", "run/guard.journal"];
    kontig(tree.path(), &[&prepare[..], &ROOTS[..4]].concat()).assert().code(0);
    assert_eq!(read(&tree, DRIVEN).trim(), "7");
    assert!(!tree.path().join("run/guard.journal").exists());
    drop(guard);
}

#[test]
fn a_recorded_host_shows_when_it_would_have_compacted() {
    let tree = fragmented();
    // The process's auxiliary vector, which tells the size of a page (AT_PAGESZ is 6).
    fs::create_dir_all(tree.path().join("proc/self")).unwrap();
    let vector: Vec<u8> = [6u64, 4096, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
    fs::write(tree.path().join("proc/self/auxv"), vector).unwrap();
    let record = ["history", "record", "h", "--interval", "200ms", "--for", "900ms"];
    let roots = ["--path.procfs", "proc", "--path.sysfs", "sys"];
    kontig(tree.path(), &[&record[..], &roots].concat()).assert().code(0);
    let replay = |args: &[&str], code: i32| {
        let output =
            kontig(tree.path(), &[&["guard", "replay", "h"], args].concat()).assert().code(code).get_output().clone();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [json, _] = replay(&["--keep", "10x2M", "--json"], 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "kontig.guard-replay/1");
    let node = &json["nodes"][0];
    assert_eq!(
        (&node["kept"], &node["kept_with_guard"], &node["runs"][0]["makes"]),
        (&0.into(), &node["samples"], &11.into())
    );
    let [text, _] = replay(&["--keep", "10x2M"], 0);
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains("runs that make 11 blocks"), "{text}");
    let [_, error] = replay(&["--keep", "10x2M@7"], 2);
    assert!(error.contains("it has no node 7 with memory") && error.lines().count() == 1, "{error}");
    fs::write(tree.path().join("h"), "no history\n").unwrap();
    let [_, error] = replay(&["--keep", "10x2M"], 2);
    assert!(error.contains("this is no history") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_log_that_cannot_be_written_is_no_good_end() {
    let tree = fragmented();
    let mut command = Command::new(program());
    command.args(["guard", "--keep", "1x2M", "--execute"]).args(ROOTS).current_dir(tree.path());
    command.stdout(fs::File::create("/dev/full").unwrap());
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    // Nobody reads.
    let mut guard = Guard::start(&tree, &["--keep", "1x2M", "--execute"]);
    guard.wait_for("watches");
    guard.log = BufReader::new(Command::new("true").stdout(Stdio::piped()).spawn().unwrap().stdout.unwrap());
    assert_eq!(guard.child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_node_without_a_file_of_its_own_is_not_compacted_by_the_one_for_all() {
    let tree = fragmented();
    second_node(&tree);
    let (_, error) = said(&tree, &["--keep", "1x2M", "--execute", "--time", "1"], 2);
    assert!(error.contains("node1/compact: there is none") && error.lines().count() == 1, "{error}");
    assert_eq!(read(&tree, COMPACT), "");
}

#[test]
fn without_the_right_to_compact_a_node_it_ends_before_it_is_ready() {
    let tree = fragmented();
    second_node(&tree);
    fs::create_dir_all(tree.path().join("sys/devices/system/node/node1")).unwrap();
    write(&tree, "sys/devices/system/node/node1/compact", "");
    not_writable(&tree, "sys/devices/system/node/node1/compact");
    let manager = UnixDatagram::bind(tree.path().join("notify")).unwrap();
    manager.set_nonblocking(true).unwrap();
    let ended = |keep: &str| {
        let mut command = Command::new(program());
        command.args(["guard", "--keep", keep, "--execute", "--time", "1"]).args(ROOTS).current_dir(tree.path());
        let output = command.env("NOTIFY_SOCKET", "notify").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = ended("1x2M");
    assert_eq!((code, error.lines().count()), (Some(5), 1), "{error}");
    assert!(error.contains("node/node1/compact: no permission to write it: "), "{error}");
    assert!(manager.recv(&mut [0; 64]).is_err(), "it was never ready");
    // It needs no right to a node that it leaves alone.
    assert_eq!(ended("1x2M@0").0, Some(0));
    assert_eq!(read(&tree, COMPACT), "1");
    let mut told = [0; 64];
    let n = manager.recv(&mut told).unwrap();
    assert_eq!(&told[..n], b"READY=1");
}

#[test]
fn only_one_guard_compacts() {
    let tree = fragmented();
    let mut first = Guard::start(&tree, &["--keep", "1x2M", "--execute"]);
    first.wait_for("watches");
    let (_, error) = said(&tree, &["--keep", "1x2M", "--execute"], 10);
    assert!(error.contains("another guard is at work (run/guard.running)") && error.lines().count() == 1, "{error}");
    // The unit is not started anew where that changes nothing.
    let unit = include_str!("../../../../packaging/systemd/kontig-guard.service");
    let not_after = unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).unwrap();
    assert_eq!(not_after.split(' ').collect::<Vec<_>>(), ["2", "5", "10"]);
    // In a container, the directory of the lock is the host's.
    let container = include_str!("../../../../packaging/container/Containerfile");
    assert!(container.contains("-v /run/kontig:/run/kontig") && !container.contains("tmpfs"), "{container}");
    let pods = include_str!("../../../../packaging/kubernetes/guard-daemonset.yaml");
    assert!(pods.contains("hostPath: {path: /run/kontig, "), "{pods}");
    // A dry run is no second one.
    said(&tree, &["--keep", "1x2M", "--time", "1"], 0);
}

#[test]
fn a_mistake_is_one_line_and_exit_code_2() {
    let tree = fragmented();
    write(&tree, "bad.toml", "# a policy\nkeeps = \"3x2M\"\n");
    write(&tree, "long.toml", &"# a policy\n".repeat(1 << 17));
    assert!(Command::new("mkfifo").arg(tree.path().join("fifo")).status().unwrap().success());
    let cases = [
        (&["--policy", "bad.toml"][..], "bad.toml:2: unknown key 'keeps': did you mean 'keep'?"),
        (&["--policy", "none.toml"], "none.toml"),
        (&["--policy", "/dev/zero"], "/dev/zero: cannot be read: this is no regular file"),
        (&["--policy", "fifo"], "fifo: cannot be read: this is no regular file"),
        (&["--policy", "sys"], "sys: cannot be read: this is no regular file"),
        (&["--policy", "long.toml"], "long.toml: cannot be read: it is longer than 1 MiB"),
        (&["--keep", "2000x3M"], "3M is no power of two"),
        (&["--keep", "1x2M|2x2M"], "is a ladder"),
        (&["--keep", "1x1G"], "compaction makes blocks up to the largest of the free lists, 4M"),
        (&["--keep", "1x2M", "--keep", "2x2M"], "every node has a target already: say one"),
        (&["--keep", "33x2M"], "node 0 should keep 33 blocks and has memory for 32"),
        (&["--keep", "1x2M@7"], "node 7 has no memory, or does not exist"),
        (&["--execute", "--drive-sysctl"], "this kernel has no vm.compaction_proactiveness"),
    ];
    for (args, why) in cases {
        let (_, error) = said(&tree, &[args, &["--time", "1"]].concat(), 2);
        assert!(error.contains(why) && error.lines().count() == 1, "{args:?}: {error}");
    }
    let error = kontig(tree.path(), &["guard", "hold", "--control", "nowhere"]).assert().code(2).get_output().clone();
    assert_eq!(
        String::from_utf8(error.stderr).unwrap(),
        "kontig: --control: nowhere: there is no such directory: make it first\n"
    );
}
