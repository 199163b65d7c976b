//! Runs: many single pages taken from the free lists, or given back to them, in one go.
//!
//! The kernel takes the pages of a refill one by one and splits a block halfway for each; it gives
//! pages back one by one, and each merges with those before it. When the pages make up a block, or
//! the beginning of one, the final state can be computed at once: the same lists in the same order,
//! the same counts of splits and merges, the same steps of the free-page counter. There are no runs
//! while a host listens to single pages ([`Listen::KMEM`]). Source: kernel-behaviour §2.2, §2.3,
//! §2.4.

use crate::event::Listen;
use crate::rules::FreeLists;
use crate::state::Locked;
use crate::types::{MigrateType, Order, PAGEBLOCK_ORDER, Pfn};

/// A refill prefetches the data of a block this many blocks ahead.
const TAKEN_AHEAD: u32 = 8;

/// A range of consecutive pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) first: Pfn,
    pub(crate) pages: u32,
}

impl Run {
    /// A run of one page.
    pub(crate) fn single(first: Pfn) -> Run {
        Run { first, pages: 1 }
    }

    pub(crate) fn pfns(self) -> core::ops::Range<u32> {
        self.first.get()..self.first.get() + self.pages
    }
}

/// The position of the next page given back relative to the previous one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl Locked<'_> {
    /// Takes up to `want` consecutive single pages of exactly this type: those that as many calls
    /// of [`Locked::rmqueue_smallest`] would take first. Only one if a host listens to single
    /// pages. The pages have no tags yet.
    #[inline(always)]
    pub(crate) fn rmqueue_run(&mut self, t: MigrateType, want: u32) -> Option<Run> {
        if self.shared.trace.listens_to(Listen::KMEM) {
            return self.rmqueue_smallest(Order::ZERO, t).map(Run::single);
        }
        let order = Order::ZERO.and_up().find(|o| !self.zone.lists[o.index()][t.index()].is_empty())?;
        let first = self.zone.lists[order.index()][t.index()].first()?;
        if let Some(soon) = self.zone.lists[order.index()][t.index()].near_the_first(TAKEN_AHEAD) {
            self.frames.prefetch_frame(soon);
        }
        self.del_from_free_list(first, order, t);
        let pages = order.pages().min(want);
        // The rest are the upper halves, one of each order from the first page's up: all smaller
        // lists are empty.
        let (mut rest, mut left) = (pages, 0);
        while rest < order.pages() {
            let piece = Order::new(rest.trailing_zeros() as u8);
            self.add_to_free_list(first.plus(rest), piece, t, false);
            rest += piece.pages();
            left += 1;
        }
        self.shared.work.splits += u64::from(pages + left - 1);
        self.shared.work.buddy_blocks += u64::from(pages);
        if self.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
            self.mod_free_pages_singly(t, -i64::from(pages));
        }
        Some(Run { first, pages })
    }

    /// The block of single pages at the end of a per-CPU list that are given back next, `page`
    /// first: as large as they can make up, and at most `most` pages. They are taken off the list.
    #[inline(always)]
    pub(crate) fn pcp_pop_block(&mut self, list: usize, page: Pfn, most: u32) -> (Pfn, Order) {
        let next = self.zone.pcps[self.cpu].lists[list].back().copied();
        let direction = match next {
            Some(next) if next == page.get() + 1 && page.get() & 1 == 0 => Direction::Up,
            Some(next) if next + 1 == page.get() && page.get() & 1 == 1 => Direction::Down,
            _ => return (page, Order::ZERO),
        };
        self.pcp_pop_pairs(list, page, direction, most)
    }

    #[inline(never)]
    fn pcp_pop_pairs(&mut self, list: usize, page: Pfn, direction: Direction, most: u32) -> (Pfn, Order) {
        if self.shared.trace.listens_to(Listen::KMEM) || self.zone.compaction.capture.is_armed() {
            return (page, Order::ZERO);
        }
        let pfn = page.get();
        let aligned = match direction {
            Direction::Up => pfn.trailing_zeros(),
            Direction::Down => (pfn + 1).trailing_zeros(),
        };
        let largest = aligned.min(most.ilog2()).min(u32::from(PAGEBLOCK_ORDER.get()));
        let sampled = self.frames.split_tag(page);
        let alike = self.shared.profile.buddy.free_lists == FreeLists::AsPageblock;
        let frames = &*self.frames;
        let pcp = &mut self.zone.pcps[self.cpu];
        let expected = |i: u32| if direction == Direction::Up { pfn.wrapping_add(i) } else { pfn.wrapping_sub(i) };
        let follows =
            |&(i, next): &(u32, &u32)| *next == expected(i) && (alike || frames.split_tag(Pfn::new(*next)) == sampled);
        let others = (1..1 << largest).zip(pcp.lists[list].iter().rev()).take_while(follows).count() as u32;
        let order = Order::new((others + 1).ilog2() as u8);
        let off_the_list = order.pages() - 1;
        let left = pcp.lists[list].len() - off_the_list as usize;
        pcp.lists[list].truncate(left);
        pcp.count -= off_the_list;
        let first = if direction == Direction::Up { pfn } else { pfn - off_the_list };
        (Pfn::new(first), order)
    }

    /// Frees the single pages of a block as type `t`, one after the other. Their tags have been
    /// cleared.
    pub(crate) fn free_pages_of_block(&mut self, first: Pfn, order: Order, t: MigrateType) {
        let pages = order.pages();
        self.shared.work.buddy_blocks += u64::from(pages);
        self.shared.work.merges += u64::from(pages - 1);
        self.mod_free_pages_singly(t, i64::from(pages));
        self.merge_into_lists(first, order, t, false);
    }
}
