//! Aging: begins a generation, and ends the oldest.
//!
//! Only four generations have lists. If there are four already, what is left of the oldest joins
//! the one after it. An oldest generation whose lists are empty ends; that of file pages is
//! never older than that of anonymous ones. Where all tiers decide, neither kind has fewer than
//! three generations while the other has four. Source: kernel-behaviour §4.10.3, §4.10.9.

use super::MAX_LRU_BATCH;
use crate::lru::generations::uses::Uses;
use crate::owner::Owner;
use crate::reclaim::control::{DEF_PRIORITY, ScanControl};
use crate::state::{Backing, Gen, MAX_NR_GENS, MIN_NR_GENS, Memory};
use crate::types::{CpuId, LruvecId, ZoneType};

const ANON: usize = Backing::Anon.index();
const FILE: usize = Backing::File.index();

/// The kinds that may be evicted.
pub(super) fn kinds(can_swap: bool) -> core::ops::Range<usize> {
    usize::from(!can_swap)..2
}

impl Memory {
    /// Begins a generation after `seq`, which was the youngest, once page tables are walked where
    /// walks are on; all of them, if that is forced. False if they were walked for it before.
    pub(super) fn try_to_inc_max_seq<O: Owner>(
        &mut self,
        owner: &mut O,
        sc: &mut ScanControl,
        lruvec: LruvecId,
        seq: u64,
        can_swap: bool,
        force: bool,
    ) -> bool {
        let gens = self.lru.gens_mut(lruvec);
        if seq <= gens.walk_seq {
            return false;
        }
        let walked = if self.shared.tunables.lru_gen.walks() {
            self.walk_mms(owner, sc, lruvec, seq, can_swap, force)
        } else {
            (gens.walker.head, gens.walker.tail) = (None, None);
            gens.walk_seq += 1;
            true
        };
        walked && self.inc_max_seq(owner, sc.cpu, lruvec, seq, can_swap)
    }

    fn inc_max_seq<O: Owner>(&mut self, owner: &mut O, cpu: CpuId, lruvec: LruvecId, seq: u64, can_swap: bool) -> bool {
        loop {
            if seq != self.lru.gens(lruvec).max_seq {
                return false;
            }
            let full = |m: &Memory, kind| m.lru.gens(lruvec).nr_gens(kind) == MAX_NR_GENS as u64;
            let kinds = if self.shared.profile.lru_gen.by_all_tiers() { [ANON, FILE] } else { [FILE, ANON] };
            let ended = kinds.iter().all(|kind| !full(self, *kind) || self.inc_min_seq(cpu, lruvec, *kind, can_swap));
            if ended {
                break;
            }
            self.offer_cpu(owner);
        }
        self.count_begun(cpu, lruvec);
        self.lru.gens_mut(lruvec).max_seq += 1;
        true
    }

    /// The second youngest generation is active no longer, and the one to be begun is.
    fn count_begun(&mut self, cpu: CpuId, lruvec: LruvecId) {
        let gens = self.lru.gens(lruvec);
        let (prev, next) = (Gen::of(gens.max_seq - 1), Gen::of(gens.max_seq + 1));
        for backing in Backing::ALL {
            for i in 0..self.lru.vecs[lruvec].zones.len() {
                let zone = self.lru.vecs[lruvec].zones[i];
                let (gens, zone_type) = (self.lru.gens(lruvec), self.zones[zone].kind);
                let of = |generation| gens.nr_pages(generation, backing.index(), zone_type);
                let delta = of(prev) - of(next);
                if delta != 0 {
                    self.count_listed_of(cpu, zone, lruvec, backing.inactive(), delta);
                    self.count_listed_of(cpu, zone, lruvec, backing.active(), -delta);
                }
            }
        }
    }

    /// Ends the oldest of four generations. False once 4096 pages have moved and the lock is
    /// dropped.
    fn inc_min_seq(&mut self, cpu: CpuId, lruvec: LruvecId, kind: usize, can_swap: bool) -> bool {
        let oldest = Gen::of(self.lru.gens(lruvec).min_seq[kind]);
        let mut remaining = MAX_LRU_BATCH;
        if kind == FILE || can_swap {
            for zone in 0..ZoneType::COUNT {
                while let Some(pfn) = self.lru.gens(lruvec).lists[oldest.index()][kind][zone].last() {
                    let (at, order) = (self.gen_place(pfn), self.frames.tag(pfn).order());
                    let rules = &self.shared.profile.lru_gen;
                    let uses = Uses::of(rules, self.lru.flags(pfn), self.lru.used(pfn));
                    if rules.by_all_tiers() && !uses.is_full {
                        let tiers = &mut self.lru.gens_mut(lruvec).tiers[kind];
                        tiers[uses.tier].protected += u64::from(order.pages());
                    }
                    let to = self.inc_gen(cpu, pfn, order, &at);
                    self.gen_move(pfn, to, true);
                    remaining -= 1;
                    if remaining == 0 {
                        return false;
                    }
                }
            }
        }
        let gens = self.lru.gens_mut(lruvec);
        gens.carry(kind);
        gens.min_seq[kind] += 1;
        true
    }

