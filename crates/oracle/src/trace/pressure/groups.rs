//! Traces of memory control groups: what is read and written is charged to the group that the
//! process is in.

use super::script::Script;
use crate::trace::Request;
use crate::trace::lru::LruOp;
use kontig_mm::{GroupId, GroupLimit};

/// A request that reclaims directly.
const DIRECT: Request = Request::MOVABLE.with(Request::DIRECT).with(Request::RETRY);
/// The same after it has woken kswapd.
const BOTH: Request = DIRECT.with(Request::KSWAPD);
/// A request that may not reclaim, and fails where its group has no room.
const ATOMIC: Request = Request::MOVABLE.with(Request::KSWAPD);
/// A request that gives up after one reclaim.
const BRIEF: Request = Request::MOVABLE.with(Request::DIRECT);

fn enter(s: &mut Script, group: u16) {
    s.write(LruOp::Enter(GroupId::new(group)));
}

fn limit(s: &mut Script, group: u16, limit: GroupLimit, pages: u32) {
    s.write(LruOp::Limit { group: GroupId::new(group), limit, pages: Some(pages) });
}

/// Counters are added up now and then, as they are by the clock.
fn sometimes_flushed(s: &mut Script, one_in: usize) {
    if s.random.chance(1, one_in) {
        s.write(LruOp::Flush);
    }
}

/// A page of one of two files: one that is hot, and one that is read in a circle.
fn read_file(s: &mut Script, hot: u32, circle: u32, at: &mut u32, request: Request) {
    if s.random.chance(1, 2) {
        let index = s.skewed(hot);
        s.read(0, index, request);
    } else {
        s.add(1, *at, request);
        *at = (*at + 1) % circle;
    }
}

/// One group reads more of two files than its limit lets it keep. Some requests may not reclaim.
pub fn files(s: &mut Script, max: u32) {
    limit(s, 1, GroupLimit::Max, max);
    enter(s, 1);
    let mut at = 0;
    while !s.is_full() {
        let request = s.random.weighted(&[(DIRECT, 12), (BRIEF, 2), (ATOMIC, 1)]);
        read_file(s, max, max * 3 / 2, &mut at, request);
        sometimes_flushed(s, 400);
    }
}

/// One group's process has more memory than its limit lets it keep, beside a file.
pub fn process(s: &mut Script, max: u32, pages: u32, one_in_file: usize) {
    process_with(s, max, pages, one_in_file, |_| {});
}

/// The same, with more after each operation.
pub fn process_with(s: &mut Script, max: u32, pages: u32, one_in_file: usize, mut more: impl FnMut(&mut Script)) {
    limit(s, 1, GroupLimit::Max, max);
    enter(s, 1);
    (0..pages).for_each(|i| s.access(i, true));
    let mut at = 0;
    while !s.is_full() {
        if s.random.chance(1, one_in_file) {
            read_file(s, max / 2, max, &mut at, DIRECT);
        } else {
            let page = if s.random.chance(1, 3) { s.below(pages) } else { s.skewed(pages) };
            let writes = s.random.chance(1, 3);
            s.access(page, writes);
        }
        sometimes_flushed(s, 400);
        more(s);
    }
}

/// Groups below one whose limit all share. The process moves from one to the next.
pub fn siblings(s: &mut Script, (parent, max): (u16, u32), of: &[u16], pages: u32) {
    limit(s, parent, GroupLimit::Max, max);
    let mut at = 0;
    while !s.is_full() {
        let group = of[s.random.below(of.len())];
        enter(s, group);
        for _ in 0..100 + s.below(200) {
            if s.random.chance(1, 2) {
                // Each has its part of the process's memory, and now and then uses another's.
                let own = u32::from(group) * pages / 8;
                let page = own + s.skewed(pages / 8);
                let writes = s.random.chance(1, 3);
                s.access(page, writes);
            } else {
                read_file(s, max / 2, max, &mut at, DIRECT);
            }
            sometimes_flushed(s, 500);
        }
    }
}

