//! Virtual time: latencies, sleep, sharing of CPUs, zone locks, and repeatability.

use crate::support::*;
use kontig_mm::Daemon;
use kontig_mm::sysctl::{SYSCTLS, Sysctl};
use kontig_mm::{Event, Listen, Memory, MigrateType, Order, Profile, VmEvent, Vmstat, Work};
use kontig_program::{Gfp, Op, Outcome, Placement, Value};
use kontig_sim::{CostModel, Costs, CpuTime, Machine, Stop, TaskId, Traced};

/// A process that maps and touches this many pages.
fn toucher(pages: u32) -> Box<Script> {
    script(move |log| match log {
        [] => Some(Op::Mmap { pages }),
        [map] => {
            let Value::Region(r) = map.value else { panic!("{map:?}") };
            Some(Op::Touch(r))
        }
        _ => None,
    })
}

/// From the start of a script's first operation to the end of its last.
fn elapsed(m: &Machine, id: TaskId) -> u64 {
    let log = log(m, id);
    log.last().unwrap().end_ns - log[0].start_ns
}

fn assert_in_order(log: &[Outcome]) {
    assert!(log.iter().all(|o| o.start_ns <= o.end_ns && o.latency_ns() == o.end_ns - o.start_ns));
    assert!(log.windows(2).all(|w| w[0].end_ns <= w[1].start_ns), "an operation begins when the last has ended");
}

#[test]
fn a_drivers_block_is_freed_at_once_or_page_by_page() {
    let order = kontig_program::Order::new(5);
    let freed = |ways: fn(kontig_program::Frame, kontig_program::Order) -> Vec<Op>| {
        let mut m = machine(1, 64, linux("6.1"));
        let (before, listed) = (free_pages(&m), |m: &Machine| m.memory().zones()[0].pcp_pages());
        let id = run(&mut m, 0, ops(vec![Op::AllocPages { gfp: Gfp::KERNEL, order }]));
        let Value::Block(Some(block)) = log(&m, id)[0].value else { panic!("there is enough") };
        let id = run(&mut m, 0, ops(ways(block, order)));
        assert_eq!(free_pages(&m), before);
        m.memory().check().expect("it is consistent");
        (elapsed(&m, id), listed(&m))
    };
    let whole = freed(|block, order| vec![Op::FreeBlock { block, order }]);
    let split = freed(|block, order| {
        vec![Op::SplitPages { block, order }, Op::FreePages { first: block, pages: 1 << order.get() }]
    });
    assert_eq!((whole.1, split.1), (0, 32), "pages go to the CPU's list, a block of this order does not");
    assert!(split.0 > 4 * whole.0, "{split:?} {whole:?}");
}

#[test]
fn operations_follow_one_another_and_clocks_never_run_backwards() {
    for profile in [linux("5.6"), linux("6.1"), weighted()] {
        let mut m = machine(2, 64, profile);
        let ids = [
            m.spawn(toucher(8000), Placement::Cpu(0)),
            m.spawn(allocator(Gfp::KERNEL, Order::new(4), 300, 7_000), Placement::Cpu(0)),
            m.spawn(toucher(2000), Placement::Cpu(1)),
        ];
        let mut last = 0;
        for slice in 0..4000u64 {
            let until = (slice * 6_151) + if slice % 3 == 0 { 0 } else { 100_000 };
            m.run(until, None).unwrap();
            assert!(m.now() >= last, "{} after {last}", m.now());
            last = m.now();
        }
        for id in ids {
            finish(&mut m, id);
            assert!(m.now() >= last, "{} after {last}", m.now());
            last = m.now();
        }
        for id in ids {
            assert_in_order(log(&m, id));
            let CpuTime { user_ns, system_ns } = m.cpu_time(id);
            assert!(user_ns + system_ns <= m.now());
        }
    }
}

#[test]
fn a_run_to_a_time_gone_by_changes_nothing() {
    let mut m = machine(2, 16, linux("6.1"));
    pass(&mut m, 5 * MS);
    assert_eq!(m.run(MS, None), Ok(Stop::Time));
    assert_eq!(m.now(), 5 * MS);
}

