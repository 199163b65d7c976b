//! Compaction's speed without contents: frames scanned, and pages migrated.

use crate::limit::{PageCopies, Scan};
use crate::measure::{Samples, ns_each};
use crate::options::{Options, size};
use crate::subject::{CPU, Kontig, NODE, Subject};
use crate::table::{Row, Unit};
use kontig_mm::Step;
use kontig_mm::kcompactd::NodeSweep;
use kontig_mm::{Memory, Order, PageFlags, Pfn, Work};
use kontig_mm::{MigrateOutcome, Owner};
use kontig_program::SplitMix64;

/// Tracks every migration in a table, as an address space does.
struct Places(Vec<u32>);

impl Owner for Places {
    fn may_isolate(&mut self, _pfn: Pfn) -> bool {
        true
    }
    #[inline]
    fn migrate(&mut self, _from: Pfn, to: Pfn, page: u32) -> MigrateOutcome {
        self.0[page as usize] = to.get();
        MigrateOutcome::Moved
    }
}

/// Memory half free at random; the rest is movable, or has kernel pages among it.
fn half_free(frames: u32, movable: bool) -> (Memory, Places) {
    let mut machine = Kontig::new(frames);
    let mut held = machine.fill(0);
    let half = held.len() / 2;
    SplitMix64::new(16).choose(&mut held, half);
    let mut places = Places(Vec::new());
    for pfn in held.drain(half..) {
        if movable {
            machine.memory.lru_add(CPU, Pfn::new(pfn), Order::ZERO, PageFlags::ANON);
            machine.memory.set_owner(Pfn::new(pfn), Order::ZERO, places.0.len() as u32);
        }
        places.0.push(pfn);
    }
    held.iter().for_each(|pfn| machine.free(*pfn, 0));
    machine.settle();
    machine.memory.take_work();
    (machine.memory, places)
}

/// `echo 1 > /proc/sys/vm/compact_memory`. Returns the work and its time in ns.
fn sweep(memory: &mut Memory, places: &mut Places) -> (Work, f64) {
    let mut sweep = NodeSweep::new(NODE, CPU, false);
    let ns = ns_each(1, || while sweep.step(memory, places, 1024) == Step::Working {});
    (memory.take_work(), ns)
}

/// Scans frames that cannot be moved, one by one.
fn scanner(o: &Options) -> Row {
    let frames = o.frames(16);
    let (mut memory, mut places) = half_free(frames, false);
    let limit = Scan::new(frames as usize);
    let (mut ours, mut limits) = (Vec::new(), Vec::new());
    for _ in 0..=o.repetitions() {
        let (work, ns) = sweep(&mut memory, &mut places);
        ours.push(ns / (work.migrate_scanned + work.free_scanned) as f64);
        limits.push(limit.sample());
    }
    let (ours, limits) = (Samples::new(ours.split_off(1)), Samples::new(limits.split_off(1)));
    Row {
        number: "S",
        what: format!("compaction scanner, {} = {:.0} M frames/s", size(frames), 1000.0 / ours.median()),
        unit: Unit::Ns,
        ours,
        yardsticks: vec![("one look a byte".into(), limits)],
        target: None,
    }
}

/// Moves half of memory to the other end: both scanners, isolation, migration and free.
fn migrations(o: &Options) -> Row {
    let frames = o.frames(16);
    let (memory, places) = half_free(frames, true);
    let mut limit = PageCopies::new(1 << 16);
    let (mut ours, mut limits) = (Vec::new(), Vec::new());
    for _ in 0..=o.repetitions() {
        let (mut memory, mut places) = (memory.clone(), Places(places.0.clone()));
        let (work, ns) = sweep(&mut memory, &mut places);
        ours.push(ns / work.migrated as f64);
        limits.push(limit.sample(1 << 16));
    }
    let (ours, limits) = (Samples::new(ours.split_off(1)), Samples::new(limits.split_off(1)));
    let each = 1000.0 / ours.median();
    Row {
        number: "M",
        what: format!("migration without contents, scanning and all, {} = {each:.1} M pages/s", size(frames)),
        unit: Unit::Ns,
        ours,
        yardsticks: vec![("copying 4 KiB".into(), limits)],
        target: None,
    }
}

pub fn rows(o: &Options) -> Vec<Row> {
    vec![scanner(o), migrations(o)]
}
