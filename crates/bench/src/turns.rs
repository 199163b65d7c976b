//! Rows T: what a turn takes with 1, 80 and 1,000 tasks, each of which does next to nothing and sleeps.
//!
//! The machine has 80 CPUs and the tasks are spread evenly over them, so with 1,000 a task often finds its CPU busy.
//! What one task takes is the turn itself; what more tasks add is the search for the next one and the caches they
//! need. The limits are what a search in O(log tasks) keeps and one that looks at every task does not.

use crate::measure::Samples;
use crate::options::Options;
use crate::simulator::costs;
use crate::subject::one_zone;
use crate::table::{Row, Target, Unit};
use kontig_mm::Memory;
use kontig_profiles::linux;
use kontig_program::{Batch, Op, Outcome, Placement, Program, Region, Value};
use kontig_sim::Machine;
use std::time::Instant;

const CPUS: usize = 80;
/// Turns of one repetition.
const TURNS: u64 = 1 << 19;
/// How far the machine runs between looks at the number of turns, ns.
const STRETCH_NS: u64 = 1_000_000;

/// Advises the kernel of the same page again and again, and sleeps in between.
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

    fn progress(&self) -> f64 {
        0.0
    }
}

/// A machine with so many tasks, each asleep for a time of its own.
fn machine(tasks: usize) -> Machine {
    let memory = Memory::new(&one_zone(1 << 15, CPUS), linux("6.1")).expect("a valid machine");
    let mut machine = Machine::new(memory, costs());
    for task in 0..tasks {
        let sleeper = Sleeper { region: None, sleep_ns: 10_000 + (task as u64 * 37) % 977 };
        machine.spawn(Box::new(sleeper), Placement::Cpu(task % CPUS));
    }
    machine
}

/// Nanoseconds a turn.
fn sample(machine: &mut Machine) -> f64 {
    let (before, started) = (machine.turns(), Instant::now());
    while machine.turns() - before < TURNS {
        machine.run(machine.now() + STRETCH_NS, None).expect("nothing is asked for that there is not");
    }
    started.elapsed().as_nanos() as f64 / (machine.turns() - before) as f64
}

/// The rows: one task, and more against one.
pub fn rows(o: &Options) -> Vec<Row> {
    const ROWS: [(&str, usize, Option<f64>); 3] = [("T1", 1, None), ("T80", 80, Some(4.0)), ("T1000", 1000, Some(6.0))];
    let mut machines = ROWS.map(|(_, tasks, _)| machine(tasks));
    let mut samples = ROWS.map(|_| Vec::new());
    // The first repetition is for warming up.
    for repetition in 0..=o.repetitions() {
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
            ours,
            peer: (tasks > 1).then(|| ("one task".into(), alone.clone())),
            target: limit.map(Target::Ratio),
        }
    });
    rows.collect()
}
