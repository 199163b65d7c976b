//! Replays the compaction of a whole node: ranges scanned, and pages moved, in order.

use super::events::{self, Recorded};
use super::{Care, Compared, Moves, Replayed, outcome};
use crate::difference::{At, Difference, Section};
use crate::error::BadRecording;
use crate::recording::{CPU, NODE, Part, Recording, ZONE};
use crate::view;
use kontig_mm::Step;
use kontig_mm::kcompactd::NodeSweep;
use kontig_mm::state::FrameKind;
use kontig_mm::{Event, Memory, Order, Pfn};
use std::collections::HashSet;

/// Most pageblocks a step visits; the result does not depend on it.
const BUDGET: u64 = 64;
/// Events or migrations shown before the one that differs.
const SHOWN: usize = 8;

pub(super) fn replay(rec: &Recording, proactive: bool, care: Care) -> Result<Replayed, BadRecording> {
    let part = Part::Sweep { proactive };
    let start = rec.machine(part)?;
    let mut sweep = Sweep::new(start.clone(), proactive);
    while sweep.step() {}
    let mut compared = Compared::default();
    if let Some(recorded) = Recorded::open(rec, part)? {
        if let Some(d) = recorded.first_difference(&sweep.memory, &sweep.events) {
            let from = d.at.saturating_sub(SHOWN);
            let before = recorded.lines().skip(from).take(d.at - from).map(str::to_string).collect();
            let state = state_before(start, proactive, |s| events::count(&s.events) > d.at, &d.pfns());
            let around = vec![Section::new("the events before it", before), state];
            let (kernel, engine) = (d.kernel, d.engine);
            return Ok(Err(Box::new(Difference { at: At::Event(d.at), asked: None, kernel, engine, around })));
        }
        compared.events = recorded.lines().count() as u64;
    }
    if rec.has("mig.txt") {
        let want = migrations(rec, start.zone(ZONE).start)?;
        if let Some(d) = first_differing_move(&want, &sweep.moves.0, start, proactive) {
            return Ok(Err(d));
        }
        compared.migrations = want.len() as u64;
    }
    if proactive {
        // The recording continued for seconds with an idle CPU.
        sweep.memory.fold_vmstat(CPU);
    }
    Ok(outcome::compare(rec, part, &sweep.memory, care)?.map(|end| {
        compared.add(end);
        compared
    }))
}

/// A sweep under way, with its events and migrations so far.
struct Sweep {
    memory: Memory,
    sweep: NodeSweep,
    /// For kcompactd: the score it started from.
    proactive: Option<u64>,
    events: Vec<Event>,
    moves: Moves,
}

impl Sweep {
    fn new(mut memory: Memory, proactive: bool) -> Sweep {
        memory.trace().listen(events::LISTEN);
        let sweep = NodeSweep::new(NODE, CPU, proactive);
        let proactive = proactive.then(|| memory.fragmentation_score_node(NODE));
        Sweep { memory, sweep, proactive, events: Vec::new(), moves: Moves::default() }
    }

    /// Advances. Returns false at the end.
    fn step(&mut self) -> bool {
        let done = self.sweep.step(&mut self.memory, &mut self.moves, BUDGET) == Step::Done(());
        self.events.extend(self.memory.trace().take());
        !done || self.again()
    }

    /// kcompactd looks again after half a second. After a pass that lowered the score it goes on
    /// while the score is too high; after one that did not, it waits longer than was recorded.
    fn again(&mut self) -> bool {
        let Some(before) = self.proactive else {
            return false;
        };
        let score = self.memory.fragmentation_score_node(NODE);
        if score >= before || !self.memory.should_proactive_compact_node(NODE) {
            return false;
        }
        self.proactive = Some(score);
        self.sweep = NodeSweep::new(NODE, CPU, true);
        true
    }
}

/// The zone before the step in which a sweep passes a point. The sweep is repeated up to there.
fn state_before(start: Memory, proactive: bool, passed: impl Fn(&Sweep) -> bool, pfns: &[Pfn]) -> Section {
    let mut sweep = Sweep::new(start.clone(), proactive);
    let mut steps = 0;
    while sweep.step() && !passed(&sweep) {
        steps += 1;
    }
    let mut sweep = Sweep::new(start, proactive);
    (0..steps).for_each(|_| {
        sweep.step();
    });
    Section::new("the engine's zone shortly before it", view::zone(&sweep.memory, Order::all(), pfns))
}

/// Indices of migrations of the module's own pages: it logs only these, but a kernel may have user
/// pages, too.
fn of_the_module(moves: &[(Pfn, Pfn)], start: &Memory) -> Vec<usize> {
    let mut moved = HashSet::new();
    let mut is_its_own = |from: &Pfn, to: &Pfn| {
        let own = moved.contains(from) || start.frames().tag(*from).kind() == FrameKind::MovableOps;
        if own {
            moved.insert(*to);
        }
        own
    };
    moves.iter().enumerate().filter_map(|(i, (from, to))| is_its_own(from, to).then_some(i)).collect()
}

/// The first migration that differs from the kernel's.
fn first_differing_move(
    want: &[(Pfn, Pfn)],
    got: &[(Pfn, Pfn)],
    start: Memory,
    proactive: bool,
) -> Option<Box<Difference>> {
    let owned = of_the_module(got, &start);
    let own = |i: usize| owned.get(i).and_then(|i| got.get(*i));
    let at = (0..want.len().max(owned.len())).find(|i| want.get(*i) != own(*i))?;
    let shown = |m: Option<&(Pfn, Pfn)>| m.map_or("no more migrations".into(), |(a, b)| format!("{a} to {b}"));
    let before = (at.saturating_sub(SHOWN)..at).map(|i| shown(want.get(i))).collect();
    let (w, g) = (want.get(at), own(at));
    let pfns: Vec<Pfn> = [w, g].into_iter().flatten().flat_map(|(a, b)| [*a, *b]).collect();
    let reached = owned.get(at).copied().unwrap_or(got.len());
    let state = state_before(start, proactive, |s| s.moves.0.len() > reached, &pfns);
    let around = vec![Section::new("the migrations before it", before), state];
    Some(Box::new(Difference { at: At::Migration(at), asked: None, kernel: shown(w), engine: shown(g), around }))
}

/// Parses `mig.txt`: a line of totals, then source and destination of each migration.
fn migrations(rec: &Recording, zone_start: Pfn) -> Result<Vec<(Pfn, Pfn)>, BadRecording> {
    let pfn = |word: &str| {
        let n = u32::from_str_radix(word, 16).ok()?;
        zone_start.get().checked_add(n).map(Pfn::new)
    };
    let line = |(i, l): (usize, &str)| {
        let pair = l.split_once(' ').and_then(|(a, b)| Some((pfn(a)?, pfn(b.trim())?)));
        let reason = || format!("'{l}' is not two hexadecimal numbers");
        pair.ok_or_else(|| BadRecording::line(rec.path("mig.txt"), i + 1, reason()))
    };
    rec.text("mig.txt")?.lines().enumerate().skip(1).map(line).collect()
}
