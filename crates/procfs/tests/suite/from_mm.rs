//! Proc files of invented machines, against the kernel's formats and the published vectors.
//!
//! kontig-oracle, which has the recordings, compares them byte for byte with a real kernel's.

use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::{CpuId, Gfp, MachineSpec, Memory, MigrateOutcome, NodeId, Order, Owner, PageFlags, PageState, Pfn};
use kontig_mm::{Request, Shadow, VmEvent, ZoneSpec, ZoneType};
use kontig_procfs::from_mm::files;
use kontig_procfs::{BuddyInfo, ExtfragIndex, PageTypeInfo, UnusableIndex, VmStat, ZoneInfo};
use kontig_profiles::linux;
use std::collections::BTreeMap;
use std::fmt::Write;

const CPU: CpuId = CpuId::new(0);

/// The lines from the one that starts with `from` to the end.
fn tail<'a>(text: &'a str, from: &str) -> &'a str {
    let at = text.match_indices(from).find(|(at, _)| text[..*at].chars().next_back().is_none_or(|c| c == '\n'));
    &text[at.unwrap_or_else(|| panic!("no line '{from}…' in:\n{text}")).0..]
}

#[test]
fn vmstat_shows_state_and_events() {
    let mut m = fresh(1, &[(0, ZoneType::Normal, 0, 16 * 512)]);
    for _ in 0..2 {
        let pfn =
            m.alloc(kontig_mm::Request::new(CPU, NodeId::new(0), Gfp::MOVABLE, Order::new(9))).expect("all is free");
        m.lru_add(CpuId::new(0), pfn, Order::new(9), kontig_mm::PageFlags::ANON);
    }
    m.vmstat_mut().add(VmEvent::ThpFaultAlloc, 2);
    let shown = VmStat::of(&m).to_string();
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
    assert!(ZoneInfo::of(&m).to_string().contains("\n      nr_anon_transparent_hugepages 2\n"));
}

/// Files whose pages are read once: clean, and nobody's but the cache's.
#[derive(Default)]
struct Cache {
    pages: BTreeMap<u32, Result<Pfn, Shadow>>,
    came_back: u64,
    went: u64,
}

impl Owner for Cache {
    fn may_isolate(&mut self, _: Pfn) -> bool {
        true
    }
    fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
        MigrateOutcome::Failed
    }
    fn page_state(&mut self, _: Pfn, _: u32) -> PageState {
        PageState::default()
    }
    fn removed(&mut self, _: Pfn, page: u32, shadow: Option<Shadow>) {
        self.went += 1;
        match shadow {
            Some(shadow) => self.pages.insert(page, Err(shadow)),
            None => self.pages.remove(&page),
        };
    }
}

impl Cache {
    /// Reads a page, which is brought in if it is not there.
    fn read(&mut self, m: &mut Memory, page: u32) {
        let shadow = match self.pages.get(&page) {
            Some(Ok(_)) => return,
            Some(Err(shadow)) => Some(*shadow),
            None => None,
        };
        let pfn = user_page(m, self);
        m.set_owner(pfn, Order::ZERO, page);
        let mut flags = PageFlags::FILE;
        if let Some(shadow) = shadow {
            self.came_back += 1;
            flags = m.workingset_refault(CPU, pfn, flags, shadow);
        }
        m.lru_add(CPU, pfn, Order::ZERO, flags);
        self.pages.insert(page, Ok(pfn));
    }
}

/// A machine of one zone that keeps the order of its LRU.
fn ordered(frames: u32, kernel: &str) -> Memory {
    let pages = u64::from(frames);
    let zone = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: frames, present: pages, managed: pages };
    let spec = MachineSpec { cpus: 1, zones: vec![zone], thp: false, lru: true };
    Memory::new(&spec, linux(kernel)).expect("a possible machine")
}

