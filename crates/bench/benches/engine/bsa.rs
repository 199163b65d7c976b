//! The peer: `buddy_system_allocator`, a tree of free blocks for each order,
//! with the engine's largest order.

use buddy_system_allocator::FrameAllocator;
use kontig_bench::{Contender, Subject};

/// The peer as a contender, with blocks of up to 1024 frames.
pub struct Bsa(FrameAllocator<11>);

impl Bsa {
    pub const NAME: &'static str = "BSA";

    /// All of `frames` frames free.
    pub fn new(frames: u32) -> Bsa {
        let mut all = FrameAllocator::new();
        all.add_frame(0, frames as usize);
        Bsa(all)
    }

    pub fn contender() -> Contender<Bsa> {
        Contender::new(Bsa::NAME, Bsa::new)
    }
}

impl Subject for Bsa {
    #[inline(always)]
    fn alloc(&mut self, order: u8) -> Option<u32> {
        self.0.alloc(1 << order).map(|pfn| pfn as u32)
    }

    #[inline(always)]
    fn free(&mut self, pfn: u32, order: u8) {
        self.0.dealloc(pfn as usize, 1 << order);
    }
}
