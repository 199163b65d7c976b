//! Skip hints: pageblocks in which the last scans found nothing, and the positions at which the
//! next scans start.
//!
//! Once a direct run has covered a whole zone without success, hints are cleared: from 5.1 on only
//! those of pageblocks where a sample finds a page to migrate or a free page to migrate to. Source:
//! kernel-behaviour §5.7.

use crate::event::MigrateMode;
use crate::rules::CompactionRules;
use crate::state::{Memory, Tag, Zone};
use crate::types::{MigrateType, NodeId, PAGEBLOCK_PAGES, Pfn, ZoneId};

/// A pageblock is sampled at every eighth frame.
const SAMPLE_STRIDE: usize = 8;
/// Frames whose tags are looked at together.
const TOGETHER: usize = 64;

/// The first sample of a split pageblock that is on the LRU or heads a free block, if that is
/// sought. Most pageblocks have none: whole groups of tags are tested without a branch.
fn first_sample(tags: &[u8], lru: bool, buddy: bool) -> Option<usize> {
    let is_sought = |raw: u8| {
        let tag = Tag::from_raw(raw);
        lru & tag.is_lru() | buddy & tag.is_buddy()
    };
    let has_any = |group: &[u8]| {
        let sought = |(i, raw): (usize, &u8)| is_sought(*raw) & i.is_multiple_of(SAMPLE_STRIDE);
        group.iter().enumerate().map(sought).fold(false, |any, sought| any | sought)
    };
    let group = tags.chunks_exact(TOGETHER).position(has_any)?;
    let samples = tags[group * TOGETHER..].iter().step_by(SAMPLE_STRIDE);
    Some(group * (TOGETHER / SAMPLE_STRIDE) + samples.map(|raw| is_sought(*raw)).take_while(|sought| !sought).count())
}

impl Zone {
    /// Lets the next run start at the zone's ends.
    pub(crate) fn reset_cached_positions(&mut self, rules: &CompactionRules) {
        self.compaction.cached_migrate_pfn = [self.start, self.start];
        self.compaction.cached_free_pfn = if rules.free_begins_at_end { self.end } else { self.last_pageblock() };
    }

    /// The migration scanner is done with the pageblock before `pfn`; the next run of this mode may
    /// start after it. As in the kernel, the position is rounded up to the end of `pfn`'s own
    /// pageblock even when `pfn` starts one.
    pub(super) fn update_cached_migrate(&mut self, mode: MigrateMode, pfn: Pfn) {
        self.advance_cached_migrate(mode, pfn.pageblock_end());
    }

    /// The next run of this mode may start at `pfn`.
    pub(super) fn advance_cached_migrate(&mut self, mode: MigrateMode, pfn: Pfn) {
        let cached = &mut self.compaction.cached_migrate_pfn;
        cached[0] = cached[0].max(pfn);
        if mode != MigrateMode::Async {
            cached[1] = cached[1].max(pfn);
        }
    }
}

impl Memory {
    /// The free scanner is done with the pageblock at `start`: sets its skip hint, and lets the
    /// next run start no higher than `next`.
    pub(super) fn update_pageblock_skip(&mut self, zone: ZoneId, start: Pfn, next: Pfn) {
        self.blocks.set_skip(start.pageblock(), true);
        let cached = &mut self.zones[zone].compaction.cached_free_pfn;
        *cached = (*cached).min(next);
    }

    /// Clears skip hints in those zones of the node where a direct run's scanners have met; kswapd
    /// does this before it sleeps.
    pub(crate) fn reset_isolation_suitable_node(&mut self, node: NodeId) {
        for i in 0..self.nodes[node].zones.len() {
            self.reset_isolation_suitable(self.nodes[node].zones[i]);
        }
    }

