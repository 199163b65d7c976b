//! One CPU's lists of free blocks in one zone, as the allocator keeps them. `crate::pcp` has their
//! use.

use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, Pfn};
use alloc::collections::VecDeque;

/// Lists per CPU and zone: three types for each of the orders 0–3, and two for huge pages.
pub(crate) const NR_LISTS: usize = 14;
pub(crate) const LOW_ORDER_LISTS: usize = 12;

/// The moving sizes of auto-tuned lists; all zero in other kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AutoTuning {
    /// Lower bound of `high`: the CPU's share of the low watermark.
    pub high_min: u32,
    /// Upper bound of `high`.
    pub high_max: u32,
    /// Pages freed in a row, and the size of a give-back. Every allocation halves it.
    pub free_count: u32,
    /// Refills of single pages in a row: the next brings `batch << alloc_factor`. Every free halves
    /// it.
    pub alloc_factor: u8,
    /// The last block freed had an order from 1 to 3.
    pub prev_free_high_order: bool,
    /// The CPU's cache is large enough to keep a batch before such blocks are given back
    /// (`PCPF_FREE_HIGH_BATCH`).
    pub free_high_batch: bool,
}

/// One CPU's lists in one zone.
#[derive(Clone, Debug)]
pub struct PerCpuPages {
    /// Pages on all the lists.
    pub count: u32,
    /// Blocks that a refill brings (at order 0).
    pub batch: u32,
    /// A free that raises `count` to this gives some back.
    pub high: u32,
    /// Overflows by frees in a row: the next give-back is `batch << free_factor`.
    pub free_factor: u8,
    /// The moving sizes of auto-tuned lists.
    pub tuning: AutoTuning,
    /// This CPU's part of the zone's free-page counter, not yet folded in.
    pub free_diff: i64,
    /// Folds until the lists of a zone of another node give back a batch; 0 for never.
    pub expire: u8,
    /// The blocks by pfn, head first. Arrays instead of links through the frames: a hit touches no
    /// frame but its tag, and a drain sees far enough ahead to prefetch. A list's array grows to
    /// its largest size once.
    pub(crate) lists: [VecDeque<u32>; NR_LISTS],
}

impl PerCpuPages {
    pub(crate) fn new() -> PerCpuPages {
        PerCpuPages {
            count: 0,
            batch: 1,
            high: 0,
            free_factor: 0,
            tuning: AutoTuning::default(),
            free_diff: 0,
            expire: 0,
            lists: Default::default(),
        }
    }

    /// The list with the kernel's index: type + 3 × order up to order 3, then huge pages, then
    /// movable huge pages. Head first.
    pub fn list(&self, pindex: usize) -> impl DoubleEndedIterator<Item = Pfn> + '_ {
        self.lists[pindex].iter().map(|&pfn| Pfn::new(pfn))
    }
}

/// Order of the blocks on list `pindex`.
#[inline(always)]
pub const fn order_of(pindex: usize) -> Order {
    if pindex < LOW_ORDER_LISTS { Order::new((pindex / 3) as u8) } else { PAGEBLOCK_ORDER }
}

/// Index of the list for blocks of this order and (per-CPU) type.
#[inline(always)]
pub(crate) const fn index_of(order: Order, migratetype: MigrateType) -> usize {
    if order.is_costly() {
        LOW_ORDER_LISTS + matches!(migratetype, MigrateType::Movable) as usize
    } else {
        migratetype.index() + MigrateType::PCP_TYPES * order.index()
    }
}
