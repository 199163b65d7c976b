//! The places of a zone's free blocks and of its pageblocks' types: as the counts demand, and else
//! drawn at random.
//!
//! A free block's buddy is never free, or both would be one block of the next order. So the largest
//! blocks come first, and of each region of the next order that is not taken one half at most
//! becomes a free block. The other half is left for smaller ones. Where blocks go decides nothing
//! of how many still fit, so whatever a zone had finds room again.

use super::super::frames::{BLOCK, Frames};
use super::zones::{HostZone, MOVABLE, TYPES};
use kontig_program::SplitMix64;
use std::ops::Range;

const HUGE: usize = 9;
const MAX: usize = 10;

/// A place that a free block may have: its first frame.
type Place = usize;

/// Draws the pageblocks' types and the frames of the free blocks.
pub(super) fn place(
    zone: &HostZone,
    blocks: &[usize],
    frames: &mut Frames,
    random: &mut SplitMix64,
) -> Result<Vec<Range<usize>>, String> {
    let mut free = Vec::new();
    let rest = whole_blocks(zone, blocks, frames, random, &mut free)?;
    let mut pools = by_type(zone, rest, frames, random);
    for order in (0..HUGE).rev() {
        place_order(zone, order, &mut pools, random, &mut free)?;
    }
    Ok(free)
}

fn block_of(first: Place, order: usize) -> Range<usize> {
    first..first + (1 << order)
}

fn no_room(order: usize) -> String {
    format!("there is no room for the free blocks of order {order}: the machine is too small")
}

/// Places blocks of a whole pageblock or two. Returns the pageblocks that are left; what the
/// firmware has a part of is no place.
fn whole_blocks(
    zone: &HostZone,
    blocks: &[usize],
    frames: &mut Frames,
    random: &mut SplitMix64,
    free: &mut Vec<Range<usize>>,
) -> Result<Vec<usize>, String> {
    let is_whole = |block: &usize| frames.of_block(*block).len() == BLOCK;
    let whole: Vec<usize> = blocks.iter().copied().filter(is_whole).collect();
    // Pairs that could be one block; others have no buddy.
    let (mut pairs, mut single, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = whole.as_slice();
    while let [first, others @ ..] = left {
        let is_pair = first % 2 == 0 && others.first() == Some(&(first + 1));
        if is_pair { &mut pairs } else { &mut single }.push(*first);
        left = &others[usize::from(is_pair)..];
    }
    random.shuffle(&mut pairs);
    for (of, migratetype) in zone.free.iter().zip(TYPES) {
        for _ in 0..of[MAX] {
            let first = pairs.pop().ok_or_else(|| no_room(MAX))?;
            free.push(block_of(first * BLOCK, MAX));
            frames.types[first..first + 2].fill(migratetype);
        }
    }
    for (of, migratetype) in zone.free.iter().zip(TYPES) {
        for _ in 0..of[HUGE] {
            let first = match pairs.pop() {
                Some(first) => {
                    let half = random.index(2);
                    rest.push(first + 1 - half);
                    first + half
                }
                None => single.pop().ok_or_else(|| no_room(HUGE))?,
            };
            free.push(block_of(first * BLOCK, HUGE));
            frames.types[first] = migratetype;
        }
    }
    rest.extend(pairs.into_iter().flat_map(|first| [first, first + 1]).chain(single));
    Ok(rest)
}

/// Gives pageblocks that are left their types, and makes them the places for smaller blocks of
/// their type.
fn by_type(
    zone: &HostZone,
    mut rest: Vec<usize>,
    frames: &mut Frames,
    random: &mut SplitMix64,
) -> [Vec<Place>; TYPES.len()] {
    rest.sort_unstable();
    random.shuffle(&mut rest);
    let mut pools: [Vec<Place>; TYPES.len()] = Default::default();
    for (t, migratetype) in TYPES.into_iter().enumerate().filter(|(t, _)| *t != MOVABLE) {
        let whole = zone.free[t][HUGE] + 2 * zone.free[t][MAX];
        let wanted = zone.of_type.map_or(0, |of| of[t]).saturating_sub(whole) as usize;
        for block in rest.drain(rest.len() - wanted.min(rest.len())..) {
            frames.types[block] = migratetype;
            pools[t].push(block * BLOCK);
        }
    }
    pools[MOVABLE] = rest.into_iter().map(|block| block * BLOCK).collect();
    pools
}

/// Places the free blocks of one order. `pools` has the regions of the next order that are not
/// taken, by type, and then has those of this order.
fn place_order(
    zone: &HostZone,
    order: usize,
    pools: &mut [Vec<Place>; TYPES.len()],
    random: &mut SplitMix64,
    free: &mut Vec<Range<usize>>,
) -> Result<(), String> {
    let mut wanted = zone.free.map(|of| of[order] as usize);
    let mut spilled = 0;
    // A list of older kernels may have more than the pageblocks of its type hold.
    for (wanted, pool) in wanted.iter_mut().zip(pools.iter()) {
        spilled += wanted.saturating_sub(pool.len());
        *wanted = pool.len().min(*wanted);
    }
    for t in [MOVABLE, 2, 0] {
        let room = pools[t].len() - wanted[t];
        wanted[t] += spilled.min(room);
        spilled -= spilled.min(room);
    }
    if spilled > 0 {
        return Err(no_room(order));
    }
    for (pool, wanted) in pools.iter_mut().zip(wanted) {
        random.choose(pool, wanted);
        let mut halves = Vec::with_capacity(pool.len() * 2 - wanted);
        for (i, first) in pool.drain(..).enumerate() {
            let places = [first, first + (1 << order)];
            if i < wanted {
                let half = random.index(2);
                free.push(block_of(places[half], order));
                halves.push(places[1 - half]);
            } else {
                halves.extend(places);
            }
        }
        *pool = halves;
    }
    Ok(())
}
