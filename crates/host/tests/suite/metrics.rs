//! `kontig metrics`: what is served and written, mistakes, the page, and the rules of alerts.

use crate::common::frames::{ANON, FREE, SLAB};
use crate::common::whole_host::whole_host;
use crate::common::{ROOTS, kontig, program, refused, said};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const PAGE: &str = include_str!("../../../../docs/operator/metrics.md");

fn run(dir: &Path, args: &[&str]) -> Output {
    kontig(dir, &[&["metrics"], &ROOTS[..], args].concat()).output().expect("run")
}

/// A server of a host, which ends with this value.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn of(dir: &Path) -> Served {
        let mut command = Command::new(program());
        command.arg("metrics").args(ROOTS).args(["--listen", "127.0.0.1:0"]).current_dir(dir);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("started");
        let mut line = String::new();
        let stderr = child.stderr.take().expect("a pipe");
        BufReader::new(stderr).read_line(&mut line).expect("a line");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
        Served { address: address.to_string(), child }
    }

    /// The answer to a request, head and body.
    fn asked(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(stream, "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_string(), body.to_string())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prometheus_gets_the_series_and_other_requests_an_answer() {
    let tree = whole_host(|_| FREE);
    let served = Served::of(tree.path());
    let (head, body) = served.asked("GET /metrics");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
    let obtainable = "kontig_obtainable_blocks{node=\"0\",block_bytes=\"2097152\"} 31";
    assert!(body.lines().any(|line| line == obtainable), "{body}");
    for (request, code) in [("GET /", 200), ("GET /x", 404), ("POST /metrics", 405), ("HEAD /metrics", 200)] {
        let (head, _) = served.asked(request);
        assert!(head.starts_with(&format!("HTTP/1.1 {code}")), "{request}: {head}");
    }
    fs::remove_file(tree.path().join("proc/buddyinfo")).expect("removed");
    let (head, body) = served.asked("GET /metrics");
    assert!(head.starts_with("HTTP/1.1 500") && body.contains("buddyinfo: there is no such file"), "{head}{body}");
}

#[test]
fn the_frames_say_what_is_reachable_and_what_poisons() {
    // One pageblock in two is poisoned by a slab page, all others hold pages that can be moved.
    let tree = whole_host(|pfn| match (pfn / 512 % 2, pfn % 512) {
        (0, 7) => SLAB,
        (_, n) if n % 2 == 0 => ANON,
        _ => FREE,
    });
    let text = said(run(tree.path(), &["--print", "--frames", "1h"]));
    let value = |series: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(series));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap_or_else(|| panic!("{series} in {text}"))
    };
    assert_eq!(value("kontig_huge_page_blocks{node=\"0\",state=\"poisoned\"}"), 16.0);
    assert_eq!(value("kontig_huge_page_blocks{node=\"0\",state=\"movable\"}"), 16.0);
    assert_eq!(value("kontig_poisoned_blocks{node=\"0\",kind=\"slab\"}"), 16.0);
    assert_eq!(value("kontig_obtainable_blocks{node=\"0\",block_bytes=\"2097152\"}"), 0.0);
    let reachable = value("kontig_compacted_blocks{node=\"0\",block_bytes=\"2097152\"}");
    assert!((1.0..=16.0).contains(&reachable), "{reachable}");
}

#[test]
fn every_series_is_on_the_page_and_every_series_of_the_rules_exists() {
    let tree = whole_host(|_| SLAB);
    let vmstat = "allocstall_normal 1\ncompact_stall 1\ncompact_success 1\ncompact_fail 1\ncompact_daemon_wake 1\n\
                  compact_migrate_scanned 1\ncompact_free_scanned 1\nthp_fault_alloc 1\nthp_fault_fallback 1\n\
                  pgmigrate_success 1\npgmigrate_fail 1\n";
    let dir = tree.path();
    fs::write(dir.join("proc/vmstat"), vmstat).expect("written");
    fs::write(dir.join("proc/sys/vm/compaction_proactiveness"), "20\n").expect("written");
    fs::create_dir(dir.join("proc/39")).expect("made");
    fs::write(dir.join("proc/39/comm"), "kcompactd0\n").expect("written");
    fs::write(dir.join("proc/39/cmdline"), "").expect("written");
    let stat = "39 (kcompactd0) S 2 0 0 0 -1 2129984 0 0 0 0 1 2 0 0 20 0 1 0 78 0 0\n";
    fs::write(dir.join("proc/39/stat"), stat).expect("written");
    fs::create_dir(dir.join("run")).expect("made");
    fs::write(dir.join("run/guard.state"), guard_state()).expect("written");
    let text = said(run(dir, &["--print", "--frames", "1h", "--control", "run"]));
    let names: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).map(|(name, _)| name).collect();
    for name in &names {
        assert!(PAGE.contains(&format!("`{name}`")), "{name} is not on the page");
    }
    for file in ["prometheus/kontig.rules.yml", "grafana/kontig.json"] {
        let text = fs::read_to_string(packaging(file)).expect("it is there");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let used = text.split(|c: char| !is_name(c)).filter(|word| word.starts_with("kontig_"));
        // A recording rule has a name of its own.
        for name in used.filter(|name| *name != "kontig_huge_page_fallback") {
            assert!(names.contains(name), "{file}: {name} is no series");
        }
    }
}

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

