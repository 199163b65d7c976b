//! `kontig status` and `kontig explain` on recorded hosts: mistakes, missing permissions, the JSON,
//! and every command of the page about them.

#[path = "../../../live/tests/suite/common/mod.rs"]
pub mod hosts;

use crate::common::frames::{FREE, host};
use crate::common::page::documented;
use crate::common::{kontig, program, refused, said};
use hosts::{KERNELS, Tree};
use kontig_live::frame::State;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PAGE: &str = include_str!("../../../../docs/operator/host.md");

fn on(tree: &Tree, args: &[&str]) -> Output {
    kontig(Path::new("."), &[]).args(with_roots(tree, args)).output().expect("run")
}

fn with_roots(tree: &Tree, args: &[&str]) -> Vec<String> {
    let roots = [("--path.procfs", &tree.roots.procfs), ("--path.sysfs", &tree.roots.sysfs)];
    let roots = roots.into_iter().flat_map(|(option, dir)| [option.to_string(), dir.display().to_string()]);
    args.iter().map(ToString::to_string).chain(roots).collect()
}

#[test]
fn every_kernels_host_is_told_and_explained() {
    for kernel in KERNELS {
        let tree = Tree::of(kernel);
        let status = said(on(&tree, &["status", "--orders"]));
        assert!(status.starts_with(&format!("Linux {kernel}.")), "{status}");
        assert!(status.contains("Blocks of 2 MiB (order 9)") && status.contains("0 DMA32"), "{status}");
        assert!(said(on(&tree, &["status", "--pid", "4242"])).contains("in memory"));
        assert!(said(on(&tree, &["explain", "--all"])).contains(&format!("Linux {kernel}.")));
    }
}

#[test]
fn the_same_tree_gives_the_same_bytes() {
    let tree = Tree::of("7.2");
    for args in [["status", "--json"], ["explain", "--json"]] {
        assert_eq!(said(on(&tree, &args)), said(on(&tree, &args)));
    }
}

#[test]
fn bad_arguments_are_refused_in_one_line() {
    let tree = Tree::of("6.1");
    refused(on(&tree, &["status", "--pid", "7"]), 2, "there is no such process");
    refused(on(&tree, &["status", "--block", "3M"]), 2, "no power of two");
    let nowhere = kontig(Path::new("."), &["status", "--path.procfs", "/no/such"]).output().expect("run");
    refused(nowhere, 2, "--path.procfs: /no/such: there is no such directory");
    tree.write("rules.toml", "[[rule]]\nid = \"mine\"\n");
    let rules = tree.roots.procfs.with_file_name("rules.toml").display().to_string();
    refused(on(&tree, &["explain", "--rules", &rules]), 2, "rules.toml:1: missing field");
    refused(on(&tree, &["explain", "--rules", "/no/such"]), 2, "/no/such");
}

#[test]
fn a_file_that_every_kernel_has_is_needed_and_its_fault_is_named() {
    let tree = Tree::of("6.12");
    tree.write("proc/buddyinfo", "Node 0, zone   Normal      1      2      x \n");
    refused(on(&tree, &["status"]), 1, "buddyinfo: line 1: 'x' is not a number");
    tree.remove("proc/buddyinfo");
    refused(on(&tree, &["explain"]), 1, "buddyinfo: there is no such file");
}

/// Another user, if this one is root.
fn unprivileged(tree: &Tree, args: &[&str]) -> Output {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program());
    command.args(args).arg("--path.procfs").arg(&tree.roots.procfs).arg("--path.sysfs").arg(&tree.roots.sysfs);
    if rustix::process::geteuid().is_root() {
        command.uid(65534);
    }
    command.output().expect("run")
}

#[test]
fn without_privilege_the_rest_is_told_and_what_needs_it_has_an_exit_code_of_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let tree = Tree::of("6.12");
    let allow = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("allowed");
    allow(tree.roots.procfs.parent().expect("a directory"), 0o755);
    for file in ["4242/smaps", "pagetypeinfo"] {
        allow(&tree.roots.proc(file), 0o000);
    }
    let output = unprivileged(&tree, &["status"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text.contains("pagetypeinfo: no permission to read it"), "{text}");
    refused(unprivileged(&tree, &["status", "--pid", "4242"]), 5, "smaps: no permission");
}

#[test]
fn the_reason_stands_in_place_of_who_waited_where_nothing_can_be_traced() {
    let tree = Tree::of("6.12");
    let args = ["status", "--stalls", "--interval", "10ms"];
    let text = said(on(&tree, &args));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Who waited is not known, only how often and how long (above): "), "{text}");
    assert!(words.contains("there is no tracefs: mount it, where the kernel has one: mount -t tracefs "), "{text}");
    assert!(text.contains("direct reclaims") && text.contains("seconds that a task waited"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&said(on(&tree, &[&args[..], &["--json"]].concat()))).expect("JSON");
    assert!(json["stalls"]["not_known"].as_str().expect("a reason").contains("tracefs"), "{json}");
    refused(on(&tree, &["top", "--stalls"]), 2, "top: this is no terminal");
}

/// Says so where it is seen though the test passes: the harness keeps what `eprintln` writes.
fn skipped(why: &str) {
    writeln!(std::io::stderr(), "skipped: {why}").expect("an error stream");
}

/// The traces of tracefs that a process has made.
fn traces_of(pid: u32) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    let mine = format!("kontig-{pid}-");
    all.filter(|e| e.file_name().to_string_lossy().starts_with(&mine)).map(|e| e.path()).collect()
}

