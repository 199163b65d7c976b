//! The model's book of blocks: their holders, and the owner of all movable pages.
//!
//! Every block has a number, which is kept with its frames. Migration must carry the number along
//! and tell the book the new place of the page; nothing else may change it.

use kontig_mm::state::FrameKind;
use kontig_mm::{Memory, Order, Pfn};
use kontig_mm::{MigrateOutcome, Owner};
use std::collections::BTreeMap;

/// The chances of the owners' answers, in 1/256.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mood {
    pub pinned: u8,
    pub busy: u8,
    pub failed: u8,
    /// Seed of the answers.
    pub seed: u32,
}

/// A block somebody holds.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub pfn: Pfn,
    pub order: Order,
    pub kind: FrameKind,
}

/// Every block held, by its number.
pub struct Book {
    blocks: BTreeMap<u32, Block>,
    /// The number of the block of each frame; 0 if nobody holds it.
    of_frame: Vec<u32>,
    next_id: u32,
    pub mood: Mood,
    dice: u64,
}

impl Book {
    pub fn new(frames: usize) -> Book {
        Book { blocks: BTreeMap::new(), of_frame: vec![0; frames], next_id: 1, mood: Mood::default(), dice: 0 }
    }

    /// Adds an allocated block; panics if any of its frames is held already.
    pub fn add(&mut self, pfn: Pfn, order: Order) -> u32 {
        let id = self.next_id;
        // A block that is split gives its pages the numbers from its own on.
        self.next_id += order.pages();
        for f in &mut self.of_frame[pfn.index()..pfn.plus(order.pages()).index()] {
            assert!(*f == 0, "{pfn} {order:?} was handed out, but block {f} is there: {:?}", self.blocks[f]);
            *f = id;
        }
        self.blocks.insert(id, Block { pfn, order, kind: FrameKind::Kernel });
        id
    }

    pub fn remove(&mut self, id: u32) {
        let b = self.blocks.remove(&id).expect("only blocks in the book are freed");
        self.of_frame[b.pfn.index()..b.pfn.plus(b.order.pages()).index()].fill(0);
    }

    pub fn split(&mut self, id: u32) {
        let b = self.blocks.remove(&id).expect("only blocks in the book are split");
        for i in 0..b.order.pages() {
            let pfn = b.pfn.plus(i);
            self.of_frame[pfn.index()] = id + i;
            self.blocks.insert(id + i, Block { pfn, order: Order::ZERO, kind: b.kind });
        }
    }

    pub fn get(&self, id: u32) -> Block {
        self.blocks[&id]
    }
    pub fn set_kind(&mut self, id: u32, kind: FrameKind) {
        self.blocks.get_mut(&id).expect("the block is held").kind = kind;
    }
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.keys().copied()
    }
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Some block's number; none if nothing is held.
    pub fn nth(&self, which: usize) -> Option<u32> {
        // By number rather than by place: finding a place would walk the whole map.
        let from = (which as u32) % self.next_id;
        self.blocks.range(from..).next().or_else(|| self.blocks.iter().next()).map(|(id, _)| *id)
    }

    /// Pages held in `[from, to)`.
    pub fn pages_in(&self, from: Pfn, to: Pfn) -> u64 {
        self.of_frame[from.index()..to.index()].iter().filter(|f| **f != 0).count() as u64
    }

    /// Whether the machine's frames agree with the book on every block.
    pub fn verify(&self, m: &Memory) -> Result<(), String> {
        for (&id, b) in &self.blocks {
            let tag = m.frames().tag(b.pfn);
            if tag.kind() != b.kind || tag.order() != b.order {
                return Err(format!("block {id} is {b:?}, tagged {:?} {:?}", tag.kind(), tag.order()));
            }
            let owner = m.frames().owner(b.pfn, b.order);
            if owner != id {
                return Err(format!("block {id} at {} is kept as {owner}", b.pfn));
            }
        }
        Ok(())
    }

    /// The next of a fixed sequence of numbers below 256.
    fn roll(&mut self) -> u8 {
        self.dice =
            (self.dice ^ u64::from(self.mood.seed)).wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
        (self.dice >> 56) as u8
    }
}

impl Owner for Book {
    fn may_isolate(&mut self, pfn: Pfn) -> bool {
        let id = self.of_frame[pfn.index()];
        assert!(id != 0, "{pfn} would be isolated, but nobody holds it");
        assert_eq!(self.blocks[&id].kind, FrameKind::Lru, "{pfn} would be isolated from the LRU");
        self.roll() >= self.mood.pinned
    }

    fn migrate(&mut self, from: Pfn, to: Pfn, owner: u32) -> MigrateOutcome {
        let id = self.of_frame[from.index()];
        assert!(id != 0, "{from} is migrated, but nobody holds it");
        assert_eq!(owner, id, "{from} is migrated as somebody else's");
        let b = self.blocks[&id];
        let frames = |at: Pfn| at.index()..at.plus(b.order.pages()).index();
        let free = self.of_frame[frames(to)].iter().all(|f| *f == 0);
        assert!(free, "{from} is migrated to {to}, which somebody holds");
        assert!(b.pfn == from && b.kind != FrameKind::Kernel, "{b:?} is migrated");
        let roll = self.roll();
        if roll < self.mood.busy {
            return MigrateOutcome::Busy;
        }
        if roll < self.mood.busy.saturating_add(self.mood.failed) {
            return MigrateOutcome::Failed;
        }
        self.of_frame[frames(from)].fill(0);
        self.of_frame[frames(to)].fill(id);
        self.blocks.insert(id, Block { pfn: to, ..b });
        MigrateOutcome::Moved
    }

    fn split(&mut self, pfn: Pfn, owner: u32, numbers: &mut [u32]) -> bool {
        assert_eq!(self.of_frame[pfn.index()], owner, "{pfn} is split as somebody else's");
        if self.roll() < self.mood.failed {
            return false;
        }
        assert_eq!(numbers.len(), self.blocks[&owner].order.pages() as usize);
        Book::split(self, owner);
        (owner..).zip(numbers).for_each(|(id, number)| *number = id);
        true
    }
}
