//! kcompactd's goal in defrag_mode: whole free pageblocks, up to the high watermark.
//!
//! A request that keeps pageblocks whole needs free pageblocks, not just the one block that
//! kcompactd was woken for. The target and the watermark depend on the patch: as posted, as
//! released, or as proposed in its review. Source: kernel-behaviour §4.8 (S1), §5.6.

use crate::gfp::{AllocFlags, Wmark};
use crate::rules::{KcompactdGoal, KcompactdMark};
use crate::state::Memory;
use crate::types::{Order, PAGEBLOCK_PAGES, ZoneId, ZoneType};

impl Memory {
    /// The watermark that kcompactd works towards (`at_work`), or that decides whether it is woken.
    pub(crate) fn kcompactd_flags(&self, at_work: bool) -> AllocFlags {
        let high = match self.shared.profile.kcompactd.mark {
            KcompactdMark::Min => false,
            KcompactdMark::HighAtWork => at_work,
            KcompactdMark::HighInDefragMode => self.shared.tunables.defrag_mode,
        };
        AllocFlags::mark(if high { Wmark::High } else { Wmark::Min })
    }

    /// Whether kcompactd should make whole pageblocks rather than the block it was asked for.
    pub(crate) fn kcompactd_makes_pageblocks(&self) -> bool {
        self.shared.tunables.defrag_mode && self.shared.profile.kcompactd.goal != KcompactdGoal::Page
    }

    /// Whether the zone has enough whole free pageblocks, where these are kcompactd's goal.
    pub(crate) fn has_pageblocks_enough(
        &self,
        zone: ZoneId,
        order: Order,
        flags: AllocFlags,
        highest: ZoneType,
    ) -> bool {
        let (z, profile) = (&self.zones[zone], &self.shared.profile);
        let blocks = z.free_pages_in_blocks();
        let scattered_max = i64::from(profile.kcompactd.scattered_max);
        let by_mark = || z.watermark_ok(order, z.wmark(Wmark::High), highest, flags, blocks, profile);
        let is_in_blocks = || z.free_pages - blocks <= scattered_max;
        match profile.kcompactd.goal {
            KcompactdGoal::Page => false,
            KcompactdGoal::BlocksToHighMark => by_mark(),
            KcompactdGoal::FreeInBlocks => is_in_blocks(),
            KcompactdGoal::BlocksToHighMarkOrFreeInBlocks => by_mark() || is_in_blocks(),
        }
    }

