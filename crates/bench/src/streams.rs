//! The allocator's streams of operations: rows 1 to 8 and 10.
//!
//! A stream is prepared once for each subject and then run repeatedly; every run restores the state
//! it found. The operations of a run are chosen before the clock starts.

use crate::limit::Limits;
use crate::measure::{Stopwatch, clock_ns, ns_each};
use crate::options::{Options, size};
use crate::subject::{Contender, Subject};
use crate::table::{Target, Unit};
use kontig_mm::state::Frames;
use kontig_program::SplitMix64;
use kontig_text::grouped;
use std::hint::black_box;
use std::time::Instant;

/// A subject prepared for a stream.
pub struct Prepared<S> {
    contender: Contender<S>,
    pub subject: S,
    /// The blocks it has allocated.
    pub held: Vec<u32>,
    /// A stream's position in `held`.
    at: usize,
    /// Draws the same choices for all subjects.
    pub random: SplitMix64,
}

/// One figure of a stream's runs.
pub struct Figure {
    pub number: &'static str,
    /// Description, with the size of the machine.
    pub what: String,
    pub unit: Unit,
    /// The target that does not depend on the peer.
    pub limit: Option<f64>,
    /// Targets as multiples of these peers.
    pub against: Against,
}

/// Peers, by the start of their names, with the ratio to reach.
pub type Against = &'static [(&'static str, f64)];

impl Figure {
    fn ns(number: &'static str, what: String, against: Against) -> Figure {
        Figure { number, what, unit: Unit::Ns, limit: None, against }
    }

    /// The target beside this peer.
    pub fn target(&self, peer: &str) -> Option<Target> {
        let ratio = self.against.iter().find(|(name, _)| peer.starts_with(name));
        self.limit.map(Target::AtMost).or(ratio.map(|(_, ratio)| Target::Ratio(*ratio)))
    }
}

/// A stream of operations.
pub trait Stream {
    /// The figures of a run.
    fn figures(&self) -> Vec<Figure>;
    /// The limits of the machine for them.
    fn limits(&self) -> Limits;
    /// Makes and prepares a subject.
    fn prepare<S: Subject>(&self, contender: &Contender<S>) -> Prepared<S>;
    /// Runs once, and returns a value for each figure.
    fn run<S: Subject>(&self, p: &mut Prepared<S>) -> Vec<f64>;
}

/// Bytes that the engine keeps for these frames.
fn state(frames: u32) -> usize {
    frames as usize * Frames::BYTES_PER_FRAME
}

fn fresh<S: Subject>(contender: &Contender<S>, frames: u32) -> Prepared<S> {
    Prepared {
        contender: contender.clone(),
        subject: contender.make(frames),
        held: Vec::new(),
        at: 0,
        random: SplitMix64::new(u64::from(frames)),
    }
}

/// Allocates half of all frames singly.
fn half_full<S: Subject>(contender: &Contender<S>, frames: u32) -> Prepared<S> {
    let mut p = fresh(contender, frames);
    p.held.extend((0..frames / 2).map_while(|_| p.subject.alloc(0)));
    p
}

/// Allocates all frames singly.
fn full<S: Subject>(contender: &Contender<S>, frames: u32) -> Prepared<S> {
    let mut p = fresh(contender, frames);
    p.held = p.subject.fill(0);
    p
}

/// Rows 1 and 4: a block allocated and freed repeatedly, with half of memory in use.
pub struct Pair {
    pub number: &'static str,
    pub frames: u32,
    pub order: u8,
    pub against: Against,
}

impl Stream for Pair {
    fn figures(&self) -> Vec<Figure> {
        let what = format!("order-{} allocate + free pair, {}", self.order, size(self.frames));
        vec![Figure::ns(self.number, what, self.against)]
    }
    fn limits(&self) -> Limits {
        Limits::in_cache()
    }
    fn prepare<S: Subject>(&self, contender: &Contender<S>) -> Prepared<S> {
        half_full(contender, self.frames)
    }
    fn run<S: Subject>(&self, p: &mut Prepared<S>) -> Vec<f64> {
        const N: usize = 1_000_000;
        // The order is a constant in the caller, as in a fault handler.
        fn pairs<S: Subject, const ORDER: u8>(s: &mut S) -> f64 {
            ns_each(N, || {
                for _ in 0..N {
                    let pfn = s.alloc(ORDER).expect("half of memory is free");
                    s.free(black_box(pfn), ORDER);
                }
            })
        }
        vec![if self.order == 0 { pairs::<S, 0>(&mut p.subject) } else { pairs::<S, 9>(&mut p.subject) }]
    }
}

