//! Swap: pages that do not fit in memory go to a disk and come back with their contents.

use crate::support::disk::{hdd, ssd};
use crate::support::family::{Family, Has, act};
use crate::support::*;
use kontig_mm::{LruList, MachineSpec, Memory, VmEvent};
use kontig_program::{Op, Process, Region, Value};
use kontig_sim::machine_file::SwapEntry;
use kontig_sim::{CostModel, DiskEntry, Machine, MachineFile, PageLocation, UserPage};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::BTreeMap;

/// This many pageblocks of memory, and `size` of swap on a disk.
fn machine_with_swap(blocks: u32, profile: &str, disk: DiskEntry, size: &str) -> Machine {
    let memory = Memory::new(&MachineSpec { lru: true, ..spec(2, blocks) }, linux(profile)).expect("a valid machine");
    let mut m = Machine::new(memory, CostModel::new(&xeon().costs));
    let swap = Some(SwapEntry { disk: disk.name.clone(), size: size.into() });
    m.attach_disks(&MachineFile { disk: vec![disk], swap, ..xeon() }).expect("a disk that can be");
    m
}

/// Waits until no page is under writeback, and checks.
fn settle(m: &mut Machine) {
    pass(m, SECOND);
    m.memory_mut().lru_add_drain_all();
    m.memory().check().unwrap();
}

#[test]
fn a_process_with_more_than_there_is_of_memory_goes_through_it_twice() {
    for profile in std::iter::once("5.6").chain(recorded()) {
        for disk in [ssd(), hdd()] {
            let what = format!("{profile} {:?}", disk.kind);
            let m = machine_with_swap(32, profile, disk, "256 MiB");
            let mut p = Prompt::new(m, 1);
            let (all, before) = (p.m.memory().swap_space(), free_pages(&p.m));
            let pages = 32 * 512 * 6 / 5;
            let r = p.mmap(0, pages);
            for _ in 0..2 {
                p.call(0, Op::Touch(r)).unwrap();
                p.m.memory_mut().lru_add_drain_all();
                p.m.memory().check().unwrap();
            }
            let rss = p.m.rss(Process::new(0)).unwrap();
            let counts = p.m.file_counts();
            let is_swapped = |page| {
                matches!(p.m.location_of(UserPage { process: 0, mapping: 0, page }), Some(PageLocation::Swap(_)))
            };
            let has_place = (0..pages).filter(|page| is_swapped(*page)).count() as u64;
            assert!(has_place >= u64::from(pages) - rss, "{what}: what is not in memory is in swap");
            assert_eq!(all.total - p.m.memory().swap_space().free, has_place, "{what}");
            let least = u64::from(pages) - before;
            assert!(counts.swapped_out >= 2 * least && counts.swapped_in >= least, "{what}: {counts:?}");
            assert!(counts.major_faults > 0 && counts.major_faults <= counts.swapped_in, "{what}: {counts:?}");
            assert_eq!(p.m.oom_kills(), &[], "{what}");
            p.call(0, Op::Munmap(r)).unwrap();
            settle(&mut p.m);
            // Pages unmapped during writeback stay until reclaim finds them.
            let vec = p.m.memory().lru().of_node(p.m.memory().nodes()[0].id);
            let left: u64 = LruList::EVICTABLE.iter().map(|list| vec.size_exact(*list) as u64).sum();
            assert_eq!(p.m.memory().swap_space().free + left, all.total, "{what}");
            assert_eq!(free_pages(&p.m) + left, before, "{what}");
            assert!(left < 1500, "{what}: {left}");
        }
    }
}

