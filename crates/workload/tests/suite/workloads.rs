//! The workloads, run on small machines: each does to memory exactly what it says.

use kontig_mm::rules::ProactiveScore;
use kontig_mm::state::FrameKind;
use kontig_mm::{MachineSpec, Memory, Order, Pfn, Profile, VmEvent, ZoneSpec, ZoneType};
use kontig_profiles::linux;
use kontig_program::{Gfp, Placement, Program};
use kontig_sim::UserPage;
use kontig_sim::{CostModel, Machine, MachineFile, Stop, TaskId};
use kontig_workload::churn::Churn;
use kontig_workload::compact::Compact;
use kontig_workload::fragmenter::{Fragmenter, Holes};
use kontig_workload::heap::Heap;
use kontig_workload::hugealloc::HugeAlloc;
use kontig_workload::unmovable::UnmovableFragmenter;
use kontig_workload::watch::Watch;
use kontig_workload::{Benchmark, Measured, Start, Started, Task};
use std::collections::BTreeMap;

fn xeon() -> MachineFile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/xeon-1t.toml");
    toml::from_str(&std::fs::read_to_string(path).expect("the machine file is there")).expect("it is a machine file")
}

/// Two CPUs and two zones of `blocks` pageblocks each.
fn machine(blocks: u32, profile: Profile) -> Machine {
    let pages = u64::from(blocks) * 512;
    let zone = |kind, start: u32| ZoneSpec {
        node: 0,
        kind,
        start,
        end: start + blocks * 512,
        present: pages,
        managed: pages - 100,
    };
    let zones = vec![zone(ZoneType::Dma32, 512), zone(ZoneType::Normal, 512 + blocks * 512)];
    let memory =
        Memory::new(&MachineSpec { cpus: 2, zones, thp: false, lru: false }, profile).expect("a valid machine");
    Machine::new(memory, CostModel::new(&xeon().costs))
}

fn profiles() -> [Profile; 3] {
    let mut weighted = linux("5.6");
    weighted.proactive.score = ProactiveScore::Weighted;
    [linux("5.6"), weighted, linux("6.1")]
}

fn run(m: &mut Machine, program: Box<dyn Program>) -> TaskId {
    let id = m.spawn(program, Placement::Cpu(0));
    assert_eq!(m.run(u64::MAX / 2, Some(id)), Ok(Stop::ProgramDone));
    m.memory().check().unwrap();
    assert!((0.0..=1.0).contains(&m.program(id).unwrap().progress()));
    id
}

/// Runs a benchmark on the first CPU; what it measured.
fn measured<B: Benchmark>(m: &mut Machine, benchmark: B) -> (TaskId, Measured) {
    let start = Start { free_pages: m.memory().nr_free_pages(), seed: 1, copies: 1, copy: 0 };
    let id = run(m, Box::new(benchmark.program(&start).expect("it can be read")));
    let any: &dyn std::any::Any = m.program(id).expect("a program");
    (id, benchmark.measured(&[any.downcast_ref().expect("its own program")]))
}

/// A driver of huge pages.
fn driver(gfp: Gfp, pause_us: f64, give_up_after: u32) -> HugeAlloc {
    HugeAlloc { gfp: gfp.to_string(), pause_us, give_up_after }
}

fn reading(measured: &Measured, name: &str) -> Option<f64> {
    let of = measured.figures.iter().find(|r| r.figure.name == name);
    of.unwrap_or_else(|| panic!("no figure {name}")).value
}

fn figure(measured: &Measured, name: &str) -> f64 {
    reading(measured, name).unwrap_or_else(|| panic!("{name} has no value"))
}

fn event(m: &Machine, e: VmEvent) -> u64 {
    m.memory().vmstat().get(e)
}

fn score(m: &Machine) -> u64 {
    m.memory().fragmentation_score_node(m.memory().nodes()[0].id)
}

/// Pages of the first mapping that are mapped, counted by section of 512.
fn sections(m: &Machine) -> BTreeMap<u32, Vec<u32>> {
    let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let frames = m.memory().frames();
    for z in m.memory().zones() {
        for pfn in (z.start.get()..z.end.get()).map(Pfn::new) {
            if frames.tag(pfn).kind() == FrameKind::Lru {
                let UserPage { mapping, page, .. } = m.mapped_as(pfn).next().expect("a process has it");
                assert_eq!(mapping, 0);
                found.entry(page / 512).or_default().push(page % 512);
            }
        }
    }
    found.values_mut().for_each(|pages| pages.sort_unstable());
    found
}

