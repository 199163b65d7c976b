//! The randomness of workloads: a small generator whose numbers are the same on every machine.

/// splitmix64 (Steele, Lea and Flood, 2014): 64 bits of state, every seed is good.
#[derive(Clone, Debug, Default)]
pub struct SplitMix64 {
    state: u64,
}

/// 2⁶⁴ divided by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// The generator of this seed.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }
    /// Draws the next 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// The next number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        self.index(n as usize) as u32
    }
    /// The next number below `len`; 0 if `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        ((u128::from(self.next_u64()) * len as u128) >> 64) as usize
    }
    /// Puts the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }
    /// Moves `n` random items to the front, in random order; the others follow in no particular
    /// order.
    pub fn choose<T>(&mut self, items: &mut [T], n: usize) {
        for i in 0..n.min(items.len()) {
            items.swap(i, i + self.index(items.len() - i));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first numbers of seed 1234567, as the generator's test vectors give them.
        let mut random = SplitMix64::new(1_234_567);
        let first = [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_below_a_bound_reach_all_of_it() {
        let mut random = SplitMix64::new(7);
        let mut seen = [0u32; 10];
        (0..10_000).for_each(|_| seen[random.below(10) as usize] += 1);
        assert!(seen.iter().all(|n| (900..1100).contains(n)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
