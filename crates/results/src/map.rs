//! Maps: pictures of a machine's pageblocks, a byte each.

use serde::{Deserialize, Serialize};

/// The machine's pageblocks at several moments.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Default)]
pub struct MemoryMap {
    /// In order; their blocks follow each other in every frame.
    pub zones: Vec<MapZone>,
    pub frames: Vec<MapFrame>,
}

/// A zone's part of every frame.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct MapZone {
    /// For example `node 0 Normal`.
    pub name: String,
    /// Pageblocks of the zone.
    pub blocks: u32,
}

/// One moment: a byte for each pageblock (see [`Cell`]), raw DEFLATE and base64.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct MapFrame {
    pub at_ns: u64,
    pub phase: String,
    pub free_pages: u64,
    /// The highest score of a node: the share of its free memory that is not in huge blocks, 0–100.
    pub score: f64,
    /// `base64(deflate_raw(bytes))`, a byte for each [`Cell`].
    pub cells: String,
}

/// The state of a pageblock: its migratetype in bits 0–1 (unmovable, movable, reclaimable,
/// highatomic), the class below in bits 2–5, and bit 6 if it holds pages that cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cell {
    /// Entirely free: a huge page is available.
    Free = 0,
    /// One huge page of a user.
    HugeUser = 1,
    /// One huge page of the kernel.
    HugeKernel = 2,
    /// Up to a quarter of its pages in use.
    Quarter = 3,
    /// Up to half of its pages in use.
    Half = 4,
    /// Up to three quarters of its pages in use.
    ThreeQuarters = 5,
    /// More than that, but not all.
    Nearly = 6,
    /// All pages in use as small pages.
    Full = 7,
    /// Never given to the allocator.
    Reserved = 8,
}

/// Bit of a map byte: the block holds pages that cannot be moved.
pub const CELL_HAS_UNMOVABLE: u8 = 1 << 6;

impl Cell {
    /// The map byte for a block of this class.
    pub fn byte(self, migratetype: u8, has_unmovable: bool) -> u8 {
        migratetype | (self as u8) << 2 | if has_unmovable { CELL_HAS_UNMOVABLE } else { 0 }
    }
}
