//! The order in which reclaim for the whole machine comes to memory control groups on a node, where
//! pages are in generations (the kernel's `memcg_lru`).
//!
//! Groups are in one of two generations, the old and the young one, and there in one of eight bins
//! that the kernel draws at random. A bin is a list. Whoever walks along one goes on from where a
//! group is now, even if it has been moved in between. When the old generation is empty, the young
//! one is the old. Source: kernel-behaviour §4.11.5.

use crate::types::GroupId;
use alloc::vec::Vec;

/// Bins of a generation.
pub const NR_BINS: usize = 8;
/// Generations that have bins: one that has just ended is not taken for the young one.
const NR_GENS: usize = 3;

/// The next place in a bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    Group(GroupId),
    /// The end of a list of this generation.
    End(u8),
}

/// Where a group goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rotation {
    /// To the tail of a bin of its own generation.
    Tail,
    /// To the tail of a bin of the young generation.
    Young,
}

#[derive(Clone, Debug)]
struct Member {
    generation: u8,
    bin: u8,
    /// It was moved to a tail last.
    at_tail: bool,
    next: Link,
    before: Option<GroupId>,
}

/// The order of all groups on one node.
#[derive(Clone, Debug)]
pub struct MemcgLru {
    /// Number of the old generation.
    seq: u64,
    counts: [usize; NR_GENS],
    bins: [[Link; NR_BINS]; NR_GENS],
    members: Vec<Member>,
}

impl MemcgLru {
    /// All groups, the root first, in the old generation. Nobody has drawn their bins: they take
    /// turns.
    pub(crate) fn new(groups: usize) -> MemcgLru {
        let mut order = MemcgLru::empty(0, groups);
        (0..groups).for_each(|i| order.push(GroupId::new(i as u16), 0, (i % NR_BINS) as u8));
        order
    }

    /// The order with this number of the old generation, and these groups in each bin. `at_tail`
    /// says which were moved to a tail last.
    ///
    /// # Errors
    /// In one line, if not every group is in one bin, or a generation or a bin is none.
    pub fn of_bins(
        seq: u64,
        bins: &[(u8, u8, Vec<GroupId>)],
        at_tail: &[bool],
    ) -> Result<MemcgLru, alloc::string::String> {
        let mut order = MemcgLru::empty(seq, at_tail.len());
        let mut placed = alloc::vec![false; at_tail.len()];
        for (generation, bin, groups) in bins {
            if usize::from(*generation) >= NR_GENS || usize::from(*bin) >= NR_BINS {
                return Err(alloc::format!("there is no bin {bin} of generation {generation}"));
            }
            for group in groups {
                if placed.get(group.index()) != Some(&false) {
                    return Err(alloc::format!("group {} is none, or in two bins", group.index()));
                }
                placed[group.index()] = true;
                order.push(*group, *generation, *bin);
            }
        }
        if placed.contains(&false) {
            return Err("a group is in no bin".into());
        }
        order.members.iter_mut().zip(at_tail).for_each(|(member, at_tail)| member.at_tail = *at_tail);
        Ok(order)
    }

    fn empty(seq: u64, groups: usize) -> MemcgLru {
        let member = Member { generation: 0, bin: 0, at_tail: false, next: Link::End(0), before: None };
        MemcgLru {
            seq,
            counts: [0; NR_GENS],
            bins: core::array::from_fn(|generation| [Link::End(generation as u8); NR_BINS]),
            members: alloc::vec![member; groups],
        }
    }

    /// Number of the old generation.
    pub fn seq(&self) -> u64 {
        self.seq
    }
    /// The place of the generation with this number.
    fn place(seq: u64) -> u8 {
        (seq % NR_GENS as u64) as u8
    }
    pub(crate) fn old(&self) -> u8 {
        MemcgLru::place(self.seq)
    }
    pub(crate) fn first(&self, generation: u8, bin: u8) -> Link {
        self.bins[usize::from(generation)][usize::from(bin)]
    }
    pub(crate) fn after(&self, group: GroupId) -> Link {
        self.members[group.index()].next
    }
    pub(crate) fn generation_of(&self, group: GroupId) -> u8 {
        self.members[group.index()].generation
    }
    /// Whether a group was moved to the tail of a bin of its own generation last.
    pub fn is_at_tail(&self, group: GroupId) -> bool {
        self.members[group.index()].at_tail
    }
    /// The bins that are not empty: generation, bin, and their groups in order.
    pub fn bins(&self) -> Vec<(u8, u8, Vec<GroupId>)> {
        let mut all = Vec::new();
        for (generation, bins) in (0..).zip(&self.bins) {
            for (bin, first) in (0..).zip(bins) {
                let mut groups = Vec::new();
                let mut at = *first;
                while let Link::Group(group) = at {
                    groups.push(group);
                    at = self.after(group);
                }
                if !groups.is_empty() {
                    all.push((generation, bin, groups));
                }
            }
        }
        all
    }

