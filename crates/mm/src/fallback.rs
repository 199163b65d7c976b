//! Fallback: what happens when a type has no free block of its own.
//!
//! The request takes from another type, and tries to take over the whole pageblock so that types mix as little as
//! possible: a movable request prefers the smallest block when only small ones are left (it can be moved away
//! later), everybody else the largest. A fallback below pageblock size raises the zone's watermarks for a while, so
//! that kswapd and kcompactd make room.
//!
//! Up to 6.9 blocks are first moved to the request's own lists and then taken from there ([`move_then_take`]); from 6.15
//! on a pageblock is claimed as a whole or not at all ([`claim_or_steal`]). Source: kernel-behaviour §2.5–§2.8.

mod claim_or_steal;
mod move_then_take;

use crate::event::{Event, Listen};
use crate::gfp::AllocFlags;
use crate::rules::{Fallback, FreeLists, HighAtomicLimit};
use crate::state::{Locked, Zone};
use crate::sysctl::WATERMARK_BOOST_FACTOR;
use crate::types::{MAX_ORDER, MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

/// Types to take from, in this order (§1.2).
const FALLBACKS: [[MigrateType; 2]; MigrateType::PCP_TYPES] = [
    [MigrateType::Reclaimable, MigrateType::Movable],
    [MigrateType::Reclaimable, MigrateType::Unmovable],
    [MigrateType::Unmovable, MigrateType::Movable],
];

/// Where the last block of a refill was found, and so where the next is looked for first (6.15 and later): the zone's
/// lock is held in between, so nothing better turns up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RmqueueMode {
    /// On the type's own lists.
    Normal,
    /// On another type's, one block at a time.
    Steal,
}

/// Whether a request of type `t` that found a foreign block of order `o` may take over its pageblock.
#[inline]
fn can_steal(o: Order, t: MigrateType) -> bool {
    o.get() >= PAGEBLOCK_ORDER.get() / 2 || matches!(t, MigrateType::Reclaimable | MigrateType::Unmovable)
}

/// Pages of a pageblock of type `old` that suit type `t`: movable ones a movable request; the others, if they were
/// in a movable pageblock, any other request.
fn alike_pages(t: MigrateType, old: MigrateType, free: u32, movable: u32) -> u32 {
    match (t, old) {
        (MigrateType::Movable, _) => movable,
        (_, MigrateType::Movable) => PAGEBLOCK_PAGES.saturating_sub(free + movable),
        _ => 0,
    }
}

impl Zone {
    /// The first type in `t`'s table that has a free block of order `o`.
    pub(crate) fn fallback_at(&self, o: Order, t: MigrateType) -> Option<MigrateType> {
        if self.nr_free[o.index()] == 0 || t.index() >= MigrateType::PCP_TYPES {
            return None;
        }
        FALLBACKS[t.index()].into_iter().find(|f| !self.lists[o.index()][f.index()].is_empty())
    }

    /// Whether a request of type `t` could take over a block through a free block of order `o`.
    pub(crate) fn claimable_at(&self, o: Order, t: MigrateType) -> bool {
        can_steal(o, t) && self.fallback_at(o, t).is_some()
    }
}

