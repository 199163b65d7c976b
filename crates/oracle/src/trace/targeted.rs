//! Targeted traces, each for rules that random traces hardly exercise.
//!
//! A rule shows only where it decides which block comes next: at a watermark, at the last entry of
//! a list, at the page that makes half a pageblock. Each trace goes to such a point and stays near
//! it. The generator does not know how many pages the node has left, so a trace allocates until
//! requests fail and starts from there.

use super::random::{NODE_PAGES, any_type, pages};
use super::script::{Asked, Script};
use super::{Recipe, Request};
use kontig_mm::types::PAGEBLOCK_PAGES;

/// Traces made for single rules, by name.
pub const TRACES: &[Recipe] = &[
    Recipe {
        name: "pcp-free-runs",
        what: "long runs of frees, broken by single allocations: how much a full per-CPU list gives back grows with \
               every overflow in a row up to a limit, and is halved by every allocation",
        ops: 150_000,
        // With the list's normal limit the first large share empties it, and the limit of the
        // growth is never met.
        sysctls: &[("vm.percpu_pagelist_high_fraction", "8")],
        make: pcp_free_runs,
    },
    Recipe {
        name: "pcp-small-runs",
        what: "the same with the lists' own limits, and blocks of orders 1 to 3 in between: one of those freed after \
               an overflow empties all lists",
        ops: 100_000,
        sysctls: &[],
        make: pcp_small_runs,
    },
    Recipe {
        name: "pcp-order9",
        what: "huge pages of all types among blocks of orders 0 to 3: movable huge pages have a per-CPU list of their \
               own, other types share one, and a huge page fills most of what the lists may hold",
        ops: 60_000,
        sysctls: &[],
        make: pcp_order9,
    },
    Recipe {
        name: "watermark-walk",
        what: "the last pages, one by one, back and forth: the min mark to the page, with the part of the counter that \
               is not yet folded in, and what larger orders may not use",
        ops: 120_000,
        sysctls: &[],
        make: watermark_walk,
    },
    Recipe {
        name: "kswapd-walk",
        what: "the same by requests that may wake kswapd, which sleeps when the high mark is met: when it is woken, \
               and what its runs change",
        ops: 40_000,
        sysctls: &[],
        make: kswapd_walk,
    },
    Recipe {
        name: "reserves",
        what: "the last pages by requests of all rights in turn: who may go how far below the min mark",
        ops: 100_000,
        sysctls: &[],
        make: reserves,
    },
    Recipe {
        name: "boost",
        what: "types that have to take from each other below pageblock size: every time the marks rise by a pageblock, \
               up to one and a half times the high mark, until kswapd takes that back",
        ops: 100_000,
        sysctls: &[],
        make: boost,
    },
    Recipe {
        name: "highatomic",
        what: "atomic requests above order 0: each reserves its pageblock until one in a hundred is reserved, uses the \
               reserve first, and others have to leave it alone",
        ops: 100_000,
        sysctls: &[],
        make: highatomic,
    },
    Recipe {
        name: "nearly-empty",
        what: "a node with a few free pageblocks, orders 0 to 3 of all types: lists of one entry, short refills, and \
               whose block is taken when one's own type has none",
        ops: 120_000,
        sysctls: &[],
        make: nearly_empty,
    },
    Recipe {
        name: "all-freed",
        what: "a node filled with blocks of every order and freed upwards, downwards, by order and at random: \
               everything merges back, and the order of the lists says how",
        ops: 150_000,
        sysctls: &[],
        make: all_freed,
    },
    Recipe {
        name: "merge-tail",
        what: "blocks of orders 1 to 8 freed beside free and taken neighbours, then taken again: a block that may soon \
               merge once more goes to the tail of its list",
        ops: 100_000,
        sysctls: &[],
        make: merge_tail,
    },
    Recipe {
        name: "claim",
        what: "pageblocks half full to the page, some pages movable by their owner: who takes from another's block \
               takes it over when half of it is free or alike",
        ops: 200_000,
        // Otherwise the watermarks rise with the first few of them, and no more requests succeed.
        sysctls: &[("vm.watermark_boost_factor", "0")],
        make: claim,
    },
    Recipe {
        name: "alike",
        what: "movable pages filling the holes of other types' pageblocks, more of them with every round of holes: in \
               the end they and the holes together make half a pageblock",
        ops: 120_000,
        sysctls: &[("vm.watermark_boost_factor", "0")],
        make: alike,
    },
    Recipe {
        name: "claim-free",
        what: "the same without pages movable by their owner, which later kernels do not let a module have",
        ops: 200_000,
        sysctls: &[("vm.watermark_boost_factor", "0")],
        make: claim_free,
    },
];

