//! Traces that move from CPU to CPU.

use super::script::Script;
use super::{BOTH, DIRECT, PAGES};
use crate::trace::lru::LruOp;
use crate::trace::{BlockId, Request};

/// Orders as a kernel asks for them, small ones more often.
pub const ORDERS: [(u8, usize); 7] = [(0, 40), (1, 8), (2, 5), (3, 4), (4, 2), (6, 1), (9, 1)];
/// Pages that [`last_pages`] leaves to be taken one by one.
const LAST: u32 = 1_500;

/// Now and then goes on on another of `cpus`, and seldom has all CPUs, or the one it is on, empty
/// what they keep.
pub fn wander(s: &mut Script, cpus: u32) {
    stay(s, cpus);
    // Of more than two CPUs the scheduler says which comes when.
    if cpus == 2 && s.random.chance(1, 700) {
        s.write(LruOp::DrainAll);
    }
    if s.random.chance(1, 900) {
        s.write(LruOp::DrainPages);
    }
    if s.random.chance(1, 400) {
        s.write(LruOp::Fold);
    }
}

/// Now and then goes on on another of the first `cpus`.
pub fn stay(s: &mut Script, cpus: u32) {
    if cpus > 1 && s.random.chance(1, 12) {
        let to = s.below(cpus);
        s.write(LruOp::Cpu(to as u8));
    }
}

/// A type as often as on a machine at work.
pub fn any_type(s: &mut Script) -> Request {
    s.random.weighted(&[(Request::MOVABLE, 11), (Request::UNMOVABLE, 6), (Request::RECLAIMABLE, 3)])
}

/// Allocates and frees blocks of all sizes and types, between a third and nearly all of the node.
pub fn blocks(s: &mut Script, cpus: u32) {
    let mut held: Vec<(BlockId, u8)> = Vec::new();
    let (mut pages, mut filling) = (0, true);
    while !s.is_full() {
        wander(s, cpus);
        // In runs: a list of a CPU fills up, or runs dry.
        for _ in 0..1 + s.random.below(40) {
            if pages > PAGES * 9 / 10 {
                filling = false;
            } else if pages < PAGES / 3 {
                filling = true;
            }
            if s.random.chance(if filling { 5 } else { 3 }, 8) {
                let (order, request) = (s.random.weighted(&ORDERS), any_type(s));
                held.push((s.alloc(order, request.into()), order));
                pages += 1 << order;
            } else if !held.is_empty() {
                let i = s.random.below(held.len());
                let (id, order) = held.swap_remove(i);
                s.write(LruOp::Free(id));
                pages -= 1 << order;
            }
        }
    }
}

/// Takes all but the last pages, and then those back and forth: by requests that only take free
/// ones, that wake kswapd, and that reclaim page cache themselves.
pub fn last_pages(s: &mut Script, cpus: u32) {
    const CACHED: u32 = 6_000;
    (0..CACHED).for_each(|i| s.add(0, i, DIRECT));
    for _ in 0..(PAGES - CACHED - LAST) >> 4 {
        s.alloc(4, Request::UNMOVABLE.into());
    }
    let mut held: Vec<BlockId> = Vec::new();
    while !s.is_full() {
        wander(s, cpus);
        let n = 1 + s.random.below(30);
        for _ in 0..n.min(held.len()) {
            let i = s.random.below(held.len());
            let id = held.swap_remove(i);
            s.write(LruOp::Free(id));
        }
        for _ in 0..n + s.random.below(4) {
            let rights = s.random.weighted(&[
                (Request::UNMOVABLE, 12),
                (Request::HIGH, 2),
                (Request::KSWAPD, 3),
                (Request::DIRECT.with(Request::RETRY), 2),
            ]);
            let order = s.random.weighted(&[(0, 8), (1, 3), (2, 2), (3, 2), (4, 1)]);
            let request = any_type(s).with(rights);
            held.push(s.alloc(order, request.into()));
        }
        if s.random.chance(1, 4) {
            let i = s.below(CACHED);
            s.read(0, i, BOTH);
        }
        // What failed is among those held, too.
        if held.len() > 3_000 {
            held.drain(..1_500).collect::<Vec<_>>().into_iter().for_each(|id| s.write(LruOp::Free(id)));
        }
    }
}
