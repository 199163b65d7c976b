//! `kontig compare`: stored results beside each other.

use crate::common::{ASKED_WRONGLY, FAILED, kontig, refused, tmp};
use serde_json::Value;
use std::path::Path;

fn stored(dir: &Path, name: &str, args: &[&str]) {
    let run = ["run", "watch", "--machine", "tiny-64m", "--out", name];
    kontig(dir, &[run.as_slice(), args].concat()).assert().success();
}

fn compared(dir: &Path, results: &[&str]) -> Value {
    let done = kontig(dir, &[&["compare"], results, &["--json"]].concat()).assert().success();
    serde_json::from_slice(&done.get_output().stdout).expect("JSON")
}

#[test]
fn results_of_two_kernels_are_one_table_paired_by_seed() {
    let d = tmp();
    let dir = d.path();
    stored(dir, "before", &["--profile", "5.9", "--repetitions", "3"]);
    stored(dir, "after", &["--profile", "5.10", "--repetitions", "2", "--seed", "2"]);
    let doc = compared(dir, &["before", "after"]);
    assert_eq!(doc["schema"], "kontig.compare/4");
    let results = serde_json::json!([
        { "name": "before", "seeds": [1, 2, 3] },
        { "name": "after", "seeds": [2, 3] },
    ]);
    assert_eq!(doc["results"], results);
    let e = &doc["experiments"][0];
    assert_eq!((&e["id"], &e["machine"]), (&"watch".into(), &"tiny-64m".into()));
    assert_eq!(e["variants"], serde_json::json!(["5.9", "5.10"]));
    let paired = |row: &Value| row["pairs"][1]["of"].as_u64();
    assert!(
        e["rows"].as_array().expect("rows").iter().filter_map(paired).all(|of| of == 2),
        "seeds 2 and 3 are in both"
    );
    let said = e["remarks"].to_string();
    assert!(said.contains("after begins with another seed than before"), "{said}");
    assert!(said.contains("after has another number of seeds than before"), "{said}");
    assert!(!e["conclusion"].as_array().expect("a conclusion").is_empty());
}

#[test]
fn results_of_one_variant_are_named_by_their_directories() {
    let d = tmp();
    let dir = d.path();
    stored(dir, "monday", &["--profile", "5.9"]);
    stored(dir, "tuesday", &["--profile", "5.9"]);
    assert_eq!(
        compared(dir, &["monday", "tuesday"])["experiments"][0]["variants"],
        serde_json::json!(["monday", "tuesday"])
    );
    stored(dir, "both", &["--profile", "5.9,5.10"]);
    let variants = &compared(dir, &["monday", "both"])["experiments"][0]["variants"];
    assert_eq!(*variants, serde_json::json!(["monday: 5.9", "both: 5.9", "both: 5.10"]));
}

#[test]
fn values_in_several_results_are_one_sweep() {
    let d = tmp();
    let dir = d.path();
    let set = |value: &str| format!("vm.compaction_proactiveness={value}");
    stored(dir, "low", &["--profile", "5.9", "--set", &set("0,20")]);
    stored(dir, "high", &["--profile", "5.9", "--set", &set("80..100:20")]);
    let e = &compared(dir, &["low", "high"])["experiments"][0];
    let sweep = serde_json::json!({
        "of": "", "setting": "vm.compaction_proactiveness", "unit": "", "variants": [0, 1, 2, 3],
        "values": [0.0, 20.0, 80.0, 100.0],
    });
    assert_eq!(e["sweeps"], serde_json::json!([sweep]));
    let first = e["conclusion"][0].as_str().expect("a sentence");
    assert_eq!(first, "vm.compaction_proactiveness from 0 to 100, 4 values, each against 0:");
    kontig(dir, &["compare", "low", "high", "--html", "page.html"]).assert().success();
    let page = std::fs::read_to_string(dir.join("page.html")).expect("a page");
    assert!(page.contains("Stored results beside each other: low, high"));
}

#[test]
fn of_results_that_are_not_whole_it_is_said_how_many_runs_they_have() {
    let d = tmp();
    let dir = d.path();
    stored(dir, "s1", &["--repetitions", "3", "--shard", "1/2"]);
    stored(dir, "s2", &["--repetitions", "3", "--shard", "2/2"]);
    let said = |results: &[&str]| compared(dir, results)["experiments"][0]["remarks"].to_string();
    let both = said(&["s1", "s2"]);
    for has in ["s1 has 2 of the 3 runs of watch", "s2 has 1 of the 3 runs of watch"] {
        let rest = "the command that made it, with --resume and without --shard, does the others";
        assert!(both.contains(&format!("{has}: {rest}")), "{both}");
    }
    // As it says.
    stored(dir, "s1", &["--repetitions", "3", "--resume"]);
    let one = said(&["s1", "s2"]);
    assert!(!one.contains("s1 has") && one.contains("s2 has 1 of the 3 runs"), "{one}");
}

#[test]
fn results_that_cannot_be_compared_are_refused_in_a_line() {
    let d = tmp();
    let dir = d.path();
    stored(dir, "a", &["--profile", "5.9"]);
    refused(dir, &["compare", "a"], ASKED_WRONGLY, &["name two results or more"]);
    refused(dir, &["compare", "a", "missing"], FAILED, &["missing", "no result can be read here"]);
    refused(dir, &["compare", "a", "./a"], ASKED_WRONGLY, &["./a is given twice"]);
    kontig(dir, &["run", "hugealloc", "--machine", "tiny-64m", "--out", "other"]).assert().success();
    refused(dir, &["compare", "a", "other"], ASKED_WRONGLY, &["share no experiment: a has watch; other has hugealloc"]);
    let run = dir.join("a/runs/watch/5.9/0.json");
    std::fs::write(&run, "{}").expect("written");
    stored(dir, "b", &["--profile", "5.10"]);
    refused(dir, &["compare", "a", "b"], FAILED, &["a/runs/watch/5.9/0.json", "is cut"]);
}