#[test]
fn a_sleeper_wakes_on_time_if_its_cpu_is_idle() {
    let mut m = machine(2, 16, linux("6.1"));
    pass(&mut m, 123);
    let id = run(&mut m, 0, ops(vec![Op::Sleep(MS), Op::Mmap { pages: 1 }, Op::Sleep(7), Op::Mmap { pages: 1 }]));
    let log = log(&m, id);
    assert_eq!((log[0].start_ns, log[0].end_ns), (123, 123 + MS));
    assert_eq!(log[1].start_ns, 123 + MS);
    assert_eq!(log[3].start_ns, log[1].end_ns + 7);
    assert_eq!(m.cpu_time(id).user_ns + m.cpu_time(id).system_ns, log[1].latency_ns() + log[3].latency_ns());
}

#[test]
fn a_sleeper_waits_while_its_cpu_is_busy() {
    let mut m = machine(2, 32, linux("6.1"));
    let busy = m.spawn(toucher(8000), Placement::Cpu(0));
    let sleeper = m.spawn(ops(vec![Op::Sleep(1000), Op::Mmap { pages: 1 }]), Placement::Cpu(0));
    finish(&mut m, busy);
    finish(&mut m, sleeper);
    let log = log(&m, sleeper);
    assert!(log[1].start_ns >= log[0].end_ns);
}

#[test]
fn programs_on_one_cpu_share_it_and_on_two_they_overlap() {
    const PAGES: u32 = 4000;
    let mut m = machine(4, 64, linux("6.1"));
    let id = run(&mut m, 0, toucher(PAGES));
    let alone = elapsed(&m, id);
    let together = |cpus: [usize; 2]| {
        let mut m = machine(4, 64, linux("6.1"));
        let ids = cpus.map(|cpu| m.spawn(toucher(PAGES), Placement::Cpu(cpu)));
        ids.iter().for_each(|id| finish(&mut m, *id));
        for id in ids {
            let time = m.cpu_time(id);
            assert!(time.user_ns + time.system_ns <= elapsed(&m, id));
        }
        ids.iter().map(|id| log(&m, *id).last().unwrap().end_ns).max().unwrap() as f64 / alone as f64
    };
    let (one, two) = (together([0, 0]), together([0, 1]));
    assert!((1.95..2.05).contains(&one), "on one CPU both take {one} times as long as one alone");
    assert!((0.99..1.3).contains(&two), "on two CPUs both take {two} times as long as one alone");
}

#[test]
fn a_task_is_charged_user_time_for_its_writes_and_system_time_for_the_rest() {
    let mut m = machine(2, 16, linux("6.1"));
    let id = run(&mut m, 0, toucher(1000));
    let time = m.cpu_time(id);
    assert_eq!(time.user_ns, 1000 * xeon().costs.touch.ns as u64);
    assert_eq!(time.user_ns + time.system_ns, elapsed(&m, id));
}

/// A machine with costs of its own, with huge pages always or never.
fn machine_of(costs: &Costs, enabled: &str) -> Machine {
    let mut memory = Memory::new(&spec(8, 64), linux("6.1")).expect("a valid machine");
    memory.sysctl_write("thp.enabled", enabled).expect("there is such a switch");
    Machine::new(memory, CostModel::new(costs))
}

/// A process that maps this many pages and fills them `times` times.
fn filler(pages: u32, times: usize) -> Box<Script> {
    script(move |log| match log {
        [] => Some(Op::Mmap { pages }),
        [map, ..] if log.len() <= times => {
            let Value::Region(r) = map.value else { panic!("{map:?}") };
            Some(Op::Fill(r))
        }
        _ => None,
    })
}

#[test]
fn a_page_that_is_filled_takes_what_its_bytes_take_and_one_that_is_touched_a_word() {
    let page = |costs: &Costs| 4096.0 / costs.write_one.gb_s;
    let mut costs = xeon().costs;
    for gb_s in [9.0, 3.0] {
        costs.write_one.gb_s = gb_s;
        let mut m = machine_of(&costs, "never");
        let id = run(&mut m, 0, filler(2000, 3));
        let user = m.cpu_time(id).user_ns as f64;
        assert!((user / (3.0 * 2000.0 * page(&costs)) - 1.0).abs() < 0.01, "{user} ns at {gb_s} GB/s");
        // The first time each is cleared, too.
        let least = 2000.0 * (page(&costs) + costs.fault.ns);
        let system = m.cpu_time(id).system_ns as f64;
        assert!(system >= least && system < 1.3 * least, "{system} ns at {gb_s} GB/s, of which the pages take {least}");
        let mut m = machine_of(&costs, "never");
        let id = run(&mut m, 0, toucher(2000));
        assert_eq!(m.cpu_time(id).user_ns, 2000 * costs.touch.ns as u64);
    }
}

