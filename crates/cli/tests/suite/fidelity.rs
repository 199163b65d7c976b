//! `kontig oracle fidelity` on a small project: the page in Markdown and JSON,
//! and one line for each mistake.

use crate::common::kontig;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../oracle/golden/6.1-direct-unmovable");

/// A project with one recording, one mechanism and one planted mistake.
fn project(mechanism_of_the_mistake: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let golden = dir.path().join("oracle/golden/6.1-direct-unmovable");
    std::fs::create_dir_all(&golden).unwrap();
    for entry in std::fs::read_dir(RECORDING).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, golden.join(path.file_name().unwrap())).unwrap();
    }
    let write = |file: &str, text: &str| std::fs::write(dir.path().join("oracle").join(file), text).unwrap();
    let mechanism = "[[mechanism]]\nname = \"Capture\"\nengine = []\nrules = \"5.3\"\nbegins = []\n";
    write("mechanisms.toml", mechanism);
    write("mutants.toml", &format!("[[mutant]]\nname = \"m\"\nmechanism = \"{mechanism_of_the_mistake}\"\n"));
    let here = "[\"6.1-direct-unmovable\"]";
    write("evidence.toml", &format!("[reached]\nCapture = {here}\n\n[noticed]\nm = {here}\n"));
    dir
}

/// Exit code, standard output and standard error.
fn fidelity(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let output = kontig(dir, &[&["oracle", "fidelity"], args].concat()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_page_can_be_printed_and_written() {
    let dir = project("Capture");
    let (code, page, _) = fidelity(dir.path(), &[]);
    assert_eq!(code, 0);
    assert!(page.contains("| Capture | **exact** 1 / 1 |"), "{page}");
    let (code, nothing, _) = fidelity(dir.path(), &["--out", "page.md"]);
    assert_eq!((code, nothing.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(dir.path().join("page.md")).unwrap(), page);
}

#[test]
fn as_json_it_says_the_same() {
    let (code, out, _) = fidelity(project("Capture").path(), &["--json"]);
    let v: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &v["schema"]), (0, &Value::from("kontig.fidelity/1")));
    let against = &v["mechanisms"][0]["against"]["6.1"];
    assert_eq!((&against["standing"], &against["mistakes"]), (&Value::from("exact"), &Value::from(1)));
    assert_eq!(v["recordings"][0]["result"]["compared"]["operations"], 4000);
}

#[test]
fn errors_are_one_line_with_their_place() {
    let (code, _, said) = fidelity(project("Swap").path(), &[]);
    assert_eq!((code, said.trim_end().lines().count()), (2, 1), "{said}");
    assert!(said.contains("oracle/mutants.toml: line 2: oracle/mechanisms.toml has no mechanism 'Swap'"), "{said}");
}

#[test]
fn outside_the_source_tree_it_says_where_to_run_it() {
    let dir = tempfile::tempdir().unwrap();
    for (command, lacks) in [("fidelity", "oracle/mechanisms.toml"), ("guest", "oracle/guest/recorded")] {
        let output = kontig(dir.path(), &["oracle", command]).output().unwrap();
        let says = format!("kontig: {lacks} is not here: run it at the top of Kontig's source tree\n");
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(2), says));
    }
}
