//! How often a page was used.
//!
//! Two flags and a count of two bits say it. Where the first tiers decide, the first use through a
//! file descriptor sets referenced, the second workingset, each further one counts up to three;
//! uses beyond the first decide its tier: none 0, one 1, two or three 2, four 3. Where all tiers
//! do, workingset comes last, and is tier 3. A use through page tables makes a page young instead
//! ([`Memory::promote`]). Source: kernel-behaviour §4.10.2, §4.10.9.

use super::add::Place;
use crate::rules::LruGenRules;
use crate::state::{Gen, MAX_NR_TIERS, MAX_REFS, Memory, PageFlags, Used};
use crate::types::{CpuId, Order, Pfn};

/// The uses of a page, as far as they are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Uses {
    /// Uses beyond the first; where all tiers decide, those since the page was last promoted or
    /// protected.
    pub(crate) refs: u8,
    /// The class of pages used this often.
    pub(crate) tier: usize,
    /// No further use is counted.
    pub(crate) is_full: bool,
}

impl Uses {
    pub(crate) fn of(rules: &LruGenRules, flags: PageFlags, used: Used) -> Uses {
        let workingset = flags.has(PageFlags::WORKINGSET);
        if rules.by_all_tiers() {
            let refs = if flags.has(PageFlags::REFERENCED) { used.refs() + 1 } else { 0 };
            return Uses { refs, tier: tier_of_all(refs, workingset), is_full: refs > MAX_REFS && workingset };
        }
        let refs = used.refs() + u8::from(workingset);
        Uses { refs, tier: tier(refs), is_full: refs > MAX_REFS }
    }
}

/// Whether a page that is not of the working set has not been used.
fn is_unused(flags: PageFlags) -> bool {
    !flags.has(PageFlags::REFERENCED) && !flags.has(PageFlags::WORKINGSET)
}

/// The class of pages used this often after the first time: the logarithm, rounded up.
pub(crate) fn tier(refs: u8) -> usize {
    tier_of_all(refs + 1, false)
}

/// The same where all tiers decide, by all uses.
pub(crate) fn tier_of_all(refs: u8, workingset: bool) -> usize {
    if workingset { MAX_NR_TIERS - 1 } else { refs.next_power_of_two().trailing_zeros() as usize }
}

