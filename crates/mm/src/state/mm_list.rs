//! The address spaces whose page tables aging walks, and how far a node is with them.
//!
//! They are listed as they were made, for each memory control group by itself. A walk goes through
//! all of them, but over those that were not used since they were walked last, unless they are new.
//! Of a page table it wants to know whether the last walk, or a look around a page found used, met
//! enough used entries in it: two Bloom filters remember that, one for the walk that comes next,
//! one for that after it. Source: kernel-behaviour §4.10.8.

use crate::types::GroupId;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A place in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// Before the first and after the last.
    End,
    Mm(u32),
}

#[derive(Clone, Copy, Debug)]
struct Mm {
    id: u32,
    /// A bit for each node: whether it was used since that node's last walk through it.
    used: u64,
    /// The memory control group that it is listed for.
    group: GroupId,
}

/// The address spaces in the order they were made in, or moved to their group.
#[derive(Clone, Debug, Default)]
pub(crate) struct MmList {
    mms: Vec<Mm>,
}

impl MmList {
    fn place(&self, id: u32) -> Option<usize> {
        self.mms.iter().position(|mm| mm.id == id)
    }

    /// Lists it as the last of this group.
    pub(crate) fn add(&mut self, id: u32, group: GroupId) {
        debug_assert!(self.place(id).is_none());
        self.mms.push(Mm { id, used: 0, group });
    }

    /// The place of this one must have been left by all nodes.
    pub(crate) fn remove(&mut self, id: u32) {
        if let Some(place) = self.place(id) {
            self.mms.remove(place);
        }
    }

    /// Has one become the last of another group. Its place must have been left by all nodes.
    pub(crate) fn move_to(&mut self, id: u32, group: GroupId) {
        if let Some(place) = self.place(id) {
            let mm = self.mms.remove(place);
            self.mms.push(Mm { group, ..mm });
        }
    }

    /// The group that one is listed for.
    pub(crate) fn group_of(&self, id: u32) -> Option<GroupId> {
        self.place(id).map(|place| self.mms[place].group)
    }

    /// The place after this one in a group's list.
    pub(crate) fn after(&self, at: At, group: GroupId) -> At {
        let from = match at {
            At::End => 0,
            At::Mm(id) => self.place(id).map_or(self.mms.len(), |place| place + 1),
        };
        self.mms[from..].iter().find(|mm| mm.group == group).map_or(At::End, |mm| At::Mm(mm.id))
    }

    /// The place before this one in a group's list.
    pub(crate) fn before(&self, at: At, group: GroupId) -> At {
        let to = match at {
            At::End => self.mms.len(),
            At::Mm(id) => self.place(id).unwrap_or(0),
        };
        self.mms[..to].iter().rfind(|mm| mm.group == group).map_or(At::End, |mm| At::Mm(mm.id))
    }

    /// A thread of the address space runs.
    pub(crate) fn note_use(&mut self, id: u32) {
        if let Some(place) = self.place(id) {
            self.mms[place].used = !0;
        }
    }

    /// Whether it was used since the node with this number looked last.
    pub(crate) fn take_used(&mut self, id: u32, node: usize) -> bool {
        let Some(place) = self.place(id) else { return false };
        let (used, bit) = (&mut self.mms[place].used, 1 << (node % 64));
        let was = *used & bit != 0;
        *used &= !bit;
        was
    }
}

/// Bits of a filter.
const BLOOM_SHIFT: u32 = 15;
const WORDS: usize = 1 << (BLOOM_SHIFT - 6);

/// A Bloom filter with two keys.
#[derive(Clone, Debug)]
pub(crate) struct Bloom(Box<[u64; WORDS]>);

impl Bloom {
    fn empty() -> Bloom {
        Bloom(Box::new([0; WORDS]))
    }
    /// The kernel's multiplicative hash, in two parts.
    fn keys(table: u64) -> [usize; 2] {
        const GOLDEN_RATIO: u64 = 0x61c8_8646_80b5_83eb;
        let hash = (table.wrapping_mul(GOLDEN_RATIO) >> (64 - 2 * BLOOM_SHIFT)) as usize;
        [hash & ((1 << BLOOM_SHIFT) - 1), hash >> BLOOM_SHIFT]
    }
    fn has(&self, table: u64) -> bool {
        Bloom::keys(table).iter().all(|key| self.0[key / 64] >> (key % 64) & 1 != 0)
    }
    fn insert(&mut self, table: u64) {
        Bloom::keys(table).iter().for_each(|key| self.0[key / 64] |= 1 << (key % 64));
    }
}

/// How far a node is with walks of page tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walker {
    /// Where the walk under way is; the end, if none is.
    pub(crate) head: Option<At>,
    /// The first that is new since the last walk; the end, if none is. Nothing before the first
    /// walk: all of them are.
    pub(crate) tail: Option<At>,
    /// For walks of an even and of an odd number. One that was never begun has every table.
    filters: [Option<Bloom>; 2],
}

impl Walker {
    /// Whether the walk of this number is to look at a table.
    pub(crate) fn has(&self, seq: u64, table: u64) -> bool {
        self.filters[seq as usize % 2].as_ref().is_none_or(|filter| filter.has(table))
    }
    pub(crate) fn insert(&mut self, seq: u64, table: u64) {
        if let Some(filter) = &mut self.filters[seq as usize % 2] {
            filter.insert(table);
        }
    }
    /// Empties the filter for the walk of this number.
    pub(crate) fn reset(&mut self, seq: u64) {
        match &mut self.filters[seq as usize % 2] {
            Some(Bloom(words)) => words.fill(0),
            none => *none = Some(Bloom::empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_was_never_begun_has_every_table_and_another_what_was_put_in() {
        let mut walker = Walker::default();
        assert!(walker.has(4, 7));
        walker.insert(4, 7);
        walker.reset(4);
        assert!(!walker.has(4, 7) && walker.has(5, 7));
        walker.insert(6, 7);
        assert!(walker.has(4, 7) && !walker.has(4, 8));
        walker.reset(4);
        assert!(!walker.has(4, 7));
    }

    #[test]
    fn the_list_goes_round_and_remembers_use_by_node() {
        let mut list = MmList::default();
        let (root, other) = (GroupId::ROOT, GroupId::new(1));
        (1..4).for_each(|id| list.add(id, root));
        list.remove(2);
        assert_eq!([At::End, At::Mm(1), At::Mm(3)].map(|at| list.after(at, root)), [At::Mm(1), At::Mm(3), At::End]);
        assert_eq!([At::End, At::Mm(1)].map(|at| list.before(at, root)), [At::Mm(3), At::End]);
        list.add(4, other);
        list.add(5, root);
        assert_eq!([At::End, At::Mm(4)].map(|at| list.after(at, other)), [At::Mm(4), At::End]);
        assert_eq!((list.after(At::Mm(3), root), list.before(At::Mm(5), root)), (At::Mm(5), At::Mm(3)));
        list.move_to(3, other);
        assert_eq!((list.group_of(3), list.after(At::Mm(4), other)), (Some(other), At::Mm(3)));
        assert_eq!(list.after(At::Mm(1), root), At::Mm(5));
        assert!(!list.take_used(1, 0));
        list.note_use(1);
        assert!(list.take_used(1, 0) && !list.take_used(1, 0) && list.take_used(1, 1));
    }
}
