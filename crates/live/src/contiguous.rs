//! Blocks above the largest order of the free lists, as gigabytes are: the kernel makes one when a
//! pool of huge pages of that size is filled, by emptying an aligned range of memory
//! (`alloc_contig_pages`).
//!
//! The rule is the kernel's: zones from the highest down, in each the ranges by address; a range is
//! taken if it holds nothing but free and users' pages, and those that are moved find room
//! elsewhere. Clean pages of files in it are not moved, but dropped, be they mapped or not
//! (`reclaim_clean_pages_from_list`). The zone of movable memory gives none, as such a page would
//! never leave it. Compaction makes no such block. The kernel passes over a range in which a page
//! is busy for a moment, the likelier the more pages it has, which nobody can predict. So the least
//! that any choice of ranges moves is predicted, too.

use crate::frame::State;
use crate::need::Need;
use crate::snapshot::{FoundZone, Snapshot, aligned};
use crate::supply::Supply;
use std::ops::Range;

/// The pages that leave the ranges to be emptied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emptied {
    /// Pages that are moved out of the first ranges.
    pub pages_moved: u64,
    /// Clean pages of files that are dropped from them.
    pub pages_dropped: u64,
    /// Pages that are moved out of those with the fewest.
    pub at_least: u64,
}

/// The pages to move to meet these needs by filling pools; `None` if no need is of such a size, or
/// that does not meet them all. Needs of smaller blocks must be met already.
pub fn emptied(snapshot: &Snapshot, now: &Supply, needs: &[Need]) -> Option<Emptied> {
    let is_large = |need: &&Need| need.order as usize > snapshot.max_order();
    let small: Vec<Need> = needs.iter().filter(|need| !is_large(need)).copied().collect();
    let mut large = now.beyond_pools(needs);
    large.retain(|need| is_large(&need));
    if large.is_empty() || !now.meets(&small) {
        return None;
    }
    let targets = TargetPages::of(snapshot);
    let first = targets.moved(snapshot, &large, |_| {});
    let fewest = targets.moved(snapshot, &large, |ranges| ranges.sort_by_key(|range| range.moved));
    // Where the first ranges leave no room for their pages, others may.
    let least = fewest.or(first)?;
    let Out { moved, dropped } = first.unwrap_or(least);
    Some(Emptied { pages_moved: moved, pages_dropped: dropped, at_least: least.moved })
}

/// Free pages above the low marks, which take the pages moved.
struct TargetPages(u64);

/// A range that can be emptied.
struct Emptiable {
    frames: Range<usize>,
    moved: u64,
    dropped: u64,
    free: u64,
}

/// Pages that leave ranges.
#[derive(Clone, Copy)]
struct Out {
    moved: u64,
    dropped: u64,
}

impl TargetPages {
    fn of(snapshot: &Snapshot) -> TargetPages {
        let free = |zone: &FoundZone| {
            let census = snapshot.census(zone.frames());
            census[State::Free as usize] + census[State::Cached as usize]
        };
        let kept: u64 = snapshot.zones.iter().map(|zone| zone.marks[1] + zone.boost).sum();
        TargetPages(snapshot.zones.iter().map(free).sum::<u64>().saturating_sub(kept))
    }

    /// Pages that are moved if the needs' ranges are taken in this order; `None` if there are not
    /// enough ranges, or no room for their pages.
    fn moved(&self, snapshot: &Snapshot, needs: &[Need], order: impl Fn(&mut Vec<Emptiable>)) -> Option<Out> {
        let mut taken: Vec<Range<usize>> = Vec::new();
        let (mut out, mut free_inside) = (Out { moved: 0, dropped: 0 }, 0);
        for need in needs {
            let zones = snapshot.zones.iter().rev().filter(|zone| zone.name != MOVABLE);
            let zones = zones.filter(|zone| need.node.is_none_or(|node| node == zone.node));
            let ranges = zones.flat_map(|zone| aligned(zone.frames(), need.order));
            let mut emptiable: Vec<Emptiable> = ranges.filter_map(|frames| content(snapshot, frames)).collect();
            order(&mut emptiable);
            emptiable.retain(|range| {
                !taken.iter().any(|other| other.start < range.frames.end && range.frames.start < other.end)
            });
            let wanted = usize::try_from(need.count).ok().filter(|count| *count <= emptiable.len())?;
            for range in emptiable.into_iter().take(wanted) {
                out = Out { moved: out.moved + range.moved, dropped: out.dropped + range.dropped };
                free_inside += range.free;
                taken.push(range.frames);
            }
        }
        (out.moved <= self.0.saturating_sub(free_inside)).then_some(out)
    }
}

