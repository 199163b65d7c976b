//! How much of each list is looked at: the share that the priority says, divided between anonymous pages and those of
//! files by what taking them has cost lately and by `vm.swappiness`.
//!
//! Source: kernel-behaviour §4.2.

use super::control::ScanControl;
use crate::state::{Backing, LruList, Lruvec, Memory, NodeStat};
use crate::sysctl::SWAPPINESS;
use crate::types::NodeId;

/// Pages to be looked at, of each list.
pub(super) type Scan = [u64; 4];

/// Whose lists are looked at.
enum Balance {
    /// Both kinds, by their sizes.
    Equal,
    /// Both kinds, by these shares.
    Shares([u64; 2]),
    /// One kind only.
    Only(Backing),
}

/// Whether the inactive list is small beside the active one: 1:1 below a GiB, then by the root of ten times the GiB.
pub(super) fn inactive_is_low(vec: &Lruvec, backing: Backing) -> bool {
    let (inactive, active) = (vec.size(backing.inactive()), vec.size(backing.active()));
    let gib = (inactive + active) >> 18;
    let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
    inactive * ratio < active
}

impl Memory {
    /// Whether anonymous pages can go anywhere.
    pub(crate) fn can_reclaim_anon(&self) -> bool {
        self.lru.swap.free > 0
    }

    /// Decides, before a node's lists are scanned, what may be made inactive and which kind is spared.
    pub(super) fn prepare_scan_count(&mut self, node: NodeId, sc: &mut ScanControl) {
        self.read_costs(node);
        let vec = &self.lru.vecs[node];
        sc.cost = vec.cost;
        for backing in Backing::ALL {
            // Pages that come back mean that something new is in use: the old has to go.
            let refaulting = vec.stat(NodeStat::activate(backing)) != vec.refaults[backing.index()];
            sc.may_deactivate[backing.index()] = sc.force_deactivate || refaulting || inactive_is_low(vec, backing);
        }
        let [anon, file] = sc.may_deactivate;
        sc.cache_trim_mode = vec.size(LruList::InactiveFile) >> sc.priority > 0 && !file && !sc.no_trimming;
        // As the file lists shrink their pages have ever less time to be used again: do not go on to the end.
        let files = vec.size(LruList::ActiveFile) + vec.size(LruList::InactiveFile);
        let (mut free, mut high) = (0, 0);
        for zone in self.nodes[node].zones.iter().map(|z| &self.zones[*z]) {
            free += zone.nr_free_pages();
            if zone.managed > 0 {
                high += zone.wmark(crate::gfp::Wmark::High);
            }
        }
        let inactive_anon = vec.size(LruList::InactiveAnon);
        sc.file_is_tiny = files + free <= high && !anon && inactive_anon >> sc.priority > 0;
    }

    /// How much of each of a node's lists is looked at, at this priority.
    pub(super) fn get_scan_count(&mut self, node: NodeId, sc: &ScanControl) -> Scan {
        let balance = self.scan_balance(sc);
        LruList::EVICTABLE.map(|list| {
            let backing = Backing::of(list);
            let share = self.lru_size(node, list, sc) >> sc.priority;
            match &balance {
                Balance::Equal => share,
                Balance::Shares(of) => share * of[backing.index()] / (of[0] + of[1]),
                Balance::Only(kind) if *kind == backing => share,
                Balance::Only(_) => 0,
            }
        })
    }

    /// A list's size, as far as its pages lie in zones that help.
    fn lru_size(&self, node: NodeId, list: LruList, sc: &ScanControl) -> u64 {
        let zones = self.nodes[node].zones.iter().map(|z| &self.zones[*z]);
        zones.filter(|z| z.managed > 0 && z.kind <= sc.highest).map(|z| z.lru.get(list.index())).sum()
    }

