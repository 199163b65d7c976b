//! Tests of the scheduler alone, with tasks that compute and sleep.

use super::deadline::ByDeadline;
use super::*;
use kontig_mm::{CpuId, NodeId};
use kontig_profiles::linux;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const SWITCH_NS: u64 = 1_000;

/// The rules of 6.1: CFS.
fn cfs() -> SchedulerRules {
    linux("6.1").scheduler
}

/// The rules of 6.12: EEVDF, with ticks.
fn eevdf() -> SchedulerRules {
    linux("6.12").scheduler
}

/// The rules of 7.2: EEVDF, with timers and lazy preemption.
fn lazy() -> SchedulerRules {
    linux("7.2").scheduler
}

/// This many nodes, with this many CPUs each.
fn topology(nodes: usize, cpus: usize, threads: usize) -> Topology {
    let node = |n: usize| (NodeId::new(n), (n * cpus..(n + 1) * cpus).map(CpuId::new).collect());
    Topology::new((0..nodes).map(node), threads)
}

/// A task's cycle: nanoseconds in the kernel, computing, and asleep.
#[derive(Clone, Copy, Debug)]
struct Habit {
    system: u64,
    compute: u64,
    sleep: u64,
}

const BUSY: Habit = Habit { system: 0, compute: 100 * MS, sleep: 0 };

fn sleeper(compute: u64, sleep: u64) -> Habit {
    Habit { system: 0, compute, sleep }
}

/// The scheduler with tasks of habits.
struct Bench {
    s: Schedule,
    now: u64,
    habits: Vec<Habit>,
    /// Whether each has computed and sleeps next.
    to_sleep: Vec<bool>,
    /// The longest time from a wake to the turn, of each.
    latest: Vec<u64>,
    woke: Vec<Option<u64>>,
}

impl Bench {
    fn new(topology: Topology) -> Bench {
        Bench::with(topology, &cfs())
    }

    fn with(topology: Topology, rules: &SchedulerRules) -> Bench {
        let s = Schedule::new(topology, rules, SWITCH_NS);
        Bench { s, now: 0, habits: vec![], to_sleep: vec![], latest: vec![], woke: vec![] }
    }

    fn add(&mut self, habit: Habit, affinity: Affinity, nice: i8, parent: usize) -> u32 {
        let task = self.s.add(affinity, Nice::new(nice), parent, false);
        assert_eq!(task as usize, self.habits.len());
        self.habits.push(habit);
        self.to_sleep.push(false);
        self.latest.push(0);
        self.woke.push(None);
        self.s.begin_new(task, self.now);
        task
    }

    fn turn(&mut self, turn: Turn) {
        let task = turn.task as usize;
        let Habit { system, compute, sleep } = self.habits[task];
        if let Some(woke) = self.woke[task].take() {
            self.latest[task] = self.latest[task].max(turn.start - woke);
        }
        if self.to_sleep[task] && sleep > 0 {
            self.s.end(turn, turn.start, 0, Then::Wait);
            self.s.wake_at(turn.task, turn.start + sleep);
            self.to_sleep[task] = false;
        } else {
            let then = if compute > 0 { Then::Compute(compute) } else { Then::GoOn };
            self.s.end(turn, turn.start + system, 0, then);
            self.to_sleep[task] = true;
        }
    }

    /// Runs for this long, and checks the state after each event.
    fn pass(&mut self, ns: u64) {
        let until = self.now + ns;
        loop {
            let (next, due) = (self.s.next(), self.s.next_event());
            let start = next.map_or(u64::MAX, |turn| turn.start);
            if due.min(start) >= until {
                break;
            }
            assert!(due.min(start) >= self.now || start < due, "events do not come late");
            self.now = due.min(start);
            if due <= start {
                if let Some(task) = self.s.handle_event() {
                    self.woke[task as usize] = Some(due);
                    self.s.wake(task, due);
                }
            } else if let Some(turn) = next
                && self.s.begin(turn)
            {
                self.turn(turn);
            }
            while self.s.take_preempted().is_some() {}
            self.check();
        }
        self.now = until;
    }

