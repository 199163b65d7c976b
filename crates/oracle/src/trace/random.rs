//! Random traces, for rules that nobody thought of testing.
//!
//! They are made for the recorded node: 2 GiB, nearly all of it free at the start.

use super::script::{Asked, Script};
use super::{Recipe, Request};

/// Pages of the recorded node that can be allocated, roughly: a few thousand are the kernel's, and
/// the last ones stay below the watermark.
pub(super) const NODE_PAGES: u64 = 511_700;

/// Traces made at random, by name.
pub const TRACES: &[Recipe] = &[
    Recipe {
        name: "mixed",
        what: "allocations and frees of all orders and types at random, between a third and three quarters of the node",
        ops: 100_000,
        sysctls: &[],
        make: mixed,
    },
    Recipe {
        name: "stress",
        what: "runs the node dry again and again: watermarks, and types that have to take from each other",
        ops: 200_000,
        sysctls: &[],
        make: stress,
    },
];

/// Orders as a kernel asks for them: mostly pages, ever fewer of the larger blocks.
const ORDERS: [(u8, usize); 11] =
    [(0, 600), (1, 120), (2, 90), (3, 70), (4, 40), (5, 20), (6, 10), (7, 10), (8, 8), (9, 7), (10, 4)];
/// Orders that leave small pieces.
const SMALL_ORDERS: [(u8, usize); 5] = [(0, 8), (1, 4), (2, 4), (3, 4), (4, 2)];

/// A type as often as on a machine at work.
pub(super) fn any_type(s: &mut Script) -> Request {
    s.random.weighted(&[(Request::MOVABLE, 11), (Request::UNMOVABLE, 6), (Request::RECLAIMABLE, 3)])
}

fn mixed(s: &mut Script) {
    let mut filling = true;
    while !s.is_full() {
        match s.pages_held() {
            held if held > NODE_PAGES * 3 / 4 => filling = false,
            held if held < NODE_PAGES / 3 => filling = true,
            _ => {}
        }
        if s.random.chance(if filling { 5 } else { 3 }, 8) {
            let (order, request) = (s.random.weighted(&ORDERS), any_type(s));
            s.alloc(order, request);
        } else {
            s.free_any();
        }
    }
}

/// Rounds of: large blocks until little is left, small ones until nothing is, and a good part given
/// back.
fn stress(s: &mut Script) {
    while !s.is_full() {
        let left = 6_000 + s.random.below(60_000) as u64;
        // Mostly of one type: then the others soon have nothing of their own.
        let main = any_type(s);
        let mut large: Vec<Asked> = Vec::new();
        while NODE_PAGES.saturating_sub(pages(&large)) > left && !s.is_full() {
            let order = s.random.weighted(&[(10, 20), (9, 6), (8, 1), (7, 1), (6, 1), (5, 1)]);
            let request = if s.random.chance(7, 8) { main } else { any_type(s) };
            large.push(s.ask(order, request));
        }
        for _ in 0..1 + s.random.below(3) {
            let main = any_type(s);
            dry_spell(s, left, main);
            // A share given back, sometimes in whole runs so that blocks merge, sometimes here and
            // there.
            let share = 1 + s.random.below(3);
            let mut small = s.take_held();
            if s.random.chance(1, 2) {
                s.random.shuffle(&mut small);
            }
            for (i, asked) in small.into_iter().enumerate() {
                if i / 16 % 4 < share { s.give_back(asked) } else { s.keep(asked) }
            }
        }
        let small = s.take_held();
        s.give_back_all(small);
        s.random.shuffle(&mut large);
        s.give_back_all(large);
    }
}

/// Small blocks, most of them of one type, until there are no more, and a little longer.
fn dry_spell(s: &mut Script, left: u64, main: Request) {
    // Of those held some were never had.
    let mut wanted = (left - s.pages_held().min(left) / 2) as i64;
    while wanted > 0 && !s.is_full() {
        let order = s.random.weighted(&SMALL_ORDERS);
        let request = if s.random.chance(4, 5) { main } else { any_type(s) };
        s.alloc(order, request);
        wanted -= 1 << order;
        if s.random.chance(1, 8) {
            s.free_any();
        }
    }
    let beyond = 200 + s.random.below(1_000);
    let mut refused = Vec::new();
    for _ in 0..beyond {
        let (order, request) = (s.random.weighted(&ORDERS), any_type(s));
        refused.push(s.ask(order, request));
        if s.random.chance(1, 4) {
            s.free_any();
        }
    }
    s.give_back_all(refused);
}

/// Pages asked for by these.
pub(super) fn pages(asked: &[Asked]) -> u64 {
    asked.iter().map(|a| u64::from(a.order.pages())).sum()
}
