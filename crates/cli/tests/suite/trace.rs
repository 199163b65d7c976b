//! `--trace`: what scripts, trace-cmd and Perfetto read of it.

use crate::common::{experiment, kontig, program, runs};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A line: task, CPU, four flags, seconds with microseconds, event and text. MMTests splits lines
/// so, and Perfetto, which also insists on at most four flags.
fn fields(line: &str) -> (u32, f64, &str, &str) {
    let (task, rest) = line.split_once('[').expect("a CPU");
    let (comm, pid) = task.trim().rsplit_once('-').expect("comm-pid");
    assert!(comm.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{line}");
    let (cpu, rest) = rest.split_once("] ").expect("a CPU ends");
    assert!(cpu.len() == 3 && cpu.parse::<u32>().is_ok(), "{line}");
    let rest = rest.strip_prefix(".... ").expect("four flag letters");
    let (time, rest) = rest.trim_start().split_once(": ").expect("a time");
    assert_eq!(time.split_once('.').map(|(_, us)| us.len()), Some(6), "{line}");
    let (event, text) = rest.split_once(": ").expect("an event");
    (pid.parse().expect("a number"), time.parse().expect("seconds"), event, text)
}

#[test]
fn a_trace_has_every_event_the_result_counts_and_changes_no_result() {
    let d = tempfile::tempdir().unwrap();
    experiment(d.path(), &[]);
    let traced = runs(d.path(), &["--trace", "t.txt", "--out", "result"]);
    assert_eq!(traced, runs(d.path(), &[]));
    for variant in ["vanilla", "patched__60"] {
        for repetition in 0..2 {
            let text = std::fs::read_to_string(d.path().join(format!("t-small-{variant}-{repetition}.txt"))).unwrap();
            let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
            let mut open: BTreeMap<u32, i32> = BTreeMap::new();
            let mut last = 0.0;
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let (pid, time, event, text) = fields(line);
                assert!(time >= last, "{line}");
                last = time;
                *counts.entry(event).or_default() += 1;
                if event == "tracing_mark_write" {
                    let slices = open.entry(pid).or_default();
                    match &text[..2] {
                        "B|" => *slices += 1,
                        "E|" => *slices -= 1,
                        mark => assert_eq!(mark, "C|"),
                    }
                    assert!(
                        (0..=2).contains(slices),
                        "a task compacts within reclaim, or a daemon while awake: {line}"
                    );
                }
            }
            let run = format!("result/runs/small/{variant}/{repetition}.json");
            let run: Value = serde_json::from_slice(&std::fs::read(d.path().join(run)).unwrap()).unwrap();
            for (event, count) in run["event_counts"].as_object().unwrap() {
                assert_eq!(counts.get(event.as_str()), count["happened"].as_u64().as_ref(), "{event}");
            }
            let ends = counts["mm_compaction_end"];
            assert!(ends > 10 && counts["mm_compaction_begin"] == ends);
            assert!(counts["mm_compaction_isolate_migratepages"] > 0);
        }
    }
}

