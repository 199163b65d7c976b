//! The blocks of each gigabyte, of which huge pages of that size are made.

use super::counts::ByClass;
use crate::blocks::{Block, Class, ZoneBlocks};
use crate::snapshot::FoundZone;
use serde::Serialize;

/// Bytes of a range.
pub(super) const RANGE: u64 = 1 << 30;

/// A range of a gigabyte.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Range {
    pub node: u32,
    /// Its first address, in bytes.
    pub start: u64,
    /// Whether all of it lies in the zone.
    pub is_whole: bool,
    #[serde(flatten)]
    pub of_class: ByClass,
    pub free_pages: u64,
    pub movable_pages: u64,
    pub staying_pages: u64,
    /// Its blocks by address, a letter each: see [`Class`].
    #[serde(skip)]
    pub map: Vec<(usize, Class)>,
}

pub(super) fn ranges(found: &FoundZone, zone: &ZoneBlocks, page_bytes: u64) -> Vec<Range> {
    let frames = found.frames();
    let is_whole = |start: u64| {
        let bytes = |frame: usize| frame as u64 * page_bytes;
        bytes(frames.start) <= start && start + RANGE <= bytes(frames.end)
    };
    let range_of = |block: &Block| block.start as u64 * page_bytes / RANGE;
    let of_range = |blocks: &[Block]| {
        let sum = |pages: fn(&Block) -> u64| blocks.iter().map(pages).sum();
        Range {
            node: zone.node,
            start: range_of(&blocks[0]) * RANGE,
            is_whole: is_whole(range_of(&blocks[0]) * RANGE),
            of_class: ByClass::of(blocks.iter()),
            free_pages: sum(Block::free),
            movable_pages: sum(|b| b.movable),
            staying_pages: sum(|b| b.staying),
            map: blocks.iter().map(|b| (b.start, b.class())).collect(),
        }
    };
    zone.blocks.chunk_by(|a, b| range_of(a) == range_of(b)).map(of_range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_whole_if_the_zone_has_its_first_and_its_last_page() {
        const PAGES: u64 = RANGE / 4096;
        let whole = |start: u64, end: u64| {
            let found = FoundZone {
                node: 0,
                name: "Normal".into(),
                start,
                spanned: end - start,
                present: end - start,
                managed: end - start,
                marks: [0; 4],
                boost: 0,
                protection: [0; 2],
                cached: 0,
                deferred: 0,
                free: vec![0; 11],
                blocks: None,
            };
            let block = |start: u64| Block { start: start as usize, listed: 512, ..Block::default() };
            let blocks = [start, PAGES, end - 512].map(block).into();
            let zone = ZoneBlocks { node: 0, blocks, free_outside: 0, room_outside: 0, above_min: 0 };
            ranges(&found, &zone, 4096).iter().map(|range| range.is_whole).collect::<Vec<_>>()
        };
        assert_eq!(whole(0, 2 * PAGES), [true, true]);
        assert_eq!(whole(0, 2 * PAGES - 512), [true, false], "its end is missing");
        assert_eq!(whole(512, 2 * PAGES), [false, true], "its beginning is missing");
    }
}