/// Row 2: half of memory allocated singly, then freed in reverse.
pub struct Bulk {
    pub frames: u32,
}

impl Stream for Bulk {
    fn figures(&self) -> Vec<Figure> {
        let of =
            |n, what, against| Figure::ns(n, format!("order-0 bulk {what}, half of {}", size(self.frames)), against);
        let sum = of("2", "allocate + LIFO free, sum", &[("LLFree", 0.4)]);
        vec![sum, of("2a", "allocate", &[]), of("2b", "LIFO free", &[])]
    }
    fn limits(&self) -> Limits {
        Limits::in_order(state(self.frames))
    }
    fn prepare<S: Subject>(&self, contender: &Contender<S>) -> Prepared<S> {
        let mut p = fresh(contender, self.frames);
        p.held.reserve(self.frames as usize);
        p
    }
    fn run<S: Subject>(&self, p: &mut Prepared<S>) -> Vec<f64> {
        let n = self.frames as usize / 2;
        let taken = ns_each(n, || p.held.extend((0..n).map_while(|_| p.subject.alloc(0))));
        let given = ns_each(n, || p.held.drain(..).rev().for_each(|pfn| p.subject.free(pfn, 0)));
        vec![taken + given, taken, given]
    }
}

/// Row 3: single frames freed in random order, from full memory.
pub struct RandomFree {
    pub number: &'static str,
    pub frames: u32,
    /// How many frames are freed.
    pub count: u32,
    /// Whether the allocator is told all of them at once.
    pub listed: bool,
    pub against: Against,
}

impl Stream for RandomFree {
    fn figures(&self) -> Vec<Figure> {
        let of = if self.count == self.frames { "all".into() } else { size(self.count) };
        let listed = if self.listed { ", known ahead" } else { "" };
        let what = format!("order-0 free in random order{listed}, {of} of {}", size(self.frames));
        vec![Figure::ns(self.number, what, self.against)]
    }
    fn limits(&self) -> Limits {
        Limits::random(state(self.frames))
    }
    fn prepare<S: Subject>(&self, contender: &Contender<S>) -> Prepared<S> {
        // In pageblocks, then split: a terabyte of single frames would
        // take the slower subject a minute.
        let mut p = fresh(contender, self.frames);
        p.held.reserve_exact(self.frames as usize);
        while let Some(pfn) = p.subject.alloc_last(9) {
            p.subject.split(pfn, 9);
            p.held.extend(pfn..pfn + 512);
        }
        p
    }
    fn run<S: Subject>(&self, p: &mut Prepared<S>) -> Vec<f64> {
        let n = (self.count as usize).min(p.held.len());
        p.random.choose(&mut p.held, n);
        let freed = ns_each(n, || match self.listed {
            true => p.subject.free_all(&p.held[..n]),
            false => p.held[..n].iter().for_each(|pfn| p.subject.free(*pfn, 0)),
        });
        p.subject.settle();
        p.held[..n].copy_from_slice(&p.subject.fill(0));
        vec![freed]
    }
}

/// Row 5: all of memory allocated in huge blocks.
pub struct HugeFill {
    pub frames: u32,
}

