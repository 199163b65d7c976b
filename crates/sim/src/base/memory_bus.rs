//! The time to write memory: clearing, copying or filling pages.
//!
//! One thread writes at its CPU's bandwidth, all threads together at the memory's. The memory
//! accepts writes in the order in which they begin: a write ends no earlier than its thread can
//! have made it, and no earlier than the memory has accepted it and all before it. So a few threads
//! write independently, and many share the bandwidth equally.
//!
//! There is one bus for all nodes; the extra cost of remote memory is in [`super::numa`]. Copies
//! between a program and the page cache are not included: their costs were measured as a whole.

use super::cost::{CostModel, ns};

/// Memory write bandwidth, of one thread and of all together.
#[derive(Clone, Copy)]
pub(crate) struct MemoryBus {
    /// Time per page, ps: of one thread, and of all together.
    one: u64,
    all: u64,
    /// When the memory will have accepted all writes, ns.
    free_at: u64,
}

/// How much of each page a program writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Written {
    Word,
    Page,
}

impl Written {
    /// Pages written for a new page: it is cleared before the program writes to it.
    pub(crate) fn when_new(self) -> u64 {
        match self {
            Written::Word => 1,
            Written::Page => 2,
        }
    }
}

impl MemoryBus {
    pub(crate) fn new(costs: &CostModel) -> MemoryBus {
        MemoryBus { one: costs.write_one, all: costs.write_all, free_at: 0 }
    }

    /// Time in ns to write `pages` from now on, beside the writes in progress.
    #[inline]
    pub(crate) fn write(&mut self, now: u64, pages: u64) -> u64 {
        self.free_at = self.free_at.max(now) + ns(self.all * pages);
        self.alone(pages).max(self.free_at - now)
    }

    /// Time in ns to write `pages` on an idle bus.
    #[inline]
    pub(crate) fn alone(&self, pages: u64) -> u64 {
        ns(self.one * pages)
    }

    /// Whether writing `pages` now takes no longer than on an idle bus.
    #[inline]
    pub(crate) fn keeps_up(&self, now: u64, pages: u64) -> bool {
        self.free_at + ns(self.all * pages) <= now + self.alone(pages)
    }

    /// Books `writes` writes of `pages` each, `each_ns` apart, the first at `now`. The same as
    /// separate calls if [`Self::keeps_up`] holds for the first.
    #[inline]
    pub(crate) fn write_run(&mut self, now: u64, each_ns: u64, writes: u64, pages: u64) {
        let takes = ns(self.all * pages);
        let last = now + (writes - 1) * each_ns;
        self.free_at = (self.free_at + writes * takes).max(last + takes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page takes a thread 2 us, and memory 0.5 us.
    const BUS: MemoryBus = MemoryBus { one: 2_000_000, all: 500_000, free_at: 0 };

    #[test]
    fn one_writer_is_as_fast_as_its_thread() {
        let mut bus = BUS;
        assert_eq!(bus.write(0, 512), 1_024_000);
        assert_eq!(bus.write(1_024_000, 1), 2_000);
    }

    #[test]
    fn many_writers_share_what_memory_takes_in() {
        for (writers, each_ns) in [(2, 2_000), (4, 2_000), (5, 2_500), (16, 8_000)] {
            let mut bus = BUS;
            let mut clocks = vec![0u64; writers];
            // The writer furthest behind goes next, as in the executor.
            for _ in 0..1000 * writers {
                let next = (0..writers).min_by_key(|i| clocks[*i]).expect("there are writers");
                clocks[next] += bus.write(clocks[next], 1);
            }
            let last = *clocks.iter().max().expect("there are writers");
            let first = *clocks.iter().min().expect("there are writers");
            assert!(last.abs_diff(1000 * each_ns) <= 8_000, "{writers}: {last}");
            assert!(last - first <= 8_000, "{writers}: none is served before others");
        }
    }

    #[test]
    fn a_run_is_the_same_as_each_write_by_itself() {
        for free_at in [0, 11_200, 11_500] {
            for pages in [1, 2] {
                let (mut one_by_one, mut run) = (MemoryBus { free_at, ..BUS }, MemoryBus { free_at, ..BUS });
                assert!(run.keeps_up(10_000, pages));
                for write in 0..7 {
                    assert_eq!(one_by_one.write(10_000 + write * 4_100, pages), BUS.alone(pages));
                }
                run.write_run(10_000, 4_100, 7, pages);
                assert_eq!(run.free_at, one_by_one.free_at, "{free_at} {pages}");
            }
        }
        assert!(!MemoryBus { free_at: 11_501, ..BUS }.keeps_up(10_000, 1));
    }
}
