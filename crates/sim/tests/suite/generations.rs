//! The multi-generational LRU under files, mappings, shared memory and swap: 6.12 and 7.2 with
//! `lru_gen.enabled` 1 or, with walks of page tables, 7.

use crate::support::disk::*;
use crate::support::family::{Family, Has, act};
use crate::support::*;
use kontig_mm::{LruList, MachineSpec, Memory, NodeStat, VmEvent};
use kontig_program::{Op, OpenFile, Region, Value};
use kontig_sim::machine_file::SwapEntry;
use kontig_sim::{CostModel, DiskEntry, Machine, MachineFile};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// The kernels whose generations are modelled.
const KERNELS: [&str; 2] = ["6.12", "7.2"];

/// A machine of this many pageblocks with files and swap on a disk, and this value of
/// `lru_gen.enabled`.
fn machine(kernel: &str, blocks: u32, disk: DiskEntry, swap: &str, enabled: u32) -> Machine {
    let mut memory = Memory::new(&MachineSpec { lru: true, ..spec(2, blocks) }, linux(kernel)).expect("a machine");
    memory.sysctl_write("lru_gen.enabled", &enabled.to_string()).expect("the kernel has it");
    let mut m = Machine::new(memory, CostModel::new(&xeon().costs));
    let swap = Some(SwapEntry { disk: disk.name.clone(), size: swap.into() });
    m.attach_disks(&MachineFile { disk: vec![disk], swap, ..xeon() }).expect("a disk that can be");
    m
}

fn open(p: &mut Prompt, pages: u32) -> OpenFile {
    assert!(p.m.lay_file(FILE, pages));
    match p.call(0, Op::Open { name: FILE, create: false }).expect("opened").value {
        Value::File(file) => file,
        other => panic!("{other:?}"),
    }
}

fn map(p: &mut Prompt, file: OpenFile, pages: u32) -> Region {
    match p.call(0, Op::MmapFile { file, first: 0, pages }).expect("mapped").value {
        Value::Region(region) => region,
        other => panic!("{other:?}"),
    }
}

fn settle(m: &mut Machine) {
    pass(m, SECOND);
    m.memory_mut().lru_add_drain_all();
    m.check().expect("consistent");
}

#[test]
fn a_process_with_more_than_there_is_of_memory_goes_through_it_twice() {
    let ways = [(ssd(), false, 1), (hdd(), false, 7), (ssd(), true, 1), (ssd(), true, 7), (ssd(), false, 3)];
    let of_all = KERNELS.iter().flat_map(|kernel| ways.iter().cloned().map(|way| (*kernel, way)));
    for (kernel, (disk, huge, enabled)) in of_all {
        let mut p = Prompt::new(machine(kernel, 32, disk, "256 MiB", enabled), 1);
        let pages = 32 * 512 * 6 / 5;
        let r = p.mmap(0, pages);
        if huge {
            p.call(0, Op::AdviseHuge(r)).expect("advised");
        }
        for _ in 0..2 {
            p.call(0, Op::Touch(r)).expect("touched");
            p.m.memory_mut().lru_add_drain_all();
            p.m.check().expect("consistent");
        }
        let counts = p.m.file_counts();
        assert!(counts.swapped_in > 0 && counts.swapped_out > counts.swapped_in, "{counts:?}");
        assert_eq!(event(&p.m, VmEvent::ThpSplitPage) > 0, huge);
        assert!(p.m.memory().lru().of_node(p.m.memory().nodes()[0].id).gens().max_seq > 4, "generations were begun");
        assert_eq!(p.m.oom_kills(), &[]);
        p.call(0, Op::Munmap(r)).expect("unmapped");
        settle(&mut p.m);
    }
}

#[test]
fn a_mapped_file_larger_than_memory_is_unmapped_as_it_is_reclaimed() {
    for (kernel, enabled) in [("6.12", 1), ("6.12", 7), ("7.2", 1), ("7.2", 7)] {
        maps_twice_its_memory(kernel, enabled);
    }
}

fn maps_twice_its_memory(kernel: &str, enabled: u32) {
    let mut p = Prompt::new(machine(kernel, 32, ssd(), "64 MiB", enabled), 1);
    let pages = 2 * 32 * 512;
    let file = open(&mut p, pages);
    let region = map(&mut p, file, pages);
    for _ in 0..2 {
        p.call(0, Op::Load(region)).expect("read");
    }
    let counts = p.m.file_counts();
    assert!(counts.read_in > u64::from(pages) * 3 / 2 && counts.file_pages < 32 * 512, "{counts:?}");
    assert!(event(&p.m, VmEvent::PgstealFile) > u64::from(pages));
    p.m.check().expect("consistent");
}

/// Reads a file in chunks beside memory that is used again and again; how much of that memory came
/// back from swap, and how much of the file was read a second time.
fn hot_memory_beside_a_stream(kernel: &str, enabled: u32) -> (u64, u64) {
    let mut p = Prompt::new(machine(kernel, 32, ssd(), "256 MiB", enabled), 1);
    let pages = 4 * 32 * 512;
    let file = open(&mut p, pages);
    let hot = p.mmap(0, 6000);
    let cold = p.mmap(0, 4000);
    p.call(0, Op::Touch(cold)).expect("touched");
    for first in (0..pages).step_by(4096) {
        p.call(0, Op::Touch(hot)).expect("touched");
        for first in (first..first + 4096).step_by(CHUNK as usize) {
            p.call(0, Op::Read { file, first, pages: CHUNK }).expect("read");
        }
    }
    p.m.check().expect("consistent");
    (p.m.file_counts().swapped_in, p.m.file_counts().read_in)
}

