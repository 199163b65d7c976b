//! The checker: proves that a whole machine's state is consistent, or names the inconsistency.
//!
//! The invariants are written here once; property tests call this after every operation on small
//! machines, and hosts call it on demand on large ones. `lru` checks the LRU. Source:
//! kernel-behaviour §12, and the engine's own data structures.

mod generations;
mod groups;
mod lru;

use crate::rules::{FreeLists, HighAtomicLimit};
use crate::state::pcp_lists;
use crate::state::{FrameKind, List, Memory, NR_LISTS, Tag, Zone};
use crate::types::{MAX_ORDER, MigrateType, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};
use alloc::format;
use alloc::string::String;

macro_rules! ensure {
    ($cond:expr, $($why:tt)*) => {
        if !$cond {
            return Err(format!($($why)*));
        }
    };
}
use ensure;

/// Pages of a zone by holder, counted from the frames.
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
    /// Checks the state of the whole machine.
    ///
    /// # Errors
    /// The first inconsistency found, in one line.
    pub fn check(&self) -> Result<(), String> {
        for zone in &self.zones {
            self.check_zone(zone).map_err(|e| format!("node {} {}: {e}", zone.node.index(), zone.kind.name()))?;
        }
        self.check_lru()
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
        let unfolded: i128 = z.pcps.iter().map(|p| i128::from(p.free_diff)).sum();
        let counted = i128::from(z.free_pages) + unfolded;
        ensure!(i128::from(listed) == counted, "{listed} pages on free lists, NR_FREE_PAGES is {counted}");
        let held = census.free + census.pcp + census.allocated + census.isolated_lru + census.isolated_free;
        ensure!(
            held + census.reserved == z.spanned(),
            "{held} pages held and {} reserved of {}",
            census.reserved,
            z.spanned()
        );
        // LRU pages, and those isolated from it, are also in other counts.
        let counted = z.nr_lru();
        ensure!(census.lru == counted, "{} LRU pages, counted {counted}", census.lru);
        ensure!(
            census.isolated_lru == z.nr_isolated,
            "{} isolated pages, counted {}",
            census.isolated_lru,
            z.nr_isolated
        );
        self.check_state(z)
    }

    /// Checks every free list: positions, tags, alignment, count. Returns the free pages.
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
                    self.check_list_type(pfn, o, t)?;
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

    /// If lists follow pageblocks, every pageblock of a block has the type of its list.
    fn check_list_type(&self, pfn: Pfn, o: Order, t: MigrateType) -> Result<(), String> {
        if self.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
            for b in pfn.pageblock()..=pfn.plus(o.pages() - 1).pageblock() {
                let block = self.blocks.migratetype(b);
                ensure!(block == t, "{pfn} on list {} {} is in a {} pageblock", o.get(), t.name(), block.name());
            }
        }
        Ok(())
    }

    /// Whether a block's buddy is free at the same order and should have merged with it. A whole
    /// pageblock that was reserved for atomic requests did not merge, and stays as it is when it
    /// gets its buddy's type back.
    fn has_free_buddy(&self, z: &Zone, pfn: Pfn, o: Order, t: MigrateType) -> bool {
        let buddy = pfn.buddy(o);
        if o == MAX_ORDER || !z.spans(buddy) || !self.frames.tag(buddy).is_buddy_of(o) {
            return false;
        }
        // Across pageblocks only mergeable types merge; a type may also have changed after both
        // were freed.
        let (a, b) = (self.blocks.migratetype(pfn.pageblock()), self.blocks.migratetype(buddy.pageblock()));
        let reserved = [pfn, buddy].iter().any(|p| self.blocks.was_highatomic(p.pageblock()));
        o < PAGEBLOCK_ORDER || a == b && a.is_mergeable() && t.is_mergeable() && !reserved
    }

    fn check_pcp_lists(&self, z: &Zone) -> Result<u64, String> {
        let mut pages = 0;
        for (cpu, p) in z.pcps.iter().enumerate() {
            let mut count = 0u64;
            for i in 0..NR_LISTS {
                let order = pcp_lists::order_of(i);
                for pfn in p.list(i) {
                    ensure!(
                        z.spans(pfn) && pfn.is_aligned(order),
                        "{pfn} of {order:?} is outside the zone or misaligned"
                    );
                    let tag = self.frames.tag(pfn);
                    let on_its_list = match tag.kind() {
                        // HIGHATOMIC has no lists of its own here.
                        FrameKind::Pcp(MigrateType::HighAtomic) => {
                            pcp_lists::index_of(order, MigrateType::Movable) == i
                        }
                        FrameKind::Pcp(t) => pcp_lists::index_of(order, t) == i,
                        _ => false,
                    };
                    let ok = on_its_list && tag.order() == order;
                    ensure!(ok, "{pfn} on CPU {cpu}'s list {i} is tagged {:?} {:?}", tag.kind(), tag.order());
                    count += u64::from(order.pages());
                }
            }
            ensure!(count == u64::from(p.count), "CPU {cpu} lists {count} pages, counts {}", p.count);
            ensure!(
                p.free_diff.unsigned_abs() <= z.largest_threshold.max(1) as u64,
                "CPU {cpu} holds back {} free pages",
                p.free_diff
            );
            pages += count;
        }
        Ok(pages)
    }

    /// Walks a list and checks positions; returns its length.
    fn check_list(
        &self,
        z: &Zone,
        list: &List,
        order: Order,
        check: impl Fn(Pfn, Tag) -> Result<(), String>,
    ) -> Result<u64, String> {
        if let Err(e) = list.check() {
            return Err(format!("a list of {order:?} has {e}"));
        }
        let mut n = 0;
        for (pfn, place) in list.places() {
            ensure!(z.spans(pfn) && pfn.is_aligned(order), "{pfn} of {order:?} is outside the zone or misaligned");
            check(pfn, self.frames.tag(pfn))?;
            ensure!(self.frames.place(pfn, order) == place, "{pfn} of {order:?} has lost its place");
            n += 1;
        }
        Ok(n)
    }

    /// Walks all frames of a zone: tails follow their heads, and every frame is accounted for.
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
            ensure!(Tag::new(tag.kind(), order) == tag, "pageblock at {at} has the unknown tag {:#x}", tag.raw());
            ensure!(at.plus(order.pages()) <= z.end, "{at} of {order:?} leaves the zone");
            ensure!(
                free == tag.is_buddy() && huge == tag.is_huge(),
                "pageblock at {at}: {:?}, free {free}, huge {huge}",
                tag.kind()
            );
            for b in block..block + (order.pages() / PAGEBLOCK_PAGES) as usize {
                if b != block {
                    ensure!(self.frames.block_tag(b) == Tag::SECOND_HALF, "{at} has no second half");
                    let (free, second_huge) = (self.blocks.is_free(b), self.blocks.is_huge(b));
                    ensure!(!free && second_huge == huge, "{at}'s second half: free {free}, huge {second_huge}");
                }
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
            let known = tag.kind() != FrameKind::Tail && Tag::new(tag.kind(), order) == tag;
            ensure!(known, "{at} has the unknown tag {:#x}", tag.raw());
            for i in 1..order.pages() {
                ensure!(self.frames.tag(at.plus(i)) == Tag::TAIL, "{} inside {at}'s block is a head", at.plus(i));
            }
            c.count(tag);
            at = at.plus(order.pages());
        }
        Ok(())
    }

    /// Checks the bounds on the zone's state.
    fn check_state(&self, z: &Zone) -> Result<(), String> {
        let c = &z.compaction;
        ensure!(c.defer_shift <= 6 && c.considered <= 64, "deferral {} of 2^{}", c.considered, c.defer_shift);
        ensure!(!c.capture.has_page(), "a captured block was never handed over");
        let w = &z.watermarks;
        ensure!(w.min <= w.low && w.low <= w.high, "watermarks {w:?} out of order");
        if self.shared.profile.buddy.free_lists == FreeLists::AsPageblock {
            let listed: u64 =
                Order::all().map(|o| z.free_list(o, MigrateType::HighAtomic).len() << o.get()).sum::<usize>() as u64;
            let counted = z.nr_free_highatomic;
            ensure!(listed == counted, "{listed} free HIGHATOMIC pages, counted {counted}");
        }
        let highatomic =
            self.blocks.count(MigrateType::HighAtomic, z.start.pageblock(), z.last_pageblock().pageblock() + 1);
        let limit = z.managed / 100 / u64::from(PAGEBLOCK_PAGES) + 2;
        ensure!(highatomic <= limit, "{highatomic} HIGHATOMIC pageblocks, at most {limit}");
        // A fixed reserve is not counted, so that it counts as free memory.
        let is_fixed = self.shared.profile.highatomic.limit == HighAtomicLimit::FixedByMark;
        // As in the kernel the count may run ahead: a block freed with the type it had before it
        // was reserved merges with the pageblock below, and a request that takes over the two does
        // not check the type of the second.
        let counted = z.nr_reserved_highatomic;
        ensure!(
            (highatomic * u64::from(PAGEBLOCK_PAGES) <= counted || is_fixed)
                && counted <= z.managed / 100 + 2 * u64::from(PAGEBLOCK_PAGES),
            "{highatomic} HIGHATOMIC pageblocks, {counted} pages counted"
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

#[cfg(test)]
mod tests {
    //! A checker that cannot fail is worthless: each kind of damage is done once, and must be
    //! reported.
    use super::*;
    use crate::gfp::Gfp;
    use crate::state::PageFlags;
    use crate::types::{CpuId, NodeId, ZoneId};

    fn order(n: u8) -> Order {
        Order::new(n)
    }

    /// A machine and three of its allocated blocks: a kernel block, a user page, a huge page.
    struct Sample {
        m: Memory,
        kernel: Pfn,
        lru: Pfn,
        huge: Pfn,
    }

    /// Six pageblocks with something of everything: free blocks of all sizes, pages on a per-CPU
    /// list, a user page, a kernel block of order 5 and a huge page.
    fn sample() -> Sample {
        let mut m = crate::testing::machine(6);
        m.sysctl_write("min_free_kbytes", "0").expect("valid");
        let (cpu, node) = (CpuId::new(0), NodeId::new(0));
        let kernel = m.alloc(crate::Request::new(cpu, node, Gfp::HIGHUSER_MOVABLE, order(5))).expect("memory is free");
        let lru = m.alloc(crate::Request::new(cpu, node, Gfp::HIGHUSER_MOVABLE, order(0))).expect("memory is free");
        m.lru_add(cpu, lru, order(0), PageFlags::ANON);
        let huge = m.alloc(crate::Request::new(cpu, node, Gfp::HIGHUSER_MOVABLE, order(9))).expect("memory is free");
        let pcp = m.alloc(crate::Request::new(cpu, node, Gfp::HIGHUSER_MOVABLE, order(0))).expect("memory is free");
        m.free(cpu, pcp, order(0));
        m.check().expect("nothing is damaged yet");
        Sample { m, kernel, lru, huge }
    }

    fn free(m: &Memory, o: u8) -> Pfn {
        m.zones[ZoneId::new(0)]
            .free_list(order(o), MigrateType::Movable)
            .first()
            .expect("the sample has blocks of this order")
    }

    #[track_caller]
    fn damage(does: impl FnOnce(&mut Sample), says: &str) {
        let mut s = sample();
        does(&mut s);
        let found = s.m.check().expect_err("the damage goes unnoticed");
        assert!(found.contains(says), "the checker says '{found}', not '{says}'");
    }

    #[test]
    fn damaged_lists_are_named() {
        damage(
            |s| {
                let pfn = free(&s.m, 6);
                s.m.frames.stack_push(&mut 77, pfn);
            },
            "has lost its place",
        );
        damage(|s| s.m.zones[ZoneId::new(0)].lists[6][1] = List::new(), "0 blocks listed at order 6");
        damage(
            |s| {
                s.m.zones[ZoneId::new(0)].lists[6][1].push_back(Pfn::new(0x7fff_fe00));
            },
            "is outside the zone",
        );
        damage(
            |s| s.m.zones[ZoneId::new(0)].lists[6][0] = s.m.zones[ZoneId::new(0)].lists[6][1].clone(),
            "is tagged Buddy(Movable) order 6",
        );
    }

    #[test]
    fn damaged_counts_are_named() {
        damage(|s| s.m.zones[ZoneId::new(0)].nr_free[6] += 1, "nr_free is 2");
        damage(|s| s.m.zones[ZoneId::new(0)].nr_free[9] += 1, "nr_free is");
        damage(|s| s.m.zones[ZoneId::new(0)].free_pages -= 1, "NR_FREE_PAGES is");
        damage(|s| s.m.zones[ZoneId::new(0)].free_pages = i64::MIN, "NR_FREE_PAGES is");
        damage(|s| s.m.zones[ZoneId::new(0)].pcps[CpuId::new(0)].count += 1, "CPU 0 lists");
        damage(
            |s| {
                // Nothing is lost, but one page more is held back than any threshold allowed.
                let zone = &mut s.m.zones[ZoneId::new(0)];
                let (part, more) = (zone.pcps[CpuId::new(1)].free_diff, zone.stat_threshold + 1);
                zone.pcps[CpuId::new(1)].free_diff = more;
                zone.free_pages -= more - part;
            },
            "CPU 1 holds back 5 free pages",
        );
        damage(|s| s.m.zones[ZoneId::new(0)].lru.add_to_total(0, 1), "1 LRU pages, counted 2");
        damage(|s| s.m.zones[ZoneId::new(0)].nr_isolated += 1, "0 isolated pages, counted 1");
        damage(|s| s.m.zones[ZoneId::new(0)].nr_reserved_highatomic += 5120, "5120 pages counted");
    }

    #[test]
    fn damaged_tags_are_named() {
        let kernel = FrameKind::Kernel;
        damage(|s| s.m.frames.set(free(&s.m, 6), kernel, order(6)), "is tagged Kernel order 6");
        damage(|s| s.m.frames.set(free(&s.m, 6), FrameKind::Buddy(MigrateType::Movable), order(5)), "order 5");
        damage(|s| s.m.frames.clear(s.lru, order(0)), "is the tail of nothing");
        damage(|s| s.m.frames.set(s.kernel.plus(3), kernel, order(0)), "'s block is a head");
        damage(|s| s.m.frames.set(s.kernel, kernel, order(4)), "is the tail of nothing");
        damage(|s| s.m.frames.set(s.kernel, FrameKind::Tail, order(5)), "unknown tag 0x5");
        damage(|s| s.m.frames.set(s.lru, FrameKind::Buddy(MigrateType::Movable), order(0)), "tagged free");
        damage(|s| s.m.frames.set(s.lru, FrameKind::Pcp(MigrateType::Movable), order(0)), "tagged so");
        damage(|s| s.m.frames.set(s.lru, FrameKind::IsolatedLru, order(0)), "0 LRU pages, counted 1");
        damage(|s| s.m.frames.clear(s.huge, order(9)), "split pageblock");
        damage(|s| s.m.frames.set(free(&s.m, 10), FrameKind::Buddy(MigrateType::Movable), order(9)), "is tagged");
        damage(
            |s| {
                let second = free(&s.m, 10).plus(PAGEBLOCK_PAGES);
                s.m.frames.clear(second, order(9));
            },
            "has no second half",
        );
        damage(
            |s| {
                let on_list =
                    s.m.zones[ZoneId::new(0)].pcps[CpuId::new(0)].list(1).next().expect("the sample has such a page");
                s.m.frames.set(on_list, FrameKind::Pcp(MigrateType::Unmovable), order(0));
            },
            "on CPU 0's list 1 is tagged Pcp(Unmovable)",
        );
    }

    #[test]
    fn free_buddies_that_have_not_merged_are_named() {
        damage(
            |s| {
                let pfn = free(&s.m, 6);
                let mut z = s.m.locked(ZoneId::new(0), CpuId::new(0));
                z.del_from_free_list(pfn, order(6), MigrateType::Movable);
                z.add_to_free_list(pfn, order(5), MigrateType::Movable, false);
                z.add_to_free_list(pfn.plus(32), order(5), MigrateType::Movable, false);
            },
            "and its buddy are both free at order 5",
        );
    }

    #[test]
    fn damaged_bitmaps_are_named() {
        damage(|s| s.m.blocks.set_free(s.lru.pageblock(), true), "is marked whole");
        damage(|s| s.m.blocks.set_huge(s.lru.pageblock(), true), "is marked whole");
        damage(|s| s.m.blocks.set_huge(s.huge.pageblock(), false), "huge false");
        damage(|s| s.m.blocks.set_free(free(&s.m, 10).pageblock(), false), "free false");
        damage(|s| s.m.blocks.set_huge(free(&s.m, 10).pageblock() + 1, true), "second half: free false, huge true");
        damage(|s| s.m.blocks.set_zone(s.lru.pageblock(), ZoneId::new(7)), "has lost its zone");
        damage(|s| s.m.blocks.set_migratetype(s.lru.pageblock(), MigrateType::HighAtomic), "HIGHATOMIC");
    }

    #[test]
    fn impossible_memories_of_a_zone_are_named() {
        damage(|s| s.m.zones[ZoneId::new(0)].watermarks.min = 1 << 40, "out of order");
        damage(|s| s.m.zones[ZoneId::new(0)].compaction.defer_shift = 7, "deferral");
        damage(|s| s.m.zones[ZoneId::new(0)].compaction.considered = 65, "deferral");
        damage(
            |s| {
                // A whole pageblock is captured and never given to anybody.
                let mut z = s.m.locked(ZoneId::new(0), CpuId::new(0));
                z.zone.compaction.capture.arm(order(9), MigrateType::Movable);
                z.capture(Pfn::new(0), order(9), MigrateType::Movable);
            },
            "never handed over",
        );
    }
}
