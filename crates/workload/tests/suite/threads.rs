//! usemem and thpscale on a small machine of two nodes, with a disk and swap: memory is as full as
//! on the large one.

use kontig_mm::{MachineSpec, Memory, VmEvent, ZoneSpec, ZoneType};
use kontig_profiles::linux;
use kontig_program::{FileName, Placement};
use kontig_sim::{CostModel, Machine, MachineFile, Stop};
use kontig_workload::thpscale::Thpscale;
use kontig_workload::usemem::Usemem;
use kontig_workload::{Benchmark, Measured, Start};

/// Pages of a node, all of which are managed: 96 MiB.
const NODE: u32 = 48 * 512;
const FILE: FileName = FileName::new(0, 1);

/// Two nodes with two CPUs each, and the disk of the large machine.
fn machine(profile: &str) -> Machine {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/");
    let read = |name: &str| std::fs::read_to_string(format!("{path}{name}.toml")).expect("it is there");
    let mut file: MachineFile = toml::from_str(&read("xeon-1t")).expect("a machine file");
    let large: toml::Table = read("haswell-2s-64g").parse().expect("a table");
    file.disk = large["disk"].clone().try_into().expect("its disks");
    file.swap = Some(large["swap"].clone().try_into().expect("its swap"));
    file.numa = Some(large["numa"].clone().try_into().expect("its nodes"));
    let zone = |node: u32| {
        let start = 512 + node * NODE;
        let (end, pages) = (start + NODE, u64::from(NODE));
        ZoneSpec { node: node as usize, kind: ZoneType::Normal, start, end, present: pages, managed: pages }
    };
    let spec = MachineSpec { cpus: 4, zones: vec![zone(0), zone(1)], thp: true, lru: true };
    let mut memory = Memory::new(&spec, linux(profile)).expect("a valid machine");
    memory.sysctl_write("thp.enabled", "always").expect("it has huge pages");
    let mut m = Machine::new(memory, CostModel::new(&file.costs));
    m.attach_nodes(&file).expect("two nodes");
    m.attach_disks(&file).expect("a disk");
    m
}

/// Runs a benchmark on the machine, with a file of this many pages.
fn measured<B: Benchmark>(m: &mut Machine, benchmark: &B, file: u32) -> Measured {
    assert!(m.lay_file(FILE, file));
    let program = benchmark.program(&Start { free_pages: 0, seed: 1, copies: 1, copy: 0 }).expect("it can be read");
    let id = m.spawn(Box::new(program), Placement::Any);
    assert_eq!(m.run(u64::MAX / 2, Some(id)), Ok(Stop::ProgramDone));
    m.memory().check().unwrap();
    let any: &dyn std::any::Any = m.program(id).expect("a program");
    benchmark.measured(&[any.downcast_ref().expect("its own program")])
}

#[test]
fn usemem_is_timed_with_each_number_of_threads_and_leaves_only_the_file() {
    let benchmark: Usemem = toml::from_str(
        "anonymous = '123 MiB'\nfile_size = '31 MiB'\nfile = 1\nthreads = [1, 4]\niterations = 2\nloops = 3",
    )
    .unwrap();
    for profile in ["4.4-kcompactd", "6.12"] {
        let mut m = machine(profile);
        let measured = measured(&mut m, &benchmark, 8000);
        for latencies in &measured.latencies {
            assert_eq!(latencies.histogram.len(), 2, "{profile}: {}", latencies.name);
        }
        let longest = |of: &str| measured.latencies.iter().find(|l| l.name == of).unwrap().longest_ns.unwrap();
        assert!(longest("Elapsd-4") < longest("Elapsd-1"), "{profile}: four CPUs are faster than one");
        let users: u64 = m.memory().zones().iter().map(|zone| zone.nr_lru()).sum();
        assert!(users <= 8000, "{profile}: {users} pages of the file");
    }
}

#[test]
fn thpscale_counts_every_huge_page_it_faults_in_as_huge_or_not() {
    let benchmark: Thpscale = toml::from_str("size = '152 MiB'\nfile = 1\nthreads = [1, 3]").unwrap();
    for profile in ["4.4-kcompactd", "6.12"] {
        let mut m = machine(profile);
        let before = m.memory().vmstat().get(VmEvent::ThpFaultAlloc);
        let measured = measured(&mut m, &benchmark, 152 * 256);
        let faults = |of: &str| {
            let of = measured.latencies.iter().find(|latencies| latencies.name == of);
            of.map_or(0, |latencies| latencies.histogram.len())
        };
        assert_eq!(faults("fault-base-1") + faults("fault-huge-1"), 38, "{profile}: half of 152 MiB");
        assert_eq!(faults("fault-base-3") + faults("fault-huge-3"), 3 * 12, "{profile}");
        assert!(m.memory().vmstat().get(VmEvent::ThpFaultAlloc) > before, "{profile}");
        let users: u64 = m.memory().zones().iter().map(|zone| zone.nr_lru()).sum();
        assert!(users <= 152 * 256, "{profile}: {users} pages of the file");
    }
}
