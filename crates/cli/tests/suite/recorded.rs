//! `kontig workload`: a recording becomes a workload that runs, the same each time.

use crate::common::{kontig, write};
use std::fs;
use std::path::Path;

const TRACE: &str = "\
cat 7 [000] 100.000000: kmem:mm_page_alloc: pfn=0x101 order=0 gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_ZERO
cat 7 [000] 100.000005: kmem:mm_page_alloc: pfn=0x108 order=3 gfp_flags=GFP_KERNEL|__GFP_COMP
bash 8 [001] 100.000010: kmem:mm_page_alloc: pfn=0x200 order=9 gfp_flags=GFP_TRANSHUGE_LIGHT|__GFP_NEW
cat 7 [000] 100.001000: kmem:mm_page_free: pfn=0x101 order=0
cat 7 [000] 100.002000: kmem:mm_page_free: pfn=0x108 order=3
";

fn output(dir: &Path, args: &[&str]) -> (String, String) {
    let said = kontig(dir, args).assert().code(0);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&said.get_output().stdout), text(&said.get_output().stderr))
}

#[test]
fn a_trace_becomes_a_workload_that_runs_and_says_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.txt", TRACE);
    let (workload, said) = output(dir.path(), &["workload", "from-trace", "t.txt", "--machine", "tiny-64m"]);
    assert!(said.contains("flag __GFP_NEW, which is not known here, left out: 1"), "{said}");
    write(dir.path(), "mine.toml", &workload);
    let run = || output(dir.path(), &["run", "mine.toml", "--json"]).0;
    let table: serde_json::Value = serde_json::from_str(&run()).unwrap();
    let rows = table["experiments"][0]["rows"].as_array().unwrap().clone();
    let row = rows.iter().find(|row| row["name"] == "recorded: allocations replayed").expect("the figure is there");
    assert_eq!(row["measured"][0]["value"], 3.0);
    let again: serde_json::Value = serde_json::from_str(&run()).unwrap();
    assert_eq!(table["experiments"], again["experiments"]);
}

#[test]
fn copies_of_smaps_become_a_workload_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    for (name, kib) in [("a", 4096), ("b", 20480), ("c", 8192)] {
        let smaps = format!("7f0000000000-7f0040000000 rw-p 00000000 00:00 0 \nRss: {kib} kB\nAnonymous: {kib} kB\n");
        write(dir.path(), name, &smaps);
    }
    let args = ["workload", "from-smaps", "--every", "0.5", "a", "b", "c", "--machine", "tiny-64m"];
    write(dir.path(), "grows.toml", &output(dir.path(), &args).0);
    let table = output(dir.path(), &["run", "grows.toml"]).0;
    assert!(table.contains("memory touched"), "{table}");
}

#[test]
fn a_trace_can_come_from_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.txt", TRACE);
    let file = output(dir.path(), &["workload", "from-trace", "t.txt"]).0;
    let piped = kontig(dir.path(), &["workload", "from-trace", "-"]).write_stdin(TRACE).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&piped.stdout), file.replace("t.txt", "standard input"));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |args: &[&str]| {
        let said = kontig(dir.path(), &[&["workload"], args].concat()).assert().code(2);
        let stderr = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
        assert_eq!(said.get_output().stdout.len(), 0);
        stderr
    };
    write(dir.path(), "t.txt", &TRACE.replace("pfn=0x108", "pfn=?"));
    assert!(refused(&["from-trace", "t.txt"]).contains("t.txt:2: mm_page_alloc without a number pfn"));
    fs::write(dir.path().join("perf.data"), b"PERFILE2\xff\xfe").unwrap();
    assert!(refused(&["from-trace", "perf.data"]).contains("perf.data:1: this is no text"));
    let shuffled = refused(&["from-smaps", "--every", "5", "smaps.1", "smaps.10", "smaps.2"]);
    assert!(shuffled.contains("smaps.10 comes before smaps.2") && shuffled.contains("ls -v"), "{shuffled}");
    assert!(refused(&["from-trace", "none.txt"]).contains("none.txt: cannot be read"));
    assert!(refused(&["from-smaps", "--every", "1", "t.txt"]).contains("t.txt:1: "));
    write(dir.path(), "t.txt", TRACE);
    assert!(refused(&["from-trace", "t.txt", "--machine", "none"]).contains("none"));
}

#[test]
fn threads_are_one_process_where_the_recording_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let line = |who: &str, pfn: u32| {
        format!("{who} [000] 1.000000: kmem:mm_page_alloc: pfn={pfn:#x} order=0 gfp_flags=GFP_KERNEL|__GFP_ACCOUNT\n")
    };
    for (both, processes, says_so) in [(true, 1, false), (false, 2, true)] {
        let who = |thread| if both { format!("java 7/{thread}") } else { format!("java {thread}") };
        write(dir.path(), "t.txt", &[line(&who(7), 1), line(&who(8), 2)].concat());
        let (workload, said) = output(dir.path(), &["workload", "from-trace", "t.txt"]);
        assert!(workload.contains(&format!("processes: {processes}\"")), "{workload}");
        assert_eq!(said.contains("perf script -F comm,pid,tid,cpu,time,event,trace"), says_so, "{said}");
        assert!(said.contains("flags without effect here: __GFP_ACCOUNT\n"), "{said}");
    }
}
