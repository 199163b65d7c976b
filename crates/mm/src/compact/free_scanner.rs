//! The free scanner: finds free pages at the top of the zone to migrate pages to.
//!
//! A fast search through the tails of the movable free lists comes first, then a walk downwards,
//! pageblock by pageblock. Free blocks are isolated whole; [`super::targets`] decides in which
//! order their pages are used. Source: kernel-behaviour §2.10, §5.5.

use super::state::CompactRun;
use crate::event::{Event, Listen, MigrateMode};
use crate::gfp::{AllocFlags, Wmark};
use crate::owner::Lock;
use crate::rules::{FreeLists, HighAtomicLimit, Scanners};
use crate::state::{BlockFilter, Memory, Tag, Walk};
use crate::types::{CLUSTER_MAX, MigrateType, Order, PAGEBLOCK_PAGES, Pfn, ZoneId, ZoneType};

/// Above every page frame.
const OUT_OF_REACH: Pfn = Pfn::new(u32::MAX);

impl CompactRun {
    /// Isolates free pages until they suffice for the pages to migrate, or the scanners meet.
    pub(super) fn isolate_freepages(&mut self, m: &mut Memory) {
        if m.shared.profile.compaction.scanners == Scanners::PageByPage {
            return self.isolate_free_of_pageblocks(m);
        }
        self.fast_isolate_freepages(m);
        if self.free.stock.pages > 0 {
            return;
        }
        let zone_end = m.zones[self.zone].end;
        let filter = BlockFilter {
            types: match self.cc.ignore_block_suitable {
                true => [true; MigrateType::COUNT],
                false => [false, true, false, false],
            },
            honour_skip: !self.cc.ignore_skip_hint,
            pass_huge: true,
            pass_free: false,
        };
        let lowest = self.migrate.pfn.pageblock_end().pageblock();
        let every_page = m.shared.profile.compaction.hints_where_nothing_found;
        let mut stride = if self.cc.mode == MigrateMode::Async { CLUSTER_MAX } else { 1 };
        if every_page {
            stride = 1;
        }
        // There is no pageblock at the zone's end: up to 4.5 the first to scan is the one below.
        let mut position = match self.free.pfn {
            end if end == zone_end => m.zones[self.zone].last_pageblock(),
            within => within,
        };
        let mut block = position.pageblock();
        loop {
            if block < lowest {
                break;
            }
            let found = m.blocks.last(block, lowest, &filter);
            m.shared.work.blocks_visited += (block + 1 - found.unwrap_or(lowest)) as u64;
            let Some(b) = found else {
                // Past the last pageblock to scan: the scanners have met.
                position = Pfn::of_pageblock(lowest - 1);
                break;
            };
            let (start, end) = (Pfn::of_pageblock(b), Pfn::of_pageblock(b + 1).min(zone_end));
            if b != block {
                position = start;
            }
            if self.target_too_large(m, b) || start >= m.zones[self.zone].whole_end {
                if b == lowest {
                    position = Pfn::of_pageblock(lowest - 1);
                    break;
                }
                block = b - 1;
                position = Pfn::of_pageblock(block);
                continue;
            }
            let began = position;
            let (reached, isolated) = self.isolate_freepages_block(m, position, end, stride);
            position = reached;
            if every_page {
                let sets = !self.cc.ignore_skip_hint || m.shared.profile.compaction.hints_though_ignored;
                if reached == end && isolated == 0 && sets {
                    m.update_pageblock_skip(self.zone, start, began);
                }
            } else if reached == end {
                let next = match m.shared.profile.compaction.cached_free_below {
                    false => start,
                    true => start.minus(PAGEBLOCK_PAGES.min(start.get())),
                };
                m.update_pageblock_skip(self.zone, start, next);
            }
            if self.free.stock.pages >= self.free.wanted || self.is_cut_off(&m.shared.profile.compaction) {
                if reached >= end {
                    position = start.minus(PAGEBLOCK_PAGES.min(start.get()));
                }
                break;
            }
            if reached < end {
                break;
            }
            stride = if isolated > 0 || every_page { 1 } else { (stride << 1).min(CLUSTER_MAX) };
            block = b - 1;
            position = Pfn::of_pageblock(block);
        }
        self.free.pfn = position;
    }