#[test]
fn a_cluster_comes_back_in_one_request() {
    let mut p = Prompt::new(machine_with_swap(8, "6.1", ssd(), "64 MiB"), 1);
    let pages = 8 * 512 * 2;
    let r = p.mmap(0, pages);
    p.call(0, Op::Touch(r)).unwrap();
    // Everything else is written, so that the reader has the disk for itself.
    settle(&mut p.m);
    // Readahead begins with a page and goes up with those that were wanted.
    let clusters: Vec<(u64, u64)> = (0..64)
        .map(|page| {
            let (reads, begun) = (p.m.file_counts().swapped_in, p.m.now());
            p.call(0, Op::Load(Region { first: page, pages: 1, ..r })).unwrap();
            (p.m.file_counts().swapped_in - reads, p.m.now() - begun)
        })
        .collect();
    assert!(clusters.iter().any(|(read, _)| *read == 8), "{clusters:?}");
    for (read, took) in clusters.into_iter().filter(|(read, _)| *read > 0) {
        // A page takes 100 us alone, 11 of them of the disk's own time, and 10.24 us of the link:
        // all are there when the last one is.
        let last = 88_000 + read * 10_240;
        assert!((last..last + 150_000).contains(&took), "{read} pages in {took} ns");
    }
}

#[test]
fn kswapd_writes_and_the_process_goes_on_at_the_disks_speed() {
    let mut p = Prompt::new(machine_with_swap(32, "6.1", ssd(), "512 MiB"), 1);
    let r = p.mmap(0, 3 * 32 * 512);
    let took = p.call(0, Op::Touch(r)).unwrap().latency_ns();
    let counts = p.m.file_counts();
    // 400 MB/s, never idle while the process waits for memory.
    let writing = counts.written_out * 4096 * 1000 / 400;
    assert!(took * 100 >= writing * 98 && took * 100 <= writing * 110, "{took} ns for {writing} ns of writing");
    let steal = |e| event(&p.m, e);
    assert!(steal(VmEvent::PgstealKswapd) > steal(VmEvent::PgstealDirect));
}

#[test]
fn a_page_that_was_not_used_goes_first() {
    let mut p = Prompt::new(machine_with_swap(32, "6.1", ssd(), "256 MiB"), 1);
    let [hot, cold, more] = [3000, 6000, 9000].map(|pages| p.mmap(0, pages));
    p.call(0, Op::Touch(cold)).unwrap();
    p.call(0, Op::Touch(hot)).unwrap();
    for part in 0..18 {
        p.call(0, Op::Touch(hot)).unwrap();
        p.call(0, Op::Touch(Region { first: part * 500, pages: 500, ..more })).unwrap();
    }
    // A page in memory may also have a slot; only pages read back were gone.
    let mut gone = |r: Region| {
        let before = p.m.file_counts().swapped_in;
        p.call(0, Op::Touch(r)).unwrap();
        (p.m.file_counts().swapped_in - before) as f64 / f64::from(r.pages)
    };
    let (hot, cold) = (gone(hot), gone(cold));
    assert!(cold > 0.3 && hot < cold / 3.0, "{cold} of the cold, {hot} of the hot");
}

#[test]
fn khugepaged_reads_pages_from_swap_since_4_8() {
    for (profile, collapsed) in [("4.6", 0), ("5.6", 1)] {
        let mut p = Prompt::new(machine_with_swap(32, profile, ssd(), "128 MiB"), 1);
        let first = p.mmap(0, 512);
        p.call(0, Op::Touch(first)).unwrap();
        let rest = p.mmap(0, 32 * 512);
        p.call(0, Op::Touch(rest)).unwrap();
        p.call(0, Op::Munmap(rest)).unwrap();
        p.call(0, Op::Touch(part(first, 0, 400))).unwrap();
        settle(&mut p.m);
        let rss = p.m.rss(Process::new(0)).unwrap();
        assert!((400..512).contains(&rss), "{profile}: {rss} pages are back");
        let settings = [("thp.enabled", "always"), ("thp.khugepaged.scan_sleep_millisecs", "100")];
        for (name, value) in settings {
            p.m.memory_mut().sysctl_write(name, value).unwrap();
        }
        let written = p.m.memory_mut().sysctl_write("thp.khugepaged.max_ptes_swap", "511");
        assert_eq!(written.is_ok(), collapsed == 1, "{profile}: the setting came with it");
        p.call(0, Op::AdviseHuge(first)).unwrap();
        pass(&mut p.m, SECOND);
        assert_eq!(p.m.khugepaged().pages_collapsed, collapsed, "{profile}");
    }
}

