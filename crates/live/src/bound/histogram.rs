//! Blocks by their movable pages and by those that stay.

use crate::blocks::Block;
use serde::Serialize;
use std::ops::RangeInclusive;

/// Blocks with a number of pages of each kind, both bounds included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cell {
    pub movable: [u64; 2],
    pub staying: [u64; 2],
    pub blocks: u64,
}

/// Bounds of the histogram's classes, for blocks of `pages` pages.
fn classes(pages: u64) -> (Vec<RangeInclusive<u64>>, Vec<RangeInclusive<u64>>) {
    let up_to = |bounds: &[u64]| {
        let mut classes = Vec::new();
        let mut from = 0;
        for bound in bounds.iter().copied().filter(|bound| *bound <= pages) {
            if bound >= from {
                classes.push(from..=bound);
                from = bound + 1;
            }
        }
        classes
    };
    (up_to(&[0, pages / 8, pages / 4, pages / 2, pages - pages / 4, pages]), up_to(&[0, 1, 8, 64, pages]))
}

pub(super) fn histogram(blocks: &[&Block], pages: u64) -> Vec<Cell> {
    let (movable, staying) = classes(pages);
    let cell = |m: &RangeInclusive<u64>, s: &RangeInclusive<u64>| Cell {
        movable: [*m.start(), *m.end()],
        staying: [*s.start(), *s.end()],
        blocks: blocks.iter().filter(|b| m.contains(&b.movable) && s.contains(&(b.staying + b.fixed))).count() as u64,
    };
    movable.iter().flat_map(|m| staying.iter().map(move |s| cell(m, s))).collect()
}
