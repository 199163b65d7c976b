//! The kernel's on-demand readahead.
//!
//! A read that misses at the start of the file or right behind the last one is taken for a stream.
//! Its window begins small, and one of its pages is marked: when that is read, the next window is
//! requested, twice as long or more, up to `read_ahead_kb`. So a stream finds its pages in the
//! cache. A miss anywhere else is read alone, unless the pages before it are in the cache as a
//! stream would have left them.
//!
//! From 6.11 on a miss and a mark are taken up apart. Where a file may have large folios, the
//! windows of a stream come in larger and larger ones, two orders up with each window
//! ([`ReadaheadOrder`]). Source: `mm/readahead.c` of 6.1, 6.12 and 7.2; kernel-behaviour §4.12.

use kontig_mm::Order;
use kontig_mm::rules::ReadaheadOrder;
use std::ops::Range;

/// The largest window: `read_ahead_kb` is 128.
const MOST: u32 = 32;
/// The largest device request, 1,280 KiB; a read larger than the window may ask for that
/// (`io_pages`).
const MOST_AT_ONCE: u32 = 320;

/// An open file's readahead state (`file_ra_state`).
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Readahead {
    start: u32,
    size: u32,
    async_size: u32,
    /// The largest order of the last window.
    order: u8,
    /// The page behind the last one read.
    pub(crate) after: Option<u32>,
    /// The program reads at random, and said so (`FMODE_RANDOM`).
    pub(crate) is_random: bool,
    /// Faults that missed, less those that hit.
    pub(crate) missed: u32,
}

/// Pages to read, and the marked one among them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) pages: Range<u32>,
    pub(crate) mark: Option<u32>,
    /// They come in folios up to this order; without it, in single pages, and those that are there
    /// are left out.
    pub(crate) order: Option<Order>,
}

/// The reason for a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The missing page, or the first of the marked folio.
    pub(crate) index: u32,
    /// Pages still wanted from there on.
    pub(crate) wanted: u32,
    /// The order of the marked folio; none if the page is missing.
    pub(crate) marked: Option<Order>,
}

/// The rule and the limit for the folios of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folios {
    pub(crate) rule: ReadaheadOrder,
    /// The largest order that the file may have.
    pub(crate) largest: Order,
}

impl Readahead {
    /// The window to read when a page is missing or bears the mark. `there` says which pages are in
    /// the cache.
    pub(crate) fn ask(&mut self, asked: Asked, folios: Folios, there: impl Fn(u32) -> bool) -> Option<Window> {
        let Asked { index, wanted, marked } = asked;
        if self.is_random {
            return Some(single_pages(index..index + wanted, None));
        }
        let most = if wanted > MOST { wanted.min(MOST_AT_ONCE) } else { MOST };
        match (folios.rule, marked) {
            (ReadaheadOrder::SinglePages, _) => self.follow(index, wanted, marked.is_some(), most, there),
            (_, Some(order)) => self.take_up_mark((index, order), wanted, most, folios, there),
            (_, None) => self.take_up_miss(index, wanted, most, folios, there),
        }
    }

    /// The window for a missing page (`page_cache_sync_ra`).
    fn take_up_miss(
        &mut self,
        index: u32,
        wanted: u32,
        most: u32,
        folios: Folios,
        there: impl Fn(u32) -> bool,
    ) -> Option<Window> {
        let follows = self.after.is_some_and(|after| index.wrapping_sub(after) <= 1);
        if index == 0 || wanted > most || follows {
            self.begin(index, wanted, most);
            self.async_size = if self.size > wanted { self.size - wanted } else { self.size / 2 };
        } else {
            let Some(size) = self.after_a_stream(index, wanted, most, there) else {
                return Some(single_pages(index..index + wanted, None));
            };
            (self.start, self.size, self.async_size) = (index, size, 1);
        }
        Some(self.window(0, folios))
    }

