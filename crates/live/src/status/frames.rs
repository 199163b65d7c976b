//! Uses of all frames of a node, which `/proc/kpageflags` shows root: `kontig status --frames`.
//!
//! Counters say how much of a kind there is, this says where: blocks that are free, blocks that
//! hold only movable pages, and the obstacles in the others.

use crate::bound::{self, OnCpusLists};
use crate::error::ReadError;
use crate::frame::State;
use crate::need::Need;
use crate::obstacles::Obstacles;
use crate::roots::Roots;
use crate::snapshot::Snapshot;
use serde::Serialize;

/// The frames of a node by use.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Frames {
    pub node: u32,
    /// Its aligned blocks of the order asked about, by what stands in their way.
    pub blocks: Obstacles,
    pub used: Vec<Used>,
    pub bound: Bound,
    pub on_cpus_lists: OnCpusLists,
}

/// The gain that moving pages can have on a node, and the blocks that it cannot free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Bound {
    /// More blocks that moves can make at most, wherever pages are placed, and the fewest moves for
    /// half of them and for all.
    pub more_at_most: u64,
    /// Of those, the ones with the room that the kernel's compaction uses.
    pub more_in_compactions_room: u64,
    pub fewest_moves_for_half: u64,
    pub fewest_moves: u64,
    /// Blocks with pages that stay.
    pub poisoned: u64,
    /// Of those, the ones that perfect placement would save.
    pub saved: u64,
}

/// Memory of one use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Used {
    pub state: &'static str,
    /// Whether compaction can move it, if nobody has pinned it, which no file shows.
    pub movable: bool,
    pub bytes: u64,
}

/// Reads every frame, node by node.
///
/// # Errors
/// Mostly that only root may read them.
pub fn read(roots: &Roots, page_bytes: u64, order: u32) -> Result<Vec<Frames>, ReadError> {
    let snapshot = Snapshot::take(roots, page_bytes)?;
    Ok(snapshot.nodes().into_iter().map(|node| frames(&snapshot, node, page_bytes, order)).collect())
}

fn frames(snapshot: &Snapshot, node: u32, page_bytes: u64, order: u32) -> Frames {
    let mut used: Vec<Used> = Vec::new();
    let zones = || snapshot.zones.iter().filter(|zone| zone.node == node);
    for state in State::ALL.iter().filter(|state| !matches!(state, State::Hole | State::NotManaged)) {
        let pages: u64 = zones().map(|zone| snapshot.census(zone.frames())[*state as usize]).sum();
        if pages > 0 {
            let bytes = pages.saturating_mul(page_bytes);
            used.push(Used { state: state.words(), movable: snapshot.moves(*state), bytes });
        }
    }
    used.sort_by_key(|used| std::cmp::Reverse(used.bytes));
    let need = Need { count: 1, order, node: Some(node), unmovable: false };
    let fewest = bound::fewest(snapshot, order, Some(node));
    let placement = bound::placements(snapshot, order, Some(node));
    let bound = Bound {
        more_at_most: fewest.most(),
        more_in_compactions_room: fewest.in_compactions_room.min(fewest.most()),
        fewest_moves_for_half: fewest.moves(fewest.most() / 2).unwrap_or(0),
        fewest_moves: fewest.moves(fewest.most()).unwrap_or(0),
        poisoned: placement.poisoned,
        saved: placement.saved(),
    };
    let on_cpus_lists = OnCpusLists::of(snapshot, Some(node));
    Frames { node, blocks: Obstacles::of(snapshot, &need), used, bound, on_cpus_lists }
}
