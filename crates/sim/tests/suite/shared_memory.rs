//! Threads: they share memory, wait for each other and end together; mapping and unmapping block
//! their faults.

use crate::support::*;
use kontig_mm::{Memory, VmEvent};
use kontig_program::{Batch, Op, Outcome, Placement, Program, Region, Thread, Value};
use kontig_sim::{CostModel, Machine, SimError};

/// Four CPUs and 16 MiB.
fn prompt() -> Prompt {
    Prompt::new(machine(4, 16, linux("6.1")), 1)
}

/// Kernel pages of a thread: its stack and its description.
const OF_THREAD: u64 = 6;

fn whole(pages: u32) -> Region {
    Region { mapping: 0, first: 0, pages }
}

fn took(outcome: &Outcome) -> u64 {
    outcome.end_ns - outcome.start_ns
}

#[test]
fn pages_that_one_thread_touches_are_mapped_for_all() {
    let mut p = prompt();
    let r = p.mmap(0, 300);
    let thread = p.spawn(0);
    p.call(thread, Op::Touch(part(r, 100, 50))).unwrap();
    assert_eq!(p.call(0, Op::Mincore(r)).unwrap().value, Value::Pages(50));
    let faults = event(&p.m, VmEvent::Pgfault);
    p.call(0, Op::Touch(part(r, 100, 50))).unwrap();
    assert_eq!(event(&p.m, VmEvent::Pgfault), faults);
    // A thread's mapping is shared by all.
    let own = p.mmap(thread, 20);
    p.call(0, Op::Touch(own)).unwrap();
    p.call(thread, Op::Munmap(r)).unwrap();
    assert!(matches!(p.call(0, Op::Touch(r)), Err(SimError::BadAddress { .. })));
    p.m.memory().check().unwrap();
}

/// A program that counts the calls of `next`.
#[derive(Clone)]
struct Counter {
    left: u32,
    asked: u32,
}

impl Program for Counter {
    fn next(&mut self, _: &[Outcome], todo: &mut Batch) {
        self.asked += 1;
        if self.asked <= self.left {
            todo.push(Op::Compute(MS));
        }
    }
}

/// Starts threads that count to ten, joins them, and adds up their counts.
#[derive(Clone, Default)]
struct Adder {
    begun: bool,
    sum: u32,
}

impl Program for Adder {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if !std::mem::replace(&mut self.begun, true) {
            todo.extend((0..4).map(|_| Op::Spawn(Box::new(Counter { left: 10, asked: 0 }))));
            return;
        }
        let made =
            |outcome: &Outcome| if let Value::Thread(thread) = outcome.value { Some(Op::Join(thread)) } else { None };
        todo.extend(done.iter().filter_map(made));
    }
    fn joined(&mut self, thread: Box<dyn Program>) {
        let thread: Box<dyn std::any::Any> = thread;
        self.sum += thread.downcast::<Counter>().expect("what was made").asked;
    }
}

#[test]
fn a_join_gives_back_what_the_thread_has_run_and_threads_spread_over_cpus() {
    let mut m = machine(4, 16, linux("6.1"));
    let id = m.spawn(Box::new(Adder::default()), Placement::Any);
    finish(&mut m, id);
    let program: &dyn std::any::Any = m.program(id).unwrap();
    assert_eq!(program.downcast_ref::<Adder>().unwrap().sum, 44);
    // Forty milliseconds of computing on four CPUs.
    assert!(m.now() < 15 * MS, "{} ns", m.now());
    assert_eq!(m.cpu_time(id).user_ns, 40 * MS, "and all of it is the process's");
}

#[test]
fn a_thread_that_is_bound_stays_with_the_one_that_made_it() {
    let mut m = machine(4, 16, linux("6.1"));
    let id = m.spawn(Box::new(Adder::default()), Placement::Cpu(2));
    finish(&mut m, id);
    assert!(m.now() >= 40 * MS);
}

#[test]
fn joining_no_thread_is_an_error() {
    let mut p = prompt();
    let none = p.call(0, Op::Join(Thread::new(1)));
    assert!(matches!(none, Err(SimError::NoSuchProcess { .. })), "{none:?}");
}

