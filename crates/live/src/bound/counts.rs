//! Blocks counted by what they are good for.

use super::Fewest;
use crate::blocks::{Block, Class};
use serde::Serialize;

/// Blocks by what they are good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ByClass {
    pub blocks: u64,
    pub free: u64,
    /// Without a page that stays.
    pub emptiable: u64,
    /// With a page that stays.
    pub poisoned: u64,
    /// Partly no memory of the allocator's.
    pub never: u64,
}

impl ByClass {
    pub(super) fn of<'a>(blocks: impl Iterator<Item = &'a Block>) -> ByClass {
        let mut counts = ByClass::default();
        for block in blocks {
            counts.blocks += 1;
            *match block.class() {
                Class::Free => &mut counts.free,
                Class::Emptiable => &mut counts.emptiable,
                Class::Poisoned => &mut counts.poisoned,
                Class::Never => &mut counts.never,
            } += 1;
        }
        counts
    }
}

/// The blocks of all zones, and how many of the emptiable ones there is room to empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    #[serde(flatten)]
    pub of_class: ByClass,
    /// Wherever pages are placed.
    pub more_at_most: u64,
    /// With the room that the kernel's compaction uses: in movable pageblocks, above the min mark.
    pub more_in_compactions_room: u64,
}

impl Counts {
    pub(super) fn of<'a>(blocks: impl Iterator<Item = &'a Block>, fewest: &Fewest) -> Counts {
        let more_in_compactions_room = fewest.in_compactions_room.min(fewest.most());
        Counts { of_class: ByClass::of(blocks), more_at_most: fewest.most(), more_in_compactions_room }
    }
}
