//! What an allocated block's owner tells the engine of it: how it moves, and whose it is.

use crate::state::{FrameKind, Memory, Tag};
use crate::types::{Order, Pfn};

impl Memory {
    /// Makes an allocated order-0 page movable through operations of its owner, not on the LRU.
    pub fn set_movable_ops(&mut self, pfn: Pfn) {
        debug_assert!(self.frames.tag(pfn) == Tag::new(FrameKind::Kernel, Order::ZERO));
        self.frames.set(pfn, FrameKind::MovableOps, Order::ZERO);
    }

    /// Keeps a number for the owner with an allocated block: [`crate::state::Frames::set_owner`].
    #[inline(always)]
    pub fn set_owner(&mut self, pfn: Pfn, order: Order, owner: u32) {
        self.frames.set_owner(pfn, order, owner);
    }
}
