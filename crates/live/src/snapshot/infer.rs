//! Facts that a host does not show of its frames, inferred by one rule each.
//!
//! 1. A frame without a flag at an address that is no memory is a hole.
//! 2. Frames that the allocator was never given have no flag. A zone says how many there are
//!    (present less managed, less those reserved at boot or out of use). They lie in long runs, so
//!    the longest runs without a flag are them, a pageblock at least. Frames that are initialised
//!    when wanted lie in such runs too; the first of them are those.
//! 3. A page on a CPU's list has no flag either. A zone says how many there are. They were freed
//!    among users' pages, so the frames without a flag in the pageblocks with the fewest obstacles
//!    are them, those with the fewest such frames first. Beside obstacles, long runs of such frames
//!    are buffers of the kernel's, unless nothing else is left.
//! 4. Free frames that touch form the largest aligned blocks: the allocator joins all buddies that
//!    are free.
//! 5. The pageblocks with the most obstacles are those of types other than movable, as many as the
//!    kernel says there are. Of those, the ones with the smallest share of slab are unmovable, the
//!    others reclaimable: the kernel's reclaimable memory is slab.

use super::{FoundZone, Frame, largest_block};
use crate::frame::State;
use kontig_mm::MigrateType;
use std::cmp::Reverse;
use std::ops::Range;

/// Rule 1: makes frames without a flag holes wherever there is no memory; `ram` is ascending.
pub(super) fn holes(frames: &mut [Frame], ram: impl Iterator<Item = Range<u64>>) {
    let mut at = 0;
    let end = frames.len();
    for range in ram.chain(std::iter::once(u64::MAX..u64::MAX)) {
        let start = usize::try_from(range.start).unwrap_or(end).min(end);
        for frame in &mut frames[at.min(start)..start] {
            if frame.state() == State::Unknown {
                *frame = Frame::head(State::Hole);
            }
        }
        at = usize::try_from(range.end).unwrap_or(end).min(end);
    }
}

/// Rule 2: marks frames that the allocator was never given.
pub(super) fn not_managed(frames: &mut [Frame], zone: &FoundZone, pages_per_block: usize) {
    let range = within(frames, zone);
    let is_apart = |f: &&Frame| matches!(f.state(), State::Reserved | State::Offline);
    let apart = frames[range.clone()].iter().filter(is_apart).count();
    let mut deferred = zone.deferred as usize;
    let mut left = ((zone.present - zone.managed) as usize).saturating_sub(apart).max(deferred);
    let mut runs = Vec::new();
    let mut at = range.start;
    for run in frames[range].chunk_by(|a, b| a.state() == b.state()) {
        if run[0].state() == State::Unknown && run.len() >= pages_per_block {
            runs.push((Reverse(run.len()), at));
        }
        at += run.len();
    }
    runs.sort();
    for (Reverse(len), start) in runs {
        // The last ones are not managed: the kernel takes memory into use from the start.
        let taken = len.min(left);
        let wanted = taken.min(deferred);
        frames[start + len - taken..start + len - wanted].fill(Frame::head(State::NotManaged));
        frames[start + len - wanted..start + len].fill(Frame::head(State::Deferred));
        left -= taken;
        deferred -= wanted;
    }
}

/// Rule 3: marks pages on CPUs' lists.
pub(super) fn cached(frames: &mut [Frame], zone: &FoundZone, pages_per_block: usize) {
    let range = within(frames, zone);
    let mut left = zone.cached as usize;
    let mut blocks: Vec<(usize, usize, usize)> = Vec::new();
    for start in (range.start / pages_per_block * pages_per_block..range.end).step_by(pages_per_block) {
        let own = &frames[start.max(range.start)..(start + pages_per_block).min(range.end)];
        let unknown = own.iter().filter(|f| f.state() == State::Unknown).count();
        let obstacles = own.iter().filter(|f| f.state().is_obstacle()).count() - unknown;
        if unknown > 0 {
            blocks.push((obstacles, unknown, start));
        }
    }
    blocks.sort_unstable();
    let any_length = usize::MAX;
    for longest_beside in [LONG_RUN, any_length] {
        for (obstacles, _, start) in &blocks {
            let own = *start.max(&range.start)..(start + pages_per_block).min(range.end);
            let longest = if *obstacles == 0 { any_length } else { longest_beside };
            let found: Vec<usize> = unknown(frames, own, longest).take(left).collect();
            left -= found.len();
            found.into_iter().for_each(|pfn| frames[pfn] = Frame::head(State::Cached));
        }
    }
}

