//! Objects: the owners of pages, and the numbers by which a frame names its object and page.
//!
//! The engine keeps one number with a user page and never interprets it. Its meaning is defined
//! here alone. An object is an anonymous family (a mapping and all copies of it that forks have
//! made) or the contents of a file. It has a range of numbers, in whole page tables, one for each
//! page; a huge page has the number of its first page. The range of a removed object is reused; the
//! smallest one that is large enough is taken first.
//!
//! An object lists the mappings that may map its pages, like the kernel's `anon_vma` and `i_mmap`:
//! a search for all page table entries of a frame visits each of them.

use crate::base::slots::Slots;
use std::collections::{BTreeMap, BTreeSet};

/// Pages mapped by a page table, and pages of a huge page.
pub(crate) const TABLE_PAGES: u32 = 512;

/// The number of an object. It is reused once the object is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ObjectId(u32);

/// An object's range of numbers, and its mappings.
#[derive(Clone)]
struct Object {
    first: u32,
    tables: u32,
    mappings: Vec<u32>,
}

#[derive(Clone, Default)]
pub(crate) struct Objects {
    objects: Slots<Object>,
    ranges: Ranges,
    /// For each range of one page table: the object that owns it, or owned it last, and the first
    /// number of that object.
    owners: Vec<Part>,
}

#[derive(Clone, Copy)]
struct Part {
    object: ObjectId,
    first: u32,
}

impl Objects {
    /// Adds an object of this many pages, without mappings; `None` if page numbers run out.
    pub(crate) fn add(&mut self, pages: u32) -> Option<ObjectId> {
        let tables = pages.div_ceil(TABLE_PAGES);
        let at = self.ranges.take(tables)?;
        let first = at * TABLE_PAGES;
        let id = ObjectId(self.objects.add(Object { first, tables, mappings: Vec::new() }));
        let end = (at + tables) as usize;
        let part = Part { object: id, first };
        if self.owners.len() < end {
            self.owners.resize(end, part);
        }
        self.owners[at as usize..end].fill(part);
        Some(id)
    }

    /// Removes an object without pages.
    pub(crate) fn remove(&mut self, id: ObjectId) {
        let object = self.objects.remove(id.0);
        debug_assert!(object.mappings.is_empty(), "a mapping of an object keeps it");
        self.ranges.give_back(object.first / TABLE_PAGES, object.tables);
    }

    /// The number of an object's first page.
    #[inline(always)]
    pub(crate) fn first(&self, id: ObjectId) -> u32 {
        self.objects[id.0].first
    }

    /// The object and the page in it that have this number.
    #[inline(always)]
    pub(crate) fn at(&self, number: u32) -> (ObjectId, u32) {
        let part = self.owners[(number / TABLE_PAGES) as usize];
        (part.object, number - part.first)
    }

    /// The mappings that may map pages of the object.
    #[inline(always)]
    pub(crate) fn mappings(&self, id: ObjectId) -> &[u32] {
        &self.objects[id.0].mappings
    }

    /// Adds a mapping to the object; its place in the list.
    pub(crate) fn map(&mut self, id: ObjectId, mapping: u32) -> u32 {
        let mappings = &mut self.objects[id.0].mappings;
        mappings.push(mapping);
        mappings.len() as u32 - 1
    }

    /// Removes the mapping at a place in the list. Returns the mapping that takes the place.
    pub(crate) fn unmap(&mut self, id: ObjectId, place: u32) -> Option<u32> {
        let mappings = &mut self.objects[id.0].mappings;
        mappings.swap_remove(place as usize);
        mappings.get(place as usize).copied()
    }
}

/// Free ranges of numbers, by page table: 2³² pages, 16 TiB, for everything in use at a time.
#[derive(Clone, Default)]
struct Ranges {
    /// Start of the numbers never used.
    end: u32,
    /// The length of each free range before that.
    free: BTreeMap<u32, u32>,
    /// The same, by length.
    by_length: BTreeSet<(u32, u32)>,
}

impl Ranges {
    /// One below the possible maximum, so that no page has the greatest number.
    const MOST: u32 = u32::MAX / TABLE_PAGES;

