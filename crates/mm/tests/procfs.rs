//! The proc files against those of a real kernel, byte for byte, and against the published vectors.
//!
//! What the recorded machine had and this one has not (slab, kernel stacks, NUMA counters) is set to 0 in the real
//! text first, by name: every other byte must be the same.

#[allow(dead_code)] // Shared with tests that use all of it.
mod recording;

use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::{CpuId, Gfp, MachineSpec, Memory, NodeId, Order, Pfn, Profile, VmEvent, ZoneSpec, ZoneType};
use recording::files::text;
use recording::{Op, Recording};
use std::fmt::Write;

const CPU: CpuId = CpuId::new(0);
const BOOSTED: &str = include_str!("data/procfs/6.1-boosted.zoneinfo");
const USER_MEMORY: &str = include_str!("data/procfs/6.1-user-memory.zoneinfo");
const NOT_HERE: [&str; 6] =
    ["nr_slab_reclaimable", "nr_slab_unreclaimable", "nr_kernel_stack", "numa_hit", "numa_interleave", "numa_other"];

/// A file recorded with the 100,000 operations; `t0` before them, `t1` after.
fn recorded(file: &str) -> String {
    text("6.1-mixed100k", file)
}

/// The recorded machine before and after the operations.
fn before_and_after() -> [(&'static str, Memory); 2] {
    let recording = Recording::open("6.1-mixed100k");
    let mut m = recording.start();
    let before = m.clone();
    let mut held = vec![None; recording.ops.len()];
    for op in &recording.ops {
        match *op {
            Op::Alloc { order, gfp, id, .. } => {
                held[id] = m.alloc(CPU, NodeId::new(1), gfp | Gfp::THISNODE, order).ok().map(|pfn| (pfn, order));
            }
            Op::Free { id } => {
                if let Some((pfn, order)) = held[id].take() {
                    m.free(CPU, pfn, order);
                }
            }
        }
    }
    [("t0", before), ("t1", m)]
}

/// The lines from the one that starts with `from` to the end.
fn tail<'a>(text: &'a str, from: &str) -> &'a str {
    let at = text.match_indices(from).find(|(at, _)| text[..*at].chars().next_back().is_none_or(|c| c == '\n'));
    &text[at.unwrap_or_else(|| panic!("no line '{from}…' in:\n{text}")).0..]
}

/// pagetypeinfo's second node: headings and all.
fn second_node(pagetypeinfo: &str) -> &str {
    let at = pagetypeinfo.rfind("Page block order").expect("a heading");
    assert_ne!(at, 0, "the headings are repeated for every node");
    &pagetypeinfo[at..]
}

