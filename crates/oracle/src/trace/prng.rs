//! Random numbers, the same on every machine and in every release: traces are known by name and seed.

/// The splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// True in `n` of `of` cases.
    pub fn chance(&mut self, n: usize, of: usize) -> bool {
        self.below(of) < n
    }

    /// One of these, each as likely as the weight beside it.
    pub fn weighted<T: Copy>(&mut self, choices: &[(T, usize)]) -> T {
        let mut at = self.below(choices.iter().map(|(_, w)| w).sum());
        for (choice, weight) in choices {
            match at.checked_sub(*weight) {
                None => return *choice,
                Some(rest) => at = rest,
            }
        }
        unreachable!("the place is below the sum of the weights")
    }

    /// Brings the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        let mut r = Random::new(1_234_567);
        assert_eq!([r.bits(), r.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn choices_come_as_often_as_their_weights_say() {
        let mut r = Random::new(1);
        let n = (0..10_000).filter(|_| r.weighted(&[(true, 3), (false, 1)])).count();
        assert!((7_300..7_700).contains(&n), "{n}");
    }
}