/// The zone whose pages can all be moved.
const MOVABLE: &str = "Movable";

/// A range, if it holds nothing but users' pages and free ones.
fn content(snapshot: &Snapshot, frames: Range<usize>) -> Option<Emptiable> {
    let (mut moved, mut dropped, mut free) = (0, 0, 0);
    for pfn in frames.clone() {
        match snapshot.frame(pfn).state() {
            State::FileClean | State::FileMapped => dropped += 1,
            state if state.is_movable() => moved += 1,
            // The kernel does not look for it here.
            State::Deferred => return None,
            state if state.is_free() => free += 1,
            _ => return None,
        }
    }
    Some(Emptiable { frames, moved, dropped, free })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of 32 pages, above the largest order of 4: free; movable; with one page of slab; half
    /// movable; free.
    fn host(low: u64) -> (Snapshot, Supply) {
        host_of("Normal", low, "0 M F16 *2\n20 M a16 *2\n40 M s1 F15\n50 M F16\n60 M a16\n70 M F16\n80 M F16 *2\n")
    }

    /// A host of five such blocks.
    fn host_of(zone: &str, low: u64, frames: &str) -> (Snapshot, Supply) {
        let header = concat!(
            r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":4096,"block_order":4,"#,
            r#""cpus":1,"pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"ZONE","start":0,"spanned":160,"#,
            r#""present":160,"managed":160,"marks":[0,LOW,0,0],"boost":0,"protection":[0,0],"cached":0,"#,
            r#""free":[0,0,0,0,0],"blocks":null}]}"#,
        );
        let header = header.replace("ZONE", zone).replace("LOW", &low.to_string());
        let snapshot = Snapshot::parse(&format!("{header}\n{frames}")).expect("a snapshot");
        let supply = Supply::of_snapshot(&snapshot, &[5]);
        (snapshot, supply)
    }

    fn need(count: u64, order: u32) -> Need {
        Need { count, order, node: None, unmovable: false }
    }

    #[test]
    fn ranges_without_obstacles_are_emptied_in_the_order_of_addresses() {
        let (snapshot, now) = host(0);
        let moved = |count| emptied(&snapshot, &now, &[need(count, 5)]).map(|of| (of.pages_moved, of.at_least));
        assert_eq!([moved(1), moved(2), moved(3)], [Some((0, 0)), Some((32, 0)), Some((48, 16))]);
        assert_eq!(moved(4), None, "31 free pages are left for 48 that must be moved");
        assert_eq!(moved(5), None, "one holds a page of slab");
    }

    #[test]
    fn clean_pages_of_files_are_dropped_and_need_no_room() {
        let (snapshot, now) = host_of("Normal", 0, "0 M f16 *2\n20 M a8 m4 d4\n30 M F16\n40 M a16 *6\n");
        let found = |count| emptied(&snapshot, &now, &[need(count, 5)]);
        assert_eq!(found(1), Some(Emptied { pages_moved: 0, pages_dropped: 32, at_least: 0 }));
        assert_eq!(found(2), None, "12 pages more must be moved, and nothing is free outside the range itself");
        let (snapshot, now) = host_of("Normal", 0, "0 M f16 *2\n20 M a8 m4 d4\n30 M F16\n40 M F16 *6\n");
        let found = |count| emptied(&snapshot, &now, &[need(count, 5)]);
        assert_eq!(found(2), Some(Emptied { pages_moved: 12, pages_dropped: 36, at_least: 0 }));
    }

    #[test]
    fn the_zone_of_movable_memory_gives_none() {
        let (snapshot, now) = host_of("Movable", 0, "0 M a16 *2\n20 M F16 *8\n");
        assert_eq!(emptied(&snapshot, &now, &[need(1, 5)]), None);
    }

    #[test]
    fn moved_pages_need_room_above_the_low_mark() {
        let (snapshot, now) = host(50);
        let other = Emptied { pages_moved: 0, pages_dropped: 0, at_least: 0 };
        assert_eq!(emptied(&snapshot, &now, &[need(2, 5)]), Some(other), "not the first two, but two that are free");
        assert_eq!(emptied(&snapshot, &now, &[need(3, 5)]), None);
    }

    #[test]
    fn smaller_needs_are_not_met_by_it() {
        let (snapshot, now) = host(0);
        assert_eq!(emptied(&snapshot, &now, &[need(1, 3)]), None);
        assert!(emptied(&snapshot, &now, &[need(1, 5), need(1, 0)]).is_none(), "the lists of this host are empty");
    }
}
