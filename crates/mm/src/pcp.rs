//! Per-CPU page lists: most allocations and frees end here, without the zone's lock.
//!
//! A free pushes at the head, an allocation pops the head, a refill appends at the tail and a drain
//! takes from the tail. So the page freed last is used first, and a refill from a fresh block comes
//! out in ascending order. Pages here are "in use" for the buddy lists: they block merging and look
//! unmovable to compaction. Source: kernel-behaviour §1.7 (sizes), §2.4 (operation); each kind of
//! lists has its own way to shrink: [`order_zero`], [`multi_order`], [`auto_tuned`].

mod auto_tuned;
mod multi_order;
mod order_zero;

use crate::event::{Event, Listen};
use crate::fallback::RmqueueMode;
use crate::gfp::AllocFlags;
use crate::rules::{FreeLists, PcpLists};
use crate::runs::Run;
use crate::state::pcp_lists::{LOW_ORDER_LISTS, index_of, order_of};
use crate::state::{FrameKind, Locked, Memory, PerCpuPages, Zone};
use crate::types::{CpuId, MigrateType, Order, PAGE_ALLOC_COSTLY_ORDER, PAGEBLOCK_ORDER, Pfn, ZoneId};

/// A drain prefetches a block's frame this many blocks ahead, and then its buddy's slot in a free
/// list.
const FRAME_AHEAD: usize = 8;
const BUDDY_AHEAD: usize = 4;
/// Frees in a row raise the next give-back up to this power of two (PCP_BATCH_SCALE_MAX).
pub(crate) const FREE_FACTOR_MAX: u8 = 5;

impl PerCpuPages {
    /// An allocation ends a row of frees: it halves the give-back of the next overflow.
    #[inline(always)]
    fn note_alloc(&mut self) {
        self.free_factor >>= 1;
        self.tuning.free_count >>= 1;
    }

    /// Single pages that can be put on the lists before they must give some back, which the last of
    /// these may trigger; at least one.
    #[inline(always)]
    pub(crate) fn room(&self, zone: &Zone, rules: PcpLists) -> u32 {
        let auto_tuned = rules == PcpLists::AutoTuned;
        if zone.reclaim_active || auto_tuned && zone.below_high {
            return 1;
        }
        let high = if auto_tuned { self.high.max(self.tuning.high_min).min(self.tuning.high_max) } else { self.high };
        high.saturating_sub(self.count).max(1)
    }

    /// Notes this many allocations of single pages.
    #[inline(always)]
    fn note_allocs(&mut self, count: u32) {
        self.free_factor = self.free_factor.checked_shr(count).unwrap_or(0);
        self.tuning.free_count = self.tuning.free_count.checked_shr(count).unwrap_or(0);
    }
}

/// The type with which a block on list `pindex` was sampled, as far as the list and the pageblock's
/// type tell: the pageblock's type, unless a block of that type would be on another list.
pub(crate) const fn type_on(pindex: usize, block_type: MigrateType) -> MigrateType {
    let list_type = if matches!(block_type, MigrateType::HighAtomic) { MigrateType::Movable } else { block_type };
    if index_of(order_of(pindex), list_type) == pindex {
        block_type
    } else if pindex < LOW_ORDER_LISTS {
        MigrateType::from_index(pindex % MigrateType::PCP_TYPES)
    } else if pindex == LOW_ORDER_LISTS {
        MigrateType::Unmovable
    } else {
        MigrateType::Movable
    }
}

/// Whether blocks of this order are kept on per-CPU lists at all.
#[inline(always)]
pub(crate) const fn allows(rules: PcpLists, order: Order) -> bool {
    match rules {
        PcpLists::OrderZero => order.get() == 0,
        PcpLists::MultiOrder | PcpLists::AutoTuned => {
            order.get() <= PAGE_ALLOC_COSTLY_ORDER.get() || order.get() == PAGEBLOCK_ORDER.get()
        }
    }
}

/// Blocks a refill brings in a zone of `managed` pages (§1.7); at most a quarter of `limit`.
pub fn batch_size(managed: u64, limit: u32) -> u32 {
    let b = ((managed >> 10).min(u64::from(limit)) / 4).max(1);
    let b = (1u64 << (b + b / 2).ilog2()) - 1;
    b.max(1) as u32
}

