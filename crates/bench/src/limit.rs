//! Limits of the machine itself: yardsticks for rows without a peer.
//!
//! An operation that finds its data in a cache is measured against an update there; one that works
//! through memory in order, against memory's bandwidth; one that goes to random places, against
//! three random updates: each place known only after the update before, as events depend on each
//! other; all places known; and all places prefetched, the least that memory allows.

use crate::measure::{Samples, ns_each};
use kontig_mm::prefetch;
use kontig_program::SplitMix64;
use std::hint::black_box;

const PAGE: usize = 4096;
const LINE: usize = 64;
/// A table that the smallest cache of any CPU holds.
const CACHED: usize = 16 << 10;
/// Updates of a sample.
const UPDATES: usize = 1 << 18;
/// Bytes that a sample writes at least.
const WRITTEN: usize = 16 << 20;

/// A yardstick's name, and its samples.
pub type Yardstick = (String, Samples);

/// Limits of one kind, sampled by turns with the rows that they belong to.
#[derive(Clone)]
pub struct Limits {
    kind: Kind,
    samples: Vec<Vec<f64>>,
}

#[derive(Clone)]
enum Kind {
    InCache(RandomUpdates),
    Random(RandomUpdates),
    InOrder(SequentialWrites),
    Clearing(usize),
}

impl Limits {
    fn new(kind: Kind) -> Limits {
        let mut limits = Limits { kind, samples: Vec::new() };
        // It touches memory for the first time.
        limits.sample();
        limits
    }

    /// An update of a table in the cache, ns.
    pub fn in_cache() -> Limits {
        Limits::new(Kind::InCache(RandomUpdates::new(CACHED)))
    }

    /// Random updates of a table as large as the rows' state, ns each.
    pub fn random(bytes: usize) -> Limits {
        Limits::new(Kind::Random(RandomUpdates::new(bytes)))
    }

    /// A cache line written in order, in an array as large as the rows' state, ns.
    pub fn in_order(bytes: usize) -> Limits {
        Limits::new(Kind::InOrder(SequentialWrites::new(bytes)))
    }

    /// Getting this much memory from the host and writing it, ms.
    pub fn clearing(bytes: usize) -> Limits {
        Limits::new(Kind::Clearing(bytes))
    }

    /// Takes a sample of each.
    pub fn sample(&mut self) {
        self.samples.push(match &mut self.kind {
            Kind::InCache(updates) => vec![updates.dependent(UPDATES)],
            Kind::Random(updates) => {
                vec![updates.dependent(UPDATES), updates.independent(UPDATES), updates.prefetched(UPDATES)]
            }
            Kind::InOrder(writes) => vec![writes.sample()],
            Kind::Clearing(bytes) => vec![ns_each(1_000_000, || drop(black_box(vec![1u8; *bytes])))],
        });
    }

    /// The yardsticks of a row: the last samples, as many as it has.
    pub fn beside(&self, ours: &Samples) -> Vec<Yardstick> {
        let names: &[&str] = match self.kind {
            Kind::InCache(_) => &["update in the cache"],
            Kind::Random(_) => &["random update", "independent one", "prefetched one"],
            Kind::InOrder(_) => &["line in order"],
            Kind::Clearing(_) => &["writing as much"],
        };
        let samples = &self.samples[self.samples.len().saturating_sub(ours.count())..];
        let of = |i: usize| Samples::new(samples.iter().map(|sample| sample[i]).collect());
        names.iter().enumerate().map(|(i, name)| (name.to_string(), of(i))).collect()
    }
}

/// Eight-byte updates at random places of a table.
#[derive(Clone)]
struct RandomUpdates {
    table: Vec<u64>,
    random: SplitMix64,
}

impl RandomUpdates {
    /// Allocates and touches the memory.
    fn new(bytes: usize) -> RandomUpdates {
        RandomUpdates { table: vec![1; bytes.max(8) / 8], random: SplitMix64::new(1) }
    }

    /// Nanoseconds per update. Each place depends on the word read before.
    fn dependent(&mut self, n: usize) -> f64 {
        let len = self.table.len() as u32;
        ns_each(n, || {
            let mut last = 0;
            for _ in 0..n {
                let at = self.random.below(len) ^ (last as u32 & 1);
                let word = &mut self.table[(at % len) as usize];
                *word = word.wrapping_add(2);
                last = *word;
            }
            black_box(last);
        })
    }