#[test]
fn a_trace_goes_with_its_program_however_that_ends_or_skipped() {
    let begun = |time: &str| {
        let mut command = Command::new(program());
        let args = ["status", "--stalls", "--json", "--interval", time];
        let mut child = command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("run");
        let until = Instant::now() + Duration::from_secs(20);
        while traces_of(child.id()).is_empty() && Instant::now() < until && child.try_wait().expect("asked").is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    };
    let mut ended = begun("300ms");
    if traces_of(ended.id()).is_empty() {
        ended.wait().expect("it ends");
        return skipped("this host is not traced by this user");
    }
    assert!(ended.wait().expect("it ends").success() && traces_of(ended.id()).is_empty());
    let mut stopped = begun("60s");
    let pid = |child: &std::process::Child| rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid(&stopped), rustix::process::Signal::INT).expect("told to end");
    assert_eq!(stopped.wait().expect("it ends").code(), Some(1));
    assert!(traces_of(stopped.id()).is_empty());
    let mut asked_twice = begun("60s");
    for _ in 0..2 {
        // Once it has ended, nobody is told.
        let _ = rustix::process::kill_process(pid(&asked_twice), rustix::process::Signal::INT);
    }
    assert_eq!(asked_twice.wait().expect("it ends").code(), Some(1));
    assert!(traces_of(asked_twice.id()).is_empty());
    let mut killed = begun("60s");
    killed.kill().expect("killed");
    killed.wait().expect("gone");
    assert_eq!(traces_of(killed.id()).len(), 1, "nothing can be done by what is killed");
    assert!(begun("10ms").wait().expect("it ends").success());
    assert!(traces_of(killed.id()).is_empty(), "the next one removes it");
}

#[test]
fn the_last_span_is_told_when_watching_ends() {
    let tree = Tree::of("6.12");
    let mut command = Command::new(program());
    command.args(with_roots(&tree, &["status", "--watch", "--stalls", "--json", "--interval", "300s"]));
    let watching = command.stdout(Stdio::piped()).spawn().expect("run");
    // Until its handler is installed it ends at once.
    std::thread::sleep(Duration::from_millis(500));
    let pid = rustix::process::Pid::from_child(&watching);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("told to end");
    let output = watching.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert!(told["stalls"].is_object(), "{told}");
}

#[test]
fn a_host_whose_pages_age_by_generations_is_told_where_these_are_not_modelled() {
    for (kernel, is_modelled) in [("6.18", false), ("6.12", true), ("7.2", true)] {
        let tree = Tree::of(kernel);
        let json = |args: &[&str]| serde_json::from_str::<serde_json::Value>(&said(on(&tree, args))).expect("JSON");
        let in_words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = || {
            let explanation = json(&["explain", "--json"]);
            let findings = explanation["findings"].as_array().expect("a list").clone();
            findings.iter().any(|f| f["id"] == "pages-age-by-generations")
        };
        for (mask, on_) in [("0x0007\n", true), ("0x0000\n", false)] {
            tree.write("sys/kernel/mm/lru_gen/enabled", mask);
            let status = json(&["status", "--json"]);
            assert_eq!(status["lru_gen_on"], on_);
            let setting = serde_json::json!({ "name": "lru_gen/enabled", "value": mask.trim() });
            assert!(status["settings"].as_array().expect("a list").contains(&setting), "{status}");
            let is_told = on_ && !is_modelled;
            assert_eq!(in_words(said(on(&tree, &["status"]))).contains("multi-generational LRU"), is_told, "{kernel}");
            assert_eq!(found(), is_told, "{kernel}");
        }
        tree.remove("sys/kernel/mm/lru_gen");
        assert_eq!(json(&["status", "--json"])["lru_gen_on"], false, "a kernel without it");
        assert!(!found());
    }
}

/// All field names in a document.
#[test]
fn every_field_of_the_json_is_on_the_page() {
    for kernel in KERNELS {
        let tree = Tree::of(kernel);
        for args in [&["status", "--json"][..], &["status", "--json", "--pid", "4242"], &["explain", "--json"]] {
            documented(&said(on(&tree, args)), PAGE);
        }
    }
}

#[test]
fn a_snapshots_first_line_and_letters_are_on_the_page() {
    let tree = host(|_| FREE);
    let args = ["snapshot", "host.snap", "--path.procfs", "proc", "--path.sysfs", "sys"];
    said(kontig(tree.path(), &args).output().expect("run"));
    let file = std::fs::read_to_string(tree.path().join("host.snap")).expect("written");
    documented(file.lines().next().expect("a line"), PAGE);
    let words: Vec<&str> = PAGE.split_whitespace().collect();
    let page = words.join(" ");
    for state in State::ALL {
        let told = format!("`{}` {}", char::from(state.letter()), state.words());
        assert!(page.contains(&told), "{told}");
    }
}

