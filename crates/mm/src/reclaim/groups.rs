//! The walk of reclaim over memory control groups.
//!
//! All groups below the one that reclaim is for are visited, parents first, in the order they were
//! made. kswapd, and a request that found nothing, visit all. Others stop when they have enough,
//! and the next walk goes on from there: the position is shared by all that reclaim for the same
//! group on the same node. A group that is protected is passed over, or scanned less. Source:
//! kernel-behaviour §4.11.

use super::balance::unprotected;
use super::control::{Protection, ScanControl};
use crate::state::Memory;
use crate::types::{GroupId, LruvecId};

/// A walk over groups on one node.
#[derive(Clone, Debug)]
pub(super) struct GroupWalk {
    /// The root's lists on the node.
    of_root: LruvecId,
    /// The group that reclaim is for.
    target: GroupId,
    /// The group visited last, after the first.
    at: Option<GroupId>,
    /// The round that it joined, if it shares the position.
    shared: Option<u32>,
}

impl GroupWalk {
    /// A walk that has not begun, over the group with these lists and those below it.
    pub(super) fn new(m: &Memory, lruvec: LruvecId, sc: &ScanControl) -> GroupWalk {
        let of_root = m.root_of(lruvec);
        let target = m.groups().group_of(lruvec);
        let shares = !sc.kswapd && !sc.full_walk;
        let walk = &m.groups().get(target).walks[of_root.index()];
        GroupWalk { of_root, target, at: None, shared: shares.then_some(walk.rounds) }
    }

    /// Whether it has visited a group.
    pub(super) fn has_begun(&self) -> bool {
        self.at.is_some()
    }

    /// Whether it is over when enough is reclaimed.
    pub(super) fn is_partial(&self) -> bool {
        self.shared.is_some()
    }

    /// Goes on to the next group; `None` at the end.
    fn next(&mut self, m: &mut Memory) -> Option<GroupId> {
        let Some(joined) = self.shared else {
            self.at = m.groups().next(self.target, self.at);
            return self.at;
        };
        loop {
            let groups = &mut m.groups;
            let walk = groups.get(self.target).walks[self.of_root.index()];
            if self.at.is_some() && walk.rounds != joined {
                // Another walk has ended the round.
                return None;
            }
            let next = groups.next(self.target, walk.position);
            let walk = &mut groups.get_mut(self.target).walks[self.of_root.index()];
            walk.position = next;
            if next.is_none() {
                walk.rounds = walk.rounds.wrapping_add(1);
                // One that joins at the very end begins again, to see at least one group.
                if self.at.is_none() {
                    self.shared = Some(walk.rounds);
                    continue;
                }
            }
            self.at = next;
            return next;
        }
    }

    /// The lists of the next group that is not spared, if there is one.
    pub(super) fn next_lists(
        &mut self,
        m: &mut Memory,
        sc: &mut ScanControl,
        mut offer: impl FnMut(&mut Memory),
    ) -> Option<LruvecId> {
        while let Some(group) = self.next(m) {
            offer(m);
            if m.may_reclaim_from(group, self.target, sc) {
                return Some(m.groups().lruvec(group, self.of_root));
            }
        }
        None
    }
}

impl Memory {
    /// Counts pages of a group's lists that were scanned.
    #[cold]
    pub(super) fn count_scanned_in_group(&mut self, lruvec: LruvecId, kswapd: bool, pages: u64) {
        let group = self.groups.group_of(lruvec);
        let events = &mut self.groups.get_mut(group).events;
        *if kswapd { &mut events.pgscan_kswapd } else { &mut events.pgscan_direct } += pages;
    }

    /// Counts those that were reclaimed.
    #[cold]
    pub(super) fn count_reclaimed_in_group(&mut self, lruvec: LruvecId, kswapd: bool, pages: u64) {
        let group = self.groups.group_of(lruvec);
        let events = &mut self.groups.get_mut(group).events;
        *if kswapd { &mut events.pgsteal_kswapd } else { &mut events.pgsteal_direct } += pages;
    }

    /// Works out what of each group is protected against reclaim for the whole machine.
    pub(crate) fn protect_all_groups(&mut self) {
        let mut at = None;
        while self.groups.are_kept()
            && let Some(group) = self.groups.next(GroupId::ROOT, at)
        {
            self.groups.calculate_protection(GroupId::ROOT, group);
            at = Some(group);
        }
    }

    /// Whether protection lets reclaim take from a group, and what of it is protected.
    fn may_reclaim_from(&mut self, group: GroupId, target: GroupId, sc: &mut ScanControl) -> bool {
        sc.protection = None;
        self.groups.calculate_protection(target, group);
        if group == target {
            return true;
        }
        let of = &mut self.groups.get_mut(group);
        let (usage, low, min) = (of.memory.usage, of.memory.elow, of.memory.emin);
        if min >= usage {
            return false;
        }
        if low >= usage {
            if !sc.low_reclaim {
                sc.low_skipped = true;
                return false;
            }
            of.events.low += 1;
        }
        if !self.lru.has_generations() {
            sc.protection = self.protection_of(group, sc);
        }
        true
    }

    /// The part of a group that is protected, against reclaim for one it is below.
    fn protection_of(&self, group: GroupId, sc: &mut ScanControl) -> Option<Protection> {
        let of = &self.groups.get(group).memory;
        let (usage, low, min) = (of.usage, of.elow, of.emin);
        (low > 0 || min > 0).then(|| {
            let spares_low = !sc.low_reclaim && low > min;
            sc.low_skipped |= spares_low;
            Protection { pages: if spares_low { low } else { min }, usage }
        })
    }

    /// The part of `size` pages of a group's lists that may be looked at, where a protection in
    /// part holds for generations.
    pub(super) fn unprotected_of(&self, lruvec: LruvecId, size: u64, sc: &mut ScanControl) -> u64 {
        if !self.groups.are_kept() {
            return size;
        }
        let group = self.groups.group_of(lruvec);
        let is_target = group == GroupId::ROOT || Some(group) == sc.target;
        sc.protection = if is_target { None } else { self.protection_of(group, sc) };
        unprotected(size, sc)
    }
}
