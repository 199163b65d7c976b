//! Reclaim for the whole machine comes to memory control groups in the order of their bins, where
//! pages are in generations.
//!
//! It begins with a bin at random and goes through all groups of the old generation until it has
//! enough. A group that is protected, or has little, goes to the tail of a bin and, when it is met
//! there again, to the young generation; so does one at once that had to age, or that
//! `memory.min` covers. Whoever looked at a group moves it only when it has seen which one comes
//! next. Source: kernel-behaviour §4.11.5.

use crate::owner::Owner;
use crate::reclaim::control::ScanControl;
use crate::state::{Link, Memory, NR_BINS, Rotation};
use crate::types::{GroupId, LruvecId};

/// A walk over the bins of the generation that was old when it began.
#[derive(Clone, Debug)]
pub(super) struct OrderedWalk {
    of_root: LruvecId,
    generation: u8,
    first_bin: u8,
    bin: u8,
    /// The group it is at; none before the first of a bin.
    at: Option<GroupId>,
    /// Where that group goes when the next one is known.
    rotation: Option<Rotation>,
    /// Enough is reclaimed: no further group is looked at.
    is_over: bool,
}

impl OrderedWalk {
    pub(super) fn begin<O: Owner>(m: &Memory, owner: &mut O, of_root: LruvecId) -> OrderedWalk {
        let generation = m.groups().order(of_root).old();
        let bin = owner.draw(NR_BINS as u32) as u8;
        OrderedWalk { of_root, generation, first_bin: bin, bin, at: None, rotation: None, is_over: false }
    }

    /// The lists of the next group that is evicted from; `None` at the end.
    pub(super) fn next_lists<O: Owner>(&mut self, m: &mut Memory, owner: &mut O, sc: &ScanControl) -> Option<LruvecId> {
        loop {
            let group = self.next(m, owner)?;
            let lruvec = m.groups().lruvec(group, self.of_root);
            self.rotation = m.rotation_before(lruvec);
            if self.rotation.is_none() {
                return Some(lruvec);
            }
            self.is_over = m.should_abort_scan(lruvec, sc);
        }
    }

    /// The group's lists are done; `rotates` says that it must be young.
    pub(super) fn leave(&mut self, m: &mut Memory, rotates: bool, sc: &ScanControl) {
        let Some(group) = self.at else { return };
        let lruvec = m.groups().lruvec(group, self.of_root);
        self.rotation = m.rotation_after(lruvec, rotates, sc);
        self.is_over = m.should_abort_scan(lruvec, sc);
    }

    /// Goes on to the next group.
    fn next<O: Owner>(&mut self, m: &mut Memory, owner: &mut O) -> Option<GroupId> {
        loop {
            let order = m.groups().order(self.of_root);
            let next = match self.at {
                Some(group) => order.after(group),
                None => order.first(self.generation, self.bin),
            };
            if let (Some(group), Some(rotation)) = (self.at, self.rotation.take()) {
                m.rotate_group(owner, m.groups().lruvec(group, self.of_root), rotation);
            }
            if self.is_over {
                return None;
            }
            match next {
                Link::Group(group) => {
                    self.at = Some(group);
                    if m.groups().order(self.of_root).generation_of(group) == self.generation {
                        return Some(group);
                    }
                }
                Link::End(generation) => {
                    self.at = None;
                    if generation != self.generation {
                        // A group was moved while the walk was at it: the bin begins again.
                        continue;
                    }
                    self.bin = (self.bin + 1) % NR_BINS as u8;
                    if self.bin == self.first_bin {
                        return None;
                    }
                }
            }
        }
    }
}

impl Memory {
    /// Moves the group with these lists.
    pub(super) fn rotate_group<O: Owner>(&mut self, owner: &mut O, lruvec: LruvecId, to: Rotation) {
        let bin = owner.draw(NR_BINS as u32) as u8;
        let (group, of_root) = (self.groups.group_of(lruvec), self.groups.root_of(lruvec));
        self.groups.order_mut(of_root).rotate(group, to, bin);
    }

    /// Whether `memory.min` covers all of a group with these lists, against reclaim for `target`.
    pub(super) fn is_below_min(&self, lruvec: LruvecId, target: Option<GroupId>) -> bool {
        if !self.groups.are_kept() {
            return false;
        }
        let group = self.groups.group_of(lruvec);
        let memory = &self.groups.get(group).memory;
        group != GroupId::ROOT && Some(group) != target && memory.emin >= memory.usage
    }

    /// Where a group goes that is not evicted from.
    fn rotation_before(&mut self, lruvec: LruvecId) -> Option<Rotation> {
        if self.is_below_min(lruvec, None) {
            return Some(Rotation::Young);
        }
        let (group, of_root) = (self.groups.group_of(lruvec), self.groups.root_of(lruvec));
        let of = self.groups.get_mut(group);
        if group == GroupId::ROOT || of.memory.elow < of.memory.usage {
            return None;
        }
        if self.groups.order(of_root).is_at_tail(group) {
            self.groups.get_mut(group).events.low += 1;
            return None;
        }
        Some(Rotation::Tail)
    }

    /// Where a group goes that was evicted from.
    fn rotation_after(&mut self, lruvec: LruvecId, rotates: bool, sc: &ScanControl) -> Option<Rotation> {
        if rotates {
            return Some(Rotation::Young);
        }
        let can_swap = self.gen_swappiness(sc) > 0;
        if self.evictable_size(lruvec, can_swap) >> sc.priority > 0 {
            return None;
        }
        let (group, of_root) = (self.groups.group_of(lruvec), self.groups.root_of(lruvec));
        let again = self.groups.order(of_root).is_at_tail(group);
        Some(if again { Rotation::Young } else { Rotation::Tail })
    }
}