impl Locked<'_> {
    /// The free lists' part of an allocation: own type first, then whatever fallback allows.
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
            Fallback::MoveThenTake => self.rmqueue_move_then_take(order, t, flags),
            Fallback::ClaimOrSteal => self.rmqueue_claim_or_steal(order, t, flags, mode),
        }
    }

    pub(crate) fn emit_extfrag(&mut self, pfn: Pfn, order: Order, o: Order, t: MigrateType, from: MigrateType) {
        let change_ownership = self.blocks.migratetype(pfn.pageblock()) == t;
        self.shared.emit(Listen::EXTFRAG, || Event::PageAllocExtfrag {
            pfn,
            alloc_order: order,
            fallback_order: o,
            alloc_migratetype: t,
            fallback_migratetype: from,
            change_ownership,
        });
    }

    /// Moves all free blocks of `pfn`'s pageblock to the tails of `t`'s lists. Returns the free pages moved and the
    /// movable pages seen.
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
                movable += u32::from(tag.is_movable() || looks_movable);
                at = at.plus(1);
            }
        }
        self.shared.work.steal_scanned += u64::from(end.get() - start.get());
        (free, movable)
    }

    /// Raises the zone's marks by one pageblock, up to a ceiling; false if the zone is too small or boosting is off.
    fn boost_watermark(&mut self) -> bool {
        let pageblock = u64::from(PAGEBLOCK_PAGES);
        if self.shared.profile.boost.spares_small_zones && 4 * pageblock > self.zone.managed {
            return false;
        }
        let (boost, high) = (self.zone.watermark_boost, self.zone.watermarks.high);
        let raised = self.shared.decide(&WATERMARK_BOOST_FACTOR, |factor| {
            let ceiling = high * u64::from(factor) / 10_000;
            (ceiling > 0).then(|| (boost + pageblock).min(ceiling.max(pageblock)))
        });
        if let Some(raised) = raised {
            self.zone.watermark_boost = raised;
        }
        raised.is_some()
    }

    /// After an atomic high-order allocation: keeps its pageblock in reserve for the next one (§2.8).
    pub(crate) fn reserve_highatomic(&mut self, pfn: Pfn, order: Order) {
        let pageblock = u64::from(PAGEBLOCK_PAGES);
        let percent = self.zone.managed / 100;
        let rules = self.shared.profile.highatomic;
        let limit = match rules.limit {
            HighAtomicLimit::PercentAndBlock => percent + pageblock,
            HighAtomicLimit::PercentRoundedUp if percent < pageblock => 0,
            HighAtomicLimit::PercentRoundedUp => percent.next_multiple_of(pageblock),
        };
        let t = self.blocks.migratetype(pfn.pageblock());
        if self.zone.nr_reserved_highatomic >= limit || !t.is_mergeable() {
            return;
        }
        if rules.reserves_by_block {
            if order >= PAGEBLOCK_ORDER {
                self.set_range_type(pfn, order, MigrateType::HighAtomic);
                self.zone.nr_reserved_highatomic += u64::from(order.pages());
            } else if self.zone.spans(pfn.pageblock_start()) && self.zone.spans(pfn.pageblock_end().minus(1)) {
                self.move_freepages_block(pfn, MigrateType::HighAtomic);
                self.blocks.set_migratetype(pfn.pageblock(), MigrateType::HighAtomic);
                self.zone.nr_reserved_highatomic += pageblock;
            }
            return;
        }
        self.zone.nr_reserved_highatomic += pageblock;
        self.blocks.set_migratetype(pfn.pageblock(), MigrateType::HighAtomic);
        self.move_freepages_block(pfn, MigrateType::HighAtomic);
    }

    /// Gives one reserved pageblock back to type `t`; true if that freed any page (§2.8).
    pub(crate) fn unreserve_highatomic(&mut self, t: MigrateType, force: bool) -> bool {
        let pageblock = u64::from(PAGEBLOCK_PAGES);
        if !force && self.zone.nr_reserved_highatomic <= pageblock {
            return false;
        }
        for o in Order::all() {
            let Some(pfn) = self.zone.lists[o.index()][MigrateType::HighAtomic.index()].first() else {
                continue;
            };
            if self.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
                let size = pageblock.max(u64::from(o.pages())).min(self.zone.nr_reserved_highatomic);
                self.zone.nr_reserved_highatomic -= size;
                let moved = if o < PAGEBLOCK_ORDER {
                    let moved = self.move_freepages_block(pfn, t).0;
                    self.blocks.set_migratetype(pfn.pageblock(), t);
                    moved
                } else {
                    self.move_to_free_list(pfn, o, MigrateType::HighAtomic, t);
                    self.set_range_type(pfn, o, t);
                    o.pages()
                };
                if moved > 0 {
                    return true;
                }
                continue;
            }
            if self.blocks.migratetype(pfn.pageblock()) == MigrateType::HighAtomic {
                self.zone.nr_reserved_highatomic -= pageblock.min(self.zone.nr_reserved_highatomic);
            }
            self.blocks.set_migratetype(pfn.pageblock(), t);
            if self.move_freepages_block(pfn, t).0 > 0 {
                return true;
            }
        }
        false
    }
}

const _: () = assert!(MAX_ORDER.get() == PAGEBLOCK_ORDER.get() + 1);
