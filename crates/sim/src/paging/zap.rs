//! What becomes of a page, or of a place in swap, that a page table entry no longer names.
//!
//! A page that nobody maps any more is freed, with its place in swap if no page table names that. One that is being read or
//! written stays until reclaim finds it. Source: `mm/memory.c` (`zap_pte_range`), `mm/swapfile.c` (`free_swap_and_cache`).

use crate::base::context::Context;
use crate::kernel::Kernel;
use crate::state::file::Flags;
use crate::state::process::address_space::Entry;
use crate::state::swap::Slot;
use kontig_mm::{CpuId, Order, Pfn};

/// How many frames ahead what is known of one is asked for.
const FETCHED_AHEAD: usize = 8;

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

    /// Page table entries that held these frames are gone, one after the other: how long it takes for each whose page is
    /// gone with it, and for each other.
    #[inline(always)]
    pub(crate) fn zap_frames(&mut self, c: &mut Context, frames: &[Pfn], (freed_ns, left_ns): (u64, u64)) {
        let fetch = |k: &Kernel, pfn: Pfn| {
            k.mem.prefetch(pfn);
            k.pages.mapcounts.prefetch(pfn);
            k.pages.frames.prefetch(pfn);
        };
        frames.iter().take(FETCHED_AHEAD).for_each(|pfn| fetch(self, *pfn));
        let mut freed = 0;
        for (i, &pfn) in frames.iter().enumerate() {
            if let Some(ahead) = frames.get(i + FETCHED_AHEAD) {
                fetch(self, *ahead);
            }
            if self.pages.mapcounts.more(pfn) == 0 && self.pages.frames.flags(pfn) == Flags::default() {
                continue;
            }
            self.free_pages(c, &frames[freed..i], freed_ns);
            c.now += if self.put_page(c.cpu, pfn) { freed_ns } else { left_ns };
            self.charge(&mut c.now);
            freed = i + 1;
        }
        self.free_pages(c, &frames[freed..], freed_ns);
    }

    /// Frees pages that nothing is known of but that they were mapped, one after the other.
    #[inline(always)]
    fn free_pages(&mut self, c: &mut Context, mut pages: &[Pfn], each_ns: u64) {
        while !pages.is_empty() {
            // An errand is not put off.
            let most = if self.pages.has_deferred() { 1 } else { pages.len() };
            let count = self.mem.free_some(c.cpu, &pages[..most]);
            c.now += count as u64 * each_ns;
            self.charge(&mut c.now);
            pages = &pages[count..];
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
    pub(crate) fn put_slot(&mut self, cpu: CpuId, slot: Slot) {
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