    /// Isolates free blocks in `[from, end)` of one pageblock. Returns where it stopped and how
    /// many pages it isolated.
    pub(super) fn isolate_freepages_block(&mut self, m: &mut Memory, from: Pfn, end: Pfn, stride: u32) -> (Pfn, u32) {
        let stops_at_enough = m.shared.profile.compaction.scanners == Scanners::ByPageblock;
        let block = from.pageblock();
        let whole = m.frames.block_tag(block) != Tag::SPLIT;
        let (mut scanned, mut total) = (0u64, 0u32);
        let mut at = from;
        while at < end {
            scanned += 1;
            let tag = if whole { m.frames.tag(at) } else { m.frames.split_tag(at) };
            if tag.is_buddy() {
                if !self.take_lock(&m.shared.profile.compaction, Lock::Zone) {
                    break;
                }
                let order = tag.order();
                if !m.isolate_free_page(self.zone, self.cpu, at, order, tag.buddy_type()) {
                    if m.shared.profile.compaction.takes_by_low_mark {
                        at = at.plus(1);
                        continue;
                    }
                    break;
                }
                if m.shared.profile.compaction.counts_taken_pages {
                    scanned += u64::from(order.pages() - 1);
                }
                self.take_free_block(m, at, order);
                total += order.pages();
                if stops_at_enough && self.free.stock.pages >= self.free.wanted {
                    at = at.plus(order.pages());
                    break;
                }
                at = at.plus(order.pages() - 1 + stride);
                continue;
            }
            let compound = tag.is_allocated() && tag.order() > Order::ZERO;
            let passed = if compound { tag.order().pages() - 1 } else { 0 };
            if m.shared.profile.compaction.counts_jumped_pages {
                scanned += u64::from(passed);
            }
            at = at.plus(passed + stride);
        }
        let reached = at.min(end);
        m.shared.emit(Listen::COMPACTION_DETAIL, || Event::IsolateFreepages {
            start_pfn: from,
            end_pfn: reached,
            nr_scanned: scanned,
            nr_taken: u64::from(total),
        });
        self.free.scanned += scanned;
        m.shared.work.free_scanned += scanned;
        (reached, total)
    }

    /// The fast search: a free block in the top quarter of the range between the scanners, or else
    /// the best one in its top half.
    fn fast_isolate_freepages(&mut self, m: &mut Memory) {
        let searches = m.shared.profile.compaction.searches_free_lists;
        let Some(order) = self.cc.order.filter(|o| searches && *o > Order::ZERO) else {
            return;
        };
        let further = m.shared.profile.compaction.fast_isolate_looks_further;
        let mut limit = fast_isolate_limit(self.free_list_scan_limit(), further);
        let scan_start = self.free.pfn >= m.zones[self.zone].compaction.init_free_pfn;
        if scan_start {
            limit = PAGEBLOCK_PAGES >> 1;
        }
        // Where the free scanner has passed the migration scanner within a batch, the kernel's
        // unsigned distance wraps around and no page is high enough.
        let bound = |share: u32| match self.free.pfn.get().checked_sub(self.migrate.pfn.get()) {
            Some(distance) => self.free.pfn.minus(distance >> share).pageblock_start(),
            None => OUT_OF_REACH,
        };
        let (low, min) = (bound(2), bound(1));
        let mut search = Search { low, min, limit, highest: None, best: None, scanned: 0 };
        self.free.search_order = self.free.search_order.min(order.get() - 1);
        let mut page = None;
        let mut o = Some(self.free.search_order);
        while let (None, Some(at)) = (page, o) {
            let here = Order::new(at);
            if m.zones[self.zone].nr_free(here) != 0 {
                match self.search_order_for_target(m, here, &mut search) {
                    OrderSearch::Block(pfn) => page = Some(pfn),
                    OrderSearch::Refused => {
                        // The zone is too low on memory: give up, and start the next search one
                        // order lower.
                        self.free.search_order = self.free.search_order.checked_sub(1).unwrap_or(order.get() - 1);
                        break;
                    }
                    OrderSearch::Nothing => {}
                }
                // Later kernels leave the search as soon as it has enough, before choosing the next
                // order.
                if m.shared.profile.compaction.fast_isolate_stops_at_enough && self.free.stock.pages >= self.free.wanted
                {
                    break;
                }
            }
            // The kernel chooses the next order even after it found a block, so a search that ends
            // at the last order of its round changes where the next one starts.
            o = self.next_search_order(at, order);
        }
        if page.is_none() {
            self.fast_search_fail += 1;
            if scan_start {
                let anywhere = !m.shared.profile.compaction.fast_isolate_above_middle;
                match search.highest.filter(|h| anywhere || *h >= min) {
                    Some(highest) => {
                        self.free.pfn = highest;
                        page = Some(highest);
                    }
                    None if self.cc.direct && min != OUT_OF_REACH && m.zones[self.zone].has_frame_at(min) => {
                        self.free.pfn = min;
                        let whole = min < m.zones[self.zone].whole_end;
                        page = Some(min).filter(|p| whole && self.may_scan_around(m, *p));
                    }
                    None => {}
                }
            }
        }
        if let Some(highest) = search.highest.filter(|h| *h >= m.zones[self.zone].compaction.cached_free_pfn) {
            m.zones[self.zone].compaction.cached_free_pfn = highest.minus(PAGEBLOCK_PAGES.min(highest.get()));
        }
        self.free.scanned += u64::from(search.scanned);
        m.shared.work.list_scanned += u64::from(search.scanned);
        if let Some(page) = page {
            self.fast_isolate_around(m, page);
        }
    }

