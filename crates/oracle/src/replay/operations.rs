//! Replays allocations and frees. Every block must have the kernel's pfn.
//!
//! A request that the fast path cannot serve takes the slow path with the rights of its flags. The
//! recorded machine has one CPU: daemons that are woken run when the request yields it or is done.

use super::daemons::{self, Beside, Host};
use super::events::{self, Recorded};
use super::request::{self, MOST_STEPS};
use super::{Care, Compared, Moves, Replayed, outcome};
use crate::difference::{At, Difference, Section};
use crate::error::BadRecording;
use crate::recording::{CPU, NODE, Part, Recording, ZONE};
use crate::trace::{BlockId, FAILED, Op, Request, SKIPPED};
use crate::view;
use kontig_mm::{Event, Listen, Memory, MigrateOutcome, Order, Owner, Pfn, Turn};

/// Operations shown before the one that differs, and events shown of it.
const OPS_SHOWN: usize = 8;
const EVENTS_SHOWN: usize = 40;
/// Result of a request that never ends. No pfn has this number.
const ENDLESS: u32 = SKIPPED - 1;

pub(super) fn replay(rec: &Recording, part: Part, care: Care) -> Result<Replayed, BadRecording> {
    let ops = rec.trace()?;
    let results = rec.results(ops.len())?;
    let start = rec.machine(part)?;
    let mut runner = Runner::new(start, &ops, rec.about.kcompactd_is_real_time());
    let untouched = runner.clone();
    // If a sweep follows, the tracepoints belong to it.
    let recorded = if part == Part::Direct || !rec.has("f0.snap") { Recorded::open(rec, part)? } else { None };
    if recorded.is_some() {
        runner.memory.trace().listen(events::LISTEN);
    }
    if let Some(mut d) = runner.run(&ops, &results, care) {
        if let At::Operation(at) = d.at {
            d.around = around(untouched, &ops, &results, at);
        }
        return Ok(Err(d));
    }
    let blocks = ops.iter().zip(&results).filter(|(op, r)| matches!(op, Op::Alloc { .. }) && **r < SKIPPED);
    let mut compared = Compared { operations: ops.len() as u64, pfns: blocks.count() as u64, ..Compared::default() };
    if let Some(recorded) = recorded {
        let engine = runner.memory.trace().take();
        if let Some(d) = recorded.first_difference(&runner.memory, &engine) {
            let from = d.at.saturating_sub(OPS_SHOWN);
            let before = recorded.lines().skip(from).take(d.at - from).map(str::to_string).collect();
            let around = vec![Section::new("the events before it", before)];
            let (kernel, engine) = (d.kernel, d.engine);
            return Ok(Err(Box::new(Difference { at: At::Event(d.at), asked: None, kernel, engine, around })));
        }
        compared.events = recorded.lines().count() as u64;
    }
    Ok(outcome::compare(rec, part, &runner.memory, care)?.map(|end| {
        compared.add(end);
        compared
    }))
}

/// The held blocks and their pfns. Compaction moves those their owner can migrate.
#[derive(Clone)]
struct Held {
    /// By id; [`FAILED`] if not held.
    blocks: Vec<(u32, Order)>,
    moves: Moves,
    beside: Beside,
}

impl Held {
    /// Owner number of a movable page, to find its block; 0 means none.
    fn owner(id: BlockId) -> u32 {
        id.0 + 1
    }
}

impl Host for Held {
    fn beside(&mut self) -> &mut Beside {
        &mut self.beside
    }
}

impl Owner for Held {
    fn is_awaited(&self, m: &Memory) -> bool {
        self.beside.is_awaited(m)
    }
    fn turn(&mut self, m: &mut Memory, turn: Turn) {
        daemons::turn(self, m, turn);
    }
    fn may_isolate(&mut self, pfn: Pfn) -> bool {
        self.moves.may_isolate(pfn)
    }
    fn migrate(&mut self, from: Pfn, to: Pfn, owner: u32) -> MigrateOutcome {
        let block = owner.checked_sub(1).and_then(|id| self.blocks.get_mut(id as usize));
        if let Some(block) = block.filter(|(pfn, _)| *pfn == from.get()) {
            block.0 = to.get();
        }
        self.moves.migrate(from, to, owner)
    }
}