#[test]
fn threads_that_fault_on_the_same_pages_at_once_take_each_page_once() {
    for thp in [false, true] {
        let spec = kontig_mm::MachineSpec { thp, ..spec(4, 16) };
        let memory = kontig_mm::Memory::new(&spec, linux("6.1")).unwrap();
        let mut p = Prompt::new(Machine::new(memory, kontig_sim::CostModel::new(&xeon().costs)), 1);
        let r = p.mmap(0, 2048);
        if thp {
            p.call(0, Op::AdviseHuge(r)).unwrap();
        }
        for _ in 0..3 {
            p.call(0, Op::Spawn(ops(vec![Op::Touch(r)]))).unwrap();
        }
        p.call(0, Op::Touch(r)).unwrap();
        pass(&mut p.m, 10 * MS);
        assert_eq!(user_pages(&p.m).values().map(|(_, order)| order.pages()).sum::<u32>(), 2048);
        p.m.memory().check().unwrap();
    }
}

#[test]
fn a_kill_ends_all_threads_and_gives_everything_back() {
    let mut p = prompt();
    let before = free_pages(&p.m);
    let (child, number) = p.fork(0);
    let r = p.mmap(child, 600);
    let threads = [p.spawn(child), p.spawn(child)];
    p.call(threads[0], Op::Touch(r)).unwrap();
    p.last_call(threads[1], Op::Compute(SECOND));
    p.call(0, Op::Kill(number)).unwrap();
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: number, killed: true, failed: true });
    assert_eq!(free_pages(&p.m), before);
}

#[test]
fn an_exit_of_one_thread_ends_all_and_the_end_of_one_ends_no_other() {
    let mut p = prompt();
    let before = free_pages(&p.m);
    let (child, number) = p.fork(0);
    let of_process = before - free_pages(&p.m);
    p.call(child, Op::Spawn(ops(vec![Op::Compute(MS)]))).unwrap();
    assert_eq!(before - free_pages(&p.m), of_process + OF_THREAD);
    pass(&mut p.m, 5 * MS);
    assert_eq!(before - free_pages(&p.m), of_process, "the thread has ended");
    let thread = p.spawn(child);
    p.last_call(child, Op::Join(Thread::new(2)));
    p.last_call(thread, Op::Exit);
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: number, killed: false, failed: false });
    assert_eq!(free_pages(&p.m), before);
}

#[test]
fn a_thread_that_runs_another_program_is_the_only_one() {
    let mut p = prompt();
    let before = free_pages(&p.m);
    let (child, number) = p.fork(0);
    let r = p.mmap(child, 600);
    p.call(child, Op::Touch(r)).unwrap();
    let thread = p.spawn(child);
    p.last_call(thread, Op::Exec(ops(vec![Op::Mmap { pages: 10 }, Op::Touch(whole(10)), Op::Sleep(20 * MS)])));
    assert_eq!(p.m.rss(number), Some(10));
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: number, killed: false, failed: false });
    assert_eq!(free_pages(&p.m), before);
}

#[test]
fn when_memory_runs_out_a_process_goes_with_all_its_threads() {
    let mut p = prompt();
    let before = free_pages(&p.m);
    let touch = |pages| {
        ops(vec![Op::Mmap { pages }, Op::Sleep(MS), Op::Touch(Region { pages, ..whole(pages) }), Op::Sleep(SECOND)])
    };
    let hog = |threads: u32| {
        let mut list: Vec<Op> = vec![Op::Mmap { pages: 9000 }];
        list.extend(
            (0..threads).map(|i| Op::Spawn(ops(vec![Op::Touch(part(whole(9000), i * 3000, 3000)), Op::Sleep(SECOND)]))),
        );
        list.push(Op::Sleep(SECOND));
        ops(list)
    };
    let small = fork(&mut p, touch(1000));
    let large = fork(&mut p, hog(3));
    assert_eq!(p.call(0, Op::WaitAny).unwrap().value, Value::Ended { process: large, killed: true, failed: true });
    assert_eq!(p.m.oom_kills().len(), 1);
    p.call(0, Op::Kill(small)).unwrap();
    p.call(0, Op::WaitAny).unwrap();
    assert_eq!(free_pages(&p.m), before);
}