    fn scan_balance(&mut self, sc: &ScanControl) -> Balance {
        if !sc.may_swap || !self.can_reclaim_anon() {
            return Balance::Only(Backing::File);
        }
        if sc.priority == 0 && self.shared.decide(&SWAPPINESS, |swappiness| swappiness > 0) {
            return Balance::Equal;
        }
        if sc.file_is_tiny {
            return Balance::Only(Backing::Anon);
        }
        if sc.cache_trim_mode {
            return Balance::Only(Backing::File);
        }
        let total = sc.cost[0] + sc.cost[1];
        let cost = sc.cost.map(|cost| total + cost);
        let total = cost[0] + cost[1];
        let shares = |swappiness: u32| {
            let weights = [u64::from(swappiness), 200 - u64::from(swappiness)];
            [0, 1].map(|of: usize| weights[of] * (total + 1) / (cost[of] + 1))
        };
        Balance::Shares(self.shared.decide(&SWAPPINESS, shares))
    }
}

#[cfg(test)]
mod tests {
    //! Figures are worked out by hand from the kernel's formulas.
    use super::*;
    use crate::gfp::{Gfp, Wmark};
    use crate::state::SwapSpace;
    use crate::testing::ordered_machine;
    use crate::types::{CpuId, Order, ZoneId, ZoneType};

    const NODE: NodeId = NodeId::new(0);
    const ROOM: SwapSpace = SwapSpace { total: 1000, free: 1000 };

    /// A machine that counts so many pages on its lists: inactive and active anonymous ones, then those of files.
    fn listing(pages: [i64; 4]) -> Memory {
        let mut m = ordered_machine(2);
        for (list, pages) in LruList::EVICTABLE.iter().zip(pages) {
            m.lru.vecs[NODE].stats.add_to_total(list.index(), pages);
            m.zones[ZoneId::new(0)].lru.add_to_total(list.index(), pages);
        }
        m.set_swap(ROOM);
        m
    }