#[test]
fn a_huge_page_is_split_before_it_goes_to_swap() {
    let mut p = Prompt::new(machine_with_swap(32, "6.1", ssd(), "256 MiB"), 1);
    let r = p.mmap(0, 32 * 512 * 6 / 5);
    p.call(0, Op::AdviseHuge(r)).unwrap();
    for _ in 0..2 {
        p.call(0, Op::Touch(r)).unwrap();
        p.m.memory_mut().lru_add_drain_all();
        p.m.memory().check().unwrap();
    }
    let splits = event(&p.m, VmEvent::ThpSplitPage);
    assert!(splits > 0 && p.m.file_counts().swapped_out >= splits, "{splits} splits");
    assert_eq!(p.m.oom_kills(), &[]);
    p.call(0, Op::Munmap(r)).unwrap();
    settle(&mut p.m);
}

#[test]
fn cold_memory_goes_to_swap_before_older_memory_in_use() {
    let in_memory = |makes_cold: bool| {
        let mut p = Prompt::new(machine_with_swap(64, "6.1", ssd(), "256 MiB"), 1);
        let [older, cold, more] = [8000, 8000, 17_000].map(|pages| p.mmap(0, pages));
        for r in [older, cold] {
            p.call(0, Op::Touch(r)).unwrap();
        }
        if makes_cold {
            p.call(0, Op::AdviseCold(cold)).unwrap();
        }
        p.call(0, Op::Touch(more)).unwrap();
        p.m.memory().check().unwrap();
        [older, cold].map(|r| p.call(0, Op::Mincore(r)).unwrap().value)
    };
    let pages = |value: &Value| match value {
        Value::Pages(pages) => *pages,
        other => panic!("{other:?}"),
    };
    let [advised, not] = [true, false].map(in_memory);
    assert!(pages(&advised[0]) > pages(&advised[1]) + 200, "{advised:?}: what is cold went first");
    assert!(pages(&not[0]) <= pages(&not[1]), "{not:?}: without advice what is older went first");
}

#[test]
fn where_swap_is_full_too_somebody_is_killed() {
    let mut p = Prompt::new(machine_with_swap(16, "6.1", ssd(), "32 MiB"), 1);
    let touch = |pages| vec![Op::Mmap { pages }, Op::Touch(Region { mapping: 0, first: 0, pages }), Op::Exit];
    let fits = fork(&mut p, ops(touch(8500)));
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: fits, killed: false, failed: false });
    let greedy = fork(&mut p, ops(touch(20_000)));
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: greedy, killed: true, failed: true });
    settle(&mut p.m);
}

proptest! {
    #![proptest_config(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn pages_are_where_they_should_be_and_shared_by_those_who_should_however_they_are_swapped(
        acts in proptest::collection::vec(act(1700, 900), 1..40),
        profile in prop_oneof![Just("5.10"), Just("6.1"), Just("7.2")],
        on_flash: bool,
    ) {
        // Less room than the process needs.
        let m = machine_with_swap(4, profile, if on_flash { ssd() } else { hdd() }, "64 MiB");
        let total = m.memory().swap_space().total;
        let mut p = Prompt::new(m, 1);
        let mut family = Family::new(&mut p, 1700);
        for act in acts {
            family.act(&mut p, &act);
            p.m.memory().check().unwrap();
            let mut of_place = BTreeMap::new();
            let mut of_contents = BTreeMap::new();
            for (at, has) in family.pages() {
                let place = p.m.location_of(at);
                if let Has::Contents(number) = has {
                    let place = place.expect("it is somewhere");
                    prop_assert_eq!(*of_contents.entry(number).or_insert(place), place, "{:?} is shared", at);
                    prop_assert_eq!(*of_place.entry(place).or_insert(number), number, "{:?} is in {:?}", at, place);
                } else {
                    prop_assert_eq!(place, None, "{:?} is nowhere", at);
                }
            }
        }
        for task in family.tasks() {
            p.call(task, Op::Munmap(family.region)).unwrap();
        }
        settle(&mut p.m);
        let vec = p.m.memory().lru().of_node(p.m.memory().nodes()[0].id);
        let left: u64 = LruList::EVICTABLE.iter().map(|list| vec.size_exact(*list) as u64).sum();
        prop_assert_eq!(p.m.memory().swap_space().free + left, total, "no place is lost");
    }
}