#[test]
fn those_who_write_at_once_share_what_memory_takes_in() {
    let mut costs = xeon().costs;
    (costs.write_one.gb_s, costs.write_all.gb_s) = (2.0, 4.0);
    for (huge, pages) in [("never", 900), ("always", 1024)] {
        let time_of = |writers: usize| {
            let mut m = machine_of(&costs, huge);
            let ids: Vec<TaskId> = (0..writers).map(|cpu| m.spawn(filler(pages, 40), Placement::Cpu(cpu))).collect();
            ids.iter().for_each(|id| finish(&mut m, *id));
            ids.iter().map(|id| elapsed(&m, *id)).max().expect("there are writers") as f64
        };
        let alone = time_of(1);
        for (writers, expected) in [(2, 1.0), (4, 2.0), (8, 4.0)] {
            let times = time_of(writers) / alone;
            assert!((times / expected - 1.0).abs() < 0.05, "{huge}: {writers} take {times} times as long as one alone");
        }
    }
}

#[test]
fn two_cpus_that_hammer_a_zone_wait_for_its_lock() {
    // Order 4 is on no per-CPU list: every allocation takes the lock.
    let hammer = || allocator(Gfp::KERNEL, Order::new(4), 800, 0);
    let mut m = machine(4, 64, linux("6.1"));
    let id = run(&mut m, 0, hammer());
    let alone = elapsed(&m, id);
    assert_eq!(m.lock_wait_ns(), 0, "one CPU alone never waits");

    let mut m = machine(4, 64, linux("6.1"));
    let ids = [0, 1].map(|cpu| m.spawn(hammer(), Placement::Cpu(cpu)));
    ids.iter().for_each(|id| finish(&mut m, *id));
    let slowest = ids.iter().map(|id| elapsed(&m, *id)).max().unwrap();
    assert!(m.lock_wait_ns() > 0);
    assert!(slowest > alone, "{slowest} ns against {alone} alone");
    assert!(slowest < 2 * alone, "they still overlap");
    let waited: u64 = ids.iter().map(|id| elapsed(&m, *id)).sum::<u64>() - 2 * alone;
    assert!(waited <= m.lock_wait_ns() + alone / 10, "what they lost, {waited} ns, is the wait");
}

#[test]
fn moving_pages_interrupts_other_cpus_only() {
    // The same compaction, with the pages' process idle, compacting itself, or busy on another CPU.
    let compact = || Op::Sysctl { name: "vm.compact_memory".into(), value: "1".into() };
    let fragmented = |and_then: Vec<Op>| {
        let mut then = and_then.into_iter();
        script(move |log| match log {
            [] => Some(Op::Mmap { pages: 20 * 512 }),
            [map, rest @ ..] => {
                let Value::Region(r) = map.value else { panic!("{map:?}") };
                match rest.len() as u32 {
                    0 => Some(Op::Touch(r)),
                    n @ 1..=20 => Some(Op::Munmap(part(r, (n - 1) * 512, 384))),
                    _ => then.next(),
                }
            }
        })
    };
    let mut idle = machine(4, 32, linux("5.6"));
    run(&mut idle, 0, fragmented(vec![]));
    let id = run(&mut idle, 1, ops(vec![compact()]));
    let idle_ns = log(&idle, id)[0].latency_ns();

    let mut own = machine(4, 32, linux("5.6"));
    let id = run(&mut own, 1, fragmented(vec![compact()]));
    let own_ns = log(&own, id).last().unwrap().latency_ns();

    let mut busy = machine(4, 32, linux("5.6"));
    // Enough small operations to keep the process on its CPU.
    let owner = busy.spawn(fragmented(vec![Op::Mmap { pages: 0 }; 200_000]), Placement::Cpu(0));
    while log(&busy, owner).len() < 23 {
        pass(&mut busy, 1000);
    }
    let id = run(&mut busy, 1, ops(vec![compact()]));
    let busy_ns = log(&busy, id)[0].latency_ns();

    let moved = event(&own, VmEvent::PgmigrateSuccess);
    assert!(moved > 500, "{moved} pages moved");
    let shootdowns = moved * xeon().costs.tlb_shootdown.ns as u64;
    let near = |a: u64, b: u64| a.abs_diff(b) < shootdowns / 10;
    assert!(near(own_ns, idle_ns), "own pages: {own_ns} ns, nobody's: {idle_ns} ns");
    assert!(near(busy_ns, idle_ns + shootdowns), "busy: {busy_ns} ns, idle: {idle_ns} ns + {shootdowns}");
}