/// A machine that executes a trace.
#[derive(Clone)]
pub struct Runner {
    pub memory: Memory,
    held: Held,
    /// Whether blocks are kept as single pages, as the scanners see them, since they are not
    /// compound.
    loose: bool,
}

impl Runner {
    /// A machine before `ops`. kcompactd runs as soon as it is woken if it is real-time, otherwise
    /// when the scheduler lets it.
    pub fn new(memory: Memory, ops: &[Op], kcompactd_is_real_time: bool) -> Runner {
        let ids = ops.iter().map(|op| op.id().0 as usize + 1).max().unwrap_or(0);
        // This matters only if something may be compacted, or where pairs pass for movable.
        let compacts = |r: &Request| r.has(Request::DIRECT) || r.has(Request::KSWAPD);
        let loose = memory.profile().fallback.pairs_look_movable
            || ops.iter().any(|op| matches!(op, Op::Alloc { request, .. } if compacts(request)));
        let held = Held {
            blocks: vec![(FAILED, Order::ZERO); ids],
            moves: Moves::default(),
            beside: Beside::new(&memory, kcompactd_is_real_time),
        };
        Runner { memory, held, loose }
    }

    /// Executes operations up to the first with another result than the kernel's. Returns its
    /// number and the engine's result.
    pub fn first_difference(&mut self, ops: &[Op], results: &[u32]) -> Option<(usize, u32)> {
        ops.iter().zip(results).enumerate().find_map(|(i, (op, want))| {
            let got = self.carry_out(op);
            (got != *want).then_some((i, got))
        })
    }

    /// The same, with the checker if asked for.
    fn run(&mut self, ops: &[Op], results: &[u32], care: Care) -> Option<Box<Difference>> {
        let chunk = care.check_every.unwrap_or(usize::MAX).max(1);
        let mut done = 0;
        for (some, results) in ops.chunks(chunk).zip(results.chunks(chunk)) {
            if let Some((i, got)) = self.first_difference(some, results) {
                return Some(Box::new(Difference {
                    at: At::Operation(done + i),
                    asked: Some(asked(some[i])),
                    kernel: returned(some[i], results[i]),
                    engine: returned(some[i], got),
                    around: Vec::new(),
                }));
            }
            done += some.len();
            if let (Some(_), Err(e)) = (care.check_every, self.memory.check()) {
                return Some(outcome::contradiction(done - 1, e));
            }
        }
        None
    }

    /// Executes one operation. Returns its result in the form of `res.bin`.
    #[inline(always)]
    pub fn carry_out(&mut self, op: &Op) -> u32 {
        let result = match *op {
            Op::Alloc { id, .. } if self.held.blocks[id.0 as usize].0 != FAILED => SKIPPED,
            Op::Alloc { order, request, id } => match self.memory.alloc(asked_for(order, request)) {
                Ok(pfn) => self.hold(pfn, order, request, id),
                Err(_) => self.alloc_slowly(order, request, id),
            },
            Op::Free { id } => {
                let block = &mut self.held.blocks[id.0 as usize];
                let (pfn, order) = std::mem::replace(block, (FAILED, Order::ZERO));
                if pfn == FAILED {
                    SKIPPED
                } else {
                    if self.loose && order > Order::ZERO {
                        self.memory.join_page(Pfn::new(pfn), order);
                    }
                    self.memory.free(CPU, Pfn::new(pfn), order);
                    pfn
                }
            }
        };
        if self.memory.has_wakes() {
            daemons::run(&mut self.held, &mut self.memory);
        }
        result
    }