impl Stream for HugeFill {
    fn figures(&self) -> Vec<Figure> {
        let slope = format!("the same, last eighth over first, {}", size(self.frames));
        let slope = Figure { unit: Unit::Times, limit: Some(1.5), ..Figure::ns("5a", slope, &[]) };
        let mean = format!("order-9 allocate, all of {}, mean", size(self.frames));
        vec![Figure::ns("5", mean, &[("LLFree t4", 0.05), ("LLFree t32", 0.5)]), slope]
    }
    fn limits(&self) -> Limits {
        Limits::in_order(state(self.frames))
    }
    fn prepare<S: Subject>(&self, contender: &Contender<S>) -> Prepared<S> {
        let mut p = fresh(contender, self.frames);
        p.held.reserve(self.frames as usize / 512);
        p
    }
    fn run<S: Subject>(&self, p: &mut Prepared<S>) -> Vec<f64> {
        let each = self.frames as usize / 512 / 8;
        let eighths: Vec<f64> =
            (0..8).map(|_| ns_each(each, || p.held.extend((0..each).map_while(|_| p.subject.alloc_last(9))))).collect();
        assert_eq!(p.held.len(), 8 * each, "all of memory was free");
        p.held.drain(..).for_each(|pfn| p.subject.free(pfn, 9));
        p.subject.settle();
        vec![eighths.iter().sum::<f64>() / 8.0, eighths[7] / eighths[0]]
    }
}

/// Row 6: the only free frame, somewhere, is allocated.
pub struct OneFree {
    pub frames: u32,
}

impl Stream for OneFree {
    fn figures(&self) -> Vec<Figure> {
        let what = format!("order-0 allocate, one frame free in {}, on no CPU's list", size(self.frames));
        vec![Figure::ns("6", what, &[("LLFree", 0.05)])]
    }
    fn limits(&self) -> Limits {
        Limits::random(state(self.frames))
    }
    fn prepare<S: Subject>(&self, contender: &Contender<S>) -> Prepared<S> {
        full(contender, self.frames)
    }
    fn run<S: Subject>(&self, p: &mut Prepared<S>) -> Vec<f64> {
        const N: usize = 2_000;
        let clock = clock_ns();
        let mut total = 0.0;
        for _ in 0..N {
            let i = p.random.below(p.held.len() as u32) as usize;
            p.subject.free(p.held[i], 0);
            p.subject.settle();
            let start = Instant::now();
            let pfn = p.subject.alloc(0);
            total += (start.elapsed().as_nanos() as f64 - clock).max(0.0);
            p.held[i] = pfn.expect("a frame is free");
        }
        vec![total / N as f64]
    }
}

/// Row 7: an allocation that fails because nothing is free.
pub struct Failing {
    pub frames: u32,
}

impl Stream for Failing {
    fn figures(&self) -> Vec<Figure> {
        let what = format!("order-0 allocate that fails, slow path included, {}", size(self.frames));
        vec![Figure::ns("7", what, &[("LLFree", 0.02)])]
    }
    fn limits(&self) -> Limits {
        Limits::in_cache()
    }
    fn prepare<S: Subject>(&self, contender: &Contender<S>) -> Prepared<S> {
        full(contender, self.frames)
    }
    fn run<S: Subject>(&self, p: &mut Prepared<S>) -> Vec<f64> {
        const N: usize = 20_000;
        let failed = ns_each(N, || (0..N).for_each(|_| assert!(p.subject.alloc(0).is_none())));
        vec![failed]
    }
}

/// Row 8: half of memory free at random; random frames are freed and as many allocated, repeatedly.
pub struct Churn {
    pub number: &'static str,
    pub frames: u32,
    /// How many are freed before as many are allocated. One stays within a CPU's list; thousands
    /// reach the free lists.
    pub batch: usize,
    pub against: Against,
}

impl Stream for Churn {
    fn figures(&self) -> Vec<Figure> {
        let batch = if self.batch == 1 { String::new() } else { format!(", {} at a time", grouped(self.batch)) };
        let what = format!("churn pair, 50 % free at random, {}{batch}", size(self.frames));
        vec![Figure::ns(self.number, what, self.against)]
    }
    fn limits(&self) -> Limits {
        Limits::random(state(self.frames))
    }
    fn prepare<S: Subject>(&self, contender: &Contender<S>) -> Prepared<S> {
        let mut p = full(contender, self.frames);
        p.random.shuffle(&mut p.held);
        let half = p.held.len() / 2;
        p.held.drain(..half).for_each(|pfn| p.subject.free(pfn, 0));
        p.subject.settle();
        p
    }
    fn run<S: Subject>(&self, p: &mut Prepared<S>) -> Vec<f64> {
        let n = p.held.len().min(1 << 19);
        // `held` is in random order, so that freeing in its order is
        // random and the choice is not timed.
        if p.at + n > p.held.len() {
            p.random.shuffle(&mut p.held);
            p.at = 0;
        }
        let held = &mut p.held[p.at..p.at + n];
        p.at += n;
        vec![ns_each(n, || {
            for batch in held.chunks_mut(self.batch) {
                batch.iter().for_each(|pfn| p.subject.free(*pfn, 0));
                batch.iter_mut().for_each(|pfn| *pfn = p.subject.alloc(0).expect("half of memory is free"));
            }
        })]
    }
}

