//! Sharing of CPUs by programs that compute, sleep and touch memory, bound to CPUs or not.

use crate::support::*;
use kontig_mm::{CpuId, Daemon};
use kontig_program::{Op, Outcome, Placement, Value};
use kontig_sim::{CpuTime, CpuUse, Machine, TaskId};

/// A program that computes for this long, again and again.
fn busy(ns: u64) -> Box<Script> {
    script(move |_| Some(Op::Compute(ns)))
}

fn total(m: &Machine, id: TaskId) -> u64 {
    m.cpu_time(id).total_ns()
}

#[test]
fn computing_takes_a_cpus_time_and_nothing_of_the_kernel() {
    let mut m = machine(2, 16, linux("6.1"));
    let id = run(&mut m, 1, ops(vec![Op::Compute(5 * MS), Op::Compute(0), Op::Sleep(MS), Op::Compute(7)]));
    let ends: Vec<u64> = log(&m, id).iter().map(|o| o.end_ns).collect();
    assert_eq!(ends, [5 * MS, 5 * MS, 6 * MS, 6 * MS + 7]);
    assert_eq!(m.cpu_time(id), CpuTime { user_ns: 5 * MS + 7, system_ns: 0 });
    let idle = m.now() - 5 * MS - 7;
    assert_eq!(m.cpu_use(CpuId::new(1)), CpuUse { user_ns: 5 * MS + 7, idle_ns: idle, ..CpuUse::default() });
}

#[test]
fn busy_programs_that_are_not_bound_share_all_cpus() {
    let mut m = machine(4, 16, linux("6.1"));
    let ids: Vec<TaskId> = (0..10).map(|_| m.spawn(busy(30 * MS), Placement::Any)).collect();
    pass(&mut m, 20 * SECOND);
    for id in &ids {
        let share = total(&m, *id) as f64 / m.now() as f64;
        assert!((0.37..0.43).contains(&share), "{share}");
    }
    for cpu in (0..4).map(CpuId::new) {
        let spent = m.cpu_use(cpu);
        assert!(spent.user_ns as f64 > 0.999 * m.now() as f64, "{spent:?}");
    }
}

#[test]
fn the_second_of_two_busy_programs_on_a_cpu_gets_its_half() {
    let touches = |id: &TaskId, m: &Machine| log(m, *id).len();
    let mut m = machine(2, 64, linux("6.1"));
    let toucher = || {
        script(move |log| match log {
            [] => Some(Op::Mmap { pages: 64 }),
            [map, ..] => {
                let Value::Region(r) = map.value else { panic!("{map:?}") };
                Some(if log.len() % 2 == 1 { Op::Touch(r) } else { Op::Munmap(part(r, 0, 32)) })
            }
        })
    };
    let ids = [toucher(), toucher()].map(|program| m.spawn(program, Placement::Cpu(0)));
    // Over many slices, so that one more for either hardly matters.
    pass(&mut m, 400 * MS);
    let [a, b] = ids.map(|id| touches(&id, &m) as f64);
    assert!((0.9..1.1).contains(&(a / b)), "{a} operations against {b}");
}

#[test]
fn busy_programs_are_switched_between_once_a_slice() {
    let mut m = machine(1, 16, linux("6.1"));
    (0..2).for_each(|_| _ = m.spawn(busy(SECOND), Placement::Any));
    pass(&mut m, SECOND);
    // Two tasks share a period of 6 ms; kcompactd runs twice a second.
    assert!((320..=345).contains(&m.context_switches()), "{}", m.context_switches());
}

#[test]
fn a_daemon_goes_to_another_cpu_of_its_node_if_its_own_is_busy() {
    // Allocations wake kswapd while a program computes on kswapd's CPU.
    let taker = || {
        script(|log: &[Outcome]| match log {
            [] => Some(Op::FreeAboveHigh),
            [free] => {
                let Value::Pages(free) = free.value else { panic!("{free:?}") };
                Some(Op::Mmap { pages: free as u32 })
            }
            [_, map] => {
                let Value::Region(r) = map.value else { panic!("{map:?}") };
                Some(Op::Touch(r))
            }
            _ => None,
        })
    };
    let mut m = machine(4, 64, linux("6.1"));
    for cpu in [2, 3] {
        m.spawn(busy(SECOND), Placement::Cpu(cpu));
    }
    run(&mut m, 0, taker());
    run(&mut m, 0, allocator(kontig_program::Gfp::KERNEL, HUGE, 8, 0));
    pass(&mut m, 10 * MS);
    assert!(m.daemon_ns(Daemon::Kswapd) + m.daemon_ns(Daemon::Kcompactd) > 0);
    for cpu in [2, 3].map(CpuId::new) {
        assert_eq!(m.cpu_use(cpu).system_ns, 0, "the programs were not disturbed");
    }
}

/// A program that forks this many children, which compute for `ns` each, and waits for all of them.
fn forker(children: usize, ns: u64) -> Box<Script> {
    script(move |log| match log.len() {
        n if n < children => Some(Op::Fork(ops(vec![Op::Compute(ns)]))),
        n if n < 2 * children => Some(Op::WaitAny),
        _ => None,
    })
}

#[test]
fn children_run_beside_each_other_unless_their_parent_is_bound() {
    let took = |placement| {
        let mut m = machine(4, 16, linux("6.1"));
        let id = m.spawn(forker(8, 10 * MS), placement);
        finish(&mut m, id);
        let time = m.cpu_time(id);
        assert_eq!(time.user_ns, 80 * MS, "what its children have computed counts as its own");
        m.now()
    };
    let (any, bound) = (took(Placement::Any), took(Placement::Cpu(2)));
    assert!((20 * MS..22 * MS).contains(&any), "{any} ns");
    assert!((80 * MS..84 * MS).contains(&bound), "{bound} ns");
}