#[test]
fn each_compaction_run_is_a_slice_named_after_its_zone_effort_and_order() {
    let d = tempfile::tempdir().unwrap();
    let args = ["run", "hugealloc", "--machine", "tiny-64m", "--profile", "6.1", "--trace", "t.txt"];
    kontig(d.path(), &args).assert().success();
    let text = std::fs::read_to_string(d.path().join("t.txt")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut slices = 0;
    for pair in lines.windows(2).filter(|pair| pair[0].contains(": mm_compaction_begin: ")) {
        let (_, _, event, mark) = fields(pair[1]);
        assert_eq!(event, "tracing_mark_write");
        let (_, name) = mark.rsplit_once('|').unwrap();
        let effort = if pair[0].ends_with("mode=async") { "async" } else { "sync" };
        assert!(name.starts_with("compact node 0 ") && name.contains(&format!(", {effort}")), "{name}");
        assert!(!name.contains("order") || name.ends_with(", order 9"), "{name}");
        slices += 1;
    }
    assert!(slices > 10);
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_runs() {
    let d = tempfile::tempdir().unwrap();
    let args = ["run", "hugealloc", "--machine", "tiny-64m", "--trace", "no/t.txt"];
    let refused = kontig(d.path(), &args).assert().failure().code(1);
    let error = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("no/t.txt") && error.contains("make it first"), "{error}");
}

#[test]
fn a_full_disk_ends_the_run_and_names_the_file() {
    let d = tempfile::tempdir().unwrap();
    let args = ["run", "hugealloc", "--machine", "tiny-64m", "--trace", "/dev/full"];
    let failed = kontig(d.path(), &args).assert().failure().code(1);
    let error = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(error.contains("/dev/full: cannot be written: No space left on device"), "{error}");
}

#[test]
fn trace_cmd_reports_the_same_events_as_the_text_or_skipped() {
    let d = tempfile::tempdir().unwrap();
    std::fs::write(d.path().join("build.toml"), BUILD).unwrap();
    for (run, at_least) in [(["hugealloc", "tiny-64m", "6.1"], 200), (["./build.toml", "guest-512m", "7.2"], 100)] {
        if !reported_as_text(d.path(), run, at_least) {
            // Past the capture of a test's output, so that `.ci/run` counts it.
            return writeln!(std::io::stderr(), "skipped: trace-cmd is not installed").expect("an error stream");
        }
    }
}

/// Whether trace-cmd, if it is there, reports the events of a workload on a machine as its text has
/// them.
fn reported_as_text(dir: &Path, [workload, machine, profile]: [&str; 3], at_least: usize) -> bool {
    for file in ["t.txt", "t.dat"] {
        let args = ["run", workload, "--machine", machine, "--profile", profile, "--trace", file];
        kontig(dir, &args).assert().success();
    }
    let report = |args: &[&str]| {
        let output = Command::new("trace-cmd").arg("report").args(args).args(["-i", "t.dat"]).current_dir(dir).output();
        output.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(all) = report(&[]) else { return false };
    // trace-cmd prints no flags, and words are not padded.
    let plain = |line: &str| line.replace(" .... ", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let text = std::fs::read_to_string(dir.join("t.txt")).unwrap();
    let of_text = text.lines().filter(|line| !line.starts_with('#') && !line.contains("tracing_mark_write"));
    let events = |line: &str| plain(line).split_once(": ").map(|(_, event)| event.to_owned());
    let of_text: Vec<_> = of_text.filter_map(events).collect();
    let of_report: Vec<_> = all.lines().skip(1).filter_map(events).collect();
    assert!(of_text.len() > at_least, "{} events", of_text.len());
    let first = of_text.iter().zip(&of_report).find(|(a, b)| a != b);
    assert_eq!((first, of_text.len()), (None, of_report.len()));
    let filtered = report(&["-F", "mm_compaction_end: status == \"success\""]).unwrap_or_default();
    let ends = all.lines().filter(|line| line.contains("mm_compaction_end") && line.ends_with("status=success"));
    assert_eq!(filtered.lines().skip(1).collect::<Vec<_>>(), ends.collect::<Vec<_>>());
    true
}

/// A small build beside a process whose memory khugepaged collapses.
const BUILD: &str = r#"
summary = "a build"
machine = "guest-512m"
sysctls = { "thp.enabled" = "always", "thp.khugepaged.scan_sleep_millisecs" = 100 }

[[phase]]
name = "measure"
measured = true

[[phase.task]]
name = "kbuild"
copies = 1
run = { kind = "kbuild", units = 12, jobs = 2 }

[[phase.task]]
name = "eater"
copies = 1
run = { kind = "steps", repeat = 30, steps = [{ do = "fill", size = "15 MiB" }, { do = "sleep", ms = 100 }] }
"#;

#[test]
fn a_program_that_is_executed_has_its_own_name_and_khugepaged_tells_what_it_sees() {
    let d = tempfile::tempdir().unwrap();
    std::fs::write(d.path().join("build.toml"), BUILD).unwrap();
    for (profile, is_traced) in [("4.4-kcompactd", false), ("6.12", true)] {
        kontig(d.path(), &["run", "./build.toml", "--profile", profile, "--trace", "t.txt"]).assert().success();
        let text = std::fs::read_to_string(d.path().join("t.txt")).unwrap();
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let comm = |line: &str| line.trim().split_once('-').unwrap().0.to_owned();
        let comms: BTreeSet<String> = lines().map(comm).collect();
        assert!(comms.contains("cc1"), "{comms:?}");
        let of_khugepaged =
            |event: &str| lines().filter(|line| line.contains(event)).map(comm).collect::<BTreeSet<_>>();
        for event in [": mm_khugepaged_scan_pmd: mm=", ": mm_collapse_huge_page: mm="] {
            let by = of_khugepaged(event);
            assert_eq!(by.into_iter().collect::<Vec<_>>(), vec!["khugepaged"; usize::from(is_traced)], "{event}");
        }
    }
}

#[test]
fn a_trace_is_summed_up_by_task_zone_and_mode() {
    let d = tempfile::tempdir().unwrap();
    let args = ["run", "hugealloc", "--machine", "tiny-64m", "--profile", "6.1", "--trace", "t.txt", "--out", "result"];
    kontig(d.path(), &args).assert().success();
    let output = kontig(d.path(), &["trace", "t.txt", "--json", "--svg", "s.svg"]).assert().success();
    let doc: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let run = std::fs::read(d.path().join("result/runs/hugealloc/6.1/0.json")).unwrap();
    let run: Value = serde_json::from_slice(&run).unwrap();
    assert_eq!(doc["all"]["runs"], run["event_counts"]["mm_compaction_end"]["happened"]);
    let sum = |count: &str| -> u64 {
        doc["kinds"].as_array().unwrap().iter().map(|kind| kind["counts"][count].as_u64().unwrap()).sum()
    };
    for count in ["runs", "us", "did_nothing", "missed_meeting", "succeeded"] {
        assert_eq!(doc["all"][count].as_u64(), Some(sum(count)), "{count}");
    }
    assert!(std::fs::read_to_string(d.path().join("s.svg")).unwrap().contains("<path class=\"m\" d=\"M"));
}

#[test]
fn of_a_run_across_the_border_of_the_window_the_time_within_counts() {
    let d = tempfile::tempdir().unwrap();
    let text = "a-1 [000] .... 1.000000: mm_compaction_begin: zone_start=0 migrate_start=0 free_start=8 zone_end=8\n\
                CPU:0 [LOST 3 EVENTS]\n\
                a-1 [000] .... 1.010000: mm_compaction_end: status=3\n";
    std::fs::write(d.path().join("t.txt"), text).unwrap();
    let us = |window: &[&str]| {
        let output = kontig(d.path(), &[&["trace", "t.txt", "--json"], window].concat()).assert().success();
        let doc: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        assert_eq!((doc["lost_events"].as_u64(), doc["cut"].as_u64()), (Some(3), Some(0)));
        doc["all"]["us"].as_u64()
    };
    assert_eq!(us(&[]), Some(10_000));
    assert_eq!(us(&["--from", "1.004"]), Some(6000));
    assert_eq!(us(&["--from", "1.004", "--to", "1.005"]), Some(1000));
    let output = kontig(d.path(), &["trace", "t.txt"]).assert().success();
    let said = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert!(said.contains("the tracer lost events, 3 or more"), "{said}");
}

#[test]
fn a_status_or_mode_that_no_kernel_prints_is_named() {
    let d = tempfile::tempdir().unwrap();
    let run = |at: u32, mode: &str, status: &str| {
        format!(
            "a-1 [000] .... {at}.000000: mm_compaction_begin: zone_start=0x0 migrate_pfn=0x0 free_pfn=0x8 zone_end=0x8, \
             mode={mode}\na-1 [000] .... {at}.000009: mm_compaction_end: zone_start=0x0 migrate_pfn=0x0 free_pfn=0x8 \
             zone_end=0x8, mode={mode} status={status}\n"
        )
    };
    let text = run(1, "sync", "success") + &run(2, "sync", "succes") + &run(3, "lazy", "complete");
    std::fs::write(d.path().join("t.txt"), text).unwrap();
    let output = kontig(d.path(), &["trace", "t.txt"]).assert().success();
    let said = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    let lines = "1 run with the unknown mode 'lazy'\n1 run with the unknown status 'succes': nothing says whether a block \
                 was left\n";
    assert!(said.ends_with(lines), "{said}");
    let output = kontig(d.path(), &["trace", "t.txt", "--json"]).assert().success();
    let doc: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let of = |field: &str, value: &str| serde_json::json!({ "field": field, "value": value, "runs": 1 });
    assert_eq!(doc["unknown"], serde_json::json!([of("mode", "lazy"), of("status", "succes")]));
    assert_eq!(doc["all"]["succeeded"], 1);
}

#[test]
fn a_file_that_is_no_trace_is_refused_in_one_line() {
    let d = tempfile::tempdir().unwrap();
    std::fs::write(d.path().join("empty"), "# tracer: nop\n").unwrap();
    std::fs::write(d.path().join("long"), vec![b'x'; 1 << 20]).unwrap();
    std::fs::write(d.path().join("t.dat"), b"\x17\x08\x44tracing6\0").unwrap();
    let begin = "a-1 [000] .... 1.000000: mm_compaction_begin: zone_start=0 migrate_start=0 free_start=8 zone_end=8\n";
    std::fs::write(d.path().join("unended"), begin).unwrap();
    let cases = [
        ("/etc/passwd", "/etc/passwd:1: no line of a trace"),
        ("missing", "missing: cannot be read: No such file"),
        ("empty", "empty has no run of compaction: none was needed, or its events were off"),
        ("long", "long: cannot be read: a line of more than 64 KiB"),
        (
            "t.dat",
            "t.dat: cannot be read: it is trace-cmd's own format: make text of it with 'trace-cmd report -i t.dat",
        ),
        ("unended", "unended: cannot be read: no run of compaction begins and ends in it"),
    ];
    for (file, reason) in cases {
        let refused = kontig(d.path(), &["trace", file]).assert().failure().code(2);
        let error = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(error.contains(reason) && error.lines().count() == 1, "{error}");
    }
    let replaced = kontig(d.path(), &["trace", "unended", "--svg", "./unended"]).assert().failure().code(2);
    let error = String::from_utf8_lossy(&replaced.get_output().stderr).into_owned();
    assert!(error.contains("--svg would replace ./unended, which is read"), "{error}");
    assert_eq!(std::fs::read_to_string(d.path().join("unended")).unwrap(), begin);
    let refused = kontig(d.path(), &["trace", "empty", "--from", "x"]).assert().failure().code(2);
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).contains("--from"));
}

/// Whether pictures and tables are written as the program makes them now, not compared.
fn writes() -> bool {
    std::env::var("KONTIG_PICTURES").is_ok_and(|value| value == "write")
}

#[test]
fn the_commands_of_the_page_print_its_tables_and_draw_its_pictures() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = docs.join("experimenter/tracing.md");
    let mut text = std::fs::read_to_string(&page).unwrap();
    let path =
        format!("{}:{}", Path::new(program()).parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let blocks: Vec<String> = text.split("```sh\n").skip(1).map(Into::into).collect();
    let mut pictures = 0;
    for block in &blocks {
        let (commands, rest) = block.split_once("```").unwrap();
        let Some((_, table)) = rest.split_once("```\n") else { continue };
        let table = table.split_once("```").unwrap().0;
        let d = tempfile::tempdir().unwrap();
        let (mut printed, mut drawn) = (String::new(), Vec::new());
        for line in commands.lines() {
            let mut shell = Command::new("sh");
            let output = shell.args(["-c", line]).current_dir(d.path()).env("PATH", &path).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            printed = String::from_utf8(output.stdout).unwrap();
            drawn.extend(line.split_once("--svg ").map(|(_, file)| file.to_owned()));
        }
        for file in drawn {
            let (svg, stored) = (d.path().join(&file), docs.join("generated").join(&file));
            if writes() {
                std::fs::copy(&svg, &stored).unwrap();
            }
            let same = std::fs::read(&svg).unwrap() == std::fs::read(&stored).unwrap_or_default();
            assert!(same, "docs/generated/{file} is old: KONTIG_PICTURES=write draws it again");
            pictures += 1;
        }
        if writes() {
            text = text.replace(&format!("{commands}```\n\n```\n{table}"), &format!("{commands}```\n\n```\n{printed}"));
        } else {
            assert_eq!(printed, table, "KONTIG_PICTURES=write puts it into docs/experimenter/tracing.md");
        }
    }
    if writes() {
        std::fs::write(&page, text).unwrap();
    }
    assert_eq!(pictures, 3);
}
