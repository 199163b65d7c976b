//! Switches the multi-generational LRU on and off.
//!
//! Every evictable page leaves its list from the tail on and joins a generation, or leaves its
//! generation for the head of a list; where to, its state says as at any other time. Pages in
//! batches and isolated ones follow when they return. What the feedback loop remembers stays, and
//! shadows are read by the rules in force when their pages come back. Source: kernel-behaviour
//! §4.10.7.

use crate::rules::Generations;
use crate::state::{Backing, Gen, LruGen, LruList, Memory};
use crate::types::{CpuId, LruvecId, Pfn, ZoneType};
use alloc::string::String;

/// The CPU whose parts of the counters take the changes.
const CPU: CpuId = CpuId::new(0);

impl Memory {
    /// Switches the multi-generational LRU on, with these of its parts.
    ///
    /// # Errors
    /// In one line, if the kernel's is not known, or the machine keeps no order of its pages.
    pub fn enable_lru_gen(&mut self, parts: LruGen) -> Result<(), String> {
        if matches!(self.shared.profile.lru_gen.generations, Generations::None | Generations::Unmodelled) {
            return Err(alloc::format!("{} has no multi-generational LRU that is known", self.shared.profile.name));
        }
        if !self.lru.is_ordered() {
            return Err("this machine keeps no order of its pages".into());
        }
        self.shared.tunables.lru_gen = parts;
        self.set_lru_gen(parts.is_on(), core::iter::empty());
        Ok(())
    }

    /// Switches the multi-generational LRU on or off, where the order of pages is kept.
    /// `swap_cache` names the pages that have a slot in swap.
    pub fn set_lru_gen(&mut self, on: bool, swap_cache: impl Iterator<Item = Pfn>) {
        if !self.lru.is_ordered() || on == self.lru.has_generations() {
            return;
        }
        self.lru.set_generations(on);
        if on {
            swap_cache.for_each(|pfn| self.lru.used_mut(pfn).set_swap_cache(true));
        }
        for lruvec in self.lru.vecs.ids() {
            if on { self.fill_generations(lruvec) } else { self.drain_generations(lruvec) }
        }
        if !on {
            self.lru.forget_used();
        }
    }

    fn fill_generations(&mut self, lruvec: LruvecId) {
        for list in LruList::EVICTABLE {
            while let Some(pfn) = self.lru.vecs[lruvec].lists[list.index()].last() {
                let (zone, order) = (self.blocks.zone_of(pfn), self.frames.tag(pfn).order());
                self.count_listed_of(CPU, zone, lruvec, list, -i64::from(order.pages()));
                self.lru.unlink(lruvec, pfn, list);
                self.link(CPU, pfn, order, false);
            }
        }
    }

    fn drain_generations(&mut self, lruvec: LruvecId) {
        for of in Gen::all() {
            for kind in Backing::ALL.map(Backing::index) {
                for zone in 0..ZoneType::COUNT {
                    while let Some(pfn) = self.lru.gens(lruvec).lists[of.index()][kind][zone].last() {
                        let order = self.frames.tag(pfn).order();
                        self.gen_del(CPU, pfn, order, false);
                        self.link(CPU, pfn, order, false);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Lru, PageFlags};
    use crate::testing::{in_generations, linux, ordered_machine_with, user_page};
    use alloc::vec::Vec;

    const VEC: LruvecId = LruvecId::new(0);

    fn listed(lru: &Lru, list: LruList) -> Vec<Pfn> {
        lru.vecs[VEC].list(list).collect()
    }

    #[test]
    fn pages_move_to_generations_and_back_and_active_ones_are_young() {
        let mut m = ordered_machine_with(2, linux("6.12"));
        let of = |m: &mut Memory, flags| (0..3).map(|_| user_page(m, flags)).collect::<Vec<_>>();
        let [anon, active] = [PageFlags::ANON, PageFlags::ANON | PageFlags::ACTIVE].map(|flags| of(&mut m, flags));
        let file = of(&mut m, PageFlags::FILE);
        m.lru_add_drain(CPU);
        m.set_lru_gen(true, [anon[0]].into_iter());
        m.check().expect("consistent");
        let seqs = |pages: &[Pfn]| -> Vec<u64> {
            let of = |pfn: &Pfn| m.lru.used(*pfn).generation().expect("in one");
            pages.iter().map(|pfn| (0..4).find(|seq| Gen::of(*seq) == of(pfn)).expect("one of four")).collect()
        };
        assert_eq!(seqs(&active), [3; 3]);
        assert_eq!(seqs(&anon), [1, 2, 2], "the first has a slot in swap");
        assert_eq!(seqs(&file), [1; 3]);
        m.set_lru_gen(false, core::iter::empty());
        m.check().expect("consistent");
        let reversed = |pages: &[Pfn]| pages.iter().rev().copied().collect::<Vec<_>>();
        assert_eq!(listed(&m.lru, LruList::InactiveFile), reversed(&file));
        // The youngest generations count as active.
        let young = [anon[2], anon[1]].into_iter().rev().chain(active.iter().copied()).collect::<Vec<_>>();
        assert_eq!(listed(&m.lru, LruList::ActiveAnon), reversed(&young));
        assert_eq!(listed(&m.lru, LruList::InactiveAnon), [anon[0]]);
    }

    #[test]
    fn generations_stay_numbered_while_they_are_off() {
        let mut m = in_generations(2);
        m.lru.gens_mut(VEC).max_seq = 4;
        (0..2).for_each(|i| m.set_lru_gen(i == 1, core::iter::empty()));
        assert_eq!(m.lru.gens(VEC).max_seq, 4);
    }

    #[test]
    fn a_kernel_without_known_generations_and_a_machine_without_order_have_none() {
        assert!(
            ordered_machine_with(2, linux("6.15"))
                .enable_lru_gen(LruGen(1))
                .is_err_and(|e| e.contains("that is known"))
        );
        let mut m = crate::testing::machine_with(2, linux("6.12"));
        assert!(m.enable_lru_gen(LruGen(1)).is_err_and(|e| e.contains("keeps no order")));
        m.sysctl_write("lru_gen.enabled", "1").expect("the kernel takes it");
        assert!(!m.lru.has_generations());
        m.check().expect("nothing is kept");
    }
}
