//! The aligned blocks of one order, each with its pages by what can be done with them.

use crate::frame::State;
use crate::snapshot::{FoundZone, Snapshot, aligned};

/// A block of memory, in pages. Their sum is the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    pub start: usize,
    /// On free lists, or free on demand.
    pub listed: u64,
    /// Free, but on a CPU's list.
    pub cached: u64,
    /// Users' pages, which can be moved.
    pub movable: u64,
    /// The kernel's pages, which stay, but could have been placed elsewhere.
    pub staying: u64,
    /// No memory, memory that the allocator was not given, taken at boot or out of use: nothing
    /// could have been placed otherwise.
    pub fixed: u64,
}

/// The use of a block for somebody who wants it free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// It is at hand.
    Free,
    /// It holds only pages that can be moved, or free ones.
    Emptiable,
    /// A page of the kernel's keeps it from becoming free.
    Poisoned,
    /// Part of it is no memory of the allocator's: it never becomes free.
    Never,
}

impl Block {
    pub fn class(&self) -> Class {
        match self {
            Block { fixed: 1.., .. } => Class::Never,
            Block { staying: 1.., .. } => Class::Poisoned,
            Block { movable: 0, cached: 0, .. } => Class::Free,
            _ => Class::Emptiable,
        }
    }

    /// Free pages of it.
    pub fn free(&self) -> u64 {
        self.listed + self.cached
    }

    fn add(&mut self, state: State, pages: u64) {
        let of = match state {
            State::Free | State::Deferred => &mut self.listed,
            State::Cached => &mut self.cached,
            State::Hole | State::NotManaged | State::Reserved | State::Offline => &mut self.fixed,
            state if state.is_movable() => &mut self.movable,
            _ => &mut self.staying,
        };
        *of += pages;
    }
}

/// The blocks of a zone, without those that have no memory of the allocator's at all.
pub struct ZoneBlocks {
    pub node: u32,
    pub blocks: Vec<Block>,
    /// Free pages of the zone that lie in no whole block.
    pub free_outside: u64,
}

impl ZoneBlocks {
    /// Those of a zone, by address.
    pub fn of(snapshot: &Snapshot, zone: &FoundZone, order: u32) -> ZoneBlocks {
        let pages = 1u64 << order;
        let block = |frames: std::ops::Range<usize>| {
            let mut block = Block { start: frames.start, ..Block::default() };
            for (state, pages) in State::ALL.iter().zip(snapshot.census(frames)) {
                block.add(*state, pages);
            }
            block
        };
        let blocks: Vec<Block> = aligned(zone.frames(), order).map(block).filter(|block| block.fixed < pages).collect();
        let census = snapshot.census(zone.frames());
        let free: u64 = State::ALL.iter().filter(|s| s.is_free()).map(|s| census[*s as usize]).sum();
        let inside: u64 = blocks.iter().map(Block::free).sum();
        ZoneBlocks { node: zone.node, blocks, free_outside: free - inside }
    }
}
