//! Helpers of the command line's tests.

#[path = "../../../../host/tests/suite/common/frames.rs"]
pub mod frames;
#[path = "../../../../host/tests/suite/common/tree.rs"]
mod tree;

use assert_cmd::Command;
use std::path::Path;
pub use tree::{changed, files};

/// `kontig` with these arguments, in `dir`.
pub fn kontig(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.current_dir(dir).args(args).timeout(std::time::Duration::from_secs(60));
    command
}

/// The program under test.
pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_kontig")
}

/// Writes the 64 MiB machine to a file with a text replaced, and returns its path.
pub fn machine(dir: &Path, replace: &[(&str, &str)]) -> String {
    let text = include_str!("../../../../../machines/tiny-64m.toml").replace("\"tiny-64m\"", "\"mine-64m\"");
    write(dir, "machine.toml", &changed(&text, replace))
}

/// Writes an experiment of two variants on 64 MiB with texts replaced, and returns its path.
pub fn experiment(dir: &Path, replace: &[(&str, &str)]) -> String {
    write(dir, "experiment.toml", &changed(EXPERIMENT, replace))
}

pub const EXPERIMENT: &str = r#"id = "small"
summary = "Huge pages on 64 MiB"
assumptions = "None."
machine = "tiny-64m"
repetitions = 2

[workload]
prepare = { kind = "fragment", holes = "random", freed_per_section = 384 }
settle_s = 1
measure = { kind = "hugealloc", gfp = "GFP_KERNEL" }

[[variant]]
name = "vanilla"
profile = "5.6"

[[variant]]
name = "patched, 60"
profile = "5.6"
switches = ["proactive-compaction"]
sysctls = { "vm.compaction_proactiveness" = 60 }
"#;

/// A disk with swap, in place of the last line of the zone of [`machine`].
pub const DISK: &str = r#"source = "chosen: 32 pageblocks"

[[disk]]
name = "sda"
kind = "ssd"
size = "1 GiB"
queue_depth = 32
read_mb_s = 400
write_mb_s = 400
read_us = 100
write_us = 100
read_iops = 90000
write_iops = 90000
source = "a test"

[swap]
disk = "sda"
size = "64 MiB"
"#;

/// Published figures for [`EXPERIMENT`].
pub const TARGET: &str = r#"id = "small-target"
variants = ["a", "b"]

[[row]]
name = "hugepage alloc latency p50"
unit = "us"
headline = true
values = [100.0, 10.0]
"#;

/// Writes a file below `dir`; returns it as `./name`.
pub fn write(dir: &Path, name: &str, text: &str) -> String {
    std::fs::write(dir.join(name), text).unwrap();
    format!("./{name}")
}

/// The exit codes that commands share.
pub const FAILED: i32 = 1;
pub const ASKED_WRONGLY: i32 = 2;
pub const DIFFERENT: i32 = 3;

/// Checks that `kontig` prints nothing and fails with this code and one line with all of `says`.
#[track_caller]
pub fn refused(dir: &Path, args: &[&str], code: i32, says: &[&str]) {
    refuses(kontig(dir, args).output().unwrap(), args, code, says);
}

/// The same for finished output.
#[track_caller]
pub fn refuses(output: std::process::Output, args: &[&str], code: i32, says: &[&str]) {
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    assert!(stderr.starts_with("kontig: ") && stderr.ends_with('\n'), "{args:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    for part in says {
        assert!(stderr.contains(part), "{args:?}: '{part}' is not said: {stderr}");
    }
    assert!(output.stdout.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
}

pub fn tmp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The runs of the experiment in `dir`, without the host's times.
pub fn runs(dir: &Path, args: &[&str]) -> serde_json::Value {
    let output = kontig(dir, &[&["reproduce", "./experiment.toml", "--json"], args].concat()).assert().success();
    let mut doc: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    (doc["wall_s"], doc["peak_rss_bytes"]) = (serde_json::Value::Null, serde_json::Value::Null);
    doc
}
