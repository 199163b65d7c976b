//! The swap area: its slots, their users, and the swap cache.
//!
//! A slot is in use while page table entries name it or the swap cache has a page for it. With the
//! last of these its contents are dropped, its shadow included. The first slot is the area's
//! header. [`super::clusters`] chooses the next slot, [`super::readahead`] the slots read with a
//! wanted one. Source: `mm/swapfile.c`, `mm/swap_state.c` of 6.1. The kernel's per-CPU caches of 64
//! slots are left out: they take the slots in the clusters' order.

use super::clusters::Clusters;
use crate::state::entry::{CacheEntry, Shadows, Upper};
use kontig_mm::{CpuId, GroupId, Pfn, Shadow, SwapSpace};

/// A slot in the swap area.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot(u32);

impl Slot {
    pub(crate) const fn new(number: u32) -> Slot {
        Slot(number)
    }
    pub(crate) const fn get(self) -> u32 {
        self.0
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Slots whose shadows are kept together.
const RUN: u32 = 64;

/// The swap area of a machine.
#[derive(Clone)]
pub(crate) struct Swap {
    /// Its first block on the disk.
    first_block: u32,
    /// Number of page table entries that name each slot.
    users: Vec<u32>,
    /// The page of each slot in memory, or the shadow of a reclaimed one.
    cache: Vec<CacheEntry>,
    /// For each 64 slots what their shadows share, and the number of these.
    runs: Vec<(Upper, u16)>,
    shadows: Shadows,
    /// The memory control group that each slot's page was charged to; empty while all are the
    /// root's.
    groups: Vec<GroupId>,
    clusters: Clusters,
    used: u32,
}

impl Swap {
    /// An empty area of this many blocks. On flash each CPU fills a cluster of its own.
    pub(crate) fn new(first_block: u32, blocks: u32, is_flash: bool, cpus: usize) -> Swap {
        Swap {
            first_block,
            users: vec![0; blocks as usize],
            cache: vec![CacheEntry::EMPTY; blocks as usize],
            runs: vec![(0, 0); blocks.div_ceil(RUN) as usize],
            shadows: Shadows::default(),
            groups: Vec::new(),
            clusters: Clusters::new(blocks, is_flash, cpus),
            used: 0,
        }
    }

    /// Number of slots, the header included.
    pub(crate) fn slots(&self) -> u32 {
        self.users.len() as u32
    }

    /// Total and free slots.
    pub(crate) fn space(&self) -> SwapSpace {
        let total = self.users.len() as u64 - 1;
        SwapSpace { total, free: total - u64::from(self.used) }
    }

    /// The block of a slot.
    pub(crate) fn block(&self, slot: Slot) -> u32 {
        self.first_block + slot.0
    }

    /// Allocates a slot for a page that enters the swap cache; `None` if all are in use.
    pub(crate) fn add(&mut self, cpu: CpuId, pfn: Pfn) -> Option<Slot> {
        let slot = Slot(self.clusters.take(cpu)?);
        self.used += 1;
        self.cache[slot.index()] = CacheEntry::of_page(pfn);
        Some(slot)
    }

    /// Notes the group that the page of a new slot is charged to.
    pub(crate) fn set_group(&mut self, slot: Slot, group: GroupId) {
        if self.groups.is_empty() {
            if group == GroupId::ROOT {
                return;
            }
            self.groups = vec![GroupId::ROOT; self.users.len()];
        }
        self.groups[slot.index()] = group;
    }

    /// The group that the slot's page was charged to when it went.
    pub(crate) fn group_of(&self, slot: Slot) -> GroupId {
        self.groups.get(slot.index()).copied().unwrap_or(GroupId::ROOT)
    }

    /// Slots in use, by the group that their pages were charged to; `groups` is the number of all.
    pub(crate) fn used_by_group(&self, groups: usize) -> Vec<u64> {
        let mut used = vec![0; groups];
        for slot in (0..self.slots()).map(Slot).filter(|slot| self.is_used(*slot)) {
            used[self.group_of(slot).index()] += 1;
        }
        used
    }

    /// Adds a page to the swap cache for a slot that page table entries name; the shadow it
    /// replaces.
    pub(crate) fn bring(&mut self, slot: Slot, pfn: Pfn) -> Option<Shadow> {
        debug_assert!(self.users[slot.index()] > 0 && self.page(slot).is_none());
        let shadow = self.take_shadow(slot);
        self.cache[slot.index()] = CacheEntry::of_page(pfn);
        shadow
    }

    /// The page in the swap cache for this slot.
    pub(crate) fn page(&self, slot: Slot) -> Option<Pfn> {
        self.cache[slot.index()].page()
    }

    /// The pages in the swap cache.
    pub(crate) fn cached(&self) -> impl Iterator<Item = Pfn> {
        self.cache.iter().filter_map(|entry| entry.page())
    }

    /// Records that a page of the swap cache has moved to another frame.
    pub(crate) fn moved(&mut self, slot: Slot, to: Pfn) {
        debug_assert!(self.page(slot).is_some());
        self.cache[slot.index()] = CacheEntry::of_page(to);
    }

    /// Removes a page from the swap cache.
    pub(crate) fn remove(&mut self, slot: Slot, shadow: Option<Shadow>) {
        debug_assert!(self.page(slot).is_some());
        self.cache[slot.index()] = CacheEntry::EMPTY;
        // With the last user the shadow would go, too.
        if let Some(shadow) = shadow
            && self.users(slot) > 0
        {
            let (upper, shadows) = &mut self.runs[(slot.0 / RUN) as usize];
            *shadows += 1;
            self.cache[slot.index()] = self.shadows.add(upper, *shadows == 1, shadow);
        }
        self.free_unused(slot);
    }

    /// Takes the shadow of a slot whose page is not in memory; its entry is overwritten next.
    fn take_shadow(&mut self, slot: Slot) -> Option<Shadow> {
        let (upper, shadows) = &mut self.runs[(slot.0 / RUN) as usize];
        let shadow = self.shadows.take(*upper, self.cache[slot.index()]);
        *shadows -= u16::from(shadow.is_some());
        shadow
    }

    /// The shadow of a slot whose page is not in memory.
    #[cfg(test)]
    pub(crate) fn shadow(&self, slot: Slot) -> Option<Shadow> {
        self.shadows.peek(self.runs[(slot.0 / RUN) as usize].0, self.cache[slot.index()])
    }

    /// Adds a page table entry that names the slot.
    pub(crate) fn name(&mut self, slot: Slot) {
        self.users[slot.index()] += 1;
    }

    /// Drops a page table entry that named the slot.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.users[slot.index()] -= 1;
        self.free_unused(slot);
    }

    /// Number of page table entries that name it.
    pub(crate) fn users(&self, slot: Slot) -> u32 {
        self.users[slot.index()]
    }

    pub(crate) fn is_used(&self, slot: Slot) -> bool {
        self.users(slot) > 0 || self.page(slot).is_some()
    }

    fn free_unused(&mut self, slot: Slot) {
        if !self.is_used(slot) {
            self.take_shadow(slot);
            self.cache[slot.index()] = CacheEntry::EMPTY;
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