    /// Clears the skip hints of pageblocks that look useful again, if the scanners of a direct run
    /// have met since the last time.
    pub(crate) fn reset_isolation_suitable(&mut self, zone: ZoneId) {
        if !self.zones[zone].compaction.blockskip_flush {
            return;
        }
        if self.shared.profile.compaction.clears_all_hints {
            return self.clear_all_hints(zone);
        }
        let z = &mut self.zones[zone];
        z.compaction.blockskip_flush = false;
        // The kernel walks from both ends to the middle, one pageblock of each end at a time.
        let (first, last) = (z.start, z.end.minus(1));
        let steps = (last.get() - first.get()).div_ceil(2 * PAGEBLOCK_PAGES) as usize;
        self.shared.work.any = true;
        self.shared.work.blocks_visited += 2 * steps as u64;
        let (low, high) = (first.pageblock(), last.pageblock());
        let (mut source, mut target) = (None, None);
        let mut step = 0;
        loop {
            let up = self.blocks.first_to_sample(low + step, low + steps, source.is_some());
            let down = self.blocks.last_to_sample(high - step, high + 1 - steps, target.is_some());
            step = match (up.map(|b| b - low), down.map(|b| high - b)) {
                (None, None) => break,
                (up, down) => up.unwrap_or(steps).min(down.unwrap_or(steps)),
            };
            let offset = step as u32 * PAGEBLOCK_PAGES;
            let migrate = first.plus(offset);
            let useful = up == Some(low + step) && self.reset_isolation_pfn(migrate, true, source.is_some());
            if useful && source.is_none() {
                source = Some(migrate);
                let c = &mut self.zones[zone].compaction;
                c.init_migrate_pfn = migrate;
                c.cached_migrate_pfn = [migrate, migrate];
            }
            let free = last.minus(offset);
            let useful = down == Some(high - step) && self.reset_isolation_pfn(free, target.is_some(), true);
            if useful && target.is_none() {
                target = Some(free);
                let c = &mut self.zones[zone].compaction;
                c.init_free_pfn = free;
                c.cached_free_pfn = free;
            }
            step += 1;
            if step == steps {
                break;
            }
        }
        if source.unwrap_or(last) >= target.unwrap_or(first) {
            let offset = steps as u32 * PAGEBLOCK_PAGES;
            let c = &mut self.zones[zone].compaction;
            let migrate = first.plus(offset);
            c.cached_migrate_pfn = [migrate, migrate];
            // A zone of one block at the very start of memory has nothing below it.
            c.cached_free_pfn = Pfn::new(last.get().saturating_sub(offset));
        }
    }

    /// Clears the skip hints of all pageblocks and lets the next run start at the zone's ends (up
    /// to 5.0).
    pub(super) fn clear_all_hints(&mut self, zone: ZoneId) {
        let z = &mut self.zones[zone];
        z.compaction.blockskip_flush = false;
        z.reset_cached_positions(&self.shared.profile.compaction);
        let (first, last) = (z.start.pageblock(), z.last_pageblock().pageblock());
        self.shared.work.any = true;
        self.shared.work.blocks_visited += (last + 1 - first) as u64;
        (first..=last).for_each(|block| self.blocks.set_skip(block, false));
    }