#[test]
fn every_command_of_the_page_works() {
    let tree = Tree::of("6.18");
    let commands: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("kontig ")).collect();
    assert!(commands.len() >= 9);
    for line in commands {
        let command = line.split('#').next().expect("a command");
        let args: Vec<&str> = command.split_whitespace().skip(1).collect();
        match line {
            // These do not end by themselves, or read more than a recorded host has.
            _ if args.contains(&"--watch") => continue,
            _ if args.contains(&"--frames") || args.contains(&"--owners") => {
                refused(on(&tree, &args), 1, "there is no such file")
            }
            // Tested with snapshots.
            _ if args.contains(&"--simulate") || line.contains("host.snap") => continue,
            _ => assert!(!said(on(&tree, &args)).is_empty(), "{line}"),
        }
    }
}

#[test]
fn the_file_that_would_tell_the_size_of_a_page_is_named_with_its_fault() {
    let tree = Tree::of("6.12");
    tree.remove("proc/4242");
    let meminfo = tree.read("proc/meminfo");
    let (first, _) = meminfo.split_once('\n').expect("lines");
    tree.write("proc/meminfo", &meminfo.replace(first, "MemTotal:       NaN kB"));
    refused(on(&tree, &["status"]), 1, "meminfo: line 1: 'NaN' is not a number");
}

/// The exit code of a program that ends by itself.
fn ended(mut child: std::process::Child) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("waited") {
            return status.code();
        }
        if began.elapsed() > Duration::from_secs(30) {
            child.kill().expect("ended");
            panic!("it goes on without a reader");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn watching_ends_when_nobody_reads_any_more() {
    let tree = Tree::of("6.12");
    let watch = |interval: &str| {
        let mut command = Command::new(program());
        command.args(["status", "--watch", "--json", "--interval", interval]);
        command.arg("--path.procfs").arg(&tree.roots.procfs).arg("--path.sysfs").arg(&tree.roots.sysfs);
        command.stdout(Stdio::piped()).spawn().expect("started")
    };
    let mut child = watch("0.02");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert!(line.starts_with('{'));
    assert_eq!(ended(child), Some(0));
    // It does not even wait for the interval.
    let mut child = watch("3600");
    drop(child.stdout.take());
    assert_eq!(ended(child), Some(0));
}

#[test]
fn text_fits_a_terminal_that_tells_its_columns() {
    let tree = Tree::of("6.12");
    let (procfs, sysfs) = (tree.roots.procfs.display(), tree.roots.sysfs.display());
    for columns in [40, 80] {
        for command in ["status", "status --pid 4242", "explain --all"] {
            let line =
                format!("stty cols {columns}; {} {command} --path.procfs {procfs} --path.sysfs {sysfs}", program());
            let output = Command::new("script").args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output();
            let output = output.expect("script, of util-linux");
            let text = String::from_utf8(output.stdout).expect("text");
            assert!(output.status.success() && text.lines().count() > 10, "{text}");
            // A longer path or name has a line of its own.
            let long = |line: &&str| line.trim_end().chars().count() > columns && line.split_whitespace().count() > 2;
            assert_eq!(text.lines().find(long), None, "{columns} columns: {text}");
        }
    }
}

#[test]
fn a_mistake_in_a_file_of_rules_is_refused_with_its_line() {
    let tree = Tree::of("6.1");
    let rules = tree.roots.procfs.with_file_name("rules.toml").display().to_string();
    let rule = |when: &str, reason: &str| {
        format!(
            "[[rule]]\nid = \"mine\"\ntitle = \"t\"\nkernels = \"4.6-\"\nwhen = [\"{when}\"]\nreason = \"{reason}\"\n\
             do = \"d\"\nsource = \"s\"\nexample = {{}}\n"
        )
    };
    for (when, reason, says) in [
        (
            "compact_stal > 1",
            "r",
            "rules.toml:5: rule mine: unknown fact 'compact_stal': did you mean 'compact_stall'?",
        ),
        ("compact_stall > 1", "{compact_fial}", "rules.toml:6: rule mine: unknown fact 'compact_fial'"),
        ("compact_stall >= sixty", "r", "rules.toml:5: rule mine: 'compact_stall >= sixty' compares a number"),
    ] {
        tree.write("rules.toml", &rule(when, reason));
        refused(on(&tree, &["explain", "--rules", &rules]), 2, says);
    }
    tree.write("rules.toml", &rule("compact_stall >= 0", "{compact_fail}"));
    assert!(said(on(&tree, &["explain", "--rules", &rules])).contains("1 rules judged"));
    refused(on(&tree, &["explain", "--rules", "/dev/zero"]), 2, "/dev/zero: cannot be read: it is longer than 64 MiB");
}
