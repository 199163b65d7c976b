//! `kontig profile` shows every rule, and exactly the differences between two kernels.

use crate::common::{kontig, write};
use kontig_mm::rules::MECHANISMS;
use kontig_mm::rules::rule::Rule;
use std::path::Path;

/// The output of `kontig profile ARGS`.
#[track_caller]
fn printed(dir: &Path, args: &[&str]) -> String {
    let output = kontig(dir, &[&["profile"], args].concat()).output().expect("kontig runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn json(dir: &Path, args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&printed(dir, &[args, &["--json"]].concat())).expect("JSON")
}

/// One line on standard error, and exit code 2.
#[track_caller]
fn refused(dir: &Path, args: &[&str]) -> String {
    let output = kontig(dir, &[&["profile"], args].concat()).output().expect("kontig runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!((output.status.code(), said.lines().count(), output.stdout.len()), (Some(2), 1, 0), "{args:?}: {said}");
    said
}

/// The words of the lines that name a rule. A long list of kernels, with the section, stands on the
/// next line.
fn rule_lines(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut rules = Vec::new();
    for (i, line) in lines.iter().enumerate().filter(|(_, l)| l.starts_with("  ") && !l.starts_with("   ")) {
        let last = if line.contains('§') { i } else { i + 1 };
        rules.push(lines[i..=last.min(lines.len() - 1)].iter().flat_map(|line| line.split_whitespace()).collect());
    }
    rules
}

fn rules() -> impl Iterator<Item = &'static Rule> {
    MECHANISMS.iter().flat_map(|m| m.rules)
}

#[test]
fn every_rule_of_every_profile_is_shown_with_its_value_and_its_section() {
    let d = tempfile::tempdir().expect("a folder");
    for profile in kontig_profiles::all() {
        let text = printed(d.path(), &["show", &profile.name]);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.starts_with(&format!("{}: {} ", profile.name, profile.summary)), "{words}");
        let reclaim_too = words.contains("was recorded, and the engine reproduces it.");
        assert_eq!(reclaim_too, profile.recorded && profile.reclaim_recorded, "{text}");
        let without = words.contains("was recorded without reclaim, and the engine reproduces it;");
        assert_eq!(without, profile.recorded && !profile.reclaim_recorded, "{text}");
        let left_out = profile.lru_gen.enabled && !kontig_profiles::has_lru_gen(&profile);
        assert_eq!(words.contains("multi-generational LRU on (/sys/kernel/mm/lru_gen/enabled)"), left_out, "{text}");
        let lines = rule_lines(&text);
        assert_eq!(lines.len(), rules().count());
        for (line, (rule, setting)) in lines.iter().zip(profile.settings()) {
            assert_eq!(line[..2], [rule.name, &setting.shown()], "{line:?}");
            assert_eq!(line.last(), Some(&format!("§{}", rule.section).as_str()));
        }
        let doc = json(d.path(), &["show", &profile.name]);
        assert_eq!((&doc["schema"], &doc["name"]), (&"kontig.profile/1".into(), &profile.name.as_str().into()));
        let shown: Vec<serde_json::Value> = doc["mechanisms"]
            .as_array()
            .expect("a list")
            .iter()
            .flat_map(|m| m["rules"].as_array().expect("a list").clone())
            .collect();
        for (shown, (rule, setting)) in shown.iter().zip(profile.settings()) {
            assert_eq!(shown["name"], rule.name);
            assert_eq!(shown["value"].to_string().trim_matches('"'), setting.shown());
        }
    }
}

