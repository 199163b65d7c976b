//! Output of the commands when all goes well.

use crate::common;
use crate::common::{TARGET, experiment, files, kontig, program, tmp, write};
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

fn text(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Runs `kontig`, which must succeed without standard error, and returns its output.
fn done(dir: &Path, args: &[&str]) -> String {
    text(&kontig(dir, args).assert().success().stderr(""))
}

fn json(dir: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&done(dir, args)).unwrap()
}

/// Removes lines that differ between hosts.
fn without_host(mut doc: Value) -> Value {
    for field in ["wall_s", "peak_rss_bytes"] {
        assert!(doc[field].as_f64().unwrap() > 0.0, "{field}");
        doc[field] = Value::Null;
    }
    doc
}

fn fields(v: &Value) -> BTreeSet<&str> {
    v.as_object().unwrap().keys().map(String::as_str).collect()
}

fn set<const N: usize>(names: [&'static str; N]) -> BTreeSet<&'static str> {
    BTreeSet::from(names)
}

const SECTIONS: [&str; 6] = ["experiments", "workloads", "machines", "profiles", "switches", "sysctls"];

#[test]
fn list_shows_all_that_has_a_name() {
    let d = tmp();
    let listed = done(d.path(), &["list"]);
    let doc = json(d.path(), &["list", "--json"]);
    assert_eq!(doc["schema"], "kontig.list/1");
    // How long depends on how fast the host is.
    let takes = " s and 3.7 GiB, on 2 cores)";
    assert!(doc["experiments"][0]["summary"].as_str().unwrap().ends_with(takes), "{}", doc["experiments"][0]);
    for e in doc["experiments"].as_array().unwrap() {
        let summary = e["summary"].as_str().unwrap();
        assert!(summary.contains(" (about ") && !summary.contains("not known"), "{summary}");
    }
    let counters = doc["counters"].as_array().unwrap();
    let swapped = counters.iter().find(|counter| counter["name"] == "pswpin").unwrap();
    assert_eq!((&swapped["unit"], &swapped["better"]), (&"pages".into(), &"lower".into()));
    // A summary continues in lines that are indented further than a name.
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    let joined = listed.lines().fold(String::new(), |text, line| match line.strip_prefix("     ") {
        Some(rest) => text.trim_end().to_string() + " " + rest.trim_start() + "\n",
        None => text + line + "\n",
    });
    let mut lines = joined.lines();
    for section in SECTIONS {
        assert_eq!(lines.next(), Some(section));
        let entries = doc[section].as_array().unwrap();
        assert!(!entries.is_empty(), "{section}");
        for e in entries {
            let (name, summary) = (e["name"].as_str().unwrap(), e["summary"].as_str().unwrap());
            let line = lines.next().unwrap();
            assert_eq!(line.trim_start().split_once("  ").map(|(n, s)| (n, s.trim())), Some((name, summary)));
            assert!(!summary.is_empty());
        }
    }
    assert_eq!(lines.next(), None);
    for known in ["hugepage-latency", "tiny-64m", "6.1", "proactive-compaction", "vm.compaction_proactiveness"] {
        assert!(listed.contains(known), "{known}");
    }
}

#[test]
fn every_listed_name_is_accepted() {
    let d = tmp();
    let doc = json(d.path(), &["list", "--json"]);
    let names = |section: &str| -> Vec<String> {
        doc[section].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap().to_string()).collect()
    };
    for profile in names("profiles") {
        done(d.path(), &["run", "watch", "--machine", "tiny-64m", "--profile", &profile]);
    }
    for switch in names("switches") {
        // A patch applies to one kernel, and later kernels include it; its prerequisites are named.
        let on = |profile: &String| {
            let run = |before: &[&str]| {
                let mut args = vec!["run", "watch", "--machine", "tiny-64m", "--profile", profile, "--json"];
                before.iter().chain([&switch.as_str()]).for_each(|switch| args.extend(["--switch", switch]));
                kontig(d.path(), &args).output().unwrap()
            };
            let alone = run(&[]);
            let said = String::from_utf8(alone.stderr).unwrap();
            match said.trim_end().split_once(": throw '").and_then(|(_, rest)| rest.strip_suffix("' before it")) {
                Some(before) => run(&before.split("', '").collect::<Vec<_>>()).status.success(),
                None => alone.status.success() && said.is_empty(),
            }
        };
        assert!(names("profiles").iter().any(on), "{switch}");
    }
    let machine = common::machine(d.path(), &[("cpus = 2", "cpus = 8"), ("\"80 MiB\"", "\"144 MiB\"")]);
    for workload in names("workloads").iter().filter(|w| *w != "heap") {
        let output = kontig(d.path(), &["run", workload, "--machine", &machine]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        // Workloads with files, and large ones, run on their own machines in
        // other tests: they take longer.
        let needs_another = [
            "choose a machine with disks",
            "choose less, or another machine",
            "choose another machine",
            "choose one of them",
        ];
        let refused = output.status.code() == Some(2) && needs_another.iter().any(|remedy| said.contains(remedy));
        assert!(output.status.success() || refused, "{workload}: {said}");
    }
}

#[test]
fn files_are_printed_to_be_copied() {
    let d = tmp();
    let file = |path: &str| std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for (args, path) in [
        (&["show", "6.1"][..], "profiles/linux-6.1.toml"),
        (&["show", "thpscale"], "experiments/thpscale.toml"),
        (&["show", "--target", "thpscale"], "experiments/targets/thpscale.toml"),
        (&["show", "box-2g"], "machines/box-2g.toml"),
    ] {
        assert_eq!(done(d.path(), args), file(path));
    }
    let unknown = kontig(d.path(), &["show", "6.1x"]).assert().code(2);
    let said = String::from_utf8(unknown.get_output().stderr.clone()).unwrap();
    assert!(said.contains("did you mean '6.1'?"), "{said}");
}

#[test]
fn run_prints_a_table() {
    let d = tmp();
    kontig(d.path(), &["run", "hugealloc", "--machine", "tiny-64m", "--set", "compaction_proactiveness=60"])
        .assert()
        .success()
        .stderr("")
        .stdout(predicate::str::starts_with("hugealloc on tiny-64m\n  A = 6.1+proactiveness=60\n"))
        .stdout(predicate::str::contains("2M hugepages allocated"))
        .stdout(predicate::str::contains("nothing was published"))
        .stdout(predicate::str::contains("seed 1; "))
        .stdout(predicate::str::contains('\u{1b}').not());
}

/// Runs `kontig`, which must succeed, and returns the variants of its first experiment, its notes,
/// and the lines on standard error.
fn what_if(dir: &Path, args: &[&str]) -> (Vec<String>, Vec<String>, String) {
    let output = kontig(dir, &[args, &["--json"]].concat()).assert().success();
    let doc: Value = serde_json::from_str(&text(&output)).unwrap();
    let strings = |v: &Value| v.as_array().unwrap().iter().map(|s| s.as_str().unwrap().into()).collect();
    let e = &doc["experiments"][0];
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    (strings(&e["variants"]), notes(e), stderr)
}

/// An experiment's remarks on omitted and ineffective settings, without those on its runs.
fn notes(e: &Value) -> Vec<String> {
    let kinds = ["is left out", "run once", "had no effect", "boot sets anyway"];
    let remarks = e["remarks"].as_array().unwrap().iter().map(|r| r["text"].as_str().unwrap().to_string());
    remarks.filter(|text| kinds.iter().any(|kind| text.contains(kind)) && !text.contains("the seed has")).collect()
}

#[test]
fn an_experiment_runs_under_any_profile_and_its_variants_are_called_after_what_they_are() {
    let d = tmp();
    let dir = d.path();
    let on = |profile: &str| {
        what_if(dir, &["run", "hugepage-latency", "--machine", "tiny-64m", "--profile", profile, "--out", profile])
    };
    assert_eq!(on("5.6"), (vec!["5.6".into(), "5.6+proactive-compaction".into()], vec![], String::new()));
    // On older ones proactive compaction can be switched on.
    let has_its_own = |p: &kontig_mm::Profile| p.recorded && p.proactive.score != kontig_mm::rules::ProactiveScore::Off;
    let recorded = kontig_profiles::all().filter(has_its_own).map(|p| p.name);
    for profile in std::iter::once("5.9".to_string()).chain(recorded) {
        let profile = profile.as_str();
        let (variants, notes, stderr) = on(profile);
        assert_eq!(variants, [profile]);
        assert!(notes[0].starts_with("switch proactive-compaction of '5.6.0-rc3+proactiveness=20' is left out: "));
        assert!(notes[1].ends_with(&format!("are both {profile} now, which is run once")), "{notes:?}");
        assert_eq!(stderr, notes.iter().map(|n| format!("kontig: {n}\n")).collect::<String>());
        // The same name and the same notes everywhere, also in a rerun.
        let run = dir.join(profile).join(format!("runs/hugepage-latency/{profile}/0.json"));
        let run: Value = serde_json::from_slice(&std::fs::read(run).unwrap()).unwrap();
        assert_eq!(run["variant"], profile);
        let result: Value =
            serde_json::from_slice(&std::fs::read(dir.join(profile).join("result.json")).unwrap()).unwrap();
        assert_eq!(self::notes(&result["experiments"][0]), notes);
        done(dir, &["rerun", profile]);
    }
    let args = ["run", "hugepage-latency", "--machine", "tiny-64m", "--profile", "7.2", "--html", "page.html"];
    let table = text(&kontig(dir, &args).assert().success());
    assert!(table.starts_with("hugepage-latency on tiny-64m\n  A = 7.2\n"), "{table}");
    assert!(table.contains("\nswitch proactive-compaction of "), "{table}");
    let page = std::fs::read_to_string(dir.join("page.html")).unwrap();
    assert!(
        page.contains("hugepage-latency on tiny-64m</h2>") && page.contains("is left out: profile 7.2 has its own")
    );
    assert!(!page.contains("7.2 on tiny-64m"));
}

#[test]
fn a_setting_without_effect_is_said_to_have_none() {
    let d = tmp();
    let dir = d.path();
    let with = |set: &[&str]| {
        let set: Vec<&str> = set.iter().flat_map(|s| ["--set", s]).collect();
        what_if(dir, &[&["run", "hugealloc", "--machine", "tiny-64m"], set.as_slice()].concat())
    };
    let (variants, notes, stderr) = with(&["extfrag_threshold=500"]);
    assert_eq!(
        (variants, notes),
        (vec!["6.1".into()], vec!["vm.extfrag_threshold=500 is what boot sets anyway".into()])
    );
    assert_eq!(stderr, "kontig: vm.extfrag_threshold=500 is what boot sets anyway\n");
    let (_, notes, _) = with(&["compact_unevictable_allowed=0"]);
    assert_eq!(
        notes,
        ["vm.compact_unevictable_allowed=0 had no effect: every decision came out as \
          with 1, which boot sets"]
    );
    done(dir, &["run", "watch", "--machine", "tiny-64m", "--procfs", "proc"]);
    let kbytes = std::fs::read_to_string(dir.join("proc/watch/6.1/0/start/sys/vm/min_free_kbytes")).unwrap();
    let kbytes = kbytes.trim();
    let (_, notes, _) = with(&[&format!("min_free_kbytes={kbytes}")]);
    assert_eq!(notes, [format!("vm.min_free_kbytes={kbytes} had no effect: it is what boot sets on this machine")]);
    // Nobody here uses huge pages for khugepaged to make.
    for idle in ["max_ptes_none=8", "pages_to_scan=8", "scan_sleep_millisecs=1"] {
        let (_, notes, _) = with(&[&format!("thp.khugepaged.{idle}")]);
        assert!(
            notes.len() == 1 && notes[0].starts_with(&format!("thp.khugepaged.{idle} had no effect: ")),
            "{notes:?}"
        );
    }
    for effective in ["min_free_kbytes=4000", "extfrag_threshold=1000", "watermark_scale_factor=1000"] {
        assert_eq!(with(&[effective]).1, [""; 0], "{effective}");
    }
}

#[test]
fn a_published_experiment_is_not_held_against_its_figures_under_other_settings() {
    let d = tmp();
    let doc = json(d.path(), &["run", "hugepage-latency", "--machine", "tiny-64m", "--json"]);
    let e = &doc["experiments"][0];
    assert_eq!((e["id"].as_str(), e["target"].as_str()), (Some("hugepage-latency"), Some("")));
    assert!(e["rows"].as_array().unwrap().iter().all(|r| r["published"].as_array().unwrap().is_empty()));
}

const OF_EXPERIMENT: [&str; 13] = [
    "conclusion",
    "id",
    "case",
    "machine",
    "target",
    "repetitions",
    "rounds",
    "variants",
    "rows",
    "ageing",
    "endings",
    "score",
    "remarks",
];

#[test]
fn json_has_the_fields_of_its_schema_and_no_others() {
    let d = tmp();
    let e = experiment(d.path(), &[("repetitions = 2", "target = \"./target.toml\"")]);
    write(d.path(), "target.toml", TARGET);
    let doc = json(d.path(), &["reproduce", &e, "--json", "--seed", "7"]);
    assert_eq!(fields(&doc), set(["schema", "seed", "wall_s", "peak_rss_bytes", "experiments"]));
    assert_eq!((doc["schema"].as_str(), doc["seed"].as_u64()), (Some("kontig.reproduce/6"), Some(7)));
    let experiments = doc["experiments"].as_array().unwrap();
    assert_eq!(experiments.len(), 1);
    let e = &experiments[0];
    assert_eq!(fields(e), set(OF_EXPERIMENT));
    assert_eq!(e["repetitions"], 1);
    assert_eq!((e["id"].as_str(), e["target"].as_str()), (Some("small"), Some("small-target")));
    assert_eq!(e["variants"], serde_json::json!(["vanilla", "patched, 60"]));
    assert_eq!(fields(&e["score"]), set(["measured", "nothing_changes", "beyond_chance", "within_noise", "apart"]));
    for of in ["measured", "nothing_changes"] {
        let counts = &e["score"][of];
        assert_eq!(fields(counts), set(["direction", "to_zero", "false_alarms", "headline_within_2x", "ageing"]));
        assert_eq!(fields(&counts["false_alarms"]), set(["moved", "of"]));
        for tally in ["direction", "headline_within_2x"] {
            assert_eq!(fields(&counts[tally]), set(["agree", "of"]));
            assert_eq!(counts[tally]["of"], 1);
        }
    }
    assert_eq!(e["score"]["nothing_changes"]["direction"]["agree"], 0, "nothing moves the published way");
    let rows = e["rows"].as_array().unwrap();
    let of_row = set([
        "name",
        "unit",
        "phase",
        "better",
        "merge",
        "headline",
        "published",
        "below",
        "measured",
        "pairs",
        "steps",
        "caveat",
        "statistics",
    ]);
    let of_step = set(["variant", "against", "rule", "direction_agrees", "ratio_off", "size_agrees", "false_alarm"]);
    let of_measured = set(["value", "low", "high", "repetitions", "lacking", "samples", "samples_needed"]);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(fields(row), of_row);
        assert!(row["name"].is_string() && row["unit"].is_string());
        assert_eq!(row["headline"].as_bool(), Some(i == 0), "the target's row comes first: {row}");
        assert_eq!(row["measured"].as_array().unwrap().len(), 2);
        assert!(row["measured"].as_array().unwrap().iter().all(|m| m.is_null() || fields(m) == of_measured));
        assert_eq!(row["published"].as_array().unwrap().len(), if i == 0 { 2 } else { 0 });
        let steps = row["steps"].as_array().unwrap();
        assert_eq!(steps.len(), usize::from(i == 0));
        assert!(steps.iter().all(|step| fields(step) == of_step && step["direction_agrees"].is_boolean()));
    }
    assert_eq!(rows[0]["name"], "hugepage alloc latency p50");
    assert_eq!(rows[0]["published"], serde_json::json!([100.0, 10.0]));
}

#[test]
fn the_same_seed_gives_the_same_whatever_the_jobs() {
    let d = tmp();
    let e = experiment(d.path(), &[]);
    let run = |seed: &str, jobs: &str| without_host(json(d.path(), &["reproduce", &e, "--json", "--seed", seed, jobs]));
    let one = run("5", "-j1");
    assert_eq!(one, run("5", "-j1"));
    assert_eq!(one, run("5", "-j2"));
    assert_eq!(one, run("5", "--jobs=9"));
    let mut other = run("6", "-j2");
    other["seed"] = 5.into();
    assert_ne!(one, other, "another seed makes other holes");
    // The largest seed has no successor, so the repetitions wrap around to the first.
    assert_eq!(run("18446744073709551615", "-j1")["seed"], u64::MAX);
}

#[test]
fn a_stored_result_is_rerun_byte_for_byte() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[]);
    done(dir, &["reproduce", &e, "--out", "kept", "-j2"]);
    // A rerun needs only the result, not the files it was made from.
    std::fs::remove_file(dir.join(&e)).unwrap();
    for result in ["kept", "kept/result.json"] {
        assert_eq!(
            done(dir, &["rerun", result, "-j1"]),
            format!("{result}: identical, 4 runs byte for byte, as stored and as run again\n")
        );
    }
    let kept: Vec<String> = files(&dir.join("kept")).iter().map(|f| f.display().to_string()).collect();
    let runs = |v: &str| [0, 1].map(|r| format!("runs/small/{v}/{r}.json"));
    let mut expected = [runs("vanilla"), runs("patched__60")].concat();
    expected.extend(["result.json", "host.json", "request.json"].map(Into::into));
    expected.sort();
    assert_eq!(kept, expected);
}

