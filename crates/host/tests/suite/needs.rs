//! `kontig check`, `prepare` and `snapshot` on hosts made of files, from wholly free to hopeless:
//! their messages and exit codes, and that no setting stays changed.

use crate::common::frames::{ANON, CLEAN_FILE, FREE, SLAB, host};
use crate::common::{kontig, program, unwrapped};
use assert_cmd::assert::Assert;
use kontig_live::error::remedy;
use serde_json::Value;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A pool of huge pages of this size, all of them in use.
fn pool(tree: &TempDir, kib: u64, pages: &str) -> std::path::PathBuf {
    let folder = tree.path().join(format!("sys/kernel/mm/hugepages/hugepages-{kib}kB"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("nr_hugepages"), pages).unwrap();
    fs::write(folder.join("free_hugepages"), "0\n").unwrap();
    folder.join("nr_hugepages")
}

/// Every second page of the lower half is a user page.
fn fragmented(pfn: usize) -> u64 {
    if pfn.is_multiple_of(2) { ANON } else { FREE }
}

fn run(tree: &TempDir, args: &[&str]) -> Assert {
    let roots = ["--path.procfs", "proc", "--path.sysfs", "sys"];
    kontig(tree.path(), &[args, &roots].concat()).assert()
}

fn text(assert: &Assert) -> String {
    unwrapped(std::str::from_utf8(&assert.get_output().stdout).unwrap())
}

fn error(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[test]
fn blocks_that_are_there_are_met() {
    let tree = host(|_| FREE);
    let said = run(&tree, &["check", "--need", "31x2M"]).code(0);
    assert_eq!(text(&said), "31x2M: all of 31 there now\n=> met now\n");
    // Pages up to the low watermark stay free.
    run(&tree, &["check", "--need", "32x2M"]).code(6);
}

#[test]
fn fragmented_user_memory_is_reachable_by_compaction_and_the_plan_says_what_would_be_written() {
    let tree = host(fragmented);
    let said = text(&run(&tree, &["check", "--need", "10x2M"]).code(4));
    assert!(said.contains("0 of 10 there now\n=> reachable by compaction: "), "{said}");
    assert!(
        said.contains(
            "of 32 blocks of 2M: 0 free, 32 hold pages that can be moved; 0 blocks hold pages that cannot be moved"
        ),
        "{said}"
    );
    let plan = text(&run(&tree, &["prepare", "--need", "10x2M"]).code(4));
    let step = "plan (nothing was done; --execute does it):\n   \
        compact node 0: write 1 to sys/devices/system/node/node0/compact\n";
    assert!(plan.ends_with(step), "{plan}");
    assert_eq!(fs::read_to_string(tree.path().join("sys/devices/system/node/node0/compact")).unwrap(), "");
}

#[test]
fn cache_in_the_way_is_dropped_only_with_permission() {
    let tree = host(|pfn| if pfn < 1024 { FREE } else { CLEAN_FILE });
    let said = text(&run(&tree, &["check", "--need", "10x2M"]).code(7));
    assert!(said.contains("=> reachable after dropping 60 MiB of clean cache: no page has to move\n"), "{said}");
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
        said.contains(
            "32 blocks hold pages that cannot be moved (32 of them no more than 8 such pages)\n      slab: \
            32 pages in 32 blocks, the only obstacle in 32 of them\n"
        ),
        "{said}"
    );
    let json = text(&run(&tree, &["check", "--need", "1x2M", "--json"]).code(6));
    let doc: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&doc["schema"], &doc["verdict"]), (&"kontig.check/2".into(), &"not-reachable".into()));
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
fn a_snapshot_of_a_host_with_larger_pages_is_told_in_those() {
    let tree = tempfile::tempdir().unwrap();
    let header = concat!(
        r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":65536,"block_order":4,"cpus":1,"#,
        r#""pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"spanned":160,"present":160,"#,
        r#""managed":160,"marks":[0,0,0,0],"boost":0,"protection":[0,0],"cached":0,"free":[2,2,2,2,6],"#,
        r#""blocks":null}]}"#,
    );
    let frames = "0 M a16 *2\n20 M F16 *4\n60 M s1 F15\n70 M F16\n80 M s1 F15\n90 M F16\n";
    fs::write(tree.path().join("host.snap"), format!("{header}\n{frames}")).unwrap();
    let said = kontig(tree.path(), &["check", "--need", "3x2M", "--snapshot", "host.snap"]).assert().code(4);
    assert!(text(&said).contains(": 32 to 32 pages (2 MiB) are moved out of the way"), "{}", text(&said));
}