    /// Invariants of the scheduler.
    fn check(&self) {
        let s = &self.s;
        let mut seen = vec![0; s.entities.len()];
        let mut movable = 0;
        let mut first = NO_KEY;
        for (number, c) in s.cpus.iter().enumerate() {
            assert!(c.queue.iter().is_sorted_by_key(|w| w.vruntime));
            assert!(c.current != NONE || c.queue.is_empty(), "CPU {number} is idle and tasks wait for it");
            let waiting = c.queue.iter().map(|w| w.task);
            let mut load = 0;
            for task in waiting.clone().chain((c.current != NONE).then_some(c.current)) {
                let e = &s.entities[task as usize];
                assert_eq!(e.cpu as usize, number);
                assert!(s.topology.allows(e.affinity, number), "{:?} on CPU {number}", e.affinity);
                load += u64::from(e.weight);
                seen[task as usize] += 1;
            }
            assert_eq!(c.load, load);
            movable += waiting.filter(|t| !matches!(s.entities[*t as usize].affinity, Affinity::Cpu(_))).count();
            if c.current != NONE {
                assert!(c.turn_at >= c.clock);
                first = first.min(key(c.turn_at, c.current));
            }
        }
        assert_eq!(s.movable as usize, movable);
        assert_eq!(s.idle, s.cpus.iter().filter(|c| c.current == NONE).count());
        assert!(movable == 0 || s.balance_at < u64::MAX);
        assert_eq!(s.turns.least(), first);
        for (task, seen) in seen.into_iter().enumerate() {
            assert_eq!(seen + usize::from(s.sleeps.get(task) != NO_KEY), 1, "task {task}");
        }
    }

    /// Each task's share of the time since the start.
    fn shares(&self) -> Vec<f64> {
        let time = |task| self.s.time_of(task, self.now).total_ns();
        (0..self.habits.len() as u32).map(|task| time(task) as f64 / self.now as f64).collect()
    }

    fn cpu(&self, task: u32) -> usize {
        self.s.cpu_of(task)
    }
}

#[test]
fn ten_busy_tasks_on_four_cpus_get_two_fifths_of_a_cpu_each_in_the_long_run() {
    let mut b = Bench::new(topology(1, 4, 1));
    (0..10).for_each(|_| _ = b.add(BUSY, Affinity::Any, 0, 0));
    b.pass(1_200 * SECOND);
    for share in b.shares() {
        assert!((0.39..0.41).contains(&share), "{:?}", b.shares());
    }
}

#[test]
fn two_tasks_on_a_cpu_share_it_by_their_weights() {
    for rules in [cfs(), eevdf(), lazy()] {
        for (nice, expected) in [(0, 0.5), (5, 1024.0 / 1359.0), (19, 1024.0 / 1039.0)] {
            let mut b = Bench::with(topology(1, 1, 1), &rules);
            b.add(BUSY, Affinity::Any, 0, 0);
            b.add(BUSY, Affinity::Any, nice, 0);
            b.pass(20 * SECOND);
            assert!((b.shares()[0] - expected).abs() < 0.01, "nice {nice}: {:?} with {rules:?}", b.shares());
        }
    }
}

#[test]
fn a_slice_ends_at_the_tick_after_its_deadline_or_by_a_timer() {
    for (rules, expected) in [(eevdf(), 245..=251), (lazy(), 1420..=1430)] {
        let mut b = Bench::with(topology(1, 1, 1), &rules);
        (0..2).for_each(|_| _ = b.add(BUSY, Affinity::Any, 0, 0));
        b.pass(SECOND);
        let CpuUse { user_ns, system_ns, .. } = b.s.use_of(0, b.now);
        let own: u64 = (0..2).map(|task| b.s.time_of(task, b.now).total_ns()).sum();
        let switches = (user_ns + system_ns - own) / SWITCH_NS;
        assert!(expected.contains(&switches), "{switches} switches in 250 ticks");
    }
}

/// How long a task waits that wakes `lag` behind its share, 100 us after another has begun to
/// compute, which is a kernel thread or not.
fn wait_beside(rules: &SchedulerRules, lag: i64, is_kernel_thread: bool) -> u64 {
    let mut s = Schedule::new(topology(1, 1, 1), rules, 0);
    let [sleeps, computes] = [false, is_kernel_thread].map(|thread| s.add(Affinity::Any, Nice::ZERO, 0, thread));
    s.begin_new(sleeps, 0);
    s.end(s.next().expect("it runs"), 0, 0, Then::Wait);
    s.entities[sleeps as usize].lag = lag;
    s.begin_new(computes, 0);
    s.end(s.next().expect("it runs"), 0, 0, Then::Compute(100 * MS));
    s.wake(sleeps, 100_000);
    let mut turn = s.next().expect("one runs");
    while turn.task == computes {
        assert!(!s.begin(turn), "it computes for long");
        turn = s.next().expect("one runs");
    }
    turn.start - 100_000
}