/// Everything observable of a run.
#[derive(PartialEq, Debug)]
struct Seen {
    events: Vec<Traced>,
    vmstat: Vmstat,
    work: Work,
    outcomes: Vec<Vec<Outcome>>,
    times: Vec<CpuTime>,
    daemons: (u64, u64, u64),
    free: Vec<(u64, u64, u64)>,
    now: u64,
    /// Settings that may have mattered.
    mattered: Vec<&'static str>,
}

/// A busy machine: a fragmenter, then two drivers after huge pages, a process and one full
/// compaction at the same time, with all daemons at work; observed every `slice` nanoseconds.
fn busy_run(profile: Profile, cpus: usize, slice: u64) -> Seen {
    busy_run_of(machine(cpus, 64, profile), EVERYTHING, slice)
}

const EVERYTHING: Option<Listen> =
    Some(Listen::KMEM.with(Listen::COMPACTION).with(Listen::COMPACTION_DETAIL).with(Listen::VMSCAN));

fn busy_run_of(mut m: Machine, listen: Option<Listen>, slice: u64) -> Seen {
    if let Some(groups) = listen {
        m.memory_mut().trace().listen(groups);
    }
    let finish = |m: &mut Machine, id: TaskId| while m.run(m.now() + slice, Some(id)) == Ok(Stop::Time) {};
    let first = m.spawn(fragmenter(384), Placement::Cpu(0));
    finish(&mut m, first);
    let huge = |pause| allocator(Gfp::KERNEL, HUGE, 12, pause);
    let compact = Op::Sysctl { name: "vm.compact_memory".into(), value: "1".into() };
    let mut ids = vec![
        m.spawn(huge(3_000), Placement::Cpu(0)),
        m.spawn(huge(11_000), Placement::Cpu(1)),
        m.spawn(toucher(1500), Placement::Cpu(1)),
        m.spawn(ops(vec![Op::Sleep(100_000), compact, Op::Sleep(2 * SECOND)]), Placement::Cpu(2)),
    ];
    for id in &ids {
        finish(&mut m, *id);
    }
    ids.push(first);
    // Up to a multiple of every slice.
    let end = (m.now() / SECOND + 3) * SECOND;
    while m.now() < end {
        m.run((m.now() + slice).min(end), None).unwrap();
    }
    m.memory().check().unwrap();
    Seen {
        events: m.take_events(u64::MAX),
        vmstat: m.memory().vmstat().clone(),
        work: *m.work(),
        outcomes: ids.iter().map(|id| log(&m, *id).to_vec()).collect(),
        times: ids.iter().map(|id| m.cpu_time(*id)).collect(),
        daemons: (m.daemon_ns(Daemon::Kcompactd), m.daemon_ns(Daemon::Kswapd), m.lock_wait_ns()),
        free: m.memory().zones().iter().map(|z| (z.nr_free_pages(), z.nr_free_pages_exact(), z.pcp_pages())).collect(),
        now: m.now(),
        mattered: SYSCTLS.iter().filter(|s| m.memory().sysctl_mattered(s)).map(|s| s.name).collect(),
    }
}

fn assert_same(a: &Seen, b: &Seen, what: &str) {
    for (a, b) in a.outcomes.iter().zip(&b.outcomes) {
        for (i, (x, y)) in a.iter().zip(b).enumerate() {
            assert_eq!(x, y, "{what}: operation {i}");
        }
    }
    let first = a.events.iter().zip(&b.events).position(|(x, y)| x != y);
    assert_eq!(first.map(|i| (i, a.events[i], b.events[i])), None, "{what}: first event that differs");
    assert!(a == b, "{what}: something else differs");
}