/// Sets the values of the named lines to 0.
fn without(text: &str, names: &[&str]) -> String {
    let blank = |line: &str| match line.rsplit_once(' ') {
        Some((head, _)) if names.contains(&head.trim()) => format!("{head} 0\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(blank).collect()
}

#[test]
fn buddyinfo_and_pagetypeinfo_are_the_kernels_before_and_after_100k_operations() {
    for (t, m) in before_and_after() {
        let real = recorded(&format!("{t}.buddyinfo"));
        assert_eq!(tail(&m.buddyinfo(), "Node 1"), tail(&real, "Node 1"), "{t}");
        let real = recorded(&format!("{t}.pagetypeinfo"));
        assert_eq!(second_node(&m.pagetypeinfo()), second_node(&real), "{t}");
    }
}

#[test]
fn zoneinfo_of_the_node_is_the_kernels_before_and_after_100k_operations() {
    for (t, m) in before_and_after() {
        let real = recorded(&format!("{t}.zoneinfo"));
        let from = "Node 1, zone      DMA";
        assert_eq!(tail(&m.zoneinfo(), from), without(tail(&real, from), &NOT_HERE), "{t}");
    }
}

#[test]
fn the_marks_include_the_boost() {
    // The boosted file is from another recording on the same machine: its zone has the same size and raw marks.
    let text = recorded("t1.snap").replace(" boost 0 ", " boost 3295 ");
    let m = machine(&text);
    let marks = |text: &str| -> Vec<String> {
        let zone = tail(text, "Node 1, zone   Normal").lines();
        zone.skip_while(|l| !l.starts_with("        boost")).take(9).map(str::to_owned).collect()
    };
    assert_eq!(marks(&m.zoneinfo()), marks(BOOSTED));
    assert_eq!(marks(BOOSTED)[..2], ["        boost    3295", "        min      4464"]);
}

#[test]
fn user_memory_is_listed_where_the_kernel_lists_it() {
    let recording = "6.1-anon-compact-random";
    let snapshot = ZoneSnapshot::parse(&text(recording, "f0.snap")).unwrap_or_else(|e| panic!("{e}"));
    let m = snapshot
        .machine_with_pages(Profile::linux_6_1(), &text(recording, "f0.pages"))
        .unwrap_or_else(|e| panic!("{e}"));
    let from = "Node 1, zone   Normal";
    let (shown, real) = (m.zoneinfo(), without(USER_MEMORY, &NOT_HERE));
    assert_eq!(tail(&shown, from), tail(&real, from));
    assert!(shown.contains("\n      nr_anon_pages 127139\n"));
}

#[test]
fn vmstat_has_the_kernels_names_in_its_order() {
    let m = machine(&recorded("t0.snap"));
    let names = |text: &str| -> Vec<String> {
        text.lines().map(|l| l.split_once(' ').expect("a name and a value").0.to_owned()).collect()
    };
    assert_eq!(names(&m.vmstat_text()), names(&recorded("t0.vmstat")));
    assert!(m.vmstat_text().ends_with("\nnr_unstable 0\n"));
}

#[test]
fn vmstat_counts_the_recorded_allocations() {
    // Only the node under test has a Normal zone, so nothing else counts there.
    let value = |text: &str| -> u64 {
        let line = tail(text, "pgalloc_normal ").lines().next().expect("found above");
        line.rsplit_once(' ').expect("a name and a value").1.parse().expect("a number")
    };
    let [(_, before), (_, after)] = before_and_after();
    assert_eq!(
        value(&after.vmstat_text()) - value(&before.vmstat_text()),
        value(&recorded("t1.vmstat")) - value(&recorded("t0.vmstat"))
    );
}

#[test]
fn vmstat_shows_state_and_events() {
    let mut m = fresh(1, &[(0, ZoneType::Normal, 0, 16 * 512)]);
    for _ in 0..2 {
        let pfn = m.alloc(CPU, NodeId::new(0), Gfp::MOVABLE, Order::new(9)).expect("all is free");
        m.lru_add(pfn, Order::new(9));
    }
    m.vmstat_mut().add(VmEvent::ThpFaultAlloc, 2);
    let shown = m.vmstat_text();
    for line in [
        "nr_free_pages 7168",
        "nr_zone_inactive_anon 1024",
        "nr_inactive_anon 1024",
        "nr_anon_pages 1024",
        "nr_anon_transparent_hugepages 2",
        "pgalloc_normal 1024",
        "thp_fault_alloc 2",
    ] {
        assert!(shown.lines().any(|l| l == line), "no '{line}' in:\n{shown}");
    }
    assert!(m.zoneinfo().contains("\n      nr_anon_transparent_hugepages 2\n"));
}

#[test]
fn nodes_and_zones_are_listed_in_order_and_only_zoneinfo_lists_empty_ones() {
    let m =
        fresh(2, &[(0, ZoneType::Dma, 0, 4096), (0, ZoneType::Dma32, 4096, 8192), (2, ZoneType::Normal, 8192, 9216)]);
    assert_eq!(
        m.buddyinfo(),
        "Node 0, zone      DMA      0      0      0      0      0      0      0      0      0      0      4 \n\
         Node 0, zone    DMA32      0      0      0      0      0      0      0      0      0      0      4 \n\
         Node 2, zone   Normal      0      0      0      0      0      0      0      0      0      0      1 \n"
    );
    assert_eq!(m.pagetypeinfo().matches("Page block order: 9\nPages per block:  512\n\n").count(), 2);
    let zoneinfo = m.zoneinfo();
    let headings: Vec<&str> = zoneinfo.lines().filter(|l| l.starts_with("Node")).collect();
    assert_eq!(headings.len(), 3 * ZoneType::COUNT);
    assert_eq!(headings[6..9], ["Node 1, zone    DMA32", "Node 1, zone   Normal", "Node 1, zone  Movable"]);
    assert_eq!(zoneinfo.matches("  per-node stats\n").count(), 2, "none for a node without memory");
    assert_eq!(zoneinfo.matches("\n    cpu: 1\n").count(), 3);
    assert_eq!(zoneinfo.matches("\n  vm stats threshold: ").count(), 6, "for every CPU of every zone");
    assert!(zoneinfo.contains("\n        protection: (0, 16, 16, 16, 16)\n"));
}

#[test]
fn a_zone_that_spans_a_hole_only_has_no_counters_and_is_in_no_other_file() {
    let hole = ZoneSpec { node: 0, kind: ZoneType::Dma, start: 0, end: 512, present: 0, managed: 0 };
    let rest = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 512, end: 1024, present: 512, managed: 512 };
    let spec = MachineSpec { cpus: 1, zones: vec![hole, rest], thp: false };
    let m = Memory::new(&spec, Profile::linux_6_1()).expect("a possible machine");
    let zoneinfo = m.zoneinfo();
    let of_the_hole: Vec<&str> = zoneinfo.lines().take_while(|l| *l != "Node 0, zone    DMA32").collect();
    assert_eq!((of_the_hole.len(), of_the_hole[6]), (11, "        spanned  512"));
    assert!(tail(&zoneinfo, "Node 0, zone   Normal").starts_with("Node 0, zone   Normal\n  per-node stats\n"));
    assert_eq!(m.buddyinfo().lines().count(), 1);
    assert!(!m.pagetypeinfo().contains("DMA"));
}

#[test]
fn free_blocks_are_counted_up_to_100_000() {
    let mut m = fresh(1, &[(0, ZoneType::Normal, 0, 512 * 512)]);
    let taken: Vec<Pfn> =
        std::iter::from_fn(|| m.alloc(CPU, NodeId::new(0), Gfp::MOVABLE | Gfp::THISNODE, Order::ZERO).ok()).collect();
    for pfn in taken.iter().filter(|p| p.get() % 2 == 1) {
        m.free(CPU, *pfn, Order::ZERO);
    }
    m.drain_cpu(CPU);
    let n = m.zones()[0].nr_free(Order::ZERO);
    assert!(n > 100_000, "{n}");
    let shown = m.pagetypeinfo();
    assert!(shown.contains("Node    0, zone   Normal, type      Movable >100000 "), "{shown}");
    assert!(m.buddyinfo().contains(&format!("Node 0, zone   Normal {n:>6} ")));
}

#[test]
fn the_indices_of_the_published_vectors_are_printed_as_the_kernel_does() {
    // Orders 1, 4 and 9 of extfrag_index, then order 9 of unusable_index.
    let rows: [(&[u32], [&str; 4]); 8] = [
        (&[1000], [" 0.499", " 0.937", " 0.998", "1.000"]),
        (&[512], [" 0.499", " 0.936", " 0.997", "1.000"]),
        (&[1023], [" 0.500", " 0.937", " 0.998", "1.000"]),
        (&[100, 50, 25, 12, 6, 3, 1], ["-1.000", "-1.000", " 0.989", "1.000"]),
        (&[0, 0, 0, 0, 0, 0, 0, 0, 10], ["-1.000", "-1.000", " 0.400", "1.000"]),
        (&[5000, 3000, 1000, 200, 40, 8, 2, 1, 1], ["-1.000", "-1.000", " 0.997", "1.000"]),
        (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 4], ["-1.000", "-1.000", "-1.000", "0.000"]),
        (&[1], [" 0.-500", " 0.-62", " 0.-01", "1.000"]),
    ];
    for (nr_free, want) in rows {
        let m = machine(&snapshot_of(nr_free));
        let line = |text: &str| tail(text, "Node 1").to_owned();
        let (extfrag, unusable) = (line(&m.extfrag_index()), line(&m.unusable_index()));
        let index = columns(&extfrag, 1);
        let shown = [index[1], index[4], index[9], columns(&unusable, 0)[9]];
        assert_eq!(shown, want.map(str::trim_start), "{nr_free:?}: {extfrag}{unusable}");
        assert!(extfrag.contains(&format!(" {} ", want[0])), "{extfrag}");
    }
}

