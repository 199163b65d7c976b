//! Numbered things that come and go. A free number is the next to be reused.

use kontig_mm::prefetch;
use std::ops::{Index, IndexMut};

#[derive(Clone)]
pub(crate) struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Adds a thing; its number.
    pub(crate) fn add(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = Some(thing);
                number
            }
            None => {
                self.slots.push(Some(thing));
                u32::try_from(self.slots.len() - 1).expect("fewer than 2³² things")
            }
        }
    }

    pub(crate) fn remove(&mut self, number: u32) -> T {
        let thing = self.slots[number as usize].take().expect("what is removed is there");
        self.free.push(number);
        thing
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }

    /// The first thing whose number is at least this, with its number.
    pub(crate) fn next(&self, number: u32) -> Option<(u32, &T)> {
        (number..).zip(self.slots.get(number as usize..)?).find_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }

    /// Mutable access to two different things.
    pub(crate) fn both(&mut self, a: u32, b: u32) -> (&mut T, &mut T) {
        let both = self.slots.get_disjoint_mut([a as usize, b as usize]).expect("two numbers of things");
        both.map(|slot| slot.as_mut().expect("the number is of something that is there")).into()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    /// Prefetches a thing, if the number has a slot.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: u32) {
        const LINE: usize = 64;
        if let Some(slot) = self.slots.get(number as usize) {
            let first = std::ptr::from_ref(slot).cast::<u8>();
            (0..size_of::<Option<T>>()).step_by(LINE).for_each(|at| prefetch(first.wrapping_add(at)));
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.slots.get(number as usize)?.as_ref()
    }
}

impl<T> Index<u32> for Slots<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, number: u32) -> &T {
        self.slots[number as usize].as_ref().expect("the number is of something that is there")
    }
}

impl<T> IndexMut<u32> for Slots<T> {
    #[inline(always)]
    fn index_mut(&mut self, number: u32) -> &mut T {
        self.slots[number as usize].as_mut().expect("the number is of something that is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_out_again_when_its_thing_is_gone() {
        let mut slots = Slots::default();
        assert_eq!(["a", "b", "c"].map(|thing| slots.add(thing)), [0, 1, 2]);
        assert_eq!((slots.remove(1), slots.get(1), slots.get(7)), ("b", None, None));
        assert_eq!((slots.add("d"), slots[1]), (1, "d"));
        assert_eq!(slots.iter().copied().collect::<String>(), "adc");
        slots.remove(0);
        assert_eq!(
            (slots.next(0), slots.next(2), slots.next(3), slots.next(9)),
            (Some((1, &"d")), Some((2, &"c")), None, None)
        );
        assert_eq!(slots.both(2, 1), (&mut "c", &mut "d"));
    }
}