const TYPES: [Request; 3] = [Request::UNMOVABLE, Request::RECLAIMABLE, Request::MOVABLE];

/// Pages requested beyond the expected number to make sure that the node is dry.
const BEYOND: u64 = 1_500;

/// Takes blocks of order 10 until about `left` pages are free.
fn all_but(s: &mut Script, left: u64, request: Request) -> Vec<Asked> {
    (0..(NODE_PAGES - left) / 1024).map(|_| s.ask(10, request)).collect()
}

/// Takes all of the node: large blocks, and the last `left` pages and more as `ask` asks for them.
fn run_dry(
    s: &mut Script,
    left: u64,
    request: Request,
    mut ask: impl FnMut(&mut Script) -> Asked,
) -> (Vec<Asked>, Vec<Asked>) {
    let large = all_but(s, left, request);
    let rest = NODE_PAGES - pages(&large) + BEYOND;
    let (mut small, mut taken) = (Vec::new(), 0);
    while taken < rest {
        let asked = ask(s);
        taken += u64::from(asked.order.pages());
        small.push(asked);
    }
    (large, small)
}

/// Asks for `n` pages one by one.
fn singles(s: &mut Script, n: usize, request: Request) -> Vec<Asked> {
    (0..n).map(|_| s.ask(0, request)).collect()
}

/// Frees these with runs of `run` in a row, and after each a few pages taken and freed again.
fn free_in_runs(s: &mut Script, mut asked: Vec<Asked>, longest: usize, orders: &[(u8, usize)]) {
    while !asked.is_empty() && !s.is_full() {
        let run = 1 + s.random.below(longest);
        for a in asked.split_off(asked.len().saturating_sub(run)) {
            s.give_back(a);
        }
        let breaks = s.random.below(7);
        for _ in 0..breaks {
            let (order, request) = (s.random.weighted(orders), any_type(s));
            let one = s.ask(order, request);
            if s.random.chance(1, 2) { s.give_back(one) } else { s.keep(one) }
        }
    }
    let kept = s.take_held();
    s.give_back_all(kept);
}

fn pcp_free_runs(s: &mut Script) {
    while !s.is_full() {
        let request = any_type(s);
        // Nearly as much as the lists hold at a fraction of 8, in few operations; then page by page
        // over the limit.
        let blocks: Vec<Asked> = (0..7_900).map(|_| s.ask(3, request)).collect();
        let n = 12_000 + s.random.below(6_000);
        let mut asked = singles(s, n, request);
        s.random.shuffle(&mut asked[..2_000]);
        s.give_back_all(blocks);
        free_in_runs(s, asked, 12_000, &[(0, 1)]);
    }
}

fn pcp_small_runs(s: &mut Script) {
    while !s.is_full() {
        let request = any_type(s);
        let n = 4_000 + s.random.below(10_000);
        let mut asked = singles(s, n, request);
        for _ in 0..200 {
            let (order, request) = (1 + s.random.below(3) as u8, any_type(s));
            asked.push(s.ask(order, request));
        }
        let at = asked.len() - 1_500;
        s.random.shuffle(&mut asked[at..]);
        free_in_runs(s, asked, 5_000, &[(0, 4), (1, 2), (2, 1), (3, 1)]);
    }
}