#[test]
fn a_task_that_is_owed_time_has_it_at_once_but_late_kernels_spare_kernel_threads() {
    for rules in [eevdf(), lazy()] {
        assert_eq!(wait_beside(&rules, 200_000, false), 0);
    }
    assert_eq!(wait_beside(&eevdf(), 200_000, true), 0);
    // A new task's first slice is half of 0.7 ms.
    assert_eq!(wait_beside(&lazy(), 200_000, true), 250_000);
}

#[test]
fn a_task_that_has_run_alone_shares_its_cpu_with_one_that_is_moved_there() {
    for rules in [cfs(), eevdf(), lazy()] {
        let mut b = Bench::with(topology(1, 2, 1), &rules);
        let alone = b.add(BUSY, Affinity::Cpu(1), 0, 1);
        b.add(BUSY, Affinity::Cpu(0), 0, 0);
        b.pass(10 * SECOND);
        let moved = b.add(BUSY, Affinity::Any, 0, 0);
        assert_eq!(b.cpu(moved), 0);
        (0..2).for_each(|_| _ = b.add(BUSY, Affinity::Cpu(0), 0, 0));
        b.pass(SECOND);
        assert_eq!(b.cpu(moved), 1, "balancing has moved it");
        let had = b.s.time_of(alone, b.now).total_ns();
        b.pass(SECOND);
        let has = b.s.time_of(alone, b.now).total_ns() - had;
        assert!(has > 250 * MS, "{has} ns of a second, with {rules:?}");
    }
}

#[test]
fn a_spared_kernel_thread_gives_way_at_the_next_tick() {
    // On eight CPUs a new task's first slice is 1.4 ms.
    let mut s = Schedule::new(topology(1, 8, 1), &lazy(), 0);
    let only = Affinity::Cpu(0);
    let [sleeps, thread] = [false, true].map(|thread| s.add(only, Nice::ZERO, 0, thread));
    s.begin_new(sleeps, 0);
    s.end(s.next().expect("it runs"), 0, 0, Then::Wait);
    s.entities[sleeps as usize].lag = 200_000;
    s.begin_new(thread, 3 * MS);
    s.end(s.next().expect("it runs"), 3 * MS, 0, Then::Compute(100 * MS));
    s.wake(sleeps, 39 * MS / 10);
    let turn = s.next().expect("it runs");
    assert!(!s.begin(turn), "it computes for long");
    assert_eq!(s.next().map(|turn| (turn.task, turn.start)), Some((sleeps, 4 * MS)));
}

#[test]
fn a_task_that_has_had_its_share_waits_for_the_slice_of_the_running_one() {
    assert_eq!(wait_beside(&eevdf(), 0, false), 4 * MS - 100_000, "to the tick");
    assert_eq!(wait_beside(&lazy(), 0, false), 250_000);
}

#[test]
fn a_new_task_waits_for_a_slice_on_late_kernels() {
    // Beside a light task the running one has had more than its share after 1 ms; on eight CPUs
    // its slice is longer.
    for (rules, expected) in [(eevdf(), 0), (SchedulerRules { new_tasks_wait: true, ..eevdf() }, 3 * MS)] {
        let mut s = Schedule::new(topology(1, 8, 1), &rules, 0);
        let [runs, light, new] = [0, 19, 0].map(|nice| s.add(Affinity::Cpu(0), Nice::new(nice), 0, false));
        s.begin_new(runs, 0);
        s.end(s.next().expect("it runs"), 0, 0, Then::Compute(100 * MS));
        s.begin_new(light, 0);
        s.begin_new(new, MS);
        let mut turn = s.next().expect("one runs");
        while turn.task == runs {
            assert!(!s.begin(turn), "it computes for long");
            turn = s.next().expect("one runs");
        }
        assert_eq!(turn.start - MS, expected);
    }
}