fn user_page(m: &mut Memory, cache: &mut Cache) -> Pfn {
    let request = Request::new(CPU, NodeId::new(0), Gfp::HIGHUSER_MOVABLE.without(Gfp::KSWAPD_RECLAIM), Order::ZERO);
    m.alloc_pages(cache, request).expect("the cache can always give way")
}

#[test]
fn reclaim_is_seen_in_the_counters_of_a_machine_that_keeps_the_order_of_its_lru() {
    let pages = 16 * 512;
    // Kernels whose zones have the lists are another test's.
    let by_node = |name: &&str| linux(name).recorded && !linux(name).lru.lists_per_zone;
    for kernel in kontig_profiles::names().filter(by_node) {
        let mut m = ordered(pages, kernel);
        let mut cache = Cache::default();
        for _ in 0..100 {
            let pfn = user_page(&mut m, &mut cache);
            m.lru_add(CPU, pfn, Order::ZERO, PageFlags::ANON);
        }
        // More than fits, twice.
        (0..2).flat_map(|_| 0..pages + 2000).for_each(|page| cache.read(&mut m, page));
        assert!(cache.came_back > 1000, "{kernel}: {}", cache.came_back);

        let kept = cache.pages.values().filter(|place| place.is_ok()).count() as u64;
        let node = ZoneInfo::of(&m).zones.iter().find_map(|z| z.node_stats.clone()).expect("a node with memory");
        let vmstat = VmStat::of(&m);
        let shown = |name: &str| node.get(name).unwrap_or_else(|| panic!("{kernel} has no '{name}'"));
        assert_eq!((shown("nr_file_pages"), shown("nr_anon_pages")), (kept, 100), "{kernel}");
        // Counts that the CPU has not folded in are not shown.
        let threshold = m.zones()[0].stat_threshold as u64;
        assert!(shown("workingset_refault_file").abs_diff(cache.came_back) <= threshold, "{kernel}");
        for (name, value) in node.iter().filter(|(name, _)| name.starts_with("workingset_") || name.starts_with("nr_"))
        {
            assert_eq!(vmstat.get(name), Some(value), "{kernel}: {name}");
        }
        assert_eq!(vmstat.get("pgsteal_file"), Some(cache.went), "{kernel}");
        assert!(vmstat.get("pgscan_direct") >= vmstat.get("pgsteal_direct"), "{kernel}");
        assert!(vmstat.get("allocstall_movable") > Some(0), "{kernel}");
        // Kernels since 7.2 count it by node.
        let of_node = (["7.2", "7.3"].contains(&kernel)).then_some(cache.went);
        assert_eq!(node.get("pgsteal_file"), of_node, "{kernel}");
    }
}

#[test]
fn a_huge_page_of_a_file_is_no_anonymous_one() {
    let mut m = ordered(8192, "6.1");
    for flags in [PageFlags::ANON, PageFlags::FILE, PageFlags::FILE] {
        let huge = Request::new(CPU, NodeId::new(0), Gfp::HIGHUSER_MOVABLE | Gfp::COMP, Order::new(9));
        let pfn = m.alloc(huge).expect("all is free");
        m.lru_add(CPU, pfn, Order::new(9), flags);
    }
    m.lru_add_drain(CPU);
    let shown = ["nr_anon_transparent_hugepages", "nr_file_hugepages", "nr_anon_pages", "nr_file_pages"];
    assert_eq!(shown.map(|name| VmStat::of(&m).get(name)), [1, 2, 512, 1024].map(Some));
}

#[test]
fn a_page_that_waits_for_the_lru_is_counted_and_one_that_was_let_go_is_not() {
    let mut m = ordered(8192, "6.1");
    let pfn = user_page(&mut m, &mut Cache::default());
    m.lru_add(CPU, pfn, Order::ZERO, PageFlags::FILE);
    let shown = |m: &Memory| ["nr_file_pages", "nr_inactive_file"].map(|name| VmStat::of(m).get(name).expect("shown"));
    assert_eq!(shown(&m), [1, 0], "in a batch");
    m.lru_add_drain(CPU);
    m.mark_accessed(CPU, pfn);
    m.mark_accessed(CPU, pfn);
    m.free(CPU, pfn, Order::ZERO);
    assert_eq!(shown(&m)[0], 0, "the batch that would make it active still holds it");
    assert!(m.lru().is_released(pfn));
}