    fn at_priority(priority: i8) -> ScanControl {
        let sc = ScanControl::new(CpuId::new(0), Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
        ScanControl { priority, ..sc }
    }

    fn swappiness(m: &mut Memory, percent: &str) {
        m.sysctl_write("vm.swappiness", percent).expect("a valid one");
    }

    const LISTS: [i64; 4] = [8192, 4096, 40960, 20480];

    #[test]
    fn without_costs_swappiness_of_200_are_for_anonymous_pages_and_the_rest_for_files() {
        let mut m = listing(LISTS);
        let sc = at_priority(2);
        // A quarter of each; then 60 and 140 of 200.
        assert_eq!(m.get_scan_count(NODE, &sc), [614, 307, 7168, 3584]);
        swappiness(&mut m, "0");
        assert_eq!(m.get_scan_count(NODE, &sc), [0, 0, 10240, 5120]);
        swappiness(&mut m, "200");
        assert_eq!(m.get_scan_count(NODE, &sc), [2048, 1024, 0, 0]);
    }

    #[test]
    fn what_has_cost_more_is_looked_at_less() {
        let mut m = listing(LISTS);
        let sc = ScanControl { cost: [300, 100], ..at_priority(2) };
        // 700 and 500 of 1200: 60 * 1201 / 701 = 102 parts and 140 * 1201 / 501 = 335.
        assert_eq!(m.get_scan_count(NODE, &sc), [478, 239, 7849, 3924]);
        swappiness(&mut m, "0");
        assert_eq!(m.get_scan_count(NODE, &sc), [0, 0, 10240, 5120]);
    }

    #[test]
    fn at_the_last_priority_all_pages_are_looked_at_unless_nothing_is_to_be_swapped() {
        let mut m = listing(LISTS);
        let sc = ScanControl { file_is_tiny: true, cache_trim_mode: true, cost: [300, 100], ..at_priority(0) };
        assert_eq!(m.get_scan_count(NODE, &sc), LISTS.map(|pages| pages as u64));
        swappiness(&mut m, "0");
        // What is true of the lists decides again, and where hardly a file is left swappiness is not asked.
        assert_eq!(m.get_scan_count(NODE, &sc), [8192, 4096, 0, 0]);
        let sc = ScanControl { file_is_tiny: false, ..sc };
        assert_eq!(m.get_scan_count(NODE, &sc), [0, 0, 40960, 20480]);
    }

    #[test]
    fn only_files_are_looked_at_where_nothing_can_be_swapped() {
        let files = [0, 0, 10240, 5120];
        let mut m = listing(LISTS);
        let sc = ScanControl { file_is_tiny: true, ..at_priority(2) };
        assert_eq!(m.get_scan_count(NODE, &sc), [2048, 1024, 0, 0]);
        assert_eq!(m.get_scan_count(NODE, &ScanControl { may_swap: false, ..sc.clone() }), files);
        m.set_swap(SwapSpace { total: 1000, free: 0 });
        assert_eq!(m.get_scan_count(NODE, &sc), files);
    }

    #[test]
    fn pages_in_zones_that_do_not_help_do_not_count() {
        let mut m = listing(LISTS);
        let sc = ScanControl { highest: ZoneType::Dma32, ..at_priority(0) };
        assert_eq!(m.get_scan_count(NODE, &sc), [0; 4]);
    }

    #[test]
    fn the_inactive_list_may_be_smaller_the_larger_memory_is() {
        let is_low = |inactive: i64, active: i64| {
            inactive_is_low(&listing([0, 0, inactive, active]).lru.vecs[NODE], Backing::File)
        };
        assert!(!is_low(100, 100) && is_low(99, 100), "below a GiB as large as the active one");
        assert!(!is_low(65_536, 196_608) && is_low(65_535, 196_609), "of a GiB a quarter");
        assert!(!is_low(238_313, 2_383_127) && is_low(238_312, 2_383_128), "of 10 GiB an eleventh");
    }

    #[test]
    fn active_pages_are_made_inactive_where_few_are_or_something_new_is_in_use() {
        let prepared = |m: &mut Memory, mut sc: ScanControl| {
            m.prepare_scan_count(NODE, &mut sc);
            sc.may_deactivate
        };
        let m = &mut listing([100, 100, 100, 101]);
        assert_eq!(prepared(m, at_priority(12)), [false, true]);
        assert_eq!(prepared(m, ScanControl { force_deactivate: true, ..at_priority(12) }), [true, true]);
        m.lru.vecs[NODE].stats.add_to_total(NodeStat::WorkingsetActivateAnon as usize, 1);
        assert_eq!(prepared(m, at_priority(12)), [true, true]);
        m.snapshot_refaults(NODE);
        assert_eq!(prepared(m, at_priority(12)), [false, true]);
    }

    #[test]
    fn with_enough_inactive_files_the_others_are_spared() {
        let trims = |files: [i64; 2], priority| {
            let mut sc = at_priority(priority);
            listing([0, 0, files[0], files[1]]).prepare_scan_count(NODE, &mut sc);
            sc.cache_trim_mode
        };
        assert!(trims([4096, 100], 12) && !trims([4095, 100], 12) && trims([4095, 100], 11));
        assert!(!trims([4096, 4097], 12), "where active ones are made inactive, too, it is no mere trimming");
    }

    #[test]
    fn files_are_tiny_where_they_and_what_is_free_do_not_reach_the_high_marks() {
        let m = &mut listing([4096, 0, 0, 0]);
        let (free, high) = (m.zones[ZoneId::new(0)].nr_free_pages(), m.zones[ZoneId::new(0)].wmark(Wmark::High));
        assert!(free > high, "all memory of the sample is free");
        let tiny = |m: &mut Memory, priority| {
            let mut sc = at_priority(priority);
            m.prepare_scan_count(NODE, &mut sc);
            sc.file_is_tiny
        };
        assert!(!tiny(m, 12));
        m.zones[ZoneId::new(0)].watermark_boost = free - high;
        assert!(tiny(m, 12));
        m.lru.vecs[NODE].stats.add_to_total(LruList::ActiveFile.index(), 1);
        assert!(!tiny(m, 12), "one page more is enough");
        m.zones[ZoneId::new(0)].watermark_boost += 1;
        m.lru.vecs[NODE].stats.add_to_total(LruList::InactiveAnon.index(), -1);
        assert!(!tiny(m, 12) && tiny(m, 11), "there are too few anonymous pages at this priority");
        m.lru.vecs[NODE].stats.add_to_total(LruList::ActiveAnon.index(), 5000);
        assert!(!tiny(m, 11), "inactive anonymous ones are few themselves");
    }
}