    /// Nanoseconds per update. A CPU begins as many at once as it can look ahead.
    fn independent(&mut self, n: usize) -> f64 {
        let len = self.table.len() as u32;
        ns_each(n, || {
            for _ in 0..n {
                let word = &mut self.table[self.random.below(len) as usize];
                *word = word.wrapping_add(2);
            }
            black_box(&self.table);
        })
    }

    /// Nanoseconds per update of a place prefetched some updates before.
    fn prefetched(&mut self, n: usize) -> f64 {
        const AHEAD: usize = 32;
        let len = self.table.len() as u32;
        let mut to_come = [0; AHEAD];
        to_come.iter_mut().for_each(|at| *at = self.random.below(len));
        ns_each(n, || {
            for i in 0..n {
                let at = std::mem::replace(&mut to_come[i % AHEAD], self.random.below(len));
                prefetch(&self.table[to_come[i % AHEAD] as usize]);
                let word = &mut self.table[at as usize];
                *word = word.wrapping_add(2);
            }
            black_box(&self.table);
        })
    }
}

/// Copies of single pages between random places: the lower bound for migrating a page.
pub struct PageCopies {
    memory: Vec<u8>,
    random: SplitMix64,
}

impl PageCopies {
    /// Allocates and touches the memory.
    pub fn new(pages: usize) -> PageCopies {
        PageCopies { memory: vec![1; pages * PAGE], random: SplitMix64::new(2) }
    }

    /// Nanoseconds per page copied.
    pub fn sample(&mut self, n: usize) -> f64 {
        let half = (self.memory.len() / PAGE / 2) as u32;
        let (from, to) = self.memory.split_at_mut(half as usize * PAGE);
        ns_each(n, || {
            for _ in 0..n {
                let (a, b) = (self.random.below(half) as usize * PAGE, self.random.below(half) as usize * PAGE);
                to[b..b + PAGE].copy_from_slice(&from[a..a + PAGE]);
            }
            black_box(&to);
        })
    }
}

/// Reads every byte of an array once: the lower bound for scanning all frames, at a byte each.
pub struct Scan {
    bytes: Vec<u8>,
}

impl Scan {
    /// Allocates and touches the memory.
    pub fn new(bytes: usize) -> Scan {
        Scan { bytes: vec![1; bytes] }
    }

    /// Nanoseconds per byte read.
    pub fn sample(&self) -> f64 {
        ns_each(self.bytes.len(), || {
            let blocks = self.bytes.chunks(512).map(|b| b.iter().filter(|t| **t >> 4 == 6).count());
            black_box(blocks.sum::<usize>());
        })
    }
}

/// Writes an array from first to last: memory's bandwidth.
#[derive(Clone)]
struct SequentialWrites {
    bytes: Vec<u8>,
    last: u8,
}

impl SequentialWrites {
    /// Allocates and touches the memory.
    fn new(bytes: usize) -> SequentialWrites {
        SequentialWrites { bytes: vec![1; bytes.max(LINE)], last: 1 }
    }

    /// Nanoseconds per cache line.
    fn sample(&mut self) -> f64 {
        let times = (WRITTEN / self.bytes.len()).max(1);
        ns_each(times * (self.bytes.len() / LINE), || {
            for _ in 0..times {
                self.last = self.last.wrapping_add(1);
                self.bytes.fill(self.last);
                black_box(&self.bytes);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_as_many_samples_beside_it_as_of_its_own() {
        for mut limits in [Limits::in_cache(), Limits::random(1 << 16), Limits::in_order(1 << 16), Limits::clearing(9)]
        {
            (0..3).for_each(|_| limits.sample());
            for (name, samples) in limits.beside(&Samples::new(vec![1.0; 3])) {
                assert_eq!(samples.count(), 3, "{name}");
                assert!(samples.min() > 0.0, "{name}");
            }
        }
    }

    #[test]
    fn random_updates_are_measured_in_three_ways() {
        let names = Limits::random(1 << 16).beside(&Samples::new(vec![1.0]));
        assert_eq!(names.len(), 3);
    }
}
