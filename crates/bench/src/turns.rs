//! Rows T: the cost of a turn with 1, 80 and 1,000 tasks, each of which does next to nothing and
//! sleeps; and of a fault beside 1,000 tasks that sleep a second at a time.
//!
//! The machine has 80 CPUs and the tasks are spread evenly over them, so with 1,000 a task often
//! finds its CPU busy. One task costs the turn itself; more tasks add the search for the next one
//! and cache misses. A search in O(log tasks) keeps the limits, a scan of all tasks does not.

use crate::limit::Limits;
use crate::measure::{Samples, Stopwatch};
use crate::options::Options;
use crate::simulator::costs;
use crate::subject::one_zone;
use crate::table::{Row, Target, Unit};
use kontig_mm::{Memory, VmEvent};
use kontig_profiles::linux;
use kontig_program::{Batch, Op, Outcome, Placement, Program, Region, Value};
use kontig_sim::Machine;

const CPUS: usize = 80;
/// Turns in one repetition.
const TURNS: u64 = 1 << 19;
/// Simulated time between two reads of the number of turns, in ns.
const STRETCH_NS: u64 = 1_000_000;

/// Calls `madvise` on the same page repeatedly, with sleeps in between.
#[derive(Clone)]
struct Sleeper {
    region: Option<Region>,
    sleep_ns: u64,
}

impl Program for Sleeper {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if let Some(Value::Region(region)) = done.last().map(|o| o.value) {
            self.region = Some(region);
        }
        let Some(region) = self.region else { return todo.push(Op::Mmap { pages: 1 }) };
        for _ in 0..8 {
            todo.push(Op::AdviseHuge(region));
            todo.push(Op::Sleep(self.sleep_ns));
        }
    }
}

/// Touches 64 pages and unmaps them repeatedly; one more page keeps the mapping.
#[derive(Clone)]
struct Faulter {
    region: Option<Region>,
}

impl Program for Faulter {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if let Some(Value::Region(region)) = done.last().map(|o| o.value) {
            self.region = Some(region);
        }
        let Some(region) = self.region else { return todo.push(Op::Mmap { pages: 65 }) };
        let gone = Region { pages: 64, ..region };
        (0..8).for_each(|_| todo.extend([Op::Touch(region), Op::Munmap(gone)]));
    }
}

/// A machine with `tasks` tasks, which sleep for `sleep_ns` and a little more each.
fn machine(tasks: usize, sleep_ns: u64) -> Machine {
    let memory = Memory::new(&one_zone(1 << 15, CPUS), linux("6.1")).expect("a valid machine");
    let mut machine = Machine::new(memory, costs());
    for task in 0..tasks {
        let sleeper = Sleeper { region: None, sleep_ns: sleep_ns + (task as u64 * 37) % 977 };
        machine.spawn(Box::new(sleeper), Placement::Cpu(task % CPUS));
    }
    machine
}

/// Nanoseconds per turn of a task.
fn sample(machine: &mut Machine) -> f64 {
    let (before, started) = (machine.turns(), Stopwatch::start());
    while machine.turns() - before < TURNS {
        machine.run(machine.now() + STRETCH_NS, None).expect("nothing is asked for that there is not");
    }
    started.ns() / (machine.turns() - before) as f64
}

/// Nanoseconds per page fault.
fn sample_faults(machine: &mut Machine) -> f64 {
    let faults = |machine: &Machine| machine.memory().vmstat().get(VmEvent::Pgfault);
    let (before, started) = (faults(machine), Stopwatch::start());
    while faults(machine) - before < 1 << 21 {
        machine.run(machine.now() + STRETCH_NS, None).expect("nothing is asked for that there is not");
    }
    started.ns() / (faults(machine) - before) as f64
}

/// The row of faults: beside sleeping tasks, against alone.
fn row_of_faults(o: &Options) -> Row {
    let mut machines = [1000, 0].map(|asleep| machine(asleep, 1_000_000_000));
    let mut samples = [Vec::new(), Vec::new()];
    machines.iter_mut().for_each(|machine| _ = machine.spawn(Box::new(Faulter { region: None }), Placement::Cpu(0)));
    for repetition in 0..=o.repetitions() {
        for (machine, samples) in machines.iter_mut().zip(&mut samples) {
            let ns = sample_faults(machine);
            if repetition > 0 {
                samples.push(ns);
            }
        }
    }
    let [beside, alone] = samples.map(Samples::new);
    Row {
        number: "Ts",
        what: "simulator, a fault and its part of an unmap, beside 1000 tasks that sleep".into(),
        unit: Unit::Ns,
        ours: beside,
        yardsticks: vec![("alone".into(), alone)],
        target: Some(Target::Ratio(1.05)),
    }
}

/// The rows: one task, and more against one.
pub fn rows(o: &Options) -> Vec<Row> {
    const ROWS: [(&str, usize, Option<f64>); 3] = [("T1", 1, None), ("T80", 80, Some(4.0)), ("T1000", 1000, Some(6.0))];
    let mut machines = ROWS.map(|(_, tasks, _)| machine(tasks, 10_000));
    let mut samples = ROWS.map(|_| Vec::new());
    let mut limits = Limits::in_cache();
    // The first repetition warms up.
    for repetition in 0..=o.repetitions() {
        limits.sample();
        for (machine, samples) in machines.iter_mut().zip(&mut samples) {
            let ns = sample(machine);
            if repetition > 0 {
                samples.push(ns);
            }
        }
    }
    let alone = Samples::new(samples[0].clone());
    let rows = ROWS.into_iter().zip(samples).map(|((number, tasks, limit), samples)| {
        let ours = Samples::new(samples);
        let what = match tasks {
            1 => "1 task".to_owned(),
            n => format!("{n} tasks on {CPUS} CPUs"),
        };
        Row {
            number,
            what: format!("simulator, a turn, {what} = {:.1} M turns/s", 1000.0 / ours.median()),
            unit: Unit::Ns,
            yardsticks: if tasks > 1 { vec![("one task".into(), alone.clone())] } else { limits.beside(&ours) },
            ours,
            target: limit.map(Target::Ratio),
        }
    });
    rows.chain([row_of_faults(o)]).collect()
}
