//! Nice values, their weights, and virtual runtime: CPU time divided by weight.

/// The weight of a task of nice 0.
const NICE_0: u32 = 1024;

/// The weights of nice −20 to 19 (`sched_prio_to_weight`): each is about 1.25 times the next.
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// A nice value, −20 to 19.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Nice(i8);

impl Nice {
    pub(crate) const ZERO: Nice = Nice(0);

    pub(crate) const MAX: Nice = Nice(19);

    /// Clamps to the nearest valid value.
    #[cfg(test)]
    pub(crate) fn new(nice: i8) -> Nice {
        Nice(nice.clamp(-20, 19))
    }

    pub(crate) fn weight(self) -> u32 {
        WEIGHTS[usize::from((self.0 + 20) as u8)]
    }
}

/// Converts nanoseconds to virtual runtime for this weight.
#[inline]
pub(crate) fn virtual_time(ns: u64, weight: u32) -> i64 {
    if weight == NICE_0 {
        return ns as i64;
    }
    (u128::from(ns) * u128::from(NICE_0) / u128::from(weight)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_nice_is_a_quarter_of_a_cpu_more_or_less() {
        for nice in -20..19 {
            let ratio = f64::from(Nice::new(nice).weight()) / f64::from(Nice::new(nice + 1).weight());
            assert!((1.19..1.29).contains(&ratio), "{nice}: {ratio}");
        }
        assert_eq!((Nice::ZERO.weight(), Nice::MAX.weight(), Nice::new(100).weight()), (NICE_0, 15, 15));
    }
}
