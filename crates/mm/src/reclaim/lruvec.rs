//! Shrinks a node's lists at one priority: a cluster of each list in turn, until the scan targets
//! are met or enough is freed.
//!
//! Once enough is freed, the kind of pages with less left to scan is dropped, and the other kind's
//! targets are scaled by the fraction of its own target that the dropped kind has been scanned.
//! Direct reclaim at the first priority scans both kinds to the end. Source: kernel-behaviour §4.2.

use super::balance::Scan;
use super::control::{DEF_PRIORITY, ScanControl};
use super::throttle::CONGESTION_NS;
use crate::owner::Owner;
use crate::rules::{BalancedBy, StallsFor};
use crate::state::{Backing, LruList, Memory};
use crate::step::{Step, Wait};
use crate::types::{CLUSTER_MAX, GroupId, LruvecId};

/// How long a task waits when too many pages are isolated: 20 ms.
const ISOLATED_WAIT_NS: u64 = 20_000_000;

const ANON: usize = LruList::InactiveAnon.index();
const ANON_ACTIVE: usize = LruList::ActiveAnon.index();
const FILE: usize = LruList::InactiveFile.index();
const FILE_ACTIVE: usize = LruList::ActiveFile.index();

/// The shrinking of one node's lists.
#[derive(Clone, Debug)]
pub(super) struct ShrinkLruvec {
    lruvec: LruvecId,
    left: Scan,
    targets: Scan,
    reclaimed: u64,
    /// Index of the next list to scan.
    turn: usize,
    /// It has waited once already because too many pages were isolated.
    stalled: bool,
    /// The shares have been adjusted.
    adjusted: bool,
}

impl ShrinkLruvec {
    /// Whose lists they are.
    pub(super) fn lruvec(&self) -> LruvecId {
        self.lruvec
    }

    pub(super) fn new(m: &mut Memory, lruvec: LruvecId, sc: &ScanControl) -> ShrinkLruvec {
        let targets = m.get_scan_count(lruvec, sc);
        ShrinkLruvec { lruvec, left: targets, targets, reclaimed: 0, turn: 0, stalled: false, adjusted: false }
    }

    /// Scans a cluster of one list.
    pub(super) fn step<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> Step<()> {
        if self.turn == 0 && self.left[ANON] == 0 && self.left[FILE] == 0 && self.left[FILE_ACTIVE] == 0 {
            return self.done(m, owner, sc);
        }
        while self.turn < self.left.len() && self.left[self.turn] == 0 {
            self.turn += 1;
        }
        if let Some(list) = LruList::EVICTABLE.get(self.turn) {
            let by_congestion = m.shared.profile.reclaim.stalls_for == StallsFor::Congestion;
            let by_rotations = m.shared.profile.reclaim.balance == BalancedBy::Rotations;
            let mut wait = None;
            let wanted = self.left[self.turn].min(u64::from(CLUSTER_MAX));
            if !list.is_active() && m.too_many_isolated(self.lruvec, Backing::of(*list), sc) {
                // Up to 5.15 it waits for as long as that is so.
                if !self.stalled || by_congestion {
                    self.stalled = true;
                    return Step::Wait(match by_congestion {
                        true => Wait::Congestion { at_most_ns: CONGESTION_NS },
                        false => Wait::Time(ISOLATED_WAIT_NS),
                    });
                }
            } else if !list.is_active() {
                self.reclaimed += m.shrink_inactive_list(owner, self.lruvec, *list, wanted, sc);
                if by_congestion {
                    wait = m.wait_for_congestion(owner, self.lruvec, sc);
                }
            } else if by_rotations {
                if m.has_few_inactive(self.lruvec, Backing::of(*list)) {
                    m.shrink_active_list(owner, self.lruvec, *list, wanted, sc);
                }
            } else if sc.may_deactivate[Backing::of(*list).index()] {
                m.shrink_active_list(owner, self.lruvec, *list, wanted, sc);
            } else {
                sc.skipped_deactivate = true;
            }
            self.stalled = false;
            self.left[self.turn] -= wanted;
            self.turn += 1;
            return wait.map_or(Step::Working, Step::Wait);
        }
        self.turn = 0;
        m.offer_cpu(owner);
        let enough = self.reclaimed >= sc.nr_to_reclaim;
        let over = match m.shared.profile.reclaim.requests_stop_at_target {
            true if enough && sc.kswapd && !core::mem::replace(&mut self.adjusted, true) => {
                self.drop_the_smaller();
                false
            }
            true => enough && !sc.kswapd,
            false => {
                let proportional = !sc.kswapd && sc.target.is_none() && sc.priority == DEF_PRIORITY;
                enough && !proportional && !self.drop_the_smaller()
            }
        };
        if over { self.done(m, owner, sc) } else { Step::Working }
    }

    /// Enough is freed: drops the kind with less left to scan. False if one kind has nothing left
    /// anyway.
    fn drop_the_smaller(&mut self) -> bool {
        let file = self.left[FILE] + self.left[FILE_ACTIVE];
        let anon = self.left[ANON] + self.left[ANON_ACTIVE];
        if file == 0 || anon == 0 {
            return false;
        }
        let (smaller, larger, left) = if file > anon { (ANON, FILE, anon) } else { (FILE, ANON, file) };
        let percentage = left * 100 / (self.targets[smaller] + self.targets[smaller + 1] + 1);
        self.left[smaller] = 0;
        self.left[smaller + 1] = 0;
        for list in [larger, larger + 1] {
            let scanned = self.targets[list] - self.left[list];
            let target = self.targets[list] * (100 - percentage) / 100;
            self.left[list] = target - target.min(scanned);
        }
        true
    }

