//! A machine as a kernel had it when counting began.
//!
//! Each zone has the pageblocks of each type that `/proc/pagetypeinfo` says, and in those that are
//! not movable the same free blocks of each order. Other memory that is neither free nor on a
//! reclaim list is the kernel's, and lies in movable pageblocks in one piece. Where the pageblocks
//! lie is not known: they are put first in their zone. Memory on the reclaim lists belongs to a
//! resting process and counts as what it was.

use kontig_mm::types::{NR_ORDERS, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};
use kontig_mm::{InUse, MigrateType, ZoneSpec};
use std::ops::Range;

/// The memory of a machine.
#[derive(Clone, Debug, Default)]
pub struct Booted {
    pub zones: Vec<BootedZone>,
    /// Pages on the anonymous lists: of the kernel's first programs and of the initramfs they came
    /// in.
    pub anon: u32,
    /// Those on the active list.
    pub active_anon: u32,
    /// Those that page tables map.
    pub mapped: u32,
    /// Those of the in-memory root file system.
    pub shmem: u32,
    /// Clean file pages: metadata of a file system.
    pub clean: u32,
    /// Dirty file pages: left from making the file system.
    pub dirty: u32,
    /// Slab pages, reclaimable and unreclaimable.
    pub slabs: [u64; 2],
    /// Free pages on per-CPU lists, those of unmovable pageblocks included.
    pub on_cpus: u32,
}

/// The memory of a zone.
#[derive(Clone, Debug)]
pub struct BootedZone {
    pub spec: ZoneSpec,
    /// Pages that the kernel used itself.
    pub taken: u64,
    /// The pageblocks that are not movable.
    pub types: Vec<OfType>,
    /// Pages of its unmovable pageblocks that are free on per-CPU lists.
    pub unmovable_on_cpus: u32,
}

/// The pageblocks of one type.
#[derive(Clone, Debug)]
pub struct OfType {
    pub migratetype: MigrateType,
    pub blocks: u32,
    /// Free blocks in them by order.
    pub free: [u32; NR_ORDERS],
}

impl Booted {
    pub(super) fn specs(&self) -> Vec<ZoneSpec> {
        self.zones.iter().map(|zone| zone.spec.clone()).collect()
    }

    /// Pages of unmovable pageblocks that are free on per-CPU lists.
    pub(super) fn unmovable_on_cpus(&self) -> u32 {
        self.zones.iter().map(|zone| zone.unmovable_on_cpus).sum()
    }

    /// The memory in use.
    pub(super) fn in_use(&self) -> InUse {
        let mut all = InUse::default();
        self.zones.iter().for_each(|zone| zone.lay(&mut all));
        all
    }
}

impl BootedZone {
    fn lay(&self, all: &mut InUse) {
        let ZoneSpec { start, end, managed, .. } = self.spec;
        // Reserved memory is at the start of a zone.
        let first = end - managed as u32;
        let mut block = start.max(first - first % PAGEBLOCK_PAGES);
        let mut left = self.taken as u32;
        for of in &self.types {
            let blocks: Vec<u32> = (0..of.blocks).map(|i| block + i * PAGEBLOCK_PAGES).collect();
            block += of.blocks * PAGEBLOCK_PAGES;
            all.blocks.extend(blocks.iter().map(|b| (*b, of.migratetype)));
            let mut free = of.free;
            if of.migratetype == MigrateType::Unmovable {
                add_blocks(&mut free, self.unmovable_on_cpus);
            }
            let mut used = used_of(&blocks, first, free);
            // At most what the kernel used in all.
            used.retain_mut(|pages| {
                pages.end = pages.end.min(pages.start + left);
                left -= pages.len() as u32;
                pages.start < pages.end
            });
            all.frames.extend(used);
        }
        let block = block.max(first);
        all.frames.extend((left > 0).then_some(block..block + left));
    }
}

/// Adds this number of pages in blocks as large as can be.
fn add_blocks(free: &mut [u32; NR_ORDERS], mut pages: u32) {
    for (order, blocks) in free.iter_mut().enumerate().rev() {
        *blocks += pages >> order;
        pages &= (1 << order) - 1;
    }
}