#[test]
fn the_lines_of_a_nearly_empty_and_of_an_empty_zone() {
    let m = machine(&snapshot_of(&[1]));
    assert_eq!(
        tail(&m.extfrag_index(), "Node 1"),
        "Node 1, zone   Normal -1.000  0.-500  0.-250  0.-125  0.-62  0.-31  0.-15  0.-07  0.-03  0.-01  0.000 \n"
    );
    assert_eq!(
        tail(&m.unusable_index(), "Node 1"),
        "Node 1, zone   Normal 0.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 \n"
    );
    let none = machine(&snapshot_of(&[]));
    assert_eq!(tail(&none.extfrag_index(), "Node 1"), format!("Node 1, zone   Normal {}\n", " 0.000 ".repeat(11)));
    assert_eq!(tail(&none.unusable_index(), "Node 1"), format!("Node 1, zone   Normal {}\n", "1.000 ".repeat(11)));
}

#[test]
fn every_file_is_there_under_its_path() {
    let m = fresh(1, &[(0, ZoneType::Normal, 0, 1024)]);
    let files = m.procfs_files();
    let paths = files.each_ref().map(|(path, _)| *path);
    let want = ["buddyinfo", "pagetypeinfo", "zoneinfo", "vmstat", "extfrag/unusable_index", "extfrag/extfrag_index"];
    assert_eq!(paths, want);
    assert_eq!(files[0].1, m.buddyinfo());
    assert_eq!(files[5].1, m.extfrag_index());
    assert!(files.iter().all(|(_, text)| text.ends_with('\n') && !text.contains("\n\n\n")));
}

