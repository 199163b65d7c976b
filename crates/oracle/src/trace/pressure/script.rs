//! A trace of this kind being written.

use crate::trace::lru::{Asks, FilePage, LruOp, ProcessPage};
use crate::trace::prng::Random;
use crate::trace::{BlockId, Request};
use kontig_mm::Order;

/// A trace that stops at its length, with one state recorded halfway.
pub struct Script {
    /// Where its randomness comes from.
    pub random: Random,
    ops: Vec<LruOp>,
    limit: usize,
    next_block: u32,
}

impl Script {
    /// An empty one that will have `limit` operations.
    pub fn new(seed: u64, limit: usize) -> Script {
        Script { random: Random::new(seed), ops: Vec::with_capacity(limit), limit, next_block: 0 }
    }

    /// The operations.
    pub fn finish(self) -> Vec<LruOp> {
        self.ops
    }

    /// Whether all have been written; whatever follows is dropped.
    pub fn is_full(&self) -> bool {
        self.ops.len() >= self.limit
    }

    /// Whether so many percent have been written.
    pub fn is_at(&self, percent: usize) -> bool {
        self.ops.len() >= self.limit * percent / 100
    }

    /// Writes an operation.
    pub fn write(&mut self, op: LruOp) {
        if self.ops.len() == self.limit / 2 && !self.is_full() {
            self.ops.push(LruOp::Dump);
        }
        if !self.is_full() {
            self.ops.push(op);
        }
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        self.random.below(n as usize) as u32
    }

    /// A number below `n`; low ones more often, as some pages of a file are wanted more than others.
    pub fn skewed(&mut self, n: u32) -> u32 {
        let limit = 1 + self.below(n);
        self.below(limit)
    }

    /// A page is read.
    pub fn read(&mut self, file: u8, index: u32, request: Request) {
        self.read_folio(file, index, 0, request.into());
    }

    /// A page is read, in a folio of this size if it is not there.
    pub fn read_folio(&mut self, file: u8, index: u32, order: u8, asks: Asks) {
        self.write(LruOp::Read { page: FilePage { file, index }, order: Order::new(order), asks });
    }

    /// A page is added, as readahead does.
    pub fn add(&mut self, file: u8, index: u32, request: Request) {
        self.write(LruOp::Add { page: FilePage { file, index }, order: Order::ZERO, asks: request.into() });
    }

    /// A page is marked accessed, if it is there.
    pub fn touch(&mut self, file: u8, index: u32) {
        self.write(LruOp::Touch(FilePage { file, index }));
    }

    /// A page is removed from its file.
    pub fn truncate(&mut self, file: u8, index: u32) {
        self.write(LruOp::Truncate { page: FilePage { file, index }, order: Order::ZERO });
    }

    /// The process reads or writes a page.
    pub fn access(&mut self, page: u32, writes: bool) {
        let page = ProcessPage(page);
        self.write(if writes { LruOp::Store(page) } else { LruOp::Load(page) });
    }

    /// Asks for a block, whether it is got or not.
    pub fn alloc(&mut self, order: u8, asks: Asks) -> BlockId {
        let id = BlockId(self.next_block);
        self.next_block += 1;
        self.write(LruOp::Alloc { id, order: Order::new(order), asks });
        id
    }
}
