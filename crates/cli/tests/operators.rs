//! Every command of the page for operators, on a host made of files: it is understood, and ends as the page's table says.
//!
//! Put in place of what a test has not: a program that does nothing for `java`, a directory of the test's own for `/run`, and 4 MiB
//! for the memory that is really fragmented.

mod common;

use common::frames::{ANON, FREE, host};
use common::program;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/operators.md");

/// The commands, as they stand there.
fn commands() -> Vec<&'static str> {
    let lines = PAGE.lines().map(|line| line.trim_start_matches("ExecStartPre="));
    lines.filter(|line| line.starts_with("kontig ")).collect()
}

#[test]
fn every_command_of_the_page_ends_as_the_page_says() {
    let all = commands();
    assert!(all.len() >= 7, "{all:?}");
    for command in all {
        let tree = host(|pfn| if pfn % 2 == 0 { ANON } else { FREE });
        let bin = tree.path().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(program(), bin.join("kontig")).unwrap();
        fs::write(bin.join("java"), "#!/bin/sh\nexit 0\n").unwrap();
        fs::set_permissions(bin.join("java"), PermissionsExt::from_mode(0o755)).unwrap();
        for kib in [2048, 1 << 20] {
            let pool = tree.path().join(format!("sys/kernel/mm/hugepages/hugepages-{kib}kB"));
            let of_node = tree.path().join(format!("sys/devices/system/node/node0/hugepages/hugepages-{kib}kB"));
            for folder in [pool, of_node] {
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("nr_hugepages"), "0\n").unwrap();
            }
        }
        let here = command.replace("/run/", "run-").replace("--gib 4", "--gib 0.004").replace("--time 120", "--time 1");
        let roots = "--path.procfs proc --path.sysfs sys";
        // Each `kontig` of the line reads the same host; an age is of real memory.
        let (verb, rest) = here.trim_start_matches("kontig ").split_once(' ').expect("a verb");
        let rest = rest.replace("-- kontig check", &format!("-- kontig check {roots}"));
        let own = if verb == "age" { String::new() } else { roots.into() };
        let journal = if verb == "prepare" { "--journal journal" } else { "" };
        let line = format!("kontig {verb} {own} {journal} {rest}");
        let said = in_shell(tree.path(), &bin, &line);
        let code = said.status.code();
        let stderr = String::from_utf8_lossy(&said.stderr);
        assert!(matches!(code, Some(0 | 4 | 6 | 7 | 9)), "{command}\n{line}\n{code:?} {stderr}");
        assert!(!said.stdout.is_empty(), "{command}");
        let documented = format!("\n| {} |", code.unwrap_or_default());
        assert!(PAGE.contains(&documented), "{command}: {documented}");
        assert!(!tree.path().join("journal").exists(), "{command}: nothing is left to be restored");
    }
}

fn in_shell(dir: &Path, bin: &Path, line: &str) -> std::process::Output {
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(dir).env("PATH", path).output().expect("a shell")
}
