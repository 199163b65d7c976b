//! Results in the layout of MMTests: complete for its scripts, and equal to the table.

use crate::common::{ASKED_WRONGLY, FAILED, experiment, files, kontig, program, refused, tmp, write};
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn reproduced(dir: &Path, args: &[&str]) -> Value {
    let output = kontig(dir, &[&["reproduce", "./experiment.toml", "--json"], args].concat()).assert().success();
    let mut doc: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    doc["wall_s"] = Value::Null;
    doc["peak_rss_bytes"] = Value::Null;
    doc
}

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    let packed = std::fs::read(path).unwrap();
    MultiGzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    text
}

/// The `/proc/vmstat` before and after a benchmark, as MMTests finds them.
fn snapshots(stamps: &str, benchmark: &str) -> [BTreeMap<String, u64>; 2] {
    let (_, rest) = stamps.split_once(&format!("test begin :: {benchmark} ")).unwrap();
    let (block, _) = rest.split_once(&format!("test end :: {benchmark} ")).unwrap();
    ["start", "end"].map(|when| {
        let (_, rest) = block.split_once(&format!("file {when} :: /proc/vmstat\n")).unwrap();
        let (text, _) = rest.split_once(&format!("file {when} :: /proc/zoneinfo\n")).unwrap();
        let fields = text.lines().map(|line| line.split_once(' ').unwrap());
        fields.map(|(name, n)| (name.to_owned(), n.parse().unwrap())).collect()
    })
}

#[test]
fn an_iteration_has_what_the_scripts_read() {
    let d = tmp();
    experiment(d.path(), &[]);
    reproduced(d.path(), &["--mmtests", "log"]);
    let mut expected = BTreeSet::new();
    for run in ["vanilla", "patched__60"] {
        expected.insert(format!("small/{run}/tests-activity"));
        for i in 0..2 {
            let mut add = |file: &str| expected.insert(format!("small/{run}/iter-{i}/{file}"));
            for file in ["tests-activity", "tests-timestamp", "tests-sysstate", "stutter/noprofile/mmap-latency.log"] {
                add(file);
            }
            for file in [
                "stutterp/logs/mmap-latency-1.log.gz",
                "stress-highalloc/noprofile/log.txt",
                "timedalloc/noprofile/time",
            ] {
                add(file);
            }
            for monitor in ["ftrace", "proc-vmstat", "proc-buddyinfo"] {
                for benchmark in ["stutter", "stress-highalloc", "timedalloc"] {
                    add(&format!("{monitor}-{benchmark}.gz"));
                }
            }
        }
    }
    // Older versions expect all runs side by side, iteration by iteration.
    for (run, n) in [("vanilla", 1), ("vanilla", 2), ("patched__60", 1), ("patched__60", 2)] {
        let mut add = |file: &str| expected.insert(format!("small/flat/{n}/{file}"));
        add(&format!("tests-timestamp-{run}"));
        let logs = [("stutter", "mmap-latency.log"), ("stress-highalloc", "log.txt"), ("timedalloc", "time")];
        for (benchmark, log) in logs {
            add(&format!("{benchmark}-{run}/noprofile/{log}"));
            ["ftrace", "proc-vmstat", "proc-buddyinfo"]
                .iter()
                .for_each(|monitor| assert!(add(&format!("{monitor}-{run}-{benchmark}.gz"))));
        }
    }
    let found: BTreeSet<String> = files(&d.path().join("log")).iter().map(|f| f.display().to_string()).collect();
    assert_eq!(found, expected);
    let read = |file: &str| std::fs::read(d.path().join("log/small").join(file)).unwrap();
    assert_eq!(read("flat/2/tests-timestamp-vanilla"), read("vanilla/iter-1/tests-timestamp"));
    assert_eq!(read("flat/1/ftrace-patched__60-stutter.gz"), read("patched__60/iter-0/ftrace-stutter.gz"));
}

/// Every file below a directory, with its bytes.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |file: std::path::PathBuf| (file.display().to_string(), std::fs::read(dir.join(file)).unwrap());
    files(dir).into_iter().map(read).collect()
}