/// The values of a line that names node and zone; `pad` says how many blanks may precede one.
fn columns(line: &str, pad: usize) -> Vec<&str> {
    let values: Vec<&str> = line.split_whitespace().skip(4).collect();
    assert_eq!(values.len(), 11, "{line}");
    assert!(!line.contains(&" ".repeat(pad + 4)), "{line}");
    values
}

fn machine(snapshot: &str) -> Memory {
    let snapshot = ZoneSnapshot::parse(snapshot).unwrap_or_else(|e| panic!("{e}"));
    snapshot.machine(Profile::linux_6_1()).expect("a possible zone")
}

/// A machine of these zones (node, type, first frame, end), all free.
fn fresh(cpus: usize, zones: &[(usize, ZoneType, u32, u32)]) -> Memory {
    let zones = zones.iter().map(|&(node, kind, start, end)| {
        let pages = u64::from(end - start);
        ZoneSpec { node, kind, start, end, present: pages, managed: pages }
    });
    let spec = MachineSpec { cpus, zones: zones.collect(), thp: false };
    Memory::new(&spec, Profile::linux_6_1()).expect("a possible machine")
}

/// A zone with so many free blocks of each order, each without its buddy, in the recordings' form.
fn snapshot_of(nr_free: &[u32]) -> String {
    const BLOCKS: usize = 128;
    let mut at = 0;
    let mut lists = String::new();
    let mut pages = 0;
    for (order, &n) in nr_free.iter().enumerate().rev().filter(|(_, n)| **n > 0) {
        write!(lists, "FL {order} 1").expect("a String takes any text");
        for _ in 0..n {
            write!(lists, " {at:x}").expect("a String takes any text");
            at += 2 << order;
            pages += 1 << order;
        }
        lists.push('\n');
    }
    let spanned = BLOCKS * 512;
    format!(
        "ZONE start 100000 spanned {spanned} present {spanned} managed {spanned}\n\
         WM min 0 low 0 high 0 promo 0 boost 0 highatomic 0\n\
         VMSTAT {pages}\nPCP cpu 0 count 0 batch 63 high 378 free_factor 0 diff 0\n{lists}\
         PB {}\nSKIP {}\nEND\n",
        "1".repeat(BLOCKS),
        "0".repeat(BLOCKS)
    )
}
