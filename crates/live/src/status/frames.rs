//! What every frame of a node is used for, as `/proc/kpageflags` tells root: `kontig status --frames`.
//!
//! Where counters say how much of a kind there is, this says where it is: how many blocks are free, how many hold only
//! what can be moved, and what is in the way in the others.

use crate::error::ReadError;
use crate::frame::State;
use crate::need::Need;
use crate::obstacles::Obstacles;
use crate::roots::Roots;
use crate::snapshot::Snapshot;
use serde::Serialize;

/// A node's frames.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Frames {
    /// The node.
    pub node: u32,
    /// Its aligned blocks of the order asked about, by what stands in their way.
    pub blocks: Obstacles,
    /// How much memory is used for what.
    pub used: Vec<Used>,
}

/// Memory of a use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Used {
    /// Which.
    pub state: &'static str,
    /// Whether compaction can move it. That nobody has pinned it is not known.
    pub movable: bool,
    /// How much, bytes.
    pub bytes: u64,
}

/// Reads every frame, and tells each node's.
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
            used.push(Used { state: state.words(), movable: state.is_movable(), bytes });
        }
    }
    used.sort_by_key(|used| std::cmp::Reverse(used.bytes));
    let need = Need { count: 1, order, node: Some(node), unmovable: false };
    Frames { node, blocks: Obstacles::of(snapshot, &need), used }
}
