//! A list of blocks of one order: an array of their frame numbers, in which each block's frame keeps its place.
//!
//! Blocks join at either end and leave from anywhere. One that leaves from the middle leaves a hole, and the others
//! keep their places; when a third of the slots are holes the array is packed. It grows by an eighth when it is full, and
//! shrinks when it has seven slots for four blocks. So a list takes four bytes a block in its frame, and four to seven
//! beside it, where links both ways take eight in every frame; to leave touches no neighbour, and who walks a list sees
//! far enough ahead to fetch what it will need. A run of holes says at both its ends how long it is: a walk steps over it
//! at once.
//!
//! A removal pays for no more than two blocks that packing moves: a third of the slots have to become holes before the
//! others move, and a ring just packed has nine slots for eight blocks, so that more than a third of them leave before it
//! is too large.

use crate::types::Pfn;
use alloc::vec::Vec;

/// End of a stack threaded through frames ([`super::Frames::stack_push`]).
pub(crate) const NIL: u32 = u32::MAX;
/// In a slot: not a block but the first or last of so many holes.
const HOLES: u32 = 1 << 31;
/// Frames are numbered below this, so that no frame looks like a hole.
pub(crate) const MAX_FRAMES: u32 = HOLES;
/// Holes that are left alone however few blocks there are.
const FEW: u32 = 64;
/// Bytes for each block, [`FEW`] more counted, above which a ring is too large. One that has just grown stays below: a
/// third of its slots were holes at most, and it is an eighth larger.
const MOST_BYTES: usize = 7;
/// A ring grows by an eighth, or by so many slots.
const GROWTH: usize = 16;

/// Where a block is in its list, as its frame keeps it. Places ascend from the first block to the last, around the end of
/// the numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct Place(pub(crate) u32);

impl Place {
    /// The place so many before this one.
    #[inline(always)]
    pub(crate) const fn before(self, places: u32) -> Place {
        Place(self.0.wrapping_sub(places))
    }
}

/// A list of blocks of one order, by pfn.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// A ring of slots, or none yet. Those in use hold blocks and holes, with a block at either end.
    ring: Vec<u32>,
    /// Which slot of the ring is the first in use.
    head: u32,
    /// The place of the first slot in use.
    base: u32,
    /// How many slots are in use.
    used: u32,
    /// How many of them are holes.
    holes: u32,
}

impl List {
    /// Bytes for each block, where all slots hold one.
    pub const BYTES_PER_BLOCK: usize = size_of::<u32>();
    /// Bytes for each block at most, of a list that is not short.
    pub const MOST_BYTES_PER_BLOCK: usize = MOST_BYTES;

    /// A list without entries.
    pub const fn new() -> List {
        List { ring: Vec::new(), head: 0, base: 0, used: 0, holes: 0 }
    }

