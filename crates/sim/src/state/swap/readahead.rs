//! Swap readahead: the window grows while its pages are used, and shrinks when they are not.
//!
//! It is the power of two above the hits of the last window plus two, and at least half of the last
//! one. On a disk it is a run of slots around the wanted one, on flash the pages around it in the
//! process's memory. Source: `mm/swap_state.c` of 6.1; `vm.page-cluster` is 3.

/// The largest window: 2³ pages.
const MOST: u32 = 8;

/// State between two reads, of the swap area or of a mapping.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Window {
    last: u32,
    pages: u32,
    /// Pages read ahead that were then used.
    pub(crate) hits: u32,
}

impl Window {
    /// The size of the window; `at` is the wanted slot or page.
    fn pages(&mut self, at: u32) -> u32 {
        let hits = std::mem::take(&mut self.hits);
        let wanted = match hits {
            0 if at.abs_diff(self.last) == 1 => 2,
            0 => 1,
            hits => (hits + 2).next_power_of_two().max(4),
        };
        self.pages = wanted.min(MOST).max(self.pages / 2);
        self.pages
    }

    /// A page of the mapping was found in the swap cache, perhaps because of readahead.
    pub(crate) fn found(&mut self, page: u32, was_ahead: bool) {
        self.last = page;
        self.hits += u32::from(was_ahead);
    }

    /// On a disk: the window of slots, an aligned power of two around this one, without the header.
    pub(crate) fn slots(&mut self, slot: u32, of_area: u32) -> std::ops::Range<u32> {
        let hit = self.hits > 0;
        let mask = self.pages(slot).next_power_of_two() - 1;
        if !hit {
            self.last = slot;
        }
        (slot & !mask).max(1)..(slot | mask).saturating_add(1).min(of_area)
    }

    /// On flash: the window of pages, in the direction in which the process moves.
    pub(crate) fn around(&mut self, page: u32, of_mapping: u32) -> std::ops::Range<u32> {
        let before = self.last;
        let pages = self.pages(page);
        self.last = page;
        let first = if page == before.wrapping_add(1) {
            page
        } else if page.wrapping_add(1) == before {
            page.saturating_sub(pages - 1)
        } else {
            page.saturating_sub((pages - 1) / 2)
        };
        first..(first + pages).min(of_mapping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_alone_is_read_alone() {
        let mut w = Window::default();
        assert_eq!([w.slots(100, 1000), w.slots(500, 1000), w.slots(300, 1000)], [100..101, 500..501, 300..301]);
    }

    #[test]
    fn neighbours_and_hits_make_the_window_grow_and_it_shrinks_by_half() {
        let mut w = Window::default();
        assert_eq!(w.slots(100, 1000), 100..101);
        assert_eq!(w.slots(101, 1000), 100..102, "next to the last one");
        w.hits = 1;
        assert_eq!(w.slots(102, 1000), 100..104);
        w.hits = 3;
        assert_eq!(w.slots(104, 1000), 104..112);
        assert_eq!(w.slots(900, 1000), 900..904, "no hit: half of it");
        assert_eq!(w.slots(3, 1000), 2..4);
        w.hits = 8;
        assert_eq!(w.slots(1, 1000), 1..8, "without the header");
    }

    #[test]
    fn on_flash_the_window_goes_with_the_process() {
        let mut w = Window { last: 99, pages: 8, hits: 8 };
        assert_eq!(w.around(100, 1000), 100..108, "upwards");
        w.hits = 8;
        assert_eq!(w.around(99, 1000), 92..100, "downwards");
        w.hits = 8;
        assert_eq!(w.around(500, 1000), 497..505);
        w.hits = 8;
        assert_eq!(w.around(998, 1000), 995..1000);
    }

    #[test]
    fn on_flash_a_process_that_goes_through_what_was_read_ahead_goes_upwards() {
        let mut w = Window { last: 99, pages: 8, hits: 8 };
        assert_eq!(w.around(100, 1000), 100..108);
        (101..108).for_each(|page| w.found(page, true));
        assert_eq!(w.around(108, 1000), 108..116);
    }
}