#[test]
fn the_time_of_children_and_their_threads_is_known_once_they_were_waited_for() {
    let mut p = prompt();
    let child = fork(
        &mut p,
        ops(vec![Op::Spawn(ops(vec![Op::Compute(3 * MS)])), Op::Compute(2 * MS), Op::Join(Thread::new(1))]),
    );
    let times = |p: &mut Prompt| match p.call(0, Op::ChildTimes).unwrap().value {
        Value::Times { user_ns, system_ns } => (user_ns, system_ns),
        other => panic!("{other:?}"),
    };
    assert_eq!(times(&mut p), (0, 0));
    p.call(0, Op::Wait(child)).unwrap();
    let (user, system) = times(&mut p);
    assert_eq!(user, 5 * MS);
    assert!(system > 0 && system < MS, "{system} ns");
}

/// The time of faults in 100 pages beside some threads that compute, where each of these costs a
/// fault so much more.
fn faults_beside(threads: usize, ns: f64) -> u64 {
    let mut costs = xeon().costs;
    costs.fault_beside.ns = ns;
    let memory = Memory::new(&spec(4, 16), linux("6.1")).expect("a valid machine");
    let mut m = Machine::new(memory, CostModel::new(&costs));
    let list = [Op::Mmap { pages: 512 }, Op::Touch(part(whole(512), 0, 1))].into_iter();
    let beside = (0..threads).map(|_| Op::Spawn(ops(vec![Op::Compute(100 * MS)])));
    let list = list.chain(beside).chain([Op::Sleep(MS), Op::Touch(part(whole(512), 100, 100))]);
    let id = m.spawn(ops(list.collect()), Placement::Any);
    finish(&mut m, id);
    took(log(&m, id).last().expect("it has run"))
}

#[test]
fn a_fault_takes_longer_for_each_other_thread_of_its_process_on_a_cpu() {
    let alone = faults_beside(0, 1000.0);
    for threads in [1, 2] {
        assert_eq!(faults_beside(threads, 0.0), alone);
        assert_eq!(faults_beside(threads, 1000.0), alone + threads as u64 * 100 * 1000);
    }
}

/// Pages that one thread unmaps while another faults: a few milliseconds' worth.
const LARGE: u32 = 6 * 512;
/// Pages that the other faults in one by one.
const FAULTS: u32 = 1024;

/// The longest of a thread's faults while another unmaps memory, and the time of that `munmap`.
fn faults_beside_munmap(profile: &str) -> (u64, u64) {
    let mut m = machine(4, 16, linux(profile));
    let page_by_page = (0..FAULTS).map(|page| Op::Touch(part(whole(FAULTS), page, 1)));
    let faulter = ops(page_by_page.collect());
    let list = vec![
        Op::Mmap { pages: FAULTS },
        Op::Mmap { pages: LARGE },
        Op::Touch(Region { mapping: 1, ..whole(LARGE) }),
        Op::Spawn(faulter),
        Op::Sleep(100_000),
        Op::Munmap(Region { mapping: 1, ..whole(LARGE) }),
        Op::Join(Thread::new(1)),
    ];
    #[derive(Clone)]
    struct Keeper(Box<Script>, Vec<Outcome>);
    impl Program for Keeper {
        fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
            self.0.next(done, todo);
        }
        fn joined(&mut self, thread: Box<dyn Program>) {
            let thread: Box<dyn std::any::Any> = thread;
            self.1 = thread.downcast::<Script>().expect("the thread's").log.clone();
        }
    }
    let id = m.spawn(Box::new(Keeper(ops(list), Vec::new())), Placement::Any);
    finish(&mut m, id);
    let program: &dyn std::any::Any = m.program(id).unwrap();
    let Keeper(script, of_thread) = program.downcast_ref::<Keeper>().unwrap();
    let longest = of_thread.iter().map(took).max().unwrap();
    (longest, took(&script.log[5]))
}

#[test]
fn a_fault_waits_for_munmap_until_4_20_and_goes_on_beside_it_since() {
    let (fault, munmap) = faults_beside_munmap("4.6");
    assert!(munmap > 100_000 && fault > munmap * 9 / 10, "{fault} ns beside {munmap} ns");
    for profile in std::iter::once("5.6").chain(recorded()) {
        let (fault, munmap) = faults_beside_munmap(profile);
        assert!(munmap > 100_000 && fault < munmap / 4, "{profile}: {fault} ns beside {munmap} ns");
    }
}
