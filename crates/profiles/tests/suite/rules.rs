//! The descriptions of the rules: a file can state every value, and every section exists.

use kontig_mm::rules::MECHANISMS;
use kontig_mm::rules::rule::{Kind, Rule};
use std::path::Path;

fn rules() -> impl Iterator<Item = &'static Rule> {
    MECHANISMS.iter().flat_map(|m| m.rules)
}

/// The texts said of a rule and of its values.
fn texts(rule: &'static Rule) -> Vec<&'static str> {
    let variants = match rule.kind {
        Kind::OneOf(variants) => variants,
        Kind::Switch | Kind::Number => &[],
    };
    variants.iter().map(|v| v.what).chain([rule.what]).collect()
}

#[test]
fn every_value_of_every_rule_can_be_said_in_a_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("p.toml");
    for rule in rules() {
        let values: Vec<String> = match rule.kind {
            Kind::Switch => vec!["true".into(), "false".into()],
            Kind::Number => vec!["1000".into()],
            Kind::OneOf(variants) => variants.iter().map(|v| v.name()).collect(),
        };
        for value in values {
            let quote = if matches!(rule.kind, Kind::OneOf(_)) { "\"" } else { "" };
            let text = format!(
                "name = \"x\"\nsummary = \"y\"\nbase = \"6.1\"\n[{}]\n{} = {quote}{value}{quote}\n",
                rule.mechanism, rule.name
            );
            std::fs::write(&file, text).expect("a file can be written");
            let profile = kontig_profiles::read(&file.to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
            let (_, setting) = profile.settings().find(|(r, _)| std::ptr::eq(*r, rule)).expect("its rules are all");
            assert_eq!(setting.shown(), value, "{}.{}", rule.mechanism, rule.name);
        }
    }
}

#[test]
fn every_rule_is_described_in_a_sentence_and_names_a_section_that_is_there() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernel/kernel-behaviour");
    let chapters = std::fs::read_dir(&docs).expect("the behaviour document");
    let text: String = chapters
        .map(|f| std::fs::read_to_string(f.expect("an entry").path()).expect("a chapter can be read"))
        .collect();
    let headings: Vec<&str> = text.lines().filter(|l| l.starts_with('#')).collect();
    for rule in rules() {
        let is_there = |h: &str| h.trim_start_matches('#').trim_start().starts_with(&format!("{} ", rule.section));
        assert!(headings.iter().any(|h| is_there(h)), "{}.{}: no section {}", rule.mechanism, rule.name, rule.section);
        for text in texts(rule) {
            let is_sentence = text.starts_with(|c: char| !c.is_lowercase()) && text.ends_with('.');
            assert!(is_sentence && !text.contains("  "), "{}.{}: {text}", rule.mechanism, rule.name);
        }
    }
}

#[test]
fn no_two_mechanisms_have_a_rule_of_one_name() {
    // A file that puts a rule in the wrong table is told the right one.
    let mut names: Vec<&str> = rules().map(|r| r.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_profile_is_of_the_kernel_it_starts_from_whatever_it_is_called() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, base: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, format!("name = \"7.9\"\nsummary = \"y\"\nbase = \"{base}\"\n")).expect("a file");
        file.to_string_lossy().into_owned()
    };
    let first = write("first.toml", "5.10");
    let second = write("second.toml", &first);
    for file in [first, second] {
        assert_eq!(kontig_profiles::read(&file).expect("a profile").kernel, "5.10");
    }
    for profile in kontig_profiles::all() {
        assert_eq!(profile.kernel, profile.name);
    }
}

#[test]
fn linux_5_0_is_4_20_with_the_four_patches_that_were_merged_but_for_huge_pages_and_small_batches() {
    let known = kontig_profiles::switches();
    let patched = ["spread-before-fragmenting", "record-kswapd", "boost-watermarks"]
        .iter()
        .fold(kontig_profiles::linux("4.20-rc3"), |profile, switch| known[*switch].throw(&profile).expect("it fits"));
    let released = kontig_profiles::linux("5.0");
    let differs = patched.settings().zip(released.settings()).filter(|((_, one), (_, other))| one != other);
    let differs: Vec<_> = differs.map(|((rule, _), _)| format!("{}.{}", rule.mechanism, rule.name)).collect();
    assert_eq!(differs, ["reclaim.shrinks_a_batch_at_least", "huge_pages.requests"]);
}