    /// For a run that continues for whole pageblocks, records whether migration can still reach its
    /// goal, which the review of the patch doubted. No kernel counts this.
    pub(crate) fn note_going_on(&mut self, zone: ZoneId, order: Order, flags: AllocFlags, highest: ZoneType) {
        let of = &self.zones[zone];
        let pageblock = i64::from(PAGEBLOCK_PAGES);
        let nothing_scattered = of.free_pages - of.free_pages_in_blocks() < pageblock;
        // The count if all free pages formed whole pageblocks. That a block exists need not be
        // checked: it would.
        let all_whole = of.free_pages - of.free_pages % pageblock - (i64::from(order.pages()) - 1);
        let profile = &self.shared.profile;
        let could = of.watermark_ok(Order::ZERO, of.wmark(Wmark::High), highest, flags, all_whole, profile);
        let node = of.node;
        let went_on = &mut self.nodes[node].kcompactd.went_on;
        went_on.all += 1;
        went_on.nothing_scattered += u64::from(nothing_scattered);
        went_on.too_little_free += u64::from(!nothing_scattered && !could);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Profile;
    use crate::testing::{linux, machine_with, with_single_pages};
    use crate::types::PAGEBLOCK_ORDER;

    const ZONE: ZoneId = ZoneId::new(0);

    /// Turns defrag_mode on, in a machine whose kernel has it.
    fn defrag(mut m: Memory) -> Memory {
        m.shared.tunables.defrag_mode = true;
        m
    }

    fn with_goal(goal: KcompactdGoal) -> Profile {
        let mut profile = linux("6.15");
        profile.kcompactd.goal = goal;
        profile
    }

    fn has_enough(m: &Memory) -> bool {
        m.has_pageblocks_enough(ZONE, PAGEBLOCK_ORDER, AllocFlags::mark(Wmark::High), ZoneType::Normal)
    }

    #[test]
    fn as_posted_it_works_for_the_high_mark_without_defrag_mode_too() {
        let marks = |profile: &str| {
            let m = machine_with(16, linux(profile));
            let with = defrag(machine_with(16, linux(profile)));
            [m.kcompactd_flags(false), m.kcompactd_flags(true), with.kcompactd_flags(false), with.kcompactd_flags(true)]
                .map(|flags| flags.wmark == Wmark::High)
        };
        assert_eq!(marks("6.14"), [false, false, false, false]);
        assert_eq!(marks("6.15-posted"), [false, true, false, true], "woken by the min mark, at work by the high one");
        assert_eq!(marks("6.15"), [false, false, true, true]);
    }

    #[test]
    fn without_defrag_mode_or_before_it_the_block_asked_for_is_the_goal() {
        let makes_pageblocks = |m: Memory| m.kcompactd_makes_pageblocks();
        assert!(!makes_pageblocks(machine_with(16, linux("6.15"))));
        assert!(!makes_pageblocks(defrag(machine_with(16, with_goal(KcompactdGoal::Page)))));
        assert!(makes_pageblocks(defrag(machine_with(16, linux("6.15")))));
    }

    #[test]
    fn single_pages_do_not_count_for_the_high_mark() {
        // 4 pageblocks, with every other page of each free.
        let mut m = defrag(with_single_pages(16, 4, linux("6.15")));
        m.zones[ZONE].watermarks.high = 512;
        assert_eq!(m.zones[ZONE].free_pages, 1024);
        assert!(!has_enough(&m));
        let mut all_free = defrag(machine_with(16, linux("6.15")));
        all_free.zones[ZONE].watermarks.high = 15 * 512;
        assert!(has_enough(&all_free));
        all_free.zones[ZONE].watermarks.high = 15 * 512 + 1;
        assert!(!has_enough(&all_free), "511 pages of the block asked for do not count");
    }

    #[test]
    fn as_proposed_it_has_done_enough_where_no_more_than_some_pages_are_outside_of_pageblocks() {
        for (goal, single, high, enough) in [
            (KcompactdGoal::FreeInBlocks, 2, 0, false),
            (KcompactdGoal::FreeInBlocks, 1, 9999, true),
            (KcompactdGoal::BlocksToHighMark, 1, 9999, false),
            (KcompactdGoal::BlocksToHighMarkOrFreeInBlocks, 1, 9999, true),
            (KcompactdGoal::BlocksToHighMarkOrFreeInBlocks, 2, 9999, false),
        ] {
            // 256 single pages for each unit of `single`.
            let mut m = defrag(with_single_pages(16, single, with_goal(goal)));
            m.zones[ZONE].watermarks.high = high;
            assert_eq!(has_enough(&m), enough, "{goal:?}, {single}");
        }
        let mut profile = with_goal(KcompactdGoal::FreeInBlocks);
        profile.kcompactd.scattered_max = 512;
        assert!(has_enough(&defrag(with_single_pages(16, 2, profile))), "with slack");
    }

    #[test]
    fn a_run_goes_on_in_vain_where_nothing_is_scattered_or_too_little_is_free() {
        // Of 16 pageblocks, `single` times 256 single pages are free, or all pages; the high
        // watermark; the counts expected.
        for (single, high, nothing_scattered, too_little_free) in
            [(Some(1), 9999, 1, 0), (Some(4), 9999, 0, 1), (Some(4), 512, 0, 0), (None, 16 * 512, 1, 0)]
        {
            let machine = match single {
                Some(n) => with_single_pages(16, n, linux("6.15")),
                None => machine_with(16, linux("6.15")),
            };
            let mut m = defrag(machine);
            m.zones[ZONE].watermarks.high = high;
            m.note_going_on(ZONE, PAGEBLOCK_ORDER, AllocFlags::mark(Wmark::High), ZoneType::Normal);
            let node = m.zones[ZONE].node;
            let noted = m.nodes[node].kcompactd.went_on;
            assert_eq!(
                (noted.all, noted.nothing_scattered, noted.too_little_free),
                (1, nothing_scattered, too_little_free),
                "{high}"
            );
        }
    }
}