/// The state of a guard at work that meets poisoned blocks, and has met others.
fn guard_state() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later").as_secs();
    format!(
        r#"{{"schema":"kontig.guard-state/1","unix_s":{now},"own_cpu_s":0.5,"nodes":[{{"block_bytes":2097152,
        "at_hand":7,"target":10,"is_kept":false,"rests":{{"why":"back_off","no_gain":"poisoned"}},"node":0,
        "watched_s":60,"kept_s":12.5,"runs":3,"fruitless":2,"gained":4,"pages_moved":512,"cpu_s":0.25,
        "fruitless_by":{{"poisoned":1,"taken":1}}}}]}}"#
    )
}

#[test]
fn a_guard_leaves_its_state_for_prometheus_and_takes_it_away_at_its_end() {
    // In every block a page that stays.
    let tree = whole_host(|pfn| if pfn % 512 == 0 { SLAB } else { [ANON, FREE][pfn % 2] });
    let dir = tree.path();
    let compact = "sys/devices/system/node/node0/compact";
    fs::create_dir_all(dir.join("run")).expect("made");
    fs::create_dir_all(dir.join(compact).parent().expect("a directory")).expect("made");
    fs::write(dir.join(compact), "").expect("made");
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(program()).args(["guard", "--keep", "10x2M", "--execute"]);
    command.args(["--control", "run"]).args(ROOTS).current_dir(dir).stdout(Stdio::null());
    let mut guard = command.spawn().expect("started");
    let print = || said(run(dir, &["--print", "--control", "run"]));
    let began = std::time::Instant::now();
    let told = loop {
        let text = print();
        if text.contains("kontig_guard_fruitless_runs_total{") {
            break text;
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{text}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let labels = "node=\"0\",block_bytes=\"2097152\"";
    for line in [format!("kontig_guard_target_blocks{{{labels}}} 10"), format!("kontig_guard_kept{{{labels}}} 0")] {
        assert!(told.lines().any(|found| found == line), "{line} in {told}");
    }
    assert_eq!(fs::metadata(dir.join("run/guard.state")).expect("there").permissions().mode() & 0o777, 0o644);
    let pid = rustix::process::Pid::from_child(&guard);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told to end");
    assert!(guard.wait().expect("it ends").success());
    assert!(!print().contains("kontig_guard_"));
    fs::write(dir.join("run/guard.state"), "{").expect("written");
    // Another version's takes away none of the host's series.
    let told = print();
    let guards: Vec<&str> = told.lines().filter(|line| line.starts_with("kontig_guard_")).collect();
    assert_eq!(guards, ["kontig_guard_state_readable 0"]);
    assert!(told.contains("kontig_collect_duration_seconds "), "{told}");
}

#[test]
fn a_textfile_is_written_whole_again_and_again() {
    let tree = whole_host(|_| FREE);
    // Under a strict umask, too, node_exporter may read it at any moment.
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(program()).arg("metrics").args(ROOTS);
    command.args(["--textfile", "k.prom", "--every", "50ms"]).current_dir(tree.path());
    let mut writer = command.spawn().expect("started");
    let file = tree.path().join("k.prom");
    let mut looks = 0;
    let began = std::time::Instant::now();
    while looks < 20 && began.elapsed() < std::time::Duration::from_secs(30) {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let Ok(text) = fs::read_to_string(&file) else { continue };
        assert!(text.ends_with('\n') && text.contains("kontig_collect_duration_seconds "), "{text}");
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o644);
        looks += 1;
    }
    writer.kill().expect("it runs");
    writer.wait().expect("it ended");
    assert_eq!(looks, 20);
}

#[test]
fn mistakes_are_one_line() {
    let tree = whole_host(|_| FREE);
    let dir = tree.path();
    refused(run(dir, &["--listen", "nowhere"]), 2, "'nowhere' is no address");
    refused(run(dir, &["--textfile", "k.txt"]), 2, "names that end in .prom");
    refused(run(dir, &["--textfile", "no/k.prom"]), 1, "there is no directory no");
    let served = Served::of(dir);
    refused(run(dir, &["--listen", &served.address]), 1, "Address already in use");
    fs::remove_file(dir.join("proc/kpageflags")).expect("removed");
    refused(run(dir, &["--print", "--frames", "1h"]), 1, "kpageflags: there is no such file");
}

/// Runs promtool, or says that it is missing.
fn promtool(args: &[&str], dir: &Path, input: &str) -> Option<Output> {
    let mut command = Command::new("promtool");
    command.args(args).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        println!("skipped: promtool is missing (Debian: prometheus)");
        return None;
    };
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    Some(child.wait_with_output().expect("it ends"))
}

#[test]
fn promtool_finds_no_fault_or_is_skipped() {
    let tree = whole_host(|pfn| if pfn % 2 == 0 { ANON } else { SLAB });
    fs::create_dir(tree.path().join("run")).expect("made");
    fs::write(tree.path().join("run/guard.state"), guard_state()).expect("written");
    let text = said(run(tree.path(), &["--print", "--frames", "1h", "--control", "run"]));
    assert!(text.contains("kontig_guard_resting{"), "{text}");
    for (args, input) in [
        (&["check", "metrics"][..], text.as_str()),
        (&["check", "rules", "kontig.rules.yml"], ""),
        (&["test", "rules", "kontig.rules.test.yml"], ""),
    ] {
        let Some(output) = promtool(args, &packaging("prometheus"), input) else { return };
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said));
    }
}