#[test]
fn a_resumed_session_completes_what_its_runs_leave_elsewhere() {
    let d = tmp();
    let dir = d.path();
    experiment(dir, &[("repetitions = 2", "repetitions = 2\nrounds = 2")]);
    let views = |of: &str| {
        ["--mmtests", "log", "--history", "h", "--procfs", "proc"].map(|part| match part {
            option if option.starts_with("--") => option.to_owned(),
            name => format!("{of}/{name}"),
        })
    };
    for of in ["whole", "part"] {
        std::fs::create_dir(dir.join(of)).unwrap();
        let views = views(of);
        let args: Vec<&str> = views.iter().map(String::as_str).collect();
        reproduced(dir, &[&args[..], &["--out", &format!("{of}-out")]].concat());
    }
    assert!(contents(&dir.join("whole")) == contents(&dir.join("part")));
    // Killed in the second round of a run: one iteration is whole, one is being written.
    let log = dir.join("part/log/small");
    std::fs::rename(log.join("patched__60/iter-3"), log.join("patched__60/.iter-3.part")).unwrap();
    std::fs::remove_file(log.join("flat/4/tests-timestamp-patched__60")).unwrap();
    let history = dir.join("part/h-small-patched__60-1");
    std::fs::write(&history, &std::fs::read(&history).unwrap()[..100]).unwrap();
    for file in ["result.json", "runs/small/patched__60/1.json"] {
        std::fs::remove_file(dir.join("part-out").join(file)).unwrap();
    }
    let views = views("part");
    let args: Vec<&str> = views.iter().map(String::as_str).collect();
    let resume = ["reproduce", "./experiment.toml", "--out", "part-out", "--resume"];
    // Finished runs are not repeated, and would leave nothing in another place.
    refused(dir, &resume, ASKED_WRONGLY, &["part-out holds runs of a session with --history ", "part/h: resume with"]);
    std::fs::create_dir(dir.join("elsewhere")).unwrap();
    let there = [&["reproduce", "../experiment.toml", "--out", "../part-out", "--resume"], &args[..]].concat();
    refused(&dir.join("elsewhere"), &there, ASKED_WRONGLY, &["session with --history ", "part/h: resume with"]);
    let other = [&args[..3], &["x"], &args[4..]].concat();
    let says = "part/h: resume with the same arguments";
    refused(dir, &[&resume[..], &other].concat(), ASKED_WRONGLY, &[says]);
    let stderr = kontig(dir, &[&resume[..], &args].concat()).assert().success().get_output().stderr.clone();
    assert_eq!(String::from_utf8_lossy(&stderr), "kontig: 3 of 4 runs are finished already\n");
    let (whole, part) = (contents(&dir.join("whole")), contents(&dir.join("part")));
    assert_eq!(whole.keys().collect::<Vec<_>>(), part.keys().collect::<Vec<_>>());
    for (file, bytes) in &whole {
        assert!(part[file] == *bytes, "{file} differs");
    }
    // What another command left is never replaced, and a refused session leaves nothing.
    let again = ["reproduce", "./experiment.toml", "--out", "new", "--resume", "--mmtests", "part/log"];
    refused(dir, &again, ASKED_WRONGLY, &["part/log/small/vanilla exists, and results are never overwritten"]);
    assert!(!dir.join("new").exists());
}