    /// Searches one order, from the tail of its movable list.
    fn search_order_for_target(&mut self, m: &mut Memory, o: Order, s: &mut Search) -> OrderSearch {
        let t = MigrateType::Movable;
        let start = m.zones[self.zone].start;
        if m.shared.profile.compaction.fast_isolate_best_by_order {
            s.best = None;
        }
        let mut order_scanned = 0;
        let mut preferred = None;
        let mut walk = Walk::from_last(m.zones[self.zone].free_list(o, t));
        let mut stopped_at = None;
        while let Some(pfn) = walk.previous(m.zones[self.zone].free_list(o, t)) {
            order_scanned += 1;
            s.scanned += 1;
            stopped_at = Some(pfn);
            if s.highest.is_none_or(|h| pfn >= h) {
                s.highest = Some(pfn.pageblock_start().max(start));
            }
            if pfn >= s.low {
                self.fast_search_fail = 0;
                self.free.search_order = o.get();
                preferred = Some(pfn);
                break;
            }
            if pfn >= s.min && s.best.is_none_or(|b| pfn > b) {
                s.best = Some(pfn);
                s.limit >>= 1;
            }
            if order_scanned >= s.limit {
                break;
            }
            stopped_at = None;
        }
        // Before 5.11 the best block was carried over from other orders; here it is useless unless
        // it has this order.
        let best = s.best.filter(|b| m.frames.tag(*b).is_buddy_of(o));
        let page = preferred.or(best);
        if let Some(first) = page.or(stopped_at) {
            let list = &mut m.zones[self.zone].lists[o.index()][t.index()];
            m.frames.rotate_to_front(list, first, o);
        }
        let found = match page {
            None => OrderSearch::Nothing,
            Some(pfn) if m.isolate_free_page(self.zone, self.cpu, pfn, o, t) => {
                self.take_free_block(m, pfn, o);
                if m.shared.profile.compaction.counts_taken_pages {
                    s.scanned += o.pages() - 1;
                }
                OrderSearch::Block(pfn)
            }
            Some(_) => OrderSearch::Refused,
        };
        if order_scanned >= s.limit {
            s.limit = fast_isolate_limit(s.limit, m.shared.profile.compaction.fast_isolate_looks_further);
        }
        found
    }

    /// The next order to search, or `None` after a full round; the next search then starts one
    /// order lower.
    fn next_search_order(&mut self, at: u8, order: Order) -> Option<u8> {
        let next = at.checked_sub(1).unwrap_or(order.get() - 1);
        if next == self.free.search_order {
            self.free.search_order = self.free.search_order.checked_sub(1).unwrap_or(order.get() - 1);
            return None;
        }
        Some(next)
    }