impl Memory {
    /// Recomputes `batch` and `high` of every list from the zone's size and, in later kernels, its
    /// low mark.
    pub(crate) fn setup_pcp_limits(&mut self) {
        let rules = self.shared.profile.pcp.lists;
        let all_cpus = self.nr_cpus();
        let limit = self.shared.profile.pcp.batch_limit;
        for z in &mut self.zones {
            let batch = batch_size(z.managed, limit);
            let local = self.nodes[z.node].cpus.len();
            let cpus = if local == 0 { all_cpus } else { local } as u64;
            let share = |pages: u64| ((pages / cpus) as u32).max(batch << 2);
            for p in &mut z.pcps {
                p.batch = batch;
                match rules {
                    PcpLists::OrderZero => p.high = 6 * batch,
                    PcpLists::MultiOrder => p.high = share(z.watermarks.low),
                    PcpLists::AutoTuned => {
                        p.tuning.high_min = share(z.watermarks.low);
                        p.tuning.high_max = share(z.managed / auto_tuned::HIGH_MAX_FRACTION);
                    }
                }
            }
        }
    }
}

impl Locked<'_> {
    /// Takes a block from this CPU's lists, after a refill from the buddy lists if needed.
    #[inline(always)]
    pub(crate) fn pcp_alloc(&mut self, order: Order, migratetype: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let pindex = index_of(order, migratetype);
        let pcp = &mut self.zone.pcps[self.cpu];
        pcp.note_alloc();
        let pfn = match pcp.lists[pindex].pop_front() {
            Some(pfn) => pfn,
            None => self.pcp_refill_and_pop(order, migratetype, pindex, flags)?,
        };
        self.zone.pcps[self.cpu].count -= order.pages();
        Some(Pfn::new(pfn))
    }

    /// Takes single pages from this CPU's list until `pages` are filled or the list is empty;
    /// returns their number.
    #[inline(always)]
    pub(crate) fn pcp_pop(&mut self, migratetype: MigrateType, pages: &mut [Pfn]) -> usize {
        let pcp = &mut self.zone.pcps[self.cpu];
        let list = &mut pcp.lists[index_of(Order::ZERO, migratetype)];
        let count = list.len().min(pages.len());
        for (page, pfn) in pages.iter_mut().zip(list.drain(..count)) {
            *page = Pfn::new(pfn);
        }
        pcp.note_allocs(count as u32);
        pcp.count -= count as u32;
        count
    }

    #[inline(never)]
    fn pcp_refill_and_pop(
        &mut self,
        order: Order,
        migratetype: MigrateType,
        pindex: usize,
        flags: AllocFlags,
    ) -> Option<u32> {
        let below_high = self.zone.below_high;
        let pcp = &mut self.zone.pcps[self.cpu];
        let pages = match self.shared.profile.pcp.lists {
            PcpLists::AutoTuned => pcp.pages_to_refill(order, below_high),
            PcpLists::OrderZero | PcpLists::MultiOrder => pcp.batch,
        };
        let want = if pages > 1 { (pages >> order.get()).max(2) } else { 1 };
        if self.shared.profile.highatomic.bypasses_pcp && flags.any(AllocFlags::HIGHATOMIC) {
            return None;
        }
        self.count_lock();
        let mut mode = RmqueueMode::Normal;
        let mut got = 0;
        while let left @ 1.. = want - got {
            let own = if order == Order::ZERO && mode == RmqueueMode::Normal {
                self.rmqueue_run(migratetype, left)
            } else {
                None
            };
            let mut any = |z: &mut Self| z.rmqueue_any_type(order, migratetype, flags, &mut mode).map(Run::single);
            let Some(run) = own.or_else(|| any(self)) else {
                break;
            };
            if order == Order::ZERO {
                self.frames.set_pages(run.pfns(), FrameKind::Pcp(migratetype));
            } else {
                self.frames.set(run.first, FrameKind::Pcp(migratetype), order);
            }
            self.zone.pcps[self.cpu].lists[pindex].extend(run.pfns());
            got += run.pages;
        }
        self.account_taken(got << order.get());
        let pcp = &mut self.zone.pcps[self.cpu];
        pcp.count += got << order.get();
        pcp.lists[pindex].pop_front()
    }

    /// Puts a block on this CPU's lists; gives some back to the buddy lists when there are too
    /// many.
    #[inline(always)]
    pub(crate) fn pcp_free(&mut self, pfn: Pfn, order: Order) {
        let block_type = self.blocks.migratetype(pfn.pageblock());
        let list_type = if block_type == MigrateType::HighAtomic { MigrateType::Movable } else { block_type };
        let pindex = index_of(order, list_type);
        self.frames.set(pfn, FrameKind::Pcp(block_type), order);
        let auto_tuned = self.shared.profile.pcp.lists == PcpLists::AutoTuned;
        let pcp = &mut self.zone.pcps[self.cpu];
        pcp.lists[pindex].push_front(pfn.get());
        pcp.count += order.pages();
        if auto_tuned {
            let free_high = pcp.note_free(order, &self.shared.profile.pcp);
            if free_high || pcp.count >= pcp.high || self.zone.reclaim_active || self.zone.below_high {
                self.pcp_overflow_auto_tuned(pindex, free_high);
            }
            return;
        }
        if pcp.count >= pcp.high || (pcp.free_factor != 0 && order != Order::ZERO) || self.zone.reclaim_active {
            self.pcp_overflow(order, pindex);
        }
    }

    /// Puts a single page that was found on this CPU's list there again. The limit of auto-tuned
    /// lists is not known, but it follows their length: the last overflow left a batch of room.
    /// Lists of other kernels never grow beyond theirs, so the pages in excess come free.
    pub(crate) fn pcp_import(&mut self, pfn: Pfn) {
        if self.shared.profile.pcp.lists == PcpLists::AutoTuned {
            let pcp = &mut self.zone.pcps[self.cpu];
            pcp.high = (pcp.count + 1 + pcp.batch).max(pcp.tuning.high_min).min(pcp.tuning.high_max);
        }
        self.pcp_free(pfn, Order::ZERO);
    }

    /// Puts a single page at the tail of this CPU's list, in kernels whose lists hold single pages.
    pub(crate) fn pcp_free_cold(&mut self, pfn: Pfn) {
        let block_type = self.blocks.migratetype(pfn.pageblock());
        let list_type = if block_type == MigrateType::HighAtomic { MigrateType::Movable } else { block_type };
        self.frames.set(pfn, FrameKind::Pcp(block_type), Order::ZERO);
        let pcp = &mut self.zone.pcps[self.cpu];
        pcp.lists[index_of(Order::ZERO, list_type)].push_back(pfn.get());
        pcp.count += 1;
        self.pcp_overflow_order_zero();
    }

    /// Puts single pages on this CPU's lists, of which only the last may be one too many
    /// ([`PerCpuPages::room`]).
    #[inline(always)]
    pub(crate) fn pcp_free_pages(&mut self, pages: &[Pfn]) {
        let [others @ .., last] = pages else { return };
        let rules = &self.shared.profile.pcp;
        let pcp = &mut self.zone.pcps[self.cpu];
        let (mut block, mut block_type) = (usize::MAX, MigrateType::Movable);
        for pfn in others {
            if pfn.pageblock() != block {
                block = pfn.pageblock();
                block_type = self.blocks.migratetype(block);
            }
            let list_type = if block_type == MigrateType::HighAtomic { MigrateType::Movable } else { block_type };
            self.frames.set(*pfn, FrameKind::Pcp(block_type), Order::ZERO);
            pcp.lists[index_of(Order::ZERO, list_type)].push_front(pfn.get());
            if rules.lists == PcpLists::AutoTuned {
                pcp.note_free(Order::ZERO, rules);
            }
        }
        pcp.count += others.len() as u32;
        self.pcp_free(*last, Order::ZERO);
    }

    #[inline(never)]
    fn pcp_overflow(&mut self, order: Order, pindex: usize) {
        match self.shared.profile.pcp.lists {
            PcpLists::OrderZero => self.pcp_overflow_order_zero(),
            PcpLists::MultiOrder => self.pcp_overflow_multi_order(order, pindex),
            PcpLists::AutoTuned => unreachable!("has an overflow of its own"),
        }
    }

    /// Gives back the oldest block of one list, or its oldest single pages if they make up a block
    /// of at most `most` pages. Returns the number of pages, 0 if the list is empty.
    #[inline(always)]
    fn pcp_drain_some(&mut self, list: usize, order: Order, most: u32) -> u32 {
        let pcp = &mut self.zone.pcps[self.cpu];
        let Some(pfn) = pcp.lists[list].pop_back() else {
            return 0;
        };
        // Prefetches for the next blocks: tag and word first, then the slot of a buddy that each
        // may merge with.
        let left = &pcp.lists[list];
        let ahead = |n: usize| left.len().checked_sub(n).and_then(|i| left.get(i));
        if order == Order::ZERO {
            ahead(FRAME_AHEAD).into_iter().for_each(|&p| self.frames.prefetch_frame(p));
            let lists = &self.zone.lists[0];
            ahead(BUDDY_AHEAD).into_iter().for_each(|&p| self.frames.prefetch_buddys_slot(p, lists));
        }
        let pfn = Pfn::new(pfn);
        pcp.count -= order.pages();
        let FrameKind::Pcp(sampled) = self.frames.tag(pfn).kind() else {
            panic!("pfn {pfn} is on a per-CPU list but tagged {:?}", self.frames.tag(pfn).kind())
        };
        let migratetype = match self.shared.profile.buddy.free_lists {
            FreeLists::AsFreed => sampled,
            FreeLists::AsPageblock => self.blocks.migratetype(pfn.pageblock()),
        };
        self.shared.emit(Listen::KMEM, || Event::PagePcpuDrain { pfn, order, migratetype });
        if order == Order::ZERO {
            let (first, of_pages) = self.pcp_pop_block(list, pfn, most);
            if of_pages > Order::ZERO {
                self.frames.clear_pages(first.get()..first.get() + of_pages.pages());
                self.free_pages_of_block(first, of_pages, migratetype);
                return of_pages.pages();
            }
        }
        self.frames.clear(pfn, order);
        self.free_one_block(pfn, order, migratetype, false);
        order.pages()
    }

    /// Gives back everything on this CPU's lists.
    pub(crate) fn pcp_drain(&mut self) {
        let count = self.zone.pcps[self.cpu].count;
        if count == 0 {
            return;
        }
        self.shared.work.any = true;
        self.shared.work.drains += 1;
        match self.shared.profile.pcp.lists {
            PcpLists::OrderZero => self.pcp_free_bulk_shares(count),
            PcpLists::MultiOrder | PcpLists::AutoTuned => self.pcp_free_bulk_rounds(count, 0),
        }
    }

    /// The same, done by CPU `by`, whose part of the free-page counter it goes through.
    fn pcp_drain_counted_by(&mut self, by: CpuId) {
        self.swap_parts(by);
        self.pcp_drain();
        self.swap_parts(by);
    }

    fn swap_parts(&mut self, by: CpuId) {
        let of = |z: &Zone, cpu: CpuId| z.pcps[cpu].free_diff;
        let (own, other) = (of(self.zone, self.cpu), of(self.zone, by));
        self.zone.pcps[self.cpu].free_diff = other;
        self.zone.pcps[by].free_diff = own;
    }

    /// Gives back a batch from the lists of a zone of another node once the CPU has not counted
    /// anything there for three folds (`drain_zone_pages`).
    pub(crate) fn pcp_expire(&mut self, is_of_own_node: bool) {
        let pcp = &mut self.zone.pcps[self.cpu];
        if pcp.expire == 0 || pcp.count == 0 {
            return;
        }
        pcp.expire = if is_of_own_node { 0 } else { pcp.expire - 1 };
        if is_of_own_node {
            return;
        }
        if pcp.expire > 0 {
            return;
        }
        let pages = pcp.count.min(pcp.batch);
        match self.shared.profile.pcp.lists {
            PcpLists::OrderZero => self.pcp_free_bulk_shares(pages),
            PcpLists::MultiOrder | PcpLists::AutoTuned => self.pcp_free_bulk_rounds(pages, 0),
        }
    }
}

