//! The tests that end a compaction run: the scanners met, the goal is reached, or kswapd needs the
//! zone.
//!
//! Source: kernel-behaviour §5.6 (5.1–6.14). Note 7 of §13: daemons compact with GFP_KERNEL, so
//! they check the unmovable lists; at pageblock order any free block is claimable, so the answer is
//! the same.

use super::state::CompactRun;
use crate::event::{CompactResult, Event, Listen, MigrateMode};
use crate::gfp::Wmark;
use crate::rules::{CompactionRules, ProactiveScore, Scanners};
use crate::state::Memory;
use crate::types::{MigrateType, Order};

impl CompactRun {
    /// Whether the scanners have met, as this kernel sees it.
    pub(super) fn scanners_met(&self, rules: &CompactionRules) -> bool {
        match rules.scanners {
            Scanners::PageByPage => self.free.pfn <= self.migrate.pfn,
            Scanners::ByPageblock => self.free.pfn.pageblock() <= self.migrate.pfn.pageblock(),
        }
    }

    /// `Continue`, or the result with which the run ends.
    pub(super) fn finished(&mut self, m: &mut Memory) -> CompactResult {
        m.shared.work.any = true;
        m.shared.work.tests += 1;
        let ret = self.finished_untraced(m);
        let at = m.zones[self.zone].at();
        let order = self.cc.order;
        m.shared.emit(Listen::COMPACTION_DETAIL, || Event::Finished { at, order, ret });
        let ret = if ret == CompactResult::NoSuitablePage { CompactResult::Continue } else { ret };
        if !self.cc.direct && !self.cc.kswapd && order.is_some() {
            let node = m.zones[self.zone].node;
            // Up to 4.6 every meeting is `Complete`, wherever the scanners began. For the count, a
            // run that did not begin at the zone's ends is partial.
            let counted = match ret {
                CompactResult::Complete if !self.whole_zone => CompactResult::PartialSkipped,
                ret => ret,
            };
            m.nodes[node].kcompactd.finished[counted as usize] += 1;
            let asks_for_pageblocks = self.migrate.pfn.is_pageblock_aligned() && m.kcompactd_makes_pageblocks();
            if let Some(order) = order.filter(|_| ret == CompactResult::Continue && asks_for_pageblocks) {
                m.note_going_on(self.zone, order, self.cc.alloc_flags, self.cc.highest);
            }
        }
        ret
    }

    /// Whether a block of this order is available above the low watermark.
    fn is_above_low_mark(&self, m: &Memory, order: Order) -> bool {
        let (z, rules) = (&m.zones[self.zone], &m.shared.profile.compaction);
        let (flags, highest) = rules.rights(self.cc.alloc_flags, self.cc.highest);
        let once_more = if rules.ends_by_own_type { u64::from(order.pages()) } else { 0 };
        z.watermark_ok(order, z.wmark(Wmark::Low) + once_more, highest, flags, z.free_pages, &m.shared.profile)
    }

    /// Whether the zone has a block that ends a run for this order.
    pub(super) fn has_block(&self, m: &Memory, order: Order) -> bool {
        let (z, t) = (&m.zones[self.zone], self.cc.migratetype);
        match m.shared.profile.compaction.ends_by_own_type {
            false => self.serves_with_own(m, order).is_some(),
            true => {
                order.and_up().any(|o| !z.free_list(o, t).is_empty() || order.is_whole_pageblock() && z.nr_free(o) != 0)
            }
        }
    }

    /// Whether the smallest block that serves a request for this order is of the request's type;
    /// `None` if there is no such block.
    fn serves_with_own(&self, m: &Memory, order: Order) -> Option<bool> {
        let (z, t) = (&m.zones[self.zone], self.cc.migratetype);
        let at = |o| if z.free_list(o, t).is_empty() { z.claimable_at(o, t).then_some(false) } else { Some(true) };
        order.and_up().find_map(at)
    }

    /// Whether the request will take a block from another type's pageblocks, which a synchronous
    /// run for other than movable requests empties as far as it can first.
    fn takes_foreign_block(&self, m: &Memory, order: Order) -> bool {
        let empties = self.cc.migratetype != MigrateType::Movable && self.cc.mode != MigrateMode::Async;
        empties && self.serves_with_own(m, order) == Some(false)
    }

    fn is_inside_pageblock(&self) -> bool {
        self.migrate.pfn > self.migrate.pfn.pageblock_start()
    }

    fn finished_untraced(&mut self, m: &mut Memory) -> CompactResult {
        let rules = &m.shared.profile.compaction;
        if self.gave_way || self.is_cut_off(rules) {
            return CompactResult::Contended;
        }
        if self.scanners_met(rules) {
            let z = &mut m.zones[self.zone];
            if rules.resets_on_meeting {
                z.reset_cached_positions(rules);
            }
            let clears = self.cc.direct || rules.scanners == Scanners::PageByPage && !self.cc.kswapd;
            if clears {
                z.compaction.blockskip_flush = true;
            }
            let complete = self.whole_zone || rules.meeting_is_complete;
            return if complete { CompactResult::Complete } else { CompactResult::PartialSkipped };
        }
        let z = &m.zones[self.zone];
        match self.cc.order {
            None if self.cc.proactive => {
                if m.nodes[z.node].kswapd.running {
                    return CompactResult::PartialSkipped;
                }
                let score = match m.shared.profile.proactive.score {
                    ProactiveScore::Weighted => m.fragmentation_score_weighted(z),
                    ProactiveScore::Own | ProactiveScore::Off => z.fragmentation_score(),
                };
                if m.score_above_low(score) { CompactResult::Continue } else { CompactResult::Success }
            }
            None => CompactResult::Continue,
            Some(_)
                if m.shared.profile.compaction.ends_between_pageblocks && !self.migrate.pfn.is_pageblock_aligned() =>
            {
                CompactResult::Continue
            }
            Some(_) if self.finishing_block && self.is_inside_pageblock() => CompactResult::Continue,
            Some(order) if m.shared.profile.compaction.ends_by_low_mark && !self.is_above_low_mark(m, order) => {
                CompactResult::Continue
            }
            Some(order) if !self.cc.direct && m.kcompactd_makes_pageblocks() => {
                let enough = m.has_pageblocks_enough(self.zone, order, self.cc.alloc_flags, self.cc.highest);
                if enough { CompactResult::Success } else { CompactResult::Continue }
            }
            Some(order) => {
                self.finishing_block = false;
                if self.has_block(m, order) {
                    let finishes =
                        m.shared.profile.compaction.finishes_before_taking && self.takes_foreign_block(m, order);
                    self.finishing_block = finishes && self.is_inside_pageblock();
                    if self.finishing_block { CompactResult::Continue } else { CompactResult::Success }
                } else if self.met_held_lock {
                    CompactResult::Contended
                } else {
                    CompactResult::NoSuitablePage
                }
            }
        }
    }
}
