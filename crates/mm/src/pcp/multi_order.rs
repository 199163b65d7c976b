//! Per-CPU lists of orders 0 to 3 and of huge pages: consecutive frees give back ever more, one
//! list after the other.
//!
//! Source: kernel-behaviour §2.4 (5.13–6.6; how lists are emptied, later too).

use super::{FREE_FACTOR_MAX, order_of};
use crate::state::{Locked, NR_LISTS};
use crate::types::{Order, PAGE_ALLOC_COSTLY_ORDER};

impl Locked<'_> {
    /// Gives some pages back if a free was one too many.
    pub(super) fn pcp_overflow_multi_order(&mut self, order: Order, pindex: usize) {
        let reclaim_active = self.zone.reclaim_active;
        let pcp = &mut self.zone.pcps[self.cpu];
        let free_high = pcp.free_factor != 0 && order != Order::ZERO && order <= PAGE_ALLOC_COSTLY_ORDER;
        let high = match (pcp.high == 0 || free_high, reclaim_active) {
            (true, _) => 0,
            (false, true) => (pcp.batch << 2).min(pcp.high),
            (false, false) => pcp.high,
        };
        if pcp.count < high {
            return;
        }
        let n = if free_high {
            pcp.count
        } else if high < pcp.batch {
            1
        } else {
            let (at_least, at_most) = (pcp.batch, high - pcp.batch);
            let n = pcp.batch << pcp.free_factor;
            if n < at_most && pcp.free_factor < FREE_FACTOR_MAX {
                pcp.free_factor += 1;
            }
            n.max(at_least).min(at_most)
        };
        self.pcp_free_bulk_rounds(n, pindex);
    }

    /// Gives back at least `count` pages, emptying one list after the other from `first` on.
    pub(super) fn pcp_free_bulk_rounds(&mut self, count: u32, first: usize) {
        self.count_lock();
        let mut left = i64::from(count.min(self.zone.pcps[self.cpu].count));
        let mut list = first;
        while left > 0 {
            let order = order_of(list);
            while left > 0 {
                match self.pcp_drain_some(list, order, left as u32) {
                    0 => break,
                    pages => left -= i64::from(pages),
                }
            }
            list = (list + 1) % NR_LISTS;
        }
    }
}