/// A run of this length without a flag beside obstacles is a buffer: a CPU takes fewer pages at a
/// time.
const LONG_RUN: usize = 64;

/// The frames of a range without a flag, in runs shorter than `longest`.
fn unknown(frames: &[Frame], range: Range<usize>, longest: usize) -> impl Iterator<Item = usize> {
    let mut at = range.start;
    frames[range].chunk_by(|a, b| a.state() == b.state()).flat_map(move |run| {
        let start = at;
        at += run.len();
        let wanted = run[0].state() == State::Unknown && run.len() < longest;
        if wanted { start..at } else { start..start }
    })
}

/// Rule 4: joins free frames to blocks.
pub(super) fn free_blocks(frames: &mut [Frame], zone: &FoundZone) {
    let range = within(frames, zone);
    let max_order = zone.free.len().saturating_sub(1);
    let mut at = range.start;
    while at < range.end {
        let state = frames[at].state();
        if !state.joins() {
            at += 1;
            continue;
        }
        let run = frames[at..range.end].iter().take_while(|f| f.state() == state).count();
        let end = at + run;
        while at < end {
            let pages = largest_block(at, end - at, max_order);
            frames[at] = Frame::head(state);
            frames[at + 1..at + pages].fill(Frame::tail(state));
            at += pages;
        }
    }
}

/// Makes aligned blocks of compound pages, each within a pageblock: one that changed while it was
/// read is none any more, and a larger one counts once in each pageblock.
pub(super) fn compound_pages(frames: &mut [Frame], block_order: usize) {
    let mut at = 0;
    while at < frames.len() {
        let state = frames[at].state();
        let len = 1 + frames[at + 1..].iter().take_while(|f| f.is_tail()).count();
        let end = at + len;
        while at < end {
            let pages = largest_block(at, end - at, block_order);
            frames[at] = Frame::head(state);
            frames[at + 1..at + pages].fill(Frame::tail(state));
            at += pages;
        }
    }
}

/// Rule 5: gives pageblocks their types.
pub(super) fn types(types: &mut [MigrateType], frames: &[Frame], zone: &FoundZone, pages_per_block: usize) {
    let range = within(frames, zone);
    let mut blocks: Vec<(Reverse<usize>, usize, usize)> = Vec::new();
    for block in range.start / pages_per_block..range.end.div_ceil(pages_per_block) {
        let own = (block * pages_per_block).max(range.start)..((block + 1) * pages_per_block).min(range.end);
        let count = |wanted: fn(State) -> bool| frames[own.clone()].iter().filter(|f| wanted(f.state())).count();
        let in_use = |s: State| {
            s.is_obstacle() && !matches!(s, State::Hole | State::NotManaged | State::Reserved | State::Offline)
        };
        let (obstacles, slab) = (count(in_use), count(|s| s == State::Slab));
        if obstacles > 0 {
            blocks.push((Reverse(obstacles), block, slab));
        }
    }
    blocks.sort_unstable();
    let half = pages_per_block / 2;
    let others = match zone.blocks {
        Some(of) => {
            let [unmovable, reclaimable] = [MigrateType::Unmovable, MigrateType::Reclaimable].map(|t| of[t.index()]);
            (unmovable + reclaimable) as usize
        }
        None => blocks.iter().filter(|(Reverse(obstacles), ..)| *obstacles >= half).count(),
    };
    blocks.truncate(others);
    let mut others = blocks;
    // By the share of slab, the smallest first; whole numbers, so that there is one order.
    others.sort_unstable_by_key(|(Reverse(obstacles), block, slab)| (slab * pages_per_block / obstacles, *block));
    let unmovable = match zone.blocks {
        Some(of) => of[MigrateType::Unmovable.index()] as usize,
        None => others.iter().filter(|(Reverse(obstacles), _, slab)| slab < obstacles).count(),
    };
    for (i, (_, block, _)) in others.iter().enumerate() {
        types[*block] = if i < unmovable { MigrateType::Unmovable } else { MigrateType::Reclaimable };
    }
}

