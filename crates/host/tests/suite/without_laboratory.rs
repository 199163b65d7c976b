//! The program names the commands about a host and nothing of the laboratory.

use crate::common::kontig;
use std::collections::BTreeSet;
use std::path::Path;

fn told(args: &[&str]) -> String {
    let said = kontig(Path::new("."), args).assert().code(0);
    String::from_utf8(said.get_output().stdout.clone()).expect("text")
}

#[test]
fn help_names_every_exit_code_and_every_command() {
    let help = told(&["--help"]);
    let (commands, codes) = help.split_once("Exit codes: ").expect("they are told");
    let codes: BTreeSet<u8> = codes.split([' ', '\n']).filter_map(|word| word.parse().ok()).collect();
    assert_eq!(codes, (0..=10).filter(|code| *code != 3).collect(), "3 is of results, which it does not have");
    let of_host = ["status", "check", "bound", "guard", "prepare", "snapshot", "age", "touch", "trial", "explain"];
    for command in of_host.into_iter().chain(["history", "top", "metrics", "man"]) {
        assert!(commands.contains(&format!("\n  {command} ")), "{command}: {commands}");
    }
    assert!(!help.contains("reproduce") && !help.contains("write-one"), "{help}");
}

#[test]
fn an_option_that_takes_the_laboratory_is_not_offered_and_refused_with_the_program_that_has_it() {
    assert!(!told(&["explain", "--help"]).contains("--simulate"));
    for shell in ["bash", "zsh", "fish"] {
        let script = told(&["completions", shell]);
        assert!(script.contains("allow-drop-caches"), "{shell}: {script}");
        assert!(!script.contains("simulate") && !script.contains("restore-at-end"), "{shell}: {script}");
    }
    let refused = kontig(Path::new("."), &["explain", "--simulate"]).assert().code(2);
    let why = "kontig: --simulate: this program has no laboratory; 'kontig explain --simulate' has one\n";
    assert_eq!(String::from_utf8_lossy(&refused.get_output().stderr), why);
    assert!(refused.get_output().stdout.is_empty());
}

#[test]
fn a_man_page_is_written_for_each_command() {
    let dir = tempfile::tempdir().expect("a folder");
    told(&["man", &dir.path().display().to_string()]);
    for page in ["kontig-host", "kontig-host-status", "kontig-host-prepare"] {
        let text = std::fs::read_to_string(dir.path().join(format!("{page}.1"))).expect("a page");
        assert!(text.contains(".TH kontig-host") && !text.contains("write\\-one"), "{page}: {text}");
    }
}
