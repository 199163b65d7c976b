//! Limits of the machine itself, as yardsticks where no peer does the same thing.

use crate::measure::ns_each;
use kontig_program::SplitMix64;
use std::hint::black_box;

const PAGE: usize = 4096;

/// Eight-byte updates at random places of a table: no simulator can do an event in less memory traffic than one.
#[derive(Clone)]
pub struct RandomUpdates {
    table: Vec<u64>,
    random: SplitMix64,
}

impl RandomUpdates {
    /// A table of so many bytes, all of it touched.
    pub fn new(bytes: usize) -> RandomUpdates {
        RandomUpdates { table: vec![1; bytes.max(8) / 8], random: SplitMix64::new(1) }
    }

    /// Nanoseconds an update. Each place depends on what was read at the last, as one event does on another.
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

/// Copies of single pages from random to random places: what moving a page takes at least.
pub struct PageCopies {
    memory: Vec<u8>,
    random: SplitMix64,
}

impl PageCopies {
    /// Within so many pages, all touched.
    pub fn new(pages: usize) -> PageCopies {
        PageCopies { memory: vec![1; pages * PAGE], random: SplitMix64::new(2) }
    }

    /// Nanoseconds a copy.
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

/// One look at every byte of an array: what going over all frames takes at least, a byte each.
pub struct Scan {
    bytes: Vec<u8>,
}

impl Scan {
    /// Over so many bytes, all touched.
    pub fn new(bytes: usize) -> Scan {
        Scan { bytes: vec![1; bytes] }
    }

    /// Nanoseconds a byte.
    pub fn sample(&self) -> f64 {
        ns_each(self.bytes.len(), || {
            let blocks = self.bytes.chunks(512).map(|b| b.iter().filter(|t| **t >> 4 == 6).count());
            black_box(blocks.sum::<usize>());
        })
    }
}

/// Writes to all of an array, first to last: what setting the state of a run of pages takes at least.
#[derive(Clone)]
pub struct SequentialWrites {
    bytes: Vec<u8>,
    last: u8,
}

impl SequentialWrites {
    /// To so many bytes, all touched.
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
