//! Fallback: serves a request whose migrate type has no free block of its own.
//!
//! The request takes a block of another type and tries to take over the whole pageblock, so that
//! types mix as little as possible. A movable request prefers the smallest block when only small
//! ones are left, because its page can be migrated away later; any other request takes the largest.
//! A fallback below pageblock order boosts the zone's watermarks ([`crate::boost`]).
//!
//! In 3.13 what is left of a block stays with its type unless the pageblock is claimed, and a
//! reserve comes last. Up to 4.12 every request takes the largest block ([`take_largest`]). Up to
//! 6.9 blocks are first moved to the request's own lists and then taken from there
//! ([`move_then_take`]). From 6.15 on a pageblock is claimed as a whole, or a single block is
//! stolen ([`claim_or_steal`]). Source: kernel-behaviour §2.5, §2.6.

mod claim_or_steal;
mod move_then_take;
mod take_largest;

use crate::event::{Event, Listen};
use crate::gfp::{AllocFlags, Wmark};
use crate::rules::Fallback;
use crate::state::{Locked, Zone};
use crate::types::{MAX_ORDER, MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

/// Types to fall back to, in order (§1.2).
const FALLBACKS: [[MigrateType; 2]; MigrateType::PCP_TYPES] = [
    [MigrateType::Reclaimable, MigrateType::Movable],
    [MigrateType::Reclaimable, MigrateType::Unmovable],
    [MigrateType::Unmovable, MigrateType::Movable],
];

/// Where the last block of a per-CPU refill was found, and so where the next one is looked for
/// first (6.15 and later): the zone lock is held in between, so nothing better can turn up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RmqueueMode {
    /// On the type's own lists.
    Normal,
    /// On another type's lists, one block at a time.
    Steal,
}

/// Whether a request of type `t` that found a foreign block of order `o` may take over its
/// pageblock.
#[inline]
fn can_steal(o: Order, t: MigrateType) -> bool {
    o.get() >= PAGEBLOCK_ORDER.get() / 2 || matches!(t, MigrateType::Reclaimable | MigrateType::Unmovable)
}

/// Pages of a pageblock of type `old` that are compatible with type `t`: for a movable request the
/// movable ones; for any other, the allocated pages of a movable pageblock that cannot be moved.
fn alike_pages(t: MigrateType, old: MigrateType, free: u32, movable: u32) -> u32 {
    match (t, old) {
        (MigrateType::Movable, _) => movable,
        (_, MigrateType::Movable) => PAGEBLOCK_PAGES.saturating_sub(free + movable),
        _ => 0,
    }
}

impl Zone {
    /// The first type in `t`'s fallback table that has a free block of order `o`.
    pub(crate) fn fallback_at(&self, o: Order, t: MigrateType) -> Option<MigrateType> {
        if self.nr_free[o.index()] == 0 || t.index() >= MigrateType::PCP_TYPES {
            return None;
        }
        FALLBACKS[t.index()].into_iter().find(|f| !self.lists[o.index()][f.index()].is_empty())
    }

    /// Whether a request of type `t` could claim a pageblock through a free block of order `o`.
    pub(crate) fn claimable_at(&self, o: Order, t: MigrateType) -> bool {
        can_steal(o, t) && self.fallback_at(o, t).is_some()
    }
}

impl Locked<'_> {
    /// Takes a block from the free lists: own type first, then by fallback.
    #[inline(always)]
    pub(crate) fn rmqueue_any_type(
        &mut self,
        order: Order,
        t: MigrateType,
        flags: AllocFlags,
        mode: &mut RmqueueMode,
    ) -> Option<Pfn> {
        if *mode == RmqueueMode::Normal
            && let Some(pfn) = self.rmqueue_smallest(order, t)
        {
            return Some(pfn);
        }
        match self.shared.profile.fallback.takes {
            Fallback::LargestThenReserve => self
                .rmqueue_take_largest(order, t, flags)
                .or_else(|| self.rmqueue_smallest(order, MigrateType::HighAtomic)),
            Fallback::TakeLargest => self.rmqueue_take_largest(order, t, flags),
            Fallback::MoveThenTake => self.rmqueue_move_then_take(order, t, flags),
            Fallback::ClaimOrSteal => self.rmqueue_claim_or_steal(order, t, flags, mode),
        }
    }

    /// Reports a block of order `o` and type `from` that serves a request for one of `order` and
    /// type `t`, held against `mark`.
    pub(crate) fn emit_extfrag(
        &mut self,
        pfn: Pfn,
        (order, t, mark): (Order, MigrateType, Wmark),
        (o, from): (Order, MigrateType),
    ) {
        let change_ownership = self.blocks.migratetype(pfn.pageblock()) == t;
        self.shared.emit(Listen::EXTFRAG, || Event::PageAllocExtfrag {
            mark,
            pfn,
            alloc_order: order,
            fallback_order: o,
            alloc_migratetype: t,
            fallback_migratetype: from,
            change_ownership,
        });
    }

    /// Moves all free blocks of `pfn`'s pageblock to `t`'s lists, to their tails or heads. Returns
    /// the free pages moved and the movable pages seen.
    pub(crate) fn move_freepages_block(&mut self, pfn: Pfn, t: MigrateType) -> (u32, u32) {
        let start = if self.zone.spans(pfn.pageblock_start()) { pfn.pageblock_start() } else { pfn };
        let end = pfn.pageblock_end();
        if !self.zone.spans(end.minus(1)) {
            return (0, 0);
        }
        let pairs_look_movable = self.shared.profile.fallback.pairs_look_movable;
        let (mut free, mut movable) = (0, 0);
        let mut at = start;
        while at < end {
            let tag = self.frames.tag(at);
            if tag.is_buddy() {
                self.move_to_free_list(at, tag.order(), tag.buddy_type(), t);
                free += tag.order().pages();
                at = at.plus(tag.order().pages());
            } else {
                let looks_movable = pairs_look_movable && tag.is_allocated_of(Order::new(1));
                let pages = tag.movable_pages();
                movable += pages.max(u32::from(looks_movable));
                at = at.plus(1);
            }
        }
        self.shared.work.steal_scanned += u64::from(end.get() - start.get());
        (free, movable)
    }
}

const _: () = assert!(MAX_ORDER.get() == PAGEBLOCK_ORDER.get() + 1);