#[test]
fn one_that_is_killed_while_it_computes_is_gone_at_once() {
    let mut m = machine(2, 16, linux("6.1"));
    let mut child = None;
    let parent = script(move |log| match log {
        [] => Some(Op::Fork(ops(vec![Op::Compute(SECOND)]))),
        [fork] => {
            let Value::Child(process) = fork.value else { panic!("{fork:?}") };
            child = Some(process);
            Some(Op::Sleep(MS))
        }
        [_, _] => child.map(Op::Kill),
        [_, _, _] => child.map(Op::Wait),
        _ => None,
    });
    let id = m.spawn(parent, Placement::Any);
    finish(&mut m, id);
    assert!((MS..2 * MS).contains(&m.now()), "{} ns", m.now());
    let spent = m.cpu_time(id).user_ns;
    assert!((9 * MS / 10..11 * MS / 10).contains(&spent), "it has computed for {spent} ns");
}

#[test]
fn tasks_go_on_from_a_barrier_together() {
    const ROUNDS: usize = 50;
    let mut m = machine(4, 16, linux("6.1"));
    let program = |i: u64| {
        let round = move |_| [Op::Compute(100_000 * (i + 1)), Op::Barrier { barrier: 3, parties: 8 }];
        ops((0..ROUNDS).flat_map(round).collect())
    };
    let ids: Vec<TaskId> = (0..8).map(|i| m.spawn(program(i), Placement::Any)).collect();
    ids.iter().for_each(|id| finish(&mut m, *id));
    for round in 0..ROUNDS {
        let of = |id: &TaskId| (log(&m, *id)[2 * round].end_ns, log(&m, *id)[2 * round + 1].end_ns);
        let (came, left): (Vec<u64>, Vec<u64>) = ids.iter().map(of).unzip();
        let last = *came.iter().max().unwrap();
        assert!(left.iter().all(|left| *left >= last), "round {round}: nobody leaves before the last has come");
    }
    // A round is 3.6 ms of computing on four CPUs.
    let ideal = ROUNDS as u64 * 900_000;
    assert!((ideal..2 * ideal).contains(&m.now()), "{} ns", m.now());
}

#[test]
fn a_barrier_of_two_sizes_is_an_error() {
    let mut m = machine(2, 16, linux("6.1"));
    let at = |parties| ops(vec![Op::Barrier { barrier: 0, parties }]);
    m.spawn(at(3), Placement::Cpu(0));
    m.spawn(at(2), Placement::Cpu(1));
    let said = m.run(SECOND, None).unwrap_err().to_string();
    assert!(said.contains("Barrier { barrier: 0, parties: 2 }"), "{said}");
}

/// Results of programs of all sorts after a while, observed every `slice`.
fn mixed(slice: u64) -> (Vec<Vec<Outcome>>, Vec<CpuTime>, Vec<CpuUse>) {
    let mut m = machine(4, 64, linux("6.1"));
    let program = |i: u64| {
        script(move |log| match log {
            [] => Some(Op::Mmap { pages: 600 }),
            [map, ..] => {
                let Value::Region(r) = map.value else { panic!("{map:?}") };
                Some(match log.len() as u64 % 4 {
                    1 => Op::Touch(r),
                    2 => Op::Compute(i * 700_123),
                    3 => Op::Munmap(part(r, 0, 512)),
                    _ => Op::Sleep(i % 3 * 1_000_001),
                })
            }
        })
    };
    let place = |i: u64| if i.is_multiple_of(3) { Placement::Cpu(i as usize % 4) } else { Placement::Any };
    let ids: Vec<TaskId> = (0..9).map(|i| m.spawn(program(i), place(i))).collect();
    while m.now() < 300 * MS {
        let until = (m.now() + slice).min(300 * MS);
        m.run(until, None).unwrap();
    }
    (
        ids.iter().map(|id| log(&m, *id).to_vec()).collect(),
        ids.iter().map(|id| m.cpu_time(*id)).collect(),
        (0..4).map(|cpu| m.cpu_use(CpuId::new(cpu))).collect(),
    )
}

#[test]
fn tasks_run_in_the_same_places_every_time_however_often_they_are_observed() {
    let once = mixed(300 * MS);
    assert!(once.0.iter().all(|log| log.len() > 20), "there was something to do");
    for slice in [300 * MS, 1_000_003, 7_777] {
        assert!(mixed(slice) == once, "looked at every {slice} ns");
    }
}

#[test]
fn a_driver_that_waits_awake_takes_its_share_of_a_cpu_and_no_longer_than_it_is_to_wait() {
    let mut m = machine(1, 16, linux("6.1"));
    let alone = run(&mut m, 0, ops(vec![Op::Spin(50 * MS)]));
    let syscall = log(&m, alone)[0].latency_ns() - 50 * MS;
    assert_eq!(m.cpu_time(alone), CpuTime { user_ns: 0, system_ns: 50 * MS + syscall });
    assert!(syscall < MS, "{syscall} ns");
    let computes = [busy(30 * MS), busy(30 * MS)].map(|program| m.spawn(program, Placement::Cpu(0)));
    let spins = run(&mut m, 0, ops(vec![Op::Spin(9 * SECOND)]));
    let took = log(&m, spins)[0].latency_ns();
    assert!((9 * SECOND..9 * SECOND + 50 * MS).contains(&took), "until its next turn: {took} ns");
    let CpuTime { user_ns, system_ns } = m.cpu_time(spins);
    assert_eq!(user_ns, 0);
    assert!((2_900 * MS..3_100 * MS).contains(&system_ns), "{system_ns} ns, one of three shares");
    assert!(computes.iter().all(|id| m.cpu_time(*id).user_ns > 29 * SECOND / 10));
}
