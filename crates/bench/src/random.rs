//! Random numbers and random orders, the same on every machine.

use kontig_program::SplitMix64;

/// The generator of the workloads, and what the streams draw from it.
#[derive(Clone)]
pub struct Random(SplitMix64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        self.0.below(n)
    }

    /// Brings the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u32 + 1) as usize);
        }
    }

    /// Moves `n` items chosen at random to the front, in random order; the others follow in any order.
    pub fn choose<T>(&mut self, items: &mut [T], n: usize) {
        for i in 0..n.min(items.len()) {
            items.swap(i, i + self.below((items.len() - i) as u32) as usize);
        }
    }
}
