//! The rules on recorded hosts: every fact they name is known where the kernel shows it.

use crate::common::{KERNELS, Tree};
use kontig_live::explain::facts::{self, Facts, HostFacts};
use kontig_live::explain::rule::{self, Rule};
use kontig_live::status::purpose::Kind;
use kontig_live::{Explanation, Host, Status};

fn rules() -> Vec<Rule> {
    rule::parse(rule::RULES).unwrap_or_else(|e| panic!("{e}"))
}

fn explained(tree: &Tree) -> Explanation {
    let host = Host::read(&tree.roots);
    let status = Status::of(&host, None, None).unwrap_or_else(|e| panic!("{e}"));
    Explanation::of(&rules(), &HostFacts::of(&host, &status, None), status.kernel.as_deref(), None)
}

#[test]
fn on_every_kernel_each_rule_is_decided_or_about_others() {
    for kernel in KERNELS {
        let e = explained(&Tree::of(kernel));
        let undecided: Vec<&str> = e.undecided.iter().map(|rule| rule.id.as_str()).collect();
        // 5.10 does not say by how much its marks are raised.
        let expected: &[&str] = if kernel == "5.10" { &["marks-are-boosted"] } else { &[] };
        assert_eq!(undecided, expected, "{kernel}: {:?}", e.undecided);
        assert_eq!(e.other_kernels.contains(&"defrag-mode-off".to_string()), ["5.10", "6.1", "6.12"].contains(&kernel));
        assert_eq!(e.findings.len() + e.fine.len() + e.other_kernels.len() + e.undecided.len(), rules().len());
    }
}

#[test]
fn each_fact_that_a_text_names_is_known_on_a_kernel_that_has_them_all() {
    let tree = Tree::of("7.2");
    let host = Host::read(&tree.roots);
    let status = Status::of(&host, None, None).expect("read");
    let facts = HostFacts::of(&host, &status, None);
    for rule in rules() {
        for name in rule.named() {
            assert!(facts.get(name).is_some(), "{}: {name}", rule.id);
        }
    }
}

#[test]
fn facts_for_root_alone_leave_rules_undecided_and_not_fine() {
    let tree = Tree::of("7.2");
    tree.remove("proc/pagetypeinfo");
    let e = explained(&tree);
    let lacks = |id: &str| e.undecided.iter().find(|rule| rule.id == id).map(|rule| rule.lacks.clone());
    assert_eq!(lacks("unmovable-pageblocks"), Some(vec!["unmovable_pageblocks".into(), "pageblocks".into()]));
    assert!(!e.fine.contains(&"unmovable-pageblocks".to_string()));
}

#[test]
fn missing_counters_leave_rules_undecided_and_not_fine() {
    let tree = Tree::of("7.2");
    tree.write("proc/sys/vm/compact_unevictable_allowed", "0\n");
    let without = |text: String, name: &str| -> String {
        text.lines().filter(|line| !line.trim_start().starts_with(name)).map(|line| format!("{line}\n")).collect()
    };
    let zoneinfo = ["nr_unevictable", "nr_zone_unevictable"].into_iter().fold(tree.read("proc/zoneinfo"), without);
    tree.write("proc/zoneinfo", &zoneinfo);
    let e = explained(&tree);
    let lacks = |id: &str| e.undecided.iter().find(|rule| rule.id == id).map(|rule| rule.lacks.clone());
    assert_eq!(lacks("locked-memory-stays"), Some(vec!["locked_bytes".into()]));
    let host = Host::read(&tree.roots);
    let status = Status::of(&host, None, None).expect("read");
    let bytes = |kind| status.nodes[0].purposes.iter().find(|p| p.kind == kind).expect("it is told").bytes;
    assert_eq!((bytes(Kind::Locked), bytes(Kind::Uncounted)), (None, None), "the one may be a part of the other");
}

