//! Nodes: placement of a process's memory, costs of remote memory, and the effects of a full node.

use crate::support;
use crate::support::*;
use kontig_mm::state::NumaCounts;
use kontig_mm::{HugeDefrag, MachineSpec, Memory, VmEvent, ZoneSpec, ZoneType};
use kontig_program::{MemPolicy, Nodes, Op, Placement, Region};
use kontig_sim::machine_file::{SlabEntry, SwapEntry};
use kontig_sim::{Allocator, CostModel, Machine, MachineFile, NumaEntry, PageLocation, UserPage};

const BLOCKS: u32 = 32;
const NODE: u32 = BLOCKS * 512;

/// Nodes of 64 MiB with two CPUs each, a disk, and swap on it unless its size is empty.
fn nodes(nodes: usize, profile: &str, swap: &str, numa: Option<NumaEntry>) -> Machine {
    let zone = |node| {
        let start = (1 + node as u32 * BLOCKS) * 512;
        let pages = u64::from(NODE);
        ZoneSpec { node, kind: ZoneType::Normal, start, end: start + NODE, present: pages, managed: pages - 256 }
    };
    let spec = MachineSpec { cpus: 2 * nodes, zones: (0..nodes).map(zone).collect(), thp: false, lru: true };
    let memory = Memory::new(&spec, linux(profile)).expect("a valid machine");
    let mut m = Machine::new(memory, CostModel::new(&xeon().costs));
    let swap = (!swap.is_empty()).then(|| SwapEntry { disk: "sda".into(), size: swap.into() });
    let file = MachineFile { disk: vec![support::disk::ssd()], swap, numa, ..xeon() };
    m.attach_nodes(&file).expect("distances that can be");
    m.attach_disks(&file).expect("a disk that can be");
    m
}

/// Two nodes, with extra costs for remote memory.
fn far(distance: u8) -> NumaEntry {
    let mut costs = xeon().costs;
    (costs.touch.ns, costs.fault.ns) = (40.0, 250.0);
    let distances = vec![vec![10, distance], vec![distance, 10]];
    NumaEntry { distances, source: "a test".into(), touch: costs.touch, page: costs.fault }
}

fn numa(m: &Machine, node: usize) -> NumaCounts {
    m.memory().zones()[node].numa()
}

/// Number of a process's pages on each node.
fn spread(m: &Machine, process: u32, r: Region) -> Vec<u32> {
    let mut of_node = vec![0; m.memory().nodes().len()];
    for page in r.first..r.first + r.pages {
        if let Some(PageLocation::Memory(pfn)) = m.location_of(UserPage { process, mapping: r.mapping, page }) {
            of_node[m.memory().zone(m.memory().pageblocks().zone_of(pfn)).node.index()] += 1;
        }
    }
    of_node
}

#[test]
fn memory_is_where_the_process_or_the_mapping_wants_it() {
    let mut p = Prompt::new(nodes(3, "6.1", "", None), 3);
    let touched = |p: &mut Prompt, who: usize| {
        let r = p.mmap(who, 600);
        p.call(who, Op::Touch(r)).unwrap();
        (r, spread(&p.m, who as u32, r))
    };
    // Each process is on a CPU of its own: the first two on node 0, the third on node 1.
    assert_eq!(touched(&mut p, 2).1, [0, 600, 0]);
    p.call(2, Op::SetMempolicy(MemPolicy::Bind(Nodes::new([2])))).unwrap();
    assert_eq!(touched(&mut p, 2).1, [0, 0, 600]);
    p.call(2, Op::SetMempolicy(MemPolicy::Interleave(Nodes::new([0, 2])))).unwrap();
    assert_eq!(touched(&mut p, 2).1, [300, 0, 300]);
    // A mapping's own policy comes first, then the process's.
    let r = p.mmap(2, 600);
    let bound = |first, pages, policy| Op::Mbind { region: part(r, first, pages), policy };
    p.call(2, bound(0, 400, MemPolicy::Preferred(1))).unwrap();
    p.call(2, bound(300, 100, MemPolicy::Local)).unwrap();
    p.call(2, bound(0, 100, MemPolicy::Default)).unwrap();
    p.call(2, Op::Touch(r)).unwrap();
    assert_eq!(spread(&p.m, 2, part(r, 0, 100)), [50, 0, 50]);
    assert_eq!(spread(&p.m, 2, part(r, 100, 300)), [0, 300, 0]);
    assert_eq!(spread(&p.m, 2, part(r, 400, 200)), [100, 0, 100]);
    // Children inherit it, and the kernel's own pages follow it.
    p.call(2, Op::SetMempolicy(MemPolicy::Preferred(2))).unwrap();
    let free = p.m.memory().zones()[2].nr_free_pages_exact();
    let (child, number) = p.fork(2);
    let fresh = p.mmap(child, 512);
    p.call(child, Op::Touch(fresh)).unwrap();
    assert_eq!(spread(&p.m, number.get(), fresh), [0, 0, 512]);
    assert!(free - p.m.memory().zones()[2].nr_free_pages_exact() > 512, "page tables, too");
    p.m.memory_mut().lru_add_drain_all();
    p.m.memory().check().unwrap();
}