#[test]
fn bad_arguments_and_missing_privileges_are_one_line() {
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
    let zone = fs::read_to_string(tree.path().join("proc/zoneinfo")).unwrap();
    let higher = zone.replace("Normal", "Movable").replace("start_pfn:           0", "start_pfn:           16384");
    let zones = format!("{zone}{higher}");
    fs::write(tree.path().join("proc/zoneinfo"), zones).unwrap();
    assert_eq!(
        said(&["check", "--need", "1x2M@7"], 2),
        "kontig: --need: node 7 has no memory; nodes with memory: 0\n",
        "of each zone, once"
    );
    // Without privilege, all addresses read as 0.
    let iomem = tree.path().join("proc/iomem");
    let shown = fs::read(&iomem).unwrap();
    fs::write(&iomem, "00000000-00000000 : System RAM\n").unwrap();
    for command in ["check", "prepare"] {
        let hidden = said(&[command, "--need", "1x2M"], 5);
        assert_eq!(hidden, format!("kontig: proc/iomem: no permission to read it: {}\n", remedy()));
    }
    assert_eq!(said(&["snapshot"], 5), format!("kontig: proc/iomem: no permission to read it: {}\n", remedy()));
    fs::write(tree.path().join("proc/kpageflags"), [0; 12]).unwrap();
    // That is found before a second is spent on the frames.
    assert_eq!(said(&["snapshot"], 5), format!("kontig: proc/iomem: no permission to read it: {}\n", remedy()));
    fs::write(&iomem, shown).unwrap();
    assert_eq!(said(&["snapshot"], 1), "kontig: snapshot: proc/kpageflags: the file ends within a word of 8 bytes\n");
    fs::remove_file(tree.path().join("proc/kpageflags")).unwrap();
    assert_eq!(said(&["check", "--need", "1x2M"], 1), "kontig: check: proc/kpageflags: there is no such file\n");
}

#[test]
fn a_pool_that_is_filled_stays_and_the_receipt_says_so() {
    let tree = host(|_| FREE);
    let pool = pool(&tree, 2048, "1\n");
    let args = ["prepare", "--need", "2x2M", "--reserve", "--execute", "--journal", "j", "--receipt", "r.json"];
    let said = text(&run(&tree, &args).code(0));
    assert!(said.ends_with("=> reached\n"), "{said}");
    assert_eq!(fs::read_to_string(pool).unwrap(), "3");
    let receipt: Value = serde_json::from_slice(&fs::read(tree.path().join("r.json")).unwrap()).unwrap();
    assert_eq!((&receipt["schema"], &receipt["reached"]), (&"kontig.prepare/2".into(), &true.into()));
    assert_eq!(receipt["done"][0]["step"], "reserve");
    assert!(!tree.path().join("j").exists());
    let back = "echo 1 > sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    assert_eq!(receipt["give_back"], back);
    assert!(said.contains(&format!("\nto give the pools' new pages back:\n   {back}\n")), "{said}");
}

