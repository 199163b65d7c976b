//! Traces of the multi-generational LRU.

use super::script::Script;
use crate::trace::lru::{FilePage, LruOp, ProcessPage, Swappiness};
use crate::trace::{BlockId, Request};
use kontig_mm::Order;
use std::collections::VecDeque;

/// A request that reclaims directly.
const READS: Request = Request::MOVABLE.with(Request::DIRECT).with(Request::RETRY);

/// Errors among the commands are part of it: a fifth generation, a generation that is too young.
fn command(s: &mut Script, pages: u32) {
    let swappiness = match s.below(6) {
        0 => Swappiness::OF_MACHINE,
        1 => Swappiness::new(0),
        2 => Swappiness::new(1),
        3 => Swappiness::new(200),
        _ => Swappiness::new(1 + s.below(199) as u8),
    };
    if s.random.chance(2, 5) {
        let force = s.random.chance(1, 3);
        return s.write(LruOp::Age { swappiness, force });
    }
    let beyond = Order::new(u8::from(s.random.chance(1, 4)));
    let pages = 1 + s.below(pages);
    s.write(LruOp::Evict { beyond, swappiness, pages });
}

/// Pages of two files and of a process, used once to six times. There is room for all of them:
/// only commands age and evict.
pub fn commands(s: &mut Script, pages: u32) {
    const SLOW: u8 = 1;
    s.write(LruOp::Device { file: SLOW, slow: true });
    while !s.is_full() {
        let (file, index) = (u8::from(s.random.chance(1, 4)), s.skewed(pages));
        match s.random.below(16) {
            0..6 => (0..1 + s.below(6)).for_each(|_| s.read(file, index, READS)),
            6..8 => (index..index + 8).for_each(|i| s.add(file, i, READS)),
            8..12 => {
                let page = s.skewed(pages);
                let writes = s.random.chance(1, 2);
                s.access(page, writes);
            }
            12 => s.truncate(file, index),
            13 => {
                let page = FilePage { file, index };
                s.write(LruOp::Dirty(page));
                if s.random.chance(1, 2) {
                    s.write(LruOp::Writeback(page));
                    s.write(LruOp::Written(page));
                }
            }
            14 => {
                let page = s.skewed(pages);
                s.write(LruOp::Drop(ProcessPage(page)));
                s.access(page, true);
            }
            _ if s.random.chance(1, 2) => {
                command(s, pages / 8);
                if s.random.chance(1, 60) {
                    s.write(LruOp::Dump);
                }
            }
            _ if s.random.chance(1, 40) => s.write(LruOp::Finish(64)),
            _ => s.write(LruOp::Drain),
        }
    }
}

/// Among other operations, a command one time in this many.
pub fn sometimes(s: &mut Script, one_in: usize, pages: u32) {
    if s.random.chance(1, one_in) {
        command(s, pages / 8);
    }
}

/// Beside files in large folios: a page of a process's memory one time in four, seldom folios of
/// five uses, and commands.
pub fn beside_folios(s: &mut Script, pages: u32) {
    if s.random.chance(1, 4) {
        let (page, writes) = (s.skewed(pages), s.random.chance(1, 2));
        s.access(page, writes);
    }
    if s.random.chance(1, 40) {
        let (order, index) = (s.random.weighted(&[(2, 2), (4, 1), (6, 1)]), s.skewed(4_000));
        let asks = READS.with(Request::KSWAPD).into();
        (0..5).for_each(|_| s.read_folio(order, index, order, asks));
    }
    sometimes(s, 300, 8 * pages);
}

/// Five uses of a page of a file, one time in 200.
pub fn used_often(s: &mut Script, pages: u32) {
    if s.random.chance(1, 200) {
        let i = s.skewed(pages);
        (0..5).for_each(|_| s.read(0, i, READS.with(Request::KSWAPD)));
    }
}

/// Rounds of commands that evict a part of the oldest generation, and uses of what was there:
/// refaults while that generation is still the oldest, in every tier.
pub fn tiers(s: &mut Script, pages: u32) {
    while !s.is_full() {
        for _ in 0..pages / 2 {
            let index = s.skewed(pages);
            if s.random.chance(1, 3) {
                s.access(index, true);
            } else {
                let uses = 1 + index % 5;
                (0..uses).for_each(|_| s.read(0, index, READS));
            }
        }
        if s.random.chance(1, 2) {
            s.write(LruOp::Age { swappiness: Swappiness::OF_MACHINE, force: false });
        }
        let swappiness = Swappiness::new(40 + s.below(120) as u8);
        for _ in 0..4 {
            s.write(LruOp::Evict { beyond: Order::new(0), swappiness, pages: pages / 16 });
            for _ in 0..pages / 16 {
                let index = s.skewed(pages);
                if s.random.chance(1, 3) { s.access(index, true) } else { s.read(0, index, READS) }
            }
        }
    }
}

/// Large blocks, for which there is no room, once memory has been in use for a while.
pub fn large_blocks(s: &mut Script, held: &mut VecDeque<BlockId>) {
    if s.is_at(60) && s.random.chance(1, 60) {
        let order = s.random.weighted(&[(4, 1), (9, 3)]);
        held.push_back(s.alloc(order, READS.into()));
        if held.len() > 20
            && let Some(block) = held.pop_front()
        {
            s.write(LruOp::Free(block));
        }
    }
}
