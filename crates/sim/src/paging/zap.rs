//! Removal of page table entries: frees the page or swap slot that nothing names any more.
//!
//! An unmapped page is freed, with its swap slot if no entry names that. A page under I/O stays
//! until reclaim finds it. Source: `mm/memory.c` (`zap_pte_range`), `mm/swapfile.c`
//! (`free_swap_and_cache`).

use crate::base::context::Context;
use crate::kernel::Kernel;
use crate::state::file::Flags;
use crate::state::process::mapping::Entry;
use crate::state::swap::Slot;
use kontig_mm::{CpuId, Order, Pfn};

/// Distance in frames of the prefetch.
const FETCHED_AHEAD: usize = 8;

impl Kernel {
    /// Drops the reference of a cleared page table entry. Whether a page was freed, or a slot
    /// released.
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

    /// Drops the references of consecutive cleared entries. `freed_ns` is charged for each that
    /// frees its page, `left_ns` for each that does not.
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

    /// Frees consecutive pages that had one mapping and no state.
    #[inline(always)]
    fn free_pages(&mut self, c: &mut Context, mut pages: &[Pfn], each_ns: u64) {
        while !pages.is_empty() {
            // Deferred work runs before the next page.
            let most = if self.pages.has_deferred() { 1 } else { pages.len() };
            let count = self.mem.free_some(c.cpu, &pages[..most]);
            c.now += count as u64 * each_ns;
            self.charge(&mut c.now);
            pages = &pages[count..];
        }
    }

    /// Drops one mapping of a page; whether that freed it.
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

    /// Whether an unmapped page can be freed now.
    #[cold]
    #[inline(never)]
    fn leaves_swap(&mut self, pfn: Pfn) -> bool {
        let flags = self.pages.frames.flags(pfn);
        if flags.any(Flags::FILE) {
            self.pages.files().by_node.with(pfn).mapped -= 1;
            self.pages.mapcounts.unmapped(pfn);
            return false;
        }
        if flags.any(Flags::SWAP_CACHE) && (flags.any(Flags::LOCKED) || !self.free_swap_of(pfn)) {
            self.pages.mapcounts.unmapped(pfn);
            return false;
        }
        self.pages.forget_frame(pfn);
        true
    }

    /// Removes a page from the swap cache and frees its slot, unless a page table entry names it.
    pub(crate) fn free_swap_of(&mut self, pfn: Pfn) -> bool {
        let freed = self.pages.free_swap_of(pfn);
        if freed {
            self.mem.set_swap_cache(pfn, false);
        }
        freed
    }

    /// Drops one page table entry's reference to a swap slot.
    #[cold]
    #[inline(never)]
    pub(crate) fn put_slot(&mut self, cpu: CpuId, slot: Slot) {
        let swap = self.pages.swap();
        let page = swap.area.page(slot);
        swap.forget(slot);
        let Some(pfn) = page else { return };
        // If it is still mapped, it only leaves the swap cache.
        let is_busy = self.pages.frames.flags(pfn).any(Flags::LOCKED);
        if !is_busy && self.free_swap_of(pfn) && !self.pages.mapcounts.is_mapped(pfn) {
            self.pages.forget_frame(pfn);
            self.mem.free(cpu, pfn, Order::ZERO);
        }
    }
}