#[test]
fn nodes_and_zones_are_listed_in_order_and_only_zoneinfo_lists_empty_ones() {
    let m =
        fresh(2, &[(0, ZoneType::Dma, 0, 4096), (0, ZoneType::Dma32, 4096, 8192), (2, ZoneType::Normal, 8192, 9216)]);
    assert_eq!(
        BuddyInfo::of(&m).to_string(),
        "Node 0, zone      DMA      0      0      0      0      0      0      0      0      0      0      4 \n\
         Node 0, zone    DMA32      0      0      0      0      0      0      0      0      0      0      4 \n\
         Node 2, zone   Normal      0      0      0      0      0      0      0      0      0      0      1 \n"
    );
    assert_eq!(PageTypeInfo::of(&m).to_string().matches("Page block order: 9\nPages per block:  512\n\n").count(), 2);
    let zoneinfo = ZoneInfo::of(&m).to_string();
    let headings: Vec<&str> = zoneinfo.lines().filter(|l| l.starts_with("Node")).collect();
    assert_eq!(headings.len(), 3 * ZoneType::COUNT);
    assert_eq!(headings[6..9], ["Node 1, zone    DMA32", "Node 1, zone   Normal", "Node 1, zone  Movable"]);
    assert_eq!(zoneinfo.matches("  per-node stats\n").count(), 2, "none for a node without memory");
    assert_eq!(zoneinfo.matches("\n    cpu: 1\n").count(), 3);
    assert_eq!(zoneinfo.matches("\n  vm stats threshold: ").count(), 6, "for every CPU of every zone");
    assert!(zoneinfo.contains("\n        protection: (0, 16, 16, 16, 16)\n"));
}

#[test]
fn up_to_4_7_each_zone_has_all_counters_and_those_without_memory_are_not_listed() {
    let zone = |kind, start, end: u32| {
        let pages = u64::from(end - start);
        ZoneSpec { node: 0, kind, start, end, present: pages, managed: pages }
    };
    let zones = vec![zone(ZoneType::Dma, 0, 2048), zone(ZoneType::Dma32, 2048, 8192)];
    for kernel in ["3.13", "4.6"] {
        let spec = MachineSpec { cpus: 2, zones: zones.clone(), thp: false, lru: true };
        let mut m = Memory::new(&spec, linux(kernel)).expect("a possible machine");
        let mut cache = Cache::default();
        (0..2).flat_map(|_| 0..10_000).for_each(|page| cache.read(&mut m, page));
        m.lru_add_drain(CPU);
        let (info, vmstat) = (ZoneInfo::of(&m), VmStat::of(&m));
        let text = info.to_string();
        assert_eq!(ZoneInfo::parse("zoneinfo", &text).as_ref(), Ok(&info), "{kernel}");
        let headings: Vec<&str> = text.lines().filter(|l| l.starts_with("Node")).collect();
        assert_eq!(headings, ["Node 0, zone      DMA", "Node 0, zone    DMA32"], "{kernel}");
        assert!(info.zones.iter().all(|z| z.node_stats.is_none() && z.protection.len() == 4), "{kernel}");
        let dma32 = tail(&text, "Node 0, zone    DMA32");
        let begins = ["pages", "min", "low", "high", "scanned", "spanned", "present", "managed", "nr_free_pages"];
        let words: Vec<&str> = dma32.lines().skip(1).take(9).filter_map(|l| l.split_whitespace().next()).collect();
        assert_eq!(words, begins, "{kernel}");
        assert!(dma32.contains("\n    nr_free_cma  0\n        protection: ("), "{kernel}: {dma32}");
        let ends = "\n  all_unreclaimable: 0\n  start_pfn:         2048\n  inactive_ratio:    1\n";
        assert!(dma32.ends_with(ends), "{kernel}: {dma32}");
        let counters =
            |z: &kontig_procfs::zoneinfo::Zone| z.populated.as_ref().expect("it has memory").counters.clone();
        let [dma, dma32] = [0, 1].map(|i| counters(&info.zones[i]));
        for (name, value) in dma.iter() {
            let sum = value + dma32.get(name).expect("every zone has the same");
            assert_eq!(vmstat.get(name), Some(sum), "{kernel}: {name}");
        }
        assert!(dma.get("nr_inactive_file") > Some(0) && dma32.get("nr_file_pages") > Some(0), "{kernel}");
    }
}

