//! Freeing blocks: to the CPU's lists where these keep their order, else to the free lists.
//!
//! Source: kernel-behaviour §2.3, §2.4.

use crate::event::{Event, Listen};
use crate::pcp;
use crate::state::Memory;
use crate::types::{CpuId, Order, Pfn, ZoneId};
use crate::vmstat::VmEvent;

impl Memory {
    /// Frees an allocated block.
    ///
    /// # Panics
    /// If the block is not allocated with exactly this order: a double free, or a free of something
    /// else.
    #[inline(always)]
    pub fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        let tag = self.frames.tag_of(pfn, order);
        if !tag.is_allocated_of(order) {
            self.bad_free(pfn, order);
        }
        if self.lru.is_ordered() && self.release_to_batches(pfn) {
            return;
        }
        let id = self.blocks.zone_of(pfn);
        if tag.is_lru() {
            self.lru_del(cpu, pfn, order);
        }
        self.free_untagged(id, cpu, pfn, order);
    }

    /// Prefetches what freeing a single page will touch, for a host that knows some pages ahead
    /// what it will free.
    #[inline(always)]
    pub fn prefetch(&self, pfn: Pfn) {
        self.frames.prefetch_frame(pfn.get());
        if self.lru.is_ordered() {
            self.lru.prefetch(pfn.get());
        }
    }

    #[cold]
    #[inline(never)]
    fn bad_free(&self, pfn: Pfn, order: Order) -> ! {
        panic!("free of {pfn} {order:?}, which is {:?}", self.frames.tag(pfn).kind())
    }

    /// Frees a block whose tag no longer means anything.
    #[inline(always)]
    pub(crate) fn free_untagged(&mut self, id: ZoneId, cpu: CpuId, pfn: Pfn, order: Order) {
        if self.groups.are_kept() {
            self.uncharge_page(pfn, order);
        }
        self.shared.vmstat.add(VmEvent::Pgfree, u64::from(order.pages()));
        self.shared.emit(Listen::KMEM, || Event::PageFree { pfn, order });
        if order.is_whole_pageblock() {
            self.mark_huge(pfn, order, false);
        }
        let pcp_allowed = pcp::allows(self.shared.profile.pcp.lists, order);
        let mut locked = self.locked(id, cpu);
        if pcp_allowed {
            locked.pcp_free(pfn, order);
        } else {
            locked.count_lock();
            locked.zone.pages_scanned = 0;
            locked.frames.clear(pfn, order);
            locked.free_by_pageblock(pfn, order);
        }
    }

    /// Frees a single page whose tag no longer means anything to the tail of its per-CPU list.
    pub(crate) fn free_untagged_cold(&mut self, id: ZoneId, cpu: CpuId, pfn: Pfn) {
        if self.groups.are_kept() {
            self.uncharge_page(pfn, Order::ZERO);
        }
        self.shared.vmstat.add(VmEvent::Pgfree, 1);
        self.shared.emit(Listen::KMEM, || Event::PageFree { pfn, order: Order::ZERO });
        self.locked(id, cpu).pcp_free_cold(pfn);
    }

    /// Drains this CPU's lists of all zones.
    pub fn drain_cpu(&mut self, cpu: CpuId) {
        for zone in self.zones.ids() {
            self.locked(zone, cpu).pcp_drain();
        }
    }
}
