//! Rules that nothing but a compaction run reads: until one begins, kernels that differ in these
//! alone are one, and the laboratory simulates them once.

use kontig_tidy::{files, root};
use std::fs;

/// The parts of a run once it has begun, below `crates/mm/src/compact`.
const RUN: [&str; 4] = ["finished.rs", "migrate.rs", "page_by_page.rs", "run.rs"];

/// The rules in which two such kernels may differ, from the function that says so.
fn rules() -> Vec<String> {
    let text = fs::read_to_string(root().join("crates/mm/src/rules/compaction.rs")).expect("the rules");
    let (_, rest) = text.split_once("fn with_runs_of").expect("the function");
    let (_, fields) = rest.split_once("let &CompactionRules {").expect("its list");
    let (fields, _) = fields.split_once(", .. }").expect("the end of the list");
    fields.split(',').map(|field| field.trim().to_owned()).collect()
}

/// Lines that read one of the rules.
fn readers(text: &str, rules: &[String]) -> Vec<usize> {
    let reads = |line: &str| rules.iter().any(|rule| line.contains(&format!(".{rule}")));
    text.lines().enumerate().filter(|(_, line)| reads(line)).map(|(n, _)| n + 1).collect()
}

#[test]
fn rules_that_tell_runs_apart_are_read_by_compaction_runs_alone() {
    let rules = rules();
    assert!(rules.contains(&"sees_meeting".to_owned()), "{rules:?}");
    let runs = RUN.map(|file| root().join("crates/mm/src/compact").join(file));
    let mut within = 0;
    for file in files(&root().join("crates"), &["rs"]) {
        let text = fs::read_to_string(&file).expect("a readable file");
        let lines = readers(&text, &rules);
        match runs.contains(&file) {
            true => within += lines.len(),
            false => assert!(lines.is_empty(), "{}:{lines:?} reads one of {rules:?}", file.display()),
        }
    }
    assert!(within >= rules.len(), "each is read: {within}");
    assert_eq!(readers(&format!("a\n  if rules.{} {{", rules[0]), &rules), [2]);
}
