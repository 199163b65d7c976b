//! A zone's memory between compaction runs (kernel-behaviour §5.4, §5.6, §5.9).

use crate::types::{MigrateType, Order, Pfn};

/// A zone's memory between compaction runs.
#[derive(Clone, Debug, Default)]
pub struct ZoneCompaction {
    /// Start of the next run's migration scanner: asynchronous, then synchronous.
    pub cached_migrate_pfn: [Pfn; 2],
    /// Start of the next run's free scanner.
    pub cached_free_pfn: Pfn,
    /// A migration scanner that starts at or below this has covered the whole zone when it meets
    /// the other.
    pub init_migrate_pfn: Pfn,
    /// A free scanner that starts at or above this starts from the top.
    pub init_free_pfn: Pfn,
    /// The scanners of a direct run met, so kswapd will reset the skip hints when it goes to sleep.
    pub blockskip_flush: bool,
    /// Attempts deferred since the last failure.
    pub considered: u32,
    /// 2 to this power attempts are deferred.
    pub defer_shift: u8,
    /// Orders from this one up are deferred.
    pub order_failed: u8,
    pub(crate) capture: Capture,
}

/// A direct compactor's claim on a block that merges to the wanted order while the compactor frees
/// pages (§5.9).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capture {
    pub(crate) wanted: Option<(Order, MigrateType)>,
    pub(crate) page: Option<Pfn>,
}

impl Capture {
    /// Claims the next block of `order` for a request of type `t`.
    pub(crate) fn arm(&mut self, order: Order, t: MigrateType) {
        self.wanted = Some((order, t));
    }
    /// Ends the claim and returns the captured block.
    pub(crate) fn disarm(&mut self) -> Option<Pfn> {
        self.wanted = None;
        self.page.take()
    }
    /// Whether a block has been captured.
    pub(crate) fn has_page(&self) -> bool {
        self.page.is_some()
    }
    /// Whether a block of any order is claimed.
    #[inline(always)]
    pub(crate) fn is_armed(&self) -> bool {
        self.wanted.is_some()
    }
    #[inline(always)]
    pub(crate) fn wants(&self, order: Order) -> bool {
        matches!(self.wanted, Some((wanted, _)) if wanted == order)
    }
}
