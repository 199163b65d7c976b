//! Why a run gained nothing: first by what was counted, then by a look at every frame, where that
//! is permitted.

use super::reason::NoGain;
use super::runner::Ran;
use super::sample::NodeSample;
use crate::bound;
use crate::roots::Roots;
use crate::snapshot::Snapshot;
use kontig_mm::types::CLUSTER_MAX;

/// Pages that did not move from which on that is the reason. From Linux 6.9 on, a run ends in each
/// zone at the first large folio without a place, which may have half a pageblock: on 6.18 runs
/// beside dirty files of 32-page folios ended with 33 to 37 pages not moved, as all that was
/// isolated with the folio counts. That is no sign that somebody holds pages.
fn many(node: &NodeSample) -> u64 {
    node.zones.len() as u64 * (u64::from(CLUSTER_MAX) + (1 << node.huge_order >> 1))
}

/// Free blocks before a run, the most that was seen while it ran, and after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    pub before: u64,
    pub most: u64,
    pub after: u64,
}

/// Why it gained nothing, by what was counted; `None` where the frames have to tell.
pub fn by_counters(ran: &Ran, blocks: Blocks, after: &NodeSample, order: u32) -> Option<NoGain> {
    if let Some(signal) = ran.killed {
        return Some(NoGain::Killed { signal });
    }
    match (ran.moved.unwrap_or(0), ran.failed.unwrap_or(0)) {
        (moved, failed) if failed > moved && failed > many(after) => Some(NoGain::Pinned { failed }),
        _ if blocks.most > blocks.before.max(blocks.after) => Some(NoGain::Taken { most: blocks.most }),
        _ if after.too_small(order) < 1 << order => Some(NoGain::NotFragmented),
        (0, _) if ran.scanned == Some(0) => Some(NoGain::NothingScanned),
        _ => None,
    }
}

/// Why it gained nothing, by the frames of the node; `None` where they do not tell.
pub fn by_frames(roots: &Roots, page_bytes: u64, node: u32, order: u32) -> Option<NoGain> {
    let snapshot = Snapshot::take(roots, page_bytes).ok()?;
    let fewest = bound::fewest(&snapshot, order, Some(node));
    match (fewest.most(), fewest.emptiable) {
        (0, 0) => Some(NoGain::Poisoned { blocks: bound::placements(&snapshot, order, Some(node)).poisoned }),
        (0, emptiable) => Some(NoGain::NoRoom { emptiable }),
        _ => None,
    }
}

/// All that is left to say where neither tells.
pub fn by_moves(ran: &Ran) -> NoGain {
    ran.moved.filter(|moved| *moved > 0).map_or(NoGain::Unknown, |moved| NoGain::NoBlockWhole { moved })
}

#[cfg(test)]
mod tests {
    use super::super::sample::ZoneSample;
    use super::*;

    fn node(singles: u64) -> NodeSample {
        let zone = ZoneSample { name: "Normal".into(), present: 9000, kept: 0, free: vec![singles], deferred: 0 };
        NodeSample { node: 0, huge_order: 9, zones: vec![zone] }
    }

    const FLAT: Blocks = Blocks { before: 7, most: 7, after: 7 };

    #[test]
    fn counters_tell_pinned_pages_from_nothing_to_do_and_from_a_kernel_that_does_nothing() {
        let why = |moved, failed, scanned, singles| {
            let ran = Ran { moved: Some(moved), failed: Some(failed), scanned: Some(scanned), ..Ran::default() };
            by_counters(&ran, FLAT, &node(singles), 9)
        };
        assert_eq!(why(10, 289, 9, 5000), Some(NoGain::Pinned { failed: 289 }));
        assert_eq!(why(10, 288, 9, 5000), None, "a folio of half a block, with its batch");
        assert_eq!(why(0, 0, 9, 511), Some(NoGain::NotFragmented));
        assert_eq!(why(0, 0, 0, 5000), Some(NoGain::NothingScanned));
        assert_eq!(why(0, 0, 9, 5000), None, "the frames have to tell");
    }

    #[test]
    fn blocks_were_taken_only_if_they_were_seen() {
        let ran = Ran { moved: Some(5000), scanned: Some(9), ..Ran::default() };
        let why = |before, most, after| by_counters(&ran, Blocks { before, most, after }, &node(5000), 9);
        assert_eq!(why(7, 9, 7), Some(NoGain::Taken { most: 9 }));
        assert_eq!(why(7, 7, 7), None, "pages have moved, and no block was seen");
        assert_eq!(why(7, 7, 5), None, "others use blocks up");
        assert_eq!(by_moves(&ran), NoGain::NoBlockWhole { moved: 5000 });
        assert_eq!(by_moves(&Ran::default()), NoGain::Unknown);
    }

    #[test]
    fn a_child_that_was_killed_is_a_reason_of_its_own() {
        let ran = Ran { killed: Some(9), ..Ran::default() };
        assert_eq!(by_counters(&ran, FLAT, &node(5000), 9), Some(NoGain::Killed { signal: 9 }));
    }
}
