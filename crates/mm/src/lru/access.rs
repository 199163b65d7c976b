//! Page use as its owner reports it: the second use of an inactive page activates it.
//!
//! inactive, unreferenced → referenced → active, unreferenced → referenced. Use through page tables
//! is not reported here: reclaim asks for it ([`crate::Owner::references`]). Without an ordered LRU
//! nothing is recorded. Source: kernel-behaviour §4.1.

use crate::state::{BatchKind, FrameKind, Memory, PageFlags};
use crate::types::{CpuId, Pfn};

impl Memory {
    /// The page has been used (`mark_page_accessed`).
    pub fn mark_accessed(&mut self, cpu: CpuId, pfn: Pfn) {
        if !self.lru.is_ordered() {
            return;
        }
        if self.lru.has_generations() {
            return self.inc_refs(pfn);
        }
        let flags = self.lru.flags(pfn);
        if !flags.has(PageFlags::REFERENCED) {
            self.lru.set_flags(pfn, flags | PageFlags::REFERENCED);
        } else if !flags.has(PageFlags::UNEVICTABLE) && !flags.has(PageFlags::ACTIVE) {
            if self.is_on_lru(pfn) {
                self.batch_add(cpu, pfn, BatchKind::Activate);
            } else if self.lru.batch(cpu, BatchKind::Add).contains(&pfn) {
                // It will join the active list from the batch. Another CPU's batch is not searched.
                self.lru.set_flags(pfn, flags | PageFlags::ACTIVE);
            }
            let flags = self.lru.flags(pfn);
            self.lru.set_flags(pfn, flags.without(PageFlags::REFERENCED));
            self.workingset_activation(pfn);
        }
    }

    /// Takes the page's mark of a first use off.
    pub fn clear_referenced(&mut self, pfn: Pfn) {
        if self.lru.is_ordered() {
            self.lru.set_flags(pfn, self.lru.flags(pfn).without(PageFlags::REFERENCED));
        }
    }

    /// The page has been written to, so it will not be clean when reclaim, which has marked it,
    /// expects that.
    pub fn mark_dirty(&mut self, pfn: Pfn) {
        if self.lru.is_ordered() {
            self.lru.set_flags(pfn, self.lru.flags(pfn).without(PageFlags::RECLAIM));
        }
    }

    /// The page is not likely to be used again: moves it to the inactive list.
    pub fn deactivate(&mut self, cpu: CpuId, pfn: Pfn) {
        let flags = self.lru.flags(pfn);
        let active = flags.has(PageFlags::ACTIVE) || self.lru.has_generations();
        if self.is_on_lru(pfn) && active && !flags.has(PageFlags::UNEVICTABLE) && !self.stays_oldest(pfn) {
            self.batch_add(cpu, pfn, BatchKind::Deactivate);
        }
    }

    /// Whether a page that is not likely to be used again stays where it is: where all tiers of
    /// generations decide, one of the oldest, whose uses are forgotten.
    fn stays_oldest(&mut self, pfn: Pfn) -> bool {
        self.counts_all_tiers() && self.clear_refs(pfn)
    }

    /// The file page could not be dropped, or need not stay: reclaim takes it next or, with
    /// `to_be_written`, once it is written.
    pub fn deactivate_file(&mut self, cpu: CpuId, pfn: Pfn, to_be_written: bool) {
        let flags = self.lru.flags(pfn);
        if self.lru.is_ordered() && !flags.has(PageFlags::UNEVICTABLE) && !self.stays_oldest(pfn) {
            let flags = self.lru.flags(pfn).without(PageFlags::WRITE_FIRST);
            self.lru.set_flags(pfn, if to_be_written { flags | PageFlags::WRITE_FIRST } else { flags });
            self.batch_add(cpu, pfn, BatchKind::DeactivateFile);
        }
    }

