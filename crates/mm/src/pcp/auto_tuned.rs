//! Per-CPU lists whose size follows use: `high` grows while a CPU allocates or frees in bulk, and
//! shrinks again when the zone runs short or the CPU falls idle; refills of single pages double
//! while nothing is freed in between.
//!
//! The zone helps with one bit: below its high mark (`below_high`, set by a failing watermark check
//! and cleared by a give-back that lifts it over again), lists only shrink. Source:
//! kernel-behaviour §2.4, 6.7 and later, §2.6.1.

use super::FREE_FACTOR_MAX;
use crate::gfp::{AllocFlags, Wmark};
use crate::rules::PcpRules;
use crate::state::{Locked, PerCpuPages};
use crate::types::{Order, PAGE_ALLOC_COSTLY_ORDER, ZoneType};

/// `high` never grows beyond the zone's pages over this, shared by its CPUs
/// (MIN_PERCPU_PAGELIST_HIGH_FRACTION).
pub(crate) const HIGH_MAX_FRACTION: u64 = 8;

impl PerCpuPages {
    /// Pages for the next refill, before they are divided into blocks (`nr_pcp_alloc`).
    pub(super) fn pages_to_refill(&mut self, order: Order, below_high: bool) -> u32 {
        let (base, t) = (self.batch, &mut self.tuning);
        self.high = self.high.max(t.high_min).min(t.high_max);
        if self.high < base {
            return 1;
        }
        let mut pages = if order == Order::ZERO { base << t.alloc_factor } else { base };
        if t.high_min != t.high_max && !below_high {
            self.high = (self.high + pages).min(t.high_max);
        }
        if order == Order::ZERO {
            let most = self.high.saturating_sub(self.count + base).max(base);
            if pages <= most && t.alloc_factor < FREE_FACTOR_MAX {
                t.alloc_factor += 1;
            }
            pages = pages.min(most);
        }
        pages
    }

    /// Notes a free of `order`, already counted. True if the lists should be emptied because blocks
    /// of order 1 to 3 are freed in bulk: kept here, they would only fragment.
    #[inline(always)]
    pub(super) fn note_free(&mut self, order: Order, rules: &PcpRules) -> bool {
        let (batch, count, t) = (self.batch, self.count, &mut self.tuning);
        t.alloc_factor >>= 1;
        let high_order = order != Order::ZERO && order <= PAGE_ALLOC_COSTLY_ORDER;
        let kept = if rules.keeps_more_freed_blocks { t.high_min / 2 } else { 0 };
        let free_high = high_order
            && t.prev_free_high_order
            && t.free_count >= batch + kept
            && (!t.free_high_batch || count >= batch);
        t.prev_free_high_order = high_order;
        if t.free_count < batch << FREE_FACTOR_MAX {
            t.free_count += order.pages();
        }
        self.high = self.high.max(t.high_min).min(t.high_max);
        free_high
    }

    /// The limit for this free; moves `high` (`nr_pcp_high`).
    fn limit(&mut self, free_high: bool, reclaim_active: bool, below_high: bool) -> u32 {
        let (batch, high, t) = (self.batch, self.high, &self.tuning);
        if high == 0 {
            return 0;
        }
        let shrunk_by = |pages: u32| high.saturating_sub(pages).max(t.high_min);
        if free_high {
            self.high = shrunk_by(batch << FREE_FACTOR_MAX);
            return 0;
        }
        if reclaim_active {
            self.high = shrunk_by(t.free_count.max(batch));
            return (batch << 2).min(self.high);
        }
        if t.high_min == t.high_max {
            return high;
        }
        if below_high {
            self.high = shrunk_by(t.free_count.max(batch));
            return self.count.max(t.high_min);
        }
        let needed = t.free_count + batch;
        if self.count >= high && high < needed {
            self.high = needed.max(t.high_min).min(t.high_max);
        }
        high
    }

    /// Pages to give back (`nr_pcp_free`).
    fn pages_to_free(&self, limit: u32, free_high: bool) -> u32 {
        let batch = self.batch;
        if free_high {
            return self.count.min(batch << FREE_FACTOR_MAX);
        }
        if limit < batch {
            return 1;
        }
        // At least a batch, unless the limit is so low that less remains.
        let most = limit - batch;
        if self.tuning.free_count >= most { most } else { self.tuning.free_count.max(batch) }
    }