#[test]
fn a_finding_says_what_is_so_on_this_host_and_how_to_go_back() {
    let tree = Tree::of("6.12");
    let vmstat = tree.read("proc/vmstat");
    let set = |text: String, name: &str, to: u64| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).expect(name).to_string();
        text.replace(&format!("{line}\n"), &format!("{name} {to}\n"))
    };
    tree.write("proc/vmstat", &set(set(vmstat, "compact_stall", 1234), "compact_fail", 1200));
    tree.write("sys/kernel/mm/transparent_hugepage/defrag", "[always] defer defer+madvise madvise never\n");
    tree.write("sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled", "[always] inherit madvise never\n");
    let e = explained(&tree);
    let finding = e.findings.iter().find(|f| f.id == "faults-compact-for-everybody").expect("found");
    assert!(finding.reason.contains("happened 1,234 times, 1,200 of them"), "{}", finding.reason);
    let undo = "echo always > /sys/kernel/mm/transparent_hugepage/defrag";
    assert_eq!(finding.undo.as_deref(), Some(undo));
    assert!(e.findings.iter().any(|f| f.id == "direct-compaction-fails"));
}

#[test]
fn memory_that_is_free_but_not_initialised_is_told_from_memory_that_is_gone() {
    // Recorded on a kernel that initialises memory when it is wanted.
    let tree = Tree::of("6.18");
    let found = |tree: &Tree, id: &str| explained(tree).findings.into_iter().find(|f| f.id == id);
    let finding = found(&tree, "memory-given-when-wanted").expect("it holds");
    assert!(finding.reason.starts_with("4.7 GiB are not yet given to the allocator"), "{}", finding.reason);
    assert_eq!(found(&tree, "memory-not-managed"), None);
    let page = |tree: &Tree| Host::read(&tree.roots).page_size.expect("it is known").bytes;
    let meminfo = tree.read("proc/meminfo");
    let with = |total: u64, free: u64| {
        let changed = meminfo.replace("24684092 kB", &format!("{total} kB"));
        tree.write("proc/meminfo", &changed.replace("21105856 kB", &format!("{free} kB")));
    };
    // A host that was started just now, with three quarters of its memory still to be initialised.
    with(24684092 + (40 << 20), 21105856 + (40 << 20));
    assert_eq!(page(&tree), 4096, "what is in use says it");
    // The same amount in a hypervisor's hands: MemFree does not have it.
    with(24684092, 21105856 - 4930868);
    assert!(found(&tree, "memory-given-when-wanted").is_none());
    let finding = found(&tree, "memory-not-managed").expect("it holds");
    assert!(finding.reason.contains("4.7 GiB are not free either"), "{}", finding.reason);
}

#[test]
fn a_control_groups_limit_is_told_where_there_is_one() {
    let tree = Tree::of("6.12");
    let found = || explained(&tree).findings.into_iter().find(|f| f.id == "control-group-limits");
    assert_eq!(found(), None);
    tree.write("proc/self/cgroup", "0::/web\n");
    tree.write("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree.write("sys/fs/cgroup/web/memory.max", "536870912\n");
    tree.write("sys/fs/cgroup/web/memory.current", "104857600\n");
    let reason = found().expect("it holds").reason;
    assert!(
        reason.starts_with("Control group /web of this process may have 512 MiB and gets 412 MiB more."),
        "{reason}"
    );
}

#[test]
fn a_fact_that_no_kernel_has_is_refused_with_its_line_and_the_nearest() {
    // It lacks counters and sysctls that later kernels have.
    let tree = Tree::of("5.10");
    let known = facts::names(&Host::read(&tree.roots));
    assert_eq!(rule::check_facts(&rules(), rule::RULES, &known), Ok(()));
    for (right, wrong, nearest) in [
        ("{compact_fail} of them", "{compact_fial} of them", "compact_fail"),
        ("compact_stall.per_hour >= 60", "compact_stal.per_hour >= 60", "compact_stall.per_hour"),
        ("* managed_bytes", "* manged_bytes", "managed_bytes"),
    ] {
        let text = rule::RULES.replacen(right, wrong, 1);
        let rules = rule::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let e = rule::check_facts(&rules, &text, &known).expect_err(wrong);
        let at = text.find(wrong).expect("it is there");
        assert_eq!(e.line, text[..at].matches('\n').count() + 1, "{e}");
        assert!(e.reason.ends_with(&format!("': did you mean '{nearest}'?")), "{e}");
    }
}
