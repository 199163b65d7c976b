//! Shadows by generation: an evicted page leaves the number of the oldest generation and how often
//! it was used.
//!
//! A page that comes back while that generation is still the oldest counts as refaulted in its
//! tier. One that a program faults in, or that was used as often as can be counted, is of the
//! working set. Where all tiers decide, it counts if that generation would be one of the youngest
//! four, and is of the working set if it was before. Source: kernel-behaviour §4.10.5, §4.10.9.

use super::super::workingset::Shadow;
use super::uses::{Uses, tier, tier_of_all};
use crate::state::{BatchKind, Known, MAX_NR_GENS, MAX_REFS, Memory, NodeStat, PageFlags};
use crate::types::{CpuId, Order, Pfn};

/// Bits of a shadow's token that count uses.
const REFS_WIDTH: u32 = 2;

impl Memory {
    /// Counts the eviction and returns the page's shadow.
    pub(in crate::lru) fn gen_eviction(&mut self, pfn: Pfn, pages: u64) -> Shadow {
        let lruvec = self.lruvec_of(pfn);
        let flags = self.lru.flags(pfn);
        let rules = &self.shared.profile.lru_gen;
        let (kind, uses) = (flags.backing().index(), Uses::of(rules, flags, self.lru.used(pfn)));
        let workingset = if rules.by_all_tiers() { flags.has(PageFlags::WORKINGSET) } else { uses.refs > 0 };
        let gens = self.lru.gens_mut(lruvec);
        gens.tiers[kind][uses.tier].evicted += pages;
        let eviction = gens.min_seq[kind] << REFS_WIDTH | u64::from(uses.refs.saturating_sub(1));
        Shadow { lruvec, eviction, workingset }
    }

    /// Handles the refault of a page that left `shadow`; `in_fault` if a program waits for it.
    pub(in crate::lru) fn gen_refault(
        &mut self,
        cpu: CpuId,
        pfn: Pfn,
        flags: PageFlags,
        shadow: Shadow,
        in_fault: bool,
    ) -> PageFlags {
        let lruvec = self.lruvec_of(pfn);
        if shadow.lruvec != lruvec {
            return flags;
        }
        let backing = flags.backing();
        let pages = u64::from(self.frames.tag(pfn).order().pages());
        self.count_state(lruvec, NodeStat::refault(backing), cpu, pages as i64);
        if self.shared.profile.lru_gen.by_all_tiers() {
            return self.gen_refault_of_all(cpu, pfn, flags, shadow, in_fault);
        }
        let gens = self.lru.gens_mut(lruvec);
        if shadow.eviction >> REFS_WIDTH != gens.min_seq[backing.index()] {
            return flags;
        }
        let refs = (shadow.eviction & u64::from(MAX_REFS)) as u8 + u8::from(shadow.workingset);
        gens.tiers[backing.index()][tier(refs)].refaulted += pages;
        self.count_state(lruvec, NodeStat::activate(backing), cpu, pages as i64);
        if !in_fault && refs < MAX_REFS {
            return flags;
        }
        self.count_state(lruvec, NodeStat::restore(backing), cpu, pages as i64);
        flags | PageFlags::WORKINGSET
    }

    fn gen_refault_of_all(
        &mut self,
        cpu: CpuId,
        pfn: Pfn,
        flags: PageFlags,
        shadow: Shadow,
        in_fault: bool,
    ) -> PageFlags {
        let (backing, pages) = (flags.backing(), u64::from(self.frames.tag(pfn).order().pages()));
        let gens = self.lru.gens_mut(shadow.lruvec);
        if gens.max_seq.abs_diff(shadow.eviction >> REFS_WIDTH) >= MAX_NR_GENS as u64 {
            return flags;
        }
        let refs = (shadow.eviction & u64::from(MAX_REFS)) as u8;
        gens.tiers[backing.index()][tier_of_all(refs + 1, shadow.workingset)].refaulted += pages;
        if !shadow.workingset {
            self.lru.comes_back = Some((pfn, refs));
            return flags;
        }
        if in_fault {
            self.count_state(shadow.lruvec, NodeStat::activate(backing), cpu, pages as i64);
        }
        self.count_state(shadow.lruvec, NodeStat::restore(backing), cpu, pages as i64);
        flags | PageFlags::WORKINGSET
    }

