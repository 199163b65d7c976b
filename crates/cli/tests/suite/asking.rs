//! Requests of a run: parameters of the workload, lists of machines and seeds, files from standard
//! input; and `kontig show` of all these.

use crate::common::{ASKED_WRONGLY, FAILED, kontig, machine, refused, refuses, tmp};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::path::Path;

const WATCH: [&str; 4] = ["run", "watch", "--machine", "tiny-64m"];

fn printed(dir: &Path, args: &[&str]) -> String {
    let done = kontig(dir, args).assert().success();
    String::from_utf8(done.get_output().stdout.clone()).expect("text")
}

fn document(dir: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&printed(dir, &[args, &["--json"]].concat())).expect("JSON")
}

#[test]
fn values_of_a_parameter_are_variants_and_a_sweep() {
    let d = tmp();
    let run = [&WATCH[..], &["--with", "seconds=2,4..8:2", "--set", "vm.compaction_proactiveness=60"]].concat();
    let e = document(d.path(), &run)["experiments"][0].clone();
    let names = ["2", "4", "6", "8"].map(|seconds| format!("6.1+proactiveness=60+seconds={seconds}"));
    assert_eq!(e["variants"], json!(names));
    let sweep = &e["sweeps"][0];
    assert_eq!((&sweep["setting"], &sweep["unit"]), (&json!("measure.seconds"), &json!("s")));
    assert_eq!(sweep["values"], json!([2.0, 4.0, 6.0, 8.0]));
    assert_eq!(e["conclusion"][0], "measure.seconds from 2 to 8 s, 4 values, each against 2:");
    let elapsed =
        e["rows"].as_array().expect("rows").iter().find(|row| row["name"] == "elapsed" && row["phase"] == "measure");
    let measured = elapsed.expect("it is measured")["measured"].as_array().expect("figures").iter();
    assert_eq!(measured.map(|m| m["value"].as_f64().expect("s").round()).collect::<Vec<_>>(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn accesses_are_skewed_by_parameters() {
    let d = tmp();
    let heap = ["run", "jvm-heap", "--with", "size=64MiB,accesses=1000,pattern=skewed"];
    let e = document(d.path(), &[&heap[..], &["--with", "theta=0.6,0.99,1.2,hot=together"]].concat());
    let e = &e["experiments"][0];
    assert_eq!(e["variants"], json!(["6.1+theta=0.6", "6.1+theta=0.99", "6.1+theta=1.2"]));
    assert_eq!(e["sweeps"][0]["values"], json!([0.6, 0.99, 1.2]));
    let wrong = ["run", "jvm-heap", "--with", "theta=0.6"];
    refused(d.path(), &wrong, ASKED_WRONGLY, &["theta is of pattern 'skewed' alone: set pattern=skewed, too"]);
}

#[test]
fn a_single_value_changes_the_workload_and_is_said() {
    let d = tmp();
    let e = document(d.path(), &[&WATCH[..], &["--with", "measure.seconds=3,holes=last"]].concat());
    let e = &e["experiments"][0];
    assert_eq!(e["variants"], json!(["6.1"]));
    let remarks = e["remarks"].to_string();
    assert!(remarks.contains("measure.seconds = 3; the workload's own is 60"), "{remarks}");
    assert!(remarks.contains("prepare.holes = last; the workload's own is random"), "{remarks}");
}

#[test]
fn machines_stand_beside_each_other_each_with_a_sweep_of_its_own() {
    let d = tmp();
    let mine = machine(d.path(), &[]);
    let both = format!("tiny-64m,{mine}");
    let run = ["run", "watch", "--machine", &both, "--with", "seconds=2,4,6"];
    let e = document(d.path(), &run)["experiments"][0].clone();
    assert_eq!(e["machine"], "tiny-64m and mine-64m");
    assert_eq!(e["variants"][3], "6.1+seconds=2 on mine-64m");
    let of: Vec<&Value> = e["sweeps"].as_array().expect("sweeps").iter().map(|sweep| &sweep["of"]).collect();
    assert_eq!(of, [&json!("6.1 on tiny-64m"), &json!("6.1 on mine-64m")]);
    // Both machines are the same but for their names.
    for row in e["rows"].as_array().expect("rows") {
        assert_eq!(row["measured"][0], row["measured"][3], "{}", row["name"]);
    }
    refused(d.path(), &["run", "watch", "--machine", "tiny-64m,tiny-64m"], ASKED_WRONGLY, &["tiny-64m is named twice"]);
    refused(d.path(), &["run", "watch", "--machine", "tiny-64m,"], ASKED_WRONGLY, &["a name is empty"]);
}

#[test]
fn seeds_that_are_given_are_exactly_those_that_run() {
    let d = tmp();
    let dir = d.path();
    let doc = document(dir, &[&WATCH[..], &["--with", "seconds=1", "--seed", "1,5,9", "--out", "x"]].concat());
    assert_eq!((&doc["seed"], &doc["experiments"][0]["repetitions"]), (&json!([1, 5, 9]), &json!(3)));
    let seed = |i: usize| -> Value {
        let run = std::fs::read(dir.join(format!("x/runs/watch/6.1/{i}.json"))).expect("a run");
        serde_json::from_slice::<Value>(&run).expect("JSON")["seed"].clone()
    };
    assert_eq!([0, 1, 2].map(seed), [1, 5, 9]);
    assert!(printed(dir, &["rerun", "x"]).contains("identical, 3 runs"));
    assert!(
        printed(dir, &["show", "x"])
            .ends_with(&format!("seeds 1, 5, 9; written by kontig {}\n", env!("CARGO_PKG_VERSION")))
    );
    let range = document(dir, &[&WATCH[..], &["--with", "seconds=1", "--seed", "3..4"]].concat());
    assert_eq!(range["seed"], json!([3, 4]));
    let args = [&WATCH[..], &["--seed", "1,5", "--repetitions", "3"]].concat();
    refused(dir, &args, ASKED_WRONGLY, &["--seed names 2 seeds and --repetitions 3: leave out one of the two"]);
}

#[test]
fn a_file_can_be_read_from_standard_input() {
    let d = tmp();
    let dir = d.path();
    let rows = |text: &[u8]| serde_json::from_slice::<Value>(text).expect("JSON")["experiments"][0]["rows"].clone();
    let by_name = printed(dir, &[&WATCH[..], &["--json"]].concat());
    let piped = |args: &[&str], text: &str| kontig(dir, args).write_stdin(text).output().expect("it runs");
    let workload = piped(&["run", "-", "--machine", "tiny-64m", "--json"], &printed(dir, &["show", "watch"]));
    assert_eq!(rows(&workload.stdout), rows(by_name.as_bytes()));
    let mine = "name = \"mine\"\nbase = \"tiny-64m\"\nsummary = \"a copy\"\nnotes = \"\"\n";
    let machine = piped(&["run", "watch", "--machine", "-", "--json"], mine);
    assert_eq!(rows(&machine.stdout), rows(by_name.as_bytes()));
    let profile = "name = \"mine\"\nbase = \"6.1\"\nsummary = \"a copy\"\n";
    let profile = piped(&[&WATCH[..], &["--profile", "-", "--json"]].concat(), profile);
    assert_eq!(rows(&profile.stdout), rows(by_name.as_bytes()));
    let wrong = ["run", "-", "--machine", "tiny-64m"];
    let output = piped(&wrong, "summary = \"a\"\nmachine = \"tiny-64m\"\nprepare = 3\n");
    refuses(output, &wrong, ASKED_WRONGLY, &["kontig: standard input:3: "]);
    let twice = ["run", "-", "--machine", "-"];
    refuses(piped(&twice, ""), &twice, ASKED_WRONGLY, &["standard input (-) is named 2 times"]);
}

#[test]
fn names_are_shown_by_their_kind() {
    let d = tmp();
    let dir = d.path();
    let heap = printed(dir, &["show", "workload", "heap"]);
    let line = |text: &str, name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).split_whitespace().map(String::from).collect()
    };
    assert_eq!(line(&heap, "prepare.freed_per_section")[1..], ["384", "0", "to", "512"]);
    assert_eq!(line(&heap, "settle_s")[1..3], ["30", "s"]);
    let busy = printed(dir, &["show", "workload", "fio+huge-faults"]);
    assert_eq!(line(&busy, "write.writer.files")[1..4], ["193481", "(of", "4)"]);
    assert!(printed(dir, &["show", "machine", "box-2g"]).contains("\nCPUs    8\n"));
    assert!(printed(dir, &["show", "experiment", "stutter"]).contains("variants  4.4.0-"));
    let brief = printed(dir, &["profile", "show", "6.1", "--short"]);
    assert_eq!(printed(dir, &["show", "profile", "6.1"]), brief);
    refused(dir, &["show", "workload"], ASKED_WRONGLY, &["kontig show workload: name the workload"]);
    refused(
        dir,
        &["show", "wrkload", "heap"],
        ASKED_WRONGLY,
        &["wrkload: unknown kind: it is workload, machine, experiment, profile"],
    );
    refused(dir, &["show", "workload", "haep"], ASKED_WRONGLY, &["did you mean 'heap'?"]);
}

#[test]
fn a_result_is_shown_as_when_it_was_made() {
    let d = tmp();
    let dir = d.path();
    let made = printed(dir, &[&WATCH[..], &["--profile", "5.9,5.10", "--out", "x"]].concat());
    let shown = printed(dir, &["show", "x"]);
    let without_end =
        |text: &str| text.lines().take_while(|line| !line.starts_with("seed 1; ")).collect::<Vec<_>>().join("\n");
    assert_eq!(without_end(&shown), without_end(&made));
}

#[test]
fn a_result_whose_tables_are_not_what_its_runs_give_is_not_shown() {
    let d = tmp();
    let dir = d.path();
    printed(dir, &[&WATCH[..], &["--out", "x"]].concat());
    let changed = |path: &std::path::Path, from: &str, to: &str| {
        let text = std::fs::read_to_string(path).expect("it is there");
        assert!(text.contains(from), "{from}");
        std::fs::write(path, text.replace(from, to)).expect("written");
    };
    let result = dir.join("x/result.json");
    let elapsed = "\"name\": \"elapsed\"";
    changed(&result, elapsed, "\"name\": \"elapsed twice\"");
    refused(dir, &["show", "x"], FAILED, &["x: its tables are not what its runs give", "kontig rerun"]);
    changed(&result, "elapsed twice", "elapsed");
    let run = std::fs::read_dir(dir.join("x/runs/watch")).expect("runs").flatten().next().expect("a run").path();
    let run =
        if run.is_dir() { std::fs::read_dir(&run).expect("runs").flatten().next().expect("one").path() } else { run };
    changed(&run, "{", "{ ");
    refused(dir, &["show", "x"], FAILED, &["this run's file was changed"]);
}

#[test]
fn of_a_shard_it_is_said_how_many_runs_it_has() {
    let d = tmp();
    let dir = d.path();
    printed(dir, &[&WATCH[..], &["--repetitions", "3", "--shard", "1/2", "--out", "x"]].concat());
    let shown = printed(dir, &["show", "x"]);
    assert!(shown.starts_with("watch: 2 of 3 runs are here, and so no table."), "{shown}");
}

#[test]
fn figures_are_printed_by_their_names() {
    let d = tmp();
    let dir = d.path();
    printed(dir, &[&WATCH[..], &["--out", "x"]].concat());
    let shown = printed(dir, &["show", "x", "--figures", "KCOMPACTD CPU,elapsed,nosuch"]);
    let rows = shown.lines().filter_map(|line| line.strip_prefix(' ')?.split("  ").next());
    let rows: Vec<&str> = rows.filter(|row| !row.is_empty() && !row.starts_with(' ')).collect();
    assert!(["elapsed", "elapsed, prepare", "kcompactd CPU time"].iter().all(|row| rows.contains(row)), "{shown}");
    assert!(
        rows.iter().all(|row| row.contains("elapsed") || row.contains("kcompactd CPU") || *row == "row"),
        "{shown}"
    );
    assert!(shown.contains("no figure has 'nosuch' in its name"), "{shown}");
    assert!(!shown.contains("--all-figures prints"), "{shown}");
}

#[test]
fn a_setting_is_judged_against_its_own_kernel() {
    let d = tmp();
    let dir = d.path();
    let two = ["--profile", "5.9,5.10", "--set", "vm.compaction_proactiveness=0,60"];
    let said = printed(dir, &[&WATCH[..], &two].concat());
    let of = |kernel: &str| format!("{kernel}: vm.compaction_proactiveness from 0 to 60, 2 values, each against 0:");
    assert!(said.contains(&of("5.9")) && said.contains(&of("5.10")), "{said}");
    assert!(said.contains("C (5.10+proactiveness=0) against A") && !said.contains("D (5.10"), "{said}");
}

#[test]
fn a_session_that_was_killed_is_said_to_go_on() {
    let d = tmp();
    let dir = d.path();
    printed(dir, &[&WATCH[..], &["--out", "x"]].concat());
    std::fs::rename(dir.join("x/result.json"), dir.join("x/request.json")).expect("renamed");
    refused(dir, &["show", "x"], FAILED, &["x/result.json: the session that wrote here was stopped: --resume"]);
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let d = tmp();
    let dir = d.path();
    refused(dir, &["show", "workload", "heap", "--target"], ASKED_WRONGLY, &["--target is of an experiment's name"]);
    kontig(dir, &["show", "x", "--figures", ","]).assert().failure().code(ASKED_WRONGLY);
    refused(dir, &["show", "heap", "--all-figures"], ASKED_WRONGLY, &["figures are of a stored result"]);
}

#[test]
fn a_page_hands_over_its_figures_as_csv() {
    let d = tmp();
    let dir = d.path();
    let args = [&WATCH[..], &["--profile", "5.9,5.10", "--html", "page.html"]].concat();
    let rows = document(dir, &args)["experiments"][0]["rows"].as_array().expect("rows").clone();
    let page = std::fs::read_to_string(dir.join("page.html")).expect("a page");
    let (_, link) =
        page.split_once("<a download=\"watch.csv\" href=\"data:text/csv;charset=utf-8;base64,").expect("a link");
    let text = BASE64_STANDARD.decode(link.split('"').next().expect("an address")).expect("base64");
    let text = String::from_utf8(text).expect("text");
    assert_eq!(text.lines().count(), 1 + 2 * rows.len());
    let first = &rows[0];
    let value = first["measured"][1]["value"].as_f64().expect("a figure");
    let line = text.lines().nth(2).expect("the second variant");
    assert!(line.starts_with("watch,,tiny-64m,") && line.contains(",5.10,"), "{line}");
    assert!(line.contains(&format!(",{value},")), "{value}: {line}");
}

#[test]
fn completions_know_the_names_that_options_take() {
    let d = tmp();
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(d.path(), &["completions", shell]);
        for name in ["kbuild+stream", "xeon-64g", "4.20-rc3", "proactive-compaction", "vm.swappiness", "give_up_after"]
        {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
}
