//! A list of blocks of one order, threaded through the frames' links ([`super::frames`]).

use crate::types::Pfn;

/// End of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// A doubly linked list of blocks of one order, by pfn.
#[derive(Clone, Copy, Debug)]
pub struct List {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl Default for List {
    fn default() -> Self {
        List::EMPTY
    }
}

impl List {
    /// A list without entries.
    pub const EMPTY: List = List { head: NIL, tail: NIL };

    /// Whether there is no entry.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.head == NIL
    }
    /// The first entry.
    #[inline(always)]
    pub const fn first(&self) -> Option<Pfn> {
        if self.head == NIL { None } else { Some(Pfn::new(self.head)) }
    }
    /// The last entry.
    #[inline(always)]
    pub const fn last(&self) -> Option<Pfn> {
        if self.tail == NIL { None } else { Some(Pfn::new(self.tail)) }
    }
}
