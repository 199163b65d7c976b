//! Rules that nothing but a compaction run reads: until one begins, kernels that differ in these
//! alone are one, and the laboratory simulates them once.

use kontig_tidy::{files, root};
use regex::Regex;
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

/// Lines that name the rule, but for texts and comments.
fn readers(text: &str, rule: &str) -> Vec<usize> {
    let name = Regex::new(&format!(r#"^[^"/]*\b{rule}\b"#)).expect("a valid pattern");
    text.lines().enumerate().filter(|(_, line)| name.is_match(line)).map(|(n, _)| n + 1).collect()
}

#[test]
fn rules_that_tell_runs_apart_are_read_by_compaction_runs_alone() {
    let rules = rules();
    assert!(rules.contains(&"sees_meeting".to_owned()), "{rules:?}");
    let below = |path: &str| root().join("crates/mm/src").join(path);
    let within: Vec<_> = RUN.iter().map(|file| below("compact").join(file)).collect();
    let declared = below("rules/compaction.rs");
    let sources = files(&root().join("crates"), &["rs"]);
    for rule in rules {
        let mut read = 0;
        for file in sources.iter().filter(|file| **file != declared) {
            let text = fs::read_to_string(file).expect("a readable file");
            let lines = readers(&text, &rule);
            match within.contains(file) {
                true => read += lines.len(),
                false => assert!(lines.is_empty(), "{}:{lines:?} reads '{rule}'", file.display()),
            }
        }
        assert!(read > 0, "'{rule}' is read by no run");
        assert_eq!(readers(&format!("// {rule}\n  let Rules {{ {rule}, .. }} = x;"), &rule), [2]);
    }
}
