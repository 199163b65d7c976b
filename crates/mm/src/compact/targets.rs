//! The free scanner's stock: free pages isolated and not yet used as migration targets.
//!
//! Up to 6.8 a block is split into single pages when it is isolated, and the pages are used from
//! the last page of the last block downwards: a stack threaded through the frames keeps that order.
//! From 6.9 on blocks stay whole, on a list per order, until a page is needed: then the first block
//! of the smallest order is split, and its upper halves go to the front of their lists. Source:
//! kernel-behaviour §5.5.2.

use super::state::CompactRun;
use crate::rules::{Positions, Targets};
use crate::state::{FrameKind, Memory};
use crate::types::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::vmstat::VmEvent;

impl CompactRun {
    /// Adds an isolated free block to the stock.
    pub(super) fn take_free_block(&mut self, m: &mut Memory, pfn: Pfn, order: Order) {
        match m.shared.profile.compaction.targets {
            Targets::Pages => {
                for page in (0..order.pages()).map(|i| pfn.plus(i)) {
                    m.frames.set(page, FrameKind::IsolatedFree, Order::ZERO);
                    m.frames.stack_push(&mut self.free.stock.stack, page);
                }
            }
            Targets::Blocks => {
                m.frames.set(pfn, FrameKind::IsolatedFree, order);
                m.frames.push_back(&mut self.free.stock.blocks[order.index()], pfn, order);
            }
        }
        self.free.stock.pages += order.pages();
        m.shared.work.free_isolated += u64::from(order.pages());
        m.shared.vmstat.add(VmEvent::CompactIsolated, u64::from(order.pages()));
    }

    /// The next target of this order. Orders above 0 occur only where blocks stay whole.
    pub(super) fn next_target(&mut self, m: &mut Memory, order: Order) -> Option<Pfn> {
        let mut target = self.take_from_stock(m, order);
        if target.is_none() {
            self.isolate_freepages(m);
            target = self.take_from_stock(m, order);
        }
        let target = target?;
        if m.shared.profile.compaction.targets_count_down {
            self.free.wanted -= order.pages();
        }
        self.free.stock.pages -= order.pages();
        Some(target)
    }

    fn take_from_stock(&mut self, m: &mut Memory, order: Order) -> Option<Pfn> {
        match m.shared.profile.compaction.targets {
            Targets::Pages => m.frames.stack_pop(&mut self.free.stock.stack),
            Targets::Blocks => self.split_smallest(m, order),
        }
    }

    /// Takes the first block of the smallest order that is large enough and splits it; upper halves
    /// go to the front of their lists.
    fn split_smallest(&mut self, m: &mut Memory, order: Order) -> Option<Pfn> {
        let mut blocks = Order::all().filter(|o| *o >= order);
        let (mut o, pfn) = blocks.find_map(|o| Some((o, self.free.stock.blocks[o.index()].first()?)))?;
        m.frames.unlink(&mut self.free.stock.blocks[o.index()], pfn, o);
        m.frames.clear(pfn, o);
        while o > order {
            o = o.down();
            let upper = pfn.plus(o.pages());
            m.frames.set(upper, FrameKind::IsolatedFree, o);
            m.frames.push_front(&mut self.free.stock.blocks[o.index()], upper, o);
        }
        m.frames.set(pfn, FrameKind::IsolatedFree, order);
        Some(pfn)
    }

    /// Returns an unused target, which is then the first to be taken again; the oldest kernels free
    /// it, as a page that was migrated from.
    pub(super) fn return_target(&mut self, m: &mut Memory, target: Pfn, order: Order) {
        if !m.shared.profile.compaction.keeps_failed_targets {
            return m.leave_unused(self.cpu, target);
        }
        match m.shared.profile.compaction.targets {
            Targets::Pages => m.frames.stack_push(&mut self.free.stock.stack, target),
            Targets::Blocks => m.frames.push_front(&mut self.free.stock.blocks[order.index()], target, order),
        }
        if m.shared.profile.compaction.targets_count_down {
            self.free.wanted += order.pages();
        }
        self.free.stock.pages += order.pages();
    }

    /// Frees the rest of the stock. Where the rules move the position back, the next run starts at
    /// the highest pageblock among it.
    pub(super) fn release_freepages(&mut self, m: &mut Memory) {
        let mut highest = None;
        while let Some(page) = m.frames.stack_pop(&mut self.free.stock.stack) {
            highest = highest.max(Some(page));
            m.free_untagged(self.zone, self.cpu, page, Order::ZERO);
        }
        for o in Order::all() {
            while let Some(block) = self.free.stock.blocks[o.index()].first() {
                highest = highest.max(Some(block));
                m.frames.unlink(&mut self.free.stock.blocks[o.index()], block, o);
                m.free_untagged(self.zone, self.cpu, block, o);
            }
        }
        self.free.stock.pages = 0;
        let moves_position = m.shared.profile.compaction.positions == Positions::EachMode;
        if let Some(highest) = highest.filter(|_| moves_position) {
            let cached = &mut m.zones[self.zone].compaction.cached_free_pfn;
            *cached = (*cached).max(highest.pageblock_start());
        }
    }

    /// Whether a pageblock's free pages form a block that is already as large as the run's order,
    /// so should not be broken up (6.9).
    pub(super) fn target_too_large(&self, m: &Memory, block: usize) -> bool {
        let Some(order) = self.cc.order.filter(|o| o.pages() < PAGEBLOCK_PAGES) else {
            // The walk itself passes over whole free pageblocks.
            return false;
        };
        let head = m.frames.tag(Pfn::of_pageblock(block));
        m.shared.profile.compaction.spares_large_blocks && head.is_buddy() && head.order() >= order
    }
}
