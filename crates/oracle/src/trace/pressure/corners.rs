//! Reclaim with little success, and reclaim for unusual requests.

use super::script::Script;
use super::{BOTH, DIRECT, PAGES, blocks};
use crate::trace::Request;
use crate::trace::lru::{FilePage, LruOp};

/// An unmovable request that reclaims directly.
const STAYS: Request = Request::UNMOVABLE.with(Request::DIRECT).with(Request::RETRY);
const ATOMIC: Request = Request::UNMOVABLE.with(Request::HIGH).with(Request::ATOMIC);

/// Allocates large blocks until about `left` pages of the node are free.
fn all_but(s: &mut Script, left: u32) {
    (0..(PAGES - left) / 1024).for_each(|_| {
        s.alloc(10, Request::UNMOVABLE.into());
    });
}

/// Little memory: dirty pages, fewer clean ones that are all active, and a few of a process. Then
/// requests until no active page is left, and further ones, some of which may not fail.
pub fn in_vain(s: &mut Script) {
    const DIRTY: u32 = 200;
    const ACTIVE: u32 = 160;
    all_but(s, 5_000);
    (0..40).for_each(|i| s.access(i, true));
    for index in 0..DIRTY {
        s.add(1, index, DIRECT);
        s.write(LruOp::Dirty(FilePage { file: 1, index }));
    }
    for i in 0..ACTIVE {
        s.read(0, i, DIRECT);
        s.touch(0, i);
    }
    s.write(LruOp::Drain);
    // Down to where atomic requests reserve a pageblock; then requests that may reclaim. The first
    // of these still find free pages.
    (0..300).for_each(|_| {
        s.alloc(4, Request::UNMOVABLE.into());
    });
    (0..400).for_each(|_| {
        s.alloc(0, Request::UNMOVABLE.into());
    });
    (0..4).for_each(|_| {
        s.alloc(3, ATOMIC.into());
    });
    while !s.is_full() {
        let rights = [(Request::UNMOVABLE, 56), (Request::NOFS, 1), (Request::NOIO, 1), (Request::NOFAIL, 1)];
        let right = s.random.weighted(&rights);
        s.alloc(0, STAYS.with(right).into());
    }
}

/// A process's memory and mostly active page cache fill what large blocks leave of the node; then
/// other types of memory are allocated while the process uses a part of its own.
pub fn boosting_beside_a_process(s: &mut Script, pages: u32) {
    const FILES: u32 = 9_000;
    all_but(s, 12_500);
    (0..pages).for_each(|i| s.access(i, true));
    (0..FILES * 2 / 3).for_each(|i| s.read(0, i, DIRECT));
    (0..FILES * 2 / 3).for_each(|i| s.touch(0, i));
    blocks::boosting(s, FILES, |s| {
        for _ in 0..40 {
            let page = s.skewed(pages);
            s.access(page, false);
        }
    });
}

/// Every pageblock has an unmovable page, and swap is full.
pub fn rights(s: &mut Script, pages: u32) {
    const FILES: u32 = 8_000;
    let stays = Request::MOVABLE.with(Request::DIRECT);
    (0..pages).for_each(|i| s.access(i, true));
    let mut index = 0;
    while index < FILES {
        (0..8).for_each(|i| s.add(0, index + i, DIRECT));
        index += 8;
        (0..16).for_each(|_| {
            s.alloc(0, stays.into());
        });
    }
    (0..40).for_each(|_| {
        s.alloc(4, Request::UNMOVABLE.into());
    });
    let huge = Request::MOVABLE.with(Request::DIRECT);
    for _ in 0..60 {
        let (order, request) = s.random.weighted(&[
            ((9, huge.with(Request::RETRY)), 3),
            ((9, huge.with(Request::POLICY)), 6),
            ((9, huge.with(Request::MAYFAIL)), 1),
            ((5, STAYS.with(Request::MAYFAIL)), 2),
            ((4, huge.with(Request::MAYFAIL).with(Request::NOFS)), 2),
            ((4, STAYS.with(Request::MAYFAIL).with(Request::NOIO)), 1),
        ]);
        s.alloc(order, request.into());
        let i = s.below(FILES);
        s.read(0, i, BOTH);
        let page = s.below(pages);
        s.access(page, false);
    }
    while !s.is_full() {
        s.alloc(0, STAYS.into());
    }
}

/// Nothing is left but a few dirty pages, and after every few requests one page less. Direct
/// reclaim scans all of them in vain, some of them active; where these are no more than the
/// inactive ones, only its second pass scans the active list.
pub fn second_pass(s: &mut Script) {
    const DIRTY: u32 = 60;
    let once = Request::UNMOVABLE.with(Request::DIRECT);
    all_but(s, 3_000);
    for index in 0..DIRTY {
        s.add(0, index, DIRECT);
        s.write(LruOp::Dirty(FilePage { file: 0, index }));
    }
    s.write(LruOp::Drain);
    (0..200).for_each(|_| {
        s.alloc(4, Request::UNMOVABLE.into());
    });
    (0..400).for_each(|_| {
        s.alloc(0, Request::UNMOVABLE.into());
    });
    let mut left: Vec<u32> = (0..DIRTY).collect();
    s.random.shuffle(&mut left);
    for index in left {
        (0..4).for_each(|_| {
            s.alloc(0, once.into());
        });
        s.truncate(0, index);
        s.alloc(0, Request::UNMOVABLE.into());
    }
    while !s.is_full() {
        s.alloc(0, once.into());
    }
}

/// A process's memory is swapped out for blocks beside active page cache. The blocks go, and what
/// comes back from swap is active at once; then a stream finds fewer inactive anonymous pages than
/// active ones.
pub fn ageing(s: &mut Script, pages: u32) {
    const FILES: u32 = 4_500;
    all_but(s, 11_000);
    (0..FILES).for_each(|i| s.read(0, i, DIRECT));
    (0..FILES).for_each(|i| s.touch(0, i));
    (0..pages).for_each(|i| s.access(i, true));
    let blocks: Vec<_> = (0..5_000).map(|_| s.alloc(0, STAYS.into())).collect();
    blocks.into_iter().for_each(|id| s.write(LruOp::Free(id)));
    let mut order: Vec<u32> = (0..pages).collect();
    s.random.shuffle(&mut order);
    order.into_iter().for_each(|i| s.access(i, false));
    let mut at = 0;
    while !s.is_full() {
        s.read(1, at, DIRECT);
        at += 1;
    }
}
