//! The migration scanner: finds the next pageblock worth emptying and isolates its movable pages.
//!
//! Source: kernel-behaviour §5.4. The walk from pageblock to pageblock runs on bitmaps, 64
//! pageblocks at a time, but every pageblock passed is counted: with a terabyte of memory this walk
//! is most of the cost of a request.

use super::state::CompactRun;
use crate::event::{Event, Listen, MigrateMode};
use crate::owner::{Lock, Owner, Turn};
use crate::rules::{CompactionRules, FastFind, Remembers, Scanners};
use crate::state::{BlockFilter, FrameKind, Memory, Tag, Walk};
use crate::types::{CLUSTER_MAX, MigrateType, Order, PAGE_ALLOC_COSTLY_ORDER, Pfn};
use crate::vmstat::VmEvent;

/// How a call of the scanner ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Isolate {
    Success,
    None,
    /// The budget of pageblocks is used up; resume from `migrate_pfn`.
    Paused,
    /// Another task waits for the CPU of an asynchronous run, or another CPU holds a lock that it
    /// needs.
    Abort,
}

/// Whether an LRU batch's reference makes the page look pinned, so that isolation fails. This is so
/// for pages without a mapping: anonymous ones outside the swap cache and released ones. Other
/// pages are isolated, and migration finds out.
#[inline(always)]
pub(super) fn is_kept_by_batch<O: Owner>(m: &Memory, owner: &mut O, pfn: Pfn) -> bool {
    if m.lru.holds(pfn) == 0 {
        return false;
    }
    if m.lru.is_released(pfn) {
        return true;
    }
    let state = owner.page_state(pfn, m.frames.owner(pfn, m.frames.tag(pfn).order()));
    state.anon && !state.swap_cache
}

impl CompactRun {
    /// The pageblocks this run isolates pages from.
    pub(super) fn source_filter(&self, rules: &CompactionRules) -> BlockFilter {
        let selective = self.cc.mode == MigrateMode::Async && (self.cc.direct || rules.async_from_movable);
        let mut types = [!selective; MigrateType::COUNT];
        // A whole pageblock suits any request, so 7.2 empties movable pageblocks for it. Before
        // (recorded up to 6.12) it scans pageblocks of the request's type, which hold few movable
        // pages.
        let whole_block = rules.whole_blocks_from_movable && self.cc.order.is_some_and(|o| o.is_whole_pageblock());
        let movable = whole_block || rules.async_from_movable;
        let own = if movable { MigrateType::Movable } else { self.cc.migratetype };
        types[own.index()] = true;
        let pass_huge = rules.hints_where_nothing_found;
        BlockFilter { types, honour_skip: !self.cc.ignore_skip_hint, pass_huge, pass_free: true }
    }