    /// Isolates the other free pages of the pageblock in which the fast search found a block.
    fn fast_isolate_around(&mut self, m: &mut Memory, pfn: Pfn) {
        if self.free.stock.pages >= self.free.wanted
            || self.cc.direct && self.cc.mode == MigrateMode::Async
            || pfn >= m.zones[self.zone].whole_end
        {
            return;
        }
        let z = &m.zones[self.zone];
        let start = pfn.pageblock_start().max(z.start);
        let mut end = pfn.pageblock_end().min(z.end);
        if !m.shared.profile.compaction.fast_isolate_to_last_page {
            // Before 5.11 the kernel left out the pageblock's last page.
            end = end.minus(1);
        }
        let (reached, _) = self.isolate_freepages_block(m, start, end, 1);
        let exhausted = match m.shared.profile.compaction.fast_isolate_hint_by_end {
            false => self.free.stock.pages < self.free.wanted,
            true => reached == end,
        };
        if exhausted {
            m.blocks.set_skip(pfn.pageblock(), true);
        }
    }

    /// Whether a pageblock in which the search found no free page may be scanned anyway; in 6.12
    /// only if it is a suitable target.
    fn may_scan_around(&self, m: &Memory, pfn: Pfn) -> bool {
        let block = pfn.pageblock();
        !m.shared.profile.compaction.fast_isolate_tests_target
            || (self.cc.ignore_block_suitable || m.blocks.migratetype(block) == MigrateType::Movable)
                && !m.blocks.is_free(block)
                && !self.target_too_large(m, block)
    }
}

/// How many blocks of an order the fast search examines: half of `entries`, and either at least or
/// at most one.
fn fast_isolate_limit(entries: u32, looks_further: bool) -> u32 {
    if looks_further { (entries >> 1).max(1) } else { (entries >> 1).min(1) }
}

/// State of the fast search across orders.
struct Search {
    low: Pfn,
    min: Pfn,
    limit: u32,
    highest: Option<Pfn>,
    best: Option<Pfn>,
    scanned: u32,
}

enum OrderSearch {
    Block(Pfn),
    Refused,
    Nothing,
}

impl Memory {
    /// Isolates a free block for compaction, unless the zone would fall below its min watermark (up
    /// to 4.8: low) plus the block. Whole pageblocks become movable (§2.10).
    fn isolate_free_page(
        &mut self,
        zone: ZoneId,
        cpu: crate::types::CpuId,
        pfn: Pfn,
        order: Order,
        t: MigrateType,
    ) -> bool {
        let z = &self.zones[zone];
        let base = match self.shared.profile.compaction.takes_by_low_mark {
            false => z.watermarks.min,
            true => z.watermarks.low,
        };
        let mark = base + u64::from(order.pages());
        let plain = AllocFlags::mark(Wmark::Min);
        if !z.watermark_ok(Order::ZERO, mark, ZoneType::WITHOUT_RESERVE, plain, z.free_pages, &self.shared.profile) {
            return false;
        }
        let mut locked = self.locked(zone, cpu);
        locked.count_lock();
        locked.mod_free_pages_of(t, -i64::from(order.pages()));
        locked.del_from_free_list(pfn, order, t);
        if order.get() >= 8 {
            for b in pfn.pageblock()..=pfn.plus(order.pages() - 1).pageblock() {
                let fixed = locked.shared.profile.highatomic.limit == HighAtomicLimit::FixedByMark;
                if !locked.blocks.migratetype(b).is_mergeable() && !fixed {
                    continue;
                }
                if locked.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
                    locked.move_freepages_block(Pfn::of_pageblock(b), MigrateType::Movable);
                }
                locked.blocks.set_migratetype(b, MigrateType::Movable);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_search_once_looked_at_one_block_of_an_order_at_most() {
        let limits = |looks_further| [33, 2, 1].map(|entries| fast_isolate_limit(entries, looks_further));
        assert_eq!([limits(true), limits(false)], [[16, 1, 1], [1, 1, 0]]);
    }
}
