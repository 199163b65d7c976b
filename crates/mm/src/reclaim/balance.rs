//! Scan counts: each list's share by priority, divided between anonymous and file pages by their
//! recent reclaim cost and `vm.swappiness`.
//!
//! Source: kernel-behaviour §4.2.

use super::control::{Protection, ScanControl};
use crate::gfp::Wmark;
use crate::rules::{BalancedBy, SlabShare};
use crate::state::{Backing, LruList, Lruvec, Memory, NodeStat};
use crate::sysctl::SWAPPINESS;
use crate::types::{CLUSTER_MAX, LruvecId};

/// Pages to scan, per list.
pub(super) type Scan = [u64; 4];

/// The division of the scan between the two kinds.
enum Balance {
    /// Both kinds, by list size alone.
    Equal,
    /// Both kinds, by these shares.
    Shares {
        of: [u64; 2],
        all: u64,
    },
    Only(Backing),
}

/// The weights of anonymous and of file pages at this swappiness.
fn weights(swappiness: u32) -> [u64; 2] {
    [u64::from(swappiness), 200 - u64::from(swappiness)]
}

/// Whether the inactive list is low: inactive × ratio < active. The ratio is 1 below one GiB, and
/// then sqrt(10 × GiB of both lists).
pub(super) fn inactive_is_low(vec: &Lruvec, backing: Backing) -> bool {
    let pages = vec.size_state(backing.inactive()) + vec.size_state(backing.active());
    is_low(vec, backing, pages)
}

/// The same, with the ratio for this many pages.
fn is_low(vec: &Lruvec, backing: Backing, pages: u64) -> bool {
    let (inactive, active) = (vec.size_state(backing.inactive()), vec.size_state(backing.active()));
    let gib = pages >> 18;
    let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
    inactive * ratio < active
}

/// The part of a list that is scanned where its group is protected in part: in proportion to what
/// is not, and at least a cluster, before the priority divides it.
pub(super) fn unprotected(size: u64, sc: &ScanControl) -> u64 {
    let Some(Protection { pages, usage }) = sc.protection else { return size };
    let open = size - size * pages / (usage.max(pages) + 1);
    open.max(u64::from(CLUSTER_MAX))
}

impl Memory {
    /// Whether anonymous pages can be swapped out at all.
    pub(crate) fn can_reclaim_anon(&self) -> bool {
        self.lru.swap.free > 0
    }

    /// Whether active pages should be deactivated because the inactive list is low. Up to 4.6 the
    /// ratio is 1:1 for file pages; for anonymous pages it follows from the zone's size, and
    /// without swap they are left alone.
    pub(super) fn has_few_inactive(&self, lruvec: LruvecId, backing: Backing) -> bool {
        let vec = &self.lru.vecs[lruvec];
        if !self.shared.profile.lru.half_of_files_inactive {
            return inactive_is_low(vec, backing);
        }
        match backing {
            Backing::File => is_low(vec, backing, 0),
            Backing::Anon => {
                let managed = vec.zones.iter().map(|z| self.zones[*z].managed).sum();
                self.lru.swap.total > 0 && is_low(vec, backing, managed)
            }
        }
    }

    /// Decides, before the lists are scanned, which active pages may be deactivated and which kind
    /// is spared.
    pub(super) fn prepare_scan_count(&mut self, lruvec: LruvecId, sc: &mut ScanControl) {
        if self.shared.profile.reclaim.balance == BalancedBy::Rotations {
            return self.prepare_by_rotations(lruvec, sc);
        }
        self.read_costs(lruvec);
        let vec = &self.lru.vecs[lruvec];
        sc.cost = vec.cost;
        for backing in Backing::ALL {
            // Refaults mean that the working set is changing, so the old one has to go.
            let refaulting = vec.state(NodeStat::activate(backing) as usize) != vec.refaults[backing.index()];
            sc.may_deactivate[backing.index()] = sc.force_deactivate || refaulting || inactive_is_low(vec, backing);
        }
        let [anon, file] = sc.may_deactivate;
        sc.cache_trim_mode = vec.size_state(LruList::InactiveFile) >> sc.priority > 0 && !file && !sc.no_trimming;
        let of_machine = sc.target.is_none();
        if !of_machine {
            // Of a group's files alone, nothing says how many of them there should be.
            return;
        }
        // As the file lists shrink, their pages have ever less time to be referenced again, which
        // would end in reclaiming all of them.
        let files = vec.size(LruList::ActiveFile) + vec.size(LruList::InactiveFile);
        let (mut free, mut high) = (0, 0);
        for zone in vec.zones.iter().map(|z| &self.zones[*z]) {
            free += zone.nr_free_pages();
            if zone.managed > 0 {
                high += zone.wmark(Wmark::High);
            }
        }
        let inactive_anon = vec.size(LruList::InactiveAnon);
        sc.file_is_tiny = files + free <= high && !anon && inactive_anon >> sc.priority > 0;
    }

