//! Status of recorded hosts of five kernels, and of hosts that lack a file or hold nonsense.

use crate::common::{KERNELS, Tree};
use kontig_live::status::STATUS_SCHEMA;
use kontig_live::status::purpose::{Can, Kind};
use kontig_live::{Host, Status, Unread};
use proptest::prelude::*;
use std::sync::OnceLock;

fn status(tree: &Tree) -> Status {
    Status::of(&Host::read(&tree.roots), None, None).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn each_kernel_is_understood() {
    for kernel in KERNELS {
        let tree = Tree::of(kernel);
        let host = Host::read(&tree.roots);
        let malformed: Vec<_> = host.unread().into_iter().filter(|e| !e.is_missing()).cloned().collect();
        assert_eq!(malformed, [], "{kernel}");
        let s = status(&tree);
        assert_eq!((s.schema, s.page_bytes, s.page_bytes_concluded), (STATUS_SCHEMA, 4096, true), "{kernel}");
        assert_eq!((s.huge_page_order, s.order, s.order_bytes), (Some(9), 9, 2 << 20), "{kernel}");
        assert!(s.kernel.as_deref().is_some_and(|release| release.starts_with(kernel)), "{kernel}");
        assert_eq!(s.nodes.len(), if kernel == "6.18" { 1 } else { 2 }, "{kernel}");
        assert!(s.settings.iter().any(|set| set.name == "vm.min_free_kbytes" && set.value.is_some()), "{kernel}");
    }
}

#[test]
fn a_zone_has_as_much_free_memory_as_its_own_counter_says() {
    for kernel in KERNELS {
        let tree = Tree::of(kernel);
        let host = Host::read(&tree.roots);
        let info = host.zoneinfo.as_ref().expect("read");
        for node in &status(&tree).nodes {
            for zone in &node.zones {
                let says = info.zone(node.node, &zone.zone).expect("the zone").free * 4096;
                // The two files were read one after the other.
                assert!(zone.free_bytes.abs_diff(says) <= 4 << 20, "{kernel} {}: {says}", zone.zone);
                let lists: u64 = zone.orders.iter().map(|o| o.free_blocks * o.bytes).sum();
                assert_eq!(lists, zone.free_bytes);
                assert!(zone.orders.windows(2).all(|o| o[0].unusable_index <= o[1].unusable_index));
                assert!(zone.managed_bytes <= zone.present_bytes);
            }
        }
    }
}

#[test]
fn all_memory_of_a_node_is_accounted_for_and_little_is_not_counted() {
    for kernel in KERNELS {
        for node in status(&Tree::of(kernel)).nodes {
            let sum: u64 = node.purposes.iter().map(|p| p.bytes.expect("it is counted")).sum();
            assert_eq!(sum, node.managed_bytes, "{kernel} node {}", node.node);
            let uncounted = node.purposes.iter().find(|p| p.kind == Kind::Uncounted).and_then(|p| p.bytes).unwrap_or(0);
            assert!(uncounted * 10 < node.managed_bytes, "{kernel} node {}: {uncounted}", node.node);
            let has = |kind, can| node.purposes.iter().any(|p| (p.kind, p.can) == (kind, can));
            assert!(has(Kind::Free, Can::BeUsed) && has(Kind::Slab, Can::Stay), "{kernel}");
            assert_eq!(has(Kind::CleanFile, Can::MoveOrDrop), kernel == "6.18", "the others have no disk");
            assert_eq!(has(Kind::Pools, Can::Stay), kernel != "6.18", "{kernel}: some have pools");
        }
    }
}

#[test]
fn a_kernels_missing_counter_is_printed_as_missing_and_not_0() {
    let value = |s: &Status, name: &str| s.settings.iter().find(|set| set.name == name).expect(name).value.clone();
    let old = status(&Tree::of("5.10"));
    assert_eq!(value(&old, "vm.defrag_mode"), None);
    assert_eq!(value(&status(&Tree::of("7.2")), "vm.defrag_mode").as_deref(), Some("0"));
    assert!(old.nodes[0].zones.iter().all(|zone| zone.free_highatomic_bytes.is_none()));
    assert_eq!(old.events.get("thp_fault_alloc").map(|c| c.interval), Some(None), "no interval was waited for");
}

#[test]
fn without_root_the_rest_is_said_and_what_is_missing_is_named() {
    let tree = Tree::of("6.12");
    let all = status(&tree);
    assert!(all.nodes[0].zones.iter().all(|zone| zone.pageblocks.is_some()));
    for file in ["proc/pagetypeinfo", "proc/slabinfo", "proc/pressure", "sys/devices"] {
        tree.remove(file);
    }
    let less = status(&tree);
    assert!(less.nodes[0].zones.iter().all(|zone| zone.pageblocks.is_none()));
    assert_eq!(less.events.pressure, None);
    let named: Vec<&str> = less.not_read.iter().map(|n| n.path.rsplit('/').next().expect("a name")).collect();
    assert_eq!(named, ["pagetypeinfo", "memory", "slabinfo"]);
    assert_eq!(less.nodes[0].score, all.nodes[0].score);
}

#[test]
fn a_kernel_without_huge_pages_has_no_score_and_is_asked_about_single_pages() {
    let tree = Tree::of("6.1");
    tree.remove("sys/kernel/mm/transparent_hugepage");
    let meminfo = tree
        .read("proc/meminfo")
        .lines()
        .filter(|l| !l.starts_with("Huge"))
        .map(|l| format!("{l}\n"))
        .collect::<String>();
    tree.write("proc/meminfo", &meminfo);
    let s = status(&tree);
    assert_eq!((s.huge_page_order, s.order), (None, 0));
    assert!(s.nodes.iter().all(|node| node.score.is_none()));
    let asked = Status::of(&Host::read(&tree.roots), Some(10), None).expect("read");
    assert_eq!((asked.order, asked.order_bytes), (10, 4 << 20));
}

#[test]
fn larger_pages_are_concluded_and_their_huge_page_has_the_order_that_follows() {
    let tree = Tree::of("6.12");
    let meminfo = tree.read("proc/meminfo");
    let zones = Host::read(&tree.roots).zoneinfo.expect("read").zones;
    let (free, managed) = zones
        .iter()
        .fold((0, 0), |(free, managed), zone| (free + zone.free, managed + zone.sizes.get("managed").unwrap_or(0)));
    let with = |text: String, name: &str, pages: u64| {
        let line = text.lines().find(|l| l.starts_with(name)).expect("a line").to_string();
        text.replace(&line, &format!("{name}:        {:>8} kB", pages * 64))
    };
    tree.write("proc/meminfo", &with(with(meminfo, "MemFree", free), "MemTotal", managed));
    tree.write("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "536870912\n");
    let s = status(&tree);
    assert_eq!((s.page_bytes, s.huge_page_order, s.order_bytes), (65_536, Some(13), 512 << 20));
    assert_eq!(s.nodes[0].at_hand, None, "lists that end below are silent about it");
}

#[test]
fn events_of_an_interval_are_what_the_counters_have_grown_by() {
    let tree = Tree::of("7.2");
    let before = Host::read(&tree.roots);
    let vmstat = tree.read("proc/vmstat");
    let grown =
        vmstat.replace("allocstall_normal 0", "allocstall_normal 3").replace("allocstall_dma 0", "allocstall_dma 2");
    assert_ne!(grown, vmstat);
    tree.write("proc/vmstat", &grown);
    let s = Status::of(&Host::read(&tree.roots), None, Some((&before, 2.5))).expect("read");
    assert_eq!(s.events.interval_s, Some(2.5));
    assert_eq!(s.events.get("allocstall").and_then(|c| c.interval), Some(5), "of all zones together");
    assert_eq!(s.events.get("pgmigrate_fail").and_then(|c| c.interval), Some(0));
}

#[test]
fn a_file_that_says_nonsense_is_named_with_its_line() {
    let tree = Tree::of("6.1");
    let refused = |text: &str| {
        tree.write("proc/buddyinfo", text);
        let e = Status::of(&Host::read(&tree.roots), None, None).expect_err(text);
        assert!(matches!(e.why, Unread::Malformed { .. }), "{e}");
        e.to_string().replace(&tree.roots.procfs.display().to_string(), "")
    };
    assert_eq!(refused(""), "/buddyinfo: line 1: the file is empty");
    assert!(refused("Node 0, zone Normal 1 2 x \n").starts_with("/buddyinfo: line 1: 'x' is not a number"));
    let many = "1 ".repeat(41);
    let large = "Node 0, zone   Normal      1      2 \nNode 0, zone  Movable 18446744073709551615 1 \n";
    assert!(refused(&format!("Node 0, zone   Normal {many}\n")).contains("line 1: more free memory than"));
    assert!(refused(large).contains("line 2: more free memory than"));
    tree.remove("proc/buddyinfo");
    let e = Status::of(&Host::read(&tree.roots), None, None).expect_err("missing");
    assert!(e.is_missing(), "{e}");
}

/// The texts that a status is made of.
const FILES: [&str; 9] = [
    "proc/buddyinfo",
    "proc/zoneinfo",
    "proc/pagetypeinfo",
    "proc/vmstat",
    "proc/meminfo",
    "proc/pressure/memory",
    "sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
    "proc/sys/vm/compaction_proactiveness",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_damage_to_any_file_ends_in_a_status_or_in_a_line_that_names_the_file(
        file in 0..FILES.len(), at in 0.0..1.0f64, len in 0..60usize, instead in "[0-9a-zA-Z ,:=.\n-]{0,24}",
    ) {
        static TREE: OnceLock<Tree> = OnceLock::new();
        let tree = TREE.get_or_init(|| Tree::of("6.12"));
        let text = tree.read(FILES[file]);
        let at = (at * text.len() as f64) as usize;
        let end = (at + len).min(text.len());
        tree.write(FILES[file], &format!("{}{instead}{}", &text[..at], &text[end..]));
        let host = Host::read(&tree.roots);
        tree.write(FILES[file], &text);
        for order in [None, Some(0), Some(29)] {
            if let Err(e) = Status::of(&host, order, Some((&host, 1.0))) {
                prop_assert!(e.to_string().contains(FILES[file].trim_start_matches("proc/")), "{e}");
            }
        }
    }
}