#[test]
fn counters_of_the_host_stand_in_their_zone_or_added_up_in_its_node() {
    for (kernel, by_zone) in [("4.6", true), ("6.1", false)] {
        let zone = |kind, start, end| ZoneSpec { node: 0, kind, start, end, present: 4096, managed: 4096 };
        let zones = vec![zone(ZoneType::Dma, 0, 4096), zone(ZoneType::Normal, 4096, 8192)];
        let spec = MachineSpec { cpus: 1, zones, thp: false, lru: true };
        let m = Memory::new(&spec, linux(kernel)).expect("a possible machine");
        let info = ZoneInfo::with(&m, |zone, name| (name == "nr_dirty").then(|| 5 + zone.index() as u64));
        let of_node: Vec<u64> = info.zones.iter().filter_map(|z| z.node_stats.as_ref()?.get("nr_dirty")).collect();
        let of_zones: Vec<u64> =
            info.zones.iter().filter_map(|z| z.populated.as_ref()?.counters.get("nr_dirty")).collect();
        assert_eq!((of_node, of_zones), if by_zone { (vec![], vec![5, 6]) } else { (vec![11], vec![]) }, "{kernel}");
    }
}

#[test]
fn a_zone_that_spans_a_hole_only_has_no_counters_and_is_in_no_other_file() {
    let hole = ZoneSpec { node: 0, kind: ZoneType::Dma, start: 0, end: 512, present: 0, managed: 0 };
    let rest = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 512, end: 1024, present: 512, managed: 512 };
    let spec = MachineSpec { cpus: 1, zones: vec![hole, rest], thp: false, lru: false };
    let m = Memory::new(&spec, linux("6.1")).expect("a possible machine");
    let zoneinfo = ZoneInfo::of(&m).to_string();
    let of_the_hole: Vec<&str> = zoneinfo.lines().take_while(|l| *l != "Node 0, zone    DMA32").collect();
    assert_eq!((of_the_hole.len(), of_the_hole[6]), (11, "        spanned  512"));
    assert!(tail(&zoneinfo, "Node 0, zone   Normal").starts_with("Node 0, zone   Normal\n  per-node stats\n"));
    assert_eq!(BuddyInfo::of(&m).to_string().lines().count(), 1);
    assert!(!PageTypeInfo::of(&m).to_string().contains("DMA"));
}

