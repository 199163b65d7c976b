//! What a zone remembers between compaction runs (kernel-behaviour §5.4, §5.6, §5.9).

use crate::types::{MigrateType, Order, Pfn};

/// What a zone remembers between compaction runs.
#[derive(Clone, Debug, Default)]
pub struct ZoneCompaction {
    /// Where the next run's migration scanner starts: asynchronous, then synchronous.
    pub cached_migrate_pfn: [Pfn; 2],
    /// Where the next run's free scanner starts.
    pub cached_free_pfn: Pfn,
    /// A migration scanner that starts at or below this has covered the whole zone when it meets the other.
    pub init_migrate_pfn: Pfn,
    /// A free scanner that starts at or above this is at its beginning.
    pub init_free_pfn: Pfn,
    /// A direct run met: kswapd shall reset the skip hints when it goes to sleep.
    pub blockskip_flush: bool,
    /// Attempts put off since the last failure.
    pub considered: u32,
    /// 2 to this power attempts are put off.
    pub defer_shift: u8,
    /// Orders from this one up are put off.
    pub order_failed: u8,
    pub(crate) capture: Capture,
}

/// A direct compactor's claim on a block that merges to the order it wants while it frees pages itself (§5.9).
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
    /// Ends the claim and hands over what it got.
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
