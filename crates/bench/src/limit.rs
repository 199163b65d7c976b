//! Limits of the machine itself: yardsticks for rows without a peer.

use crate::measure::ns_each;
use kontig_program::SplitMix64;
use std::hint::black_box;

const PAGE: usize = 4096;

/// Eight-byte updates at random places of a table: the least memory traffic of a simulated event.
#[derive(Clone)]
pub struct RandomUpdates {
    table: Vec<u64>,
    random: SplitMix64,
}

impl RandomUpdates {
    /// Allocates and touches the memory.
    pub fn new(bytes: usize) -> RandomUpdates {
        RandomUpdates { table: vec![1; bytes.max(8) / 8], random: SplitMix64::new(1) }
    }

    /// Nanoseconds per update. Each place depends on the previous read,
    /// as events depend on each other.
    pub fn sample(&mut self, n: usize) -> f64 {
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

/// Writes an array from first to last: the lower bound for setting the state of a run of pages.
#[derive(Clone)]
pub struct SequentialWrites {
    bytes: Vec<u8>,
    last: u8,
}

impl SequentialWrites {
    /// Allocates and touches the memory.
    pub fn new(bytes: usize) -> SequentialWrites {
        SequentialWrites { bytes: vec![1; bytes], last: 1 }
    }

    /// Nanoseconds for each of `n` equal parts.
    pub fn sample(&mut self, n: usize) -> f64 {
        self.last = self.last.wrapping_add(1);
        ns_each(n, || {
            self.bytes.fill(self.last);
            black_box(&self.bytes);
        })
    }
}
