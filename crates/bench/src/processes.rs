//! Rows P: the time per page of a small process that is forked, touches its
//! memory and exits, again and again.
//!
//! A parent with a mapping forks a child, which writes to part of it and exits; the parent waits
//! for it. Pages that the parent has not touched are zeroed for the child, others are copied. The
//! time per page includes its share of fork and exit.

use crate::limit::{Limits, Yardstick};
use crate::measure::{Samples, Stopwatch};
use crate::options::Options;
use crate::simulator::costs;
use crate::subject::one_zone;
use crate::table::{Row, Target, Unit};
use kontig_mm::state::Frames;
use kontig_mm::{MachineSpec, Memory};
use kontig_profiles::linux;
use kontig_program::{Batch, Op, Outcome, Placement, Program, Region, Value};
use kontig_sim::Machine;
use std::any::Any;

/// Pages a child touches: 4 MiB, as a shell or a compiler's driver does.
const PAGES: u32 = 1024;
/// Children in a sample.
const CHILDREN: u32 = 2000;

/// Touches the mapping inherited from its parent, and exits.
#[derive(Clone)]
struct Child {
    region: Region,
    begun: bool,
}

impl Program for Child {
    fn next(&mut self, _: &[Outcome], todo: &mut Batch) {
        if !std::mem::replace(&mut self.begun, true) {
            todo.push(Op::Touch(self.region));
        }
    }
}

/// Forks children one after the other.
#[derive(Clone)]
struct Parent {
    /// Whether the parent has touched its memory.
    has_touched: bool,
    /// Whether children exit without touching anything.
    children_are_idle: bool,
    region: Option<Region>,
    left: u32,
    started: Option<Stopwatch>,
    /// Nanoseconds per page of each sample.
    samples: Vec<f64>,
    wanted: usize,
    limits: Limits,
}

impl Program for Parent {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(region) = self.region else {
            match done.last().map(|last| last.value) {
                Some(Value::Region(region)) => {
                    self.region = Some(region);
                    // At least one page, so that there is a page table to copy.
                    todo.push(Op::Touch(Region { pages: if self.has_touched { PAGES } else { 1 }, ..region }));
                }
                _ => todo.push(Op::Mmap { pages: PAGES }),
            }
            return;
        };
        if self.left == 0 {
            if let Some(started) = self.started.take() {
                let pages = f64::from(PAGES) * f64::from(CHILDREN);
                self.samples.push(started.ns() / pages);
                self.limits.sample();
            }
            if self.samples.len() == self.wanted {
                return;
            }
            (self.left, self.started) = (CHILDREN, Some(Stopwatch::start()));
        }
        self.left -= 1;
        todo.extend([Op::Fork(Box::new(Child { region, begun: self.children_are_idle })), Op::WaitAny]);
    }

    fn progress(&self) -> f64 {
        self.samples.len() as f64 / self.wanted as f64
    }
}

/// Nanoseconds per page of the children, or per child if they are idle; and the yardsticks: a line
/// in order for a page, an update in the cache for a child.
fn samples(has_touched: bool, children_are_idle: bool, reclaims: bool, o: &Options) -> (Samples, Vec<Yardstick>) {
    let spec = MachineSpec { lru: reclaims, ..one_zone(1 << 18, 2) };
    let mut machine = Machine::new(Memory::new(&spec, linux("6.1")).expect("a valid machine"), costs());
    let state = PAGES as usize * Frames::BYTES_PER_FRAME;
    let limits = if children_are_idle { Limits::in_cache() } else { Limits::in_order(state) };
    let samples = Vec::new();
    // The first one warms up.
    let wanted = o.repetitions() + 1;
    let (region, left, started) = (None, 0, None);
    let parent = Parent { has_touched, children_are_idle, region, left, started, samples, wanted, limits };
    let id = machine.spawn(Box::new(parent), Placement::Cpu(0));
    machine.run(u64::MAX / 2, Some(id)).expect("a workload that fits");
    let program = machine.program(id).expect("it was started") as &dyn Any;
    let parent: &Parent = program.downcast_ref().expect("it is the parent");
    let of_child = if children_are_idle { f64::from(PAGES) } else { 1.0 };
    let samples = Samples::new(parent.samples[1..].iter().map(|ns| ns * of_child).collect());
    let yardsticks = parent.limits.beside(&samples);
    (samples, yardsticks)
}

fn row(number: &'static str, what: &str, has_touched: bool, reclaims: bool, o: &Options) -> Row {
    let (ours, yardsticks) = samples(has_touched, false, reclaims, o);
    Row {
        number,
        what: format!("simulator, {what} = {:.1} M fault+free/s", 1000.0 / ours.median()),
        unit: Unit::Ns,
        ours,
        yardsticks,
        target: Some(Target::AtMost(40.0)),
    }
}

/// The row of fork, exit and wait.
fn fork_row(o: &Options) -> Row {
    let (ours, yardsticks) = samples(false, true, true, o);
    Row {
        number: "Pc",
        what: format!("simulator, fork, exit and wait = {:.2} M/s", 1000.0 / ours.median()),
        unit: Unit::Ns,
        ours,
        yardsticks,
        target: None,
    }
}

pub fn rows(o: &Options) -> Vec<Row> {
    vec![
        row("P", "fork, touch 4 MiB, exit", false, false, o),
        row("Pa", "the same of pages that are copied", true, false, o),
        row("Pb", "the same on a machine that reclaims", false, true, o),
        fork_row(o),
    ]
}