    /// Ends the oldest generations that are empty; whether any was.
    pub(super) fn try_to_inc_min_seq(&mut self, lruvec: LruvecId, can_swap: bool) -> bool {
        let by_all_tiers = self.shared.profile.lru_gen.by_all_tiers();
        let gens = self.lru.gens_mut(lruvec);
        let mut min_seq = gens.min_seq;
        for kind in kinds(can_swap) {
            let empty = |seq: u64| gens.lists[Gen::of(seq).index()][kind].iter().all(|list| list.is_empty());
            while min_seq[kind] + MIN_NR_GENS <= gens.max_seq && empty(min_seq[kind]) {
                min_seq[kind] += 1;
            }
        }
        if can_swap && by_all_tiers {
            // A kind must not run ahead of the other by two.
            let third = gens.max_seq - MIN_NR_GENS;
            for (kind, other) in [(ANON, FILE), (FILE, ANON)] {
                if min_seq[kind] > third && min_seq[other] < third {
                    min_seq[kind] = third;
                }
            }
        } else if can_swap {
            min_seq[ANON] = min_seq[ANON].min(min_seq[FILE]);
            min_seq[FILE] = min_seq[ANON].max(gens.min_seq[FILE]);
        }
        let mut ended = false;
        for kind in kinds(can_swap) {
            if min_seq[kind] > gens.min_seq[kind] {
                gens.carry(kind);
                gens.min_seq[kind] = min_seq[kind];
                ended = true;
            }
        }
        ended
    }

    /// The oldest generation of the kinds that may be evicted.
    pub(super) fn evictable_min_seq(&self, lruvec: LruvecId, can_swap: bool) -> u64 {
        let gens = self.lru.gens(lruvec);
        gens.min_seq[kinds(can_swap)].iter().copied().min().unwrap_or_default()
    }

    /// Pages of the kinds that may be evicted.
    pub(super) fn evictable_size(&self, lruvec: LruvecId, can_swap: bool) -> u64 {
        let gens = self.lru.gens(lruvec);
        let of = |kind: usize| (gens.min_seq[kind]..=gens.max_seq).map(move |seq| gens.size(seq, kind)).sum::<u64>();
        kinds(can_swap).map(of).sum()
    }

    /// Whether to begin a generation before a batch is evicted, where all tiers decide: nothing is
    /// left to evict from, or, after the first priority, one generation.
    pub(super) fn should_age_first(&self, lruvec: LruvecId, can_swap: bool, sc: &ScanControl) -> bool {
        let (oldest, max_seq) = (self.evictable_min_seq(lruvec, can_swap), self.lru.gens(lruvec).max_seq);
        oldest + MIN_NR_GENS > max_seq || sc.priority != DEF_PRIORITY && oldest + MIN_NR_GENS == max_seq
    }