/// The same, with protection of some that changes: low and min, at and below what they use.
pub fn protected(s: &mut Script, (parent, max): (u16, u32), of: &[u16], pages: u32) {
    limit(s, parent, GroupLimit::Max, max);
    let mut at = 0;
    while !s.is_full() {
        let group = of[s.random.below(of.len())];
        if s.random.chance(1, 6) {
            let which = s.random.weighted(&[(GroupLimit::Low, 3), (GroupLimit::Min, 1)]);
            // Never so much that nothing is left to take.
            let most = max / (2 * of.len() as u32);
            let protects = s.below(most);
            let whose = of[s.random.below(of.len())];
            limit(s, whose, which, protects);
        }
        enter(s, group);
        for _ in 0..100 + s.below(200) {
            if s.random.chance(1, 2) {
                let own = u32::from(group) * pages / 8;
                let page = own + s.skewed(pages / 8);
                let writes = s.random.chance(1, 3);
                s.access(page, writes);
            } else {
                let file = group as u8 % 8;
                let index = s.skewed(max);
                s.read(file, index, DIRECT);
                s.add(8 + file, at, DIRECT);
                at = (at + 1) % max;
            }
            sometimes_flushed(s, 500);
        }
    }
}

/// A group over its high mark: it reclaims after every operation that has charged, and waits.
pub fn high(s: &mut Script, high: u32) {
    limit(s, 1, GroupLimit::High, high);
    enter(s, 1);
    let mut at = 0;
    while !s.is_full() {
        read_file(s, high, high * 3 / 2, &mut at, DIRECT);
        sometimes_flushed(s, 400);
        if s.random.chance(1, 4_000) {
            let to = high - s.below(high / 4);
            limit(s, 1, GroupLimit::High, to);
        }
    }
}

/// A limit that is set below what the group uses, again and again.
pub fn shrinking(s: &mut Script, most: u32) {
    enter(s, 1);
    let mut at = 0;
    while !s.is_full() {
        let to = most / 2 + s.below(most / 2);
        limit(s, 1, GroupLimit::Max, to);
        for _ in 0..most {
            read_file(s, most, most, &mut at, DIRECT);
            sometimes_flushed(s, 400);
        }
    }
}

/// Groups without limits whose memory and files together are more than the node has.
pub fn unlimited(s: &mut Script, of: &[u16], pages: u32) {
    let mut at = 0;
    while !s.is_full() {
        let group = of[s.random.below(of.len())];
        enter(s, group);
        let own = u32::from(group) * pages / 8;
        for _ in 0..400 + s.below(800) {
            let request = if s.random.chance(1, 2) { DIRECT } else { BOTH };
            if s.random.chance(2, 3) {
                let page = own + s.below(pages / 8);
                let writes = s.random.chance(1, 3);
                s.access(page, writes);
            } else {
                read_file(s, pages / 8, pages / 4, &mut at, request);
            }
            sometimes_flushed(s, 300);
        }
    }
}

/// Groups without limits whose memory and files together are more than the node has, and part of
/// which low and min protect; the parts change.
pub fn contended(s: &mut Script, of: &[u16], pages: u32) {
    let mut at = 0;
    while !s.is_full() {
        let group = of[s.random.below(of.len())];
        if s.random.chance(1, 3) {
            let (which, most) = s.random.weighted(&[((GroupLimit::Low, 7_000), 3), ((GroupLimit::Min, 3_000), 1)]);
            let whose = of[s.random.below(of.len())];
            let protects = s.below(most);
            limit(s, whose, which, protects);
        }
        enter(s, group);
        let own = u32::from(group) * pages / 8;
        for _ in 0..300 + s.below(600) {
            let request = if s.random.chance(1, 2) { DIRECT } else { BOTH };
            if s.random.chance(1, 2) {
                let page = own + s.skewed(pages / 8);
                let writes = s.random.chance(1, 3);
                s.access(page, writes);
            } else {
                let file = group as u8 % 8;
                let index = s.skewed(pages / 8);
                s.read(file, index, request);
                s.add(8 + file, at, request);
                at = (at + 1) % (pages / 4);
            }
            sometimes_flushed(s, 500);
        }
    }
}

/// Many groups, none limited, whose files together are more than the node has: kswapd and direct
/// reclaim walk over all of them.
pub fn tree(s: &mut Script, leaves: std::ops::Range<u16>, each: u32) {
    let mut at = 0;
    for group in leaves.clone() {
        if s.random.chance(1, 3) {
            let pages = s.below(each);
            limit(s, group, GroupLimit::Low, pages);
        }
    }
    while !s.is_full() {
        let group = leaves.start + s.random.below(leaves.len()) as u16;
        enter(s, group);
        let from = u32::from(group) * each;
        for _ in 0..each {
            let request = if s.random.chance(1, 2) { DIRECT } else { BOTH };
            if s.random.chance(1, 2) {
                let index = s.skewed(each);
                s.read((group % 8) as u8, from + index, request);
            } else {
                s.add(8, at, request);
                at += 1;
            }
        }
        sometimes_flushed(s, 8);
    }
}