    /// As [`Memory::workingset_refault`], of a page that a program's fault brings back.
    pub fn workingset_refault_in_fault(&mut self, cpu: CpuId, pfn: Pfn, flags: PageFlags, shadow: Shadow) -> PageFlags {
        match self.lru.has_generations() {
            true => self.gen_refault(cpu, pfn, flags, shadow, true),
            false => self.workingset_refault(cpu, pfn, flags, shadow),
        }
    }

    /// The flags with which a program's fault adds a page: where there are generations it joins the
    /// youngest; where all tiers decide, only if it is of the working set, and else is used once.
    #[inline(always)]
    fn flags_in_fault(&self, flags: PageFlags) -> PageFlags {
        match self.lru.has_generations() {
            true if self.shared.profile.lru_gen.by_all_tiers() && !flags.has(PageFlags::WORKINGSET) => {
                flags | PageFlags::REFERENCED
            }
            true => flags | PageFlags::ACTIVE,
            false => flags,
        }
    }

    /// As [`Memory::lru_add`], of a page that a program's fault brings in.
    ///
    /// # Panics
    /// As [`Memory::lru_add`] does.
    #[inline(always)]
    pub fn lru_add_in_fault(&mut self, cpu: CpuId, pfn: Pfn, order: Order, flags: PageFlags) {
        self.lru_add(cpu, pfn, order, self.flags_in_fault(flags));
    }

    /// As [`Memory::lru_add`], of a page read from swap, for a program's fault or for a daemon.
    ///
    /// # Panics
    /// As [`Memory::lru_add`] does.
    pub fn lru_add_from_swap(&mut self, cpu: CpuId, pfn: Pfn, flags: PageFlags, in_fault: bool) {
        if !self.lru.has_generations() {
            return self.lru_add(cpu, pfn, Order::ZERO, flags);
        }
        let flags = if in_fault { self.flags_in_fault(flags) } else { flags };
        self.lru.set_known(pfn, Known::new(flags).held());
        self.begin_uses(pfn, flags);
        self.lru.used_mut(pfn).set_swap_cache(true);
        self.batch_push(cpu, pfn, Order::ZERO, BatchKind::Add);
    }

    /// As [`Memory::lru_add_pages`], of pages that a program's faults bring in.
    ///
    /// # Panics
    /// As [`Memory::lru_add`] does.
    #[inline(always)]
    pub fn lru_add_pages_in_fault(&mut self, cpu: CpuId, pages: &[Pfn], flags: PageFlags) {
        self.lru_add_pages(cpu, pages, self.flags_in_fault(flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_generations_of, user_page};
    use crate::types::LruvecId;

    const CPU: CpuId = CpuId::new(0);
    const VEC: LruvecId = LruvecId::new(0);

    /// Evicts a file's page that was used this often, and brings it back after this many
    /// generations have begun. Returns its flags, its count of uses, and its tier's refaults.
    fn comes_back(uses: usize, begun: u64, in_fault: bool) -> (PageFlags, u8, u64) {
        let mut m = in_generations_of("7.2", 2);
        let pfn = user_page(&mut m, PageFlags::FILE);
        m.lru_add_drain(CPU);
        (0..uses).for_each(|_| m.mark_accessed(CPU, pfn));
        let shadow = m.gen_eviction(pfn, 1);
        let gens = m.lru.gens_mut(VEC);
        gens.max_seq += begun;
        gens.min_seq = [gens.max_seq - 3; 2];
        let flags = m.gen_refault(CPU, pfn, PageFlags::FILE, shadow, in_fault);
        let refaulted = m.lru.gens(VEC).tiers[1].iter().map(|tier| tier.refaulted).sum();
        m.begin_uses(pfn, flags);
        (flags, m.lru.used(pfn).refs(), refaulted)
    }

    #[test]
    fn by_all_tiers_a_page_is_known_again_for_four_generations() {
        let file = PageFlags::FILE;
        assert_eq!(comes_back(3, 0, false), (file, 2, 1));
        assert_eq!(comes_back(3, 1, false), (file, 0, 0), "the fourth after the one it left in");
        assert_eq!(comes_back(5, 0, false), (file | PageFlags::WORKINGSET, 0, 1));
    }

    #[test]
    fn by_all_tiers_a_fault_activates_the_working_set_alone() {
        let m = in_generations_of("7.2", 2);
        let file = PageFlags::FILE;
        assert_eq!(m.flags_in_fault(file), file | PageFlags::REFERENCED);
        let known = file | PageFlags::WORKINGSET;
        assert_eq!(m.flags_in_fault(known), known | PageFlags::ACTIVE);
    }
}
