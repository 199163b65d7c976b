//! Rows 9d and 9e: host memory per page of a simulated machine, everything included.
//!
//! The machine has LRU lists, a disk and swap. Nine tenths of its pages are a process's, faulted in
//! one by one in an order that no page table can compress; or they belong to a file that was read.

use crate::files::{FILE, PIECE, disk};
use crate::measure::Samples;
use crate::metadata::{STRUCT_PAGE, in_memory};
use crate::options::{Options, size};
use crate::simulator::costs;
use crate::subject::one_zone;
use crate::table::{Row, Target, Unit};
use kontig_mm::{MachineSpec, Memory};
use kontig_profiles::linux;
use kontig_program::{Batch, Op, OpenFile, Outcome, Placement, Program, Region, Value};
use kontig_sim::machine_file::SwapEntry;
use kontig_sim::{Machine, MachineFile};

/// Faults in every page of a mapping, each far from the previous one.
#[derive(Clone)]
struct Scatterer {
    pages: u32,
    region: Option<Region>,
    left: u32,
    at: u32,
}

/// A prime, so that the stride reaches every page of a mapping whose length it does not divide.
const STRIDE: u32 = 1_000_003;

impl Program for Scatterer {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(region) = self.region else {
            match done.last().map(|last| last.value) {
                Some(Value::Region(region)) => self.region = Some(region),
                _ => return todo.push(Op::Mmap { pages: self.pages }),
            }
            return self.next(done, todo);
        };
        for _ in 0..self.left.min(256) {
            todo.push(Op::Touch(Region { first: self.at, pages: 1, ..region }));
            self.at = ((u64::from(self.at) + u64::from(STRIDE)) % u64::from(self.pages)) as u32;
            self.left -= 1;
        }
    }
}

/// Reads a whole file once.
#[derive(Clone)]
struct Reader {
    pages: u32,
    at: u32,
    file: Option<OpenFile>,
}

impl Program for Reader {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if let Some(Value::File(file)) = done.last().map(|last| last.value) {
            self.file = Some(file);
        }
        let Some(file) = self.file else { return todo.push(Op::Open { name: FILE, create: false }) };
        for _ in 0..8 {
            if self.at < self.pages {
                todo.push(Op::Read { file, first: self.at, pages: PIECE });
                self.at += PIECE;
            }
        }
    }
}

/// Host bytes per page of a machine once its program is done.
fn bytes(frames: u32, pages: u32, program: Box<dyn Program>) -> f64 {
    let before = in_memory();
    let spec = MachineSpec { lru: true, ..one_zone(frames, 2) };
    let mut machine = Machine::new(Memory::new(&spec, linux("6.1")).expect("a valid machine"), costs());
    let file: MachineFile = toml::from_str(include_str!("../../../machines/xeon-1t.toml")).expect("a machine file");
    let swap = Some(SwapEntry { disk: disk().name, size: "1 GiB".into() });
    machine.attach_disks(&MachineFile { disk: vec![disk()], swap, ..file }).expect("a disk that can be");
    assert!(machine.lay_file(FILE, pages), "the disk has room for it");
    let id = machine.spawn(program, Placement::Cpu(0));
    machine.run(u64::MAX / 2, Some(id)).expect("a workload that fits");
    (in_memory() - before) / f64::from(frames)
}

pub fn rows(o: &Options) -> Vec<Row> {
    let frames = o.frames(32);
    let pages = frames / 10 * 9 / PIECE * PIECE;
    let row = |number, of: &str, most, program| Row {
        number,
        what: format!("host memory a page all told, {} full of {of}", size(frames)),
        unit: Unit::Bytes,
        ours: Samples::new(vec![bytes(frames, pages, program)]),
        yardsticks: vec![("struct page".into(), Samples::new(vec![STRUCT_PAGE]))],
        target: o.target(Target::AtMost(most)),
    };
    vec![
        row("9d", "a process's pages", 16.0, Box::new(Scatterer { pages, region: None, left: pages, at: 0 })),
        row("9e", "a file's pages", 22.0, Box::new(Reader { pages, at: 0, file: None })),
    ]
}