#[test]
fn the_fragmenter_leaves_what_its_pattern_says_of_every_section() {
    for holes in [Holes::First, Holes::Last, Holes::Random, Holes::Spread] {
        for n in [0, 1, 128, 384, 511] {
            let mut m = machine(16, linux("5.6"));
            run(&mut m, Box::new(Fragmenter::new(holes, n, 42)));
            let sections = sections(&m);
            assert!(sections.len() >= 28, "{} of 31 sections", sections.len());
            assert!(sections.keys().copied().eq(0..sections.len() as u32), "whole sections, without a gap");
            for (section, pages) in sections {
                assert_eq!(pages.len() as u32, 512 - n, "{holes:?} {n}: section {section}");
                match holes {
                    Holes::First => assert!(pages.iter().copied().eq(n..512)),
                    Holes::Last => assert!(pages.iter().copied().eq(0..512 - n)),
                    Holes::Spread if n == 384 => assert!(pages.windows(2).all(|w| w[1] - w[0] == 4)),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn a_fragmenter_that_frees_everything_leaves_nothing() {
    for holes in [Holes::First, Holes::Last, Holes::Random, Holes::Spread] {
        let mut m = machine(8, linux("5.6"));
        run(&mut m, Box::new(Fragmenter::new(holes, 512, 1)));
        assert!(sections(&m).is_empty());
        let z = m.memory().zones();
        let free: u64 = z.iter().map(|z| z.nr_free_pages_exact() + z.pcp_pages()).sum();
        assert_eq!(free, z.iter().map(|z| z.managed).sum::<u64>(), "page tables are gone too");
    }
}

#[test]
fn random_holes_differ_by_seed_and_are_the_same_for_the_same_seed() {
    let of = |seed| {
        let mut m = machine(8, linux("5.6"));
        run(&mut m, Box::new(Fragmenter::new(Holes::Random, 384, seed)));
        sections(&m)
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn the_fragmenter_fills_memory_down_to_the_high_marks() {
    for profile in profiles() {
        let mut m = machine(32, profile);
        let above_high = |m: &Machine| -> u64 {
            let of = |z: &kontig_mm::Zone| z.nr_free_pages_exact().saturating_sub(z.wmark(kontig_mm::Wmark::High));
            m.memory().zones().iter().map(of).sum()
        };
        let before = above_high(&m);
        run(&mut m, Box::new(Fragmenter::new(Holes::First, 0, 0)));
        let reserve: u64 = m.memory().zones().iter().map(|z| z.lowmem_reserve[3]).sum();
        // Less than two sections of the 16,384 pages are left, for rounding; the per-CPU lists hold
        // some.
        let left = above_high(&m).saturating_sub(reserve);
        assert!(left < 2 * 513, "{left} of {before} pages left");
    }
}

#[test]
fn huge_alloc_counts_what_the_allocator_counts() {
    for profile in profiles() {
        let mut m = machine(32, profile);
        run(&mut m, Box::new(Fragmenter::new(Holes::First, 384, 0)));
        let free = m.memory().nr_free_pages();
        let allocated = |m: &Machine| event(m, VmEvent::PgallocDma32) + event(m, VmEvent::PgallocNormal);
        let before = (allocated(&m), event(&m, VmEvent::CompactSuccess));
        let (_, found) = measured(&mut m, driver(Gfp::KERNEL | Gfp::COMP | Gfp::NOWARN, 0.0, 1));
        let got = figure(&found, "2M hugepages allocated");
        assert!(got > 20.0, "{got}");
        // Blocks that compaction has captured for a request are not among those that lists gave.
        let captured = got as u64 * 512 - (allocated(&m) - before.0);
        assert!(captured <= 512 * (event(&m, VmEvent::CompactSuccess) - before.1), "{captured} pages captured");
        assert_eq!(found.latencies[0].histogram.len(), got as u64, "a latency for each");
        assert_eq!(figure(&found, "failed allocations"), 1.0);
        let share = figure(&found, "share of free memory allocated as hugepages");
        assert!((share - 100.0 * got * 512.0 / free as f64).abs() < 1e-9 && share > 50.0 && share <= 100.0, "{share}");
        let huge = (0..m.memory().pageblocks().len()).filter(|b| m.memory().pageblocks().is_huge(*b)).count();
        assert_eq!(huge as f64, got, "pageblocks that are huge pages");
    }
}

#[test]
fn huge_alloc_gives_up_after_so_many_failures_and_pauses_in_between() {
    let mut m = machine(8, linux("5.6"));
    let start = m.now();
    let (_, found) = measured(&mut m, driver(Gfp::KERNEL.without(Gfp::RECLAIM), 1000.0, 3));
    assert_eq!(figure(&found, "failed allocations"), 3.0);
    let pauses = figure(&found, "2M hugepages allocated") as u64 + 2;
    assert!((pauses * 1_000_000..(pauses + 1) * 1_000_000).contains(&(m.now() - start)), "{} ns", m.now() - start);
    let worst = found.latencies[0].longest_ns.unwrap();
    assert!(worst < 1_000_000, "the pause is not part of the latency: {worst} ns");
}

#[test]
fn a_driver_that_gave_up_says_by_which_rule_and_how_far_it_came() {
    let ending = |give_up_after| {
        let mut m = machine(8, linux("5.6"));
        let (_, found) = measured(&mut m, driver(Gfp::KERNEL.without(Gfp::RECLAIM), 0.0, give_up_after));
        (found.ending.clone().expect("it gave up"), figure(&found, "share of free memory allocated as hugepages"))
    };
    let (first, share) = ending(1);
    assert_eq!(
        (first.rule.as_str(), first.goal.as_str()),
        ("the first failed allocation", "the memory free at the start")
    );
    assert_eq!(first.reached, Some(share));
    assert_eq!(ending(3).0.rule, "3 failed allocations in a row");
}

#[test]
fn where_nothing_was_free_there_is_no_share_of_it() {
    let driver = driver(Gfp::KERNEL, 0.0, 1);
    let found = driver.measured(&[&driver.program(&Start { copies: 1, ..Start::default() }).expect("it can be read")]);
    assert_eq!(reading(&found, "share of free memory allocated as hugepages"), None);
    assert_eq!(figure(&found, "2M hugepages allocated"), 0.0, "none is a number");
}

#[test]
fn the_heap_touches_every_page_once() {
    // 5 MiB and a bit: two huge pages and 200 small ones; then on a machine without huge pages,
    // small ones only.
    for fragmented in [false, true] {
        let mut m = machine(32, linux("6.1"));
        if fragmented {
            run(&mut m, Box::new(UnmovableFragmenter::new(384, 0)));
        }
        let (id, found) = measured(&mut m, Heap { size: format!("{} KiB", 4 * (2 * 512 + 200)) });
        let huge = event(&m, VmEvent::ThpFaultAlloc);
        let small = event(&m, VmEvent::Pgfault) - huge;
        assert_eq!(huge * 512 + small, 2 * 512 + 200);
        assert_eq!(huge + event(&m, VmEvent::ThpFaultFallback), 2);
        if !fragmented {
            assert_eq!(huge, 2);
        }
        assert_eq!(m.cpu_time(id).user_ns, (2 * 512 + 200) * xeon().costs.touch.ns as u64, "each is written once");
        let mapped: u64 = m.memory().zones().iter().map(|z| z.nr_lru()).sum();
        assert_eq!(mapped, 2 * 512 + 200);
        assert_eq!(found.latencies[0].histogram.len(), 3, "a latency for every 2 MiB");
    }
}

#[test]
fn the_unmovable_fragmenter_leaves_nothing_that_compaction_could_move() {
    for profile in profiles() {
        let name = profile.name.clone();
        let mut m = machine(128, profile);
        run(&mut m, Box::new(UnmovableFragmenter::new(384, 0)));
        let lru: u64 = m.memory().zones().iter().map(|z| z.nr_lru()).sum();
        assert_eq!(lru, 0, "{name}");
        let before = score(&m);
        assert!(before >= 95, "{name}: {before}");
        let (_, found) = measured(&mut m, Compact {});
        assert!(figure(&found, "full compaction") > 0.0);
        assert_eq!(event(&m, VmEvent::PgmigrateSuccess), 0, "{name}");
        assert!(score(&m) + 1 >= before, "{name}: {before} before, {} after", score(&m));
    }
}

#[test]
fn the_unmovable_fragmenter_leaves_alone_what_it_is_told_to() {
    let mut m = machine(32, linux("5.6"));
    run(&mut m, Box::new(UnmovableFragmenter::new(0, 8 * 512)));
    let free: u64 = m.memory().zones().iter().map(|z| z.nr_free(Order::new(9)) + 2 * z.nr_free(Order::new(10))).sum();
    assert!((8..=12).contains(&free), "{free} pageblocks are free, the ones below the high marks among them");
}

#[test]
fn compact_memory_measures_one_full_compaction() {
    let mut m = machine(32, linux("6.1"));
    run(&mut m, Box::new(Fragmenter::new(Holes::Spread, 384, 0)));
    let before = score(&m);
    let start = m.now();
    let (_, found) = measured(&mut m, Compact {});
    let took = figure(&found, "full compaction");
    assert_eq!(took, (m.now() - start) as f64 / 1e9);
    assert!(event(&m, VmEvent::PgmigrateSuccess) > 1000);
    assert!(score(&m) < before / 2, "{before} before, {} after", score(&m));
}

#[test]
fn watching_takes_the_time_asked_for_and_does_nothing() {
    let mut m = machine(8, linux("5.6"));
    let id = measured(&mut m, Watch { seconds: 12.5 }).0;
    assert_eq!(m.now(), 12_500_000_000);
    assert_eq!(m.cpu_time(id).system_ns + m.cpu_time(id).user_ns, 0);
    assert_eq!(event(&m, VmEvent::PgallocNormal) + event(&m, VmEvent::Pgfault), 0);
}

#[test]
fn drivers_side_by_side_are_measured_together() {
    let mut m = machine(32, linux("6.1"));
    let free_pages = m.memory().nr_free_pages();
    let benchmark = driver(Gfp::KERNEL.without(Gfp::RECLAIM), 0.0, 1);
    let start = Start { free_pages, seed: 1, copies: 2, copy: 0 };
    let ids = [0, 1].map(|cpu| {
        let program = Benchmark::program(&benchmark, &start).expect("it can be read");
        m.spawn(Box::new(program), Placement::Cpu(cpu))
    });
    for id in ids {
        assert_eq!(m.run(u64::MAX / 2, Some(id)), Ok(Stop::ProgramDone));
    }
    let own = ids.map(|id| {
        let any: &dyn std::any::Any = m.program(id).expect("a program");
        any.downcast_ref().expect("its own program")
    });
    let (both, each) = (benchmark.measured(&own), own.map(|one| benchmark.measured(&[one])));
    let sum = |name: &str| each.iter().map(|one| figure(one, name)).sum::<f64>();
    assert_eq!(figure(&both, "2M hugepages allocated"), sum("2M hugepages allocated"));
    assert_eq!(figure(&both, "failed allocations"), 2.0);
    assert!(each.iter().all(|one| figure(one, "2M hugepages allocated") > 5.0), "both had their part");
    let huge = (0..m.memory().pageblocks().len()).filter(|b| m.memory().pageblocks().is_huge(*b)).count();
    assert_eq!(figure(&both, "2M hugepages allocated"), huge as f64);
    assert_eq!(both.latencies[0].histogram.len(), huge as u64);
    let share = figure(&both, "share of free memory allocated as hugepages");
    assert_eq!(share, 100.0 * (huge * 512) as f64 / free_pages as f64);
}

#[test]
fn churn_keeps_its_memory_and_replaces_it_page_by_page() {
    let mut m = machine(32, linux("6.1"));
    let churn = Task::new(Churn { size: "8 MiB".into(), stretch: 64, pause_us: 50.0 });
    let program = churn.start(&Start { seed: 5, ..Start::default() }).expect("it can be read");
    let id = m.spawn(Box::new(program), Placement::Cpu(0));
    assert_eq!(m.run(20_000_000, Some(id)), Ok(Stop::Time));
    Started::of_mut(m.program_mut(id).expect("a program")).expect("a task's").stop();
    assert_eq!(m.run(u64::MAX / 2, Some(id)), Ok(Stop::ProgramDone), "it ends with the stretch it is at");
    m.memory().check().unwrap();
    let faults = event(&m, VmEvent::Pgfault);
    assert!(faults > 2048 + 100 * 64 && (faults - 2048).is_multiple_of(64), "{faults} faults");
    let mapped: u64 = m.memory().zones().iter().map(|z| z.nr_lru()).sum();
    assert_eq!(mapped, 2048);
}
