//! Per-CPU lists of single pages: a full list gives back a batch, from the types in turn.
//!
//! Source: kernel-behaviour §2.4 (up to 5.12).

use crate::state::Locked;
use crate::types::{MigrateType, Order};

impl Locked<'_> {
    /// Gives some pages back if a free was one too many.
    pub(super) fn pcp_overflow_order_zero(&mut self) {
        let pcp = &self.zone.pcps[self.cpu];
        if pcp.count >= pcp.high {
            self.pcp_free_bulk_shares(pcp.batch);
        }
    }

    /// Gives back `count` pages: lists in turn, each visit taking one page more for every list
    /// found empty.
    pub(super) fn pcp_free_bulk_shares(&mut self, count: u32) {
        self.count_lock();
        self.zone.pages_scanned = 0;
        let mut left = count.min(self.zone.pcps[self.cpu].count);
        // From one type's list to that of the next.
        let step = if self.shared.profile.pcp.reclaimable_before_movable { MigrateType::PCP_TYPES - 1 } else { 1 };
        let (mut list, mut share) = (0, 0);
        while left > 0 {
            loop {
                share += 1;
                list = (list + step) % MigrateType::PCP_TYPES;
                if !self.zone.pcps[self.cpu].lists[list].is_empty() {
                    break;
                }
            }
            if share == MigrateType::PCP_TYPES as u32 {
                share = left;
            }
            while left > 0 && share > 0 {
                match self.pcp_drain_some(list, Order::ZERO, left.min(share)) {
                    0 => break,
                    pages => {
                        left -= pages;
                        share -= pages;
                    }
                }
            }
        }
    }
}