    /// Whether there is no entry.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }
    /// The first entry.
    #[inline(always)]
    pub fn first(&self) -> Option<Pfn> {
        (self.used > 0).then(|| Pfn::new(self.slot(self.base)))
    }
    /// The last entry.
    #[inline(always)]
    pub fn last(&self) -> Option<Pfn> {
        (self.used > 0).then(|| Pfn::new(self.slot(self.end().wrapping_sub(1))))
    }
    /// How many entries there are.
    pub fn len(&self) -> usize {
        (self.used - self.holes) as usize
    }
    /// The entries, first to last.
    pub fn iter(&self) -> impl Iterator<Item = Pfn> + '_ {
        self.places().map(|(pfn, _)| pfn)
    }

    /// The entries with their places, first to last.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Pfn, Place)> + '_ {
        let all = (0..self.used).map(|i| self.base.wrapping_add(i)).map(|place| (self.slot(place), Place(place)));
        all.filter(|(slot, _)| *slot < HOLES).map(|(pfn, place)| (Pfn::new(pfn), place))
    }

    /// The entry some slots after the first, if that is one: what will be taken soon, for fetching it ahead.
    #[inline(always)]
    pub(crate) fn near_the_first(&self, slots: u32) -> Option<u32> {
        let slot = (slots < self.used).then(|| self.slot(self.base.wrapping_add(slots)));
        slot.filter(|slot| *slot < HOLES)
    }

    /// The entry some slots before the last, if that is one.
    #[inline(always)]
    pub(crate) fn near_the_last(&self, slots: u32) -> Option<u32> {
        let slot = (slots < self.used).then(|| self.slot(self.end().wrapping_sub(1 + slots)));
        slot.filter(|slot| *slot < HOLES)
    }

    /// The slot of a place, to be fetched ahead; the place may be none of this list's.
    #[inline(always)]
    pub(crate) fn slot_of(&self, place: Place) -> Option<&u32> {
        self.ring.get(self.index(place.0))
    }

    /// One past the last place in use.
    #[inline(always)]
    const fn end(&self) -> u32 {
        self.base.wrapping_add(self.used)
    }

    #[inline(always)]
    fn index(&self, place: u32) -> usize {
        let index = (self.head as usize).wrapping_add(place.wrapping_sub(self.base) as usize);
        // Around the end of the ring.
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

    /// Takes a larger ring for one that is full; everything keeps its place.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let (head, before) = (self.head as usize, self.ring.len());
        let more = (before / 8).max(GROWTH);
        self.ring.reserve_exact(more);
        self.ring.resize(before + more, 0);
        // What came before the end of the ring still does.
        if head > 0 {
            self.ring.copy_within(head..before, head + more);
            self.head += more as u32;
        }
    }

    /// Takes as small a ring as one that has just grown, for a list without holes; everything keeps its place.
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

    /// Puts a block first; its place is its frame's to keep.
    #[inline(always)]
    pub(super) fn push_front(&mut self, pfn: Pfn) -> Place {
        self.make_room();
        self.head = if self.head == 0 { self.ring.len() as u32 } else { self.head } - 1;
        self.base = self.base.wrapping_sub(1);
        self.used += 1;
        self.set_slot(self.base, pfn.get());
        Place(self.base)
    }

    /// Puts blocks first, one after the other; the place of the first of them, which comes last. Each has the place before
    /// the one of the block before it.
    pub(super) fn push_front_row(&mut self, row: &[Pfn]) -> Place {
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
        Place(before.wrapping_sub(1))
    }

    /// Puts a block last; its place is its frame's to keep.
    #[inline(always)]
    pub(crate) fn push_back(&mut self, pfn: Pfn) -> Place {
        self.make_room();
        let place = self.end();
        self.used += 1;
        self.set_slot(place, pfn.get());
        Place(place)
    }

    /// Takes the first block out, of a list that has one.
    #[inline(always)]
    fn pop_front(&mut self) {
        self.advance(1);
        // Holes that have come to an end of the list go.
        if self.used > 0
            && let Some(run) = self.slot(self.base).checked_sub(HOLES)
        {
            self.advance(run);
            self.holes -= run;
        }
    }

    /// Lets so many slots go, the first in use.
    #[inline(always)]
    fn advance(&mut self, slots: u32) {
        self.head = self.index(self.base.wrapping_add(slots)) as u32;
        self.base = self.base.wrapping_add(slots);
        self.used -= slots;
    }

    /// Takes the last block out, of a list that has one.
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

    /// Takes a block out. Where it was in the middle it leaves a hole.
    #[inline(always)]
    pub(super) fn remove(&mut self, pfn: Pfn, Place(at): Place) {
        assert!(self.slot(at) == pfn.get(), "{pfn} is not where its frame says");
        if at == self.base {
            self.pop_front();
        } else if at.wrapping_add(1) == self.end() {
            self.pop_back();
        } else {
            self.leave_hole(at);
        }
    }

    /// Takes blocks out that stand one before the other; the place of the first of them, which comes last.
    pub(super) fn remove_row(&mut self, row: &[Pfn], Place(last): Place) {
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

    /// Makes a hole of a slot that is at neither end, and one run of it and the holes beside it.
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

    /// Whether it is time to pack the slots.
    #[inline(always)]
    pub(super) fn is_sparse(&self) -> bool {
        self.holes > self.used / 3 + FEW || self.is_too_large()
    }

    /// Whether the ring has too many slots for so few blocks.
    #[inline(always)]
    fn is_too_large(&self) -> bool {
        self.ring.len() * size_of::<u32>() > MOST_BYTES * (self.len() + FEW as usize)
    }

    /// Closes all holes, and shrinks a ring that is too large. A block that moves is told its new place.
    pub(super) fn pack(&mut self, mut moved: impl FnMut(Pfn, Place)) {
        let slots = self.ring.len();
        let after = |index: usize| if index + 1 == slots { 0 } else { index + 1 };
        let (mut from, mut to) = (self.head as usize, self.head as usize);
        let mut end = self.base;
        for _ in 0..self.used {
            let slot = self.ring[from];
            if slot < HOLES {
                if from != to {
                    self.ring[to] = slot;
                    moved(Pfn::new(slot), Place(end));
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
    pub(super) fn after(&self, Place(place): Place) -> Option<Pfn> {
        Walk { next: place.wrapping_add(1) }.next(self)
    }

    /// Turns the list so that the block at `place` comes first; those before it go to the end in their order. What
    /// moves, whichever is shorter, is told its new place.
    pub(super) fn rotate_to_front(&mut self, Place(place): Place, mut moved: impl FnMut(Pfn, Place)) {
        let before = place.wrapping_sub(self.base);
        let pfn = self.slot(place);
        if before <= self.used / 2 {
            while self.slot(self.base) != pfn {
                let first = Pfn::new(self.slot(self.base));
                self.pop_front();
                moved(first, self.push_back(first));
            }
        } else {
            // The entries from `place` on go to the front, the last of them first.
            while self.slot(self.base) != pfn {
                let last = Pfn::new(self.slot(self.end().wrapping_sub(1)));
                self.pop_back();
                moved(last, self.push_front(last));
            }
        }
    }

    /// Damages a slot, for tests of those who look for damage.
    #[cfg(test)]
    pub(crate) fn overwrite(&mut self, Place(place): Place, slot: u32) {
        self.set_slot(place, slot);
    }

    /// Whether the slots are as they should be: no more than a list of this length may have, a block at either end, holes
    /// counted, and each run of holes as long as both its ends say.
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

/// A walk through a list from one of its ends. The list must not change in between.
pub(crate) struct Walk {
    /// The place looked at next, forwards; one after it, backwards.
    next: u32,
}

impl Walk {
    /// From the first entry on: the first of [`Walk::next`].
    pub(crate) fn from_first(list: &List) -> Walk {
        Walk { next: list.base }
    }

    /// From the last entry back: the first of [`Walk::previous`].
    pub(crate) fn from_last(list: &List) -> Walk {
        Walk { next: list.end() }
    }

    /// The next entry.
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
