//! Every command on the page for operators, on a host made of files: it parses, and ends as the
//! page's table says.
//!
//! Stand-ins: a program that does nothing for `java`, a temporary directory for `/run`, and 4 MiB
//! for the memory that is really fragmented.

use crate::common::frames::{ANON, FREE, SLAB, host};
use crate::common::page::documented;
use crate::common::{changed, kontig, program};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const PAGE: &str = include_str!("../../../../docs/operator/huge-pages.md");

/// Texts with their replacements.
type Instead = &'static [(&'static str, &'static str)];

/// The end of each command on this host, whose 64 MiB hold a user page in every second frame: its
/// start on the page, the amount requested here instead of the page's gigabytes, and the exit code.
/// The kernel of this host migrates nothing, but gives a pool its pages.
const ENDS: &[(&str, Instead, i32)] = &[
    ("kontig prepare --need 8192x2M --execute --allow-drop-caches -- java", &[("8192x2M", "10x2M")], 125),
    ("kontig prepare --need 8192x2M --execute --allow-drop-caches --start-anyway", &[("8192x2M", "10x2M")], 0),
    ("kontig prepare --need 32x1G@0 --reserve", &[], 6),
    ("kontig prepare --need 1024x2M@0", &[("1024x2M", "10x2M"), ("8xorder10", "1xorder10")], 9),
    ("kontig check --need '4x1G|2048x2M'", &[("2048x2M", "10x2M")], 4),
    ("kontig prepare --need '4x1G|2048x2M'", &[("2048x2M", "1xorder0")], 0),
    ("kontig age --gib 4", &[("6000x2M", "10x2M")], 4),
];

/// The commands of the page.
fn commands() -> Vec<&'static str> {
    let lines = PAGE.lines().map(|line| line.trim_start_matches("ExecStartPre=+"));
    lines.filter(|line| line.starts_with("kontig ")).collect()
}

#[test]
fn every_command_of_the_page_ends_as_the_page_says() {
    let all = commands();
    assert_eq!(all.len(), ENDS.len(), "{all:?}");
    for (command, (begins, instead, code)) in all.iter().zip(ENDS) {
        assert!(command.starts_with(begins), "{command}: {begins}");
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
                fs::write(folder.join("free_hugepages"), "0\n").unwrap();
            }
        }
        let here = changed(command, instead).replace("/run/", "run-").replace("--gib 4", "--gib 0.004");
        let roots = "--path.procfs proc --path.sysfs sys";
        // Each `kontig` on the line reads the same host; `age` takes real memory.
        let (verb, rest) = here.trim_start_matches("kontig ").split_once(' ').expect("a verb");
        let rest = rest.replace("-- kontig check", &format!("-- kontig check {roots}"));
        let own = if verb == "age" { String::new() } else { roots.into() };
        let journal = if verb == "prepare" { "--journal journal" } else { "" };
        let line = format!("kontig {verb} {own} {journal} {rest}");
        let said = in_shell(tree.path(), &bin, &line);
        let (stdout, stderr) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        assert_eq!(said.status.code(), Some(*code), "{command}\n{line}\n{stdout}{stderr}");
        assert!(!said.stdout.is_empty(), "{command}");
        assert!(PAGE.contains(&format!("\n| {code} |")), "{command}: {code} is not in the page's table");
        assert!(!tree.path().join("journal").exists(), "{command}: nothing is left to be restored");
    }
}

#[test]
fn every_field_of_the_json_is_on_the_page() {
    let half_free = |pfn: usize| if pfn.is_multiple_of(2) { ANON } else { FREE };
    let stuck = |pfn: usize| if pfn % 512 == 7 { SLAB } else { half_free(pfn) };
    let json = |tree: &TempDir, args: &[&str]| {
        let roots = ["--path.procfs", "proc", "--path.sysfs", "sys"];
        documented(&text(kontig(tree.path(), &[args, &roots, &["--json"]].concat())), PAGE)
    };
    let reachable = json(&host(half_free), &["check", "--need", "10x2M"]);
    assert!(reachable["prediction"].is_object() && reachable["confidence"].is_object());
    let hopeless = json(&host(stuck), &["check", "--need", "10x2M"]);
    assert!(hopeless["at_most"].is_object() && hopeless["obstacles"][0]["kinds"][0].is_object());
    let free = host(|_| FREE);
    let pool = free.path().join("sys/kernel/mm/hugepages/hugepages-2048kB");
    fs::create_dir_all(&pool).unwrap();
    for file in ["nr_hugepages", "free_hugepages"] {
        fs::write(pool.join(file), "0\n").unwrap();
    }
    let carry_out = ["prepare", "--need", "2x2M", "--execute", "--journal", "j", "--receipt", "r.json"];
    for steps in [&["--reserve"][..], &[]] {
        json(&free, &[&carry_out[..], steps].concat());
    }
    let command = ["--path.procfs", "proc", "--path.sysfs", "sys", "--", "true"];
    kontig(free.path(), &[&carry_out[..], &command[..]].concat()).assert().code(0);
    let receipt = fs::read_to_string(free.path().join("r.json")).unwrap();
    assert!(documented(&receipt, PAGE)["got"].is_object());
    let touched = kontig(free.path(), &["touch", "--gib", "0.004", "--json"]).output().unwrap();
    match touched.status.success() {
        true => drop(documented(&String::from_utf8(touched.stdout).unwrap(), PAGE)),
        false => {
            let why = String::from_utf8_lossy(&touched.stderr);
            writeln!(std::io::stderr(), "NOTHING WAS TOUCHED: {why}").expect("an error stream");
        }
    }
}

fn text(mut command: assert_cmd::Command) -> String {
    String::from_utf8(command.output().expect("run").stdout).expect("text")
}

fn in_shell(dir: &Path, bin: &Path, line: &str) -> std::process::Output {
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(dir).env("PATH", path).output().expect("a shell")
}

#[test]
fn the_pages_tables_are_what_the_command_makes_of_the_trials_that_are_kept() {
    for kept in ["trial-6.18.json", "trial-touch-6.18.json"] {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../live/hosts").join(kept).display().to_string();
        let said = kontig(Path::new("."), &["trial", "--of", &kept, "--markdown"]).assert().code(0);
        let table = String::from_utf8(said.get_output().stdout.clone()).unwrap();
        assert!(table.lines().count() >= 7 && PAGE.contains(&table), "{table}");
    }
}