    /// Up to 5.7: balances by recent_rotated/recent_scanned, and deactivates only while the
    /// inactive list is low, which is checked when the active list's turn comes.
    fn prepare_by_rotations(&mut self, lruvec: LruvecId, sc: &mut ScanControl) {
        let few_files = self.has_few_inactive(lruvec, Backing::File);
        let trims_little = self.shared.profile.reclaim.trims_however_little;
        let (mut free, mut high) = (0, 0);
        let vec = &self.lru.vecs[lruvec];
        for zone in vec.zones.iter().map(|z| &self.zones[*z]) {
            free += zone.nr_free_pages();
            high += zone.wmark(Wmark::High);
        }
        let files = vec.size(LruList::ActiveFile) + vec.size(LruList::InactiveFile);
        sc.file_is_tiny = files + free <= high;
        sc.cache_trim_mode = !few_files && (trims_little || vec.size(LruList::InactiveFile) >> sc.priority > 0);
        // kswapd scans at least a few pages of a zone that looks unreclaimable, or it would never
        // notice that it no longer is.
        sc.force_scan = sc.kswapd && vec.zones.iter().all(|z| !self.zone_reclaimable(*z));
    }

    /// Shares by how many of the recently scanned pages were in use; old counts decay.
    fn shares_by_rotations(&mut self, lruvec: LruvecId) -> Balance {
        let vec = &mut self.lru.vecs[lruvec];
        for backing in Backing::ALL {
            let pages = vec.size(backing.active()) + vec.size(backing.inactive());
            let of = backing.index();
            if vec.recent_scanned[of] > pages / 4 {
                vec.recent_scanned[of] /= 2;
                vec.recent_rotated[of] /= 2;
            }
        }
        let (scanned, rotated) = (vec.recent_scanned, vec.recent_rotated);
        let by_ratio =
            |swappiness: u32| [0, 1].map(|of: usize| weights(swappiness)[of] * (scanned[of] + 1) / (rotated[of] + 1));
        let of = self.shared.decide(&SWAPPINESS, by_ratio);
        Balance::Shares { of, all: of[0] + of[1] + 1 }
    }

    /// Pages of each list to scan at this priority.
    pub(super) fn get_scan_count(&mut self, lruvec: LruvecId, sc: &ScanControl) -> Scan {
        let balance = self.scan_balance(lruvec, sc);
        let scan = |force: bool| {
            LruList::EVICTABLE.map(|list| {
                let backing = Backing::of(list);
                let mut share = unprotected(self.lru_size(lruvec, list, sc), sc) >> sc.priority;
                if share == 0 && force {
                    share = self.lru_size(lruvec, list, sc).min(u64::from(CLUSTER_MAX));
                }
                match &balance {
                    Balance::Equal => share,
                    Balance::Shares { of, all } => share * of[backing.index()] / all,
                    Balance::Only(kind) if *kind == backing => share,
                    Balance::Only(_) => 0,
                }
            })
        };
        match scan(false) {
            [0, 0, 0, 0] if sc.force_scan => scan(true),
            share => share,
        }
    }

