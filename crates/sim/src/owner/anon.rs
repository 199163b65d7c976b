//! The engine's questions about anonymous pages.
//!
//! Reclaim first gives the page a slot in swap, which puts it into the swap cache; then every page
//! table entry is replaced by the slot. The page is written to it, and is freed when that is done.
//! While the disk's queue is full, reclaim writes nothing more and its caller waits. Source:
//! `mm/vmscan.c`, `mm/rmap.c`, `mm/swap_state.c` of 6.1.

use crate::device::{Io, Target};
use crate::owner::Pages;
use crate::state::file::Flags;
use crate::state::swap::Slot;
use crate::state::swap::Swapping;
use kontig_mm::{Memory, MigrateOutcome, PageState, Pfn, References, Shadow, WriteOut};

impl Pages {
    /// The swap of a machine that has it.
    #[inline(always)]
    pub(crate) fn swap(&mut self) -> &mut Swapping {
        self.swap.as_mut().expect("only a machine with swap has pages in the swap cache")
    }

    /// The slot of a page in the swap cache.
    #[inline(always)]
    pub(crate) fn slot_of(&self, pfn: Pfn) -> Slot {
        debug_assert!(self.frames.flags(pfn).any(Flags::SWAP_CACHE));
        Slot::new(self.frames.word(pfn))
    }

    /// The state of an anonymous page.
    pub(crate) fn anon_state(&mut self, pfn: Pfn) -> PageState {
        if self.swap.is_none() {
            // Without swap they cannot be reclaimed.
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

    /// Counts and clears the accessed bits of an anonymous page.
    pub(crate) fn anon_references(&mut self, pfn: Pfn, number: u32) -> References {
        let (object, page) = self.objects.at(number);
        let mut ptes = 0;
        for mapping in self.objects.mappings(object) {
            ptes += u32::from(self.spaces.test_and_clear_young(*mapping, page, pfn));
        }
        References { ptes, ..References::default() }
    }

    /// Adds an anonymous page to the swap cache. False if there is no free slot.
    pub(crate) fn add_anon_to_swap(&mut self, m: &mut Memory, pfn: Pfn) -> bool {
        let cpu = self.cpu;
        let Some(swap) = &mut self.swap else { return false };
        let Some(slot) = swap.area.add(cpu, pfn) else { return false };
        swap.area.set_group(slot, m.groups().of_page(pfn));
        m.set_swap(swap.area.space());
        self.frames.set(pfn, Flags::SWAP_CACHE | Flags::DIRTY);
        self.frames.set_word(pfn, slot.get());
        let files = self.files();
        files.counts.file_pages += 1;
        files.by_node.with(pfn).cached += 1;
        true
    }

    /// Removes a page from the swap cache and frees its slot, unless a page table entry names the
    /// slot.
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
        let files = self.files();
        files.counts.file_pages -= 1;
        files.by_node.with(pfn).cached -= 1;
        true
    }

    /// Replaces all page table entries of a page by its slot in swap.
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
        self.mapcounts.drop_all(pfn);
        true
    }

    /// Starts writing a page to swap.
    pub(crate) fn write_anon(&mut self, pfn: Pfn) -> WriteOut {
        let (slot, cpu) = (self.slot_of(pfn), self.cpu);
        let swap = self.swap.as_mut().expect("the page has a place in it");
        if !self.devices.device(swap.device).takes_writes() {
            self.full = Some(swap.device);
            return WriteOut::Kept;
        }
        let io = Io { target: Target::Swap(slot.get()), pages: 1, write: true, cpu };
        self.devices.add_to_plug(swap.device, swap.area.block(slot), io);
        swap.begin_write(pfn);
        let group = swap.area.group_of(slot);
        self.frames.clear(pfn, Flags::DIRTY);
        self.frames.set(pfn, Flags::WRITEBACK);
        let counts = &mut self.files().counts;
        counts.swapped_out += 1;
        counts.writeback += 1;
        self.groups.count(group, |counts| counts.swapped_out += 1);
        WriteOut::Queued
    }

    /// Removes a reclaimed page from the swap cache.
    pub(crate) fn anon_removed(&mut self, pfn: Pfn, shadow: Option<Shadow>) {
        let slot = self.slot_of(pfn);
        self.swap().remove(slot, shadow);
        self.forget_frame(pfn);
        let files = self.files();
        files.counts.file_pages -= 1;
        files.by_node.with(pfn).cached -= 1;
    }

    /// Resets the state kept of a frame.
    pub(crate) fn forget_frame(&mut self, pfn: Pfn) {
        self.frames.reset(pfn, Flags::default());
        self.mapcounts.reset(pfn);
    }

    /// Moves an anonymous page to another frame, unless it is under I/O.
    #[inline(always)]
    pub(crate) fn migrate_anon(&mut self, from: Pfn, to: Pfn, number: u32) -> MigrateOutcome {
        let flags = self.frames.flags(from);
        if flags.any(Flags::LOCKED | Flags::WRITEBACK) {
            return MigrateOutcome::Busy;
        }
        // The owner word of an unmapped page is stale.
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