    /// The window after a mark (`page_cache_async_ra`).
    fn take_up_mark(
        &mut self,
        (index, order): (u32, Order),
        wanted: u32,
        most: u32,
        folios: Folios,
        there: impl Fn(u32) -> bool,
    ) -> Option<Window> {
        let expected = (self.start + self.size).wrapping_sub(self.async_size) & !(order.pages() - 1);
        if self.size > 0 && index == expected {
            self.start += self.size;
            self.size = self.size.max(self.next_size(most));
        } else {
            self.take_up_another(index, wanted, most, there)?;
        }
        let mut base = order.get();
        if folios.rule == ReadaheadOrder::AboveLast {
            base = self.order + 2;
            let unit = 1 << u32::from(base).min(most.trailing_zeros());
            let end = (self.start + self.size) / unit * unit;
            if end > self.start {
                self.size = end - self.start;
            }
        }
        self.async_size = self.size;
        Some(self.window(base, folios))
    }

    /// Goes on where another reader's window, whose mark this is, ends: at the first page that is
    /// not in the cache. None if that is too far.
    fn take_up_another(&mut self, index: u32, wanted: u32, most: u32, there: impl Fn(u32) -> bool) -> Option<()> {
        let start = (index + 1..).take(most as usize + 1).find(|page| !there(*page))?;
        if start - index > most {
            return None;
        }
        self.start = start;
        self.size = start - index + wanted;
        self.size = self.next_size(most);
        Some(())
    }

    /// The window as it stands, in folios that begin from this order (`page_cache_ra_order`).
    fn window(&mut self, base: u8, Folios { rule, largest }: Folios) -> Window {
        const STEP: u8 = 2;
        // Less than the first folios would have pages.
        let too_small = rule == ReadaheadOrder::AboveMarked && self.size < 1 << STEP;
        let order = (largest > Order::ZERO && !too_small).then(|| {
            let base = if rule == ReadaheadOrder::AboveMarked { base + STEP } else { base };
            base.min(largest.get()).min(self.size.ilog2() as u8)
        });
        self.order = order.unwrap_or(0);
        let mark = (self.async_size > 0).then(|| self.start + self.size - self.async_size);
        Window { pages: self.start..self.start + self.size, mark, order: order.map(Order::new) }
    }

    /// The pages to read at a miss behind pages in the cache as a stream would have left them; none
    /// if it left fewer than are wanted now, as a read at random does.
    fn after_a_stream(&self, index: u32, wanted: u32, most: u32, there: impl Fn(u32) -> bool) -> Option<u32> {
        let before = (1..=most.min(index)).take_while(|back| there(index - back)).count() as u32;
        if before <= wanted {
            return None;
        }
        let before = if before >= index { 2 * before } else { before };
        Some((before + wanted).min(most))
    }

    /// The window for a missing or a marked page, of single pages (`ondemand_readahead`).
    fn follow(
        &mut self,
        index: u32,
        wanted: u32,
        at_mark: bool,
        most: u32,
        there: impl Fn(u32) -> bool,
    ) -> Option<Window> {
        let expected = (self.start + self.size).wrapping_sub(self.async_size);
        let follows = || self.after.is_some_and(|after| index.wrapping_sub(after) <= 1);
        if index == 0 {
            self.begin(index, wanted, most);
        } else if self.size > 0 && (index == expected || index == self.start + self.size) {
            self.start += self.size;
            self.size = self.next_size(most);
            self.async_size = self.size;
        } else if at_mark {
            self.take_up_another(index, wanted, most, there)?;
            self.async_size = self.size;
        } else if wanted > most || follows() {
            self.begin(index, wanted, most);
        } else {
            let Some(size) = self.after_a_stream(index, wanted, most, there) else {
                // A random read, which predicts nothing.
                return Some(single_pages(index..index + wanted, None));
            };
            (self.start, self.size, self.async_size) = (index, size, 1);
        }
        // If the first page were marked, the next window would be requested at once.
        if index == self.start && self.size == self.async_size {
            let more = self.next_size(most);
            if self.size + more <= most {
                self.async_size = more;
                self.size += more;
            } else {
                (self.size, self.async_size) = (most, most / 2);
            }
        }
        let mark = (self.async_size > 0).then(|| self.start + self.size - self.async_size);
        Some(single_pages(self.start..self.start + self.size, mark))
    }