#[test]
fn results_of_two_runs_are_the_same_bytes_but_for_the_host() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[]);
    for (out, jobs) in [("a", "-j1"), ("b", "-j4")] {
        done(dir, &["reproduce", &e, "--out", out, jobs]);
    }
    assert_eq!(files(&dir.join("a")), files(&dir.join("b")));
    for file in files(&dir.join("a")).iter().filter(|f| !f.ends_with("host.json")) {
        let of = |out: &str| std::fs::read(dir.join(out).join(file)).unwrap();
        assert_eq!(of("a"), of("b"), "{}", file.display());
    }
    let host: Value = serde_json::from_slice(&std::fs::read(dir.join("a/host.json")).unwrap()).unwrap();
    assert_eq!(fields(&host), set(["wall_s", "peak_rss_bytes"]));
}

/// The runs of a variant of the result in `dir`.
fn stored(dir: &Path, variant: &str, repetitions: u32) -> Vec<Value> {
    let file = |i: u32| std::fs::read(dir.join(format!("runs/small/{variant}/{i}.json"))).unwrap();
    (0..repetitions).map(|i| serde_json::from_slice(&file(i)).unwrap()).collect()
}

#[test]
fn the_table_follows_from_the_runs_that_are_kept() {
    let d = tmp();
    let e = experiment(d.path(), &[("repetitions = 2", "repetitions = 20")]);
    let doc = json(d.path(), &["reproduce", &e, "--json", "--out", "kept"]);
    let rows = doc["experiments"][0]["rows"].as_array().unwrap();
    let row = |name: &str, phase: &str| rows.iter().find(|r| r["name"] == name && r["phase"] == phase).unwrap();
    for (i, variant) in ["vanilla", "patched__60"].into_iter().enumerate() {
        let runs = stored(&d.path().join("kept"), variant, 20);
        // All samples of all repetitions, one by one.
        let mut samples: Vec<f64> = Vec::new();
        for bucket in runs.iter().flat_map(|r| r["histograms"][0]["buckets"].as_array().unwrap()) {
            samples.extend(vec![bucket[0].as_f64().unwrap(); bucket[1].as_u64().unwrap() as usize]);
        }
        samples.sort_by(f64::total_cmp);
        let shown = |name: &str, phase: &str| row(name, phase)["measured"][i]["value"].as_f64().unwrap();
        for (name, share) in [("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99), ("max", 100)] {
            let nth = (samples.len() * share).div_ceil(100);
            assert_eq!(
                shown(&format!("hugepage alloc latency {name}"), "measure"),
                samples[nth - 1],
                "{variant} {name}"
            );
        }
        assert_eq!(shown("hugepage alloc latency samples", "measure"), samples.len() as f64);
        // The median of the repetitions' sums over phases.
        let total = |run: &Value| {
            let phases = run["phases"].as_array().unwrap().iter();
            phases.map(|p| p["cpu"]["kcompactd0"]["system_ns"].as_u64().unwrap()).sum::<u64>()
        };
        let mut totals: Vec<u64> = runs.iter().map(total).collect();
        totals.sort_unstable();
        let of_kcompactd = &row("kcompactd CPU time", "total")["measured"][i];
        assert_eq!(of_kcompactd["value"].as_f64(), Some((totals[9] as f64 / 1e9 + totals[10] as f64 / 1e9) / 2.0));
        assert_eq!(of_kcompactd["high"].as_f64(), Some(totals[19] as f64 / 1e9));
    }
}

#[test]
fn a_run_that_gave_up_says_when_and_can_be_told_to_go_on() {
    let d = tmp();
    let run = |more: &[&str]| {
        // Without proactive compaction a pause helps nobody, and the first failure comes early.
        let set = ["--set", "vm.compaction_proactiveness=0", "--profile", "7.2", "--machine", "tiny-64m"];
        let doc = json(d.path(), &[&["run", "hugealloc", "--json", "--with", "holes=first"], &set[..], more].concat());
        let e = doc["experiments"][0].clone();
        let failed = e["rows"].as_array().unwrap().iter().find(|r| r["name"] == "failed allocations").unwrap();
        (e["remarks"].to_string(), failed["measured"][0]["value"].as_f64().unwrap())
    };
    let (said, failures) = run(&[]);
    assert!(
        said.contains("ended at the first failed allocation, with ") && said.contains("--with give_up_after=N"),
        "{said}"
    );
    assert_eq!(failures, 1.0);
    let (said, failures) = run(&["--with", "give_up_after=30"]);
    assert!(said.contains("ended at 30 failed allocations in a row, with "), "{said}");
    assert!(failures >= 30.0);
}

#[test]
fn the_seed_of_a_workload_known_by_name_makes_a_difference_and_repetitions_have_their_own() {
    let d = tmp();
    let doc =
        json(d.path(), &["run", "hugealloc", "--machine", "tiny-64m", "--repetitions", "3", "--json", "--out", "k"]);
    assert_eq!(doc["experiments"][0]["repetitions"], 3);
    assert!(!doc["experiments"][0]["remarks"].to_string().contains("seed"));
    let runs: Vec<Value> = (files(&d.path().join("k/runs")).iter())
        .map(|f| serde_json::from_slice(&std::fs::read(d.path().join("k/runs").join(f)).unwrap()).unwrap())
        .collect();
    assert_eq!(runs.iter().map(|r| r["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_ne!(runs[0]["map"], runs[1]["map"], "other holes");
    let text =
        done(d.path(), &["run", "hugealloc", "--machine", "tiny-64m", "--with", "holes=first", "--repetitions", "2"]);
    assert!(text.contains("the seed has no effect"), "{text}");
    assert!(text.contains("prepare.holes = first; the workload's own is random"), "{text}");
    assert!(text.contains("\nseed 1; "), "a copy of a run is no evidence: {text}");
}

/// Every address a page would load from.
fn addresses(page: &str) -> Vec<&str> {
    ["src=\"", "href=\"", "src='", "href='", "url("]
        .iter()
        .flat_map(|start| page.match_indices(start).map(|(at, s)| &page[at + s.len()..]))
        .map(|rest| &rest[..rest.find(['"', '\'', ')']).unwrap_or(0)])
        .collect()
}

#[test]
fn a_page_loads_nothing_and_a_picture_is_one() {
    let d = tmp();
    let dir = d.path();
    let e = experiment(dir, &[]);
    write(dir, "page.html", "an earlier page");
    std::fs::create_dir(dir.join("pictures")).unwrap();
    done(dir, &["reproduce", &e, "--html", "page.html", "--svg", "pictures/map.svg"]);
    let page = std::fs::read_to_string(dir.join("page.html")).unwrap();
    assert!(page.trim_start().to_ascii_lowercase().starts_with("<!doctype html>"));
    assert!(page.trim_end().ends_with("</html>"));
    for address in addresses(&page) {
        assert!(address.is_empty() || address.starts_with('#') || address.starts_with("data:"), "{address}");
    }
    for part in ["<link ", "@import", "fetch(", "XMLHttpRequest", "an earlier page"] {
        assert!(!page.contains(part), "{part}");
    }
    for part in ["small", "patched, 60", "2M hugepages allocated"] {
        assert!(page.contains(part), "{part}");
    }
    let picture = std::fs::read_to_string(dir.join("pictures/map.svg")).unwrap();
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"), "{picture:.100}");
    assert!(picture.contains("vanilla"));
    let left: Vec<String> = files(dir).iter().map(|f| f.display().to_string()).collect();
    assert_eq!(left, ["experiment.toml", "page.html", "pictures/map.svg"], "nothing else is left behind");
}

#[test]
fn a_page_can_go_to_standard_output() {
    let d = tmp();
    let both = done(d.path(), &["run", "watch", "--machine", "tiny-64m", "--svg", "/dev/stdout"]);
    assert!(both.contains("seed 1; ") && both.contains("</svg>"));
}

#[test]
fn procfs_writes_the_machines_files_at_the_start_and_the_end() {
    let d = tmp();
    let e = experiment(d.path(), &[]);
    done(d.path(), &["reproduce", &e, "--procfs", "proc"]);
    for run in ["vanilla/0", "vanilla/1", "patched__60/0", "patched__60/1"] {
        let dir = d.path().join("proc/small").join(run);
        let (start, end) = (files(&dir.join("start")), files(&dir.join("end")));
        assert_eq!(start, end);
        for name in
            ["buddyinfo", "pagetypeinfo", "vmstat", "zoneinfo", "extfrag/extfrag_index", "extfrag/unusable_index"]
        {
            assert!(start.iter().any(|f| f == Path::new(name)), "{name} is not among {start:?}");
        }
        let of = |when: &str| std::fs::read_to_string(dir.join(when).join("buddyinfo")).unwrap();
        assert!(of("start").starts_with("Node 0, zone    DMA32"), "{}", of("start"));
        assert_ne!(of("start"), of("end"), "huge pages were taken in between");
    }
}

/// The sums over all zones and nodes of the counters in a `zoneinfo`, by name.
fn sums(zoneinfo: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in zoneinfo.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(Ok(value)), None) = (words.next(), words.next().map(str::parse::<u64>), words.next()) {
            *sums.entry(name.to_owned()).or_default() += value;
        }
    }
    sums
}

#[test]
fn the_counters_of_zones_and_nodes_add_up_to_those_of_the_machine() {
    let d = tmp();
    let writes = "summary = \"s\"\nmachine = \"guest-512m\"\n[[phase]]\nname = \"measure\"\nmeasured = true\n\
                  [[phase.task]]\n\
                  run = { kind = \"steps\", files = [{ file = 1, size = \"600 MiB\" }], steps = [\
                  { do = \"read\", file = 1 }, { do = \"write\", file = 2, size = \"96 MiB\" }] }\n";
    let file = write(d.path(), "writes.toml", writes);
    done(d.path(), &["run", &file, "--profile", "3.13,4.6,6.1,7.2", "--procfs", "proc"]);
    for profile in ["3.13", "4.6", "6.1", "7.2"] {
        let text = |name: &str| {
            let end = d.path().join("proc/writes").join(profile).join("0/end");
            std::fs::read_to_string(end.join(name)).unwrap()
        };
        let (vmstat, zoneinfo) = (text("vmstat"), text("zoneinfo"));
        let (all, sums) = (sums(&vmstat), sums(&zoneinfo));
        let of_zones = sums.iter().filter(|(name, _)| all.contains_key(*name));
        let wrong: Vec<_> = of_zones.clone().filter(|(name, sum)| all[*name] != **sum).collect();
        assert!(wrong.is_empty(), "{profile}: {wrong:?}\n{vmstat}");
        assert!(of_zones.count() > 30, "{profile}");
        for counted in ["nr_dirty", "nr_dirtied", "nr_written", "nr_slab_reclaimable", "nr_file_pages"] {
            let counts = counted != "nr_written" || sums["nr_dirtied"] > sums["nr_dirty"] + sums["nr_writeback"];
            assert!(!counts || sums[counted] > 0, "{profile}: {counted}");
        }
        let by_zone = !["6.1", "7.2"].contains(&profile);
        assert_eq!(zoneinfo.contains("  per-node stats\n"), !by_zone, "{profile}");
        assert_eq!(zoneinfo.contains("\n    nr_inactive_file "), by_zone, "{profile}");
        assert_eq!(zoneinfo.contains("\n  inactive_ratio:    1\n"), by_zone, "{profile}");
    }
}

#[test]
fn a_line_is_enough_for_a_reader_that_wants_no_more() {
    let d = tmp();
    for args in [
        vec!["run", "watch", "--machine", "tiny-64m"],
        vec!["run", "watch", "--machine", "tiny-64m", "--json"],
        vec!["list"],
        vec!["completions", "zsh"],
    ] {
        let mut command = Command::new(program());
        command.current_dir(d.path()).args(&args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take()); // the reader is gone before the first line
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn completions_and_man_pages_are_of_this_program() {
    let d = tmp();
    for shell in ["bash", "zsh", "fish"] {
        let script = done(d.path(), &["completions", shell]);
        for word in ["kontig", "reproduce", "rerun", "procfs"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    done(d.path(), &["man", "man"]);
    let pages: Vec<String> = files(&d.path().join("man")).iter().map(|f| f.display().to_string()).collect();
    for page in ["kontig.1", "kontig-reproduce.1", "kontig-run.1", "kontig-rerun.1", "kontig-list.1"] {
        assert!(pages.iter().any(|p| p == page), "{page} is not among {pages:?}");
        let text = std::fs::read_to_string(d.path().join("man").join(page)).unwrap();
        assert!(text.contains(".TH kontig"), "{page}");
    }
}

#[test]
fn help_names_the_exit_codes_and_the_version_is_the_packages() {
    let d = tmp();
    let codes = "Exit codes: 0 done; 1 failed while running; 2 invalid arguments or input; 3 a verified recording or a \
                 rerun result differs. Commands that inspect a host add: 4 compaction would make the blocks; 5 more \
                 privilege is needed; 6 the blocks cannot be made; 7 only dropping clean cache would make them; 8 \
                 unknown; 9 the blocks were predicted, but not available afterwards; 10 another guard is at work.";
    let help = done(d.path(), &["--help"]);
    assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(codes), "{help}");
    assert_eq!(done(d.path(), &["--version"]), concat!("kontig ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_row_of_the_benchmark_has_a_yardstick_and_a_meaning() {
    let d = tmp();
    // Lines are broken where the terminal ends.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed = done(d.path(), &["bench", "10", "9a"]);
    assert!(printed.starts_with(concat!("kontig ", env!("CARGO_PKG_VERSION"), " on ")), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    let rows = |lines: &str| lines.lines().filter(|l| l.starts_with("9a ") || l.starts_with("10 ")).count();
    assert_eq!(rows(&printed), 2, "{printed}");
    assert_eq!(printed.matches(": ratio ").count(), 2, "{printed}");
    let doc = json(d.path(), &["bench", "9a", "--json"]);
    assert_eq!(doc["schema"], "kontig.bench/2");
    assert_eq!(fields(&doc), set(["schema", "version", "cpu", "full", "cpus_of_others", "rows"]));
    let [row] = &doc["rows"].as_array().unwrap()[..] else { panic!("{doc}") };
    assert_eq!(fields(row), set(["row", "what", "means", "unit", "ours", "yardsticks"]));
    assert_eq!((&row["row"], &row["unit"]), (&"9a".into(), &"bytes".into()));
    assert!(words(&printed).contains(row["means"].as_str().unwrap()), "{printed}");
    let [yardstick] = &row["yardsticks"].as_array().unwrap()[..] else { panic!("{doc}") };
    assert_eq!(yardstick["name"], "struct page");
    let (ours, theirs) = (&row["ours"], &yardstick["figure"]);
    assert_eq!(ours["samples"], 1);
    assert!(ours["min"].as_f64() <= ours["median"].as_f64() && ours["median"].as_f64() <= ours["max"].as_f64());
    let ratio = ours["median"].as_f64().unwrap() / theirs["median"].as_f64().unwrap();
    assert_eq!(yardstick["ratio"].as_f64(), Some(ratio));
}

#[test]
fn a_run_says_where_its_kernels_age_pages_by_generations_and_its_result_is_stored_without() {
    let d = tmp();
    let dir = d.path();
    let kernel = ("profile = \"5.6\"", "profile = \"6.14\"");
    let without_reclaim = experiment(dir, &[kernel]);
    assert!(!done(dir, &["reproduce", &without_reclaim]).contains("multi-generational"));
    common::machine(dir, &[("source = \"chosen: 32 pageblocks\"\n", common::DISK)]);
    let e = experiment(dir, &[kernel, ("\"tiny-64m\"", "\"./machine.toml\"")]);
    let said = done(dir, &["reproduce", &e, "--out", "kept", "--html", "page.html", "-j2"]);
    let remark = "Debian 13, Ubuntu since 23.10 and Fedora run kernels of this age with the multi-generational LRU on";
    assert!(said.contains(&format!("\nA: {remark}")), "of the first variant alone: {said}");
    assert!(std::fs::read_to_string(dir.join("page.html")).unwrap().contains(remark));
    assert!(!std::fs::read_to_string(dir.join("kept/result.json")).unwrap().contains("multi-generational"));
    done(dir, &["rerun", "kept"]);
}

/// A file larger than the memory is read beside memory that is used.
const PRESSED: &str = r#"
summary = "memory in use beside a file that does not fit"
machine = "tiny-64m"

[[phase]]
name = "measure"
measured = true

[[phase.task]]
name = "reader"
copies = 1

[phase.task.run]
kind = "steps"
files = [{ file = 1, size = "96 MiB" }]
repeat = 2
steps = [{ do = "fill", size = "16 MiB" }, { do = "read", file = 1 }, { do = "touch" }, { do = "free" }]
"#;

#[test]
fn a_run_in_generations_reclaims_otherwise_than_one_on_lists_and_says_how_distributions_set_it() {
    let d = tmp();
    let dir = d.path();
    let machine = common::machine(dir, &[("source = \"chosen: 32 pageblocks\"\n", common::DISK)]);
    let pressed = common::write(dir, "pressed.toml", PRESSED);
    let run = ["run", &pressed, "--machine", &machine, "--profile", "6.12"];
    let said = done(dir, &[&run[..], &["--set", "lru_gen.enabled=0,1,7"]].concat());
    let stalls = said.lines().find(|line| line.trim_start().starts_with("allocstall, total")).expect("a row of it");
    assert!(!stalls.contains("×1.00"), "generations stall otherwise: {stalls}");
    for says in ["here lru_gen.enabled is 0", "here lru_gen.enabled is 1"] {
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(says), "{said}");
    }
    let at_boot = done(dir, &[&run[..], &["--json"]].concat());
    let set = done(dir, &[&run[..], &["--set", "lru_gen.enabled=7", "--json"]].concat());
    let rows =
        |said: &str| serde_json::from_str::<serde_json::Value>(said).expect("JSON")["experiments"][0]["rows"].clone();
    assert_eq!(rows(&at_boot), rows(&set), "it boots as distributions boot it");
    assert!(!at_boot.contains("multi-generational LRU"), "{at_boot}");
}
