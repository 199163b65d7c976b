//! Blocks above the largest order of the free lists, such as gigabytes: the kernel makes one when a pool of huge pages of that size
//! is filled, by emptying an aligned range of memory (`alloc_contig_pages`).
//!
//! The rule is the kernel's: zones from the highest down, in each the ranges by address; a range is taken if nothing in it is anything but
//! free or a user's page, and what is moved out of it finds room elsewhere. Compaction makes no such block. Moved pages may go to a range that
//! is emptied next, and are moved again then: what is foretold is the least.

use crate::frame::State;
use crate::need::Need;
use crate::snapshot::{FoundZone, Snapshot};
use crate::supply::Supply;
use std::ops::Range;

/// What it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emptied {
    /// Pages that are moved out of the ranges, at least.
    pub pages_moved: u64,
}

/// What it takes to meet these needs by filling pools; `None` if none of them is of such a size, or that does not meet them all.
/// Needs of smaller blocks have to be met as it is.
pub fn emptied(snapshot: &Snapshot, now: &Supply, needs: &[Need]) -> Option<Emptied> {
    let is_large = |need: &&Need| need.order as usize > snapshot.max_order();
    let small: Vec<Need> = needs.iter().filter(|need| !is_large(need)).copied().collect();
    let mut large: Vec<Need> = needs.iter().filter(is_large).copied().collect();
    if large.is_empty() || !now.meets(&small) {
        return None;
    }
    // Who may take from anywhere waits for those who may not.
    large.sort_by_key(|need| (std::cmp::Reverse(need.order), need.node.is_none()));
    let mut taken: Vec<Range<usize>> = Vec::new();
    let (mut moved, mut free_inside) = (0, 0);
    for need in large {
        let mut left = need.count;
        let zones = snapshot.zones.iter().rev().filter(|zone| need.node.is_none_or(|node| node == zone.node));
        for range in zones.flat_map(|zone| ranges(zone, need.order)) {
            if left == 0 {
                break;
            }
            if taken.iter().any(|other| other.start < range.end && range.start < other.end) {
                continue;
            }
            let Some((movable, free)) = content(snapshot, &range) else { continue };
            (moved, free_inside, left) = (moved + movable, free_inside + free, left - 1);
            taken.push(range);
        }
        if left > 0 {
            return None;
        }
    }
    let free = |zone: &FoundZone| {
        let census = snapshot.census(zone.frames());
        census[State::Free as usize] + census[State::Cached as usize]
    };
    let kept: u64 = snapshot.zones.iter().map(|zone| zone.marks[1] + zone.boost).sum();
    let free_elsewhere = snapshot.zones.iter().map(free).sum::<u64>().saturating_sub(free_inside + kept);
    (moved <= free_elsewhere).then_some(Emptied { pages_moved: moved })
}

/// The aligned ranges of an order in a zone.
fn ranges(zone: &FoundZone, order: u32) -> impl Iterator<Item = Range<usize>> + use<> {
    let frames = zone.frames();
    let pages = 1usize.checked_shl(order).unwrap_or(usize::MAX);
    let first = frames.start.checked_next_multiple_of(pages).unwrap_or(frames.end);
    let starts = (first..frames.end).step_by(pages).take_while(move |start| frames.end - start >= pages);
    starts.map(move |start| start..start + pages)
}

/// Users' pages and free ones of a range that holds nothing else.
fn content(snapshot: &Snapshot, range: &Range<usize>) -> Option<(u64, u64)> {
    let (mut movable, mut free) = (0, 0);
    for pfn in range.clone() {
        match snapshot.frame(pfn).state() {
            state if state.is_movable() => movable += 1,
            state if state.is_free() => free += 1,
            _ => return None,
        }
    }
    Some((movable, free))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of 32 pages, above the largest order of 4: free; movable; with one page of slab; half movable; free.
    fn host(low: u64) -> (Snapshot, Supply) {
        let header = format!(
            r#"{{"schema":"kontig.snapshot/1","host":{{"kernel":"6.12.9","page_size":4096,"block_order":4,"cpus":1,"pinned":0,"sysctls":[]}},"zones":[{{"node":0,"name":"Normal","start":0,"spanned":160,"present":160,"managed":160,"marks":[0,{low},0,0],"boost":0,"protection":[0,0],"cached":0,"free":[0,0,0,0,0],"blocks":null}}]}}"#
        );
        let text =
            format!("{header}\n0 M F16 *2\n20 M a16 *2\n40 M s1 F15\n50 M F16\n60 M a16\n70 M F16\n80 M F16 *2\n");
        let snapshot = Snapshot::parse(&text).expect("a snapshot");
        let supply = Supply::of_snapshot(&snapshot, &[5]);
        (snapshot, supply)
    }

    fn need(count: u64, order: u32) -> Need {
        Need { count, order, node: None, unmovable: false }
    }

    #[test]
    fn ranges_without_obstacles_are_emptied_in_the_order_of_addresses() {
        let (snapshot, now) = host(0);
        let moved = |count| emptied(&snapshot, &now, &[need(count, 5)]).map(|emptied| emptied.pages_moved);
        assert_eq!([moved(1), moved(2), moved(3)], [Some(0), Some(32), Some(48)]);
        assert_eq!(moved(4), None, "31 free pages are left for 48 that are to be moved");
        assert_eq!(moved(5), None, "one holds a page of slab");
    }

    #[test]
    fn what_is_moved_needs_room_above_the_low_mark() {
        let (snapshot, now) = host(50);
        assert_eq!(emptied(&snapshot, &now, &[need(2, 5)]), None);
    }

    #[test]
    fn smaller_needs_are_not_met_by_it() {
        let (snapshot, now) = host(0);
        assert_eq!(emptied(&snapshot, &now, &[need(1, 3)]), None);
        assert!(emptied(&snapshot, &now, &[need(1, 5), need(1, 0)]).is_none(), "the lists of this host are empty");
    }
}
