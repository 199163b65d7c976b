//! Rows 13 and F: the speed of the simulated machine in events. An
//! event faults in or unmaps a page.

use crate::limit::Limits;
use crate::measure::{Samples, Stopwatch, ns_each};
use crate::options::{Options, size};
use crate::subject::one_zone;
use crate::table::{Row, Target, Unit};
use kontig_mm::state::Frames;
use kontig_mm::{MachineSpec, Memory};
use kontig_profiles::linux;
use kontig_program::{Batch, Op, Outcome, Placement, Program, Region, SplitMix64, Value};
use kontig_sim::BYTES_PER_PAGE;
use kontig_sim::cost::Costs;
use kontig_sim::{CostModel, Machine};
use kontig_workload::fragmenter::{Fragmenter, Holes};
use std::any::Any;

/// Events in one repetition.
const EVENTS: u32 = 1 << 22;
/// Marks a chosen page to unmap instead of touch.
const UNMAP: u32 = 1 << 31;
/// Number of single pages in a batch.
const BATCH: usize = 256;
/// Pages in a stretch that is touched or unmapped at once.
const STRETCH: u32 = 4096;

/// A process over half of memory: every operation touches a page that is not
/// mapped, or unmaps one that is.
///
/// It reads the host's clock between repetitions, and samples the limit as well. The pages of a
/// repetition are chosen before its clock starts.
#[derive(Clone)]
struct Toucher {
    pages: u32,
    stretches: bool,
    region: Region,
    mapped: Vec<u64>,
    random: SplitMix64,
    /// The single pages of a repetition, with [`UNMAP`] set on those to unmap.
    chosen: Vec<u32>,
    left: u32,
    started: Option<Stopwatch>,
    repetitions: usize,
    limits: Limits,
    ours: Vec<f64>,
    stage: Stage,
}

#[derive(Clone, PartialEq)]
enum Stage {
    Map,
    Fill,
    Events,
    Unmap,
}

impl Toucher {
    fn new(pages: u32, stretches: bool, repetitions: usize) -> Toucher {
        let state = pages as usize * (Frames::BYTES_PER_FRAME + BYTES_PER_PAGE as usize);
        Toucher {
            pages,
            stretches,
            region: Region { mapping: 0, first: 0, pages: 0 },
            mapped: vec![0; pages as usize / 64 + 1],
            random: SplitMix64::new(13),
            chosen: Vec::with_capacity(EVENTS as usize),
            left: EVENTS,
            started: None,
            // The first one warms up.
            repetitions: repetitions + 1,
            // A stretch is in order.
            limits: if stretches { Limits::in_order(state) } else { Limits::random(state) },
            ours: Vec::new(),
            stage: Stage::Map,
        }
    }

    fn at(&self, first: u32, pages: u32) -> Region {
        Region { first, pages, ..self.region }
    }

    fn decide(&mut self, last: &Outcome) -> Option<Op> {
        match self.stage {
            Stage::Map => {
                self.stage = Stage::Fill;
                return Some(Op::Mmap { pages: self.pages });
            }
            Stage::Fill => {
                let Value::Region(region) = last.value else { return None };
                self.region = region;
                self.stage = Stage::Events;
                let half = (self.pages / 2) & !63;
                self.mapped[..half as usize / 64].fill(!0);
                self.left = 0;
                return Some(Op::Touch(self.at(0, half)));
            }
            Stage::Events | Stage::Unmap => {}
        }
        if self.left == 0 && !self.next_repetition() {
            return None;
        }
        if self.stretches {
            self.left -= STRETCH;
            let region = self.at(self.pages - STRETCH, STRETCH);
            if self.stage == Stage::Unmap {
                self.stage = Stage::Events;
                return Some(Op::Munmap(region));
            }
            self.stage = Stage::Unmap;
            return Some(Op::Touch(region));
        }
        self.left -= 1;
        let page = self.chosen[self.left as usize];
        let region = self.at(page & !UNMAP, 1);
        Some(if page & UNMAP == 0 { Op::Touch(region) } else { Op::Munmap(region) })
    }

    /// Chooses the single pages of a repetition, in reverse order.
    fn choose(&mut self) {
        self.chosen.clear();
        for _ in 0..EVENTS {
            let page = self.random.below(self.pages);
            let (word, bit) = (&mut self.mapped[page as usize / 64], 1 << (page % 64));
            *word ^= bit;
            self.chosen.push(if *word & bit != 0 { page } else { page | UNMAP });
        }
        self.chosen.reverse();
    }

