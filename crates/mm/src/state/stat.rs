//! Counters of which each CPU keeps a part, so that counting takes no shared cache line.
//!
//! A part is folded into the total when it passes a threshold; readers of the total miss what is
//! still in the parts. Reclaim decides by totals, so the engine keeps the parts to decide alike.
//! Source: kernel-behaviour §1.6.

use super::Table;
use crate::types::CpuId;

/// A set of `N` counters.
#[derive(Clone, Debug)]
pub struct Stats<const N: usize> {
    totals: [i64; N],
    parts: Table<CpuId, [i8; N]>,
}

impl<const N: usize> Stats<N> {
    pub(crate) fn new(cpus: usize) -> Stats<N> {
        Stats { totals: [0; N], parts: (0..cpus).map(|_| [0; N]).collect() }
    }

    /// Adds to a counter through a CPU's part of it.
    #[inline(always)]
    pub(crate) fn add(&mut self, item: usize, cpu: CpuId, delta: i64, threshold: i64) {
        let part = &mut self.parts[cpu][item];
        let sum = i64::from(*part) + delta;
        if sum.abs() > threshold {
            self.totals[item] += sum;
            *part = 0;
        } else {
            *part = sum as i8;
        }
    }

    /// Adds or subtracts one at a time through a CPU's part of a counter, as that many calls of
    /// [`Stats::add`].
    #[inline]
    pub(crate) fn add_singly(&mut self, item: usize, cpu: CpuId, delta: i64, threshold: i64) {
        let (mut count, sign) = (delta.abs(), delta.signum());
        // The threshold may have been lowered since the part was counted.
        while count > 0 && i64::from(self.parts[cpu][item].unsigned_abs()) > threshold {
            self.add(item, cpu, sign, threshold);
            count -= 1;
        }
        let part = &mut self.parts[cpu][item];
        let delta = sign * count;
        let period = threshold + 1;
        // Calls until this part is folded in for the first time.
        let first = period - sign * i64::from(*part);
        if count < first {
            *part = (i64::from(*part) + delta) as i8;
        } else {
            let folds = 1 + (count - first) / period;
            *part = (sign * ((count - first) % period)) as i8;
            self.totals[item] += sign * folds * period;
        }
    }

    /// The number of subtractions of one through a CPU's part, up to and with the one that folds it
    /// in.
    #[inline]
    pub(crate) fn until_folded(&self, item: usize, cpu: CpuId, threshold: i64) -> u32 {
        let part = i64::from(self.parts[cpu][item]);
        // The threshold may have been lowered since the part was counted.
        if (part - 1).abs() > threshold { 1 } else { (threshold + 1 + part) as u32 }
    }

    /// Adds one through a CPU's part of a counter as `inc_node_page_state` does: it folds in half
    /// the threshold more than the part, so that the next fold is further off.
    pub(crate) fn increment(&mut self, item: usize, cpu: CpuId, threshold: i64) {
        let part = &mut self.parts[cpu][item];
        let sum = i64::from(*part) + 1;
        if sum > threshold {
            self.totals[item] += sum + threshold / 2;
            *part = -(threshold / 2) as i8;
        } else {
            *part = sum as i8;
        }
    }

    /// Adds to a counter whose parts are never read.
    #[inline(always)]
    pub(crate) fn add_to_total(&mut self, item: usize, delta: i64) {
        self.totals[item] += delta;
    }

    /// The counter as readers see it: without the parts that CPUs keep.
    #[inline(always)]
    pub(crate) fn get(&self, item: usize) -> u64 {
        self.totals[item].max(0) as u64
    }

    /// The total, which can be negative because of the parts that CPUs keep.
    pub(crate) fn total(&self, item: usize) -> i64 {
        self.totals[item]
    }

    /// The counter, with every CPU's part folded in.
    pub(crate) fn exact(&self, item: usize) -> i64 {
        self.totals[item] + self.parts.iter().map(|p| i64::from(p[item])).sum::<i64>()
    }

    /// The largest part of any counter that a CPU keeps, of either sign.
    pub(crate) fn largest_part(&self) -> i64 {
        self.parts.iter().flatten().map(|part| i64::from(part.unsigned_abs())).max().unwrap_or(0)
    }

    /// A CPU's part of a counter, not yet folded in.
    pub(crate) fn part(&self, item: usize, cpu: CpuId) -> i64 {
        i64::from(self.parts[cpu][item])
    }

    /// Folds a CPU's parts into the totals. Returns whether there were any.
    pub(crate) fn fold(&mut self, cpu: CpuId) -> bool {
        let mut any = false;
        for (total, part) in self.totals.iter_mut().zip(&mut self.parts[cpu]) {
            any |= *part != 0;
            *total += i64::from(core::mem::take(part));
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn many_at_once_are_as_many_one_by_one(
            counts in proptest::collection::vec(-300i64..300, 1..20),
            threshold in 1i64..125,
            lowered in 1i64..125,
        ) {
            let cpu = CpuId::new(0);
            let (mut singly, mut at_once): (Stats<1>, Stats<1>) = (Stats::new(1), Stats::new(1));
            let half = counts.len() / 2;
            for (i, count) in counts.into_iter().enumerate() {
                let threshold = if i < half { threshold } else { threshold.min(lowered) };
                let taken = -count.min(0) as u32;
                let until = singly.until_folded(0, cpu, threshold);
                let before = singly.total(0);
                for i in 1..=count.abs() {
                    singly.add(0, cpu, count.signum(), threshold);
                    let folded = singly.total(0) != before;
                    let is_due = i == i64::from(until);
                    prop_assert!(count > 0 || i > i64::from(until) || folded == is_due, "{taken} taken");
                }
                at_once.add_singly(0, cpu, count, threshold);
                prop_assert_eq!((singly.total(0), singly.exact(0)), (at_once.total(0), at_once.exact(0)));
            }
        }
    }

    #[test]
    fn a_part_just_above_a_lowered_threshold_is_not_folded_in_by_a_subtraction() {
        let mut s: Stats<1> = Stats::new(1);
        let cpu = CpuId::new(0);
        s.add(0, cpu, 59, 120);
        let until = s.until_folded(0, cpu, 58);
        for _ in 1..until {
            s.add(0, cpu, -1, 58);
        }
        assert_eq!((until, s.total(0)), (118, 0));
        s.add(0, cpu, -1, 58);
        assert_eq!(s.total(0), -59, "with the last");
    }

    #[test]
    fn a_part_is_folded_in_when_it_passes_the_threshold() {
        let mut s: Stats<1> = Stats::new(2);
        let cpu = CpuId::new(1);
        s.add(0, cpu, 8, 8);
        assert_eq!((s.get(0), s.exact(0)), (0, 8));
        s.add(0, cpu, 1, 8);
        assert_eq!((s.get(0), s.exact(0)), (9, 9));
        s.add(0, cpu, -3, 8);
        assert_eq!((s.get(0), s.exact(0)), (9, 6));
        s.fold(cpu);
        assert_eq!(s.get(0), 6);
    }
}
