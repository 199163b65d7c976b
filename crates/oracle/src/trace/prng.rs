//! Random numbers. Name and seed identify a trace, so they are the same on every machine and in
//! every release.

use kontig_program::SplitMix64;

/// The workloads' generator, with the draws that traces need.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.index(n)
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

    /// Puts the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_as_often_as_their_weights_say() {
        let mut r = Random::new(1);
        let n = (0..10_000).filter(|_| r.weighted(&[(true, 3), (false, 1)])).count();
        assert!((7_300..7_700).contains(&n), "{n}");
    }
}
