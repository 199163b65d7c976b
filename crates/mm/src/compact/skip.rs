//! Skip hints: which pageblocks the last scans found nothing in, and where the next scans should start.
//!
//! Hints are cleared when a direct compaction has covered a whole zone in vain: not all of them, but those of blocks
//! where a sample finds something to move or somewhere to move it to. Source: kernel-behaviour §5.7 (5.1 and later).

use crate::event::MigrateMode;
use crate::frame::FrameKind;
use crate::memory::Memory;
use crate::types::{MigrateType, NodeId, PAGEBLOCK_PAGES, Pfn, ZoneId};
use crate::zone::Zone;

/// Every how many frames a block is sampled.
const SAMPLE_STRIDE: u32 = 8;

impl Zone {
    /// Lets the next compaction start at the zone's ends.
    pub(crate) fn reset_cached_positions(&mut self) {
        let (start, last) = (self.start, self.last_pageblock());
        self.compaction.cached_migrate_pfn = [start, start];
        self.compaction.cached_free_pfn = last;
    }

    /// The migration scanner is done with the pageblock before `pfn`: the next run of this mode may start behind it.
    /// As in the kernel, the position is rounded up to the end of `pfn`'s own block even when `pfn` starts one.
    pub(super) fn update_cached_migrate(&mut self, mode: MigrateMode, pfn: Pfn) {
        let pfn = pfn.pageblock_end();
        let cached = &mut self.compaction.cached_migrate_pfn;
        cached[0] = cached[0].max(pfn);
        if mode != MigrateMode::Async {
            cached[1] = cached[1].max(pfn);
        }
    }
}

impl Memory {
    /// The free scanner is done with the pageblock at `start`: skip it, and start the next run no higher than `next`.
    pub(super) fn update_pageblock_skip(&mut self, zone: ZoneId, start: Pfn, next: Pfn) {
        self.blocks.set_skip(start.pageblock(), true);
        let cached = &mut self.zones[zone.index()].compaction.cached_free_pfn;
        *cached = (*cached).min(next);
    }

    /// What kswapd does before it sleeps: clears hints where a direct compaction asked for it.
    pub(crate) fn reset_isolation_suitable_node(&mut self, node: NodeId) {
        for i in 0..self.nodes[node.index()].zones.len() {
            self.reset_isolation_suitable(self.nodes[node.index()].zones[i]);
        }
    }

    /// Clears the skip hints of blocks that look useful again, if a direct compaction met since the last time.
    pub(crate) fn reset_isolation_suitable(&mut self, zone: ZoneId) {
        let z = &mut self.zones[zone.index()];
        if !core::mem::take(&mut z.compaction.blockskip_flush) {
            return;
        }
        self.sh.work.any = true;
        let (mut migrate, mut free) = (z.start, z.end.minus(1));
        let (mut reset_migrate, mut reset_free) = (free, migrate);
        let (mut source_set, mut free_set) = (false, false);
        while migrate < free {
            if self.reset_isolation_pfn(migrate, true, source_set) && migrate < reset_migrate {
                source_set = true;
                reset_migrate = migrate;
                let c = &mut self.zones[zone.index()].compaction;
                c.init_migrate_pfn = migrate;
                c.cached_migrate_pfn = [migrate, migrate];
            }
            if self.reset_isolation_pfn(free, free_set, true) && free > reset_free {
                free_set = true;
                reset_free = free;
                let c = &mut self.zones[zone.index()].compaction;
                c.init_free_pfn = free;
                c.cached_free_pfn = free;
            }
            migrate = migrate.plus(PAGEBLOCK_PAGES);
            // A zone of one block at the very start of memory has nothing below it.
            free = free.minus(PAGEBLOCK_PAGES.min(free.get()));
        }
        if reset_migrate >= reset_free {
            let c = &mut self.zones[zone.index()].compaction;
            c.cached_migrate_pfn = [migrate, migrate];
            c.cached_free_pfn = free;
        }
    }

    /// Samples a block; clears its hint and returns true if it holds what is looked for.
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
        let start = pfn.pageblock_start();
        for i in (0..PAGEBLOCK_PAGES).step_by(SAMPLE_STRIDE as usize) {
            self.sh.work.reset_sampled += 1;
            let found = match self.frames.tag(start.plus(i)).kind() {
                FrameKind::Lru => check_source,
                FrameKind::Buddy(_) => check_target,
                _ => false,
            };
            if found {
                self.blocks.set_skip(block, false);
                return true;
            }
        }
        false
    }
}
