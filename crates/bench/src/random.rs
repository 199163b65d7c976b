//! Random numbers and random orders, the same on every machine.

/// The splitmix64 generator.
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u32
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
