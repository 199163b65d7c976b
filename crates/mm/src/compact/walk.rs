//! Continues a migration scanner's walk over pageblocks, budget after budget, until it meets one to
//! stop at.
//!
//! A walk that ran out of its budget has only advanced its position, so no other code need see the
//! run before the next budget is walked the same way. Over a zone in which nothing can be moved,
//! that is all an allocation does, for thousands of budgets. Here the pageblocks are searched once,
//! and each budget's counts are reported separately, because a host's clock advances by them. The
//! step that finds something is left to [`CompactRun::step`].

use super::state::CompactRun;
use crate::state::Memory;
use crate::types::Pfn;

/// Pageblocks a scanner passed within one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Pageblocks whose first frame was examined.
    pub visited: u64,
    /// Pageblocks skipped by their hint.
    pub hinted: u64,
}

impl CompactRun {
    /// Resumes a walk that ran out of its budget, as steps would, until a pageblock is found or the
    /// zone ends. After each budget, `next` gets the counts of that budget and returns the next
    /// one; `None` ends the walk.
    ///
    /// The counts passed to `next` are not added to the work counters. No CPU is offered here, so
    /// this is for hosts whose daemons run between steps.
    pub fn walk_on(&mut self, m: &mut Memory, budget: u64, mut next: impl FnMut(Passed) -> Option<u64>) {
        if !self.migrate.walking || !self.migrate.pfn.is_pageblock_aligned() {
            return;
        }
        let filter = self.source_filter(&m.shared.profile.compaction);
        let (start, zone_end) = (self.migrate.pfn.pageblock(), self.free.pfn.pageblock());
        let end = m.blocks.first(start, zone_end, &filter).0.unwrap_or(zone_end.saturating_sub(1));
        let (mut at, mut budget) = (start, Some(budget));
        while let Some(blocks) = budget {
            let to = at.saturating_add(usize::try_from(blocks.max(1)).unwrap_or(usize::MAX));
            if to > end {
                break;
            }
            let hinted = if filter.honour_skip { m.blocks.count_skip(at, to) } else { 0 };
            budget = next(Passed { visited: (to - at) as u64 - hinted, hinted });
            at = to;
        }
        if at > start {
            let notes = !m.shared.profile.compaction.hints_where_nothing_found;
            if let Some(b) = m.blocks.first(start, at, &filter).1.filter(|_| notes) {
                m.zones[self.zone].update_cached_migrate(self.cc.mode, Pfn::of_pageblock(b + 1));
            }
            self.migrate.pfn = Pfn::of_pageblock(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MigrateMode;
    use crate::gfp::Gfp;
    use crate::request::Request;
    use crate::state::PageFlags;
    use crate::step::Step;
    use crate::testing::{AllMove, whole_zone};
    use crate::types::{CpuId, NodeId, Order, ZoneId};

    /// A run with skip hints over 600 pageblocks, of which every 97th holds single pages and the
    /// last ones are half free. Returns each step's counts and the cached positions left.
    fn steps(budget: u64, mode: MigrateMode, walks_on: bool) -> (alloc::vec::Vec<(u64, u64)>, [Pfn; 2]) {
        let mut m = crate::testing::machine(600);
        let (cpu, huge) = (CpuId::new(0), Order::new(9));
        let request = Request::new(cpu, NodeId::default(), Gfp::HIGHUSER_MOVABLE | Gfp::COMP, huge);
        let mut n = 0;
        while let Ok(pfn) = m.alloc(request) {
            n += 1;
            if n % 97 == 0 || n > 550 {
                m.split_page(pfn, huge);
                (1..512).step_by(2).for_each(|page| m.lru_add(cpu, pfn.plus(page), Order::ZERO, PageFlags::ANON));
                (0..512).step_by(2).for_each(|page| m.free(cpu, pfn.plus(page), Order::ZERO));
            } else {
                m.lru_add(cpu, pfn, huge, PageFlags::ANON);
            }
            m.blocks.set_skip(pfn.pageblock(), n % 5 < 2);
        }
        let zone = ZoneId::new(0);
        let mut run = CompactRun::new(whole_zone(mode), zone, cpu);
        let mut told = alloc::vec::Vec::new();
        m.take_work();
        while run.step(&mut m, &mut AllMove, budget) == Step::Working {
            let work = m.take_work();
            told.push((work.blocks_visited, work.blocks_hinted));
            if walks_on {
                run.walk_on(&mut m, budget, |passed| {
                    told.push((passed.visited, passed.hinted));
                    Some(budget)
                });
            }
        }
        (told, m.zones[zone].compaction.cached_migrate_pfn)
    }

    #[test]
    fn a_walk_that_goes_on_counts_and_ends_as_one_of_steps() {
        for (budget, mode) in
            [1, 3, 32, 64, 100, 4096].into_iter().flat_map(|b| [(b, MigrateMode::Async), (b, MigrateMode::SyncLight)])
        {
            let (by_steps, cached) = steps(budget, mode, false);
            assert!(budget > 64 || by_steps.len() > 4, "a walk of several budgets");
            assert_eq!(steps(budget, mode, true), (by_steps, cached), "budgets of {budget}, {mode:?}");
        }
    }
}