/// The pages in use of these pageblocks, from `first` on, if `free` blocks of each order are free.
fn used_of(blocks: &[u32], first: u32, mut free: [u32; NR_ORDERS]) -> Vec<Range<u32>> {
    let whole = usize::from(PAGEBLOCK_ORDER.get());
    let mut left: Vec<u32> = blocks.to_vec();
    // Whole pageblocks are free at the end: first pairs, then those without a free buddy to merge
    // with.
    let is_pair = |low: &u32| low.is_multiple_of(2 * PAGEBLOCK_PAGES) && *low >= first;
    while free[whole + 1] > 0
        && let Some(at) = left.windows(2).rposition(|pair| is_pair(&pair[0]) && pair[1] == pair[0] + PAGEBLOCK_PAGES)
    {
        left.drain(at..at + 2);
        free[whole + 1] -= 1;
    }
    let mut alone: Vec<u32> = Vec::new();
    while free[whole] > 0
        && let Some(at) = left.iter().rposition(|b| *b >= first && !alone.contains(&(*b ^ PAGEBLOCK_PAGES)))
    {
        alone.push(left.remove(at));
        free[whole] -= 1;
    }
    let mut used: Vec<Range<u32>> = Vec::new();
    for block in left {
        fill(block, whole, first, &mut free, &mut used);
    }
    used
}

/// The pages in use of a block that is not entirely free. Its first half is free if a free block of
/// that order is needed.
fn fill(at: u32, order: usize, first: u32, free: &mut [u32; NR_ORDERS], used: &mut Vec<Range<u32>>) {
    if at + (1 << order) <= first {
        return;
    }
    if order == 0 {
        match used.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end += 1,
            None => used.push(at..at + 1),
        }
        return;
    }
    let half = order - 1;
    if at >= first && free[half] > 0 {
        free[half] -= 1;
    } else {
        fill(at, half, first, free, used);
    }
    fill(at + (1 << half), half, first, free, used);
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::{MachineSpec, Memory, Order, ZoneType};

    fn zone(types: Vec<OfType>, taken: u64) -> BootedZone {
        let spec =
            ZoneSpec { node: 0, kind: ZoneType::Dma32, start: 4096, end: 65536, present: 61440, managed: 61440 - 700 };
        BootedZone { spec, taken, types, unmovable_on_cpus: 0 }
    }

    #[test]
    fn the_machine_has_the_pageblocks_and_the_free_blocks_that_it_is_said_to_have() {
        let free = [3, 0, 2, 1, 0, 5, 0, 1, 0, 2, 1];
        let types = vec![
            OfType { migratetype: MigrateType::Unmovable, blocks: 9, free },
            OfType { migratetype: MigrateType::Reclaimable, blocks: 2, free: [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
        ];
        let booted = Booted { zones: vec![zone(types, 4000)], ..Booted::default() };
        let spec = MachineSpec { cpus: 1, zones: booted.specs(), thp: false, lru: true };
        let m = Memory::in_use(&spec, kontig_profiles::linux("6.1"), &booted.in_use()).expect("a machine");
        m.check().expect("a consistent one");
        assert_eq!(m.nr_free_pages(), 61440 - 700 - 4000);
        let zone = &m.zones()[0];
        let of =
            |t: MigrateType| -> Vec<u32> { Order::all().map(|order| zone.free_list(order, t).len() as u32).collect() };
        assert_eq!(of(MigrateType::Unmovable), free);
        assert_eq!(of(MigrateType::Reclaimable), [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let blocks = |t| m.pageblocks().count(t, 0, m.pageblocks().len());
        assert_eq!((blocks(MigrateType::Unmovable), blocks(MigrateType::Reclaimable)), (9, 2));
    }

    #[test]
    fn pages_of_unmovable_pageblocks_on_a_cpus_lists_are_free_before_they_get_there() {
        let free = [3, 0, 2, 1, 0, 5, 0, 1, 0, 0, 0];
        let of = OfType { migratetype: MigrateType::Unmovable, blocks: 9, free };
        let on_cpus = 1024 + 300;
        let booted = BootedZone { unmovable_on_cpus: on_cpus, ..zone(vec![of], 4000) };
        let booted = Booted { zones: vec![booted], ..Booted::default() };
        let spec = MachineSpec { cpus: 1, zones: booted.specs(), thp: false, lru: true };
        let m = Memory::in_use(&spec, kontig_profiles::linux("7.2"), &booted.in_use()).expect("a machine");
        let free_of = |order: Order| m.zones()[0].free_list(order, MigrateType::Unmovable).len() as u32 * order.pages();
        let kept: u32 = free.iter().enumerate().map(|(order, blocks)| blocks << order).sum();
        assert_eq!(Order::all().map(free_of).sum::<u32>(), kept + on_cpus);
        assert_eq!(booted.unmovable_on_cpus(), on_cpus);
    }
}
