//! The aligned blocks of one order, each with its pages by what can be done with them: the one
//! census that status, check, bound and metrics count from.

use crate::frame::State;
use crate::snapshot::{FoundZone, Snapshot, aligned};
use kontig_mm::MigrateType;
use std::ops::Range;

/// Frames of each state, in the order of [`State::ALL`].
pub type Census = [u64; State::ALL.len()];

/// A block of memory, in pages. Their sum is the block, but for `room`, which is counted twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    pub start: usize,
    /// On free lists, or free on demand.
    pub listed: u64,
    /// Free, but on a CPU's list.
    pub cached: u64,
    /// Of the listed ones, those that the kernel's compaction can take as targets: in pageblocks of
    /// movable memory.
    pub room: u64,
    /// Users' pages, which can be moved.
    pub movable: u64,
    /// The kernel's pages, which stay, but could have been placed elsewhere; locked ones, where the
    /// host does not let compaction move them.
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
    /// A page that stays keeps it from becoming free.
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

    fn of(snapshot: &Snapshot, frames: &Range<usize>, census: &Census) -> Block {
        let mut block = Block { start: frames.start, room: room(snapshot, frames), ..Block::default() };
        for (state, pages) in State::ALL.iter().zip(census) {
            let of = match state {
                State::Free | State::Deferred => &mut block.listed,
                State::Cached => &mut block.cached,
                state if state.is_fixed() => &mut block.fixed,
                state if snapshot.moves(*state) => &mut block.movable,
                _ => &mut block.staying,
            };
            *of += pages;
        }
        block
    }
}

/// The blocks of a zone by address, each with its census, without those that have no memory of the
/// allocator's at all.
pub fn of_zone<'a>(
    snapshot: &'a Snapshot,
    zone: &FoundZone,
    order: u32,
) -> impl Iterator<Item = (Block, Census)> + use<'a> {
    let counted = move |frames: Range<usize>| {
        let census = snapshot.census(frames.clone());
        (Block::of(snapshot, &frames, &census), census)
    };
    aligned(zone.frames(), order).map(counted).filter(move |(block, _)| block.fixed < 1 << order)
}

/// Pages on free lists in pageblocks of movable memory: the kernel's compaction moves pages nowhere
/// else, and does not find those on CPUs' lists.
fn room(snapshot: &Snapshot, frames: &Range<usize>) -> u64 {
    let each = snapshot.pages_per_block();
    let (mut at, mut room) = (frames.start, 0);
    while at < frames.end {
        let end = ((at / each + 1) * each).min(frames.end);
        if snapshot.block_type(at / each) == MigrateType::Movable {
            room += snapshot.census(at..end)[State::Free as usize];
        }
        at = end;
    }
    room
}

/// The blocks of a zone.
pub struct ZoneBlocks {
    pub node: u32,
    pub blocks: Vec<Block>,
    /// Free pages of the zone that lie in no whole block; and those among them that compaction can
    /// take.
    pub free_outside: u64,
    pub room_outside: u64,
    /// Free pages above the min mark: compaction isolates none below it.
    pub above_min: u64,
}

impl ZoneBlocks {
    /// Those of a zone, by address.
    pub fn of(snapshot: &Snapshot, zone: &FoundZone, order: u32) -> ZoneBlocks {
        let blocks: Vec<Block> = of_zone(snapshot, zone, order).map(|(block, _)| block).collect();
        let census = snapshot.census(zone.frames());
        let free: u64 = State::ALL.iter().filter(|s| s.is_free()).map(|s| census[*s as usize]).sum();
        let inside = |pages: fn(&Block) -> u64| blocks.iter().map(pages).sum::<u64>();
        ZoneBlocks {
            node: zone.node,
            free_outside: free - inside(Block::free),
            room_outside: room(snapshot, &zone.frames()) - inside(|block| block.room),
            above_min: census[State::Free as usize].saturating_sub(zone.marks[0]),
            blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_has_room_on_the_lists_of_movable_pageblocks_above_the_min_mark() {
        let text = concat!(
            r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":4096,"block_order":9,"cpus":1,"#,
            r#""pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"spanned":2600,"#,
            r#""present":2600,"managed":2600,"marks":[20,250,300,350],"boost":0,"protection":[0,0],"cached":64,"#,
            r#""free":[0,0,0,0,0,0,0,0,0,0,0],"blocks":null}]}"#,
            "\n0 M a64 c64 F384\n200 R F512\n400 U F512\n600 H F512\n800 M a512\na00 M F40\n",
        );
        let snapshot = Snapshot::parse(text).expect("a snapshot");
        let zone = ZoneBlocks::of(&snapshot, &snapshot.zones[0], 9);
        assert_eq!(zone.blocks.iter().map(|block| block.room).collect::<Vec<_>>(), [384, 0, 0, 0, 0]);
        assert_eq!((zone.free_outside, zone.room_outside), (40, 40));
        assert_eq!(zone.above_min, 384 + 3 * 512 + 40 - 20);
        assert_eq!(zone.blocks[0].free(), 64 + 384, "any placement may use those on a CPU's list");
    }
}
