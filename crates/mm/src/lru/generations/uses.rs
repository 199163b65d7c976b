//! How often a page was used.
//!
//! Two flags and a count of two bits say it: the first use through a file descriptor sets
//! referenced, the second workingset, each further one counts up to three. Uses beyond the first
//! decide its tier: none 0, one 1, two or three 2, four 3. A use through page tables makes a page
//! young instead ([`Memory::promote`]). Source: kernel-behaviour §4.10.2.

use super::add::Place;
use crate::state::{Gen, MAX_REFS, Memory, PageFlags, Used};
use crate::types::{CpuId, Order, Pfn};

/// Uses beyond the first.
pub(crate) fn refs(flags: PageFlags, used: Used) -> u8 {
    used.refs() + u8::from(flags.has(PageFlags::WORKINGSET))
}

/// The class of pages used this often: the logarithm, rounded up.
pub(crate) fn tier(refs: u8) -> usize {
    (refs + 1).next_power_of_two().trailing_zeros() as usize
}

impl Memory {
    /// A use through a file descriptor.
    pub(in crate::lru) fn inc_refs(&mut self, pfn: Pfn) {
        let flags = self.lru.flags(pfn);
        if flags.has(PageFlags::UNEVICTABLE) {
            return;
        }
        if !flags.has(PageFlags::REFERENCED) {
            self.lru.set_flags(pfn, flags | PageFlags::REFERENCED);
        } else if !flags.has(PageFlags::WORKINGSET) {
            self.lru.set_flags(pfn, flags | PageFlags::WORKINGSET);
        } else {
            let used = self.lru.used_mut(pfn);
            used.set_refs((used.refs() + 1).min(MAX_REFS));
        }
    }

    /// The count of uses of a page that is new to the LRU: if it is of the working set, all of it.
    #[inline(always)]
    pub(in crate::lru) fn begin_uses(&mut self, pfn: Pfn, flags: PageFlags) {
        if self.lru.has_generations() {
            let mut used = Used::default();
            used.set_refs(if flags.has(PageFlags::WORKINGSET) { MAX_REFS } else { 0 });
            *self.lru.used_mut(pfn) = used;
        }
    }

    /// The page is in the swap cache, or has left it. That reclaim has given a page a slot needs
    /// not be said.
    pub fn set_swap_cache(&mut self, pfn: Pfn, is: bool) {
        if self.lru.has_generations() {
            self.lru.used_mut(pfn).set_swap_cache(is);
        }
    }

    /// Forgets the uses of a page.
    pub(crate) fn forget_uses(&mut self, pfn: Pfn) {
        let flags = self.lru.flags(pfn).without(PageFlags::REFERENCED).without(PageFlags::WORKINGSET);
        self.lru.set_flags(pfn, flags);
        self.lru.used_mut(pfn).set_refs(0);
    }

    /// Promotes a page that was used through page tables: it belongs to the youngest generation now
    /// and moves when it is met on its list. Returns the generation it leaves, if it is in one;
    /// else it counts as referenced.
    pub(crate) fn promote(&mut self, pfn: Pfn, youngest: Gen) -> Option<Gen> {
        let Some(old) = self.lru.used(pfn).generation() else {
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::REFERENCED);
            return None;
        };
        self.forget_uses(pfn);
        self.lru.used_mut(pfn).set_generation(Some(youngest));
        Some(old)
    }

    /// Has a page of the oldest generation belong to the next, unless it was promoted; its uses are
    /// forgotten. Returns the generation it belongs to.
    pub(crate) fn inc_gen(&mut self, cpu: CpuId, pfn: Pfn, order: Order, at: &Place) -> Gen {
        let oldest = Gen::of(self.lru.gens(at.lruvec).min_seq[at.kind()]);
        if let Some(of) = self.lru.used(pfn).generation().filter(|of| *of != oldest) {
            return of;
        }
        let next = oldest.next();
        self.forget_uses(pfn);
        self.lru.used_mut(pfn).set_generation(Some(next));
        self.gen_count(cpu, at, Some(oldest), Some(next), i64::from(order.pages()));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tier_is_the_logarithm_of_the_uses() {
        assert_eq!([0, 1, 2, 3, 4].map(tier), [0, 1, 2, 2, 3]);
    }
}