impl Memory {
    /// A use through a file descriptor.
    pub(in crate::lru) fn inc_refs(&mut self, pfn: Pfn) {
        let flags = self.lru.flags(pfn);
        if flags.has(PageFlags::UNEVICTABLE) {
            return;
        }
        if self.shared.profile.lru_gen.by_all_tiers() {
            return self.inc_refs_of_all(pfn, flags);
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

    fn inc_refs_of_all(&mut self, pfn: Pfn, flags: PageFlags) {
        if !flags.has(PageFlags::REFERENCED) {
            return self.note_first_use(pfn, flags);
        }
        let used = self.lru.used_mut(pfn);
        if used.refs() < MAX_REFS {
            used.set_refs(used.refs() + 1);
        } else {
            self.lru.set_flags(pfn, flags | PageFlags::WORKINGSET);
        }
    }

    fn note_first_use(&mut self, pfn: Pfn, flags: PageFlags) {
        self.lru.set_flags(pfn, flags | PageFlags::REFERENCED);
        self.lru.used_mut(pfn).set_refs(0);
    }

    /// A use through a page table, where all tiers decide: the first of a page that is not of the
    /// working set is noted. False if it is, and the page is not to become young.
    pub(crate) fn used_again(&mut self, pfn: Pfn) -> bool {
        let (flags, used) = (self.lru.flags(pfn), self.lru.used(pfn));
        if is_unused(flags) {
            self.note_first_use(pfn, flags);
            return false;
        }
        if Uses::of(&self.shared.profile.lru_gen, flags, used).refs > 1 {
            self.join_workingset(pfn);
        } else {
            self.inc_refs(pfn);
        }
        true
    }

    /// Forgets the uses of a page that is not likely to be used again, where all tiers decide.
    /// Whether it would not move: it is in the oldest generation, or off the lists.
    pub(in crate::lru) fn clear_refs(&mut self, pfn: Pfn) -> bool {
        let Some(of) = self.lru.used(pfn).generation() else { return true };
        self.forget_uses(pfn);
        let flags = self.lru.flags(pfn);
        self.lru.set_flags(pfn, flags.without(PageFlags::WORKINGSET));
        of == Gen::of(self.lru.gens(self.lruvec_of(pfn)).min_seq[flags.backing().index()])
    }

    /// The count of uses of a page that is new to the LRU: if it is of the working set, all of it,
    /// where the first tiers decide; else what its shadow says, until it is used.
    #[inline(always)]
    pub(in crate::lru) fn begin_uses(&mut self, pfn: Pfn, flags: PageFlags) {
        if self.lru.has_generations() {
            let mut used = Used::default();
            let by_all_tiers = self.shared.profile.lru_gen.by_all_tiers();
            let refs = match self.lru.comes_back.take() {
                Some((back, refs)) if back == pfn && !flags.has(PageFlags::REFERENCED) => refs,
                _ if !by_all_tiers && flags.has(PageFlags::WORKINGSET) => MAX_REFS,
                _ => 0,
            };
            used.set_refs(refs);
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

    /// Forgets the uses of a page. Where all tiers decide it stays of the working set.
    pub(crate) fn forget_uses(&mut self, pfn: Pfn) {
        let stays = self.shared.profile.lru_gen.by_all_tiers();
        let flags = self.lru.flags(pfn).without(PageFlags::REFERENCED);
        self.lru.set_flags(pfn, if stays { flags } else { flags.without(PageFlags::WORKINGSET) });
        self.lru.used_mut(pfn).set_refs(0);
    }

    /// The page is of the working set; its uses are counted anew.
    fn join_workingset(&mut self, pfn: Pfn) {
        self.forget_uses(pfn);
        self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::WORKINGSET);
    }

    /// Promotes a page that was used through page tables: it belongs to the youngest generation now
    /// and moves when it is met on its list. Returns the generation it leaves, if it is in one;
    /// else it counts as referenced. Where all tiers decide, a first use only counts so.
    pub(crate) fn promote(&mut self, pfn: Pfn, youngest: Gen) -> Option<Gen> {
        if self.shared.profile.lru_gen.by_all_tiers() {
            return self.promote_used_twice(pfn, youngest);
        }
        let Some(old) = self.lru.used(pfn).generation() else {
            self.lru.set_flags(pfn, self.lru.flags(pfn) | PageFlags::REFERENCED);
            return None;
        };
        self.forget_uses(pfn);
        self.lru.used_mut(pfn).set_generation(Some(youngest));
        Some(old)
    }

    fn promote_used_twice(&mut self, pfn: Pfn, youngest: Gen) -> Option<Gen> {
        let flags = self.lru.flags(pfn);
        if is_unused(flags) {
            self.note_first_use(pfn, flags);
            return None;
        }
        let old = self.lru.used(pfn).generation()?;
        self.join_workingset(pfn);
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

    use crate::state::BatchKind;
    use crate::testing::{in_generations_of, user_page};

    const CPU: CpuId = CpuId::new(0);

    #[test]
    fn the_tier_is_the_logarithm_of_the_uses() {
        assert_eq!([0, 1, 2, 3, 4].map(tier), [0, 1, 2, 2, 3]);
        assert_eq!([0, 1, 2, 3, 4].map(|refs| tier_of_all(refs, false)), [0, 0, 1, 2, 2]);
        assert_eq!(tier_of_all(0, true), 3);
    }

    #[test]
    fn by_all_tiers_the_fifth_use_makes_a_page_of_the_working_set() {
        let mut m = in_generations_of("7.2", 2);
        let pfn = user_page(&mut m, PageFlags::FILE);
        let used = |m: &mut Memory| {
            m.mark_accessed(CPU, pfn);
            let uses = Uses::of(&m.shared.profile.lru_gen, m.lru.flags(pfn), m.lru.used(pfn));
            (uses.refs, uses.tier, uses.is_full)
        };
        let seen = [(); 6].map(|()| used(&mut m));
        let before = [(1, 0, false), (2, 1, false), (3, 2, false), (4, 2, false)];
        assert_eq!(seen[..4], before);
        assert_eq!(seen[4..], [(4, 3, true); 2]);
    }

    #[test]
    fn by_all_tiers_the_second_use_through_a_page_table_promotes() {
        let mut m = in_generations_of("7.2", 2);
        let pfn = user_page(&mut m, PageFlags::FILE);
        m.lru_add_drain(CPU);
        let youngest = Gen::of(3);
        let is = |m: &Memory| [PageFlags::REFERENCED, PageFlags::WORKINGSET].map(|flag| m.lru.flags(pfn).has(flag));
        assert_eq!((m.promote(pfn, youngest), is(&m)), (None, [true, false]));
        assert_eq!((m.promote(pfn, youngest), is(&m)), (Some(Gen::of(0)), [false, true]));
        let reclaimed = user_page(&mut m, PageFlags::FILE);
        assert_eq!([(); 2].map(|()| m.used_again(reclaimed)), [false, true]);
        assert!(!m.lru.flags(reclaimed).has(PageFlags::WORKINGSET), "it was used twice");
        assert!(m.used_again(reclaimed) && m.lru.flags(reclaimed).has(PageFlags::WORKINGSET));
    }

    #[test]
    fn by_all_tiers_an_idle_page_is_forgotten_and_moves_unless_it_is_of_the_oldest() {
        let mut m = in_generations_of("7.2", 2);
        let [old, young] = [PageFlags::FILE, PageFlags::FILE | PageFlags::WORKINGSET | PageFlags::ACTIVE]
            .map(|flags| user_page(&mut m, flags));
        m.lru_add_drain(CPU);
        for pfn in [old, young] {
            m.mark_accessed(CPU, pfn);
            m.deactivate(CPU, pfn);
            assert_eq!(m.lru.flags(pfn), PageFlags::FILE);
        }
        assert_eq!(m.lru.batch(CPU, BatchKind::Deactivate), [young]);
    }
}