#[test]
fn a_reservation_is_of_so_many_in_all_and_calling_it_again_adds_nothing() {
    let tree = host(|_| FREE);
    let pool = pool(&tree, 2048, "3\n");
    let call =
        || text(&run(&tree, &["prepare", "--need", "10x2M", "--reserve", "--execute", "--journal", "j"]).code(0));
    let free = |pages: u64| fs::write(pool.with_file_name("free_hugepages"), pages.to_string()).unwrap();
    free(2);
    assert!(call().contains(" 10 of 10 there now\n"));
    assert!(is(&pool, "11"), "one is in use, and two of the ten were free");
    free(10);
    for _ in 0..2 {
        let again = call();
        assert!(is(&pool, "11"), "{again}");
        let back = "\nto give the pools' free pages back:\n   \
            echo 1 > sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages\n";
        assert!(again.contains(back), "{again}");
    }
    // A pool may hold part of a need, and what it holds needs no root.
    let said = text(&run(&tree, &["check", "--need", "40x2M", "--reserve"]).code(0));
    assert_eq!(said, "40x2M: all of 40 there now\n=> met now\n");
    run(&tree, &["check", "--need", "40x2M"]).code(6);
    // Two needs from one pool.
    let both = ["prepare", "--need", "12x2M", "--need", "3x2M", "--reserve"];
    let plan = text(&run(&tree, &both).code(0));
    assert!(plan.contains("reserve huge pages until 15 are free: "), "{plan}");
}

#[test]
fn gigabytes_that_a_pool_has_are_there() {
    let tree = host(|_| SLAB);
    let pool = pool(&tree, 1 << 20, "3\n");
    fs::write(pool.with_file_name("free_hugepages"), "2\n").unwrap();
    fs::remove_file(tree.path().join("proc/kpageflags")).unwrap();
    let said = text(&run(&tree, &["check", "--need", "2x1G"]).code(0));
    assert_eq!(said, "2x1G: all of 2 there now\n=> met now\n");
    run(&tree, &["check", "--need", "3x1G"]).code(1);
}

/// A host whose upper half is not initialised yet; half of the lower one is free, in single pages.
fn half_initialised(mem_free_kb: u64) -> TempDir {
    // Even frames: the free scanner takes wide steps behind a block without free pages.
    let tree = host(|pfn| if pfn >= 8192 { 0 } else { [FREE, ANON][pfn % 2] });
    let zoneinfo = fs::read_to_string(tree.path().join("proc/zoneinfo")).unwrap();
    let managed = zoneinfo.replace("managed  16384", "managed  8192");
    assert_ne!(managed, zoneinfo);
    fs::write(tree.path().join("proc/zoneinfo"), managed).unwrap();
    let meminfo = format!("MemTotal:          65536 kB\nMemFree:           {mem_free_kb} kB\n");
    fs::write(tree.path().join("proc/meminfo"), meminfo).unwrap();
    tree
}

#[test]
fn memory_that_is_initialised_when_it_is_wanted_is_free() {
    let tree = half_initialised(16384 + 32768);
    let plainly = "\n32 MiB of the free memory is initialised or accepted only when a request finds nothing else\n";
    let said = text(&run(&tree, &["check", "--need", "16x2M"]).code(0));
    assert_eq!(said, format!("16x2M: all of 16 there now{plainly}=> met now\n"));
    let more = text(&run(&tree, &["check", "--need", "20x2M"]).code(4));
    assert!(more.contains(plainly) && more.contains("of 32 blocks of 2M: 16 free, 16 hold pages that can"), "{more}");
    run(&tree, &["prepare", "--need", "16x2M", "--execute", "--journal", "j"]).code(0);
    let printed = text(&run(&tree, &["snapshot", "host.snap"]).code(0));
    let deferred = format!("  {:<36}{:>12} pages    32 MiB  (inferred)\n", "free, initialised when wanted", "8,192");
    assert!(printed.contains(&deferred), "{printed}");
    let of_host = text(&run(&tree, &["check", "--need", "20x2M", "--json"]).code(4));
    let of_file = kontig(tree.path(), &["check", "--need", "20x2M", "--json", "--snapshot", "host.snap"]).assert();
    assert_eq!(of_host, text(&of_file.code(4)));
    // No gigabyte block, nor any block made the same way, fits in it.
    run(&tree, &["check", "--need", "2x16M"]).code(6);
    run(&half_initialised(16384), &["check", "--need", "16x2M"]).code(6);
    let gone = text(&run(&half_initialised(16384), &["snapshot"]).code(0));
    let not_given = format!("  {:<36}{:>12} pages", "memory the allocator was not given", "8,192");
    assert!(gone.contains(&not_given), "{gone}");
}

