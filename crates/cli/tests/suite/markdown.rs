//! `--markdown`: a page holds the measured figures and the text of the
//! experiment's file, nothing else.

use crate::common::{experiment, kontig};
use serde_json::Value;
use std::path::Path;

const PAGE: &str = r#"
[page]
title = "Who waits | and how long?"
about = "Asked by nobody."
depends_on = ["the holes"]
not_modelled = ["caches"]

[[page.question]]
ask = "How long does it take?"
rows = ["elapsed", "pgscan_kswapd"]
reading = "As it is."
"#;

/// The small experiment, with a page.
fn with_page(dir: &Path, page: &str) -> String {
    experiment(dir, &[("\n[workload]", &format!("{page}\n[workload]"))])
}

#[test]
fn a_pages_figures_are_those_of_the_same_runs_json() {
    let dir = tempfile::tempdir().unwrap();
    let page = PAGE.replace(", \"pgscan_kswapd\"", "");
    let file = with_page(dir.path(), &page);
    let run = || {
        let done = kontig(dir.path(), &["reproduce", &file, "--json", "--markdown", "page.md"]).assert().success();
        let json: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
        (json, std::fs::read_to_string(dir.path().join("page.md")).unwrap())
    };
    let (json, text) = run();
    assert_eq!(run().1, text, "the same runs make the same page");
    let said = |line: &str| assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    for line in [
        "# Who waits \\| and how long?",
        "Asked by nobody.",
        "## How long does it take?",
        "As it is.",
        "## What it depends on",
        "- the holes",
        "## What is not modelled",
        "- caches",
    ] {
        said(line);
    }
    let e = &json["experiments"][0];
    let variants: Vec<&str> = e["variants"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
    said(&format!("|  | {} |", variants.join(" | ")));
    let rows = e["rows"].as_array().unwrap();
    let elapsed = rows.iter().find(|row| row["name"] == "elapsed" && row["phase"] == "measure").unwrap();
    let line = text.lines().find(|line| line.starts_with("| elapsed, s |")).unwrap();
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").skip(1).map(str::trim).collect();
    assert_eq!(cells.len(), variants.len());
    for (cell, measured) in cells.iter().zip(elapsed["measured"].as_array().unwrap()) {
        let shown: f64 = cell.split(' ').next().unwrap().replace(',', "").parse().unwrap();
        let value = measured["value"].as_f64().unwrap();
        assert!((shown / value - 1.0).abs() < 1e-3, "{cell} is not {value}");
    }
}

#[test]
fn an_experiment_without_a_page_is_refused_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], says: &str| {
        let done = kontig(dir.path(), args).assert().code(2);
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(said.lines().count() == 1 && said.contains(says), "{said}");
    };
    let plain = experiment(dir.path(), &[]);
    refused(&["reproduce", &plain, "--markdown", "page.md"], "'small' has no [page]");
    refused(&["reproduce", &plain, "backoff", "--markdown", "page.md"], "a page of one experiment");
    assert!(!dir.path().join("page.md").exists());
    let unknown = with_page(dir.path(), PAGE);
    refused(&["reproduce", &unknown, "--markdown", "page.md"], "asks for a row 'pgscan_kswapd', which no run has");
}
