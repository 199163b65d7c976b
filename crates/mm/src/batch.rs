//! Requests and frees in batches: what is done, in which order and with which result is as one by one.
//!
//! A host that knows what comes next says so at once, and the engine fetches the frames it will touch while it works
//! on those before them.

use crate::allocate::NoPage;
use crate::pcp::FRAME_AHEAD;
use crate::request::Request;
use crate::state::Memory;
use crate::types::{CpuId, Order, Pfn};

impl Memory {
    /// The same request until `blocks` are full or one finds no page; how many were found. Each is a
    /// [`Memory::alloc`].
    pub fn alloc_batch(&mut self, r: Request, blocks: &mut [Pfn]) -> usize {
        for (i, block) in blocks.iter_mut().enumerate() {
            match self.alloc(r) {
                Ok(pfn) => *block = pfn,
                Err(NoPage) => return i,
            }
        }
        blocks.len()
    }

    /// Asks for what freeing a single page will touch: a host that knows what comes next says so some pages ahead.
    #[inline(always)]
    pub fn prefetch(&self, pfn: Pfn) {
        self.frames.prefetch_frame(pfn.get());
        if self.lru.is_ordered() {
            self.lru.prefetch(pfn.get());
        }
    }

    /// Frees blocks of one order, first to last. Each is a [`Memory::free`].
    ///
    /// # Panics
    /// If one of them is not allocated with exactly this order.
    pub fn free_batch(&mut self, cpu: CpuId, blocks: &[Pfn], order: Order) {
        for (i, &pfn) in blocks.iter().enumerate() {
            if let Some(ahead) = blocks.get(i + FRAME_AHEAD) {
                self.frames.prefetch_frame(ahead.get());
            }
            self.free(cpu, pfn, order);
        }
    }
}