#[test]
fn a_policy_names_a_node_that_has_memory() {
    let mut p = Prompt::new(nodes(2, "6.1", "", None), 1);
    let said = p.call(0, Op::SetMempolicy(MemPolicy::Bind(Nodes::new([2, 5])))).expect_err("it has no such node");
    assert!(said.to_string().starts_with("the workload binds memory to nodes that have none"));
}

#[test]
fn a_huge_page_of_the_own_node_comes_before_one_of_another() {
    for profile in ["4.6", "6.1"] {
        let mut p = Prompt::new(nodes(2, profile, "", None), 1);
        p.m.memory_mut().sysctl_write("thp.enabled", "always").unwrap();
        p.m.memory_mut().sysctl_write("thp.defrag", "always").unwrap();
        for (policy, expected) in [
            (MemPolicy::Bind(Nodes::new([1])), [0, 512]),
            (MemPolicy::Interleave(Nodes::new([0, 1])), [1024, 512]),
            (MemPolicy::Local, [512, 0]),
        ] {
            p.call(0, Op::SetMempolicy(policy)).unwrap();
            let pages = expected.iter().sum();
            let r = p.mmap(0, pages);
            p.call(0, Op::Touch(r)).unwrap();
            assert_eq!(spread(&p.m, 0, r), expected, "{profile} {policy:?}");
        }
        assert_eq!(event(&p.m, VmEvent::ThpFaultAlloc), 5, "{profile}");
    }
}

#[test]
fn memory_of_another_node_takes_as_much_longer_as_the_machine_file_says() {
    let took = |numa: Option<NumaEntry>, policy: MemPolicy, huge: bool| {
        let mut p = Prompt::new(nodes(2, "6.1", "", numa), 1);
        p.m.memory_mut().sysctl_write("thp.enabled", if huge { "always" } else { "never" }).unwrap();
        p.call(0, Op::SetMempolicy(policy)).unwrap();
        let r = p.mmap(0, 1024);
        let first = p.call(0, Op::Touch(r)).unwrap().latency_ns();
        (first, p.call(0, Op::Touch(r)).unwrap().latency_ns())
    };
    let (own, other) = (MemPolicy::Preferred(0), MemPolicy::Preferred(1));
    for huge in [false, true] {
        let local = took(None, own, huge);
        assert_eq!(took(Some(far(20)), own, huge), local, "the own node costs what it cost");
        assert_eq!(took(None, other, huge), local, "a machine file that says nothing has no costs");
        let [near, twice] = [20, 30].map(|distance| took(Some(far(distance)), other, huge));
        // 250 ns for each page cleared, and 40 for each one touched, also later.
        let again = 1024 * 40;
        assert_eq!((near.0 - local.0, near.1 - local.1), (1024 * 290, again));
        assert_eq!((twice.0 - local.0, twice.1 - local.1), (2 * 1024 * 290, 2 * again));
    }
}

#[test]
fn a_process_bound_to_another_node_is_not_killed_for_a_full_one() {
    let mut p = Prompt::new(nodes(2, "6.1", "", None), 2);
    for (who, node, pages) in [(0, 0, NODE * 3 / 4), (1, 1, NODE / 2)] {
        p.call(who, Op::SetMempolicy(MemPolicy::Bind(Nodes::new([node])))).unwrap();
        let r = p.mmap(who, pages);
        p.call(who, Op::Touch(r)).unwrap();
    }
    // The first takes more, all of it on node 0. The second fills node 1.
    let (child, number) = p.fork(1);
    let r = p.mmap(child, NODE * 3 / 4);
    p.last_call(child, Op::Touch(r));
    pass(&mut p.m, SECOND);
    let killed: Vec<u32> = p.m.oom_kills().iter().map(|kill| kill.process.get()).collect();
    assert_eq!(killed, [number.get()]);
    assert!(numa(&p.m, 0).hit() > 0 && numa(&p.m, 0).miss == 0, "nothing of it came from node 0");
}

/// The machine after a process on node 0 has written to 1.3 times its node, with this many tasks.
#[derive(Debug)]
struct Filled {
    /// Direct reclaims, and pages swapped out.
    stalls: u64,
    swapped: u64,
    /// Huge pages, and free pages on node 1.
    huge: u64,
    free: u64,
}

