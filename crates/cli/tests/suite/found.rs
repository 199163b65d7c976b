//! A snapshot as the start of a run, and settings tried on one:
//! mistakes, stored results, and messages.

use crate::common::frames::{ANON, CLEAN_FILE, FREE, SLAB, host};
use crate::common::kontig;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const ROOTS: [&str; 4] = ["--path.procfs", "proc", "--path.sysfs", "sys"];

/// Of every eight pages one belongs to a process and one to a file, and the rest are free; every
/// fourth block has a kernel object.
fn mixed(pfn: usize) -> u64 {
    match (pfn % 8, pfn % 2048) {
        (_, 5) => SLAB,
        (0, _) => ANON,
        (4, _) => CLEAN_FILE,
        _ => FREE,
    }
}

/// A host and its snapshot, `host.snap`.
fn found() -> TempDir {
    let tree = host(mixed);
    let write = |file: &str, text: &str| {
        let path = tree.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let free = (0..16384).filter(|pfn| mixed(*pfn) == FREE).count();
    let vmstat = fs::read_to_string(tree.path().join("proc/vmstat")).unwrap();
    write("proc/vmstat", &format!("nr_free_pages {free}\n{vmstat}"));
    write("proc/meminfo", &format!("MemTotal: 65536 kB\nMemFree: {} kB\nSwapTotal: 0 kB\n", free * 4));
    write("proc/uptime", "7200.00 14400.00\n");
    write("proc/sys/vm/compaction_proactiveness", "0\n");
    write("proc/sys/vm/watermark_scale_factor", "10\n");
    write("proc/sys/vm/zone_reclaim_mode", "0\n");
    for (file, text) in [
        ("enabled", "always [madvise] never\n"),
        ("defrag", "always defer defer+madvise [madvise] never\n"),
        ("hpage_pmd_size", "2097152\n"),
    ] {
        write(&format!("sys/kernel/mm/transparent_hugepage/{file}"), text);
    }
    kontig(tree.path(), &[&["snapshot", "host.snap"][..], &ROOTS].concat()).assert().code(0);
    tree
}

fn json(dir: &Path, args: &[&str]) -> Value {
    let said = kontig(dir, args).assert().code(0);
    serde_json::from_slice(&said.get_output().stdout).expect("JSON")
}

fn measured(table: &Value, row: &str) -> Vec<f64> {
    let rows = table["rows"].as_array().expect("rows");
    let row = rows.iter().find(|r| r["name"] == row && r["phase"] == "measure").unwrap_or_else(|| panic!("{row}"));
    row["measured"].as_array().expect("a cell a variant").iter().filter_map(|cell| cell["value"].as_f64()).collect()
}

#[test]
fn a_run_begins_as_the_host_was_found_and_is_run_again_from_what_is_stored() {
    let tree = found();
    let run = ["run", "compact", "--snapshot", "host.snap", "--json", "--out", "result"];
    let table = &json(tree.path(), &run)["experiments"][0];
    assert_eq!((&table["machine"], &table["variants"][0]), (&"host+skylake-1s".into(), &"6.12".into()));
    let free = (0..16384).filter(|pfn| mixed(*pfn) == FREE).count() as f64 / 262_144.0;
    assert!((measured(table, "free memory before")[0] - free).abs() < 0.001, "{table}");
    assert!(measured(table, "pgmigrate_success")[0] > 1000.0, "what can be moved is moved: {table}");
    let remarks = table["remarks"].to_string();
    assert!(remarks.contains("starts as Linux 6.12.9 was found") && remarks.contains("made up"), "{remarks}");
    // The host is not needed from here on.
    fs::remove_file(tree.path().join("host.snap")).unwrap();
    kontig(tree.path(), &["rerun", "result"]).assert().code(0);
}

#[test]
fn an_experiment_names_a_snapshot_beside_itself() {
    let tree = found();
    fs::create_dir(tree.path().join("mine")).unwrap();
    fs::rename(tree.path().join("host.snap"), tree.path().join("mine/host.snap")).unwrap();
    let text = "id = 'own'\nsummary = 'a'\nassumptions = ''\nmachine = 'box-2g'\n\
                [workload]\nprepare = { kind = 'snapshot', file = 'host.snap' }\nmeasure = { kind = 'heap', size = '8 \
                MiB' }\n\
                [[variant]]\nname = 'a'\nprofile = '7.2'\n";
    fs::write(tree.path().join("mine/own.toml"), text).unwrap();
    let said = json(tree.path(), &["run", "mine/own.toml", "--json"]);
    assert_eq!(said["experiments"][0]["machine"], "host+box-2g");
}

#[test]
fn a_bad_snapshot_is_refused_in_one_line() {
    let tree = found();
    let refused = |args: &[&str], says: &str| {
        let said = kontig(tree.path(), &[&["run", "compact", "--snapshot"], args].concat()).assert().code(2);
        let stderr = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
        assert!(stderr.contains(says), "{stderr}");
        assert!(said.get_output().stdout.is_empty());
    };
    let snapshot = fs::read_to_string(tree.path().join("host.snap")).unwrap();
    let with =
        |from: &str, to: &str| fs::write(tree.path().join("other.snap"), snapshot.replacen(from, to, 1)).unwrap();
    refused(&["none.snap"], "none.snap: cannot be read");
    refused(&["proc/meminfo"], "proc/meminfo:1: no header of a snapshot");
    with("\"page_size\":4096", "\"page_size\":65536");
    refused(&["other.snap"], "the engine has pages of 4 KiB");
    with("6.12.9", "mine");
    refused(&["other.snap"], "choose a profile with --profile");
    with("\"name\":\"Normal\"", "\"name\":\"HighMem\"");
    refused(&["other.snap"], "HighMem");
    refused(&["host.snap", "--with", "holes=last"], "unknown parameter 'holes'");
    fs::write(tree.path().join("other.snap"), &snapshot[..snapshot.len() / 2]).unwrap();
    refused(&["other.snap"], "other.snap:");
}

#[test]
fn recommended_settings_are_tried_beside_the_host_as_it_is() {
    let tree = found();
    let simulate = ["explain", "--simulate", "--json"];
    let said = json(tree.path(), &[&simulate[..], &ROOTS].concat());
    let simulation = &said["simulation"];
    assert_eq!(simulation["profile"], "6.12");
    assert!(simulation["said"].as_str().is_some_and(|text| text.starts_with("A simulation, not this host")), "{said}");
    assert_eq!(simulation["tried"][0]["name"], "vm.compaction_proactiveness", "{said}");
    let table = &simulation["table"];
    assert_eq!(table["variants"][0], "as it is");
    assert_eq!(table["variants"][1], "vm.compaction_proactiveness=20");
    let scores = measured(table, "fragmentation score before");
    assert!(scores[1] < scores[0], "kcompactd has been at work: {scores:?}");
    let text = kontig(tree.path(), &[&["explain", "--simulate"][..], &ROOTS].concat()).assert().code(0);
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    assert!(
        text.contains("A simulation, not this host") && text.contains("B = vm.compaction_proactiveness=20"),
        "{text}"
    );
}

#[test]
fn pages_of_a_host_begin_in_generations_where_it_has_them_and_their_rules_are_known() {
    let tree = found();
    let remarks = |kernel: &str, mask: &str| {
        fs::create_dir_all(tree.path().join("sys/kernel/mm/lru_gen")).unwrap();
        fs::write(tree.path().join("sys/kernel/mm/lru_gen/enabled"), mask).unwrap();
        fs::write(tree.path().join("proc/sys/kernel/osrelease"), kernel).unwrap();
        kontig(tree.path(), &[&["snapshot", "host.snap"][..], &ROOTS].concat()).assert().code(0);
        let simulated = json(tree.path(), &[&["explain", "--simulate", "--json"][..], &ROOTS].concat());
        let run = json(tree.path(), &["run", "heap", "--with", "size=16MiB", "--snapshot", "host.snap", "--json"]);
        let said = simulated["simulation"]["said"].to_string();
        let noted = run["experiments"][0]["remarks"].to_string().contains("its pages age by generations");
        (said.contains("which is left out"), said.contains("as if these had just been switched on"), noted)
    };
    assert_eq!(remarks("6.12.9\n", "0x0007\n"), (false, true, true));
    assert_eq!(remarks("6.12.9\n", "0x0000\n"), (false, false, false), "this host has them off, whatever others do");
    assert_eq!(remarks("6.18.9\n", "0x0007\n"), (true, false, true));
}

#[test]
fn a_setting_on_a_host_that_was_found_is_compared_with_what_the_host_had() {
    let tree = found();
    fs::create_dir_all(tree.path().join("sys/kernel/mm/lru_gen")).unwrap();
    fs::write(tree.path().join("sys/kernel/mm/lru_gen/enabled"), "0x0007\n").unwrap();
    kontig(tree.path(), &[&["snapshot", "host.snap"][..], &ROOTS].concat()).assert().code(0);
    let heap = ["run", "heap", "--with", "size=16MiB", "--snapshot", "host.snap", "--json", "--set"];
    let remarks =
        |setting| json(tree.path(), &[&heap[..], &[setting]].concat())["experiments"][0]["remarks"].to_string();
    let off = remarks("lru_gen.enabled=0");
    assert!(!off.contains("had no effect"), "{off}");
    let same = remarks("lru_gen.enabled=7");
    assert!(!same.contains("which boot sets"), "{same}");
}

#[test]
fn without_anything_to_try_that_is_said() {
    let tree = found();
    fs::write(tree.path().join("proc/sys/vm/compaction_proactiveness"), "20\n").unwrap();
    let said = json(tree.path(), &[&["explain", "--simulate", "--json"][..], &ROOTS].concat());
    assert_eq!((&said["simulation"]["table"], &said["simulation"]["tried"]), (&Value::Null, &Value::Array(vec![])));
    assert_eq!(json(tree.path(), &[&["explain", "--json"][..], &ROOTS].concat())["simulation"], Value::Null);
}