    /// Lowers `high` for a CPU that was idle, and returns the pages to give back
    /// (`decay_pcp_high`).
    fn decayed(&mut self) -> u32 {
        let t = &self.tuning;
        if self.high > t.high_min {
            let kept = self.count.saturating_sub(self.batch << FREE_FACTOR_MAX);
            self.high = kept.max(self.high - (self.high >> 3)).max(t.high_min);
        }
        self.count.saturating_sub(self.high)
    }
}

impl Locked<'_> {
    /// Gives some pages back if a free was one too many.
    #[inline(never)]
    pub(super) fn pcp_overflow_auto_tuned(&mut self, pindex: usize, free_high: bool) {
        let (reclaim_active, below_high) = (self.zone.reclaim_active, self.zone.below_high);
        let pcp = &mut self.zone.pcps[self.cpu];
        let limit = pcp.limit(free_high, reclaim_active, below_high);
        if pcp.count < limit {
            return;
        }
        let left = pcp.pages_to_free(limit, free_high);
        let portion = if self.shared.profile.pcp.gives_back_in_batches { pcp.batch } else { left };
        self.pcp_give_back(left, portion, pindex);
        if self.zone.below_high {
            let (mark, free) = (self.zone.wmark(Wmark::High), self.zone.free_pages);
            let profile = &self.shared.profile;
            let plain = AllocFlags::mark(Wmark::High);
            if self.zone.watermark_ok(Order::ZERO, mark, ZoneType::Movable, plain, free, profile) {
                self.zone.below_high = false;
            }
        }
    }

    /// Gives back `left` pages, `portion` at a time; each portion starts with list `first`.
    fn pcp_give_back(&mut self, mut left: u32, portion: u32, first: usize) {
        while left > 0 && self.zone.pcps[self.cpu].count > 0 {
            let now = left.min(portion);
            self.pcp_free_bulk_rounds(now, first);
            left -= now;
        }
    }

    /// The part of the CPU's once-a-second work that is about its lists: idle ones shrink.
    pub(crate) fn pcp_decay(&mut self) {
        let pcp = &mut self.zone.pcps[self.cpu];
        let (left, portion) = (pcp.decayed(), pcp.batch);
        self.pcp_give_back(left, portion, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::AutoTuning;

    fn lists(high: u32) -> PerCpuPages {
        let tuning = AutoTuning { high_min: 1685, high_max: 64_289, ..AutoTuning::default() };
        PerCpuPages { batch: 63, high, tuning, ..PerCpuPages::new() }
    }

    #[test]
    fn refills_double_while_nothing_is_freed() {
        let mut p = lists(1685);
        let refills: [u32; 7] = core::array::from_fn(|_| p.pages_to_refill(Order::ZERO, false));
        assert_eq!(refills, [63, 126, 252, 504, 1008, 2016, 2016]);
        assert_eq!(p.high, 1685 + 63 + 126 + 252 + 504 + 1008 + 2016 + 2016);
        p.note_free(Order::ZERO, &crate::testing::linux("7.2").pcp);
        assert_eq!(p.pages_to_refill(Order::ZERO, false), 252, "a free halves the factor");
    }

    #[test]
    fn refills_of_larger_blocks_stay_a_batch() {
        let mut p = lists(1685);
        assert_eq!([p.pages_to_refill(Order::new(2), false), p.pages_to_refill(Order::new(2), false)], [63, 63]);
    }

    #[test]
    fn below_the_high_mark_high_does_not_grow_and_frees_shrink_it() {
        let mut p = lists(4000);
        p.pages_to_refill(Order::ZERO, true);
        assert_eq!(p.high, 4000);
        p.count = 10;
        p.limit(false, false, true);
        assert_eq!(p.high, 4000 - 63);
    }

    #[test]
    fn blocks_of_small_orders_that_come_back_in_a_row_are_not_kept() {
        let frees_kept = |profile: &str| {
            let (rules, mut p) = (crate::testing::linux(profile).pcp, lists(1685));
            (0..).take_while(|_| !p.note_free(Order::new(3), &rules)).count()
        };
        // 8 pages each: a batch of 63 is free after 8 of them; half of high_min more after 114.
        assert_eq!([frees_kept("6.12"), frees_kept("7.2")], [8, 114]);
    }

    #[test]
    fn an_idle_cpus_high_decays_by_an_eighth() {
        let mut p = lists(8000);
        p.count = 100;
        assert_eq!((p.decayed(), p.high), (0, 7000));
    }
}