#[test]
fn memory_in_use_stays_while_a_file_is_streamed_past_it() {
    for (kernel, enabled) in [("6.12", 0), ("6.12", 1), ("6.12", 7), ("7.2", 1), ("7.2", 7)] {
        let (swapped_in, read_in) = hot_memory_beside_a_stream(kernel, enabled);
        assert!(swapped_in < 600, "{swapped_in} pages of 6000 came back with {enabled} on {kernel}");
        assert!(read_in < 4 * 32 * 512 * 101 / 100, "each page once");
    }
}

/// Pages that reclaim looks at while 16,000 are swapped out beside 3000 in use, every `stride`th of
/// a mapping.
fn looked_at(stride: u32) -> u64 {
    let mut p = Prompt::new(machine("6.12", 32, ssd(), "256 MiB", 1), 1);
    let hot = p.mmap(0, 3000 * stride);
    let more = p.mmap(0, 60_000);
    for first in (0..).step_by(500) {
        for page in 0..3000 {
            p.call(0, Op::Touch(part(hot, page * stride, 1))).expect("touched");
        }
        p.call(0, Op::Touch(part(more, first, 500))).expect("touched");
        if event(&p.m, VmEvent::PgstealAnon) > 16_000 {
            break;
        }
    }
    p.m.check().expect("consistent");
    event(&p.m, VmEvent::PgscanAnon)
}

#[test]
fn a_page_found_used_makes_its_neighbours_young_with_it() {
    let [beside, apart] = [1, 64].map(looked_at);
    assert!(beside < apart, "{beside} where they lie together, {apart} where none is near another");
}

#[test]
fn refaults_are_counted_by_tier() {
    KERNELS.into_iter().for_each(counts_refaults_by_tier);
}

fn counts_refaults_by_tier(kernel: &str) {
    let mut p = Prompt::new(machine(kernel, 16, ssd(), "64 MiB", 1), 1);
    let pages = 16 * 512 * 3 / 2;
    let file = open(&mut p, pages);
    for _ in 0..4 {
        for first in (0..pages).step_by(CHUNK as usize) {
            p.call(0, Op::Read { file, first, pages: CHUNK }).expect("read");
        }
    }
    let came_back = stat(&p.m, NodeStat::WorkingsetRefaultFile);
    assert!(came_back > u64::from(pages));
    let gens = p.m.memory().lru().of_node(p.m.memory().nodes()[0].id).gens();
    let refaulted: u64 = gens.tiers[1].iter().map(|tier| tier.refaulted).sum();
    assert!(0 < refaulted && refaulted <= came_back, "{:?}", gens.tiers);
    assert!(gens.tiers[0].iter().all(|tier| tier.evicted == 0), "no anonymous page was evicted");
    p.m.check().expect("consistent");
}

#[test]
fn the_switch_is_thrown_while_pages_are_in_swap_and_on_their_way() {
    KERNELS.into_iter().for_each(throws_the_switch);
}

fn throws_the_switch(kernel: &str) {
    let mut p = Prompt::new(machine(kernel, 16, ssd(), "128 MiB", 0), 1);
    let r = p.mmap(0, 16 * 512 * 5 / 4);
    for i in 0..6 {
        p.call(0, Op::Touch(r)).expect("touched");
        p.call(0, Op::Load(part(r, 0, 4000))).expect("read");
        p.m.check().expect("consistent before");
        let value = ["1", "0", "7", "2", "3", "0"][i];
        p.call(0, Op::Sysctl { name: "lru_gen.enabled".into(), value: value.into() }).expect("the kernel has it");
        assert_eq!(p.m.memory().lru().has_generations(), ["1", "3", "7"].contains(&value));
        p.m.check().expect("consistent after");
    }
    p.call(0, Op::Munmap(r)).expect("unmapped");
    settle(&mut p.m);
}

proptest! {
    #![proptest_config(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn pages_are_where_they_should_be_however_generations_have_them_swapped(
        acts in proptest::collection::vec(act(1700, 900), 1..40),
        switched_at in proptest::option::of(0..40usize),
        parts in prop_oneof![Just(1u32), Just(3), Just(7)],
        kernel in prop_oneof![Just("6.12"), Just("7.2")],
        on_flash: bool,
    ) {
        // Less room than the processes need.
        let enabled = if switched_at.is_none() { parts } else { 0 };
        let m = machine(kernel, 4, if on_flash { ssd() } else { hdd() }, "64 MiB", enabled);
        let total = m.memory().swap_space().total;
        let mut p = Prompt::new(m, 1);
        let mut family = Family::new(&mut p, 1700);
        for (i, act) in acts.iter().enumerate() {
            if switched_at == Some(i) {
                p.call(0, Op::Sysctl { name: "lru_gen.enabled".into(), value: parts.to_string() }).expect("known");
            }
            family.act(&mut p, act);
            p.m.check().unwrap();
            for (at, has) in family.pages() {
                let place = p.m.location_of(at);
                prop_assert_eq!(place.is_some(), matches!(has, Has::Contents(_)), "{:?}", at);
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
