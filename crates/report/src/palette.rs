//! The colours of the memory map, and their meanings.
//!
//! Hue is the kind of content and lightness is fullness, so that the map still reads without hue:
//! blue is a huge page, amber movable pages, green reclaimable ones, purple a block with something
//! unmovable in it. The hues stay distinct under the common colour blindnesses. Bytes are
//! [`Cell`](kontig_results::Cell)'s.

use kontig_results::CELL_HAS_UNMOVABLE;

/// One entry of the legend and its colours.
#[derive(Clone, Copy, Debug)]
pub struct Shade {
    /// Meaning of the colour for a pageblock.
    pub label: &'static str,
    /// Colour on a light page, `#rrggbb`.
    pub light: &'static str,
    /// Colour on a dark page, `#rrggbb`.
    pub dark: &'static str,
}

const fn shade(label: &'static str, light: &'static str, dark: &'static str) -> Shade {
    Shade { label, light, dark }
}

/// Index of the shade for blocks that are free as a whole.
pub const FREE: usize = 0;
/// First of the five shades, emptiest first, for blocks with movable pages only.
pub const MOVABLE: usize = 3;
/// First of the five shades for reclaimable blocks.
pub const RECLAIMABLE: usize = 8;
/// First of the five shades for blocks holding unmovable pages.
pub const PINNED: usize = 13;
/// Index of the shade for reserved blocks, and for bytes that mean nothing.
pub const RESERVED: usize = 18;

/// Every shade; the constants of this module are indices into it.
pub const SHADES: [Shade; 19] = [
    shade("free huge block", "#e4ebe8", "#2b3236"),
    shade("user's huge page", "#1f77b4", "#4aa3df"),
    shade("kernel's huge page", "#0b3c68", "#a9d3f5"),
    shade("movable, up to ¼ used", "#fbe2ae", "#5c4613"),
    shade("movable, up to ½ used", "#f5c566", "#866415"),
    shade("movable, up to ¾ used", "#e7a42c", "#b5851a"),
    shade("movable, nearly full", "#c9820d", "#dfa72f"),
    shade("movable, full", "#98600a", "#f7cf6b"),
    shade("reclaimable, up to ¼ used", "#b9e3d3", "#1d4a3c"),
    shade("reclaimable, up to ½ used", "#7fcbb0", "#21705a"),
    shade("reclaimable, up to ¾ used", "#3fae8a", "#279a7a"),
    shade("reclaimable, nearly full", "#148a66", "#3fc39c"),
    shade("reclaimable, full", "#0a6148", "#86e6c6"),
    shade("holds unmovable, up to ¼ used", "#e6bfe0", "#5a2352"),
    shade("holds unmovable, up to ½ used", "#d28cc9", "#83327a"),
    shade("holds unmovable, up to ¾ used", "#b757ab", "#ae479f"),
    shade("holds unmovable, nearly full", "#932f88", "#d06cc1"),
    shade("holds unmovable, full", "#671a60", "#f0a3e4"),
    shade("reserved", "#9a9fa3", "#6b7176"),
];

/// Migratetype names, by bits 0–1 of a map byte.
pub const MIGRATETYPES: [&str; 4] = ["unmovable", "movable", "reclaimable", "highatomic"];

/// Meanings of the classes of a map byte (bits 2–5).
pub const CLASSES: [&str; 9] = [
    "free as a whole",
    "one huge page of a user",
    "one huge page of the kernel",
    "up to ¼ of its pages in use",
    "up to ½ of its pages in use",
    "up to ¾ of its pages in use",
    "nearly all of its pages in use",
    "all of its pages in use, singly",
    "reserved for good",
];

/// The shade of a map byte.
pub fn shade_of(byte: u8) -> usize {
    let class = usize::from(byte >> 2 & 0xf);
    match class {
        0..=2 => class,
        3..=7 if byte & CELL_HAS_UNMOVABLE != 0 => PINNED + class - 3,
        3..=7 if byte & 3 == 2 => RECLAIMABLE + class - 3,
        3..=7 => MOVABLE + class - 3,
        _ => RESERVED,
    }
}

/// How much of a block of this shade is in use, 0–1: the level it is drawn to where there is room.
pub fn level_of(shade: usize) -> f64 {
    match shade {
        FREE => 0.0,
        MOVABLE..RESERVED => [0.25, 0.5, 0.75, 0.9, 1.0][(shade - MOVABLE) % 5],
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::Cell;

    #[test]
    fn bytes_find_their_shade() {
        assert_eq!(shade_of(Cell::Free.byte(1, false)), FREE);
        assert_eq!(SHADES[shade_of(Cell::HugeUser.byte(1, false))].label, "user's huge page");
        assert_eq!(shade_of(Cell::Quarter.byte(1, false)), MOVABLE);
        assert_eq!(shade_of(Cell::Full.byte(0, true)), PINNED + 4);
        assert_eq!(shade_of(Cell::Half.byte(2, false)), RECLAIMABLE + 1);
        assert_eq!(shade_of(Cell::Reserved.byte(0, false)), RESERVED);
        assert_eq!(shade_of(0xff), RESERVED);
    }
}