#[test]
fn the_lag_that_is_kept_is_two_slices_or_a_tick_or_on_late_kernels_their_sum() {
    // On one CPU a slice is 0.7 ms, on eight 2.8.
    for (rules, factor, most) in [(eevdf(), 1, 4 * MS), (eevdf(), 4, 5_600_000), (lazy(), 1, 4_700_000)] {
        let rule = ByDeadline::new(factor, &rules);
        assert_eq!(rule.lag(10 * MS as i64, 0, 1024), most as i64);
        assert_eq!(rule.lag(0, 10 * MS as i64, 1024), -(most as i64));
    }
}

#[test]
fn a_slice_is_no_turn_of_one_operation() {
    // On one CPU slices are 3 ms, however short the operations are.
    let mut b = Bench::new(topology(1, 1, 1));
    let short = Habit { system: 500, compute: 0, sleep: 0 };
    (0..2).for_each(|_| _ = b.add(short, Affinity::Any, 0, 0));
    b.pass(SECOND);
    let CpuUse { user_ns, system_ns, .. } = b.s.use_of(0, b.now);
    let own: u64 = (0..2).map(|task| b.s.time_of(task, b.now).total_ns()).sum();
    let switches = (user_ns + system_ns - own) / SWITCH_NS;
    assert!((320..340).contains(&switches), "{switches} switches");
}

#[test]
fn one_that_sleeps_much_is_served_soon_beside_busy_ones() {
    let mut b = Bench::new(topology(1, 2, 1));
    (0..6).for_each(|_| _ = b.add(BUSY, Affinity::Any, 0, 0));
    let light = b.add(sleeper(50_000, 10 * MS), Affinity::Any, 0, 0);
    b.pass(10 * SECOND);
    assert!(b.latest[light as usize] <= 2 * MS, "it waited {} ns", b.latest[light as usize]);
    assert!((0.0045..0.0055).contains(&b.shares()[light as usize]), "{:?}", b.shares());
}