fn pcp_order9(s: &mut Script) {
    while !s.is_full() {
        let filling = s.random.chance(1, 2);
        for _ in 0..s.random.below(60) {
            if s.random.chance(if filling { 5 } else { 3 }, 8) && s.pages_held() < NODE_PAGES * 9 / 10 {
                let order = s.random.weighted(&[(9, 5), (0, 6), (1, 3), (2, 2), (3, 2), (10, 1)]);
                let request = any_type(s);
                s.alloc(order, request);
            } else {
                s.free_any();
            }
        }
    }
}

/// Orders of a walk: those of 4 and more pass the per-CPU lists by, those below move the marks'
/// counter when the lists fill up or are emptied.
const WALKED: [(u8, usize); 6] = [(0, 8), (1, 3), (2, 2), (3, 2), (4, 3), (5, 1)];

/// Takes the last pages and then a few back and forth, by requests that `right` makes of their
/// type.
fn walk(s: &mut Script, left: u64, mut right: impl FnMut(&mut Script, Request) -> Request) {
    let main = any_type(s);
    let mut ask = |s: &mut Script| {
        let (order, request) = (s.random.weighted(&WALKED), if s.random.chance(3, 4) { main } else { any_type(s) });
        let request = right(s, request);
        s.ask(order, request)
    };
    let (large, small) = run_dry(s, left, main, &mut ask);
    small.into_iter().for_each(|a| s.keep(a));
    for _ in 0..300 {
        let n = 1 + s.random.below(60);
        (0..n).for_each(|_| s.free_any());
        // A few more than were freed: what fails stays among those held, and its free will be
        // skipped.
        for _ in 0..n + s.random.below(5) {
            let asked = ask(s);
            s.keep(asked);
        }
        if s.is_full() {
            return;
        }
    }
    let small = s.take_held();
    s.give_back_all(small);
    s.give_back_all(large);
}

fn watermark_walk(s: &mut Script) {
    while !s.is_full() {
        walk(s, 6_000, |_, request| request);
    }
}

fn kswapd_walk(s: &mut Script) {
    while !s.is_full() {
        walk(s, 5_000, |_, request| request.with(Request::KSWAPD));
    }
}

fn reserves(s: &mut Script) {
    const RIGHTS: [(Request, usize); 5] = [
        (Request::UNMOVABLE, 4),
        (Request::HIGH, 4),
        (Request::RETRY, 2),
        (Request::HIGH.with(Request::RETRY), 1),
        (Request::HIGH.with(Request::ATOMIC), 2),
    ];
    while !s.is_full() {
        walk(s, 5_000, |s, request| request.with(s.random.weighted(&RIGHTS)));
    }
}

/// Orders that fill a node quickly and leave it in small pieces when some come free.
const PIECES: [(u8, usize); 5] = [(0, 4), (1, 2), (2, 2), (3, 2), (4, 1)];

fn boost(s: &mut Script) {
    while !s.is_full() {
        let own = s.random.below(3);
        let (own, other) = (TYPES[own], TYPES[(own + 1 + s.random.below(2)) % 3]);
        let (large, small) = run_dry(s, 40_000, own, |s| {
            let order = s.random.weighted(&PIECES);
            s.ask(order, own)
        });
        // Half of it comes free in runs: pieces below pageblock size, all of them the wrong type
        // for the others, and enough of them that kswapd finds the node balanced and only has to
        // reclaim the boost.
        let run = 1 << s.random.below(5);
        for (i, a) in small.into_iter().enumerate() {
            if (i / run).is_multiple_of(2) { s.give_back(a) } else { s.keep(a) }
        }
        for _ in 0..60 {
            // Boosted by those that may not wake kswapd, taken back when one has to steal that may.
            for _ in 0..10 + s.random.below(60) {
                let order = s.random.weighted(&[(0, 4), (1, 2), (2, 2), (3, 2), (4, 2), (5, 1)]);
                let request = if s.random.chance(7, 8) { other } else { own };
                let wakes = s.random.chance(1, 12);
                s.alloc(order, if wakes { request.with(Request::KSWAPD) } else { request });
            }
            for _ in 0..s.random.below(80) {
                s.free_any();
            }
        }
        let small = s.take_held();
        s.give_back_all(small);
        s.give_back_all(large);
    }
}