    /// Ends a repetition; false after the last.
    fn next_repetition(&mut self) -> bool {
        if let Some(started) = self.started.take() {
            self.ours.push(started.ns() / f64::from(EVENTS));
            self.limits.sample();
        }
        self.left = EVENTS;
        if !self.stretches {
            self.choose();
        }
        self.started = Some(Stopwatch::start());
        self.ours.len() < self.repetitions
    }
}

impl Program for Toucher {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(last) = done.last() else { return };
        let many = if self.stretches || self.stage != Stage::Events { 1 } else { BATCH };
        todo.extend((0..many).map_while(|_| self.decide(last)));
    }

    fn progress(&self) -> f64 {
        self.ours.len() as f64 / self.repetitions as f64
    }
}

/// The costs of the largest machine file. Any would do, they are only summed.
pub(crate) fn costs() -> CostModel {
    let file: toml::Table = include_str!("../../../machines/xeon-1t.toml").parse().expect("a machine file");
    let costs: Costs = file["costs"].clone().try_into().expect("it has costs");
    CostModel::new(&costs)
}

/// The simulated machine: one zone, two CPUs, the rules of 6.1.
pub(crate) fn machine(frames: u32) -> Machine {
    Machine::new(Memory::new(&one_zone(frames, 2), linux("6.1")).expect("a valid machine"), costs())
}

/// The same with LRU lists.
fn reclaiming_machine(frames: u32) -> Machine {
    let spec = MachineSpec { lru: true, ..one_zone(frames, 2) };
    Machine::new(Memory::new(&spec, linux("6.1")).expect("a valid machine"), costs())
}

fn events(
    number: &'static str,
    frames: u32,
    (stretches, reclaims): (bool, bool),
    target: Option<Target>,
    o: &Options,
) -> Row {
    let mut machine = if reclaims { reclaiming_machine(frames) } else { machine(frames) };
    // Leave memory for page tables and watermarks.
    let pages = frames / 10 * 9;
    let program = Toucher::new(pages, stretches, o.repetitions());
    let id = machine.spawn(Box::new(program), Placement::Cpu(0));
    machine.run(u64::MAX / 2, Some(id)).expect("a workload that fits");
    let program = machine.program(id).expect("it was started") as &dyn Any;
    let program: &Toucher = program.downcast_ref().expect("it is a toucher");
    let ours = Samples::new(program.ours[1..].to_vec());
    let millions = 1000.0 / ours.median();
    let what = match (stretches, reclaims) {
        (true, _) => "touch and unmap 16 MiB stretches",
        (false, false) => "touch or unmap random single pages",
        (false, true) => "the same on a machine that reclaims",
    };
    Row {
        number,
        what: format!("simulator, {what}, {} = {millions:.1} M events/s", size(frames)),
        unit: Unit::Ns,
        yardsticks: program.limits.beside(&ours),
        ours,
        target,
    }
}

pub fn event_rows(o: &Options) -> Vec<Row> {
    vec![
        // 10, 5 and 4 million per second.
        events("13", o.frames(64), (false, false), o.target(Target::AtMost(100.0)), o),
        events("13a", o.frames(64), (true, false), None, o),
        events("13b", o.frames(1024), (false, false), o.target(Target::AtMost(200.0)), o),
        events("13c", o.frames(64), (false, true), o.target(Target::AtMost(250.0)), o),
    ]
}

/// Fills memory and makes random holes in it, as experiments begin. Once, since it takes long.
pub fn fragmenting_row(o: &Options) -> Row {
    let frames = o.frames(1024);
    let mut machine = machine(frames);
    let id = machine.spawn(Box::new(Fragmenter::new(Holes::Random, 384, 1)), Placement::Cpu(0));
    let ours = ns_each(frames as usize, || {
        machine.run(u64::MAX / 2, Some(id)).expect("a workload that fits");
    });
    drop(machine);
    let mut limits = Limits::random(frames as usize * Frames::BYTES_PER_FRAME);
    limits.sample();
    let samples = Samples::new(vec![ours]);
    Row {
        number: "F",
        what: format!("fragmenting {}, a page filled and ¾ freed = {:.1} M pages/s", size(frames), 1000.0 / ours),
        unit: Unit::Ns,
        yardsticks: limits.beside(&samples),
        ours: samples,
        target: None,
    }
}
