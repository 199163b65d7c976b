//! `kontig check`, `prepare` and `snapshot` on hosts made of files, from the wholly free one to the hopeless one: what they
//! say, how they end, and that no setting is left changed.

mod common;

use assert_cmd::assert::Assert;
use common::frames::{ANON, CLEAN_FILE, FREE, SLAB, host};
use common::{kontig, program};
use serde_json::Value;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A pool of huge pages of so many KiB, with so many.
fn pool(tree: &TempDir, kib: u64, pages: &str) -> std::path::PathBuf {
    let folder = tree.path().join(format!("sys/kernel/mm/hugepages/hugepages-{kib}kB"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("nr_hugepages"), pages).unwrap();
    folder.join("nr_hugepages")
}

/// Every second page of the lower half is a user's.
fn fragmented(pfn: usize) -> u64 {
    if pfn.is_multiple_of(2) { ANON } else { FREE }
}

fn run(tree: &TempDir, args: &[&str]) -> Assert {
    let roots = ["--path.procfs", "proc", "--path.sysfs", "sys"];
    kontig(tree.path(), &[args, &roots].concat()).assert()
}

fn text(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn error(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[test]
fn blocks_that_are_there_are_met() {
    let tree = host(|_| FREE);
    let said = run(&tree, &["check", "--need", "31x2M"]).code(0);
    assert_eq!(text(&said), "31x2M: all of 31 there now\n=> met now\n");
    // The low mark stays free.
    run(&tree, &["check", "--need", "32x2M"]).code(6);
}

#[test]
fn fragmented_user_memory_is_reachable_by_compaction_and_the_plan_says_what_would_be_written() {
    let tree = host(fragmented);
    let said = text(&run(&tree, &["check", "--need", "10x2M"]).code(4));
    assert!(said.contains("0 of 10 there now\n=> reachable by compaction: "), "{said}");
    assert!(
        said.contains("of 32 blocks of 2M: 0 free, 32 hold pages that can be moved, 0 pages that cannot"),
        "{said}"
    );
    let plan = text(&run(&tree, &["prepare", "--need", "10x2M"]).code(4));
    let step = "plan (nothing was done; --execute does it):\n   compact node 0: write 1 to sys/devices/system/node/node0/compact\n";
    assert!(plan.ends_with(step), "{plan}");
    assert_eq!(fs::read_to_string(tree.path().join("sys/devices/system/node/node0/compact")).unwrap(), "");
}

#[test]
fn cache_in_the_way_is_dropped_only_with_permission() {
    let tree = host(|pfn| if pfn < 1024 { FREE } else { CLEAN_FILE });
    let said = text(&run(&tree, &["check", "--need", "10x2M"]).code(7));
    assert!(said.contains("=> reachable after dropping 60 MiB of clean cache: nothing has to be moved\n"), "{said}");
    let refused = text(&run(&tree, &["prepare", "--need", "10x2M", "--execute"]).code(7));
    assert!(
        refused.ends_with("clean cache would have to be dropped: allow it with --allow-drop-caches\n"),
        "{refused}"
    );
    let plan = text(&run(&tree, &["prepare", "--need", "10x2M", "--allow-drop-caches"]).code(7));
    assert!(plan.ends_with("   drop clean cache: write 1 to proc/sys/vm/drop_caches\n"), "{plan}");
}

#[test]
fn kernel_memory_in_every_block_is_not_reachable_and_it_is_said_what_it_is() {
    let tree = host(|pfn| if pfn % 512 == 7 { SLAB } else { fragmented(pfn) });
    let said = text(&run(&tree, &["check", "--need", "1x2M"]).code(6));
    assert!(said.contains("=> not reachable"), "{said}");
    assert!(
        said.contains("32 pages that cannot (32 of them 8 at most)\n      slab: in 32 blocks, alone in 32; 32 pages\n"),
        "{said}"
    );
    let json = text(&run(&tree, &["check", "--need", "1x2M", "--json"]).code(6));
    let doc: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&doc["schema"], &doc["verdict"]), (&"kontig.check/1".into(), &"not-reachable".into()));
    assert_eq!(doc["obstacles"][0]["kinds"][0]["pages"], 32);
}

#[test]
fn of_a_ladder_one_rung_is_enough() {
    let tree = host(|pfn| if pfn < 4096 { FREE } else { SLAB });
    let said = text(&run(&tree, &["check", "--need", "20x2M|4x2M"]).code(0));
    assert_eq!(said, "4x2M: all of 4 there now\n=> met now\n");
}

#[test]
fn a_snapshot_says_of_itself_what_the_host_would_have_said() {
    let tree = host(fragmented);
    let printed = text(&run(&tree, &["snapshot", "host.snap"]).code(0));
    assert!(printed.contains("  anonymous                                  8,192 pages    32 MiB\n"), "{printed}");
    assert!(
        printed
            .ends_with("Of the free memory, 100 % is inferred to lie in blocks of the sizes that the kernel lists.\n")
    );
    let of_host = text(&run(&tree, &["check", "--need", "10x2M", "--json"]).code(4));
    let of_file =
        kontig(tree.path(), &["check", "--need", "10x2M", "--json", "--snapshot", "host.snap"]).assert().code(4);
    assert_eq!(of_host, text(&of_file));
    fs::write(tree.path().join("cut.snap"), &fs::read(tree.path().join("host.snap")).unwrap()[..1000]).unwrap();
    let cut = kontig(tree.path(), &["check", "--need", "10x2M", "--snapshot", "cut.snap"]).assert().code(2);
    assert!(error(&cut).starts_with("kontig: cut.snap:"), "{}", error(&cut));
}

#[test]
fn what_is_asked_wrongly_and_what_is_not_permitted_is_said_in_one_line() {
    let tree = host(fragmented);
    let said = |args: &[&str], code| {
        let said = error(&run(&tree, args).code(code));
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    let say = "say COUNTxSIZE as 2000x2M, 1x1G@0 or 8xorder10:unmovable\n";
    assert_eq!(
        said(&["check", "--need", "2x3M"], 2),
        format!("kontig: need '2x3M': 3M is no power of two times the page of 4 KiB; {say}")
    );
    assert_eq!(said(&["check", "--need", "1x2M@7"], 2), "kontig: --need: node 7 has no memory; nodes with memory: 0\n");
    // To whom addresses are hidden, they are all 0.
    fs::write(tree.path().join("proc/iomem"), "00000000-00000000 : System RAM\n").unwrap();
    for command in ["check", "prepare"] {
        let hidden = said(&[command, "--need", "1x2M"], 5);
        assert_eq!(hidden, "kontig: proc/iomem: no permission to read it: run this as root\n");
    }
    assert_eq!(said(&["snapshot"], 5), "kontig: proc/iomem: no permission to read it: run this as root\n");
    fs::write(tree.path().join("proc/kpageflags"), [0; 12]).unwrap();
    assert_eq!(said(&["snapshot"], 1), "kontig: snapshot: proc/kpageflags: the file ends within a word of 8 bytes\n");
    fs::remove_file(tree.path().join("proc/kpageflags")).unwrap();
    assert_eq!(said(&["check", "--need", "1x2M"], 1), "kontig: check: proc/kpageflags: there is no such file\n");
}

#[test]
fn a_pool_that_is_filled_stays_and_the_receipt_says_so() {
    let tree = host(|_| FREE);
    let pool = pool(&tree, 2048, "1\n");
    let args = ["prepare", "--need", "2x2M", "--reserve", "--execute", "--journal", "run/j", "--receipt", "r.json"];
    let said = text(&run(&tree, &args).code(0));
    assert!(said.ends_with("=> reached\n"), "{said}");
    assert_eq!(fs::read_to_string(pool).unwrap(), "3");
    let receipt: Value = serde_json::from_slice(&fs::read(tree.path().join("r.json")).unwrap()).unwrap();
    assert_eq!((&receipt["schema"], &receipt["reached"]), (&"kontig.prepare/1".into(), &true.into()));
    assert_eq!(receipt["done"][0]["step"], "reserve");
    assert!(!tree.path().join("run/j").exists());
}

#[test]
fn a_command_runs_once_the_needs_are_met_and_its_exit_code_counts() {
    let tree = host(|_| FREE);
    let args =
        ["prepare", "--need", "2x2M", "--execute", "--journal", "j", "--path.procfs", "proc", "--path.sysfs", "sys"];
    let command = ["--", "sh", "-c", "echo started; exit 7"];
    let ran = kontig(tree.path(), &[&args[..], &command[..]].concat()).assert().code(7);
    assert!(text(&ran).ends_with("=> reached\nstarted\n"), "{}", text(&ran));
    assert!(error(&ran).starts_with("kontig: while sh ran, on the whole host: "), "{}", error(&ran));
}

/// Waits until something holds; a test that waits for ever has failed.
fn until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file that nobody can write or read to the end.
fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn start(tree: &TempDir, args: &[&str]) -> std::process::Child {
    let roots = ["--path.procfs", "proc", "--path.sysfs", "sys", "--journal", "j"];
    let mut command = Command::new(program());
    command.current_dir(tree.path()).args(args).args(roots).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn after_a_kill_the_next_run_restores_what_was_changed() {
    let tree = host(|_| FREE);
    let first = pool(&tree, 2048, "1\n");
    fifo(&pool(&tree, 4096, ""));
    let mut killed = start(&tree, &["prepare", "--need", "2x2M", "--need", "1x4M", "--reserve", "--execute"]);
    let is = |text: &str| fs::read_to_string(&first).unwrap().trim() == text;
    until(|| is("3"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(is("3") && tree.path().join("j").exists());
    let said = text(&run(&tree, &["prepare", "--need", "2x2M", "--execute", "--journal", "j"]).code(0));
    assert!(said.contains("nr_hugepages, as an earlier run was killed\n"), "{said}");
    assert!(is("1") && !tree.path().join("j").exists());
}

#[test]
fn sigterm_ends_a_compaction_and_leaves_no_journal() {
    let tree = host(fragmented);
    fifo(&tree.path().join("sys/devices/system/node/node0/compact"));
    let stopped = start(&tree, &["prepare", "--need", "10x2M", "--execute"]);
    until(|| tree.path().join("j").exists());
    std::thread::sleep(Duration::from_millis(50));
    assert!(Command::new("kill").arg(stopped.id().to_string()).status().unwrap().success());
    let out = stopped.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&out.stderr), "kontig: interrupted; every setting is as it was\n");
    assert!(String::from_utf8_lossy(&out.stdout).ends_with("=> stopped\n"));
    assert!(!tree.path().join("j").exists());
}