fn highatomic(s: &mut Script) {
    const ORDERS: [(u8, usize); 6] = [(0, 4), (1, 4), (2, 2), (3, 2), (4, 1), (5, 1)];
    while !s.is_full() {
        let main = any_type(s);
        // Below the low mark atomic requests reserve; so that is where this begins.
        let left = 6_000 + s.random.below(10_000) as u64;
        let (large, small) = run_dry(s, left, main, |s| {
            let (order, request) = (s.random.weighted(&ORDERS), any_type(s));
            s.ask(order, request)
        });
        small.into_iter().for_each(|a| s.keep(a));
        for _ in 0..60 {
            for _ in 0..s.random.below(90) {
                s.free_any();
            }
            for _ in 0..s.random.below(100) {
                let (order, request) = (s.random.weighted(&ORDERS), any_type(s));
                let atomic = s.random.chance(1, 3);
                s.alloc(order, if atomic { request.with(Request::HIGH).with(Request::ATOMIC) } else { request });
            }
        }
        let small = s.take_held();
        s.give_back_all(small);
        s.give_back_all(large);
    }
}

fn nearly_empty(s: &mut Script) {
    while !s.is_full() {
        let main = any_type(s);
        let left = 3_000 + s.random.below(4_000) as u64;
        let large = all_but(s, left, main);
        for _ in 0..100 {
            for _ in 0..s.random.below(300) {
                let order = s.random.weighted(&[(0, 8), (1, 4), (2, 3), (3, 3)]);
                let request = TYPES[s.random.below(3)];
                s.alloc(order, request);
            }
            let freed = s.random.below(320);
            (0..freed).for_each(|_| s.free_any());
            // Requests that failed are still among those held: without this nothing would be left
            // to free in the end.
            if s.pages_held() > 2 * left {
                (0..s.blocks_held() / 2).for_each(|_| s.free_any());
            }
            if s.is_full() {
                return;
            }
        }
        let small = s.take_held();
        s.give_back_all(small);
        s.give_back_all(large);
    }
}

fn all_freed(s: &mut Script) {
    let mut round = 0;
    while !s.is_full() {
        let mut asked = Vec::new();
        while pages(&asked) < NODE_PAGES * 15 / 16 && !s.is_full() {
            let order = s.random.weighted(&[
                (0, 30),
                (1, 12),
                (2, 9),
                (3, 7),
                (4, 6),
                (5, 5),
                (6, 4),
                (7, 4),
                (8, 4),
                (9, 4),
                (10, 4),
            ]);
            let request = any_type(s);
            asked.push(s.ask(order, request));
        }
        match round % 4 {
            0 => {}
            1 => asked.reverse(),
            2 => asked.sort_by_key(|a| std::cmp::Reverse(a.order)),
            _ => s.random.shuffle(&mut asked),
        }
        s.give_back_all(asked);
        round += 1;
    }
}

fn merge_tail(s: &mut Script) {
    while !s.is_full() {
        let order = 1 + s.random.below(8) as u8;
        let request = any_type(s);
        let n = (8_192 >> order) + s.random.below(64);
        let mut asked: Vec<Asked> = (0..n).map(|_| s.ask(order, request)).collect();
        // Half of them come free, in pairs, alone, or at random; then blocks of this order and
        // below are taken.
        let pattern = s.random.below(4);
        let mut kept = Vec::new();
        for (i, a) in asked.drain(..).enumerate() {
            let free = match pattern {
                0 => i % 2 == 0,
                1 => i % 4 < 2,
                2 => i % 8 < 5,
                _ => s.random.chance(1, 2),
            };
            if free { s.give_back(a) } else { kept.push(a) }
        }
        for _ in 0..n / 2 {
            let smaller = s.random.below(usize::from(order) + 1) as u8;
            kept.push(s.ask(smaller, request));
            if s.random.chance(1, 4) {
                let i = s.random.below(kept.len());
                let a = kept.swap_remove(i);
                s.give_back(a);
            }
        }
        s.random.shuffle(&mut kept);
        s.give_back_all(kept);
    }
}

