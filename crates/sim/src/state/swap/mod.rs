//! Swap: places on a disk for anonymous pages, who uses them, and the pages of them that are in memory.
//!
//! A slot is in use while page tables name it or the swap cache has a page for it. What was in it is forgotten with the last
//! of both, the shadow too. The first slot is the area's header. Which slot is next is [`clusters`]' to say; what is read
//! with a slot that is wanted, [`readahead`]'s. Source: `mm/swapfile.c`, `mm/swap_state.c` of 6.1. The kernel's per-CPU
//! caches of 64 slots are left out: they take the slots in the order in which the clusters give them.

mod clusters;
pub(crate) mod readahead;
mod swapping;

pub(crate) use swapping::Swapping;

use crate::state::entry::Entry;
use clusters::Clusters;
use kontig_mm::{CpuId, Pfn, Shadow, SwapSpace};

/// A place for a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot(u32);

impl Slot {
    /// The slot with this number.
    pub(crate) const fn new(number: u32) -> Slot {
        Slot(number)
    }
    /// The number.
    pub(crate) const fn get(self) -> u32 {
        self.0
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The swap area of a machine.
#[derive(Clone)]
pub(crate) struct Swap {
    /// Its first block on the disk.
    first_block: u32,
    /// How many page tables name each slot.
    users: Vec<u32>,
    /// The page for each slot that is in memory, or the shadow of the one that was.
    cache: Vec<Entry>,
    clusters: Clusters,
    used: u32,
}

impl Swap {
    /// An empty area of so many blocks of a disk. Where seeks cost nothing each CPU has a cluster of its own.
    pub(crate) fn new(first_block: u32, blocks: u32, is_flash: bool, cpus: usize) -> Swap {
        Swap {
            first_block,
            users: vec![0; blocks as usize],
            cache: vec![Entry::EMPTY; blocks as usize],
            clusters: Clusters::new(blocks, is_flash, cpus),
            used: 0,
        }
    }

    /// How many slots there are, with the header.
    pub(crate) fn slots(&self) -> u32 {
        self.users.len() as u32
    }

    /// How much room there is in all, and how much is left.
    pub(crate) fn space(&self) -> SwapSpace {
        let total = self.users.len() as u64 - 1;
        SwapSpace { total, free: total - u64::from(self.used) }
    }

    /// The block of a slot.
    pub(crate) fn block(&self, slot: Slot) -> u32 {
        self.first_block + slot.0
    }

    /// Takes a slot for a page that goes into the swap cache; `None` where all are in use.
    pub(crate) fn add(&mut self, cpu: CpuId, pfn: Pfn) -> Option<Slot> {
        let slot = Slot(self.clusters.take(cpu)?);
        self.used += 1;
        self.cache[slot.index()] = Entry::of_page(pfn);
        Some(slot)
    }

    /// Brings a page into the swap cache for a slot that page tables name; the shadow that stood there.
    pub(crate) fn bring(&mut self, slot: Slot, pfn: Pfn) -> Option<Shadow> {
        debug_assert!(self.users[slot.index()] > 0 && self.page(slot).is_none());
        std::mem::replace(&mut self.cache[slot.index()], Entry::of_page(pfn)).shadow()
    }

    /// The page in the swap cache for this slot.
    pub(crate) fn page(&self, slot: Slot) -> Option<Pfn> {
        self.cache[slot.index()].page()
    }

    /// The swap cache's page has moved to another frame.
    pub(crate) fn moved(&mut self, slot: Slot, to: Pfn) {
        debug_assert!(self.page(slot).is_some());
        self.cache[slot.index()] = Entry::of_page(to);
    }

    /// The page leaves the swap cache.
    pub(crate) fn remove(&mut self, slot: Slot, shadow: Option<Shadow>) {
        debug_assert!(self.page(slot).is_some());
        self.cache[slot.index()] = Entry::of_shadow(shadow);
        self.free_unused(slot);
    }

    /// A slot whose page is not in memory: what is remembered of the page.
    #[cfg(test)]
    pub(crate) fn shadow(&self, slot: Slot) -> Option<Shadow> {
        self.cache[slot.index()].shadow()
    }

    /// One more page table names the slot.
    pub(crate) fn name(&mut self, slot: Slot) {
        self.users[slot.index()] += 1;
    }

    /// One page table less names the slot.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.users[slot.index()] -= 1;
        self.free_unused(slot);
    }

    /// How many page tables name it.
    pub(crate) fn users(&self, slot: Slot) -> u32 {
        self.users[slot.index()]
    }

    /// Whether it is in use.
    pub(crate) fn is_used(&self, slot: Slot) -> bool {
        self.users(slot) > 0 || self.page(slot).is_some()
    }

    fn free_unused(&mut self, slot: Slot) {
        if !self.is_used(slot) {
            self.cache[slot.index()] = Entry::EMPTY;
            self.clusters.free(slot.0);
            self.used -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId::new(0);

    #[test]
    fn a_slot_is_free_again_when_neither_a_page_table_nor_the_cache_has_it() {
        let mut swap = Swap::new(100, 1024, true, 1);
        assert_eq!(swap.space(), SwapSpace { total: 1023, free: 1023 });
        let slot = swap.add(CPU, Pfn::new(7)).expect("it is empty");
        assert_eq!((swap.page(slot), swap.block(slot)), (Some(Pfn::new(7)), 100 + slot.get()));
        swap.name(slot);
        swap.name(slot);
        let shadow = Shadow { lruvec: kontig_mm::LruvecId::new(0), eviction: 5, workingset: true };
        swap.remove(slot, Some(shadow));
        assert_eq!((swap.page(slot), swap.shadow(slot), swap.space().free), (None, Some(shadow), 1022));
        swap.forget(slot);
        assert_eq!(swap.bring(slot, Pfn::new(9)), Some(shadow));
        swap.forget(slot);
        assert!(swap.is_used(slot), "the cache has it");
        swap.remove(slot, None);
        assert_eq!((swap.is_used(slot), swap.space().free), (false, 1023));
    }

    #[test]
    fn there_are_as_many_slots_as_blocks_but_for_the_header() {
        for is_flash in [true, false] {
            let mut swap = Swap::new(0, 1000, is_flash, 2);
            let all: Vec<Slot> = std::iter::from_fn(|| swap.add(CPU, Pfn::new(1))).collect();
            let distinct: std::collections::BTreeSet<Slot> = all.iter().copied().collect();
            assert_eq!((all.len(), distinct.len(), swap.space().free), (999, 999, 0), "flash {is_flash}");
            assert!(!distinct.contains(&Slot::new(0)));
            swap.remove(all[500], None);
            assert_eq!(swap.add(CPU, Pfn::new(1)), Some(all[500]), "flash {is_flash}");
        }
    }
}
