//! Builder of a trace under memory pressure.

use crate::trace::lru::{Asks, FilePage, LruOp, ProcessPage};
use crate::trace::prng::Random;
use crate::trace::{BlockId, Request};
use kontig_mm::Order;

/// A trace of a fixed length, with one state recorded halfway.
pub struct Script {
    pub random: Random,
    ops: Vec<LruOp>,
    limit: usize,
    next_block: u32,
}

impl Script {
    /// An empty trace that will have `limit` operations.
    pub fn new(seed: u64, limit: usize) -> Script {
        Script { random: Random::new(seed), ops: Vec::with_capacity(limit), limit, next_block: 0 }
    }

    pub fn finish(self) -> Vec<LruOp> {
        self.ops
    }

    /// Whether it is complete; further operations are dropped.
    pub fn is_full(&self) -> bool {
        self.ops.len() >= self.limit
    }

    /// Whether this share of the operations has been written.
    pub fn is_at(&self, percent: usize) -> bool {
        self.ops.len() >= self.limit * percent / 100
    }

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

    /// A number below `n`, small ones more often, since some pages of a file are hotter than
    /// others.
    pub fn skewed(&mut self, n: u32) -> u32 {
        let limit = 1 + self.below(n);
        self.below(limit)
    }

    pub fn read(&mut self, file: u8, index: u32, request: Request) {
        self.read_folio(file, index, 0, request.into());
    }

    /// Reads a page, in a folio of this order if it is not cached.
    pub fn read_folio(&mut self, file: u8, index: u32, order: u8, asks: Asks) {
        self.write(LruOp::Read { page: FilePage { file, index }, order: Order::new(order), asks });
    }

    /// Adds a page as readahead does.
    pub fn add(&mut self, file: u8, index: u32, request: Request) {
        self.write(LruOp::Add { page: FilePage { file, index }, order: Order::ZERO, asks: request.into() });
    }

    /// Marks a page accessed, if it is cached.
    pub fn touch(&mut self, file: u8, index: u32) {
        self.write(LruOp::Touch(FilePage { file, index }));
    }

    /// Removes a page from its file.
    pub fn truncate(&mut self, file: u8, index: u32) {
        self.write(LruOp::Truncate { page: FilePage { file, index }, order: Order::ZERO });
    }

    /// Has the process read or write a page.
    pub fn access(&mut self, page: u32, writes: bool) {
        let page = ProcessPage(page);
        self.write(if writes { LruOp::Store(page) } else { LruOp::Load(page) });
    }

    /// Requests a block, which may fail.
    pub fn alloc(&mut self, order: u8, asks: Asks) -> BlockId {
        let id = BlockId(self.next_block);
        self.next_block += 1;
        self.write(LruOp::Alloc { id, order: Order::new(order), asks });
        id
    }
}