    /// Pages of a list that lie in zones up to the highest that helps.
    fn lru_size(&self, lruvec: LruvecId, list: LruList, sc: &ScanControl) -> u64 {
        let vec = &self.lru.vecs[lruvec];
        if let Some(counted) = &vec.in_group {
            let sizes = vec.zones.iter().zip(&counted.sizes);
            let help = sizes.filter(|(z, _)| self.zones[**z].managed > 0 && self.zones[**z].kind <= sc.highest);
            return help.map(|(_, sizes)| sizes[list.index()]).sum::<i64>().max(0) as u64;
        }
        let zones = self.lru.vecs[lruvec].zones.iter().map(|z| &self.zones[*z]);
        zones.filter(|z| z.managed > 0 && z.kind <= sc.highest).map(|z| z.lru.get(list.index())).sum()
    }

    /// Whether both kinds are scanned by size alone: at the last priority, unless swappiness is 0.
    fn scans_equally(&mut self, sc: &ScanControl) -> bool {
        sc.priority == 0 && self.shared.decide(&SWAPPINESS, |swappiness| swappiness > 0)
    }

    /// The only kind to scan, if it is just one.
    fn only_kind(&mut self, sc: &ScanControl) -> Option<Backing> {
        if !sc.may_swap || !self.can_reclaim_anon() {
            return Some(Backing::File);
        }
        if sc.target.is_some() && self.shared.decide(&SWAPPINESS, |swappiness| swappiness == 0) {
            // For a group's limit nothing is swapped then, however short memory is.
            return Some(Backing::File);
        }
        if self.scans_equally(sc) {
            return None;
        }
        if sc.file_is_tiny {
            return Some(Backing::Anon);
        }
        sc.cache_trim_mode.then_some(Backing::File)
    }

    /// Size of all lists that are scanned; only older kernels ask, to scale the slab scan.
    pub(super) fn pages_considered(&mut self, lruvec: LruvecId, sc: &ScanControl) -> u64 {
        if self.shared.profile.reclaim.slab_share != SlabShare::Scanned {
            return 0;
        }
        let only = self.only_kind(sc);
        let vec = &self.lru.vecs[lruvec];
        let lists = LruList::EVICTABLE.iter().filter(|list| only.is_none_or(|kind| kind == Backing::of(**list)));
        lists.map(|list| vec.size(*list)).sum()
    }