impl Memory {
    /// Gives back the pages on all CPUs' lists of a zone for a task on `by` (`drain_all_pages`).
    pub(crate) fn drain_all(&mut self, zone: ZoneId, by: CpuId) {
        let for_others = self.shared.profile.pcp.drains_others_lists;
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            self.locked(zone, cpu).pcp_drain_counted_by(if for_others { by } else { cpu });
        }
    }

    /// The same in all zones.
    pub fn drain_all_pages(&mut self, by: CpuId) {
        for zone in self.zones.ids() {
            self.drain_all(zone, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_follows_the_zones_size() {
        assert_eq!([262_144, 1 << 28, 3840, 100_000].map(|managed| batch_size(managed, 256)), [63, 63, 1, 31]);
        assert_eq!([262_144, 1 << 28, 3840, 100_000].map(|managed| batch_size(managed, 128)), [31, 31, 1, 31]);
    }

    #[test]
    fn pages_of_all_lists_are_counted_by_the_cpu_that_empties_them_since_6_0() {
        for (profile, parts) in [("5.10", [-3, 3]), ("6.1", [0, 0])] {
            let mut m = crate::testing::machine_with(2, crate::testing::linux(profile));
            let [own, other] = [0, 1].map(CpuId::new);
            let zone = ZoneId::new(0);
            m.zones[zone].stat_threshold = 100;
            let page =
                crate::request::Request::new(own, crate::types::NodeId::new(0), crate::gfp::Gfp::KERNEL, Order::ZERO);
            let pages = [0; 3].map(|_| m.alloc(page).expect("memory is free"));
            m.drain_cpu(own);
            m.fold_vmstat(own);
            m.zones[zone].pcps[own].free_diff = -3;
            pages.iter().for_each(|pfn| m.free(other, *pfn, Order::ZERO));
            m.drain_all_pages(own);
            assert_eq!([own, other].map(|cpu| m.zones[zone].pcps[cpu].free_diff), parts, "{profile}");
        }
    }

    #[test]
    fn every_list_has_one_order() {
        for o in [0u8, 1, 2, 3, 9] {
            for t in [MigrateType::Unmovable, MigrateType::Movable] {
                assert_eq!(order_of(index_of(Order::new(o), t)), Order::new(o));
            }
        }
    }
}
