//! Bash completes what clap's script does not: lists, values after `=`, and one's own parameters.

use crate::common::{kontig, program, tmp, write};
use std::path::Path;
use std::process::Command;

/// Asks bash, as the Tab key does; it takes `=` for a word of its own.
fn offered(dir: &Path, words: &[&str]) -> Vec<String> {
    let script = kontig(dir, &["completions", "bash"]).assert().success();
    std::fs::write(dir.join("kontig.bash"), &script.get_output().stdout).expect("a script");
    let all: Vec<String> = std::iter::once(&program()).chain(words).map(|word| format!("'{word}'")).collect();
    let last = words[words.len() - 1];
    let before = words.len().checked_sub(2).map_or("kontig", |before| words[before]);
    let ask = format!(
        "source kontig.bash; COMP_WORDS=({}); COMP_CWORD={}; _kontig_lists '{}' '{last}' '{before}' 2>/dev/null; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        all.join(" "),
        words.len(),
        program()
    );
    let done = Command::new("bash").args(["-c", &ask]).current_dir(dir).output().expect("bash");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let mut offered: Vec<String> = text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect();
    offered.sort();
    offered
}

#[test]
fn a_list_goes_on_after_a_comma() {
    let d = tmp();
    let of = |words: &[&str]| offered(d.path(), words);
    assert_eq!(of(&["run", "heap", "--machine", "box-2g,xeon-6"]), ["box-2g,xeon-64g"]);
    assert_eq!(of(&["run", "heap", "--profile", "5.1"]), ["5.10"]);
    assert_eq!(of(&["run", "heap", "--set", "thp.ena"]), ["thp.enabled="]);
    let values = ["never,always", "never,madvise", "never,never"];
    assert_eq!(of(&["run", "heap", "--set", "thp.enabled", "=", "never,"]), values);
    assert_eq!(of(&["run", "heap", "--set", "thp.enabled", "=", "ma"]), ["madvise"]);
}

#[test]
fn a_file_of_ones_own_says_its_parameters() {
    let d = tmp();
    let mine = "summary = 's'\nmachine = 'tiny-64m'\nprepare = { kind = 'nothing' }\nmeasure = { kind = 'heap', size = \
                '16 MiB' }\n";
    write(d.path(), "mine.toml", mine);
    let of = |words: &[&str]| offered(d.path(), words);
    assert_eq!(of(&["run", "mine.toml", "--with", "measure.s"]), ["measure.size="]);
    assert_eq!(of(&["run", "mine.toml", "--with", "settle_s", "=", "1,si"]), ["1,size="]);
}

#[test]
fn a_kind_of_show_is_followed_by_names_of_it() {
    let d = tmp();
    let of = |words: &[&str]| offered(d.path(), words);
    let workloads = of(&["show", "workload", "h"]);
    assert!(workloads.contains(&"heap".into()) && !workloads.contains(&"hugepage-latency".into()), "{workloads:?}");
    assert_eq!(of(&["show", "profile", "5.1"]), ["5.10"]);
    assert_eq!(of(&["show", "box"]), ["box-2g"]);
    assert_eq!(of(&["show", "worklo"]), ["workload"]);
    assert_eq!(of(&["profile", "show", "5.1"]), ["5.10"]);
}

#[test]
fn figures_and_commands_are_offered_and_nothing_hidden_is() {
    let d = tmp();
    let of = |words: &[&str]| offered(d.path(), words);
    assert_eq!(of(&["show", "x", "--figures", "psw"]), ["pswpin", "pswpout"]);
    assert_eq!(of(&["run", "heap", "--figures", "p99,allocs"]), ["p99,allocstall"]);
    assert_eq!(of(&["re"]), ["reproduce", "rerun"]);
    assert_eq!(of(&["wr"]), [""; 0]);
}
