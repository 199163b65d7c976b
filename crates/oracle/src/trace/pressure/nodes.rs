//! Traces whose requests go to several nodes.

use super::cpus::{ORDERS, any_type};
use super::script::Script;
use super::{BOTH, DIRECT, files};
use crate::trace::lru::{FilePage, LruOp};
use crate::trace::{BlockId, Request};
use kontig_mm::{NodeId, NodeSet};
use std::collections::VecDeque;

/// Has what follows prefer another node, and go there alone or to a choice of others, too. Returns
/// whether it goes there alone.
fn choose(s: &mut Script, nodes: &[usize]) -> bool {
    let prefers = NodeId::new(nodes[s.random.below(nodes.len())]);
    let all = || nodes.iter().map(|node| NodeId::new(*node));
    let allowed = match s.random.below(8) {
        0 | 1 => NodeSet::NONE,
        // The preferred one may be missing.
        2 => all().filter(|_| s.random.chance(1, 2)).collect(),
        _ => all().collect(),
    };
    s.write(LruOp::Node { prefers, allowed });
    allowed.is_empty()
}

/// Allocates and frees blocks of all sizes and types by requests that only take free pages, where
/// little of the nodes is free, which have `pages` each.
pub fn blocks(s: &mut Script, nodes: &[usize], pages: u32) {
    let all = pages * nodes.len() as u32;
    let mut held: Vec<(BlockId, u8)> = Vec::new();
    let (mut taken, mut filling, mut alone) = (0, true, true);
    // Fills most of it with fewer operations.
    for node in nodes {
        s.write(LruOp::Node { prefers: NodeId::new(*node), allowed: NodeSet::NONE });
        for _ in 0..(pages * 3 / 4) >> 6 {
            let request = any_type(s);
            held.push((s.alloc(6, request.into()), 6));
            taken += 1 << 6;
        }
    }
    while !s.is_full() {
        if s.random.chance(1, 20) {
            alone = choose(s, nodes);
        }
        for _ in 0..1 + s.random.below(40) {
            // What fails is counted, too: beyond all there is, requests fail.
            if taken > all + all / 25 {
                filling = false;
            } else if taken < all - all / 8 {
                filling = true;
            }
            if s.random.chance(if filling { 6 } else { 2 }, 8) {
                // An urgent request that is not bound by itself takes from any node in the end.
                let high = if alone && s.random.chance(1, 6) { Request::HIGH } else { Request::UNMOVABLE };
                let (order, request) = (s.random.weighted(&ORDERS), any_type(s).with(high));
                held.push((s.alloc(order, request.into()), order));
                taken += 1 << order;
            } else if !held.is_empty() {
                let i = s.random.below(held.len());
                let (id, order) = held.swap_remove(i);
                s.write(LruOp::Free(id));
                taken -= 1 << order;
            }
        }
    }
}

/// Fills the first of two nodes by requests that a mask binds to it, and asks it for more by atomic
/// ones, which go over to the second; most of that one stays free.
pub fn atomic(s: &mut Script, pages: u32) {
    let [first, second] = [1, 2].map(NodeId::new);
    let mut held: Vec<BlockId> = Vec::new();
    s.write(LruOp::Node { prefers: first, allowed: NodeSet::only(first) });
    for order in [6, 2, 0] {
        // Beyond all there is: the last ones fail.
        let blocks = if order == 6 { (pages >> 6) + 40 } else { 400 };
        held.extend((0..blocks).map(|_| s.alloc(order, Request::UNMOVABLE.into())));
    }
    let mut taken: Vec<BlockId> = Vec::new();
    while !s.is_full() {
        let [prefers, other] = if s.random.chance(4, 5) { [first, second] } else { [second, first] };
        let allowed = NodeSet::only(if s.random.chance(4, 5) { first } else { other });
        s.write(LruOp::Node { prefers, allowed });
        let n = 1 + s.random.below(40);
        for _ in 0..n {
            let order = s.random.weighted(&[(0, 8), (1, 4), (2, 2), (3, 2), (4, 1)]);
            let rights = [(Request::HIGH, 6), (Request::HIGH.with(Request::ATOMIC), 2), (Request::UNMOVABLE, 1)];
            let rights = s.random.weighted(&rights);
            let request = any_type(s).with(rights);
            taken.push(s.alloc(order, request.into()));
        }
        if taken.len() > 2_000 {
            s.random.shuffle(&mut taken);
            taken.drain(..1_500).for_each(|id| s.write(LruOp::Free(id)));
        }
        let i = s.random.below(held.len());
        s.write(LruOp::Free(held.swap_remove(i)));
        held.push(s.alloc(0, Request::UNMOVABLE.into()));
    }
}