#[test]
fn the_report_has_the_figures_of_the_runs() {
    let d = tmp();
    experiment(d.path(), &[]);
    let doc = reproduced(d.path(), &["--mmtests", "log", "--out", "kept"]);
    assert_eq!(doc, reproduced(d.path(), &[]), "nothing measured depends on it");
    let levels = kontig_lab::vmstat::declared().filter(|counter| counter.is_level).map(|counter| counter.name);
    let levels: BTreeSet<&str> = levels.collect();
    for variant in ["vanilla", "patched__60"] {
        for i in 0..2 {
            let stored = std::fs::read(d.path().join(format!("kept/runs/small/{variant}/{i}.json"))).unwrap();
            let run: Value = serde_json::from_slice(&stored).unwrap();
            let dir = d.path().join(format!("log/small/{variant}/iter-{i}"));
            let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
            let stamps = read("tests-timestamp");
            assert_eq!(stamps, read("tests-sysstate"));
            for benchmark in ["stutter", "stress-highalloc", "timedalloc"] {
                let [before, after] = snapshots(&stamps, benchmark);
                for (event, n) in run["vmstat"].as_object().unwrap() {
                    if let (Some(a), Some(b)) = (before.get(event), after.get(event)) {
                        // A run stores a level as it is at the end, and what an event added.
                        let stored = if levels.contains(event.as_str()) { *b } else { b - a };
                        assert_eq!(Some(stored), n.as_u64(), "{event}");
                    }
                }
                let of_zones = |of: &BTreeMap<String, u64>| {
                    of.iter().filter(|(name, _)| name.starts_with("allocstall_")).map(|(_, n)| n).sum::<u64>()
                };
                assert_eq!(after["allocstall"], of_zones(&after));
                assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
            }
            // Latencies in ns, a line per bucket.
            let log = read("stutter/noprofile/mmap-latency.log");
            let buckets = run["histograms"][0]["buckets"].as_array().unwrap();
            assert_eq!(log.lines().count(), buckets.len());
            for (line, bucket) in log.lines().zip(buckets) {
                let (n, ns) = line.split_once(' ').unwrap();
                assert_eq!(n.parse().ok(), bucket[1].as_u64());
                assert_eq!(ns.parse::<f64>().unwrap(), (bucket[0].as_f64().unwrap() * 1000.0).round());
            }
            assert_eq!(unpacked(&dir.join("stutterp/logs/mmap-latency-1.log.gz")), log);
            let figure = |name: &str| {
                let all = run["figures"].as_array().unwrap();
                all.iter().find(|r| r["name"] == name && r["phase"] == "measure").unwrap()["value"].as_f64().unwrap()
            };
            let (got, failed) = (figure("2M hugepages allocated"), figure("failed allocations"));
            let success = format!("% Success:            {}\n", (100.0 * got / (got + failed)).floor());
            assert!(read("stress-highalloc/noprofile/log.txt").contains(&success), "{success}");
            let time = format!("{:.2}user {:.2}system 0:", figure("user"), figure("system"));
            assert!(read("timedalloc/noprofile/time").starts_with(&time), "{time}");
            // The events in the trace are those that the table counts.
            let trace = unpacked(&dir.join("ftrace-stutter.gz"));
            for (event, count) in run["event_counts"].as_object().unwrap() {
                let lines = trace.lines().filter(|line| line.contains(&format!(": {event}: "))).count() as u64;
                assert_eq!(Some(lines), count["happened"].as_u64(), "{event}");
            }
            assert!(run["event_counts"].get("mm_page_alloc_extfrag").is_none());
            for line in trace.lines().filter(|line| line.contains("mm_page_alloc_extfrag")) {
                assert!(line.contains(": page=0 pfn=") && !line.contains("0x"), "{line}");
            }
        }
    }
}

/// Two processes of two threads each, which end at about the same time.
const USEMEM: &str = r#"
id = "small"
summary = "usemem"
assumptions = "none"
machine = "guest-2g"

[[workload.phase]]
name = "lay out"
measured = true

[[workload.phase.task]]
run = { kind = "steps", steps = [{ do = "write", file = 1, size = "330 MiB", piece = "1 MiB" }] }

[[workload.phase]]
name = "run"
measured = true

[[workload.phase.task]]
copies = 1

[workload.phase.task.run]
kind = "usemem"
anonymous = "100 MiB"
file_size = "60 MiB"
file = 1
threads = [2]
iterations = 2
loops = 1

[[variant]]
name = "4.4.0-old"
profile = "4.4-kcompactd"
sysctls = { "thp.enabled" = "always" }
"#;

#[test]
fn usemem_stands_as_itself_a_file_for_each_try() {
    let d = tmp();
    write(d.path(), "usemem.toml", USEMEM);
    kontig(d.path(), &["reproduce", "./usemem.toml", "--mmtests", "log"]).assert().success().stderr("");
    for file in ["4.4.0-old/iter-0/usemem/noprofile/usemem-2-", "flat/1/usemem-4.4.0-old/noprofile/usemem-2-"] {
        for attempt in 1..=2 {
            let path = d.path().join(format!("log/small/{file}{attempt}"));
            let log = std::fs::read_to_string(path).unwrap();
            assert!(log.starts_with("-user 0.") && log.contains("system 0:00.") && log.ends_with("elapsed\n"), "{log}");
        }
    }
}