fn within(frames: &[Frame], zone: &FoundZone) -> Range<usize> {
    let range = zone.frames();
    range.start.min(frames.len())..range.end.min(frames.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(text: &str) -> Vec<Frame> {
        text.bytes().map(|b| Frame::head(State::of_letter(b).expect("a letter"))).collect()
    }

    fn letters(frames: &[Frame]) -> String {
        frames.iter().map(|f| char::from(f.state().letter())).collect()
    }

    fn zone(len: usize) -> FoundZone {
        FoundZone {
            node: 0,
            name: "Normal".into(),
            start: 0,
            spanned: len as u64,
            present: len as u64,
            managed: len as u64,
            marks: [0; 4],
            boost: 0,
            protection: [0; 2],
            cached: 0,
            deferred: 0,
            free: vec![0; 4],
            blocks: None,
        }
    }

    #[test]
    fn a_frame_without_flags_outside_memory_is_a_hole() {
        let mut found = frames("uuaauuuu");
        holes(&mut found, [2..5, 6..7].into_iter());
        assert_eq!(letters(&found), "..aau.u.");
    }

    #[test]
    fn the_longest_runs_without_a_flag_are_those_the_allocator_was_not_given() {
        let mut found = frames("ruuaauuuuaauuuuuu");
        let zone = FoundZone { managed: 17 - 8, ..zone(17) };
        not_managed(&mut found, &zone, 4);
        assert_eq!(letters(&found), "ruuaauuuxaaxxxxxx");
    }

    #[test]
    fn of_the_runs_without_a_flag_the_longest_are_those_that_the_allocator_gets_when_they_are_wanted() {
        let mut found = frames("ruuaauuuuaauuuuuu");
        let zone = FoundZone { managed: 17 - 9, deferred: 6, ..zone(17) };
        not_managed(&mut found, &zone, 4);
        assert_eq!(letters(&found), "ruuaauuxxaaiiiiii");
        // Memory that a guest has not accepted is managed.
        let mut found = frames("ruuaauuuuaauuuuuu");
        not_managed(&mut found, &FoundZone { managed: 16, ..zone }, 4);
        assert_eq!(letters(&found), "ruuaauuuuaaiiiiii");
    }

    #[test]
    fn pages_on_cpu_lists_are_looked_for_where_there_are_the_fewest_obstacles() {
        let mut found = frames("suautuuuaauaaaaa");
        let zone = FoundZone { cached: 2, ..zone(16) };
        cached(&mut found, &zone, 4);
        assert_eq!(letters(&found), "scautuuuaacaaaaa");
    }

    #[test]
    fn beside_obstacles_a_long_run_without_a_flag_is_a_buffer_and_elsewhere_a_list() {
        let (run, rest) = ("u".repeat(LONG_RUN), "a".repeat(LONG_RUN));
        let mut found = frames(&format!("{run}{rest}{run}s{}", &rest[1..]));
        let zone = FoundZone { cached: LONG_RUN as u64, ..zone(4 * LONG_RUN) };
        cached(&mut found, &zone, 2 * LONG_RUN);
        assert_eq!([0, 2 * LONG_RUN].map(|pfn| found[pfn].state()), [State::Cached, State::Unknown]);
    }

    #[test]
    fn free_frames_that_touch_form_the_largest_aligned_blocks() {
        let mut found = frames("aFFFFFFFFFFFFFFFFFFFFa");
        free_blocks(&mut found, &zone(22));
        let heads: Vec<usize> = (0..22).filter(|i| !found[*i].is_tail()).collect();
        assert_eq!(heads, [0, 1, 2, 4, 8, 16, 20, 21]);
    }

    #[test]
    fn a_compound_page_is_a_block_in_each_pageblock_it_covers() {
        let mut found = [vec![Frame::head(State::Anon)], vec![Frame::tail(State::Anon); 9]].concat();
        compound_pages(&mut found, 2);
        let heads: Vec<usize> = (0..10).filter(|i| !found[*i].is_tail()).collect();
        assert_eq!(heads, [0, 4, 8]);
    }

    #[test]
    fn as_many_pageblocks_are_unmovable_and_reclaimable_as_the_kernel_says() {
        let found = frames("aaaasssssstaaaau");
        let mut inferred = vec![MigrateType::Movable; 4];
        types(&mut inferred, &found, &FoundZone { blocks: Some([1, 2, 1, 0]), ..zone(16) }, 4);
        use MigrateType::{Movable, Reclaimable, Unmovable};
        assert_eq!(inferred, [Movable, Reclaimable, Unmovable, Movable]);
    }
}