#[test]
fn new_tasks_go_to_idle_cores_of_the_emptier_node_first() {
    let mut b = Bench::new(topology(2, 4, 2));
    // The parent on CPU 1 fills CPU 1 itself, then nodes in turn, and every core before any second
    // thread.
    let tasks = [0; 8].map(|_| b.add(BUSY, Affinity::Any, 0, 1));
    let cpus = tasks.map(|task| b.cpu(task));
    assert_eq!(cpus.iter().map(|cpu| cpu / 4).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert!(cpus[..4].iter().all(|cpu| cpu % 4 < 2), "{cpus:?}");
    let mut all = cpus;
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn one_that_wakes_goes_back_to_its_cpu_or_near_it() {
    let mut b = Bench::new(topology(2, 2, 1));
    let task = b.add(sleeper(MS, MS), Affinity::Any, 0, 0);
    assert_eq!(b.cpu(task), 0);
    b.pass(MS + 1);
    b.add(BUSY, Affinity::Cpu(0), 0, 0);
    b.pass(MS);
    assert_eq!(b.cpu(task), 1, "its own is busy, and the other of its node is not");
    b.pass(MS);
    b.add(BUSY, Affinity::Cpu(1), 0, 1);
    b.pass(MS / 2);
    assert_eq!(b.cpu(task), 1, "no other node's");
}

#[test]
fn a_cpu_that_falls_idle_takes_over_one_that_waits() {
    let mut b = Bench::new(topology(2, 1, 1));
    let short = b.add(sleeper(MS, SECOND), Affinity::Any, 0, 0);
    let busy = [0, 0].map(|_| b.add(BUSY, Affinity::Any, 0, 1));
    assert_eq!(b.cpu(short), 0);
    b.pass(10 * MS);
    assert_ne!(b.cpu(busy[0]), b.cpu(busy[1]), "also from another node");
}

#[test]
fn bound_tasks_stay_and_an_idle_cpu_does_not_help() {
    let mut b = Bench::new(topology(1, 2, 1));
    (0..3).for_each(|_| _ = b.add(BUSY, Affinity::Cpu(1), 0, 1));
    b.pass(9 * SECOND);
    assert!(b.shares().iter().all(|share| (share - 1.0 / 3.0).abs() < 0.01), "{:?}", b.shares());
    assert_eq!(b.s.use_of(0, b.now), CpuUse { idle_ns: b.now, ..CpuUse::default() });
}

#[test]
fn a_number_of_a_task_that_is_gone_is_used_again() {
    let mut s = Schedule::new(topology(1, 1, 1), &cfs(), 0);
    let first = s.add(Affinity::Any, Nice::ZERO, 0, false);
    s.begin_new(first, 0);
    let turn = s.next().expect("it runs");
    s.end(turn, 7, 0, Then::Wait);
    s.wake_at(first, 1_000);
    s.remove(first);
    assert_eq!(s.next_event(), u64::MAX, "one that is gone does not wake");
    assert_eq!(s.add(Affinity::Any, Nice::ZERO, 0, false), first);
    assert_eq!(s.time_of(first, 7), CpuTime::default());
}

#[test]
fn time_without_a_task_is_for_io_while_one_waits_for_it() {
    let mut s = Schedule::new(topology(1, 2, 1), &cfs(), 0);
    let task = s.add(Affinity::Any, Nice::ZERO, 0, false);
    s.begin_new(task, 100);
    let turn = s.next().expect("it runs");
    s.end(turn, 400, 100, Then::WaitForIo);
    assert_eq!(s.use_of(0, 600), CpuUse { user_ns: 100, system_ns: 200, iowait_ns: 200, idle_ns: 100 });
    s.wake(task, 1_000);
    let turn = s.next().expect("it runs");
    s.end(turn, 1_000, 0, Then::Wait);
    assert_eq!(s.use_of(0, 2_000), CpuUse { user_ns: 100, system_ns: 200, iowait_ns: 600, idle_ns: 1_100 });
    assert_eq!(s.use_of(1, 2_000), CpuUse { idle_ns: 2_000, ..CpuUse::default() });
}

fn habit() -> impl Strategy<Value = Habit> {
    (0..3 * MS, 0..20 * MS, prop_oneof![Just(0), 1..20 * MS]).prop_map(|(system, compute, sleep)| Habit {
        system: system + 1_000,
        compute,
        sleep,
    })
}

/// Tasks, each with its affinity (a number for a CPU, a node, or anywhere), nice value and start
/// time.
type Tasks = Vec<(Habit, usize, i8, u64)>;

fn run(
    rules: &SchedulerRules,
    nodes: usize,
    cpus: usize,
    threads: usize,
    tasks: &Tasks,
) -> (Vec<CpuTime>, Vec<CpuUse>) {
    let mut b = Bench::with(topology(nodes, cpus, threads), rules);
    let all = nodes * cpus;
    for (habit, at, nice, after) in tasks {
        let affinity = match at % 4 {
            0 => Affinity::Cpu(at / 4 % all),
            1 => Affinity::Node(NodeId::new(at / 4 % nodes)),
            _ => Affinity::Any,
        };
        let parent = (0..all).find(|cpu| b.s.topology.allows(affinity, *cpu)).expect("there is one");
        b.add(*habit, affinity, *nice, parent);
        b.pass(*after);
    }
    b.pass(200 * MS);
    // A time that no CPU has passed.
    let end = b.s.cpus.iter().map(|c| c.clock).max().unwrap_or(0).max(b.now);
    let times = (0..tasks.len() as u32).map(|task| b.s.time_of(task, end)).collect();
    (
        times,
        (0..all)
            .map(|cpu| b.s.use_of(cpu, end))
            .inspect(|u| {
                assert_eq!(u.user_ns + u.system_ns + u.iowait_ns + u.idle_ns, end);
            })
            .collect(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_is_in_order_whatever_tasks_do_and_the_same_twice(
        nodes in 1..3usize,
        cores in 1..4usize,
        threads in 1..3usize,
        tasks in prop::collection::vec((habit(), 0..64usize, -20..20i8, 0..10 * MS), 1..14),
    ) {
        for rules in [cfs(), eevdf(), lazy()] {
            let (times, uses) = run(&rules, nodes, cores * threads, threads, &tasks);
            prop_assert_eq!((&times, &uses), (&run(&rules, nodes, cores * threads, threads, &tasks).0, &uses));
            // The CPUs' time is the tasks' time plus the switches.
            let of_tasks: u64 = times.iter().map(|time| time.total_ns()).sum();
            let of_cpus: u64 = uses.iter().map(|u| u.user_ns + u.system_ns).sum();
            prop_assert!(of_cpus >= of_tasks && (of_cpus - of_tasks).is_multiple_of(SWITCH_NS));
        }
    }
}
