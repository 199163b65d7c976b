//! The checker: proves that a whole machine's state is consistent, or says what is not.
//!
//! The invariants are written here once; property tests call this after every operation on small machines, and
//! hosts call it on demand on large ones. Source: kernel-behaviour §12, and the engine's own data structures.

use crate::frame::{FrameKind, List, Tag};
use crate::memory::Memory;
use crate::pcp::{self, NR_LISTS};
use crate::types::{MAX_ORDER, MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};
use crate::zone::Zone;
use alloc::format;
use alloc::string::String;

macro_rules! ensure {
    ($cond:expr, $($why:tt)*) => {
        if !$cond {
            return Err(format!($($why)*));
        }
    };
}

/// Pages of a zone by what holds them, counted from the frames.
#[derive(Default)]
struct Census {
    free: u64,
    free_blocks: [u64; crate::types::NR_ORDERS],
    pcp: u64,
    allocated: u64,
    lru: u64,
    isolated_lru: u64,
    isolated_free: u64,
    reserved: u64,
}

impl Memory {
    /// Walks the whole machine.
    ///
    /// # Errors
    /// The first inconsistency found, in one line.
    pub fn check(&self) -> Result<(), String> {
        for zone in &self.zones {
            self.check_zone(zone).map_err(|e| format!("node {} {}: {e}", zone.node.index(), zone.kind.name()))?;
        }
        Ok(())
    }

    fn check_zone(&self, z: &Zone) -> Result<(), String> {
        let listed = self.check_free_lists(z)?;
        let on_pcp = self.check_pcp_lists(z)?;
        let census = self.take_census(z)?;
        ensure!(listed == census.free, "{listed} pages on free lists, {} tagged free", census.free);
        ensure!(on_pcp == census.pcp, "{on_pcp} pages on per-CPU lists, {} tagged so", census.pcp);
        for (o, n) in census.free_blocks.iter().enumerate() {
            ensure!(z.nr_free[o] == *n, "nr_free[{o}] is {}, {n} blocks are tagged", z.nr_free[o]);
        }
        let counted = z.nr_free_pages_exact();
        ensure!(listed == counted, "{listed} pages on free lists, NR_FREE_PAGES is {counted}");
        let held = census.free + census.pcp + census.allocated + census.isolated_lru + census.isolated_free;
        ensure!(
            held + census.reserved == z.spanned(),
            "{held} pages held and {} reserved of {}",
            census.reserved,
            z.spanned()
        );
        // LRU pages and those isolated from it are also in other counts.
        ensure!(census.lru == z.nr_lru, "{} LRU pages, counted {}", census.lru, z.nr_lru);
        ensure!(
            census.isolated_lru == z.nr_isolated,
            "{} isolated pages, counted {}",
            census.isolated_lru,
            z.nr_isolated
        );
        self.check_state(z)
    }

    /// Every free list: links both ways, tags, alignment, count. Returns the free pages.
    fn check_free_lists(&self, z: &Zone) -> Result<u64, String> {
        let mut pages = 0;
        for o in Order::all() {
            let mut blocks = 0;
            for t in MigrateType::ALL {
                let want = Tag::new(FrameKind::Buddy(t), o);
                blocks += self.check_list(z, z.free_list(o, t), o, |pfn, tag| {
                    ensure!(
                        tag == want,
                        "{pfn} on list {} {} is tagged {:?} {:?}",
                        o.get(),
                        t.name(),
                        tag.kind(),
                        tag.order()
                    );
                    ensure!(!self.has_free_buddy(z, pfn, o, t), "{pfn} and its buddy are both free at {o:?}");
                    Ok(())
                })?;
            }
            ensure!(
                blocks == z.nr_free[o.index()],
                "{blocks} blocks listed at {o:?}, nr_free is {}",
                z.nr_free[o.index()]
            );
            pages += blocks << o.get();
        }
        Ok(pages)
    }

    /// Whether a block's buddy is free at the same order and should have merged with it.
    fn has_free_buddy(&self, z: &Zone, pfn: Pfn, o: Order, t: MigrateType) -> bool {
        let buddy = pfn.buddy(o);
        if o == MAX_ORDER || !z.spans(buddy) || !self.frames.tag(buddy).is_buddy_of(o) {
            return false;
        }
        // Across pageblocks only mergeable types merge; a type may also have changed after both were freed.
        let (a, b) = (self.blocks.migratetype(pfn.pageblock()), self.blocks.migratetype(buddy.pageblock()));
        o < PAGEBLOCK_ORDER || a == b && a.is_mergeable() && t.is_mergeable()
    }

    fn check_pcp_lists(&self, z: &Zone) -> Result<u64, String> {
        let mut pages = 0;
        for (cpu, p) in z.pcps.iter().enumerate() {
            let mut count = 0;
            for (i, list) in p.lists.iter().enumerate().take(NR_LISTS) {
                let order = pcp::order_of(i);
                count += order.pages() as u64
                    * self.check_list(z, list, order, |pfn, tag| {
                        let ok = matches!(tag.kind(), FrameKind::Pcp(_)) && tag.order() == order;
                        ensure!(ok, "{pfn} on CPU {cpu}'s list {i} is tagged {:?} {:?}", tag.kind(), tag.order());
                        Ok(())
                    })?;
            }
            ensure!(count == u64::from(p.count), "CPU {cpu} lists {count} pages, counts {}", p.count);
            ensure!(p.free_diff.abs() <= z.stat_threshold.max(1), "CPU {cpu} holds back {} free pages", p.free_diff);
            pages += count;
        }
        Ok(pages)
    }

