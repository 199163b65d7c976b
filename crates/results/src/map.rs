//! Maps: pictures of a machine's pageblocks, a byte for each.

use serde::{Deserialize, Serialize};

/// The machine's pageblocks at several moments.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Default)]
pub struct MemoryMap {
    /// The zones, in order; their blocks follow each other in every frame.
    pub zones: Vec<MapZone>,
    /// The moments.
    pub frames: Vec<MapFrame>,
}

/// A zone's part of every frame.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct MapZone {
    /// Such as `node 0 Normal`.
    pub name: String,
    /// Number of pageblocks.
    pub blocks: u32,
}

/// One moment: a byte for each pageblock (see [`Cell`]), raw DEFLATE and base64.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct MapFrame {
    /// When, ns.
    pub at_ns: u64,
    /// The phase's name.
    pub phase: String,
    /// Free pages at that moment.
    pub free_pages: u64,
    /// The highest of the nodes' scores (share of a node's free memory not in huge blocks, 0–100).
    pub score: f64,
    /// The cells, `base64(deflate_raw(bytes))`.
    pub cells: String,
}

/// A pageblock's state in a map: migratetype in bits 0–1 (unmovable, movable, reclaimable, highatomic), the class
/// below in bits 2–5, and bit 6 set if it holds pages that cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cell {
    /// Free as a whole: a huge page at hand.
    Free = 0,
    /// One huge page of a user.
    HugeUser = 1,
    /// One huge page of the kernel.
    HugeKernel = 2,
    /// Up to a quarter of its pages in use.
    Quarter = 3,
    /// Up to half.
    Half = 4,
    /// Up to three quarters.
    ThreeQuarters = 5,
    /// More, but not all.
    Nearly = 6,
    /// All pages in use, singly.
    Full = 7,
    /// Reserved for good.
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
