//! An array indexed by the id of its elements: `zones[zone]`, `nodes[node]`, `pcps[cpu]`.

use crate::types::{CpuId, LruvecId, NodeId, ZoneId};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut, Index, IndexMut};

/// An id that counts from 0.
pub trait Id: Copy {
    /// The id of the element at this index.
    fn at(place: usize) -> Self;
    /// The index of this id.
    fn place(self) -> usize;
}

macro_rules! ids {
    ($($id:ty),*) => { $(
        impl Id for $id {
            #[inline(always)]
            fn at(place: usize) -> Self {
                <$id>::new(place)
            }
            #[inline(always)]
            fn place(self) -> usize {
                self.index()
            }
        }
    )* };
}
ids!(ZoneId, NodeId, LruvecId, CpuId);

/// An array of `T`, indexed by `I`.
#[derive(Clone, Debug)]
pub struct Table<I, T> {
    items: Vec<T>,
    id: PhantomData<I>,
}

impl<I: Id, T> Table<I, T> {
    /// All ids, in order. The table may change meanwhile.
    #[inline(always)]
    pub fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::at)
    }
}

impl<I, T> FromIterator<T> for Table<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        Table { items: items.into_iter().collect(), id: PhantomData }
    }
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, id: I) -> &T {
        &self.items[id.place()]
    }
}

impl<I: Id, T> IndexMut<I> for Table<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.place()]
    }
}

impl<I, T> Deref for Table<I, T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<I, T> DerefMut for Table<I, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<'a, I, T> IntoIterator for &'a Table<I, T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut Table<I, T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter_mut()
    }
}
