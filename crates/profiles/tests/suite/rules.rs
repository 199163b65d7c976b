//! What is said of the rules: every value can be said in a file, and every section is there.

use kontig_mm::rules::MECHANISMS;
use kontig_mm::rules::rule::{Kind, Rule, Setting};
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
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernel-behaviour");
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

/// What a rule's kernels, as they are written, say of one: whether they hold for it; none where they leave it open.
///
/// `5.8`: from 5.8 on. `by 7.2`: in 7.2 and, perhaps, before. `up to 5.8`, `5.9–5.14`: both ends included. `6.1.y`: in
/// 6.1's stable releases, `5.10.y+` in those of 5.10 and of every later series. `not 7.2`, `gone by 7.2` (and since):
/// whatever else is said. `6.15-posted`: of the profile of that name alone, `not 6.15-posted`: of any but that. `none`: of no
/// kernel.
fn holds(kernels: &str, name: &str) -> Option<bool> {
    // 4.4-kcompactd is a 4.4.
    let (major, minor) = name.split('-').next().and_then(|v| v.split_once('.')).expect("a version");
    let of: (u32, u32) = (major.parse().expect("a number"), minor.parse().expect("a number"));
    let version = |text: &str| -> (u32, u32) {
        let (major, minor) = text.split_once('.').unwrap_or_else(|| panic!("'{kernels}' holds no version"));
        (major.parse().expect("a number"), minor.parse().unwrap_or_else(|_| panic!("'{kernels}': '{text}'")))
    };
    let mut open = false;
    let mut some = false;
    for term in kernels.split(", ") {
        if let Some(not) = term.strip_prefix("not ") {
            if not == name || !not.contains('-') && version(not) == of {
                return Some(false);
            }
        } else if term.contains('-') {
            some |= term == name;
        } else if term == "none" {
            some = false;
        } else if let Some(gone) = term.strip_prefix("gone by ") {
            if version(gone) <= of {
                return Some(false);
            }
        } else if let Some(by) = term.strip_prefix("by ") {
            open = of < version(by);
            some |= !open;
        } else if let Some(last) = term.strip_prefix("up to ") {
            some |= of <= version(last);
        } else if let Some((first, last)) = term.split_once('–') {
            some |= version(first) <= of && of <= version(last);
        } else if let Some(first) = term.strip_suffix(".y+") {
            some |= version(first) <= of;
        } else if let Some(series) = term.strip_suffix(".y") {
            some |= version(series) == of;
        } else {
            some |= version(term) <= of;
        }
    }
    (some || !open).then_some(some)
}

#[test]
fn kernels_are_read_as_they_are_written() {
    let of = |kernels| ["5.9", "5.10", "6.1-posted", "7.2"].map(|kernel| holds(kernels, kernel));
    let [yes, no] = [Some(true), Some(false)];
    assert_eq!(of("5.10"), [no, yes, yes, yes]);
    assert_eq!(of("by 6.1"), [None, None, yes, yes]);
    assert_eq!(of("up to 5.10"), [yes, yes, no, no]);
    assert_eq!(of("5.10–6.0"), [no, yes, no, no]);
    assert_eq!(of("6.12, 5.10.y"), [no, yes, no, yes]);
    assert_eq!(of("6.13, 5.10.y+, not 7.2"), [no, yes, yes, no]);
    assert_eq!(of("by 5.10, gone by 6.1"), [None, yes, no, no]);
    assert_eq!(of("6.1-posted"), [no, no, yes, no]);
    assert_eq!(of("5.10, not 6.1-posted"), [no, yes, no, yes]);
    assert_eq!(of("none"), [no; 4]);
}

#[test]
fn profiles_do_what_their_kernels_are_said_to_do() {
    let mut wrong = Vec::new();
    for name in kontig_profiles::names() {
        let profile = kontig_profiles::linux(name);
        for (rule, setting) in profile.settings() {
            let (kernels, does) = match setting {
                Setting::Switch(on) => (rule.since, on),
                Setting::Variant(variant) => (variant.since, true),
                Setting::Number(_) => continue,
            };
            if !kernels.is_empty() && holds(kernels, name).is_some_and(|said| said != does) {
                wrong.push(format!("{name}: {}.{} = {}: {kernels}", rule.mechanism, rule.name, setting.shown()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
