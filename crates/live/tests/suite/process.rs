//! Why a process's memory is in small pages, on recorded hosts with mappings made up for each
//! reason.

use crate::common::{KERNELS, Tree};
use kontig_live::Host;
use kontig_live::process::reason::Reason;
use kontig_live::process::{Files, Process};

const STATUS: &str = "Name:\tjava\nTHP_enabled:\t1\n";

/// A mapping of 9 MiB that begins at a quarter of a huge page, so that three whole ones fit; 9000
/// KiB are in memory.
fn smaps(heading: &str, lines: &str, flags: &str) -> String {
    format!("{heading}\nSize:               9216 kB\nRss:                9000 kB\n{lines}VmFlags: rd wr {flags}\n")
}

const ANON: &str = "7f0000080000-7f0000980000 rw-p 00000000 00:00 0 ";

/// The process, on a kernel with this chosen for all.
fn process(tree: &Tree, enabled: &str, smaps: &str, status: &str) -> Process {
    let words = ["always", "madvise", "never"].map(|w| if w == enabled { format!("[{w}]") } else { w.into() });
    tree.write("sys/kernel/mm/transparent_hugepage/enabled", &format!("{}\n", words.join(" ")));
    tree.write("proc/77/smaps", smaps);
    tree.write("proc/77/status", status);
    let files = Files::read(&tree.roots, 77).unwrap_or_else(|e| panic!("{e}"));
    Process::of(&Host::read(&tree.roots), 77, &files)
}

#[track_caller]
fn reason(tree: &Tree, enabled: &str, smaps: &str, status: &str) -> Option<Reason> {
    process(tree, enabled, smaps, status).mappings[0].reason
}

#[test]
fn the_first_question_that_says_no_is_the_reason() {
    let tree = Tree::of("6.12");
    let anon = |lines: &str, flags: &str| smaps(ANON, lines, flags);
    let plain = anon("", "");
    assert_eq!(reason(&tree, "never", &plain, STATUS), Some(Reason::Never));
    assert_eq!(reason(&tree, "madvise", &plain, STATUS), Some(Reason::NotAdvised));
    assert_eq!(reason(&tree, "madvise", &anon("", "hg"), STATUS), Some(Reason::NotCollapsed));
    assert_eq!(reason(&tree, "always", &plain, STATUS), Some(Reason::NotCollapsed));
    assert_eq!(reason(&tree, "always", &anon("", "nh"), STATUS), Some(Reason::Refused));
    let off = STATUS.replace("enabled:\t1", "enabled:\t0");
    assert_eq!(reason(&tree, "always", &anon("", "hg"), &off), Some(Reason::TurnedOffForTheProcess));
    assert_eq!(reason(&tree, "always", &anon("Swap:  40 kB\n", ""), STATUS), Some(Reason::Swapped));
    assert_eq!(reason(&tree, "always", &anon("THPeligible: 0\n", ""), STATUS), Some(Reason::NotEligible));
    assert_eq!(reason(&tree, "always", &anon("AnonHugePages: 6144 kB\n", ""), STATUS), Some(Reason::Ends));
    assert_eq!(reason(&tree, "always", &anon("AnonHugePages: 9000 kB\n", ""), STATUS), None);
    let small = "7f0000080000-7f00000c0000 rw-p 00000000 00:00 0 ";
    assert_eq!(reason(&tree, "always", &smaps(small, "", ""), STATUS), Some(Reason::TooSmall));
    let file = "7f0000080000-7f0000980000 r-xp 00000000 fe:01 42 /usr/lib/libjvm.so";
    assert_eq!(reason(&tree, "always", &smaps(file, "", ""), STATUS), Some(Reason::File));
    let shm = "7f0000080000-7f0000980000 rw-s 00000000 00:01 42 /dev/shm/pool";
    assert_eq!(reason(&tree, "always", &smaps(shm, "", ""), STATUS), Some(Reason::SharedMemory));
    tree.remove("sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    assert_eq!(reason(&tree, "always", &plain, STATUS), Some(Reason::NoHugePages));
}

#[test]
fn no_more_can_be_huge_than_lies_in_whole_aligned_huge_pages() {
    let tree = Tree::of("6.1");
    let m = process(&tree, "always", &smaps(ANON, "AnonHugePages: 4096 kB\n", ""), STATUS).mappings.remove(0);
    assert_eq!((m.size_bytes, m.aligned_bytes, m.huge_bytes), (9216 << 10, 6 << 20, 4 << 20));
    assert_eq!((m.start.as_str(), m.end.as_str()), ("7f0000080000", "7f0000980000"));
}

#[test]
fn pages_of_a_pool_are_huge_and_reasons_are_added_up() {
    let tree = Tree::of("6.12");
    let pool = "7e0000000000-7e0000400000 rw-p 00000000 00:0f 9 /anon_hugepage (deleted)";
    let pool = format!("{pool}\nSize: 4096 kB\nRss: 0 kB\nPrivate_Hugetlb: 4096 kB\nVmFlags: rd wr ht\n");
    let two = smaps(ANON, "", "") + &smaps(&ANON.replace("7f", "7d"), "", "") + &pool;
    let p = process(&tree, "madvise", &two, STATUS);
    assert_eq!(
        (p.name.as_deref(), p.huge_bytes, p.resident_bytes),
        (Some("java"), 4 << 20, (18_000 << 10) + (4 << 20))
    );
    let [sum] = p.reasons.as_slice() else { panic!("{:?}", p.reasons) };
    assert_eq!((sum.reason, sum.bytes, sum.mappings), (Reason::NotAdvised, 18_000 << 10, 2));
    assert_eq!(sum.could_be_huge_bytes, 12 << 20, "three huge pages of each");
}

#[test]
fn a_process_of_each_kernel_is_understood_and_one_that_is_not_there_is_missing() {
    for kernel in KERNELS {
        let tree = Tree::of(kernel);
        let files = Files::read(&tree.roots, 4242).unwrap_or_else(|e| panic!("{kernel}: {e}"));
        let p = Process::of(&Host::read(&tree.roots), 4242, &files);
        assert!(p.resident_bytes > 0 && p.mappings.len() > 3, "{kernel}: {p:?}");
        let small: u64 = p.reasons.iter().map(|sum| sum.bytes).sum();
        assert_eq!(small + p.huge_bytes, p.resident_bytes, "every byte has its reason");
        assert!(Files::read(&tree.roots, 1).is_err_and(|e| e.is_missing()));
        tree.write("proc/2/status", "Name:\tkthreadd\n");
        tree.write("proc/2/smaps", "");
        let files = Files::read(&tree.roots, 2).expect("a kernel thread");
        assert_eq!(Process::of(&Host::read(&tree.roots), 2, &files).mappings, []);
    }
}
