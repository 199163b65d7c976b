//! Traces of page cache alone.

use super::PAGES;
use super::script::Script;
use crate::trace::Request;
use crate::trace::lru::{FilePage, LruOp};
use kontig_mm::Order;

/// Pages that readahead adds at a time.
const AHEAD: u32 = 8;

/// A file read once, from its first page to its last.
#[derive(Default)]
struct Stream {
    file: u8,
    ahead: u32,
    at: u32,
}

impl Stream {
    fn read(&mut self, s: &mut Script, request: Request) {
        if self.at == self.ahead {
            self.ahead += AHEAD;
            (self.at..self.ahead).for_each(|i| s.add(self.file, i, request));
        }
        s.read(self.file, self.at, request);
        self.at += 1;
    }
}

/// Three files: a stream, a hot file, and one larger than memory, half of it cached at first.
pub fn mixed(s: &mut Script, request: Request) {
    mixed_with(s, request, |_| {});
}

/// The same, and something else before every access.
pub fn mixed_with(s: &mut Script, request: Request, mut more: impl FnMut(&mut Script)) {
    const HOT: u8 = 1;
    const LARGE: u8 = 2;
    let mut stream = Stream::default();
    // Fills memory with fewer operations.
    (0..PAGES / 2).for_each(|i| s.add(LARGE, i, request));
    while !s.is_full() {
        more(s);
        match s.random.weighted(&[(0, 2), (HOT, 5), (LARGE, 4)]) {
            0 => stream.read(s, request),
            HOT => {
                let i = s.skewed(PAGES / 2);
                s.read(HOT, i, request);
            }
            _ => {
                let i = s.below(PAGES);
                s.read(LARGE, i, request);
                if s.random.chance(1, 50) {
                    let i = s.below(PAGES);
                    s.truncate(LARGE, i);
                }
                if s.random.chance(1, 20) {
                    let i = s.below(PAGES);
                    s.touch(LARGE, i);
                }
                if s.random.chance(1, 500) {
                    s.write(LruOp::Drain);
                }
            }
        }
    }
}

/// A file of two thirds of memory becomes active. Then a second one, slightly larger than the rest,
/// is read in a circle, and now and then a few pages of the first.
pub fn circle(s: &mut Script, request: Request) {
    const FIRST: u8 = 0;
    const SECOND: u8 = 1;
    let (first, second) = (PAGES * 2 / 3, PAGES / 3 + 2_000);
    (0..first).for_each(|i| s.read(FIRST, i, request));
    (0..first).for_each(|i| s.touch(FIRST, i));
    let mut at = 0;
    while !s.is_full() {
        // Near the end the circle is a third longer, and its pages come back too late.
        let length = if s.is_at(70) { second * 4 / 3 } else { second };
        s.read(SECOND, at % length, request);
        at += 1;
        if s.random.chance(1, 12) {
            let i = s.skewed(first);
            s.read(FIRST, i, request);
        }
    }
}

/// Makes all pages active; then reads a stream and touches some active pages again.
pub fn active(s: &mut Script, request: Request) {
    const WARM: u8 = 1;
    let warm = PAGES - 1_000;
    (0..warm).for_each(|i| s.read(WARM, i, request));
    let mut order: Vec<u32> = (0..warm).collect();
    s.random.shuffle(&mut order);
    order.iter().for_each(|i| s.touch(WARM, *i));
    let mut stream = Stream::default();
    while !s.is_full() {
        stream.read(s, request);
        if s.random.chance(1, 3) {
            let i = s.skewed(warm);
            s.touch(WARM, i);
        }
    }
}

/// Three files, one of them clean. Of the others, on a fast and a slow device, pages are dirtied,
/// and some are written by a flusher before reclaim meets them. At first nearly every page is
/// dirty: kswapd writes pages itself where it finds no others.
pub fn dirty(s: &mut Script, request: Request) {
    const FAST: u8 = 1;
    const SLOW: u8 = 2;
    const FILES: [(u8, usize); 3] = [(0, 4), (FAST, 3), (SLOW, 2)];
    s.write(LruOp::Device { file: SLOW, slow: true });
    for index in 0..PAGES * 9 / 10 {
        let file = s.random.weighted(&FILES[1..]);
        s.add(file, index, request);
        s.write(LruOp::Dirty(FilePage { file, index }));
    }
    while !s.is_full() {
        let (file, index) = (s.random.weighted(&FILES), s.below(PAGES));
        s.read(file, index, request);
        if file != 0 && s.random.chance(3, 5) {
            s.write(LruOp::Dirty(FilePage { file, index }));
        }
        if s.random.chance(1, 4) {
            let file = if s.random.chance(1, 2) { FAST } else { SLOW };
            let page = FilePage { file, index: s.below(PAGES) };
            s.write(LruOp::Writeback(page));
            s.write(LruOp::Written(page));
        }
        if s.random.chance(1, 40) {
            let n = 1 + s.below(64);
            s.write(LruOp::Finish(n));
        }
    }
}

/// Files in folios of several sizes; single pages of them are wanted again, and some files become
/// shorter.
pub fn large(s: &mut Script, request: Request) {
    large_with(s, request, |_| {});
}

/// The same, and something else before every access.
pub fn large_with(s: &mut Script, request: Request, mut more: impl FnMut(&mut Script)) {
    const ORDERS: [(u8, usize); 5] = [(0, 8), (2, 8), (4, 4), (6, 2), (9, 1)];
    while !s.is_full() {
        more(s);
        let order = s.random.weighted(&ORDERS);
        // A file for each size: what of it is there has that size.
        let (file, index) = (order, s.skewed(PAGES * 2 / 3));
        s.read_folio(file, index, order, request.into());
        if s.random.chance(1, 12) {
            let index = s.below(PAGES * 2 / 3) >> order << order;
            s.write(LruOp::Truncate { page: FilePage { file, index }, order: Order::new(order) });
        }
    }
}
