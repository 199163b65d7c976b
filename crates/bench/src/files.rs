//! Rows C: the time per page of a file that is found in the page cache; that is read while another
//! is reclaimed for it; and that is written, written back and reclaimed.
//!
//! The machine reads and writes in pieces of 128 KiB, as programs do. Its disk costs host time only
//! for its queue.

use crate::limit::{Limits, Yardstick};
use crate::measure::{Samples, Stopwatch};
use crate::options::Options;
use crate::simulator::costs;
use crate::subject::one_zone;
use crate::table::{Row, Target, Unit};
use kontig_mm::state::{Frames, Lru};
use kontig_mm::{MachineSpec, Memory};
use kontig_profiles::linux;
use kontig_program::{Batch, FileName, Op, OpenFile, Outcome, Placement, Program, Value};
use kontig_sim::{DiskEntry, DiskKind, Machine, MachineFile};

pub(crate) const FILE: FileName = FileName::new(0, 0);
/// Pages read or written at a time.
pub(crate) const PIECE: u32 = 32;
const MEMORY: u32 = 1 << 18;

/// Reads or writes a file from its first page to its last, repeatedly.
#[derive(Clone)]
struct Streamer {
    pages: u32,
    writes: bool,
    at: u32,
    file: Option<OpenFile>,
    /// Pages read or written.
    done: u64,
}

impl Program for Streamer {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        match done.last().map(|last| last.value) {
            Some(Value::File(file)) => self.file = Some(file),
            Some(Value::Pages(_)) => self.done += done.len() as u64 * u64::from(PIECE),
            _ => {}
        }
        let Some(file) = self.file else { return todo.push(Op::Open { name: FILE, create: true }) };
        for _ in 0..8 {
            let first = self.at;
            self.at = (self.at + PIECE) % self.pages;
            todo.push(match self.writes {
                true => Op::Write { file, first, pages: PIECE },
                false => Op::Read { file, first, pages: PIECE },
            });
        }
    }
}

/// A disk of flash.
pub(crate) fn disk() -> DiskEntry {
    DiskEntry {
        name: "nvme0n1".into(),
        kind: DiskKind::Nvme,
        size: "64 GiB".into(),
        filesystem: Default::default(),
        queue_depth: 64,
        nr_requests: None,
        max_sectors_kb: None,
        read_mb_s: 3000.0,
        write_mb_s: 2000.0,
        read_us: Some(80.0),
        write_us: Some(20.0),
        read_iops: Some(500_000.0),
        write_iops: Some(400_000.0),
        rpm: None,
        seek_ms: None,
        track_ms: None,
        source: "the benchmark: no real disk".into(),
    }
}

/// Nanoseconds per page of each repetition; the first one warms up. The yardstick is a line in
/// order.
fn samples(o: &Options, pages: u32, writes: bool) -> (Samples, Vec<Yardstick>) {
    let spec = MachineSpec { lru: true, ..one_zone(MEMORY, 2) };
    let mut machine = Machine::new(Memory::new(&spec, linux("6.1")).expect("a valid machine"), costs());
    let file: MachineFile = toml::from_str(include_str!("../../../machines/xeon-1t.toml")).expect("a machine file");
    machine.attach_disks(&MachineFile { disk: vec![disk()], ..file }).expect("a disk that can be");
    if !writes {
        assert!(machine.lay_file(FILE, pages), "the disk has room for it");
    }
    let program = Streamer { pages, writes, at: 0, file: None, done: 0 };
    let id = machine.spawn(Box::new(program), Placement::Cpu(0));
    let done = |machine: &Machine| {
        let program: &dyn std::any::Any = machine.program(id).expect("it was started");
        program.downcast_ref::<Streamer>().expect("it is a streamer").done
    };
    // Once through memory, to reach the steady state.
    let stretch = |machine: &mut Machine, pages: u64| {
        let before = done(machine);
        let started = Stopwatch::start();
        while done(machine) - before < pages {
            machine.run(machine.now() + 1_000_000, None).expect("it goes on");
        }
        started.ns() / (done(machine) - before) as f64
    };
    stretch(&mut machine, u64::from(pages.max(MEMORY)));
    // Cached reads are fast, so measure more of them.
    let times = if pages < MEMORY { 16 } else { 1 };
    let mut limits = Limits::in_order(MEMORY as usize * (Frames::BYTES_PER_FRAME + Lru::BYTES_PER_FRAME));
    let turn = |_| {
        limits.sample();
        stretch(&mut machine, times * u64::from(MEMORY))
    };
    let samples = Samples::new((0..o.repetitions()).map(turn).collect());
    let yardsticks = limits.beside(&samples);
    (samples, yardsticks)
}

pub fn rows(o: &Options) -> Vec<Row> {
    let row = |number, what: &str, (ours, yardsticks): (Samples, Vec<Yardstick>), target| Row {
        number,
        what: format!("simulator, {what} = {:.1} M pages/s", 1000.0 / ours.median()),
        unit: Unit::Ns,
        ours,
        yardsticks,
        target,
    };
    vec![
        row("C", "a page of a file found in memory", samples(o, MEMORY / 2, false), Some(Target::AtMost(100.0))),
        row(
            "Ca",
            "a page read, and another reclaimed for it",
            samples(o, 4 * MEMORY, false),
            o.target(Target::AtMost(150.0)),
        ),
        row("Cb", "a page written, written back and reclaimed", samples(o, 4 * MEMORY, true), None),
    ]
}