    /// The anonymous page is no longer needed, clean and not in the swap cache: reclaim may drop it
    /// like a clean file page, unless it is written to first.
    pub fn lazyfree(&mut self, cpu: CpuId, pfn: Pfn) {
        let flags = self.lru.flags(pfn);
        let anon = self.is_on_lru(pfn) && !flags.has(PageFlags::FILE) && !flags.has(PageFlags::UNEVICTABLE);
        if self.lru.is_ordered() && anon {
            self.batch_add(cpu, pfn, BatchKind::Lazyfree);
        }
    }

    /// Writeback of the page has ended. If reclaim waited for it, the page loses its mark and goes
    /// to the tail of its list.
    pub fn end_writeback(&mut self, cpu: CpuId, pfn: Pfn, dirty_again: bool) {
        if !self.lru.is_ordered() {
            return;
        }
        let mut flags = self.lru.flags(pfn);
        if !dirty_again {
            flags = flags.without(PageFlags::WRITE_FIRST);
            self.lru.set_flags(pfn, flags);
        }
        if flags.has(PageFlags::RECLAIM) {
            self.lru.set_flags(pfn, flags.without(PageFlags::RECLAIM));
            if !dirty_again && !flags.has(PageFlags::UNEVICTABLE) && self.is_on_lru(pfn) {
                self.batch_add(cpu, pfn, BatchKind::Rotate);
            }
        }
    }

