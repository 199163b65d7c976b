//! khugepaged: collapses small pages into huge ones.
//!
//! It visits the processes that may have huge pages, in the order in which they were registered,
//! range by range, and sleeps after `pages_to_scan` pages. A range is collapsed if not too much of
//! it is missing, in swap or shared, and some of it was used: a huge page is allocated on the node
//! that holds most of the range, pages in swap are read, and everything is copied
//! ([`crate::paging::collapse`]). Meanwhile it holds the process's memory map for reading, and for
//! writing during the copy. The kernel's khugepaged waits for that lock; this one retries after a
//! tick. If no huge page can be allocated, it takes one long sleep, and the next failure ends its
//! round. Machines without an LRU order have no khugepaged. Source: kernel-behaviour §6.2,
//! `mm/khugepaged.c` of 6.1.

use crate::base::context::Context;
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::collapse::{Collapse, Range, existing};
use crate::state::object::TABLE_PAGES;
use kontig_mm::{Gfp, Step};

const MS: u64 = 1_000_000;

/// khugepaged as a task.
#[derive(Clone)]
pub(crate) struct KhugepagedThread {
    /// The next range to look at; `None` before the first process.
    next: Option<Range>,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    Sleeping,
    Scanning(Round),
    Collapsing(Round, Box<Collapse>),
}

/// Progress between two sleeps.
#[derive(Clone, Copy, Default)]
struct Round {
    progress: u32,
    passes: u32,
    /// Whether a huge page could not be allocated.
    has_failed: bool,
}

impl KhugepagedThread {
    pub(crate) fn new() -> KhugepagedThread {
        KhugepagedThread { next: None, stage: Stage::Sleeping }
    }

    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        c.asks_as = Gfp::BY_KHUGEPAGED;
        loop {
            if k.must_yield(c) {
                return Step::Working;
            }
            match &mut self.stage {
                Stage::Sleeping => {
                    if let (true, Some(queue)) = (k.khugepaged.processes.is_empty(), k.khugepaged.queue) {
                        return Step::Wait(Wait::Queue(queue));
                    }
                    k.mem.lru_add_drain_all();
                    k.charge(&mut c.now);
                    self.stage = Stage::Scanning(Round::default());
                }
                Stage::Scanning(round) => {
                    let round = *round;
                    if let Some(wait) = self.scan(k, c, round) {
                        return Step::Wait(wait);
                    }
                }
                Stage::Collapsing(round, collapse) => {
                    let had_huge_page = done!(collapse.step(k, c));
                    let round = *round;
                    if had_huge_page {
                        self.stage = Stage::Scanning(round);
                    } else if round.has_failed {
                        return Step::Wait(self.sleep(k));
                    } else {
                        self.stage = Stage::Scanning(Round { has_failed: true, ..round });
                        let ms = k.mem.khugepaged_alloc_sleep_ms();
                        return Step::Wait(Wait::Time(u64::from(ms) * MS));
                    }
                }
            }
        }
    }

    fn sleep(&mut self, k: &mut Kernel) -> Wait {
        self.stage = Stage::Sleeping;
        Wait::Time(u64::from(k.mem.khugepaged_sleep_ms()) * MS)
    }

    /// Looks at the next range. Returns a wait if the round is over.
    fn scan(&mut self, k: &mut Kernel, c: &mut Context, mut round: Round) -> Option<Wait> {
        if self.next.is_none() {
            round.passes += 1;
        }
        let first = k.khugepaged.processes.first().copied();
        let mut is_over = || round.passes >= 2 || k.mem.khugepaged_has_scanned_enough(round.progress);
        let Some(first) = first.filter(|_| !is_over()) else {
            return Some(self.sleep(k));
        };
        let range = self.next.unwrap_or(Range { process: first, region: 0, page: 0 });
        self.stage = Stage::Scanning(round);
        let existing = existing(k, range).filter(|_| k.is_map_open(range.process, Mode::Read));
        let Some((range, mapping)) = existing else {
            self.next_process(k, round, range.process);
            return None;
        };
        round.progress += TABLE_PAGES;
        self.next = Some(Range { page: range.page + TABLE_PAGES, ..range });
        self.stage = Stage::Scanning(round);
        if let Ok(node) = k.collapsible(c, (mapping, range.process), range.page, true) {
            self.stage = Stage::Collapsing(round, Box::new(Collapse::new(k, range, mapping, node)));
        }
        None
    }

    /// Goes on to the next process: this one has no more ranges, has ended, or is changing its map.
    fn next_process(&mut self, k: &mut Kernel, mut round: Round, process: u32) {
        round.progress += 1;
        let after = k.khugepaged.processes.iter().position(|other| *other == process);
        let next = k.khugepaged.processes.get(after.map_or(usize::MAX, |place| place + 1));
        self.next = next.map(|process| Range { process: *process, region: 0, page: 0 });
        k.khugepaged.counts.full_scans += u64::from(self.next.is_none());
        self.stage = Stage::Scanning(round);
    }
}
