//! The contents of a pageblock, for a host that draws memory or counts it.
//!
//! A whole pageblock is one thing: free, one huge page, or reserved. In a split one, the pages in
//! use are counted. No decision of the engine depends on this; it is read by walking all frames of
//! the block.

use super::frames::Frames;
use super::tag::{FrameKind, Tag};
use crate::types::Pfn;

/// The content of a pageblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockContent {
    /// Free as a whole: a huge page at hand.
    Free,
    /// One huge page of a user, which can be migrated.
    UserHugePage,
    /// One huge page of the kernel, which cannot.
    KernelHugePage,
    /// Reserved as a whole, or a hole.
    Reserved,
    /// Split into smaller blocks.
    Split(PagesInUse),
}

/// The pages of a split pageblock that are not free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PagesInUse {
    /// In use by anyone, those on per-CPU lists among them.
    pub used: u32,
    /// Of the used ones, those that cannot be migrated.
    pub unmovable: u32,
    /// Reserved for good; not among the used ones.
    pub reserved: u32,
}

/// Frames that are counted together.
const GROUP: usize = 16;

impl Frames {
    /// The content of pageblock `block`.
    pub fn content(&self, block: usize) -> BlockContent {
        let tag = match self.block_tag(block) {
            // The first half has the tag for both.
            Tag::SECOND_HALF => self.block_tag(block - 1),
            tag => tag,
        };
        if tag == Tag::SPLIT {
            return BlockContent::Split(self.pages_in_use(block));
        }
        match tag.kind() {
            FrameKind::Buddy(_) | FrameKind::Pcp(_) | FrameKind::IsolatedFree => BlockContent::Free,
            FrameKind::Lru | FrameKind::IsolatedLru => BlockContent::UserHugePage,
            FrameKind::Reserved | FrameKind::Tail => BlockContent::Reserved,
            FrameKind::Kernel | FrameKind::MovableOps => BlockContent::KernelHugePage,
        }
    }

    /// Counts a split pageblock's pages.
    fn pages_in_use(&self, block: usize) -> PagesInUse {
        let mut pages = PagesInUse::default();
        // Most frames are single user pages or inside free blocks. Those are counted sixteen at a
        // time, and only a group with anything else in it is counted frame by frame.
        for (g, group) in self.split_block_tags(block).chunks_exact(GROUP).enumerate() {
            let lru = group.iter().map(|t| u8::from(*t == Tag::LRU_PAGE.raw())).sum::<u8>();
            let tails = group.iter().map(|t| u8::from(*t == Tag::TAIL.raw())).sum::<u8>();
            pages.used += u32::from(lru);
            if usize::from(lru + tails) == GROUP {
                continue;
            }
            for i in (0..GROUP).filter(|i| group[*i] != Tag::TAIL.raw() && group[*i] != Tag::LRU_PAGE.raw()) {
                let tag = self.tag(Pfn::of_pageblock(block).plus((g * GROUP + i) as u32));
                let of_block = tag.order().pages();
                match tag.kind() {
                    FrameKind::Kernel | FrameKind::Pcp(_) => {
                        pages.used += of_block;
                        pages.unmovable += of_block;
                    }
                    FrameKind::Reserved => pages.reserved += of_block,
                    FrameKind::Buddy(_) | FrameKind::IsolatedFree | FrameKind::Tail => {}
                    _ => pages.used += of_block,
                }
            }
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{MigrateType, Order};

    #[test]
    fn a_whole_block_is_one_thing_and_a_split_one_has_its_pages_counted() {
        let mut frames = Frames::new(6 * 512);
        let [two_free, user, kernel, split] = [0, 2, 3, 4].map(Pfn::of_pageblock);
        frames.set(two_free, FrameKind::Buddy(MigrateType::Movable), Order::new(10));
        frames.set(user, FrameKind::Lru, Order::new(9));
        frames.set(kernel, FrameKind::Kernel, Order::new(9));
        // Seventeen user pages, a kernel block of eight, a free block of eight, a reserved page.
        (0..17).for_each(|i| frames.set(split.plus(i), FrameKind::Lru, Order::ZERO));
        frames.set(split.plus(24), FrameKind::Kernel, Order::new(3));
        frames.set(split.plus(32), FrameKind::Buddy(MigrateType::Movable), Order::new(3));
        frames.set(split.plus(511), FrameKind::Reserved, Order::ZERO);
        let pages = PagesInUse { used: 25, unmovable: 8, reserved: 1 };
        let all: [BlockContent; 6] = core::array::from_fn(|block| frames.content(block));
        assert_eq!(
            all,
            [
                BlockContent::Free,
                BlockContent::Free,
                BlockContent::UserHugePage,
                BlockContent::KernelHugePage,
                BlockContent::Split(pages),
                BlockContent::Split(PagesInUse::default()),
            ]
        );
    }
}