/// Puts the process into a control group of version 2, with these files.
fn in_group(tree: &TempDir, files: &[(&str, &str)]) {
    let write = |file: &str, text: &str| {
        let path = tree.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/self/cgroup", "0::/service/worker\n");
    write("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    files.iter().for_each(|(file, text)| write(&format!("sys/fs/cgroup/{file}"), text));
}

#[test]
fn a_control_groups_limit_is_part_of_the_verdict() {
    let tree = host(|_| FREE);
    let service = [
        ("service/memory.max", "33554432\n"),
        ("service/memory.current", "8388608\n"),
        ("service/memory.stat", "anon 4194304\ninactive_file 3145728\nactive_file 1048576\nfile_dirty 2097152\n"),
        ("service/worker/memory.max", "max\n"),
    ];
    in_group(&tree, &service);
    // 32 − (8 − 2) MiB, of which the program and its page tables take 16 and a little.
    let left = "   a control group's limit leaves 18 MiB beside these blocks for page tables and the program itself\n";
    let said = text(&run(&tree, &["check", "--need", "4x2M"]).code(0));
    assert_eq!(said, format!("4x2M: all of 4 there now\n=> met now\n{left}"));
    let said = text(&run(&tree, &["check", "--need", "5x2M"]).code(6));
    let way = "=> not reachable: sys/fs/cgroup/service/memory.max is 32 MiB, and control group /service \
        has 8 MiB already, \
               2 MiB of it clean cache: it gets 26 MiB more, and 10 MiB are needed, with 16 MiB beside \
               them for page tables and the \
               program itself\n";
    assert_eq!(said, format!("5x2M: all of 5 there now\n{way}"));
    let json = text(&run(&tree, &["check", "--need", "5x2M", "--json"]).code(6));
    let doc: Value = serde_json::from_str(&json).unwrap();
    let bytes = ["room_bytes", "needed_bytes", "program_bytes"].map(|field| doc["limit"][field].as_u64());
    assert_eq!(bytes, [26 << 20, 10 << 20, (16 << 20) + 5 * 4096].map(Some));
    assert!(text(&run(&tree, &["check", "--need", "5x2M|4x2M"]).code(0)).starts_with("4x2M: "));
    // A driver's pages are charged to no group, nor are those of a pool.
    run(&tree, &["check", "--need", "12x2M:unmovable"]).code(0);
    run(&tree, &["check", "--need", "12x2M", "--reserve"]).code(0);
    let refused = with_command(&tree, &["--need", "5x2M"], &["echo", "started"]).code(125);
    let why =
        "kontig: echo was not started: a control group's limit is too low: raise it, or start this in another group\n";
    assert_eq!(error(&refused), why);
    let fragmented = host(fragmented);
    in_group(&fragmented, &service);
    run(&fragmented, &["check", "--need", "4x2M"]).code(4);
    run(&fragmented, &["check", "--need", "5x2M"]).code(6);
}

#[test]
fn a_drivers_blocks_stay_on_the_free_lists_and_out_of_the_pool() {
    let tree = host(|_| FREE);
    let pool = pool(&tree, 2048, "0\n");
    let needs =
        ["prepare", "--need", "2x2M", "--need", "3xorder6:unmovable", "--reserve", "--execute", "--journal", "j"];
    assert!(text(&run(&tree, &needs).code(0)).contains("\n3x256K:unmovable: 3 of 3 there now\n"));
    assert!(is(&pool, "2"));
}

#[test]
fn a_command_runs_once_the_needs_are_met_and_its_exit_code_counts() {
    let tree = host(|_| FREE);
    let args =
        ["prepare", "--need", "2x2M", "--execute", "--journal", "j", "--path.procfs", "proc", "--path.sysfs", "sys"];
    let command = ["--", "sh", "-c", "echo started; exit 7"];
    let ran = kontig(tree.path(), &[&args[..], &command[..]].concat()).assert().code(7);
    assert!(text(&ran).ends_with("=> reached\nstarted\n"), "{}", text(&ran));
    assert!(
        error(&ran).starts_with("kontig: sh ") && error(&ran).contains("; on the whole host meanwhile: "),
        "{}",
        error(&ran)
    );
}

/// Runs `prepare --execute` with a command on a host.
fn with_command(tree: &TempDir, options: &[&str], command: &[&str]) -> Assert {
    let roots = ["--path.procfs", "proc", "--path.sysfs", "sys", "--journal", "j", "--"];
    kontig(tree.path(), &[&["prepare", "--execute"], options, &roots, command].concat()).assert()
}

#[test]
fn the_exit_code_behind_a_command_is_the_commands_own_or_that_it_was_not_started() {
    let (free, hopeless) = (host(|_| FREE), host(|pfn| if pfn % 512 == 7 { SLAB } else { fragmented(pfn) }));
    let met = ["--need", "2x2M"];
    for code in [0, 4, 5, 6, 7, 8, 9] {
        with_command(&free, &met, &["sh", "-c", &format!("exit {code}")]).code(code);
    }
    with_command(&free, &met, &["sh", "-c", "kill -9 $$"]).code(128 + 9);
    let said = error(&with_command(&free, &met, &["./no-such-program"]).code(127));
    assert!(said.starts_with("kontig: ./no-such-program: "), "{said}");
    with_command(&free, &met, &["./proc"]).code(126);
    let unmet = with_command(&hopeless, &met, &["echo", "started"]).code(125);
    assert!(!text(&unmet).contains("started"), "{}", text(&unmet));
    assert!(error(&unmet).starts_with("kontig: echo was not started: no compaction reaches it"), "{}", error(&unmet));
    let wrong = with_command(&free, &["--need", "0x2M"], &["echo", "started"]).code(125);
    assert!(error(&wrong).starts_with("kontig: echo was not started: need '0x2M': "), "{}", error(&wrong));
    with_command(&free, &["--no-such-option"], &["true"]).code(125);
    fs::remove_file(free.path().join("proc/zoneinfo")).unwrap();
    let failed = with_command(&free, &met, &["echo", "started"]).code(125);
    assert!(error(&failed).contains("echo was not started: prepare: proc/zoneinfo: "), "{}", error(&failed));
}

#[test]
fn with_start_anyway_the_program_starts_and_the_verdict_is_in_the_receipt_and_on_standard_error() {
    let tree = host(|pfn| if pfn % 512 == 7 { SLAB } else { fragmented(pfn) });
    let anyway = ["--need", "2x2M", "--start-anyway", "--receipt", "r.json"];
    let receipt = || serde_json::from_slice::<Value>(&fs::read(tree.path().join("r.json")).unwrap()).unwrap();
    let ran = with_command(&tree, &anyway, &["sh", "-c", "echo started; exit 4"]).code(4);
    assert!(text(&ran).ends_with("started\n"), "{}", text(&ran));
    let verdict = "kontig: prepare: no compaction reaches it";
    assert!(error(&ran).starts_with(verdict) && error(&ran).contains(": sh is started anyway\n"), "{}", error(&ran));
    let kept = receipt();
    assert_eq!((&kept["plan"]["check"]["verdict"], &kept["reached"]), (&"not-reachable".into(), &false.into()));
    assert_eq!(kept["got"]["exit_code"], 4);
    // As in a unit's ExecStartPre: without a command.
    let went_on = run(&tree, &[&["prepare", "--execute"], &anyway[..]].concat()).code(0);
    assert!(error(&went_on).starts_with(verdict) && error(&went_on).ends_with(": goes on anyway\n"));
    assert_eq!(receipt()["plan"]["check"]["verdict"], "not-reachable");
    // An unreadable host does not keep a service from starting either; a mistake in the unit does.
    fs::remove_file(tree.path().join("proc/zoneinfo")).unwrap();
    let failed = run(&tree, &[&["prepare", "--execute"], &anyway[..]].concat()).code(0);
    assert!(error(&failed).contains("proc/zoneinfo: there is no such file\n"), "{}", error(&failed));
    run(&tree, &["prepare", "--execute", "--need", "2x3M", "--start-anyway"]).code(2);
}

/// Waits until the condition holds, and fails after a while.
fn until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file that can be neither written nor read to its end.
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

/// A run that has grown the first pool and waits before the second.
fn half_way(tree: &TempDir) -> (std::process::Child, std::path::PathBuf) {
    let first = pool(tree, 4096, "1\n");
    fifo(&pool(tree, 2048, ""));
    let run = start(tree, &["prepare", "--need", "2x4M", "--need", "1x2M", "--reserve", "--execute"]);
    until(|| is(&first, "3"));
    (run, first)
}

fn is(pool: &Path, text: &str) -> bool {
    fs::read_to_string(pool).unwrap().trim() == text
}

#[test]
fn the_guard_restores_the_settings_of_a_killed_run() {
    let tree = host(|_| FREE);
    let (mut killed, first) = half_way(&tree);
    killed.kill().unwrap();
    killed.wait().unwrap();
    until(|| is(&first, "1") && !tree.path().join("j").exists());
}

#[test]
fn where_the_guard_was_killed_too_the_next_run_restores_it() {
    let tree = host(|_| FREE);
    let (mut killed, first) = half_way(&tree);
    let pid = killed.id();
    let guards = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    assert_eq!(guards.split_whitespace().count(), 1, "{guards}");
    assert!(Command::new("kill").args(["-9", guards.trim()]).status().unwrap().success());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(is(&first, "3") && tree.path().join("j").exists());
    let said = text(&run(&tree, &["prepare", "--need", "2x2M", "--execute", "--journal", "j"]).code(0));
    assert!(said.contains("an earlier run was killed: restored ") && said.contains("/nr_hugepages to 1\n"), "{said}");
    assert!(is(&first, "1") && !tree.path().join("j").exists());
}

#[test]
fn of_two_units_at_boot_the_second_waits_for_the_first_and_gives_up_in_time() {
    let tree = host(|_| FREE);
    let (mut first, pool) = half_way(&tree);
    let second = |time: &str| start(&tree, &["prepare", "--need", "2x2M", "--execute", "--time", time]);
    let refused = second("1").wait_with_output().unwrap();
    let pid = first.id();
    let waits = format!("kontig: process {pid} is preparing this host: waiting for it to end\n");
    let late = format!("kontig: prepare: process {pid} is still preparing this host after 1 s (--time)\n");
    assert_eq!(String::from_utf8_lossy(&refused.stderr), format!("{waits}{late}"));
    assert!(refused.status.code() == Some(1) && is(&pool, "3"), "{refused:?}");
    let mut waiting = second("50");
    let mut errors = BufReader::new(waiting.stderr.take().unwrap());
    let mut said = String::new();
    errors.read_line(&mut said).unwrap();
    assert_eq!(said, waits);
    first.kill().unwrap();
    first.wait().unwrap();
    errors.read_to_string(&mut said).unwrap();
    assert_eq!((waiting.wait_with_output().unwrap().status.code(), said), (Some(0), waits));
    assert!(is(&pool, "1") && !tree.path().join("j").exists());
}

#[test]
fn lines_fit_80_columns_but_for_commands() {
    let (half, hopeless) = (host(fragmented), host(|pfn| if pfn % 512 == 7 { SLAB } else { fragmented(pfn) }));
    for (tree, verb, code) in
        [(&half, "check", 4), (&half, "prepare", 4), (&hopeless, "check", 6), (&hopeless, "prepare", 6)]
    {
        let said = run(tree, &[verb, "--need", "10x2M"]).code(code);
        let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
        assert!(said.lines().all(|line| line.chars().count() <= 80) && said.contains("\n    "), "{said}");
    }
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

#[test]
fn blocks_that_the_host_has_no_room_for_are_told_with_how_many_there_are() {
    let tree = host(fragmented);
    let said = text(&run(&tree, &["check", "--need", "40x2M"]).code(6));
    assert!(said.contains("\n   40 blocks of 2M are 80 MiB; there are 32 in all\n"), "{said}");
    let said = text(&run(&tree, &["check", "--need", "5x128M"]).code(6));
    assert!(
        said.contains("\n   5 blocks of 128M are 640 MiB; there is none\n") && !said.contains("of 0 blocks"),
        "{said}"
    );
}

#[test]
fn where_fewer_blocks_come_about_than_could_be_emptied_it_is_said_why() {
    let tree = host(|pfn| if pfn.is_multiple_of(4) { FREE } else { ANON });
    let said = text(&run(&tree, &["check", "--need", "20x2M"]).code(6));
    let why = "\n   moved pages take room elsewhere: 16 MiB is free once cache is dropped, which \
        is 8 blocks; zones keep some of that\n";
    assert!(
        said.contains(why) && said.contains("of 32 blocks of 2M: 0 free, 32 hold pages that can be moved"),
        "{said}"
    );
}

#[test]
fn an_impossible_host_is_not_said_to_meet_anything() {
    let tree = host(fragmented);
    fs::write(tree.path().join("proc/buddyinfo"), "Node 0, zone   Normal 18446744073709551615 0 0 0 0 0 0 0 0 0 0\n")
        .unwrap();
    let said = error(&run(&tree, &["check", "--need", "1x2M"]).code(1));
    assert_eq!(said, "kontig: check: proc/buddyinfo: line 1: more free memory than a machine can have\n");
    fs::write(tree.path().join("proc/buddyinfo"), "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 0 17\n").unwrap();
    let said = error(&run(&tree, &["check", "--need", "1x2M"]).code(1));
    assert_eq!(said, "kontig: check: proc/zoneinfo: node 0 zone Normal: more free pages than the 16384 that it has\n");
}

#[test]
fn a_bad_snapshot_is_refused_by_its_first_line_and_an_endless_file_is_not_read_to_its_end() {
    let tree = host(fragmented);
    run(&tree, &["snapshot", "host.snap"]).code(0);
    let whole = fs::read_to_string(tree.path().join("host.snap")).unwrap();
    fs::write(tree.path().join("bad.snap"), whole.replace("\"page_size\":4096", "\"page_size\":0")).unwrap();
    for need in ["20000x2M", "5xorder9"] {
        let said = error(&kontig(tree.path(), &["check", "--need", need, "--snapshot", "bad.snap"]).assert().code(2));
        assert!(said.starts_with("kontig: bad.snap:1: pages of 0 bytes: "), "{said}");
    }
    // Blocks that the frames know nothing about.
    let other = whole.replace("\"free\":[8192,0,0,0,0,0,0,0,0,0,0]", "\"free\":[0,0,0,0,0,0,0,0,0,16,0]");
    assert_ne!(other, whole);
    fs::write(tree.path().join("other.snap"), other).unwrap();
    let said = text(&kontig(tree.path(), &["check", "--need", "1x2M", "--snapshot", "other.snap"]).assert().code(0));
    assert!(said.contains("\nconfidence low: 100 % of the free memory was elsewhere"), "{said}");
    let said = error(&kontig(tree.path(), &["check", "--need", "1x2M", "--snapshot", "/dev/zero"]).assert().code(2));
    assert!(said.starts_with("kontig: /dev/zero:1: "), "{said}");
}

#[test]
fn a_snapshot_that_is_there_stays_whole_until_the_new_one_is() {
    let tree = host(fragmented);
    run(&tree, &["snapshot", "host.snap"]).code(0);
    let before = fs::read(tree.path().join("host.snap")).unwrap();
    // The kernel kills a process that exceeds its file size limit in the middle of a write.
    let limited = format!("ulimit -f 1; exec {} snapshot host.snap --path.procfs proc --path.sysfs sys", program());
    let ended = Command::new("sh").args(["-c", &limited]).current_dir(tree.path()).output().unwrap();
    assert!(!ended.status.success(), "{ended:?}");
    assert_eq!(fs::read(tree.path().join("host.snap")).unwrap(), before);
}

/// Another user, if this one is root.
fn unprivileged(tree: &TempDir, args: &[&str], run_mode: u32) -> std::process::Output {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let as_is = |mode| fs::set_permissions(tree.path().join("run"), PermissionsExt::from_mode(mode)).unwrap();
    fs::create_dir_all(tree.path().join("run")).unwrap();
    fs::set_permissions(tree.path(), PermissionsExt::from_mode(0o755)).unwrap();
    as_is(run_mode);
    let roots = ["--path.procfs", "proc", "--path.sysfs", "sys", "--journal", "run/j"];
    let mut command = Command::new(program());
    command.current_dir(tree.path()).args(args).args(roots);
    if rustix::process::geteuid().is_root() {
        command.uid(65534);
    }
    let output = command.output().unwrap();
    as_is(0o755);
    output
}

#[test]
fn needs_that_are_met_take_no_privilege_and_a_write_without_it_is_refused() {
    let tree = host(|_| FREE);
    let met = unprivileged(&tree, &["prepare", "--need", "2x2M", "--execute"], 0o555);
    assert_eq!((met.status.code(), String::from_utf8_lossy(&met.stderr).as_ref()), (Some(0), ""), "{met:?}");
    assert!(String::from_utf8_lossy(&met.stdout).ends_with("=> reached\n"), "{met:?}");
    let pool = pool(&tree, 2048, "1\n");
    let reserve = ["prepare", "--need", "2x2M", "--reserve", "--execute"];
    let lacks = unprivileged(&tree, &reserve, 0o555);
    let said = String::from_utf8_lossy(&lacks.stderr);
    assert_eq!(lacks.status.code(), Some(5), "{said}");
    assert_eq!(said, "kontig: run/j: no permission to write it: run this as root\n");
    let lacks = unprivileged(&tree, &reserve, 0o777);
    let said = String::from_utf8_lossy(&lacks.stderr);
    assert_eq!(lacks.status.code(), Some(5), "{said}");
    let file = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    assert_eq!(said, format!("kontig: {file}: no permission to write it: run this as root\n"));
    assert!(is(&pool, "1") && !tree.path().join("run/j").exists());
}

#[test]
fn a_compaction_that_is_not_permitted_is_said_once_and_is_not_taken_for_one_that_did_not_help() {
    let tree = host(fragmented);
    let lacks = unprivileged(&tree, &["prepare", "--need", "10x2M", "--execute"], 0o777);
    let said = String::from_utf8_lossy(&lacks.stderr);
    assert_eq!(lacks.status.code(), Some(5), "{said}");
    assert_eq!(said, "kontig: sys/devices/system/node/node0/compact: no permission to write it: run this as root\n");
}

#[test]
fn a_need_that_begins_with_a_minus_or_has_an_empty_rung_is_refused_as_a_need() {
    let tree = host(|_| FREE);
    let said = |need: &str| error(&run(&tree, &["check", "--need", need]).code(2));
    assert!(said("-1x2M").starts_with("kontig: need '-1x2M': the count is no whole number from 1 on; say "));
    assert!(said("10x2M|").starts_with("kontig: need '10x2M|': rung 2 of this ladder is empty"));
    run(&tree, &["check", "--need", "1x2m"]).code(0);
}

#[test]
fn options_of_prepare_that_need_another_say_why() {
    let tree = host(|_| FREE);
    let said = |options: &[&str], command: &[&str], code: i32| {
        let roots = ["--path.procfs", "proc", "--path.sysfs", "sys"];
        let args = [&["prepare", "--need", "2x2M"], options, &roots[..], command].concat();
        let refused = kontig(tree.path(), &args).assert().code(code);
        assert_eq!(text(&refused), "");
        error(&refused)
    };
    let echo = ["--", "echo", "started"];
    let plan = "kontig: echo was not started: without --execute no block is made for it: add --execute, or ";
    assert!(said(&[], &echo, 125).starts_with(plan));
    let mixed = "kontig: echo was not started: --json would be mixed with its output: write the receipt to a file ";
    assert!(said(&["--execute", "--json", "--journal", "j"], &echo, 125).starts_with(mixed));
    assert!(said(&["--start-anyway"], &[], 2).starts_with("kontig: --start-anyway goes on after a preparation, and "));
    let same = "kontig: --receipt and --journal both name ./f: give each a place of its own\n";
    assert_eq!(said(&["--receipt", "f", "--journal", "./f"], &[], 2), same);
    assert!(said(&["--journal", "no/j"], &[], 1).contains("no/j: "));
}
