//! Rows U: the time per page to touch a run of pages, to unmap it whole, and to unmap holes in it.
//!
//! The process maps nine tenths of memory and does all three in every pass, each in a new mapping.
//! The first pass does not count: the host clears its own memory for it. The holes of a pass are
//! chosen before its clock starts, as a fragmenter does: three quarters of every 2 MiB, at random.
//!
//! The yardstick is memory's bandwidth: a cache line written in order, in an array as large as the
//! state of all these pages.

use crate::limit::Limits;
use crate::measure::{Samples, Stopwatch};
use crate::options::{Options, size};
use crate::simulator::machine;
use crate::table::{Row, Target, Unit};
use kontig_mm::state::Frames;
use kontig_mm::types::HPAGE_PMD_NR;
use kontig_program::{Batch, Op, Outcome, Placement, Program, Region, SplitMix64, Value};
use std::any::Any;

/// Pages in 2 MiB, and how many of them are unmapped.
const SECTION: u32 = HPAGE_PMD_NR;
const FREED: u32 = 384;
/// Number of holes in a batch.
const BATCH: usize = 256;

/// The stages of a pass, in order.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Map,
    Touch,
    Unmap,
    /// Not timed: the mapping for the holes.
    MapAgain,
    TouchAgain,
    Holes,
    /// Not timed: the pages left between the holes.
    UnmapRest,
}

/// One process, and its times.
#[derive(Clone)]
struct Runs {
    pages: u32,
    region: Region,
    random: SplitMix64,
    holes: Vec<Region>,
    at: usize,
    stage: Stage,
    passes_left: usize,
    started: Option<Stopwatch>,
    /// Nanoseconds per page of touching, unmapping whole and unmapping holes, for each pass.
    taken: [Vec<f64>; 3],
    limits: Limits,
}

impl Runs {
    fn new(pages: u32, repetitions: usize) -> Runs {
        Runs {
            pages,
            region: Region { mapping: 0, first: 0, pages: 0 },
            random: SplitMix64::new(17),
            holes: Vec::new(),
            at: 0,
            stage: Stage::Map,
            // The first one warms up.
            passes_left: repetitions + 1,
            started: None,
            taken: [const { Vec::new() }; 3],
            limits: Limits::in_order(pages as usize * Frames::BYTES_PER_FRAME),
        }
    }

    /// Chooses the holes of all sections, first to last.
    fn choose(&mut self) {
        self.holes.clear();
        for section in (0..self.pages).step_by(SECTION as usize) {
            let mut left = FREED;
            for i in 0..SECTION {
                // Selection sampling: exactly FREED pages of a section are chosen.
                if self.random.below(SECTION - i) >= left {
                    continue;
                }
                left -= 1;
                let first = section + i;
                match self.holes.last_mut() {
                    Some(hole) if hole.first + hole.pages == first && i > 0 => hole.pages += 1,
                    _ => self.holes.push(Region { first, pages: 1, ..self.region }),
                }
            }
        }
        self.at = 0;
    }

    /// Stops the clock and keeps the time per page.
    fn took(&mut self, what: usize, pages: u32) {
        if let Some(started) = self.started.take() {
            self.taken[what].push(started.ns() / f64::from(pages));
        }
    }

    /// Unmapping the whole run ends the mapping, so each stage needs a new one.
    fn map(&mut self, stage: Stage, todo: &mut Batch) {
        self.stage = stage;
        todo.push(Op::Mmap { pages: self.pages });
    }

    /// One operation on the whole region, timed or not.
    fn whole(&mut self, stage: Stage, op: fn(Region) -> Op, timed: bool, todo: &mut Batch) {
        self.stage = stage;
        todo.push(op(self.region));
        self.started = timed.then(Stopwatch::start);
    }
}

impl Program for Runs {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if let Some(Value::Region(region)) = done.last().map(|o| o.value) {
            self.region = region;
        }
        match self.stage {
            Stage::Map if self.region.pages == 0 => self.map(Stage::Map, todo),
            Stage::Map => self.whole(Stage::Touch, Op::Touch, true, todo),
            Stage::Touch => {
                self.took(0, self.pages);
                self.whole(Stage::Unmap, Op::Munmap, true, todo);
            }
            Stage::Unmap => {
                self.took(1, self.pages);
                self.map(Stage::MapAgain, todo);
            }
            Stage::MapAgain => {
                self.choose();
                self.whole(Stage::TouchAgain, Op::Touch, false, todo);
            }
            Stage::TouchAgain | Stage::Holes => {
                if self.stage == Stage::TouchAgain {
                    self.stage = Stage::Holes;
                    self.started = Some(Stopwatch::start());
                }
                let batch = &self.holes[self.at..self.holes.len().min(self.at + BATCH)];
                todo.extend(batch.iter().map(|hole| Op::Munmap(*hole)));
                self.at += batch.len();
                if batch.is_empty() {
                    self.took(2, self.pages / SECTION * FREED);
                    self.limits.sample();
                    self.whole(Stage::UnmapRest, Op::Munmap, false, todo);
                }
            }
            Stage::UnmapRest => {
                self.passes_left -= 1;
                if self.passes_left > 0 {
                    self.map(Stage::Map, todo);
                }
            }
        }
    }
}

pub fn rows(o: &Options) -> Vec<Row> {
    let frames = o.frames(64);
    let mut machine = machine(frames);
    // Leave memory for page tables and watermarks.
    let pages = frames / 10 * 9 / SECTION * SECTION;
    let id = machine.spawn(Box::new(Runs::new(pages, o.repetitions())), Placement::Cpu(0));
    machine.run(u64::MAX / 2, Some(id)).expect("a workload that fits");
    let program = machine.program(id).expect("it was started") as &dyn Any;
    let program: &Runs = program.downcast_ref().expect("it is what was started");
    let row = |number, what: &str, i: usize, target| {
        let ours = Samples::new(program.taken[i][1..].to_vec());
        Row {
            number,
            what: format!("simulator, {what}, a page of {}", size(frames)),
            unit: Unit::Ns,
            yardsticks: program.limits.beside(&ours),
            ours,
            target,
        }
    };
    vec![
        row("U", "a run touched once", 0, o.target(Target::AtMost(35.0))),
        row("Ua", "a run unmapped whole", 1, o.target(Target::AtMost(28.0))),
        row("Ub", "random holes unmapped, ¾ of every 2 MiB", 2, None),
    ]
}