#[test]
fn free_blocks_are_counted_up_to_100_000() {
    let mut m = fresh(1, &[(0, ZoneType::Normal, 0, 512 * 512)]);
    let taken: Vec<Pfn> = std::iter::from_fn(|| {
        m.alloc(kontig_mm::Request::new(CPU, NodeId::new(0), Gfp::MOVABLE | Gfp::THISNODE, Order::ZERO)).ok()
    })
    .collect();
    for pfn in taken.iter().filter(|p| p.get() % 2 == 1) {
        m.free(CPU, *pfn, Order::ZERO);
    }
    m.drain_cpu(CPU);
    let n = m.zones()[0].nr_free(Order::ZERO);
    assert!(n > 100_000, "{n}");
    let shown = PageTypeInfo::of(&m).to_string();
    assert!(shown.contains("Node    0, zone   Normal, type      Movable >100000 "), "{shown}");
    assert!(BuddyInfo::of(&m).to_string().contains(&format!("Node 0, zone   Normal {n:>6} ")));
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
        let (extfrag, unusable) = (line(&ExtfragIndex::of(&m).to_string()), line(&UnusableIndex::of(&m).to_string()));
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
        tail(&ExtfragIndex::of(&m).to_string(), "Node 1"),
        "Node 1, zone   Normal -1.000  0.-500  0.-250  0.-125  0.-62  0.-31  0.-15  0.-07  0.-03  0.-01  0.000 \n"
    );
    assert_eq!(
        tail(&UnusableIndex::of(&m).to_string(), "Node 1"),
        "Node 1, zone   Normal 0.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 \n"
    );
    let none = machine(&snapshot_of(&[]));
    assert_eq!(
        tail(&ExtfragIndex::of(&none).to_string(), "Node 1"),
        format!("Node 1, zone   Normal {}\n", " 0.000 ".repeat(11))
    );
    assert_eq!(
        tail(&UnusableIndex::of(&none).to_string(), "Node 1"),
        format!("Node 1, zone   Normal {}\n", "1.000 ".repeat(11))
    );
}

#[test]
fn every_file_is_there_under_its_path() {
    let m = fresh(1, &[(0, ZoneType::Normal, 0, 1024)]);
    let files = files(&m);
    let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    let want = ["buddyinfo", "pagetypeinfo", "zoneinfo", "vmstat", "extfrag/unusable_index", "extfrag/extfrag_index"];
    assert_eq!(paths[..6], want);
    assert_eq!(files[0].1, BuddyInfo::of(&m).to_string());
    assert_eq!(files[5].1, ExtfragIndex::of(&m).to_string());
    assert!(files.iter().all(|(_, text)| text.ends_with('\n') && !text.contains("\n\n\n")));
}

#[test]
fn the_sysctls_of_the_kernel_read_as_they_are_in_force() {
    let mut m = fresh(1, &[(0, ZoneType::Normal, 0, 1024)]);
    let sysctls = |m: &Memory| -> Vec<(String, String)> {
        files(m).into_iter().filter(|(path, _)| path.starts_with("sys/vm/")).collect()
    };
    m.sysctl_write("vm.extfrag_threshold", "700").unwrap();
    let pair = |name: &str, value: &str| (format!("sys/vm/{name}"), format!("{value}\n"));
    let kbytes = m.tunables().min_free_kbytes.to_string();
    // 6.1 has no defrag_mode, and compact_memory cannot be read.
    let want = [
        pair("compact_unevictable_allowed", "1"),
        pair("compaction_proactiveness", "20"),
        pair("dirty_background_bytes", "0"),
        pair("dirty_background_ratio", "10"),
        pair("dirty_bytes", "0"),
        pair("dirty_expire_centisecs", "3000"),
        pair("dirty_ratio", "20"),
        pair("dirty_writeback_centisecs", "500"),
        pair("extfrag_threshold", "700"),
        pair("min_free_kbytes", &kbytes),
        pair("min_slab_ratio", "5"),
        pair("min_unmapped_ratio", "1"),
        pair("swappiness", "60"),
        pair("watermark_boost_factor", "15000"),
        pair("watermark_scale_factor", "10"),
        pair("zone_reclaim_mode", "0"),
    ];
    assert_eq!(sysctls(&m), want);
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
    snapshot.machine(linux("6.1")).expect("a possible zone")
}

/// A machine of these zones (node, type, first frame, end), all free.
fn fresh(cpus: usize, zones: &[(usize, ZoneType, u32, u32)]) -> Memory {
    let zones = zones.iter().map(|&(node, kind, start, end)| {
        let pages = u64::from(end - start);
        ZoneSpec { node, kind, start, end, present: pages, managed: pages }
    });
    let spec = MachineSpec { cpus, zones: zones.collect(), thp: false, lru: false };
    Memory::new(&spec, linux("6.1")).expect("a possible machine")
}

/// A zone with these numbers of free blocks by order, each without its buddy, in the recordings'
/// form.
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