    /// Walks a list, checking links; returns its length.
    fn check_list(
        &self,
        z: &Zone,
        list: &List,
        order: Order,
        check: impl Fn(Pfn, Tag) -> Result<(), String>,
    ) -> Result<u64, String> {
        let (mut n, mut prev) = (0, None);
        for pfn in self.frames.iter(list, order) {
            ensure!(z.spans(pfn) && pfn.is_aligned(order), "{pfn} of {order:?} is outside the zone or misaligned");
            ensure!(self.frames.prev(pfn, order) == prev, "{pfn} does not point back to {prev:?}");
            check(pfn, self.frames.tag(pfn))?;
            prev = Some(pfn);
            n += 1;
            ensure!(n <= z.spanned(), "a list of {order:?} is a circle");
        }
        ensure!(list.last() == prev, "a list of {order:?} ends at {prev:?}, its tail is {:?}", list.last());
        Ok(n)
    }

    /// Walks all frames of a zone: heads are followed by their tails, and everything is accounted for.
    fn take_census(&self, z: &Zone) -> Result<Census, String> {
        let mut c = Census::default();
        let mut at = z.start;
        while at < z.end {
            let block = at.pageblock();
            let tag = self.frames.block_tag(block);
            ensure!(self.blocks.zone(block) == Some(z.id), "pageblock {block} has lost its zone");
            let (free, huge) = (self.blocks.is_free(block), self.blocks.is_huge(block));
            if tag == Tag::SPLIT {
                ensure!(!free && !huge, "split pageblock at {at} is marked whole");
                self.take_census_of_block(at, &mut c)?;
                at = at.plus(PAGEBLOCK_PAGES);
                continue;
            }
            ensure!(tag != Tag::SECOND_HALF, "pageblock at {at} is the second half of nothing");
            let order = tag.order();
            ensure!(order.is_whole_pageblock() && at.is_aligned(order), "pageblock at {at} has {order:?}");
            ensure!(
                free == tag.is_buddy() && huge == tag.is_huge(),
                "pageblock at {at}: {:?}, free {free}, huge {huge}",
                tag.kind()
            );
            for b in block..block + (order.pages() / PAGEBLOCK_PAGES) as usize {
                ensure!(b == block || self.frames.block_tag(b) == Tag::SECOND_HALF, "{at} has no second half");
                let untouched = self.frames.split_block_tags(b).iter().all(|t| *t == 0);
                ensure!(untouched, "whole pageblock {b} has tags of its own");
            }
            c.count(tag);
            at = at.plus(order.pages());
        }
        Ok(c)
    }

    fn take_census_of_block(&self, start: Pfn, c: &mut Census) -> Result<(), String> {
        let mut at = start;
        let end = start.plus(PAGEBLOCK_PAGES);
        while at < end {
            let tag = self.frames.tag(at);
            let order = tag.order();
            ensure!(tag != Tag::TAIL, "{at} is the tail of nothing");
            ensure!(order < PAGEBLOCK_ORDER && at.is_aligned(order), "{at} has {order:?}");
            for i in 1..order.pages() {
                ensure!(self.frames.tag(at.plus(i)) == Tag::TAIL, "{} inside {at}'s block is a head", at.plus(i));
            }
            c.count(tag);
            at = at.plus(order.pages());
        }
        Ok(())
    }

    /// Bounds on what zones remember.
    fn check_state(&self, z: &Zone) -> Result<(), String> {
        let factor = u64::from(self.sh.tunables.watermark_boost_factor);
        let ceiling = (z.watermarks.high * factor.max(15_000) / 10_000).max(u64::from(PAGEBLOCK_PAGES));
        ensure!(z.watermark_boost <= ceiling, "boost {} above its ceiling {ceiling}", z.watermark_boost);
        let c = &z.compaction;
        ensure!(c.defer_shift <= 6 && c.considered <= 64, "deferral {} of 2^{}", c.considered, c.defer_shift);
        ensure!(!c.capture.has_page(), "a captured block was never handed over");
        let w = &z.watermarks;
        ensure!(w.min <= w.low && w.low <= w.high, "watermarks {w:?} out of order");
        let highatomic =
            self.blocks.count(MigrateType::HighAtomic, z.start.pageblock(), z.last_pageblock().pageblock() + 1);
        let limit = z.managed / 100 / u64::from(PAGEBLOCK_PAGES) + 2;
        ensure!(highatomic <= limit, "{highatomic} HIGHATOMIC pageblocks, at most {limit}");
        ensure!(
            highatomic * u64::from(PAGEBLOCK_PAGES) == z.nr_reserved_highatomic,
            "{highatomic} HIGHATOMIC pageblocks, {} pages counted",
            z.nr_reserved_highatomic
        );
        Ok(())
    }
}

impl Census {
    fn count(&mut self, tag: Tag) {
        let pages = u64::from(tag.order().pages());
        match tag.kind() {
            FrameKind::Buddy(_) => {
                self.free += pages;
                self.free_blocks[tag.order().index()] += 1;
            }
            FrameKind::Pcp(_) => self.pcp += pages,
            FrameKind::Kernel | FrameKind::MovableOps => self.allocated += pages,
            FrameKind::Lru => {
                self.allocated += pages;
                self.lru += pages;
            }
            FrameKind::IsolatedLru => self.isolated_lru += pages,
            FrameKind::IsolatedFree => self.isolated_free += pages,
            FrameKind::Reserved | FrameKind::Tail => self.reserved += pages,
        }
    }
}