    /// Moves a group to this bin.
    pub(crate) fn rotate(&mut self, group: GroupId, to: Rotation, bin: u8) {
        let old = self.generation_of(group);
        let new = if to == Rotation::Young { MemcgLru::place(self.seq + 1) } else { old };
        self.unlink(group);
        self.push(group, new, bin);
        self.members[group.index()].at_tail = to == Rotation::Tail;
        if self.counts[usize::from(old)] == 0 && old == self.old() {
            self.seq += 1;
        }
    }

    /// Every group is once in a bin of the old or of the young generation, where it says it is.
    pub(crate) fn check(&self) -> Result<(), alloc::string::String> {
        let mut seen = alloc::vec![false; self.members.len()];
        let mut counts = [0; NR_GENS];
        for (generation, bin, groups) in self.bins() {
            for group in groups {
                let member = &self.members[group.index()];
                if (member.generation, member.bin) != (generation, bin) || seen[group.index()] {
                    return Err(alloc::format!("group {} has lost its place", group.index()));
                }
                seen[group.index()] = true;
                counts[usize::from(generation)] += 1;
            }
        }
        let valid = [self.old(), MemcgLru::place(self.seq + 1)];
        let stale = counts.iter().enumerate().any(|(i, n)| *n > 0 && !valid.contains(&(i as u8)));
        if stale || seen.contains(&false) || counts != self.counts {
            return Err(alloc::format!("{counts:?} groups by generation, counted {:?}", self.counts));
        }
        Ok(())
    }

    /// Adds a group at the end of a bin.
    fn push(&mut self, group: GroupId, generation: u8, bin: u8) {
        let (mut before, mut at) = (None, self.first(generation, bin));
        while let Link::Group(other) = at {
            (before, at) = (Some(other), self.after(other));
        }
        let link = Link::Group(group);
        match before {
            Some(before) => self.members[before.index()].next = link,
            None => self.bins[usize::from(generation)][usize::from(bin)] = link,
        }
        let member = &mut self.members[group.index()];
        (member.generation, member.bin, member.next, member.before) = (generation, bin, at, before);
        self.counts[usize::from(generation)] += 1;
    }

    /// Takes a group out of its bin. What comes after it stays known, to whoever is there.
    fn unlink(&mut self, group: GroupId) {
        let Member { generation, bin, next, before, .. } = self.members[group.index()];
        match before {
            Some(before) => self.members[before.index()].next = next,
            None => self.bins[usize::from(generation)][usize::from(bin)] = next,
        }
        if let Link::Group(next) = next {
            self.members[next.index()].before = before;
        }
        self.counts[usize::from(generation)] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: GroupId = GroupId::ROOT;
    const A: GroupId = GroupId::new(1);
    const B: GroupId = GroupId::new(2);

    #[test]
    fn the_young_generation_is_the_old_when_that_is_empty() {
        let mut order = MemcgLru::new(3);
        order.rotate(A, Rotation::Tail, 0);
        assert_eq!(order.bins(), [(0, 0, alloc::vec![ROOT, A]), (0, 2, alloc::vec![B])]);
        assert!(order.is_at_tail(A));
        for (group, seq) in [(A, 0), (ROOT, 0), (B, 1)] {
            order.rotate(group, Rotation::Young, 5);
            assert_eq!(order.seq(), seq);
        }
        assert_eq!(order.bins(), [(1, 5, alloc::vec![A, ROOT, B])]);
        assert!(!order.is_at_tail(A));
    }

    #[test]
    fn whoever_is_at_a_group_that_is_moved_goes_on_behind_it() {
        let mut order = MemcgLru::of_bins(4, &[(1, 3, alloc::vec![ROOT, A, B])], &[false; 3]).expect("an order");
        order.rotate(A, Rotation::Young, 3);
        assert_eq!((order.after(ROOT), order.after(A)), (Link::Group(B), Link::End(2)));
        order.rotate(B, Rotation::Tail, 3);
        assert_eq!(order.bins(), [(1, 3, alloc::vec![ROOT, B]), (2, 3, alloc::vec![A])]);
    }

    #[test]
    fn an_order_has_every_group_once() {
        let refused = |bins: &[(u8, u8, Vec<GroupId>)]| MemcgLru::of_bins(0, bins, &[false; 2]).is_err();
        assert!(refused(&[(0, 0, alloc::vec![ROOT])]));
        assert!(refused(&[(0, 0, alloc::vec![ROOT, A, A])]));
        assert!(refused(&[(0, 0, alloc::vec![ROOT, A, B])]));
        assert!(refused(&[(0, 8, alloc::vec![ROOT, A])]) && refused(&[(3, 0, alloc::vec![ROOT, A])]));
        assert!(!refused(&[(2, 7, alloc::vec![A]), (0, 0, alloc::vec![ROOT])]));
    }
}
