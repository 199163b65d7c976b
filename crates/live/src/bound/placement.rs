//! Blocks that pages which stay poison, and the fewest that the same pages would.

use crate::blocks::{Class, ZoneBlocks};
use serde::Serialize;

/// Poisoned blocks, and those that would be if the same pages had been placed side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Placement {
    pub staying_pages: u64,
    pub poisoned: u64,
    /// Blocks that perfect placement would take for them.
    pub least: u64,
}

impl Placement {
    pub(super) fn of(zones: &[ZoneBlocks], pages: u64) -> Placement {
        zones.iter().map(|zone| placement(zone, pages)).fold(Placement::default(), both)
    }

    /// Blocks that perfect placement would save.
    pub fn saved(&self) -> u64 {
        self.poisoned.saturating_sub(self.least)
    }
}

/// The blocks that a zone's staying pages take, and would take side by side: first in blocks that
/// never become free, as those are lost anyway.
fn placement(zone: &ZoneBlocks, pages: u64) -> Placement {
    let blocks = || zone.blocks.iter();
    let staying_pages: u64 = blocks().map(|block| block.staying).sum();
    let room: u64 = blocks().filter(|b| b.class() == Class::Never).map(|b| pages - b.fixed).sum();
    let poisoned = blocks().filter(|b| b.class() == Class::Poisoned).count() as u64;
    Placement { staying_pages, poisoned, least: staying_pages.saturating_sub(room).div_ceil(pages) }
}

fn both(a: Placement, b: Placement) -> Placement {
    Placement {
        staying_pages: a.staying_pages + b.staying_pages,
        poisoned: a.poisoned + b.poisoned,
        least: a.least + b.least,
    }
}