    /// Whether the page is on one of the lists, not isolated and not only in a batch.
    #[inline(always)]
    pub fn is_on_lru(&self, pfn: Pfn) -> bool {
        self.frames.tag(pfn).kind() == FrameKind::Lru
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::LruList;
    use crate::testing::{ordered_machine, user_page};
    use crate::vmstat::VmEvent;

    const CPU: CpuId = CpuId::new(0);
    const OTHER: CpuId = CpuId::new(1);

    /// A page with these flags on the LRU.
    fn on_lru(flags: PageFlags) -> (Memory, Pfn) {
        let mut m = ordered_machine(1);
        let pfn = user_page(&mut m, flags);
        m.lru_add_drain(CPU);
        (m, pfn)
    }

    fn is(m: &Memory, pfn: Pfn) -> (LruList, bool) {
        let flags = m.lru.flags(pfn);
        (flags.list(), flags.has(PageFlags::REFERENCED))
    }

    #[test]
    fn the_second_use_makes_a_page_active_and_the_third_is_noted() {
        let (mut m, pfn) = on_lru(PageFlags::FILE);
        let mut used = || {
            m.mark_accessed(CPU, pfn);
            m.lru_add_drain(CPU);
            is(&m, pfn)
        };
        assert_eq!(used(), (LruList::InactiveFile, true));
        assert_eq!(used(), (LruList::ActiveFile, false));
        assert_eq!(used(), (LruList::ActiveFile, true));
        assert_eq!(used(), (LruList::ActiveFile, true));
        assert_eq!(m.vmstat().get(VmEvent::Pgactivate), 1);
        assert_eq!(m.lru.vecs[m.lruvec_of(pfn)].nonresident_age, 1);
    }

    #[test]
    fn a_page_that_cannot_be_evicted_never_becomes_active() {
        let (mut m, pfn) = on_lru(PageFlags::FILE | PageFlags::UNEVICTABLE);
        (0..3).for_each(|_| m.mark_accessed(CPU, pfn));
        m.deactivate(CPU, pfn);
        m.deactivate_file(CPU, pfn, false);
        assert_eq!((is(&m, pfn), m.lru.holds(pfn)), ((LruList::Unevictable, true), 0));
    }

    #[test]
    fn a_page_in_its_own_cpus_batch_is_put_on_the_active_list_in_the_first_place() {
        for (cpu, list) in [(CPU, LruList::ActiveFile), (OTHER, LruList::InactiveFile)] {
            let mut m = ordered_machine(1);
            let pfn = user_page(&mut m, PageFlags::FILE);
            m.mark_accessed(cpu, pfn);
            m.mark_accessed(cpu, pfn);
            m.lru_add_drain_all();
            assert_eq!(is(&m, pfn), (list, false));
            assert_eq!(m.vmstat().get(VmEvent::Pgactivate), 0, "it never moved");
            m.check().expect("consistent");
        }
    }

    #[test]
    fn only_active_pages_are_deactivated() {
        for (flags, held) in [(PageFlags::FILE | PageFlags::ACTIVE | PageFlags::REFERENCED, 1), (PageFlags::FILE, 0)] {
            let (mut m, pfn) = on_lru(flags);
            m.deactivate(CPU, pfn);
            assert_eq!(m.lru.holds(pfn), held);
            m.lru_add_drain(CPU);
            assert_eq!(is(&m, pfn), (LruList::InactiveFile, false));
            assert_eq!(m.vmstat().get(VmEvent::Pgdeactivate), u64::from(held));
        }
    }

    #[test]
    fn a_file_that_could_not_be_dropped_goes_to_the_end_or_is_reclaimed_when_it_is_written() {
        let (mut m, clean) = on_lru(PageFlags::FILE | PageFlags::ACTIVE);
        let dirty = user_page(&mut m, PageFlags::FILE | PageFlags::ACTIVE);
        let others = [PageFlags::FILE; 2].map(|flags| user_page(&mut m, flags));
        m.lru_add_drain(CPU);
        m.deactivate_file(CPU, clean, false);
        m.deactivate_file(CPU, dirty, true);
        m.lru_add_drain(CPU);
        let node = m.lruvec_of(clean);
        let listed = |m: &Memory| m.lru.vecs[node].list(LruList::InactiveFile).collect::<alloc::vec::Vec<_>>();
        assert_eq!(listed(&m), [dirty, others[1], others[0], clean]);
        assert_eq!((m.vmstat().get(VmEvent::Pgrotated), m.vmstat().get(VmEvent::Pgdeactivate)), (1, 2));
        m.end_writeback(CPU, dirty, false);
        assert!(!m.lru.flags(dirty).has(PageFlags::RECLAIM));
        m.lru_add_drain(CPU);
        assert_eq!(listed(&m), [others[1], others[0], clean, dirty]);
        m.end_writeback(CPU, clean, false);
        assert_eq!(m.lru.holds(clean), 0, "reclaim does not wait for this one");
    }
    #[test]
    fn a_file_that_is_written_before_its_batch_moves_is_rotated_once() {
        let (mut m, pfn) = on_lru(PageFlags::FILE);
        m.deactivate_file(CPU, pfn, true);
        assert!(!m.lru.flags(pfn).has(PageFlags::RECLAIM), "not before the batch moves");
        m.end_writeback(CPU, pfn, false);
        m.lru_add_drain(CPU);
        assert!(!m.lru.flags(pfn).has(PageFlags::RECLAIM));
        assert_eq!(m.vmstat().get(VmEvent::Pgrotated), 1);
    }

    #[test]
    fn an_anonymous_page_that_is_no_longer_needed_is_listed_with_the_files() {
        let (mut m, pfn) = on_lru(PageFlags::ANON | PageFlags::ACTIVE);
        (0..2).for_each(|_| {
            m.lazyfree(CPU, pfn);
            m.lru_add_drain(CPU);
        });
        assert_eq!(is(&m, pfn), (LruList::InactiveFile, false));
        assert_eq!(m.vmstat().get(VmEvent::Pglazyfree), 1, "the second time it is listed there already");
    }

    #[test]
    fn where_the_order_is_not_kept_use_leaves_no_trace() {
        let mut m = crate::testing::machine(1);
        let pfn = user_page(&mut m, PageFlags::ANON);
        m.mark_accessed(CPU, pfn);
        m.mark_accessed(CPU, pfn);
        m.deactivate(CPU, pfn);
        m.deactivate_file(CPU, pfn, true);
        m.lazyfree(CPU, pfn);
        m.end_writeback(CPU, pfn, false);
        m.lru_add_drain_all();
        m.check().expect("nothing is kept");
    }
}