#[test]
fn two_kernels_differ_in_the_rules_whose_values_differ_and_no_others() {
    let d = tempfile::tempdir().expect("a folder");
    let names: Vec<&str> = kontig_profiles::names().collect();
    let (oldest, newest) = (names[0], *names.last().expect("there are some"));
    let neighbours = names.windows(2).flat_map(|two| [(two[0], two[1]), (two[1], two[0])]);
    for (from, to) in neighbours.chain([(oldest, newest), (newest, oldest)]) {
        let text = printed(d.path(), &["diff", from, to]);
        let (a, b) = (kontig_profiles::linux(from), kontig_profiles::linux(to));
        let expected: Vec<[String; 4]> = a
            .settings()
            .zip(b.settings())
            .filter(|((_, a), (_, b))| a != b)
            .map(|((rule, a), (_, b))| [rule.name.into(), a.shown(), "->".into(), b.shown()])
            .collect();
        let lines: Vec<[String; 4]> =
            rule_lines(&text).iter().map(|l| [l[0], l[1], l[2], l[3]].map(str::to_string)).collect();
        assert_eq!(lines, expected, "{from} -> {to}");
        let listed = json(d.path(), &["diff", from, to])["rules"].as_array().expect("a list").len();
        assert_eq!(listed, expected.len());
        assert_eq!(rule_lines(&printed(d.path(), &["diff", from, to, "--short"])).len(), expected.len());
    }
    assert_eq!(printed(d.path(), &["diff", "6.1", "6.1"]), "6.1 -> 6.1: no rule differs\n");
}

#[test]
fn a_difference_says_both_values_the_kernels_and_the_section() {
    let d = tempfile::tempdir().expect("a folder");
    let text = printed(d.path(), &["diff", "6.1", "7.2"]);
    let words: Vec<String> = rule_lines(&text).iter().map(|l| l.join(" ")).collect();
    for line in [
        "free_lists as-freed -> as-pageblock from 6.12 §2.2",
        "ignored_by marked-atomic -> min-reserve from 6.12 §3.2",
        "finishes_pageblock false -> true from 6.12 §5.3",
    ] {
        assert!(words.iter().any(|w| w == line), "no '{line}' in {words:#?}");
    }
    assert!(text.contains("      from: One at a time, each to a target found just before. Up to 6.2.\n"), "{text}");
}

#[test]
fn lines_fit_eighty_columns_where_there_is_no_terminal() {
    let d = tempfile::tempdir().expect("a folder");
    for args in [&["show", "6.1"][..], &["show", "7.2", "--short"], &["diff", "5.6", "7.2"], &["diff", "7.2", "6.1"]] {
        for line in printed(d.path(), args).lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
    }
}

#[test]
fn a_file_of_ones_own_differs_in_what_it_says() {
    let d = tempfile::tempdir().expect("a folder");
    let mine = "name = \"mine\"\nsummary = \"6.1 with room\"\nbase = \"6.1\"\n[proactive]\nhalf_leeway = true\n";
    let mine = write(d.path(), "mine.toml", mine);
    let text = printed(d.path(), &["diff", "6.1", &mine, "--short"]);
    let all = rules().count();
    assert_eq!(
        text,
        format!(
            "6.1 -> mine: 1 of {all} rules differs\n\n\
             [proactive] kcompactd keeps a node's fragmentation score within bounds.\n  \
             half_leeway  false -> true  from 6.15-posted  §5.10\n\n\
             §: the section of docs/kernel/kernel-behaviour that describes the rule\n"
        )
    );
    assert!(printed(d.path(), &["show", &mine]).contains("No kernel of this generation was recorded"));
}

#[test]
fn a_bad_profile_is_refused_with_the_nearest_name_or_the_line() {
    let known = kontig_profiles::names().collect::<Vec<_>>().join(", ");
    let d = tempfile::tempdir().expect("a folder");
    assert_eq!(
        refused(d.path(), &["show", "6.2"]),
        format!("kontig: unknown profile '6.2': it is between 6.1 and 6.12; known: {known}\n")
    );
    assert!(refused(d.path(), &["show", ""]).starts_with("kontig: the name of the profile is empty; known: "));
    let wrong = "name = \"x\"\nsummary = \"y\"\nbase = \"6.1\"\n[compaction]\nfinish_pageblock = true\n";
    let wrong = write(d.path(), "wrong.toml", wrong);
    assert_eq!(
        refused(d.path(), &["diff", "6.1", &wrong]),
        format!(
            "kontig: {wrong}:5: unknown rule of [compaction] 'finish_pageblock': did you mean 'finishes_pageblock'?\n"
        )
    );
}
