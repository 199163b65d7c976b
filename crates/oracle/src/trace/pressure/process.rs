//! Traces of a process's memory, with swap.

use super::script::Script;
use super::{BOTH, DIRECT, PAGES};
use crate::trace::lru::{LruOp, ProcessPage};

/// Writes all pages once; then reads and writes some more often than others, and drops a few.
pub fn alone(s: &mut Script, pages: u32) {
    (0..pages).for_each(|i| s.access(i, true));
    while !s.is_full() {
        touched_again(s, pages);
    }
}

fn touched_again(s: &mut Script, pages: u32) {
    let page = if s.random.chance(1, 3) { s.below(pages) } else { s.skewed(pages) };
    if s.random.chance(1, 100) {
        s.write(LruOp::Drop(ProcessPage(page)));
        // The first access is a store: a load would map the zero page.
        s.access(page, true);
    } else {
        let writes = s.random.chance(1, 3);
        s.access(page, writes);
    }
}

/// The same beside two files, one of them hot, read by processes of which some wake kswapd.
pub fn beside_files(s: &mut Script, pages: u32) {
    beside_files_with(s, pages, |_| {});
}

/// The same, and something else before every access.
pub fn beside_files_with(s: &mut Script, pages: u32, mut more: impl FnMut(&mut Script)) {
    (0..pages).for_each(|i| s.access(i, true));
    let mut stream = 0;
    while !s.is_full() {
        more(s);
        let request = if s.random.chance(1, 2) { DIRECT } else { BOTH };
        match s.random.below(8) {
            0..3 => touched_again(s, pages),
            3..6 => {
                let i = s.skewed(PAGES / 2);
                s.read(0, i, request);
            }
            _ => {
                s.read(1, stream, request);
                stream += 1;
            }
        }
    }
}
