//! A list of blocks of one order: an array of their frame numbers, and in each block's frame its
//! position in that array.
//!
//! Blocks join at either end and leave from anywhere. A block that leaves from the middle leaves a
//! hole, and the others keep their positions; once a third of the slots are holes the array is
//! packed. It grows by an eighth when it is full, and shrinks when it has seven slots for four
//! blocks. So a list takes four bytes for each block in its frame, and four to seven beside it,
//! against eight in every frame for links both ways; a removal touches no neighbour, and a walk
//! sees far enough ahead to prefetch. Both ends of a run of holes hold its length, so a walk steps
//! over it at once.
//!
//! A removal pays for at most two blocks that packing moves: a third of the slots must become holes
//! before the others move, and a freshly packed ring has nine slots for eight blocks, so more than
//! a third of them leave before it is too large.

use crate::types::Pfn;
use alloc::vec::Vec;

/// End of a stack threaded through frames ([`super::Frames::stack_push`]).
pub(crate) const NIL: u32 = u32::MAX;
/// Marks a slot as the first or last of a run of holes; the low bits are the length of the run.
const HOLES: u32 = 1 << 31;
/// Frames are numbered below this, so that no frame looks like a hole.
pub(crate) const MAX_FRAMES: u32 = HOLES;
/// Holes that are tolerated however few blocks there are.
const FEW: u32 = 64;
/// Bytes for each block (and [`FEW`] more) above which a ring is too large. One that has just grown
/// stays below: at most a third of its slots were holes, and it is an eighth larger.
const MOST_BYTES: usize = 7;
/// A ring grows by an eighth, and by at least these slots.
const GROWTH: usize = 16;

/// A block's position in its list, which its frame keeps. Positions ascend from the first block to
/// the last, and wrap around at the end of u32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct ListPos(pub(crate) u32);

impl ListPos {
    /// The position this many places before.
    #[inline(always)]
    pub(crate) const fn before(self, places: u32) -> ListPos {
        ListPos(self.0.wrapping_sub(places))
    }
}

/// A list of blocks of one order, by pfn.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// A ring of slots, empty at first. Those in use hold blocks and holes, with a block at either
    /// end.
    ring: Vec<u32>,
    /// Index in the ring of the first slot in use.
    head: u32,
    /// Position of the first slot in use.
    base: u32,
    /// Slots in use, with holes.
    used: u32,
    /// Holes among the slots in use.
    holes: u32,
}

impl List {
    /// Bytes for each block when every slot holds one.
    pub const BYTES_PER_BLOCK: usize = size_of::<u32>();
    /// Most bytes for each block, in a list that is not short.
    pub const MOST_BYTES_PER_BLOCK: usize = MOST_BYTES;

    /// A list without entries.
    pub const fn new() -> List {
        List { ring: Vec::new(), head: 0, base: 0, used: 0, holes: 0 }
    }