    /// Samples a pageblock; clears its hint and returns true if it holds a page of the kind sought.
    fn reset_isolation_pfn(&mut self, pfn: Pfn, check_source: bool, check_target: bool) -> bool {
        let block = pfn.pageblock();
        if self.blocks.is_huge(block) {
            return false;
        }
        if check_source && check_target && !self.blocks.skip(block) {
            return true;
        }
        if !check_source && check_target && self.blocks.migratetype(block) != MigrateType::Movable {
            return false;
        }
        let samples = PAGEBLOCK_PAGES as usize / SAMPLE_STRIDE;
        let found = if self.frames.block_tag(block) == Tag::SPLIT {
            first_sample(self.frames.split_block_tags(block), check_source, check_target)
        } else {
            // An unsplit pageblock (free, or reserved since boot) has a single head, its first
            // frame.
            let tag = self.frames.tag(pfn.pageblock_start());
            (check_source && tag.is_lru() || check_target && tag.is_buddy()).then_some(0)
        };
        self.shared.work.reset_sampled += found.map_or(samples, |i| i + 1) as u64;
        if found.is_some() {
            self.blocks.set_skip(block, false);
        }
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::state::PageFlags;
    use crate::types::{CpuId, Order};
    use alloc::vec::Vec;

    #[test]
    fn the_first_sample_sought_is_that_of_a_look_at_each() {
        let tags: Vec<u8> = (0..=u8::MAX).cycle().take(512).map(|i| i.wrapping_mul(37) ^ i >> 3).collect();
        for from in (0..512).step_by(8) {
            for (lru, buddy) in [(true, false), (false, true), (true, true), (false, false)] {
                // Nothing is sought before `from`.
                let tags: Vec<u8> = tags.iter().enumerate().map(|(i, raw)| if i < from { 0 } else { *raw }).collect();
                let is_sought = |raw: &u8| {
                    let tag = Tag::from_raw(*raw);
                    lru && tag.is_lru() || buddy && tag.is_buddy()
                };
                let one_by_one = tags.iter().step_by(SAMPLE_STRIDE).position(is_sought);
                assert_eq!(first_sample(&tags, lru, buddy), one_by_one, "{from} {lru} {buddy}");
            }
        }
    }

    /// The reset as the kernel does it: both ends at once, pageblock by pageblock, none skipped.
    fn reset_block_by_block(m: &mut Memory, zone: ZoneId) {
        let z = &m.zones[zone];
        let (mut migrate, mut free) = (z.start, z.end.minus(1));
        let (mut reset_migrate, mut reset_free) = (free, migrate);
        let (mut source_set, mut free_set) = (false, false);
        while migrate < free {
            m.shared.work.blocks_visited += 2;
            if m.reset_isolation_pfn(migrate, true, source_set) && migrate < reset_migrate {
                (source_set, reset_migrate) = (true, migrate);
                let c = &mut m.zones[zone].compaction;
                c.init_migrate_pfn = migrate;
                c.cached_migrate_pfn = [migrate, migrate];
            }
            if m.reset_isolation_pfn(free, free_set, true) && free > reset_free {
                (free_set, reset_free) = (true, free);
                let c = &mut m.zones[zone].compaction;
                c.init_free_pfn = free;
                c.cached_free_pfn = free;
            }
            migrate = migrate.plus(PAGEBLOCK_PAGES);
            free = free.minus(PAGEBLOCK_PAGES.min(free.get()));
        }
        if reset_migrate >= reset_free {
            let c = &mut m.zones[zone].compaction;
            (c.cached_migrate_pfn, c.cached_free_pfn) = ([migrate, migrate], free);
        }
    }

    /// A zone of huge pages, user or kernel pages with holes, and free pageblocks, with random skip
    /// hints and migrate types.
    fn machine(blocks: u32, random: &mut impl FnMut(u32) -> u32) -> Memory {
        let mut m = crate::testing::machine(blocks);
        let (cpu, node) = (CpuId::new(0), NodeId::default());
        while let Ok(pfn) = m.alloc(crate::Request::new(cpu, node, Gfp::HIGHUSER_MOVABLE | Gfp::COMP, Order::new(9))) {
            match random(4) {
                0 => m.lru_add(cpu, pfn, Order::new(9), PageFlags::ANON),
                1 => m.free(cpu, pfn, Order::new(9)),
                kind => {
                    m.split_page(pfn, Order::new(9));
                    let hole = random(512);
                    for page in 0..512 {
                        match kind {
                            _ if page < hole => m.free(cpu, pfn.plus(page), Order::ZERO),
                            2 => m.lru_add(cpu, pfn.plus(page), Order::ZERO, PageFlags::ANON),
                            _ => {}
                        }
                    }
                }
            }
            if random(20) == 0 {
                break;
            }
        }
        for block in 0..blocks as usize {
            m.blocks.set_skip(block, random(3) != 0);
            m.blocks.set_migratetype(block, MigrateType::from_index(random(3) as usize));
        }
        m
    }

    #[test]
    fn a_reset_that_passes_over_blocks_does_what_one_block_by_block_does() {
        let mut state = 1u64;
        let mut random = |n: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % u64::from(n)) as u32
        };
        for round in 0..200 {
            let blocks = 4 + random(300);
            let mut by_words = machine(blocks, &mut random);
            let mut by_blocks = by_words.clone();
            let zone = ZoneId::new(0);
            by_words.take_work();
            by_blocks.take_work();
            by_words.zones[ZoneId::new(0)].compaction.blockskip_flush = true;
            by_words.reset_isolation_suitable(zone);
            reset_block_by_block(&mut by_blocks, zone);
            let of = |m: &mut Memory| {
                let hints: alloc::vec::Vec<bool> = (0..blocks as usize).map(|b| m.blocks.skip(b)).collect();
                let c = &m.zones[ZoneId::new(0)].compaction;
                let positions = (c.cached_migrate_pfn, c.cached_free_pfn, c.init_migrate_pfn, c.init_free_pfn);
                let work = m.take_work();
                (hints, positions, work.blocks_visited, work.reset_sampled)
            };
            assert_eq!(of(&mut by_words), of(&mut by_blocks), "round {round}, {blocks} blocks");
        }
    }
}
