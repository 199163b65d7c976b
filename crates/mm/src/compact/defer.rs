//! Deferral: after a failure for an order the next attempts are skipped, twice as many after each
//! further failure.
//!
//! Source: kernel-behaviour §5.8. With the shift at its maximum, 63 attempts are skipped and the
//! 64th runs; if a direct run has covered the zone before, that one starts from cleared skip hints.

use crate::event::{Event, Listen};
use crate::state::Locked;
use crate::types::Order;

/// Largest `defer_shift`: every 2^6th attempt still runs.
pub(crate) const COMPACT_MAX_DEFER_SHIFT: u8 = 6;

impl Locked<'_> {
    /// Compaction for `order` failed: defer the next attempts.
    pub(crate) fn defer_compaction(&mut self, order: Order) {
        let c = &mut self.zone.compaction;
        c.considered = 0;
        c.defer_shift = (c.defer_shift + 1).min(COMPACT_MAX_DEFER_SHIFT);
        c.order_failed = c.order_failed.min(order.get());
        self.trace_deferral(order, |at, order, order_failed, consider, limit| Event::DeferCompaction {
            at,
            order,
            order_failed,
            consider,
            limit,
        });
    }

    /// Whether to skip this attempt; counts it.
    pub(crate) fn compaction_deferred(&mut self, order: Order) -> bool {
        let c = &mut self.zone.compaction;
        let limit = 1u32 << c.defer_shift;
        if order.get() < c.order_failed {
            return false;
        }
        c.considered += 1;
        if c.considered >= limit {
            c.considered = limit;
            return false;
        }
        self.trace_deferral(order, |at, order, order_failed, consider, limit| Event::Deferred {
            at,
            order,
            order_failed,
            consider,
            limit,
        });
        true
    }

    /// Compaction for `order` succeeded; with `alloc_success`, the allocation after it did, too,
    /// and the back-off ends.
    pub(crate) fn compaction_defer_reset(&mut self, order: Order, alloc_success: bool) {
        let c = &mut self.zone.compaction;
        if alloc_success {
            c.considered = 0;
            c.defer_shift = 0;
        }
        if order.get() >= c.order_failed {
            c.order_failed = order.get() + 1;
        }
        self.trace_deferral(order, |at, order, order_failed, consider, limit| Event::DeferReset {
            at,
            order,
            order_failed,
            consider,
            limit,
        });
    }

    /// Whether this attempt is the one that runs after the longest back-off.
    pub(crate) fn compaction_restarting(&self, order: Order) -> bool {
        let c = &self.zone.compaction;
        order.get() >= c.order_failed && c.defer_shift == COMPACT_MAX_DEFER_SHIFT && c.considered >= 1 << c.defer_shift
    }

    fn trace_deferral(&mut self, order: Order, event: impl FnOnce(crate::event::At, Order, u8, u32, u32) -> Event) {
        let at = self.zone.at();
        let c = &self.zone.compaction;
        let (order_failed, consider, limit) = (c.order_failed, c.considered, 1 << c.defer_shift);
        self.shared.emit(Listen::COMPACTION, || event(at, order, order_failed, consider, limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{CpuId, ZoneId};

    #[test]
    fn each_failure_doubles_the_attempts_put_off_up_to_sixty_four() {
        let mut m = crate::testing::machine(16);
        let mut z = m.locked(ZoneId::new(0), CpuId::new(0));
        let order = Order::new(9);
        assert!(!z.compaction_deferred(order), "the first attempt is never put off");
        for put_off in [1, 3, 7, 15, 31, 63, 63] {
            z.defer_compaction(order);
            for i in 0..put_off {
                assert!(z.compaction_deferred(order), "attempt {i} of {put_off}");
            }
            assert!(!z.compaction_deferred(order), "after {put_off}");
        }
        assert!(z.compaction_restarting(order));
        z.compaction_defer_reset(order, true);
        assert!(!z.compaction_deferred(order) && !z.compaction_restarting(order));
    }

    #[test]
    fn smaller_orders_than_the_one_that_failed_are_not_put_off() {
        let mut m = crate::testing::machine(16);
        let mut z = m.locked(ZoneId::new(0), CpuId::new(0));
        z.compaction_defer_reset(Order::new(9), true);
        z.defer_compaction(Order::new(4));
        assert!(!z.compaction_deferred(Order::new(3)));
        assert!(z.compaction_deferred(Order::new(4)));
    }
}