    /// Isolates from the next suitable pageblock, visiting at most `budget` pageblocks.
    pub(super) fn isolate_migratepages<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, budget: u64) -> Isolate {
        if m.shared.profile.compaction.scanners == Scanners::PageByPage {
            return self.isolate_from_pageblock(m, owner);
        }
        let filter = self.source_filter(&m.shared.profile.compaction);
        let mut low = self.migrate.pfn;
        let mut chosen_by_search = false;
        if !self.migrate.walking {
            low = self.fast_find_migrateblock(m);
            chosen_by_search = low != self.migrate.pfn && self.fast_search_fail == 0;
        }
        self.migrate.walking = true;
        // A pageblock must end at or below the free scanner's position.
        let end_block = self.free.pfn.pageblock();
        if low.pageblock() >= end_block {
            self.migrate.pfn = low;
            self.migrate.walking = false;
            return Isolate::None;
        }
        let notes_unsuitable = !m.shared.profile.compaction.hints_where_nothing_found;
        if !low.is_pageblock_aligned() || chosen_by_search {
            m.shared.work.any = true;
            m.shared.work.blocks_visited += 1;
            let hinted = !notes_unsuitable && filter.honour_skip && m.blocks.skip(low.pageblock());
            if !hinted && self.suitable_source(m, low.pageblock()) {
                return self.isolate_block(m, owner, low);
            }
            if notes_unsuitable {
                m.zones[self.zone].update_cached_migrate(self.cc.mode, low.pageblock_end());
            }
            low = low.pageblock_end();
        }
        let from = low.pageblock();
        let to = end_block.min(from.saturating_add(usize::try_from(budget.max(1)).unwrap_or(usize::MAX)));
        let mut at = from;
        let found = loop {
            // The kernel reschedules once every 32 pageblocks; the tasks that run then may
            // change skip hints.
            if at.is_multiple_of(CLUSTER_MAX as usize) && self.gives_way(m, owner) {
                // The test of the run's end, which comes next, notices.
                self.migrate.pfn = Pfn::of_pageblock(at);
                self.migrate.walking = false;
                return Isolate::None;
            }
            let stop = if owner.is_awaited(m) { to.min((at + 1).next_multiple_of(CLUSTER_MAX as usize)) } else { to };
            let (found, unsuitable) = m.blocks.first(at, stop, &filter);
            if let Some(b) = unsuitable.filter(|_| notes_unsuitable) {
                m.zones[self.zone].update_cached_migrate(self.cc.mode, Pfn::of_pageblock(b + 1));
            }
            let end = found.unwrap_or(stop);
            let hinted = if filter.honour_skip { m.blocks.count_skip(at, end) } else { 0 };
            m.shared.work.any = true;
            m.shared.work.blocks_hinted += hinted;
            m.shared.work.blocks_visited += (end - at) as u64 - hinted + u64::from(found.is_some());
            match found {
                // A pageblock with missing frames is skipped.
                Some(b) if Pfn::of_pageblock(b) >= m.zones[self.zone].whole_end => at = b + 1,
                Some(_) => break found,
                None if stop == to => break None,
                None => at = stop,
            }
        };
        match found {
            Some(b) => self.isolate_block(m, owner, Pfn::of_pageblock(b)),
            None => {
                self.migrate.pfn = Pfn::of_pageblock(to);
                if to < end_block {
                    return Isolate::Paused;
                }
                self.migrate.walking = false;
                Isolate::None
            }
        }
    }

    /// Whether this run isolates pages from the pageblock, skip hint aside.
    fn suitable_source(&self, m: &Memory, block: usize) -> bool {
        let filter = self.source_filter(&m.shared.profile.compaction);
        filter.types[m.blocks.migratetype(block).index()] && (filter.pass_huge || !m.blocks.is_huge(block))
    }

    /// Whether the scanner skips a compound page of this order as a whole. Up to 6.8 it skips all
    /// of them. From 6.9 on, those smaller than the order the run makes are isolated if they are on
    /// the LRU, and scanned page by page if not.
    fn steps_over(&self, rules: &CompactionRules, order: Order) -> bool {
        let larger = self.cc.order.is_some_and(|target| order >= target) || order.is_whole_pageblock();
        larger || !rules.moves_small_folios
    }

    /// Whether this run leaves pages that must be written before they can move, because it does not
    /// wait for writeback.
    pub(super) fn leaves_unwritten(&self, rules: &CompactionRules) -> bool {
        match self.cc.mode {
            MigrateMode::Async => true,
            MigrateMode::SyncLight => rules.light_leaves_unwritten,
            MigrateMode::Sync => false,
        }
    }

    fn isolate_block<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, from: Pfn) -> Isolate {
        self.migrate.walking = false;
        if self.gives_way(m, owner) {
            return Isolate::Abort;
        }
        self.isolate_migratepages_block(m, owner, from);
        if self.is_cut_off(&m.shared.profile.compaction) {
            return Isolate::Abort;
        }
        if self.migrate.count > 0 { Isolate::Success } else { Isolate::None }
    }

    /// Whether the run ends because another task waits for its CPU; if it does not end, it offers
    /// the CPU.
    #[inline(always)]
    fn gives_way<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> bool {
        let ends = m.shared.profile.compaction.async_gives_way && self.cc.mode == MigrateMode::Async;
        self.gave_way = ends && owner.is_awaited(m);
        if !self.gave_way {
            self.offer_cpu(m, owner);
        }
        self.gave_way
    }

    /// Offers the CPU to a daemon that waits for it. Blocks the daemon frees are not captured for
    /// this run's request.
    #[inline(always)]
    pub(super) fn offer_cpu<O: Owner>(&self, m: &mut Memory, owner: &mut O) {
        if owner.is_awaited(m) {
            let claim = core::mem::take(&mut m.zones[self.zone].compaction.capture);
            owner.turn(m, Turn::Offered);
            m.zones[self.zone].compaction.capture = claim;
        }
    }

    /// Isolates pages of one pageblock from `from` on: one cluster, or the whole block with
    /// `finish_pageblock`.
    fn isolate_migratepages_block<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, from: Pfn) {
        let rules = m.shared.profile.compaction;
        let end = from.pageblock_end();
        let block = from.pageblock();
        let ignore_skip = self.cc.ignore_skip_hint;
        // Direct asynchronous compaction wants one block of its order: once a page stays, the rest
        // of that block is pointless.
        let leaves = rules.async_leaves_at_failure && self.cc.direct && self.cc.mode == MigrateMode::Async;
        let unit = self.cc.order.filter(|_| leaves);
        let leaves_unwritten = self.leaves_unwritten(&rules);
        let mut next_unit = unit.map_or(end, |o| from.block_end(o));
        let whole = m.frames.block_tag(block) != Tag::SPLIT;
        let may_set_skip = from.is_pageblock_aligned();
        let mut skip_updated = false;
        let mut first = None;
        let (mut scanned, mut isolated) = (0u64, 0u32);
        let mut low = from;
        if may_set_skip && !ignore_skip && m.blocks.skip(block) {
            // The hint was set meanwhile; since 5.1 possibly by this run's own free-list search
            // (§5.4.3).
            scanned = 1;
            low = end;
        }
        while low < end {
            if let Some(order) = unit
                && low >= next_unit
            {
                if isolated > 0 {
                    break;
                }
                next_unit = low.block_end(order);
            }
            scanned += 1;
            let tag = if whole { m.frames.tag(low) } else { m.frames.split_tag(low) };
            if tag.is_buddy() {
                scanned += if rules.counts_jumped_pages { u64::from(tag.order().pages() - 1) } else { 0 };
                low = low.plus(tag.order().pages());
                continue;
            }
            let stays = match tag.kind() {
                FrameKind::Lru => {
                    let too_large = tag.order() > Order::ZERO && self.steps_over(&rules, tag.order());
                    too_large
                        || is_kept_by_batch(m, owner, low)
                        || !owner.may_isolate(low)
                        || leaves_unwritten && owner.moves_after_writing(low, m.frames.owner(low, tag.order()))
                        || !self.cc.may_enter_fs && owner.has_mapping(low, m.frames.owner(low, tag.order()))
                }
                FrameKind::MovableOps => false,
                _ => true,
            };
            if stays {
                let compound = matches!(tag.kind(), FrameKind::Lru | FrameKind::Kernel) && tag.order() > Order::ZERO;
                if compound && self.steps_over(&rules, tag.order()) {
                    scanned += if rules.counts_jumped_pages { u64::from(tag.order().pages() - 1) } else { 0 };
                    low = low.plus(tag.order().pages() - 1);
                }
                if let Some(order) = unit {
                    if rules.remembers == Remembers::FirstPage && isolated > 0 {
                        self.migrate.last_migrated_pfn = None;
                    }
                    self.putback_migratepages(m);
                    (isolated, first) = (0, None);
                    if low < next_unit {
                        low = next_unit.minus(1);
                        next_unit = next_unit.plus(order.pages());
                    }
                }
                low = low.plus(1);
                continue;
            }
            if tag.kind() == FrameKind::Lru && !self.take_lock(&rules, Lock::Lru) {
                break;
            }
            if !rules.hints_where_nothing_found && !skip_updated && tag.kind() == FrameKind::Lru {
                skip_updated = !rules.hint_by_scan_start || may_set_skip;
                if !ignore_skip && (low.is_pageblock_aligned() || rules.hint_by_scan_start && may_set_skip) {
                    if m.blocks.skip(block) && !(rules.finishes_pageblock && self.migrate.finish_pageblock) {
                        low = end;
                        break;
                    }
                    m.blocks.set_skip(block, true);
                }
            }
            self.isolate_page(m, low, tag);
            first.get_or_insert(low);
            let pages = tag.order().pages();
            isolated += pages;
            scanned += u64::from(pages - 1);
            low = low.plus(pages);
            if self.migrate.nr_pages >= CLUSTER_MAX && !self.migrate.finish_pageblock && !self.met_held_lock {
                break;
            }
        }
        let low = low.min(end);
        let place = match rules.remembers {
            Remembers::FirstStart => first.map(|_| from),
            Remembers::FirstPage => first,
            Remembers::Iteration | Remembers::LastPageblock => None,
        };
        self.migrate.last_migrated_pfn = self.migrate.last_migrated_pfn.or(place);
        if rules.hints_where_nothing_found {
            if low == end && isolated == 0 && (!ignore_skip || rules.hints_though_ignored) {
                m.blocks.set_skip(block, true);
                m.zones[self.zone].advance_cached_migrate(self.cc.mode, from);
            }
        } else if low == end && (isolated == 0 || self.migrate.finish_pageblock) {
            if may_set_skip && !skip_updated {
                m.blocks.set_skip(block, true);
            }
            m.zones[self.zone].update_cached_migrate(self.cc.mode, low);
        }
        m.shared.emit(Listen::COMPACTION_DETAIL, || Event::IsolateMigratepages {
            start_pfn: from,
            end_pfn: low,
            nr_scanned: scanned,
            nr_taken: u64::from(isolated),
        });
        // Pages put back on the way do not count as isolated.
        m.shared.vmstat.add(VmEvent::CompactIsolated, u64::from(isolated));
        self.migrate.scanned += scanned;
        m.shared.work.migrate_scanned += scanned;
        self.migrate.pfn = low;
    }

    pub(super) fn isolate_page(&mut self, m: &mut Memory, pfn: Pfn, tag: Tag) {
        if tag.kind() == FrameKind::Lru {
            m.lru_isolate(self.cpu, pfn, tag.order());
        }
        self.migrate.pages[self.migrate.count] = pfn;
        self.migrate.count += 1;
        self.migrate.nr_pages += tag.order().pages();
        m.shared.work.isolated += u64::from(tag.order().pages());
    }

    /// Puts isolated pages that will not be migrated back on the LRU, the last isolated first.
    pub(super) fn putback_migratepages(&mut self, m: &mut Memory) {
        self.migrate.nr_pages = 0;
        for i in (0..core::mem::take(&mut self.migrate.count)).rev() {
            self.putback_page(m, self.migrate.pages[i]);
        }
    }

    pub(super) fn putback_page(&self, m: &mut Memory, pfn: Pfn) {
        let tag = m.frames.tag(pfn);
        if tag.kind() == FrameKind::IsolatedLru {
            m.lru_putback(self.cpu, pfn, tag.order());
        }
    }

    /// Searches the movable free lists for a pageblock that is already partly free (§5.4.3).
    /// Returns where to scan: that pageblock, or the migration scanner's own position.
    fn fast_find_migrateblock(&mut self, m: &mut Memory) -> Pfn {
        let start = m.zones[self.zone].start;
        let pfn = self.migrate.pfn;
        let Some(order) = self.cc.order else {
            return pfn;
        };
        let rules = m.shared.profile.compaction;
        if rules.fast_find == FastFind::Never {
            return pfn;
        }
        let whole_block = rules.whole_blocks_from_movable && order.is_whole_pageblock();
        let suits = self.cc.migratetype == MigrateType::Movable || whole_block;
        if self.cc.ignore_skip_hint
            || rules.finishes_pageblock && self.migrate.finish_pageblock
            || pfn != start && !pfn.is_pageblock_aligned()
            || !order.is_costly()
            || self.cc.direct && !suits
        {
            return pfn;
        }
        let mut distance = (self.free.pfn.get().saturating_sub(pfn.get())) >> 1;
        if pfn != start {
            distance >>= 2;
        }
        let high = pfn.plus(distance).pageblock_start();
        let limit = self.free_list_scan_limit();
        let original = rules.fast_find == FastFind::Original;
        let (mut scanned, mut found) = (0u32, None);
        let orders = (PAGE_ALLOC_COSTLY_ORDER.get()..order.get()).rev().map(Order::new);
        for o in orders {
            if found.is_some() || scanned >= limit {
                break;
            }
            found = self.search_order_for_source(m, o, high, limit, original, &mut scanned);
        }
        self.migrate.scanned += u64::from(scanned);
        m.shared.work.list_scanned += u64::from(scanned);
        match found {
            Some(block_start) if !original || block_start != pfn => block_start.max(start),
            _ => {
                if !original {
                    self.fast_search_fail += 1;
                }
                self.reinit_migrate_pfn()
            }
        }
    }

    /// Searches one order for the first free block below `high` whose pageblock has no skip hint.
    fn search_order_for_source(
        &mut self,
        m: &mut Memory,
        o: Order,
        high: Pfn,
        limit: u32,
        original: bool,
        scanned: &mut u32,
    ) -> Option<Pfn> {
        let (zone, t) = (self.zone, MigrateType::Movable);
        let mut walk = Walk::from_first(m.zones[zone].free_list(o, t));
        while let Some(free) = walk.next(m.zones[zone].free_list(o, t)) {
            if !original && *scanned >= limit {
                *scanned += 1;
                m.rotate_list_to_tail(self.zone, o, t, free);
                return None;
            }
            *scanned += 1;
            if free < high && !m.blocks.skip(free.pageblock()) {
                m.rotate_list_to_tail(self.zone, o, t, free);
                if !self.migrate.fast_start_used {
                    self.migrate.fast_start_pfn = Some(self.migrate.fast_start_pfn.map_or(free, |p| p.min(free)));
                }
                self.fast_search_fail = 0;
                if !m.shared.profile.compaction.fast_find_leaves_hint {
                    m.blocks.set_skip(free.pageblock(), true);
                }
                return Some(free.pageblock_start());
            }
            if original && free >= high && *scanned >= limit {
                self.fast_search_fail += 1;
                m.rotate_list_to_tail(self.zone, o, t, free);
                return None;
            }
        }
        None
    }

    /// After a search that found nothing, goes back once to the lowest page a search has seen.
    fn reinit_migrate_pfn(&mut self) -> Pfn {
        if let Some(lowest) = self.migrate.fast_start_pfn
            && !self.migrate.fast_start_used
        {
            self.migrate.pfn = lowest;
            self.migrate.fast_start_used = true;
        }
        self.migrate.pfn
    }

    /// The number of list entries a search may examine; it halves with every search that finds
    /// nothing.
    pub(super) fn free_list_scan_limit(&self) -> u32 {
        (CLUSTER_MAX >> self.fast_search_fail.min(31)) + 1
    }
}

impl Memory {
    /// Rotates a free list so that `last` is its last entry.
    fn rotate_list_to_tail(&mut self, zone: crate::types::ZoneId, o: Order, t: MigrateType, last: Pfn) {
        let list = &mut self.zones[zone].lists[o.index()][t.index()];
        self.frames.rotate_to_back(list, last, o);
    }
}