    fn scan_balance(&mut self, lruvec: LruvecId, sc: &ScanControl) -> Balance {
        match self.only_kind(sc) {
            Some(kind) => return Balance::Only(kind),
            None if self.scans_equally(sc) => return Balance::Equal,
            None => {}
        }
        if self.shared.profile.reclaim.balance == BalancedBy::Rotations {
            return self.shares_by_rotations(lruvec);
        }
        let total = sc.cost[0] + sc.cost[1];
        let cost = sc.cost.map(|cost| total + cost);
        let total = cost[0] + cost[1];
        let shares = |swappiness: u32| {
            let weights = weights(swappiness);
            [0, 1].map(|of: usize| weights[of] * (total + 1) / (cost[of] + 1))
        };
        let of = self.shared.decide(&SWAPPINESS, shares);
        Balance::Shares { of, all: of[0] + of[1] }
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

    const VEC: LruvecId = LruvecId::new(0);
    const ROOM: SwapSpace = SwapSpace { total: 1000, free: 1000 };

    /// A machine with these counts on its lists: inactive and active anonymous pages, then inactive
    /// and active file pages.
    fn listing(pages: [i64; 4]) -> Memory {
        let mut m = ordered_machine(2);
        for (list, pages) in LruList::EVICTABLE.iter().zip(pages) {
            m.lru.vecs[VEC].stats.add_to_total(list.index(), pages);
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
        assert_eq!(m.get_scan_count(VEC, &sc), [614, 307, 7168, 3584]);
        swappiness(&mut m, "0");
        assert_eq!(m.get_scan_count(VEC, &sc), [0, 0, 10240, 5120]);
        swappiness(&mut m, "200");
        assert_eq!(m.get_scan_count(VEC, &sc), [2048, 1024, 0, 0]);
    }

    #[test]
    fn lists_that_cost_more_are_scanned_less() {
        let mut m = listing(LISTS);
        let sc = ScanControl { cost: [300, 100], ..at_priority(2) };
        // 700 and 500 of 1200: 60 * 1201 / 701 = 102 parts and 140 * 1201 / 501 = 335.
        assert_eq!(m.get_scan_count(VEC, &sc), [478, 239, 7849, 3924]);
        swappiness(&mut m, "0");
        assert_eq!(m.get_scan_count(VEC, &sc), [0, 0, 10240, 5120]);
    }

    #[test]
    fn at_the_last_priority_all_pages_are_looked_at_unless_nothing_is_to_be_swapped() {
        let mut m = listing(LISTS);
        let sc = ScanControl { file_is_tiny: true, cache_trim_mode: true, cost: [300, 100], ..at_priority(0) };
        assert_eq!(m.get_scan_count(VEC, &sc), LISTS.map(|pages| pages as u64));
        swappiness(&mut m, "0");
        // The state of the lists decides again; with hardly a file page left, swappiness does not
        // count.
        assert_eq!(m.get_scan_count(VEC, &sc), [8192, 4096, 0, 0]);
        let sc = ScanControl { file_is_tiny: false, ..sc };
        assert_eq!(m.get_scan_count(VEC, &sc), [0, 0, 40960, 20480]);
    }

    #[test]
    fn only_files_are_looked_at_where_nothing_can_be_swapped() {
        let files = [0, 0, 10240, 5120];
        let mut m = listing(LISTS);
        let sc = ScanControl { file_is_tiny: true, ..at_priority(2) };
        assert_eq!(m.get_scan_count(VEC, &sc), [2048, 1024, 0, 0]);
        assert_eq!(m.get_scan_count(VEC, &ScanControl { may_swap: false, ..sc.clone() }), files);
        m.set_swap(SwapSpace { total: 1000, free: 0 });
        assert_eq!(m.get_scan_count(VEC, &sc), files);
    }

    #[test]
    fn pages_in_zones_that_do_not_help_do_not_count() {
        let mut m = listing(LISTS);
        let sc = ScanControl { highest: ZoneType::Dma32, ..at_priority(0) };
        assert_eq!(m.get_scan_count(VEC, &sc), [0; 4]);
    }

    /// The same before 4.8, where the balance follows what reclaim has scanned.
    fn old_listing(pages: [i64; 4]) -> Memory {
        let mut m = crate::testing::ordered_machine_with(2, crate::testing::linux("4.6"));
        for (list, pages) in LruList::EVICTABLE.iter().zip(pages) {
            m.lru.vecs[VEC].stats.add_to_total(list.index(), pages);
            m.zones[ZoneId::new(0)].lru.add_to_total(list.index(), pages);
        }
        m.set_swap(ROOM);
        m
    }

    fn old_scan(m: &mut Memory, mut sc: ScanControl) -> Scan {
        m.prepare_scan_count(VEC, &mut sc);
        m.get_scan_count(VEC, &sc)
    }

    #[test]
    fn up_to_5_7_the_shares_follow_how_many_of_the_pages_looked_at_were_in_use() {
        let m = &mut old_listing([8192, 4096, 20480, 40960]);
        (m.lru.vecs[VEC].recent_scanned, m.lru.vecs[VEC].recent_rotated) = ([99, 999], [9, 99]);
        // 60 * 100 / 10 = 600 and 140 * 1000 / 100 = 1400 of 2001.
        let of = [512 * 600 / 2001, 256 * 600 / 2001, 1280 * 1400 / 2001, 2560 * 1400 / 2001];
        assert_eq!(old_scan(m, at_priority(4)), of);
    }

    #[test]
    fn old_scans_count_half() {
        let m = &mut old_listing([40, 40, 400, 401]);
        (m.lru.vecs[VEC].recent_scanned, m.lru.vecs[VEC].recent_rotated) = ([21, 200], [10, 100]);
        old_scan(m, at_priority(4));
        assert_eq!(m.lru.vecs[VEC].recent_scanned, [10, 200], "21 are more than a quarter of 80");
        assert_eq!(m.lru.vecs[VEC].recent_rotated, [5, 100]);
    }

    #[test]
    fn up_to_4_6_half_of_the_files_is_inactive_however_many_there_are_and_of_anonymous_pages_a_part_by_the_zones_size()
    {
        let few = |pages, managed| {
            let mut m = old_listing(pages);
            m.zones[ZoneId::new(0)].managed = managed;
            Backing::ALL.map(|backing| m.has_few_inactive(VEC, backing))
        };
        assert_eq!(few([1, 1, 1 << 20, (1 << 20) + 1], 1024), [false, true]);
        assert_eq!(few([100, 500, 1, 1], 10 << 18), [false, false], "of 10 GiB an eleventh is enough");
        assert_eq!(few([100, 500, 1, 1], 1024), [true, false]);
        let mut m = old_listing([100, 500, 1, 1]);
        m.set_swap(SwapSpace::default());
        assert!(!m.has_few_inactive(VEC, Backing::Anon), "where could they go?");
    }

    #[test]
    fn in_4_4_enough_inactive_files_spare_all_others_even_where_none_of_them_is_looked_at() {
        for (profile, swaps) in [("4.4-kcompactd", false), ("4.6", true)] {
            let mut m = old_listing([1 << 20, 4096, 100, 100]);
            m.shared.profile = crate::testing::linux(profile);
            let [inactive, ..] = old_scan(&mut m, at_priority(12));
            assert_eq!(inactive > 0, swaps, "{profile}");
        }
    }

    #[test]
    fn the_inactive_list_may_be_smaller_the_larger_memory_is() {
        let is_low = |inactive: i64, active: i64| {
            inactive_is_low(&listing([0, 0, inactive, active]).lru.vecs[VEC], Backing::File)
        };
        assert!(!is_low(100, 100) && is_low(99, 100), "below a GiB as large as the active one");
        assert!(!is_low(65_536, 196_608) && is_low(65_535, 196_609), "of a GiB a quarter");
        assert!(!is_low(238_313, 2_383_127) && is_low(238_312, 2_383_128), "of 10 GiB an eleventh");
    }

    #[test]
    fn active_pages_are_made_inactive_where_few_are_or_something_new_is_in_use() {
        let prepared = |m: &mut Memory, mut sc: ScanControl| {
            m.prepare_scan_count(VEC, &mut sc);
            sc.may_deactivate
        };
        let m = &mut listing([100, 100, 100, 101]);
        assert_eq!(prepared(m, at_priority(12)), [false, true]);
        assert_eq!(prepared(m, ScanControl { force_deactivate: true, ..at_priority(12) }), [true, true]);
        m.lru.vecs[VEC].stats.add_to_total(NodeStat::WorkingsetActivateAnon as usize, 1);
        assert_eq!(prepared(m, at_priority(12)), [true, true]);
        m.snapshot_refaults(VEC);
        assert_eq!(prepared(m, at_priority(12)), [false, true]);
    }

    #[test]
    fn with_enough_inactive_files_the_others_are_spared() {
        let trims = |files: [i64; 2], priority| {
            let mut sc = at_priority(priority);
            listing([0, 0, files[0], files[1]]).prepare_scan_count(VEC, &mut sc);
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
            m.prepare_scan_count(VEC, &mut sc);
            sc.file_is_tiny
        };
        assert!(!tiny(m, 12));
        m.zones[ZoneId::new(0)].watermark_boost = free - high;
        assert!(tiny(m, 12));
        m.lru.vecs[VEC].stats.add_to_total(LruList::ActiveFile.index(), 1);
        assert!(!tiny(m, 12), "one page more is enough");
        m.zones[ZoneId::new(0)].watermark_boost += 1;
        m.lru.vecs[VEC].stats.add_to_total(LruList::InactiveAnon.index(), -1);
        assert!(!tiny(m, 12) && tiny(m, 11), "there are too few anonymous pages at this priority");
        m.lru.vecs[VEC].stats.add_to_total(LruList::ActiveAnon.index(), 5000);
        assert!(!tiny(m, 11), "inactive anonymous ones are few themselves");
    }
}