#[test]
fn the_same_run_twice_is_the_same_to_the_nanosecond() {
    for profile in [linux("5.6"), weighted(), linux("6.1")] {
        let what = profile.name.clone();
        let (a, b) = (busy_run(profile.clone(), 4, SECOND), busy_run(profile, 4, SECOND));
        assert!(a.vmstat.get(VmEvent::CompactStall) > 0, "there was something to do");
        assert_same(&a, &b, &what);
    }
}

#[test]
fn listening_to_events_changes_nothing() {
    for profile in [linux("5.6"), weighted(), linux("6.1"), linux("7.2")] {
        let heard = busy_run_of(machine(4, 64, profile.clone()), EVERYTHING, SECOND);
        let unheard = busy_run_of(machine(4, 64, profile.clone()), None, SECOND);
        assert!(heard.events.len() > 10_000 && unheard.events.is_empty());
        let mut heard = heard;
        heard.events.clear();
        assert_same(&heard, &unheard, &profile.name);
    }
}

#[test]
fn a_setting_that_is_said_to_make_no_difference_makes_none() {
    const SETTINGS: [(&str, &[&str]); 7] = [
        ("vm.compact_unevictable_allowed", &["0"]),
        ("vm.compaction_proactiveness", &["0", "1", "19", "21", "30", "95", "100"]),
        ("vm.defrag_mode", &["1"]),
        ("vm.extfrag_threshold", &["0", "499", "501", "900", "1000"]),
        ("vm.min_free_kbytes", &["0", "1", "128", "5000"]),
        ("vm.watermark_boost_factor", &["0", "1", "14999", "15001", "4294967295"]),
        ("vm.watermark_scale_factor", &["1", "9", "11", "300"]),
    ];
    let mut without_effect = Vec::new();
    for profile in [linux("5.6"), weighted(), linux("6.1"), linux("7.2")] {
        let as_booted = busy_run(profile.clone(), 4, SECOND);
        assert_eq!(as_booted.mattered, [""; 0]);
        for (name, value) in SETTINGS.iter().flat_map(|(name, values)| values.iter().map(move |v| (*name, *v))) {
            if !Sysctl::find(name).unwrap().exists(&profile) {
                continue;
            }
            let mut set = busy_run_of(machine_with(4, 64, profile.clone(), &[(name, value)]), EVERYTHING, SECOND);
            let what = format!("{}, {name}={value}", profile.name);
            if set.mattered.is_empty() {
                assert_same(&as_booted, &set, &what);
                without_effect.push((profile.name.clone(), name, value));
            } else {
                assert_eq!(std::mem::take(&mut set.mattered), [name], "{what}: only what was set");
                // Not guaranteed, but true here: a setting that may have mattered did.
                let same = set.events == as_booted.events && set.vmstat == as_booted.vmstat && set.now == as_booted.now;
                assert!(!same || name == "vm.compaction_proactiveness", "{what}");
            }
        }
    }
    let none = |name: &str, value: &str| without_effect.iter().filter(|(_, n, v)| (*n, *v) == (name, value)).count();
    assert_eq!(none("vm.compact_unevictable_allowed", "0"), 4, "{without_effect:?}");
    assert!(none("vm.extfrag_threshold", "501") > 0, "{without_effect:?}");
    assert!(none("vm.compaction_proactiveness", "21") > 0, "{without_effect:?}");
    assert_eq!(none("vm.defrag_mode", "1") + none("vm.min_free_kbytes", "5000"), 0, "{without_effect:?}");
}

