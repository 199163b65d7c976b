//! Traces that put a node under pressure, each for the sake of one mechanism of reclaim.
//!
//! A trace does not know what reclaim takes: it reads pages that may have gone, and the recording says what was found.

use super::Request;
use super::lru::{Asks, FilePage, LruOp};
use super::prng::Random;
use kontig_mm::Order;

/// The node a trace is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// MiB.
    pub mib: u32,
    /// Whether its first half is of zone DMA32; otherwise all of it is of Normal.
    pub two_zones: bool,
}

/// A trace that can be generated.
#[derive(Debug)]
pub struct Pressure {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, and which rule it is for.
    pub what: &'static str,
    /// How many operations it is meant to have.
    pub ops: usize,
    /// Where it runs.
    pub node: Node,
    /// Pages of the process's memory.
    pub process_pages: u32,
    /// MiB of memory to swap to; 0: no swap.
    pub swap_mib: u32,
    /// What has to be set before it.
    pub sysctls: &'static [(&'static str, &'static str)],
    make: fn(&mut Script),
}

const SMALL: Node = Node { mib: 128, two_zones: false };
/// Pages of such a node that are free at first, about.
const PAGES: u32 = 31_000;
const NO_BOOST: (&str, &str) = ("vm.watermark_boost_factor", "0");

const DIRECT: Request = Request::MOVABLE.with(Request::DIRECT).with(Request::RETRY);
const BOTH: Request = DIRECT.with(Request::KSWAPD);

/// The traces that can be generated.
pub const TRACES: &[Pressure] = &[
    Pressure {
        name: "lru-file",
        what: "page cache read by processes that reclaim themselves: a stream, a hot file and one too large",
        ops: 70_000,
        node: SMALL,
        process_pages: 0,
        swap_mib: 0,
        sysctls: &[NO_BOOST],
        make: |s| files(s, DIRECT),
    },
    Pressure {
        name: "lru-kswapd",
        what: "the same, and kswapd reclaims before they do",
        ops: 70_000,
        node: SMALL,
        process_pages: 0,
        swap_mib: 0,
        sysctls: &[NO_BOOST],
        make: |s| files(s, BOTH),
    },
];

/// The trace of this name.
pub fn find(name: &str) -> Option<&'static Pressure> {
    TRACES.iter().find(|t| t.name == name)
}

impl Pressure {
    /// Its operations for a seed, so many.
    pub fn generate(&self, seed: u64, ops: usize) -> Vec<LruOp> {
        let mut script = Script { random: Random::new(seed), ops: Vec::with_capacity(ops), limit: ops, dumps: 0 };
        (self.make)(&mut script);
        script.ops
    }
}

/// States recorded in between: so many, and that far apart.
const DUMPS: usize = 1;

/// A trace being written.
struct Script {
    random: Random,
    ops: Vec<LruOp>,
    limit: usize,
    dumps: usize,
}

impl Script {
    fn is_full(&self) -> bool {
        self.ops.len() >= self.limit
    }

    fn write(&mut self, op: LruOp) {
        if !self.is_full() && self.dumps < DUMPS && self.ops.len() >= self.limit * (self.dumps + 1) / (DUMPS + 1) {
            self.dumps += 1;
            self.ops.push(LruOp::Dump);
        }
        if !self.is_full() {
            self.ops.push(op);
        }
    }

    fn below(&mut self, n: u32) -> u32 {
        self.random.below(n as usize) as u32
    }

    /// A number below `n`; low ones more often, as some pages of a file are wanted more than others.
    fn skewed(&mut self, n: u32) -> u32 {
        let limit = 1 + self.below(n);
        self.below(limit)
    }

    fn read(&mut self, file: u8, index: u32, request: Request) {
        let page = FilePage { file, index };
        self.write(LruOp::Read { page, order: Order::ZERO, asks: Asks::from(request) });
    }

    fn add(&mut self, file: u8, index: u32, request: Request) {
        let page = FilePage { file, index };
        self.write(LruOp::Add { page, order: Order::ZERO, asks: Asks::from(request) });
    }
}

/// Three files: read once from begin to end with readahead; of which some is wanted again and again; as large as memory.
/// A fourth is there and not read.
fn files(s: &mut Script, request: Request) {
    const STREAM: u8 = 0;
    const HOT: u8 = 1;
    const LARGE: u8 = 2;
    const COLD: u8 = 3;
    // So that less has to be done until memory is full.
    (0..PAGES / 2).for_each(|i| s.add(COLD, i, request));
    let (mut ahead, mut at) = (0, 0);
    while !s.is_full() {
        match s.random.weighted(&[(STREAM, 2), (HOT, 5), (LARGE, 4)]) {
            STREAM => {
                if at == ahead {
                    ahead += 8;
                    (at..ahead).for_each(|i| s.add(STREAM, i, request));
                }
                s.read(STREAM, at, request);
                at += 1;
            }
            HOT => {
                let i = s.skewed(PAGES / 2);
                s.read(HOT, i, request);
            }
            _ => {
                let i = s.below(PAGES);
                s.read(LARGE, i, request);
                if s.random.chance(1, 50) {
                    let index = s.below(PAGES);
                    s.write(LruOp::Truncate { page: FilePage { file: LARGE, index }, order: Order::ZERO });
                }
                if s.random.chance(1, 20) {
                    let index = s.below(PAGES);
                    s.write(LruOp::Touch(FilePage { file: LARGE, index }));
                }
                if s.random.chance(1, 500) {
                    s.write(LruOp::Drain);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_the_operations_asked_for_and_the_same_for_the_same_seed() {
        for t in TRACES {
            let ops = t.generate(3, t.ops);
            assert_eq!(ops.len(), t.ops, "{}", t.name);
            // Not shown where they differ: there are many.
            assert!(ops == t.generate(3, t.ops), "{}", t.name);
            assert!(ops != t.generate(4, t.ops), "{}", t.name);
            assert_eq!(ops.iter().filter(|op| **op == LruOp::Dump).count(), DUMPS, "{}", t.name);
        }
    }
}