    /// The smallest free range that is large enough; the lowest of equals.
    fn take(&mut self, tables: u32) -> Option<u32> {
        if tables == 0 {
            return Some(0);
        }
        if let Some(&(length, at)) = self.by_length.range((tables, 0)..).next() {
            self.set(at, length, 0);
            self.set(at + tables, 0, length - tables);
            return Some(at);
        }
        let at = self.end;
        self.end = at.checked_add(tables).filter(|end| *end <= Ranges::MOST)?;
        Some(at)
    }

    fn give_back(&mut self, at: u32, tables: u32) {
        if tables == 0 {
            return;
        }
        let (mut at, mut tables) = (at, tables);
        if let Some((&before, &length)) = self.free.range(..at).next_back()
            && before + length == at
        {
            self.set(before, length, 0);
            (at, tables) = (before, length + tables);
        }
        if let Some(&length) = self.free.get(&(at + tables)) {
            self.set(at + tables, length, 0);
            tables += length;
        }
        self.set(at, 0, tables);
    }

    /// Changes the length of the free range at `at`; 0 is none.
    fn set(&mut self, at: u32, from: u32, to: u32) {
        if from > 0 {
            self.free.remove(&at);
            self.by_length.remove(&(from, at));
        }
        if to > 0 {
            self.free.insert(at, to);
            self.by_length.insert((to, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_page_of_every_object_has_a_number_of_its_own_and_is_found_by_it() {
        let mut objects = Objects::default();
        let pages = [1, 700, 0, 512, 513];
        let ids = pages.map(|n| objects.add(n).expect("a few pages"));
        let mut seen = BTreeSet::new();
        for (n, id) in pages.into_iter().zip(ids) {
            for page in 0..n {
                let number = objects.first(id) + page;
                assert_eq!(objects.at(number), (id, page));
                assert!(seen.insert(number));
            }
        }
    }

    #[test]
    fn more_than_16_tib_cannot_be_mapped_at_a_time() {
        let mut objects = Objects::default();
        let first = objects.add(1 << 30).expect("4 TiB");
        for _ in 0..2 {
            objects.add(1 << 30).expect("12 TiB");
        }
        assert_eq!(objects.add(1 << 30), None);
        assert!(objects.add(1 << 29).is_some(), "what was refused takes no room");
        objects.remove(first);
        assert!(objects.add(1 << 30).is_some(), "what is given back is there again");
    }

    #[test]
    fn an_object_lists_the_mappings_that_may_map_it() {
        let mut objects = Objects::default();
        let id = objects.add(1).expect("a page");
        assert_eq!([7, 3, 9].map(|mapping| objects.map(id, mapping)), [0, 1, 2]);
        assert_eq!(objects.unmap(id, 0), Some(9), "the last has its place now");
        assert_eq!(objects.mappings(id), [9, 3]);
        assert_eq!(objects.unmap(id, 1), None);
        assert_eq!(objects.mappings(id), [9]);
    }

    fn acts() -> impl Strategy<Value = Vec<(u32, u32)>> {
        proptest::collection::vec((0..4u32, 0..3000u32), 1..80)
    }

    proptest! {
        #[test]
        fn no_two_objects_share_a_number_and_what_is_free_lies_together(acts in acts()) {
            let mut objects = Objects::default();
            let mut there: Vec<(ObjectId, u32)> = Vec::new();
            for (act, n) in acts {
                if act == 0 && !there.is_empty() {
                    let (id, _) = there.remove(n as usize % there.len());
                    objects.remove(id);
                } else {
                    there.push((objects.add(n).expect("16 TiB are enough"), n));
                }
                let mut taken = BTreeMap::new();
                for (id, pages) in &there {
                    for number in objects.first(*id)..objects.first(*id) + pages {
                        prop_assert_eq!(objects.at(number), (*id, number - objects.first(*id)));
                    }
                    if *pages > 0 {
                        taken.insert(objects.first(*id) / TABLE_PAGES, pages.div_ceil(TABLE_PAGES));
                    }
                }
                let mut free = BTreeMap::new();
                let mut at = 0;
                for (first, tables) in taken.into_iter().chain([(objects.ranges.end, 0)]) {
                    prop_assert!(at <= first, "ranges overlap");
                    if at < first {
                        free.insert(at, first - at);
                    }
                    at = first + tables;
                }
                prop_assert_eq!(&objects.ranges.free, &free);
                let by_length: BTreeSet<(u32, u32)> = free.into_iter().map(|(at, length)| (length, at)).collect();
                prop_assert_eq!(&objects.ranges.by_length, &by_length);
            }
        }
    }
}