/// Fills the nodes with page cache, then asks for pageblocks on one or the other: each node's
/// kcompactd is woken, and requests compact both.
pub fn pageblocks(s: &mut Script, nodes: &[usize], pages: u32) {
    const MOST: usize = 30;
    for node in nodes {
        s.write(LruOp::Node { prefers: NodeId::new(*node), allowed: NodeSet::NONE });
        for i in 0..pages {
            s.add(*node as u8, i, DIRECT);
            if s.random.chance(1, 60) {
                s.alloc(0, Request::UNMOVABLE.into());
            }
        }
    }
    let mut held = VecDeque::new();
    while !s.is_full() {
        choose(s, nodes);
        for _ in 0..1 + s.random.below(4) {
            let right = s.random.weighted(&[
                (Request::DIRECT.with(Request::MAYFAIL), 2),
                (Request::KSWAPD, 2),
                (Request::DIRECT, 1),
            ]);
            let also = if s.random.chance(1, 2) { Request::KSWAPD } else { Request::MOVABLE };
            let order = s.random.weighted(&[(9, 6), (4, 1), (10, 1)]);
            held.push_back(s.alloc(order, Request::MOVABLE.with(right).with(also).into()));
            if held.len() > MOST
                && let Some(id) = held.pop_front()
            {
                s.write(LruOp::Free(id));
            }
        }
        for _ in 0..s.random.below(300) {
            let (file, i) = (nodes[s.random.below(nodes.len())] as u8, s.skewed(pages));
            s.read(file, i, DIRECT);
        }
    }
}

/// Reads files whose pages are on several nodes, by requests that reclaim and that wake kswapd.
pub fn files(s: &mut Script, nodes: &[usize], pages: u32) {
    for node in nodes {
        s.write(LruOp::Node { prefers: NodeId::new(*node), allowed: NodeSet::NONE });
        (0..pages / 2).for_each(|i| s.add(3 + *node as u8, i, DIRECT));
    }
    files::mixed_with(s, BOTH, |s| {
        if s.random.chance(1, 20) {
            choose(s, nodes);
        }
        if s.random.chance(1, 3) {
            let file = 3 + s.below(nodes.len() as u32) as u8 + 1;
            let i = s.below(pages / 2);
            s.read(file, i, DIRECT);
        }
    });
}

/// Page cache beside blocks that fill most of the nodes, for requests that may reclaim on near
/// nodes before they go to others. Much of the cache is dirty at times, and blocks may leave little
/// of it. Every request gives up easily: none may have a process killed.
pub fn reclaimed(s: &mut Script, nodes: &[usize], pages: u32) {
    const CACHE: Request = Request::MOVABLE.with(Request::DIRECT);
    const WAKES: Request = Request::DIRECT.with(Request::KSWAPD);
    const RIGHTS: [(Request, usize); 4] =
        [(Request::DIRECT, 6), (WAKES, 4), (Request::KSWAPD, 2), (Request::UNMOVABLE, 1)];
    let all = pages * nodes.len() as u32;
    for node in nodes {
        s.write(LruOp::Node { prefers: NodeId::new(*node), allowed: NodeSet::NONE });
        // Blocks that stay, since pages of files take an operation each.
        for _ in 0..pages * 7 / 8 / 512 {
            s.alloc(9, CACHE.into());
        }
        (0..pages / 10).for_each(|i| s.add(*node as u8, i, CACHE));
    }
    let mut held: Vec<(BlockId, u8)> = Vec::new();
    let (mut taken, mut filling, mut dirties) = (0, true, false);
    while !s.is_full() {
        if s.random.chance(1, 200) {
            dirties = !dirties;
        }
        if s.random.chance(1, 15) {
            choose(s, nodes);
        }
        let page = FilePage { file: nodes[s.random.below(nodes.len())] as u8, index: s.below(pages) };
        match s.random.below(16) {
            0..8 => {
                let rights = s.random.weighted(&RIGHTS);
                for index in page.index..page.index + 6 {
                    s.read(page.file, index, Request::MOVABLE.with(rights));
                }
            }
            8..10 => {
                let n = if dirties { 24 } else { 1 };
                for index in page.index..page.index + n {
                    s.write(LruOp::Dirty(FilePage { index, ..page }));
                }
            }
            10 => {
                for index in page.index..page.index + 8 {
                    s.write(LruOp::Writeback(FilePage { index, ..page }));
                    s.write(LruOp::Written(FilePage { index, ..page }));
                }
            }
            _ => {
                // What fails is counted, too.
                if taken > all / 11 {
                    filling = false;
                } else if taken < all / 40 {
                    filling = true;
                }
                if s.random.chance(if filling { 6 } else { 1 }, 8) {
                    let order = s.random.weighted(&[(0, 30), (1, 12), (2, 6), (3, 6), (4, 3), (6, 6), (9, 1)]);
                    let request = any_type(s).with(s.random.weighted(&RIGHTS));
                    held.push((s.alloc(order, request.into()), order));
                    taken += 1 << order;
                }
                for _ in 0..if filling { 1 } else { 6 } {
                    if held.is_empty() || filling && s.random.chance(3, 4) {
                        break;
                    }
                    let i = s.random.below(held.len());
                    let (id, order) = held.swap_remove(i);
                    s.write(LruOp::Free(id));
                    taken -= 1 << order;
                }
            }
        }
    }
}
