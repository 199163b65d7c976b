//! Helpers of the tests of the commands about a host.

pub mod frames;
pub mod page;
mod tree;
pub mod whole_host;

use assert_cmd::Command;
use frames::{ANON, FREE, host};
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;
pub use tree::{changed, files};

/// The options that name the directories of a host made of files, from inside it.
pub const ROOTS: [&str; 4] = ["--path.procfs", "proc", "--path.sysfs", "sys"];

/// A host of which every other page is free.
pub fn fragmented() -> TempDir {
    host(|pfn| if pfn.is_multiple_of(2) { ANON } else { FREE })
}

/// A command's arguments, with those that name the host.
pub fn of_host<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &ROOTS].concat()
}

/// Both streams of a command that ends with this code.
#[track_caller]
pub fn streams(tree: &TempDir, args: &[&str], code: i32) -> (String, String) {
    let output = kontig(tree.path(), args).assert().code(code).get_output().clone();
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).into()
}

/// The text of a command that has done what was asked, without a word besides.
#[track_caller]
pub fn said(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""));
    String::from_utf8(output.stdout).expect("text")
}

/// Checks that a command has ended with this code, one line that has these words, and no text.
#[track_caller]
pub fn refused(output: Output, code: i32, says: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.starts_with("kontig: ") && stderr.lines().count() == 1 && stderr.contains(says), "{stderr}");
    assert!(output.stdout.is_empty());
}

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
