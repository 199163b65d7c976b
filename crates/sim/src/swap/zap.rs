//! What becomes of a page, or of a place in swap, that a page table entry no longer names.
//!
//! A page that nobody maps any more is freed, with its place in swap if no page table names that. One that is being read or
//! written stays until reclaim finds it. Source: `mm/memory.c` (`zap_pte_range`), `mm/swapfile.c` (`free_swap_and_cache`).

use super::Slot;
use crate::file::Flags;
use crate::kernel::Kernel;
use crate::process::address_space::Entry;
use kontig_mm::{CpuId, Order, Pfn};

impl Kernel {
    /// A page table entry that held this is gone. Whether more is gone with it: a page, or a place in swap.
    #[inline(always)]
    pub(crate) fn zap(&mut self, cpu: CpuId, entry: Entry) -> bool {
        match entry {
            Entry::Frame(pfn) => self.put_page(cpu, pfn),
            Entry::Swap(slot) => {
                self.put_slot(cpu, slot);
                true
            }
            Entry::None | Entry::Zero => false,
        }
    }

    /// One page table entry less maps this page. Whether it is free now.
    #[inline(always)]
    pub(crate) fn put_page(&mut self, cpu: CpuId, pfn: Pfn) -> bool {
        if !self.pages.mapcounts.drop_one(pfn) {
            return false;
        }
        if self.pages.frames.flags(pfn) != Flags::default() && !self.leaves_swap(pfn) {
            return false;
        }
        self.mem.free(cpu, pfn, Order::ZERO);
        true
    }

    /// A page that nobody maps: whether it can go now.
    #[cold]
    #[inline(never)]
    fn leaves_swap(&mut self, pfn: Pfn) -> bool {
        let flags = self.pages.frames.flags(pfn);
        if flags.any(Flags::FILE) {
            self.pages.mapcounts.unmapped(pfn);
            return false;
        }
        if flags.any(Flags::SWAP_CACHE) && (flags.any(Flags::LOCKED) || !self.pages.free_swap_of(pfn)) {
            self.pages.mapcounts.unmapped(pfn);
            return false;
        }
        self.pages.forget_frame(pfn);
        true
    }

    /// One page table entry less names this place in swap.
    #[cold]
    #[inline(never)]
    pub(super) fn put_slot(&mut self, cpu: CpuId, slot: Slot) {
        let swap = self.pages.swap();
        let page = swap.area.page(slot);
        swap.forget(slot);
        let Some(pfn) = page else { return };
        // Somebody may map it: then it is as if it had never been in swap.
        let is_busy = self.pages.frames.flags(pfn).any(Flags::LOCKED);
        if !is_busy && self.pages.free_swap_of(pfn) && !self.pages.mapcounts.is_mapped(pfn) {
            self.pages.forget_frame(pfn);
            self.mem.free(cpu, pfn, Order::ZERO);
        }
    }
}