/// [`PAGEBLOCK_PAGES`] as the length of a slice.
const BLOCK: usize = PAGEBLOCK_PAGES as usize;

/// Chooses about half of a pageblock's pieces to free. Of single pages, 16 to 64 adjacent ones are
/// freed and the rest at random.
fn free_about_half(s: &mut Script, pieces: usize) -> Vec<bool> {
    let mut free = vec![false; pieces];
    let n = pieces * (28 + s.random.below(9)) / 64;
    free[..n].fill(true);
    s.random.shuffle(&mut free);
    let piece = 16 << s.random.below(3);
    if pieces >= 2 * piece {
        let from = s.random.below(pieces / piece) * piece;
        free[from..from + piece].fill(true);
    }
    free
}

fn claim(s: &mut Script) {
    claims(s, true);
}

fn claim_free(s: &mut Script) {
    claims(s, false);
}

fn claims(s: &mut Script, with_owned: bool) {
    while !s.is_full() {
        let own = s.random.below(3);
        let (own, other) = (TYPES[own], TYPES[(own + 1 + s.random.below(2)) % 3]);
        // Page by page, or in sixteens, which pass the per-CPU lists by; so that a run of them is
        // about a pageblock. Some of the movable pages are their owner's to move.
        let order = if s.random.chance(1, 2) { 4 } else { 0 };
        let owned_share = if with_owned && order == 0 { s.random.below(5) } else { 0 };
        let (large, small) = run_dry(s, (14 * BLOCK) as u64, own, |s| {
            let owned = own == Request::MOVABLE && s.random.chance(owned_share, 4);
            s.ask(order, if owned { own.with(Request::OWNED) } else { own })
        });
        let mut kept = Vec::new();
        for run in small.chunks(BLOCK >> order) {
            let free = free_about_half(s, run.len());
            for (a, free) in run.iter().zip(free) {
                if free { s.give_back(*a) } else { kept.push(*a) }
            }
        }
        for _ in 0..1_500 {
            let order = s.random.weighted(&[(0, 6), (1, 2), (2, 1), (3, 1), (4, 1)]);
            let request = if s.random.chance(4, 5) { other } else { any_type(s) };
            let owned = with_owned && order == 0 && request == Request::MOVABLE && s.random.chance(3, 4);
            s.alloc(order, if owned { request.with(Request::OWNED) } else { request });
            if s.random.chance(1, 4) && !kept.is_empty() {
                let i = s.random.below(kept.len());
                let a = kept.remove(i);
                s.give_back(a);
            }
            // Whole pieces come free beside pages that the others have taken meanwhile.
            if s.random.chance(1, 60) && kept.len() > 64 {
                let i = s.random.below(kept.len() - 48);
                kept.drain(i..i + 48).for_each(|a| s.give_back(a));
            }
        }
        let small = s.take_held();
        s.give_back_all(small);
        s.give_back_all(kept);
        s.give_back_all(large);
    }
}

fn alike(s: &mut Script) {
    const SIXTEENS: usize = BLOCK / 16;
    while !s.is_full() {
        let own = TYPES[s.random.below(2)];
        let (large, small) = run_dry(s, (24 * BLOCK) as u64, own, |s| s.ask(4, own));
        let mut blocks: Vec<Vec<Asked>> = small.chunks(SIXTEENS).map(<[Asked]>::to_vec).collect();
        blocks.iter_mut().for_each(|b| s.random.shuffle(b));
        for _ in 0..5 {
            let mut holes = 0;
            for block in &mut blocks {
                let n = (2 + s.random.below(6)).min(block.len());
                holes += n;
                block.drain(..n).for_each(|a| s.give_back(a));
            }
            (0..holes * 16).for_each(|_| s.alloc(0, Request::MOVABLE.with(Request::OWNED)));
        }
        let movable = s.take_held();
        s.give_back_all(movable);
        s.give_back_all(blocks.concat());
        s.give_back_all(large);
    }
}