    /// Whether the list has no entry.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }
    /// The first entry of the list.
    #[inline(always)]
    pub fn first(&self) -> Option<Pfn> {
        (self.used > 0).then(|| Pfn::new(self.slot(self.base)))
    }
    /// The last entry of the list.
    #[inline(always)]
    pub fn last(&self) -> Option<Pfn> {
        (self.used > 0).then(|| Pfn::new(self.slot(self.end().wrapping_sub(1))))
    }
    /// Entries in the list.
    pub fn len(&self) -> usize {
        (self.used - self.holes) as usize
    }
    /// The entries, first to last.
    pub fn iter(&self) -> impl Iterator<Item = Pfn> + '_ {
        self.places().map(|(pfn, _)| pfn)
    }

    /// The entries with their positions, first to last.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Pfn, ListPos)> + '_ {
        let all = (0..self.used).map(|i| self.base.wrapping_add(i)).map(|place| (self.slot(place), ListPos(place)));
        all.filter(|(slot, _)| *slot < HOLES).map(|(pfn, place)| (Pfn::new(pfn), place))
    }

    /// The entry some slots after the first, if that slot holds one, for prefetching.
    #[inline(always)]
    pub(crate) fn near_the_first(&self, slots: u32) -> Option<u32> {
        let slot = (slots < self.used).then(|| self.slot(self.base.wrapping_add(slots)));
        slot.filter(|slot| *slot < HOLES)
    }

    /// The entry some slots before the last, if that slot holds one.
    #[inline(always)]
    pub(crate) fn near_the_last(&self, slots: u32) -> Option<u32> {
        let slot = (slots < self.used).then(|| self.slot(self.end().wrapping_sub(1 + slots)));
        slot.filter(|slot| *slot < HOLES)
    }

    /// The slot of a position, for prefetching; the position may not be one of this list.
    #[inline(always)]
    pub(crate) fn slot_of(&self, place: ListPos) -> Option<&u32> {
        self.ring.get(self.index(place.0))
    }

    /// One past the last position in use.
    #[inline(always)]
    const fn end(&self) -> u32 {
        self.base.wrapping_add(self.used)
    }

    #[inline(always)]
    fn index(&self, place: u32) -> usize {
        let index = (self.head as usize).wrapping_add(place.wrapping_sub(self.base) as usize);
        // Wraps around the end of the ring.
        if index < self.ring.len() { index } else { index - self.ring.len() }
    }

    #[inline(always)]
    fn slot(&self, place: u32) -> u32 {
        self.ring[self.index(place)]
    }

    #[inline(always)]
    fn set_slot(&mut self, place: u32, to: u32) {
        let index = self.index(place);
        self.ring[index] = to;
    }

    /// Makes room for one more.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.used as usize == self.ring.len() {
            self.grow();
        }
    }

    /// Moves to a larger ring when this one is full; every block keeps its position.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let (head, before) = (self.head as usize, self.ring.len());
        let more = (before / 8).max(GROWTH);
        self.ring.reserve_exact(more);
        self.ring.resize(before + more, 0);
        // Slots before the end of the ring stay before it.
        if head > 0 {
            self.ring.copy_within(head..before, head + more);
            self.head += more as u32;
        }
    }

    /// Shrinks the ring to the size that growing would give it. The list has no holes, and every
    /// block keeps its position.
    fn shrink(&mut self) {
        debug_assert!(self.holes == 0);
        let slots = self.used as usize + (self.used as usize / 8).max(GROWTH);
        if slots < self.ring.len() {
            self.ring.rotate_left(self.head as usize);
            self.head = 0;
            self.ring.truncate(slots);
            self.ring.shrink_to_fit();
        }
    }

    /// Puts a block first and returns its position, which the frame must keep.
    #[inline(always)]
    pub(super) fn push_front(&mut self, pfn: Pfn) -> ListPos {
        self.make_room();
        self.head = if self.head == 0 { self.ring.len() as u32 } else { self.head } - 1;
        self.base = self.base.wrapping_sub(1);
        self.used += 1;
        self.set_slot(self.base, pfn.get());
        ListPos(self.base)
    }

    /// Puts blocks first, one after the other, and returns the position of the first of them, which
    /// ends up behind the others. Each is one position before the previous.
    pub(super) fn push_front_row(&mut self, row: &[Pfn]) -> ListPos {
        while self.ring.len() - (self.used as usize) < row.len() {
            self.grow();
        }
        let (mut head, before) = (self.head as usize, self.base);
        for pfn in row {
            head = if head == 0 { self.ring.len() } else { head } - 1;
            self.ring[head] = pfn.get();
        }
        self.head = head as u32;
        self.base = self.base.wrapping_sub(row.len() as u32);
        self.used += row.len() as u32;
        ListPos(before.wrapping_sub(1))
    }

    /// Puts a block last and returns its position, which the frame must keep.
    #[inline(always)]
    pub(crate) fn push_back(&mut self, pfn: Pfn) -> ListPos {
        self.make_room();
        let place = self.end();
        self.used += 1;
        self.set_slot(place, pfn.get());
        ListPos(place)
    }

    /// Removes the first block of a list that has one.
    #[inline(always)]
    fn pop_front(&mut self) {
        self.advance(1);
        // Drops holes that have become the start of the list.
        if self.used > 0
            && let Some(run) = self.slot(self.base).checked_sub(HOLES)
        {
            self.advance(run);
            self.holes -= run;
        }
    }

    /// Drops the first slots in use.
    #[inline(always)]
    fn advance(&mut self, slots: u32) {
        self.head = self.index(self.base.wrapping_add(slots)) as u32;
        self.base = self.base.wrapping_add(slots);
        self.used -= slots;
    }

    /// Removes the last block of a list that has one.
    #[inline(always)]
    fn pop_back(&mut self) {
        self.used -= 1;
        if self.used > 0
            && let Some(run) = self.slot(self.end().wrapping_sub(1)).checked_sub(HOLES)
        {
            self.used -= run;
            self.holes -= run;
        }
    }

    /// Removes a block. In the middle, it leaves a hole.
    #[inline(always)]
    pub(super) fn remove(&mut self, pfn: Pfn, ListPos(at): ListPos) {
        assert!(self.slot(at) == pfn.get(), "{pfn} is not where its frame says");
        if at == self.base {
            self.pop_front();
        } else if at.wrapping_add(1) == self.end() {
            self.pop_back();
        } else {
            self.leave_hole(at);
        }
    }

    /// Removes blocks that stand one before the other; `last` is the position of the first of them,
    /// which is the rearmost.
    pub(super) fn remove_row(&mut self, row: &[Pfn], ListPos(last): ListPos) {
        let pages = row.len() as u32;
        let first = last.wrapping_sub(pages - 1);
        let mut index = self.index(last);
        for pfn in row {
            assert!(self.ring[index] == pfn.get(), "{pfn} is not where its frame says");
            self.ring[index] = HOLES | 1;
            index = if index == 0 { self.ring.len() } else { index } - 1;
        }
        let run = |list: &List, place: u32| list.slot(place).saturating_sub(HOLES);
        if first == self.base {
            self.advance(pages);
            if self.used > 0 {
                let after = run(self, self.base);
                self.advance(after);
                self.holes -= after;
            }
        } else if last.wrapping_add(1) == self.end() {
            self.used -= pages;
            let before = run(self, self.end().wrapping_sub(1));
            self.used -= before;
            self.holes -= before;
        } else {
            let (before, after) = (run(self, first.wrapping_sub(1)), run(self, last.wrapping_add(1)));
            let all = HOLES | (before + pages + after);
            self.set_slot(first.wrapping_sub(before), all);
            self.set_slot(last.wrapping_add(after), all);
            self.holes += pages;
        }
    }

    /// Makes a hole of a slot that is at neither end, and joins it with the holes beside it.
    #[inline(always)]
    fn leave_hole(&mut self, at: u32) {
        let run = |slot: u32| slot.saturating_sub(HOLES);
        let (before, after) = (run(self.slot(at.wrapping_sub(1))), run(self.slot(at.wrapping_add(1))));
        let all = HOLES | (before + 1 + after);
        self.set_slot(at, all);
        if before + after > 0 {
            self.set_slot(at.wrapping_sub(before), all);
            self.set_slot(at.wrapping_add(after), all);
        }
        self.holes += 1;
    }

    /// Whether the slots should be packed.
    #[inline(always)]
    pub(super) fn is_sparse(&self) -> bool {
        self.holes > self.used / 3 + FEW || self.is_too_large()
    }

    /// Whether the ring has too many slots for its blocks.
    #[inline(always)]
    fn is_too_large(&self) -> bool {
        self.ring.len() * size_of::<u32>() > MOST_BYTES * (self.len() + FEW as usize)
    }

    /// Closes all holes, and shrinks a ring that is too large. `moved` learns the new position of
    /// each block that moves.
    pub(super) fn pack(&mut self, mut moved: impl FnMut(Pfn, ListPos)) {
        let slots = self.ring.len();
        let after = |index: usize| if index + 1 == slots { 0 } else { index + 1 };
        let (mut from, mut to) = (self.head as usize, self.head as usize);
        let mut end = self.base;
        for _ in 0..self.used {
            let slot = self.ring[from];
            if slot < HOLES {
                if from != to {
                    self.ring[to] = slot;
                    moved(Pfn::new(slot), ListPos(end));
                }
                (to, end) = (after(to), end.wrapping_add(1));
            }
            from = after(from);
        }
        self.used -= self.holes;
        self.holes = 0;
        if self.is_too_large() {
            self.shrink();
        }
    }

    /// The entry after the one at `place`.
    pub(super) fn after(&self, ListPos(place): ListPos) -> Option<Pfn> {
        Walk { next: place.wrapping_add(1) }.next(self)
    }

    /// Rotates the list so that the block at `place` comes first; the blocks before it go to the
    /// end in their order. Moves the shorter part, and `moved` learns its new positions.
    pub(super) fn rotate_to_front(&mut self, ListPos(place): ListPos, mut moved: impl FnMut(Pfn, ListPos)) {
        let before = place.wrapping_sub(self.base);
        let pfn = self.slot(place);
        if before <= self.used / 2 {
            while self.slot(self.base) != pfn {
                let first = Pfn::new(self.slot(self.base));
                self.pop_front();
                moved(first, self.push_back(first));
            }
        } else {
            // The entries from this one on go to the front, the last of them first.
            while self.slot(self.base) != pfn {
                let last = Pfn::new(self.slot(self.end().wrapping_sub(1)));
                self.pop_back();
                moved(last, self.push_front(last));
            }
        }
    }

    /// Damages a slot, for tests of the checker.
    #[cfg(test)]
    pub(crate) fn overwrite(&mut self, ListPos(place): ListPos, slot: u32) {
        self.set_slot(place, slot);
    }

    /// Checks the slots: no more than a list of this length may have, a block at either end, the
    /// right count of holes, and the length of each run of holes at both its ends.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.is_too_large() {
            return Err("more slots than a list of this length may have");
        }
        let at = |i: u32| self.slot(self.base.wrapping_add(i));
        let (mut i, mut holes) = (0, 0);
        while i < self.used {
            let Some(run) = at(i).checked_sub(HOLES) else {
                i += 1;
                continue;
            };
            let end = i + run;
            if i == 0 || run == 0 || end >= self.used {
                return Err("holes at an end");
            }
            if at(end - 1) != at(i) || at(end) >= HOLES {
                return Err("a run of holes that ends elsewhere");
            }
            holes += run;
            i = end;
        }
        if holes == self.holes { Ok(()) } else { Err("holes that are not counted") }
    }
}