    /// The window to read around a missing page of a mapping. `None` after too many misses.
    pub(crate) fn around(&mut self, index: u32, folios: Folios) -> Option<Window> {
        const LOTS: u32 = 100;
        self.missed = (self.missed + 1).min(10 * LOTS);
        if self.missed > LOTS {
            return None;
        }
        (self.start, self.size, self.async_size) = (index.saturating_sub(MOST / 2), MOST, MOST / 4);
        Some(self.window(0, folios))
    }

    fn begin(&mut self, index: u32, wanted: u32, most: u32) {
        let rounded = wanted.next_power_of_two();
        self.start = index;
        self.size = match rounded {
            small if small <= most / 32 => small * 4,
            medium if medium <= most / 4 => medium * 2,
            _ => most,
        };
        self.async_size = if self.size > wanted { self.size - wanted } else { self.size };
    }

    fn next_size(&self, most: u32) -> u32 {
        match self.size {
            small if small < most / 16 => 4 * small,
            medium if medium <= most / 2 => 2 * medium,
            _ => most,
        }
    }
}

fn single_pages(pages: Range<u32>, mark: Option<u32>) -> Window {
    Window { pages, mark, order: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINGLE: Folios = Folios { rule: ReadaheadOrder::SinglePages, largest: Order::ZERO };

    fn missing(index: u32, wanted: u32) -> Asked {
        Asked { index, wanted, marked: None }
    }

    fn marked(index: u32, wanted: u32) -> Asked {
        Asked { index, wanted, marked: Some(Order::ZERO) }
    }

    /// Reads pages one by one; the windows requested.
    fn stream(pages: u32, step: u32) -> Vec<(Range<u32>, Option<u32>)> {
        let (mut ra, mut cached, mut marks, mut all) = (Readahead::default(), 0, Vec::new(), Vec::new());
        for index in (0..pages).step_by(step as usize) {
            for page in index..index + step {
                if page >= cached || marks.contains(&page) {
                    let asked =
                        Asked { marked: (page < cached).then_some(Order::ZERO), ..missing(page, index + step - page) };
                    let window = ra.ask(asked, SINGLE, |p| p < cached).expect("a window");
                    cached = window.pages.end;
                    marks.extend(window.mark);
                    all.push((window.pages, window.mark));
                }
                ra.after = Some(page + 1);
            }
        }
        all
    }

    #[test]
    fn a_stream_of_single_pages_ramps_up_to_128_kib() {
        assert_eq!(
            stream(80, 1),
            [
                (0..4, Some(1)),
                (4..12, Some(4)),
                (12..28, Some(12)),
                (28..60, Some(28)),
                (60..92, Some(60)),
                (92..124, Some(92))
            ]
        );
    }

    #[test]
    fn a_large_read_begins_with_all_of_it() {
        assert_eq!(stream(64, 32)[..2], [(0..32, Some(16)), (32..64, Some(32))]);
        let mut ra = Readahead::default();
        let window = ra.ask(missing(0, 512), SINGLE, |_| false).expect("a window");
        assert_eq!(window.pages, 0..320, "as much as a device takes at once");
    }

    #[test]
    fn a_page_at_random_is_read_alone_and_forgotten() {
        let mut ra = Readahead { after: Some(8), ..Readahead::default() };
        assert_eq!(ra.ask(missing(1000, 1), SINGLE, |_| false), Some(single_pages(1000..1001, None)));
        assert_eq!(ra.size, 0);
    }

    #[test]
    fn after_advice_that_reads_are_random_nothing_is_read_ahead_not_even_from_the_first_page_on() {
        let ask = |is_random| Readahead { is_random, ..Readahead::default() }.ask(missing(0, 1), SINGLE, |_| false);
        assert_eq!(ask(true), Some(single_pages(0..1, None)));
        assert_eq!(ask(false), Some(single_pages(0..4, Some(1))));
    }

    #[test]
    fn the_pages_that_a_stream_left_in_the_cache_count_as_a_stream() {
        let mut ra = Readahead { after: Some(8), ..Readahead::default() };
        let window = ra.ask(missing(1000, 1), SINGLE, |page| (990..1000).contains(&page)).expect("a window");
        assert_eq!(window, single_pages(1000..1011, Some(1010)));
    }

    #[test]
    fn a_mark_that_another_left_is_taken_up_where_the_cache_ends() {
        let mut ra = Readahead::default();
        let window = ra.ask(marked(100, 1), SINGLE, |page| page < 116).expect("a window");
        assert_eq!(window, single_pages(116..148, Some(116)));
        assert_eq!(Readahead::default().ask(marked(100, 1), SINGLE, |_| true), None, "there is enough already");
    }

    #[test]
    fn a_mapped_page_is_read_with_those_around_it_until_that_has_missed_often() {
        let mut ra = Readahead::default();
        assert_eq!(ra.around(100, SINGLE), Some(single_pages(84..116, Some(108))));
        assert!((0..99).all(|_| ra.around(5, SINGLE).is_some()));
        assert_eq!(ra.around(5, SINGLE), None);
    }
    /// The first windows of a reader of single pages, and the order of each.
    fn stream_of_folios(rule: ReadaheadOrder, windows: usize) -> Vec<(Range<u32>, Option<u32>, u8)> {
        let (mut ra, mut all) = (Readahead::default(), Vec::new());
        let folios = Folios { rule, largest: Order::new(9) };
        let mut asked = missing(0, 1);
        while all.len() < windows {
            let Window { pages, mark, order } = ra.ask(asked, folios, |_| false).expect("a window");
            let order = order.map_or(0, Order::get);
            let mark = mark.expect("the file goes on");
            // The folio that has the marked page.
            let (mut first, mut of_mark) = (pages.start, 0);
            while first < pages.end {
                of_mark = order.min(first.trailing_zeros() as u8).min((pages.end - first).ilog2() as u8);
                if mark < first + (1 << of_mark) {
                    break;
                }
                first += 1 << of_mark;
            }
            asked = Asked { index: first, wanted: 1, marked: Some(Order::new(of_mark)) };
            ra.after = Some(asked.index);
            all.push((pages, Some(mark), order));
        }
        all
    }

    #[test]
    fn a_stream_comes_in_larger_folios_with_each_window_where_it_is_long_enough() {
        let kept = stream_of_folios(ReadaheadOrder::AboveLast, 5);
        assert_eq!(
            kept,
            [
                (0..4, Some(1), 0),
                (4..12, Some(4), 2),
                (12..16, Some(12), 2),
                (16..24, Some(16), 3),
                (24..32, Some(24), 3)
            ],
            "a window cut to its alignment is a small one, and so are its folios"
        );
        let by_mark = stream_of_folios(ReadaheadOrder::AboveMarked, 4);
        assert_eq!(by_mark[0], (0..4, Some(1), 2), "the first page of the folio bears the mark");
        assert_eq!(by_mark[1], (4..12, Some(4), 3));
    }

    #[test]
    fn a_window_of_fewer_than_four_pages_had_no_folios_once() {
        let ask = |rule| {
            let mut ra = Readahead { after: Some(8), ..Readahead::default() };
            let folios = Folios { rule, largest: Order::new(9) };
            ra.ask(missing(1000, 1), folios, |page| page >= 998).map(|window| window.order)
        };
        assert_eq!(ask(ReadaheadOrder::AboveMarked), Some(None));
        assert_eq!(ask(ReadaheadOrder::AboveLast), Some(Some(Order::ZERO)), "as it is a miss");
    }
}