    /// Whether the oldest generation holds too little, or the youngest too much, of all pages that
    /// may be evicted; and how many those are, unless it is out of old pages.
    pub(super) fn should_run_aging(&self, lruvec: LruvecId, can_swap: bool) -> (bool, u64) {
        let gens = self.lru.gens(lruvec);
        let min_seq = gens.min_seq[usize::from(!can_swap)];
        if min_seq + MIN_NR_GENS > gens.max_seq {
            return (true, 0);
        }
        let (mut old, mut young, mut total) = (0, 0, 0);
        for kind in kinds(can_swap) {
            for seq in gens.min_seq[kind]..=gens.max_seq {
                let size = gens.size(seq, kind);
                total += size;
                if seq == gens.max_seq {
                    young += size;
                } else if seq + MIN_NR_GENS == gens.max_seq {
                    old += size;
                }
            }
        }
        let few = min_seq + MIN_NR_GENS == gens.max_seq;
        (few && (young * MIN_NR_GENS > total || old * (MIN_NR_GENS + 2) < total), total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{LruList, PageFlags, SwapSpace};
    use crate::testing::{AllMove, in_generations, in_generations_of, user_page};
    use crate::types::Pfn;
    use alloc::vec::Vec;

    const CPU: CpuId = CpuId::new(0);
    const VEC: LruvecId = LruvecId::new(0);

    fn age(m: &mut Memory) -> bool {
        let seq = m.lru.gens(VEC).max_seq;
        let mut sc = ScanControl::new(CPU, crate::Gfp::KERNEL, crate::Order::ZERO, ZoneType::Normal);
        m.try_to_inc_max_seq(&mut AllMove, &mut sc, VEC, seq, true, false)
    }

    #[test]
    fn pages_become_inactive_as_generations_begin_and_the_oldest_of_five_joins_the_next() {
        let mut m = in_generations(2);
        m.set_swap(SwapSpace { total: 1000, free: 1000 });
        let pages: Vec<Pfn> = (0..3).map(|_| user_page(&mut m, PageFlags::ANON | PageFlags::ACTIVE)).collect();
        m.lru_add_drain(CPU);
        let counted = |m: &Memory| {
            let vec = &m.lru.vecs[VEC];
            [LruList::ActiveAnon, LruList::InactiveAnon].map(|list| vec.size_exact(list))
        };
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(counted(&m));
            assert!(age(&mut m));
            m.check().expect("consistent");
        }
        assert_eq!(seen, [[3, 0], [3, 0], [0, 3]]);
        let young = user_page(&mut m, PageFlags::ANON);
        m.lru_add_drain(CPU);
        assert!(age(&mut m));
        let gens = m.lru.gens(VEC);
        assert_eq!((gens.max_seq, gens.min_seq), (7, [4, 4]));
        let listed = |seq| gens.list(Gen::of(seq), ANON, ZoneType::Normal).collect::<Vec<_>>();
        assert_eq!(listed(4), pages, "each from the end of one to the end of the next");
        assert_eq!(listed(5), [young]);
        m.check().expect("consistent");
    }

    #[test]
    fn empty_generations_of_files_end_with_those_of_anonymous_pages() {
        let mut m = in_generations(2);
        (0..2).for_each(|_| assert!(age(&mut m)));
        let anon = user_page(&mut m, PageFlags::ANON);
        m.lru_add_drain(CPU);
        m.lru.gens_mut(VEC).min_seq = [2, 2];
        assert!(m.try_to_inc_min_seq(VEC, true));
        assert_eq!(m.lru.gens(VEC).min_seq, [4, 4], "{anon} is in the fourth");
        assert!(!m.try_to_inc_min_seq(VEC, true));
    }

    #[test]
    fn by_all_tiers_a_kind_waits_for_the_other_with_three_generations() {
        let mut m = in_generations_of("7.2", 2);
        m.set_swap(SwapSpace { total: 1000, free: 1000 });
        let anon = user_page(&mut m, PageFlags::ANON);
        m.lru_add_drain(CPU);
        (0..2).for_each(|_| assert!(age(&mut m)));
        assert!(m.try_to_inc_min_seq(VEC, true));
        assert_eq!((m.lru.gens(VEC).max_seq, m.lru.gens(VEC).min_seq), (5, [2, 3]), "{anon} is in the third");
        assert!(!m.try_to_inc_min_seq(VEC, true));
    }

    #[test]
    fn by_all_tiers_a_generation_begins_when_one_is_left_to_evict_from_but_not_at_first() {
        let mut m = in_generations_of("7.2", 2);
        let mut sc = ScanControl::new(CPU, crate::Gfp::KERNEL, crate::Order::ZERO, ZoneType::Normal);
        let mut ages = |priority, min_seq| {
            sc.priority = priority;
            m.lru.gens_mut(VEC).min_seq = min_seq;
            m.should_age_first(VEC, true, &sc)
        };
        assert_eq!(
            [(12, [1, 2]), (11, [1, 2]), (11, [0, 2]), (12, [2, 2])].map(|(p, m)| ages(p, m)),
            [false, true, false, true]
        );
    }

    #[test]
    fn a_generation_begins_when_the_oldest_holds_less_than_a_quarter() {
        for (old, young, ages) in [(25, 0, false), (24, 0, true), (40, 51, true), (40, 50, false)] {
            let mut m = in_generations(2);
            let gens = m.lru.gens_mut(VEC);
            (gens.max_seq, gens.min_seq) = (3, [1, 1]);
            let sizes = [(1, old), (2, 100 - old - young), (3, young)];
            sizes.iter().for_each(|(seq, pages)| gens.nr_pages[Gen::of(*seq).index()][FILE][2] = *pages);
            assert_eq!(m.should_run_aging(VEC, true), (ages, 100), "{old} old, {young} young");
        }
    }
}
