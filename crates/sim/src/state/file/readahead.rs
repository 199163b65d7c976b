//! The kernel's on-demand readahead.
//!
//! A read that misses at the start of the file or right behind the last one is taken for a stream.
//! Its window begins small, and one of its pages is marked: when that is read, the next window is
//! requested, twice as long or more, up to `read_ahead_kb`. So a stream finds its pages in the
//! cache. A miss anywhere else is read alone, unless the pages before it are in the cache as a
//! stream would have left them. Source: `mm/readahead.c` of 6.1.

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
}

impl Readahead {
    /// The window to read when the page `index` is missing or bears the mark (`at_mark`), in a read
    /// of `wanted` pages from there on. `there` says which pages are in the cache.
    pub(crate) fn ask(
        &mut self,
        index: u32,
        wanted: u32,
        at_mark: bool,
        there: impl Fn(u32) -> bool,
    ) -> Option<Window> {
        if self.is_random {
            return Some(Window { pages: index..index + wanted, mark: None });
        }
        let most = if wanted > MOST { wanted.min(MOST_AT_ONCE) } else { MOST };
        let expected = (self.start + self.size).wrapping_sub(self.async_size);
        let follows = || self.after.is_some_and(|after| index.wrapping_sub(after) <= 1);
        if index == 0 {
            self.begin(index, wanted, most);
        } else if self.size > 0 && (index == expected || index == self.start + self.size) {
            self.start += self.size;
            self.size = self.next_size(most);
            self.async_size = self.size;
        } else if at_mark {
            // Another reader's window: it ends at the first page not in the cache.
            let start = (index + 1..).take(most as usize + 1).find(|page| !there(*page))?;
            if start - index > most {
                return None;
            }
            self.start = start;
            self.size = start - index + wanted;
            self.size = self.next_size(most);
            self.async_size = self.size;
        } else if wanted > most || follows() {
            self.begin(index, wanted, most);
        } else {
            let before = (1..=most.min(index)).take_while(|back| there(index - back)).count() as u32;
            if before <= wanted {
                // A random read, which predicts nothing.
                return Some(Window { pages: index..index + wanted, mark: None });
            }
            let before = if before >= index { 2 * before } else { before };
            (self.start, self.size, self.async_size) = (index, (before + wanted).min(most), 1);
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
        Some(Window { pages: self.start..self.start + self.size, mark })
    }

    /// The window to read around a missing page of a mapping. `None` after too many misses.
    pub(crate) fn around(&mut self, index: u32) -> Option<Window> {
        const LOTS: u32 = 100;
        self.missed = (self.missed + 1).min(10 * LOTS);
        if self.missed > LOTS {
            return None;
        }
        (self.start, self.size, self.async_size) = (index.saturating_sub(MOST / 2), MOST, MOST / 4);
        Some(Window { pages: self.start..self.start + MOST, mark: Some(self.start + MOST - MOST / 4) })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads pages one by one; the windows requested.
    fn stream(pages: u32, step: u32) -> Vec<(Range<u32>, Option<u32>)> {
        let (mut ra, mut cached, mut marks, mut all) = (Readahead::default(), 0, Vec::new(), Vec::new());
        for index in (0..pages).step_by(step as usize) {
            for page in index..index + step {
                if page >= cached || marks.contains(&page) {
                    let at_mark = page < cached;
                    let window = ra.ask(page, index + step - page, at_mark, |p| p < cached).expect("a window");
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
        let window = ra.ask(0, 512, false, |_| false).expect("a window");
        assert_eq!(window.pages, 0..320, "as much as a device takes at once");
    }

    #[test]
    fn a_page_at_random_is_read_alone_and_forgotten() {
        let mut ra = Readahead { after: Some(8), ..Readahead::default() };
        assert_eq!(ra.ask(1000, 1, false, |_| false), Some(Window { pages: 1000..1001, mark: None }));
        assert_eq!(ra.size, 0);
    }

    #[test]
    fn after_advice_that_reads_are_random_nothing_is_read_ahead_not_even_from_the_first_page_on() {
        let ask = |is_random| Readahead { is_random, ..Readahead::default() }.ask(0, 1, false, |_| false);
        assert_eq!(ask(true), Some(Window { pages: 0..1, mark: None }));
        assert_eq!(ask(false), Some(Window { pages: 0..4, mark: Some(1) }));
    }

    #[test]
    fn the_pages_that_a_stream_left_in_the_cache_count_as_a_stream() {
        let mut ra = Readahead { after: Some(8), ..Readahead::default() };
        let window = ra.ask(1000, 1, false, |page| (990..1000).contains(&page)).expect("a window");
        assert_eq!(window, Window { pages: 1000..1011, mark: Some(1010) });
    }

    #[test]
    fn a_mark_that_another_left_is_taken_up_where_the_cache_ends() {
        let mut ra = Readahead::default();
        let window = ra.ask(100, 1, true, |page| page < 116).expect("a window");
        assert_eq!(window, Window { pages: 116..148, mark: Some(116) });
        assert_eq!(Readahead::default().ask(100, 1, true, |_| true), None, "there is enough already");
    }

    #[test]
    fn a_mapped_page_is_read_with_those_around_it_until_that_has_missed_often() {
        let mut ra = Readahead::default();
        assert_eq!(ra.around(100), Some(Window { pages: 84..116, mark: Some(108) }));
        assert!((0..99).all(|_| ra.around(5).is_some()));
        assert_eq!(ra.around(5), None);
    }
}