#[test]
fn an_event_has_the_time_at_which_it_happens_and_an_end_comes_after_its_work() {
    let mut m = machine(2, 64, linux("6.1"));
    let first = m.spawn(fragmenter(384), Placement::Cpu(0));
    while m.run(m.now() + SECOND, Some(first)) == Ok(Stop::Time) {}
    m.memory_mut().trace().listen(Listen::COMPACTION.with(Listen::COMPACTION_DETAIL));
    let id = m.spawn(allocator(Gfp::KERNEL, HUGE, 12, 0), Placement::Cpu(0));
    // One observation at the end: those in between decide no time.
    assert_eq!(m.run(u64::MAX, Some(id)), Ok(Stop::ProgramDone));
    let events = m.take_events(u64::MAX);
    assert!(events.is_sorted_by_key(|traced| traced.at_ns));
    let migrated = xeon().costs.migrated.ns;
    let (mut begun, mut moved, mut runs, mut before) = (None, 0, 0, 0);
    for Traced { at_ns: at, event: e, .. } in &events {
        let since_last = at - std::mem::replace(&mut before, *at);
        match e {
            // The kernel threads are still asleep: only the program compacts.
            Event::CompactionBegin { .. } => (begun, moved) = (Some(*at), 0),
            Event::Migratepages { nr_migrated, .. } => {
                // Within a step, too: the pages are moved between the last event and this one.
                let least = (*nr_migrated as f64 * migrated) as u64;
                assert!(since_last >= least, "{nr_migrated} pages take {least} ns, and not {since_last}");
                moved += nr_migrated;
            }
            Event::CompactionEnd { .. } => {
                let begin = begun.take().expect("what ends has begun");
                assert!(*at > begin, "something was done");
                let least = (moved as f64 * migrated) as u64;
                assert!(at - begin >= least, "{moved} pages take {least} ns, and not {}", at - begin);
                // And all of it happened while the program waited for that allocation.
                let during = |o: &&Outcome| o.start_ns <= begin && *at <= o.end_ns;
                assert!(log(&m, id).iter().any(|o| during(&o)), "{begin} to {at} is in no operation of the program");
                runs += usize::from(moved > 0);
            }
            _ => {}
        }
    }
    assert!(runs >= 5, "{runs} runs that migrated");
    let stamps: std::collections::BTreeSet<u64> = events.iter().map(|traced| traced.at_ns).collect();
    assert!(stamps.len() * 4 > events.len(), "{} stamps for {} events", stamps.len(), events.len());
}

#[test]
fn pages_faulted_in_one_after_the_other_are_allocated_at_times_of_their_own() {
    for profile in [linux("5.6"), weighted(), linux("6.1"), linux("7.2")] {
        let mut m = machine(2, 64, profile);
        m.memory_mut().trace().listen(Listen::KMEM);
        let id = m.spawn(toucher(3000), Placement::Cpu(0));
        assert_eq!(m.run(u64::MAX, Some(id)), Ok(Stop::ProgramDone));
        let user_page = |e: &Event| matches!(e, Event::PageAlloc { migratetype: MigrateType::Movable, .. });
        let events = m.take_events(u64::MAX);
        let times: Vec<u64> = events.iter().filter(|t| user_page(&t.event)).map(|t| t.at_ns).collect();
        assert_eq!(times.len(), 3000);
        let fault = (xeon().costs.fault.ns + xeon().costs.touch.ns) as u64;
        let least = times.windows(2).map(|w| w[1] - w[0]).min().unwrap();
        assert!(least >= fault, "a fault takes {fault} ns, and two pages came within {least}");
    }
}

#[test]
fn events_taken_at_every_look_are_in_order_from_look_to_look() {
    let mut m = machine(4, 64, weighted());
    let first = m.spawn(fragmenter(384), Placement::Cpu(0));
    while m.run(m.now() + SECOND, Some(first)) == Ok(Stop::Time) {}
    m.memory_mut().trace().listen(Listen::COMPACTION.with(Listen::COMPACTION_DETAIL).with(Listen::VMSCAN));
    for cpu in 0..3 {
        m.spawn(allocator(Gfp::KERNEL, HUGE, 12, 3_000 * cpu as u64), Placement::Cpu(cpu));
    }
    let (mut all, end) = (Vec::new(), m.now() + 2 * SECOND);
    while m.now() < end {
        m.run(m.now() + 50_000, None).unwrap();
        all.extend(m.take_events(m.now()));
    }
    all.extend(m.take_events(u64::MAX));
    assert!(all.len() > 100, "{} events", all.len());
    assert!(all.is_sorted_by_key(|traced| traced.at_ns));
}

#[test]
fn how_often_the_host_looks_changes_nothing() {
    for profile in [linux("5.6"), weighted(), linux("6.1")] {
        for cpus in [2, 4] {
            let whole = busy_run(profile.clone(), cpus, SECOND);
            for slice in [MS, 100_000, 1_777] {
                let what = format!("{}, {cpus} CPUs, every {slice} ns", profile.name);
                assert_same(&whole, &busy_run(profile.clone(), cpus, slice), &what);
            }
        }
    }
}