    /// The end of the pass: whatever was reclaimed, the inactive anonymous list is refilled if low.
    fn done<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &mut ScanControl) -> Step<()> {
        sc.nr_reclaimed += self.reclaimed;
        m.age_anon(owner, self.lruvec, sc);
        Step::Done(())
    }
}

impl Memory {
    /// Before kswapd scans a node: the same for all groups, if the inactive list of all is low.
    pub(crate) fn age_anon_of_all<O: Owner>(&mut self, owner: &mut O, of_root: LruvecId, sc: &ScanControl) {
        if !self.groups.are_kept() {
            return self.age_anon(owner, of_root, sc);
        }
        if self.lru.swap.total == 0 || !self.has_few_inactive(of_root, Backing::Anon) {
            return;
        }
        let mut at = self.groups.next(GroupId::ROOT, None);
        while let Some(group) = at {
            let lruvec = self.groups.lruvec(group, of_root);
            self.shrink_active_list(owner, lruvec, LruList::ActiveAnon, u64::from(CLUSTER_MAX), sc);
            at = self.groups.next(GroupId::ROOT, Some(group));
        }
    }

    /// Deactivates a cluster of anonymous pages if the inactive list is low and there is swap.
    pub(crate) fn age_anon<O: Owner>(&mut self, owner: &mut O, lruvec: LruvecId, sc: &ScanControl) {
        if self.lru.swap.total > 0 && self.has_few_inactive(lruvec, Backing::Anon) {
            self.shrink_active_list(owner, lruvec, LruList::ActiveAnon, u64::from(CLUSTER_MAX), sc);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfp::Gfp;
    use crate::owner::{MigrateOutcome, PageState};
    use crate::state::PageFlags;
    use crate::testing::{linux, ordered_machine_with, user_page};
    use crate::types::{CpuId, Order, Pfn, ZoneType};

    fn shrinking(targets: Scan, left: Scan) -> ShrinkLruvec {
        ShrinkLruvec { lruvec: LruvecId::new(0), left, targets, reclaimed: 0, turn: 0, stalled: false, adjusted: false }
    }

    #[test]
    fn of_the_kind_with_more_left_as_large_a_part_is_looked_at_as_of_the_other() {
        let mut lists = shrinking([100, 50, 1000, 400], [36, 18, 936, 368]);
        assert!(lists.drop_the_smaller());
        // 54 of 151 were left of the anonymous ones, 35 percent: 650 and 260 of the files, less 64
        // and 32 scanned.
        assert_eq!(lists.left, [0, 0, 586, 228]);
        assert!(!lists.drop_the_smaller(), "once is enough");
    }

    #[test]
    fn where_both_have_as_much_left_files_are_left_alone() {
        let mut lists = shrinking([300, 100, 200, 200], [200, 0, 100, 100]);
        assert!(lists.drop_the_smaller());
        // 200 of 401 were left of the files, 49 percent: 153 and 51 of the anonymous ones, less 100
        // and 100 scanned.
        assert_eq!(lists.left, [53, 0, 0, 0]);
    }

    #[test]
    fn a_kind_with_nothing_left_leaves_nothing_to_drop() {
        let mut lists = shrinking([300, 100, 0, 0], [200, 100, 0, 0]);
        assert!(!lists.drop_the_smaller());
        assert_eq!(lists.left, [200, 100, 0, 0]);
    }

    /// Owns pages that can all be freed.
    struct Clean;

    impl Owner for Clean {
        fn may_isolate(&mut self, _: Pfn) -> bool {
            true
        }
        fn migrate(&mut self, _: Pfn, _: Pfn, _: u32) -> MigrateOutcome {
            MigrateOutcome::Moved
        }
        fn page_state(&mut self, _: Pfn, _: u32) -> PageState {
            PageState::default()
        }
    }

    #[test]
    fn in_3_13_a_request_stops_when_it_has_its_pages_and_kswapd_where_the_lists_end() {
        let reclaims = |profile: &str, kswapd| {
            let mut m = ordered_machine_with(16, linux(profile));
            (0..300).for_each(|_| {
                user_page(&mut m, PageFlags::FILE);
            });
            m.lru_add_drain(CpuId::new(0));
            let mut sc = ScanControl::new(CpuId::new(0), Gfp::KERNEL, Order::ZERO, ZoneType::Normal);
            sc.kswapd = kswapd;
            let mut lists = shrinking([0, 0, 200, 0], [0, 0, 200, 0]);
            while lists.step(&mut m, &mut Clean, &mut sc) != Step::Done(()) {}
            sc.nr_reclaimed
        };
        assert_eq!([reclaims("3.13", false), reclaims("3.13", true)], [32, 200]);
        assert_eq!([reclaims("4.6", false), reclaims("4.6", true)], [200, 32], "at the first priority");
    }
}