fn fill(profile: &str, cpus: &[usize]) -> Filled {
    let mut m = nodes(2, profile, "256 MiB", None);
    m.memory_mut().sysctl_write("thp.enabled", "always").unwrap();
    // As on a machine large enough for huge pages by default.
    let defrag = HugeDefrag::default_of(m.memory().profile()).name();
    m.memory_mut().sysctl_write("thp.defrag", defrag).unwrap();
    let pages = NODE * 13 / 10 / cpus.len() as u32 / 512 * 512;
    let write = || {
        script(move |log| match log {
            [] => Some(Op::Mmap { pages }),
            [map] => match map.value {
                kontig_program::Value::Region(r) => Some(Op::Touch(r)),
                _ => None,
            },
            _ => None,
        })
    };
    let tasks: Vec<_> = cpus.iter().map(|cpu| m.spawn(write(), Placement::Cpu(*cpu))).collect();
    tasks.iter().for_each(|id| finish(&mut m, *id));
    let stalls = m.memory().vmstat().iter().filter(|(e, _)| e.name().starts_with("allocstall_"));
    let filled = Filled {
        stalls: stalls.map(|(_, n)| n).sum(),
        swapped: m.file_counts().swapped_out,
        huge: event(&m, VmEvent::ThpFaultAlloc),
        free: m.memory().zones()[1].nr_free_pages_exact(),
    };
    m.memory_mut().lru_add_drain_all();
    m.memory().check().unwrap();
    filled
}

#[test]
fn a_huge_pages_fault_reclaims_its_full_node_while_the_other_is_empty_until_seed_003() {
    let (before, after) = (fill("4.4-kcompactd", &[0]), fill("4.6", &[0]));
    assert!(before.stalls > 0 && before.swapped > u64::from(NODE / 4), "{before:?}");
    assert!(before.free > u64::from(NODE * 3 / 4), "{before:?}");
    // Since then, faults wait for huge pages only where they were asked for; the rest comes from
    // the other node.
    assert_eq!((after.stalls, after.swapped), (0, 0), "{after:?}");
    assert!(after.free < u64::from(NODE * 3 / 4), "{after:?}");
    // Tasks on all CPUs fill both nodes alike, and neither is full.
    for profile in ["4.4-kcompactd", "4.6"] {
        let spread = fill(profile, &[0, 1, 2, 3]);
        assert_eq!((spread.stalls, spread.swapped), (0, 0), "{profile} {spread:?}");
        assert!(spread.huge > after.huge, "{profile} {spread:?}");
    }
}

#[test]
fn a_write_goes_on_where_slabs_are_of_another_node_than_its_own() {
    let zone = |node| {
        let start = (1 + node as u32 * BLOCKS) * 512;
        let pages = u64::from(NODE);
        ZoneSpec { node, kind: ZoneType::Normal, start, end: start + NODE, present: pages, managed: pages - 256 }
    };
    let spec = MachineSpec { cpus: 4, zones: vec![zone(0), zone(1)], thp: false, lru: true };
    let memory = Memory::new(&spec, linux("4.4-kcompactd")).expect("a valid machine");
    let mut m = Machine::new(memory, CostModel::new(&xeon().costs));
    let slab = Some(SlabEntry { allocator: Allocator::Slab, source: "a test".into() });
    m.attach_disks(&MachineFile { disk: vec![support::disk::ssd()], swap: None, slab, ..xeon() }).expect("a disk");
    // One node is full after four fifths of the file; SLAB takes no page of it by reclaim.
    let pages = NODE + NODE / 4;
    run(&mut m, 0, support::disk::writer(support::disk::FILE, pages));
    assert!(m.is_cached(support::disk::FILE, pages - 1));
    assert_eq!(m.memory().vmstat().get(VmEvent::PgscanKswapd), 0, "the other node has room");
    m.memory().check().expect("consistent");
}

#[test]
fn by_zone_reclaim_mode_a_reader_keeps_to_its_node_and_evicts_what_it_has_read() {
    use support::disk::{FILE, reader};
    let pages = NODE * 3 / 2;
    let read = |mode: &str| {
        let mut m = nodes(2, "6.12", "", None);
        m.memory_mut().sysctl_write("vm.zone_reclaim_mode", mode).expect("6.12 has it");
        assert!(m.lay_file(FILE, pages));
        run(&mut m, 0, reader(pages, 1));
        m.check().expect("consistent");
        let cached = (0..pages).filter(|page| m.is_cached(FILE, *page)).count() as u32;
        (cached, numa(&m, 0).foreign, event(&m, VmEvent::ZoneReclaimSuccess))
    };
    let (cached, foreign, reclaims) = read("0");
    assert!(cached > NODE * 7 / 5 && foreign > u64::from(NODE / 3) && reclaims == 0, "{cached} {foreign} {reclaims}");
    let (cached, foreign, reclaims) = read("1");
    assert!(cached < NODE && foreign < u64::from(NODE / 64) && reclaims > 100, "{cached} {foreign} {reclaims}");
}
