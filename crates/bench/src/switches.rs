//! Rows W: the cost of a context switch when more tasks are runnable than there are CPUs.
//!
//! On 8 CPUs 128 unbound tasks compute. Either each computes for long, so that a switch is the end
//! of a slice; or each computes briefly and sleeps, so that a switch includes a sleep, a wakeup
//! with an enqueue, and a call of the program for its next operation.

use crate::limit::Limits;
use crate::measure::{Samples, Stopwatch};
use crate::options::Options;
use crate::simulator::costs;
use crate::subject::one_zone;
use crate::table::{Row, Target, Unit};
use kontig_mm::Memory;
use kontig_profiles::linux;
use kontig_program::{Batch, Op, Outcome, Placement, Program};
use kontig_sim::Machine;

const CPUS: usize = 8;
const TASKS: u64 = 128;
/// Switches in one repetition.
const SWITCHES: u64 = 1 << 19;

/// Computes and sleeps repeatedly.
#[derive(Clone)]
struct Worker {
    compute_ns: u64,
    sleep_ns: u64,
}

impl Program for Worker {
    fn next(&mut self, _: &[Outcome], todo: &mut Batch) {
        for _ in 0..8 {
            todo.push(Op::Compute(self.compute_ns));
            if self.sleep_ns > 0 {
                todo.push(Op::Sleep(self.sleep_ns));
            }
        }
    }
}

/// A machine whose tasks compute and sleep for these times, each a little longer than the last.
fn machine(compute_ns: u64, sleep_ns: u64) -> Machine {
    let memory = Memory::new(&one_zone(1 << 15, CPUS), linux("6.1")).expect("a valid machine");
    let mut machine = Machine::new(memory, costs());
    for task in 0..TASKS {
        let worker = Worker { compute_ns: compute_ns + 37 * task, sleep_ns };
        machine.spawn(Box::new(worker), Placement::Any);
    }
    machine
}

/// Nanoseconds per switch. The machine runs for `stretch_ns` between two reads of their number.
fn sample(machine: &mut Machine, stretch_ns: u64) -> f64 {
    let (before, started) = (machine.context_switches(), Stopwatch::start());
    while machine.context_switches() - before < SWITCHES {
        machine.run(machine.now() + stretch_ns, None).expect("nothing is asked for that there is not");
    }
    started.ns() / (machine.context_switches() - before) as f64
}

/// The rows: ends of slices, and tasks that sleep and wake.
pub fn rows(o: &Options) -> Vec<Row> {
    type What = (&'static str, &'static str, u64, u64, u64, Option<f64>);
    const ROWS: [What; 2] = [
        ("W", "the end of a slice", 1_000_000_000, 0, 1_000_000_000, Some(100.0)),
        ("Wa", "a task that sleeps, and one that wakes", 10_000, 100_000, 1_000_000, None),
    ];
    let row = |(number, what, compute_ns, sleep_ns, stretch_ns, limit): What| {
        let mut machine = machine(compute_ns, sleep_ns);
        // The first repetition warms up.
        let mut limits = Limits::in_cache();
        let turn = |_| {
            limits.sample();
            sample(&mut machine, stretch_ns)
        };
        let samples: Vec<f64> = (0..=o.repetitions()).map(turn).collect();
        let ours = Samples::new(samples[1..].to_vec());
        let rate = 1000.0 / ours.median();
        Row {
            number,
            what: format!("simulator, {what}, {TASKS} tasks on {CPUS} CPUs = {rate:.1} M/s"),
            unit: Unit::Ns,
            yardsticks: limits.beside(&ours),
            ours,
            target: limit.map(Target::AtMost),
        }
    };
    ROWS.map(row).into()
}