/// Row 10: making a machine, all of its memory free.
pub struct Init {
    pub frames: u32,
}

impl Stream for Init {
    fn figures(&self) -> Vec<Figure> {
        let figure = Figure::ns("10", format!("init of {}", size(self.frames)), &[]);
        vec![Figure { unit: Unit::Ms, limit: Some(100.0), ..figure }]
    }
    fn limits(&self) -> Limits {
        Limits::clearing(self.frames as usize)
    }
    fn prepare<S: Subject>(&self, contender: &Contender<S>) -> Prepared<S> {
        fresh(contender, 1 << 18)
    }
    fn run<S: Subject>(&self, p: &mut Prepared<S>) -> Vec<f64> {
        let start = Stopwatch::start();
        p.subject = p.contender.make(black_box(self.frames));
        let ms = start.ns() / 1e6;
        p.subject = p.contender.make(1 << 18);
        vec![ms]
    }
}

/// Visits each stream in turn.
pub trait Visit {
    fn stream(&mut self, numbers: &[&str], text: &str, stream: &impl Stream);
}

/// Visits all streams, at the sizes of these options.
pub fn each(o: &Options, visit: &mut impl Visit) {
    let (small, medium, large) = (o.frames(4), o.frames(64), o.frames(1024));
    let some = 1 << 20;
    let pair = |number, order, against| Pair { number, frames: small, order, against };
    visit.stream(&["1"], "pair", &pair("1", 0, &[("LLFree", 0.3)]));
    visit.stream(&["2", "2a", "2b"], "bulk", &Bulk { frames: small });
    let against: Against = &[("BSA", 0.2), ("LLFree", 2.0)];
    let of_all = RandomFree { number: "3", frames: small, count: small, listed: false, against };
    visit.stream(&["3"], "random order", &of_all);
    let random = |number, frames: u32, listed, against| {
        let count = some.min(frames / 4);
        RandomFree { number, frames, count, listed, against }
    };
    visit.stream(&["3a"], "random order", &random("3a", medium, false, &[]));
    visit.stream(&["3b"], "random order", &random("3b", large, false, &[("LLFree", 2.0)]));
    visit.stream(&["3c"], "random order", &random("3c", medium, true, &[]));
    visit.stream(&["4"], "pair", &pair("4", 9, &[("LLFree", 1.0)]));
    visit.stream(&["5", "5a"], "order-9", &HugeFill { frames: large });
    visit.stream(&["6"], "one frame free", &OneFree { frames: medium });
    visit.stream(&["7"], "fails", &Failing { frames: medium });
    let churn = |number, frames, batch, against| Churn { number, frames, batch, against };
    visit.stream(&["8"], "churn", &churn("8", small, 1, &[("LLFree", 0.5)]));
    visit.stream(&["8a"], "churn", &churn("8a", medium, 1, &[("LLFree t4", 0.15), ("LLFree t32", 1.0)]));
    visit.stream(&["8b"], "churn", &churn("8b", medium, 64, &[("LLFree t4", 0.1), ("LLFree t32", 1.0)]));
    visit.stream(&["8c"], "churn", &churn("8c", medium, 1 << 10, &[]));
    visit.stream(&["8d"], "churn", &churn("8d", medium, 1 << 16, &[("LLFree t4", 0.5), ("LLFree t32", 1.0)]));
    visit.stream(&["10"], "init", &Init { frames: large });
}