#[test]
fn rounds_are_iterations_and_monitors_look_every_ten_seconds() {
    let d = tmp();
    let watch = [("{ kind = \"hugealloc\", gfp = \"GFP_KERNEL\" }", "{ kind = \"watch\", seconds = 60 }")];
    experiment(d.path(), &[&watch[..], &[("repetitions = 2", "rounds = 2\nrepetitions = 2")]].concat());
    reproduced(d.path(), &["--mmtests", "log"]);
    let run = d.path().join("log/small/patched__60");
    let stamps = (0..4).map(|i| std::fs::read_to_string(run.join(format!("iter-{i}/tests-timestamp"))).unwrap());
    let times: Vec<[u64; 2]> = stamps
        .map(|text| {
            ["start :: ", "\nfinish :: "].map(|key| {
                let (_, rest) = text.split_once(key).unwrap();
                rest.lines().next().unwrap().parse().unwrap()
            })
        })
        .collect();
    // Two machines with two rounds each: the second round begins where
    // the first ended, without a boot.
    assert_eq!((times[0][1], times[2][1]), (times[1][0], times[3][0]));
    assert!(times[0][0] == times[2][0] && times.iter().all(|[begin, end]| end - begin == 60), "{times:?}");
    let looks: Vec<u64> = unpacked(&run.join("iter-1/proc-vmstat-timedalloc.gz"))
        .lines()
        .filter_map(|line| line.strip_prefix("time: ")?.parse().ok())
        .collect();
    assert!((6..=8).contains(&looks.len()) && looks.windows(2).all(|w| (8..=12).contains(&(w[1] - w[0]))), "{looks:?}");
    assert!(!run.join("iter-0/stutter").exists(), "nothing is timed");
}

#[test]
fn a_directory_may_hold_other_things_and_they_stay_but_no_variant_is_written_over() {
    let d = tmp();
    let e = experiment(d.path(), &[]);
    std::fs::create_dir_all(d.path().join("log/small/4.4.0-real/iter-0")).unwrap();
    write(&d.path().join("log/small"), "notes", "mine");
    kontig(d.path(), &["reproduce", &e, "--mmtests", "log"]).assert().success().stderr("");
    let before = files(&d.path().join("log"));
    assert_eq!(std::fs::read_to_string(d.path().join("log/small/notes")).unwrap(), "mine");
    let refused = |args: &[&str], code: i32, says: &str| {
        let output = kontig(d.path(), args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(code), 1), "{stderr}");
        assert!(stderr.contains(says), "'{stderr}' instead of '{says}'");
    };
    refused(&["reproduce", &e, "--mmtests", "log"], ASKED_WRONGLY, "log/small/vanilla exists");
    assert_eq!(files(&d.path().join("log")), before);
    for variant in ["vanilla", "patched__60"] {
        std::fs::remove_dir_all(d.path().join("log/small").join(variant)).unwrap();
    }
    let flat = "log/small/flat/1/tests-timestamp-vanilla exists";
    refused(&["reproduce", &e, "--mmtests", "log"], ASKED_WRONGLY, flat);
    refused(
        &["reproduce", &e, "--mmtests", "experiment.toml"],
        FAILED,
        "experiment.toml: cannot be written: this is no directory",
    );
    refused(&["reproduce", &e, "--mmtests", "/dev/full"], FAILED, "/dev/full: cannot be written: this is no directory");
    let e = experiment(d.path(), &[("\"vanilla\"", "\"flat\"")]);
    refused(&["reproduce", &e, "--mmtests", "log"], ASKED_WRONGLY, "call this variant something else");
}

#[test]
fn an_interrupt_leaves_whole_iterations_and_says_where_they_are() {
    let d = tmp();
    let e = experiment(d.path(), &[("repetitions = 2", "repetitions = 10000")]);
    let mut command = Command::new(program());
    command.current_dir(d.path()).args(["reproduce", &e, "--mmtests", "log", "-j1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let second = d.path().join("log/small/vanilla/iter-1");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !second.exists() && Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let run = d.path().join("log/small/vanilla");
    let iterations = std::fs::read_dir(&run).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let iterations: Vec<String> = iterations.filter(|name| name != "tests-activity").collect();
    let n = iterations.len();
    let says =
        "their iterations are in log. Without --out they cannot be resumed: remove log and begin again with --out";
    assert_eq!(stderr, format!("kontig: interrupted; {n} of 20000 runs were finished; {says}\n"));
    assert_eq!((output.status.code(), n >= 2), (Some(FAILED), true));
    for iteration in iterations {
        assert_eq!(files(&run.join(&iteration)).len(), 16, "{iteration}");
    }
}
