//! Helpers of the tests of the commands about a host.

pub mod frames;
pub mod page;
pub mod whole_host;

use assert_cmd::Command;
use std::path::{Path, PathBuf};

/// The program with these arguments, in `dir`.
pub fn kontig(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.current_dir(dir).args(args).timeout(std::time::Duration::from_secs(60));
    command
}

/// The program under test, which is `kontig` without its laboratory.
pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_kontig-host")
}

/// Replaces parts of a text, which must be in it.
pub fn changed(text: &str, replace: &[(&str, &str)]) -> String {
    replace.iter().fold(text.to_string(), |text, (from, to)| {
        assert!(text.contains(from), "'{from}' is not in the text");
        text.replacen(from, to, 1)
    })
}

/// All files below a directory, relative to it, sorted.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(d) = left.pop() {
        for entry in std::fs::read_dir(&d).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() { left.push(entry) } else { found.push(entry.strip_prefix(dir).unwrap().to_path_buf()) }
        }
    }
    found.sort();
    found
}

/// The text before it was wrapped. A line that continues another is indented by four columns more;
/// other lines are indented by none, three or six.
pub fn unwrapped(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines() {
        let begin = line.trim_start();
        let continues = (line.len() - begin.len()) % 3 == 1;
        let (end, line) = if continues { (" ", begin) } else { ("\n", line) };
        joined += if joined.is_empty() { "" } else { end };
        joined += line;
    }
    joined + if text.is_empty() { "" } else { "\n" }
}