    #[inline(always)]
    fn hold(&mut self, pfn: Pfn, order: Order, request: Request, id: BlockId) -> u32 {
        if request.has(Request::OWNED) {
            self.memory.set_movable_ops(pfn);
            self.memory.set_owner(pfn, order, Held::owner(id));
        }
        if self.loose && order > Order::ZERO {
            self.memory.split_page(pfn, order);
        }
        self.held.blocks[id.0 as usize] = (pfn.get(), order);
        pfn.get()
    }

    /// The slow path. Daemons it wakes run when they get the CPU, at the latest after it.
    #[cold]
    fn alloc_slowly(&mut self, order: Order, request: Request, id: BlockId) -> u32 {
        let result = match request::finish(asked_for(order, request), &mut self.memory, &mut self.held) {
            Some(Ok(pfn)) => self.hold(pfn, order, request, id),
            Some(Err(_)) => FAILED,
            None => return ENDLESS,
        };
        daemons::run(&mut self.held, &mut self.memory);
        result
    }
}

/// Translates a trace's request for the allocator.
#[inline(always)]
fn asked_for(order: Order, request: Request) -> kontig_mm::Request {
    kontig_mm::Request::new(CPU, NODE, request.gfp(), order)
}

/// Describes an operation, a request with its gfp flags.
fn asked(op: Op) -> String {
    match op {
        Op::Alloc { request, .. } => format!("{op}: {}", request.gfp()),
        Op::Free { .. } => op.to_string(),
    }
}

fn returned(op: Op, result: u32) -> String {
    match (op, result) {
        (Op::Alloc { .. }, FAILED) => "no block".into(),
        (Op::Alloc { .. }, ENDLESS) => format!("no end: it goes on after {MOST_STEPS} steps"),
        (Op::Alloc { .. }, SKIPPED) => "skipped: the number is taken".into(),
        (Op::Alloc { .. }, pfn) => format!("the block at {pfn:#x}"),
        (Op::Free { .. }, SKIPPED) => "nothing to free".into(),
        (Op::Free { .. }, pfn) => format!("freed {pfn:#x}"),
    }
}

/// Operations before the one that differs, the engine's events in it, and its zone just before. The
/// trace is replayed up to there once more.
fn around(mut runner: Runner, ops: &[Op], results: &[u32], at: usize) -> Vec<Section> {
    ops[..at].iter().for_each(|op| {
        runner.carry_out(op);
    });
    let order = match ops[at] {
        Op::Alloc { order, .. } => order,
        Op::Free { id } => runner.held.blocks[id.0 as usize].1,
    };
    let before = runner.clone();
    runner.memory.trace().take();
    let all = [Listen::EXTFRAG, Listen::COMPACTION, Listen::COMPACTION_DETAIL, Listen::VMSCAN];
    runner.memory.trace().listen(all.into_iter().fold(Listen::KMEM, Listen::with));
    let got = runner.carry_out(&ops[at]);
    let events = runner.memory.trace().take();
    let pfns: Vec<Pfn> = [results[at], got].into_iter().filter(|r| *r < ENDLESS).map(Pfn::new).collect();
    let from = at.saturating_sub(OPS_SHOWN);
    let predecessors = (from..at).map(|i| format!("{i}: {}: {}", ops[i], returned(ops[i], results[i]))).collect();
    let zone = before.memory.zone(ZONE);
    let mut shown: Vec<Order> = order.and_up().collect();
    // Smaller orders show what was split or merged last.
    shown.retain(|o| zone.nr_free(*o) > 0);
    vec![
        Section::new("the operations before it", predecessors),
        Section::new("what the engine did", shown_events(&events)),
        Section::new("the engine's zone before it", view::zone(&before.memory, shown.into_iter(), &pfns)),
    ]
}

fn shown_events(events: &[Event]) -> Vec<String> {
    let mut lines: Vec<String> = events.iter().take(EVENTS_SHOWN).map(Event::to_string).collect();
    if events.len() > EVENTS_SHOWN {
        lines.push(format!("… {} more", events.len() - EVENTS_SHOWN));
    }
    lines
}