/// A walk through a list from one of its ends. The list must not change meanwhile.
pub(crate) struct Walk {
    /// The next position, forwards; one after it, backwards.
    next: u32,
}

impl Walk {
    /// Starts before the first entry, for [`Walk::next`].
    pub(crate) fn from_first(list: &List) -> Walk {
        Walk { next: list.base }
    }

    /// Starts after the last entry, for [`Walk::previous`].
    pub(crate) fn from_last(list: &List) -> Walk {
        Walk { next: list.end() }
    }

    /// The next entry, forwards.
    #[inline(always)]
    pub(crate) fn next(&mut self, list: &List) -> Option<Pfn> {
        if self.next.wrapping_sub(list.base) >= list.used {
            return None;
        }
        if let Some(run) = list.slot(self.next).checked_sub(HOLES) {
            self.next = self.next.wrapping_add(run);
        }
        self.next = self.next.wrapping_add(1);
        Some(Pfn::new(list.slot(self.next.wrapping_sub(1))))
    }

    /// The entry before it.
    #[inline(always)]
    pub(crate) fn previous(&mut self, list: &List) -> Option<Pfn> {
        if self.next == list.base {
            return None;
        }
        self.next = self.next.wrapping_sub(1);
        if let Some(run) = list.slot(self.next).checked_sub(HOLES) {
            self.next = self.next.wrapping_sub(run);
        }
        Some(Pfn::new(list.slot(self.next)))
    }
}

#[cfg(test)]
mod tests;
