//! The state of a frame in one byte: its kind, and the order of the block it heads.

use crate::types::{MAX_ORDER, MigrateType, Order};

/// The kind of a head frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// No head: inside a larger block, or a hole.
    Tail,
    /// On a per-CPU list, with the type sampled when it got there.
    Pcp(MigrateType),
    /// Allocated and not movable: kernel memory.
    Kernel,
    /// Allocated user memory on the LRU: a migration source.
    Lru,
    /// Allocated and migratable through its driver's operations, not on the LRU.
    MovableOps,
    /// On the free list of this type.
    Buddy(MigrateType),
    /// Taken off the LRU by compaction, on its way to being migrated.
    IsolatedLru,
    /// Taken from the free lists by compaction, a target for migration.
    IsolatedFree,
    /// Belongs to the firmware or the kernel image; never allocated, never freed.
    Reserved,
}

/// A frame's kind in the high four bits and its order in the low four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Tag(pub(super) u8);

const KIND_PCP: u8 = 1;
const KIND_KERNEL: u8 = 5;
const KIND_LRU: u8 = 6;
const KIND_MOVABLE_OPS: u8 = 7;
const KIND_BUDDY: u8 = 8;
const KIND_ISOLATED_LRU: u8 = 12;
const KIND_ISOLATED_FREE: u8 = 13;
const KIND_RESERVED: u8 = 14;

impl Tag {
    /// Inside a larger block.
    pub const TAIL: Tag = Tag(0);
    /// As a block tag: the pageblock is not whole, and its frames have their own tags.
    pub const SPLIT: Tag = Tag(0);
    /// As a block tag: the second half of an order-10 block.
    pub const SECOND_HALF: Tag = Tag(0x0f);
    /// One user page on the LRU, the commonest tag of all.
    pub const LRU_PAGE: Tag = Tag(KIND_LRU << 4);

    /// One kernel page, or a user page that is not on the LRU yet.
    pub(crate) const KERNEL_PAGE: Tag = Tag(KIND_KERNEL << 4);

    /// The tag of a head of `kind` and `order`.
    #[inline(always)]
    pub const fn new(kind: FrameKind, order: Order) -> Tag {
        let k = match kind {
            FrameKind::Tail => 0,
            FrameKind::Pcp(t) => KIND_PCP + t as u8,
            FrameKind::Kernel => KIND_KERNEL,
            FrameKind::Lru => KIND_LRU,
            FrameKind::MovableOps => KIND_MOVABLE_OPS,
            FrameKind::Buddy(t) => KIND_BUDDY + t as u8,
            FrameKind::IsolatedLru => KIND_ISOLATED_LRU,
            FrameKind::IsolatedFree => KIND_ISOLATED_FREE,
            FrameKind::Reserved => KIND_RESERVED,
        };
        Tag(k << 4 | order.get())
    }

    /// The kind of the head frame.
    #[inline]
    pub const fn kind(self) -> FrameKind {
        match self.0 >> 4 {
            k @ 1..=4 => FrameKind::Pcp(MigrateType::from_index((k - KIND_PCP) as usize)),
            KIND_KERNEL => FrameKind::Kernel,
            KIND_LRU => FrameKind::Lru,
            KIND_MOVABLE_OPS => FrameKind::MovableOps,
            k @ 8..=11 => FrameKind::Buddy(MigrateType::from_index((k - KIND_BUDDY) as usize)),
            KIND_ISOLATED_LRU => FrameKind::IsolatedLru,
            KIND_ISOLATED_FREE => FrameKind::IsolatedFree,
            KIND_RESERVED => FrameKind::Reserved,
            _ => FrameKind::Tail,
        }
    }
    /// The order of the block this frame heads.
    #[inline(always)]
    pub const fn order(self) -> Order {
        let o = self.0 & 0x0f;
        if o > MAX_ORDER.get() { Order::ZERO } else { Order::new(o) }
    }
    /// Whether this is the head of a block on a free list.
    #[inline(always)]
    pub const fn is_buddy(self) -> bool {
        self.0 & 0xc0 == 0x80
    }
    /// Whether this is the head of a free block of exactly `order`.
    #[inline(always)]
    pub const fn is_buddy_of(self, order: Order) -> bool {
        self.0 & 0xcf == 0x80 | order.get()
    }
    /// The free list's type, for a tag that [`Tag::is_buddy`].
    #[inline(always)]
    pub const fn buddy_type(self) -> MigrateType {
        MigrateType::from_index((self.0 >> 4 & 3) as usize)
    }
    /// Whether this is allocated: held by someone outside the allocator.
    #[inline(always)]
    pub const fn is_allocated(self) -> bool {
        matches!(self.0 >> 4, KIND_KERNEL | KIND_LRU | KIND_MOVABLE_OPS)
    }
    /// Whether this is user memory on the LRU.
    #[inline(always)]
    pub const fn is_lru(self) -> bool {
        self.0 >> 4 == KIND_LRU
    }
    /// Whether this is the head of an allocated block of exactly `order`.
    #[inline(always)]
    pub const fn is_allocated_of(self, order: Order) -> bool {
        self.is_allocated() && self.0 & 0x0f == order.get()
    }
    /// The pages of the block this frame heads that count as movable when a pageblock changes type:
    /// all of a folio on the LRU, because the kernel looks up the head of a tail page; of a block
    /// with migration operations only the head, which alone has them.
    #[inline(always)]
    pub const fn movable_pages(self) -> u32 {
        match self.0 >> 4 {
            KIND_LRU => self.order().pages(),
            KIND_MOVABLE_OPS => 1,
            _ => 0,
        }
    }
    /// Whether a block of at least a pageblock is allocated as one: a huge page.
    #[inline(always)]
    pub const fn is_huge(self) -> bool {
        self.is_allocated() && self.order().is_whole_pageblock()
    }
    /// The tag as the stored byte.
    #[inline(always)]
    pub(crate) const fn raw(self) -> u8 {
        self.0
    }
    /// The tag of a stored byte.
    #[inline(always)]
    pub(crate) const fn from_raw(raw: u8) -> Tag {
        Tag(raw)
    }
}
