//! Page cache beside block allocations.

use super::script::Script;
use super::{BOTH, DIRECT, PAGES};
use crate::trace::lru::{Asks, LruOp};
use crate::trace::{BlockId, Request};

/// Page cache, read at random, beside a growing cache with a shrinker.
pub fn objects(s: &mut Script, request: Request) {
    let object = Request::RECLAIMABLE.with(Request::DIRECT).with(Request::RETRY);
    (0..PAGES / 3).for_each(|i| s.add(1, i, request));
    while !s.is_full() {
        if s.random.chance(1, 3) {
            s.write(LruOp::Object(object.into()));
        } else {
            let i = s.skewed(PAGES * 3 / 2);
            s.read(0, i, request);
        }
    }
}

/// Fills the node with `pages` of page cache and frees some at random; then unmovable memory takes
/// pieces of movable blocks. `each` adds operations to every round.
pub fn boosting(s: &mut Script, pages: u32, mut each: impl FnMut(&mut Script)) {
    (0..pages).for_each(|i| s.add(0, i, BOTH));
    let stays = [Request::UNMOVABLE, Request::RECLAIMABLE].map(|r| r.with(Request::KSWAPD).with(Request::DIRECT));
    let mut held: Vec<BlockId> = Vec::new();
    while !s.is_full() {
        each(s);
        let from = s.below(pages);
        (from..from + 40).filter(|i| i % 3 != 0).for_each(|i| s.truncate(0, i));
        for _ in 0..20 + s.random.below(60) {
            let order = s.random.weighted(&[(0, 6), (1, 3), (2, 2), (3, 2)]);
            let request = stays[s.random.below(2)].with(Request::RETRY);
            held.push(s.alloc(order, request.into()));
            if s.random.chance(2, 3) {
                let i = s.skewed(pages);
                s.read(0, i, BOTH);
            }
        }
        // Not so much that no room is left for page cache.
        while held.len() > 4_000 {
            let i = s.random.below(held.len());
            let id = held.swap_remove(i);
            s.write(LruOp::Free(id));
        }
    }
}

/// Fills the node with active and inactive page cache, with holes; then allocates and frees blocks
/// of one order while page cache is read.
pub fn requests(s: &mut Script, order: u8, most_held: usize) {
    (0..PAGES).for_each(|i| s.add(0, i, DIRECT));
    for _ in 0..PAGES / 4 {
        let i = s.skewed(PAGES);
        s.read(0, i, DIRECT);
    }
    let mut held = std::collections::VecDeque::new();
    while !s.is_full() {
        let of = s.random.weighted(&[(Request::MOVABLE, 3), (Request::UNMOVABLE, 1)]);
        let mut request = of.with(Request::DIRECT).with(Request::RETRY);
        if s.random.chance(1, 4) {
            request = request.with(Request::KSWAPD);
        }
        held.push_back(s.alloc(order, request.into()));
        if held.len() > most_held
            && let Some(id) = held.pop_front()
        {
            s.write(LruOp::Free(id));
        }
        for _ in 0..s.random.below(if order < 4 { 6 } else { 200 }) {
            let i = s.skewed(PAGES);
            s.read(0, i, DIRECT);
        }
    }
}

/// Fills two zones with memory of three types, some of it for the lower zone alone; then adds page
/// cache.
pub fn two_zones(s: &mut Script) {
    let low = |request: Request| Asks { request, dma32: true };
    let mut held: Vec<BlockId> = Vec::new();
    let mut stream = 0;
    while !s.is_full() {
        let types = [(Request::MOVABLE, 5), (Request::UNMOVABLE, 2), (Request::RECLAIMABLE, 1)];
        let mut request = s.random.weighted(&types).with(Request::DIRECT).with(Request::RETRY);
        if s.random.chance(3, 4) {
            request = request.with(Request::KSWAPD);
        }
        match s.random.below(16) {
            0..2 => {
                let order = s.random.weighted(&[(0, 8), (1, 3), (2, 2), (3, 2), (5, 1)]);
                held.push(s.alloc(order, request.into()));
            }
            2 => {
                let order = s.random.weighted(&[(0, 4), (1, 1)]);
                held.push(s.alloc(order, low(request)));
            }
            3 => {
                let index = s.skewed(PAGES);
                s.read_folio(2, index, 0, low(BOTH));
            }
            4..10 => {
                let i = s.skewed(PAGES * 2);
                s.read(0, i, BOTH);
            }
            _ => {
                s.add(1, stream, BOTH);
                stream += 1;
            }
        }
        while held.len() > 5_000 {
            let i = s.random.below(held.len());
            let id = held.swap_remove(i);
            s.write(LruOp::Free(id));
        }
    }
}
