//! A trace being written: hands out numbers, remembers what is held, and stops at its length.
//!
//! The writer of a trace does not know which requests will fail. What is asked for counts as held
//! until it is freed; the free of a block that was never had is skipped by kernel and engine alike.

use super::prng::Random;
use super::{BlockId, Op, Request};
use kontig_mm::Order;

/// Something asked for and not freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    pub id: BlockId,
    pub order: Order,
}

/// A trace being written.
pub struct Script {
    /// Where its randomness comes from.
    pub random: Random,
    ops: Vec<Op>,
    held: Vec<Asked>,
    pages_held: u64,
    free_ids: Vec<BlockId>,
    next_id: u32,
    limit: usize,
}

impl Script {
    /// An empty one that will have `limit` operations.
    pub fn new(seed: u64, limit: usize) -> Script {
        let (random, ops) = (Random::new(seed), Vec::with_capacity(limit));
        Script { random, ops, held: Vec::new(), pages_held: 0, free_ids: Vec::new(), next_id: 0, limit }
    }

    /// Whether all operations have been written; whatever follows is dropped.
    pub fn is_full(&self) -> bool {
        self.ops.len() >= self.limit
    }

    /// Pages among those held.
    pub fn pages_held(&self) -> u64 {
        self.pages_held
    }

    /// Blocks among those held.
    pub fn blocks_held(&self) -> usize {
        self.held.len()
    }

    /// Asks for a block, and keeps it among those held.
    pub fn alloc(&mut self, order: u8, request: Request) {
        let asked = self.ask(order, request);
        self.keep(asked);
    }

    /// Puts a block among those held.
    pub fn keep(&mut self, asked: Asked) {
        self.pages_held += u64::from(asked.order.pages());
        self.held.push(asked);
    }

    /// Asks for a block whose keeping is the caller's business.
    pub fn ask(&mut self, order: u8, request: Request) -> Asked {
        let order = Order::new(order);
        let id = self.free_ids.pop().unwrap_or_else(|| {
            self.next_id += 1;
            BlockId(self.next_id - 1)
        });
        self.write(Op::Alloc { order, request, id });
        Asked { id, order }
    }

    /// Frees what was asked for with [`Script::ask`].
    pub fn give_back(&mut self, asked: Asked) {
        self.write(Op::Free { id: asked.id });
        self.free_ids.push(asked.id);
    }

    /// Frees one of the blocks held, at random, if there is any.
    pub fn free_any(&mut self) {
        if !self.held.is_empty() {
            let i = self.random.below(self.held.len());
            let asked = self.held.swap_remove(i);
            self.pages_held -= u64::from(asked.order.pages());
            self.give_back(asked);
        }
    }

    /// Hands over everything held.
    pub fn take_held(&mut self) -> Vec<Asked> {
        self.pages_held = 0;
        std::mem::take(&mut self.held)
    }

    /// Frees these, in their order.
    pub fn give_back_all(&mut self, asked: Vec<Asked>) {
        asked.into_iter().for_each(|a| self.give_back(a));
    }

    fn write(&mut self, op: Op) {
        if self.ops.len() < self.limit {
            self.ops.push(op);
        }
    }

    pub(super) fn finish(self) -> Vec<Op> {
        self.ops
    }
}
