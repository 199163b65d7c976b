//! What reclaim and compaction are told about pages of processes.
//!
//! A page that is to go gets a place in swap, which makes it a page of the swap cache; then every page table entry of it is
//! made to name the place. It is written there, and goes when that is done. While the disk's queue is full reclaim writes no
//! more, and who reclaims waits. Source: `mm/vmscan.c`, `mm/rmap.c`, `mm/swap_state.c` of 6.1.

use crate::device::{Io, Target};
use crate::owner::Pages;
use crate::state::file::Flags;
use crate::state::swap::Slot;
use crate::state::swap::Swapping;
use kontig_mm::{Memory, MigrateOutcome, PageState, Pfn, References, Shadow, WriteOut};

impl Pages {
    /// The swap of a machine that has some.
    #[inline(always)]
    pub(crate) fn swap(&mut self) -> &mut Swapping {
        self.swap.as_mut().expect("only a machine with swap has pages in the swap cache")
    }

    /// The place of a page of the swap cache.
    #[inline(always)]
    pub(crate) fn slot_of(&self, pfn: Pfn) -> Slot {
        debug_assert!(self.frames.flags(pfn).any(Flags::SWAP_CACHE));
        Slot::new(self.frames.word(pfn))
    }

    /// What reclaim finds in a page of a process.
    pub(crate) fn anon_state(&mut self, pfn: Pfn) -> PageState {
        if self.swap.is_none() {
            // Without swap they stay.
            return PageState { locked: true, anon: true, mapped: true, ..PageState::default() };
        }
        let flags = self.frames.flags(pfn);
        PageState {
            locked: flags.any(Flags::LOCKED),
            mapped: self.mapcounts.is_mapped(pfn),
            dirty: flags.any(Flags::DIRTY),
            writeback: flags.any(Flags::WRITEBACK),
            anon: true,
            swap_cache: flags.any(Flags::SWAP_CACHE),
            ..PageState::default()
        }
    }

    /// The entries through which a page of a process was used, which are so no longer.
    pub(crate) fn anon_references(&mut self, pfn: Pfn, number: u32) -> References {
        let (object, page) = self.objects.at(number);
        let mut ptes = 0;
        for mapping in self.objects.mappings(object) {
            ptes += u32::from(self.spaces.test_and_clear_young(*mapping, page, pfn));
        }
        References { ptes, ..References::default() }
    }

    /// Gives a page of a process a place in swap. False where there is none.
    pub(crate) fn add_anon_to_swap(&mut self, m: &mut Memory, pfn: Pfn) -> bool {
        let cpu = self.cpu;
        let Some(swap) = &mut self.swap else { return false };
        let Some(slot) = swap.area.add(cpu, pfn) else { return false };
        m.set_swap(swap.area.space());
        self.frames.set(pfn, Flags::SWAP_CACHE | Flags::DIRTY);
        self.frames.set_word(pfn, slot.get());
        self.files().counts.file_pages += 1;
        true
    }

    /// Gives a page's place in swap back, unless a page table names it. The page is as if it had never had one.
    pub(crate) fn free_swap_of(&mut self, pfn: Pfn) -> bool {
        let flags = self.frames.flags(pfn);
        if !flags.any(Flags::SWAP_CACHE) || flags.any(Flags::WRITEBACK) {
            return false;
        }
        let slot = self.slot_of(pfn);
        let swap = self.swap();
        if swap.area.users(slot) > 0 {
            return false;
        }
        swap.remove(slot, None);
        self.frames.clear(pfn, Flags::SWAP_CACHE);
        self.frames.set(pfn, Flags::DIRTY);
        self.files().counts.file_pages -= 1;
        true
    }

    /// Has all page table entries of a page of the swap cache name its place instead.
    pub(crate) fn unmap_anon(&mut self, pfn: Pfn, number: u32) -> bool {
        let slot = self.slot_of(pfn);
        let (object, page) = self.objects.at(number);
        let Pages { spaces, objects, swap, frames, .. } = self;
        let swap = swap.as_mut().expect("the page has a place in it");
        for mapping in objects.mappings(object) {
            if let Some(unmapped) = spaces.swap_out(*mapping, page, pfn, slot) {
                swap.area.name(slot);
                self.shootdowns += u64::from(unmapped.elsewhere);
                if unmapped.dirty {
                    frames.set(pfn, Flags::DIRTY);
                }
            }
        }
        self.mapcounts.unmapped(pfn);
        true
    }

    /// Begins to write a page of the swap cache.
    pub(crate) fn write_anon(&mut self, pfn: Pfn) -> WriteOut {
        let (slot, cpu) = (self.slot_of(pfn), self.cpu);
        let swap = self.swap.as_mut().expect("the page has a place in it");
        if !self.devices.device(swap.device).takes_writes() {
            self.full = Some(swap.device);
            return WriteOut::Kept;
        }
        let io = Io { target: Target::Swap(slot.get()), pages: 1, write: true, cpu };
        self.devices.plug(swap.device, swap.area.block(slot), io);
        swap.begin_write(pfn);
        self.frames.clear(pfn, Flags::DIRTY);
        self.frames.set(pfn, Flags::WRITEBACK);
        let counts = &mut self.files().counts;
        counts.swapped_out += 1;
        counts.writeback += 1;
        WriteOut::Queued
    }

    /// A page of the swap cache has been reclaimed.
    pub(crate) fn anon_removed(&mut self, pfn: Pfn, shadow: Option<Shadow>) {
        let slot = self.slot_of(pfn);
        self.swap().remove(slot, shadow);
        self.forget_frame(pfn);
        self.files().counts.file_pages -= 1;
    }

    /// Nothing is known of a frame any more.
    pub(crate) fn forget_frame(&mut self, pfn: Pfn) {
        self.frames.reset(pfn, Flags::default());
        self.mapcounts.reset(pfn);
    }

    /// Moves a page of a process to another frame, unless it is being read or written.
    #[inline(always)]
    pub(crate) fn migrate_anon(&mut self, from: Pfn, to: Pfn, number: u32) -> MigrateOutcome {
        let flags = self.frames.flags(from);
        if flags.any(Flags::LOCKED | Flags::WRITEBACK) {
            return MigrateOutcome::Busy;
        }
        // The number of a page that nobody maps says nothing.
        if self.mapcounts.is_mapped(from) {
            let (object, page) = self.objects.at(number);
            for mapping in self.objects.mappings(object) {
                self.shootdowns += u64::from(self.spaces.moved(*mapping, page, from, to));
            }
        }
        self.mapcounts.moved(from, to);
        if flags.any(Flags::SWAP_CACHE | Flags::DIRTY) {
            if flags.any(Flags::SWAP_CACHE) {
                let slot = self.slot_of(from);
                self.swap().area.moved(slot, to);
            }
            self.frames.moved(from, to);
        }
        MigrateOutcome::Moved
    }
}
