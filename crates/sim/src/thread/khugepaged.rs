//! khugepaged: makes huge pages of what processes have as small ones.
//!
//! It goes through the processes that may have huge pages, in the order in which they first could, and through their memory
//! range by range; after `pages_to_scan` pages it sleeps. A range of which not too much is missing, in swap or shared, and
//! something has been used, is collapsed: a huge page is allocated on the node that most of the range is on, what is in swap
//! is read, and all is copied there ([`collapse`]). The process's memory map is held meanwhile as a fault holds it, and alone for the copy; the
//! kernel's khugepaged waits for it, this one looks again after a tick. Without a huge page it sleeps for long, once, and then gives its round up.
//! Machines that keep no order of their pages have none. Source: kernel-behaviour §6.2, `mm/khugepaged.c` of 6.1.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::id::MappingId;
use crate::base::numa::node_of;
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::collapse::Collapse;
use crate::state::file::Flags;
use crate::state::object::TABLE_PAGES;
use crate::state::process::address_space::Entry;
use kontig_mm::{NodeId, Step, VmEvent};

const MS: u64 = 1_000_000;

/// A range of a process's memory, by the number of its mapping there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Range {
    pub(crate) process: u32,
    pub(crate) region: u32,
    pub(crate) page: u32,
}

/// khugepaged as a task.
#[derive(Clone)]
pub(crate) struct KhugepagedThread {
    /// The range it looks at next; `None` before the first process.
    next: Option<Range>,
    state: State,
}

#[derive(Clone)]
enum State {
    Sleeping,
    Scanning(Round),
    Collapsing(Round, Box<Collapse>),
}

/// What it does between two sleeps.
#[derive(Clone, Copy, Default)]
struct Round {
    progress: u32,
    passes: u32,
    /// There has been no huge page for it.
    has_failed: bool,
}

/// What is in a range.
#[derive(Clone, Copy, Default, Debug)]
struct Found {
    none: u32,
    swapped: u32,
    shared: u32,
    used: u32,
    writable: bool,
}

impl KhugepagedThread {
    pub(crate) fn new() -> KhugepagedThread {
        KhugepagedThread { next: None, state: State::Sleeping }
    }

    /// A turn.
    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        loop {
            if k.must_yield(c) {
                return Step::Working;
            }
            match std::mem::replace(&mut self.state, State::Sleeping) {
                State::Sleeping => {
                    if let (true, Some(queue)) = (k.khugepaged.processes.is_empty(), k.khugepaged.queue) {
                        return Step::Wait(Wait::Queue(queue));
                    }
                    k.mem.lru_add_drain_all();
                    k.charge(&mut c.now);
                    self.state = State::Scanning(Round::default());
                }
                State::Scanning(round) => {
                    if let Some(wait) = self.scan(k, c, round) {
                        return Step::Wait(wait);
                    }
                }
                State::Collapsing(mut round, mut collapse) => match collapse.step(k, c) {
                    Step::Working => {
                        self.state = State::Collapsing(round, collapse);
                        return Step::Working;
                    }
                    Step::Wait(wait) => {
                        self.state = State::Collapsing(round, collapse);
                        return Step::Wait(wait);
                    }
                    Step::Done(true) => self.state = State::Scanning(round),
                    Step::Done(false) if round.has_failed => return Step::Wait(self.sleep(k)),
                    Step::Done(false) => {
                        round.has_failed = true;
                        self.state = State::Scanning(round);
                        return Step::Wait(Wait::Time(
                            u64::from(k.mem.tunables().khugepaged.alloc_sleep_millisecs) * MS,
                        ));
                    }
                },
            }
        }
    }

    fn sleep(&mut self, k: &Kernel) -> Wait {
        self.state = State::Sleeping;
        Wait::Time(u64::from(k.mem.tunables().khugepaged.scan_sleep_millisecs) * MS)
    }

    /// Looks at the next range. What it waits for if the round is over.
    fn scan(&mut self, k: &mut Kernel, c: &mut Context, mut round: Round) -> Option<Wait> {
        if self.next.is_none() {
            round.passes += 1;
        }
        let first = k.khugepaged.processes.first().copied();
        let is_over = round.progress >= k.mem.tunables().khugepaged.pages_to_scan || round.passes >= 2;
        let Some(first) = first.filter(|_| !is_over) else {
            return Some(self.sleep(k));
        };
        let range = self.next.unwrap_or(Range { process: first, region: 0, page: 0 });
        self.state = State::Scanning(round);
        let existing = existing(k, range).filter(|_| k.is_map_open(range.process, Mode::Read));
        let Some((range, mapping)) = existing else {
            self.next_process(k, round, range.process);
            return None;
        };
        round.progress += TABLE_PAGES;
        self.next = Some(Range { page: range.page + TABLE_PAGES, ..range });
        self.state = State::Scanning(round);
        if let Some(node) = k.collapsible(c, mapping, range.page, true) {
            self.state = State::Collapsing(round, Box::new(Collapse::new(k, range, mapping, node)));
        }
        None
    }

    /// A process has no more, is gone, or is just being changed: the next one.
    fn next_process(&mut self, k: &mut Kernel, mut round: Round, process: u32) {
        round.progress += 1;
        let after = k.khugepaged.processes.iter().position(|other| *other == process);
        let next = k.khugepaged.processes.get(after.map_or(usize::MAX, |place| place + 1));
        self.next = next.map(|process| Range { process: *process, region: 0, page: 0 });
        k.khugepaged.counts.full_scans += u64::from(self.next.is_none());
        self.state = State::Scanning(round);
    }
}

/// The first range from this one on that is wholly in a mapping which may have huge pages. What a file holds stays as it is.
/// (A kernel with `CONFIG_READ_ONLY_THP_FOR_FS` makes huge pages of programs that nobody writes to.)
pub(crate) fn existing(k: &mut Kernel, mut range: Range) -> Option<(Range, MappingId)> {
    if !k.family.is_alive(range.process) {
        return None;
    }
    loop {
        let (region, mapping) = k.pages.spaces.next_mapping(range.process, range.region)?;
        if region != range.region {
            (range.region, range.page) = (region, 0);
        }
        let m = k.pages.spaces.mapping(mapping);
        let (pages, advised) = (m.pages(), m.is_advised_huge());
        let is_own = m.file().is_none();
        let is_there = range.page + TABLE_PAGES <= pages && !k.pages.spaces.is_leaving(mapping);
        if is_own && is_there && k.mem.wants_huge(advised) {
            return Some((range, mapping));
        }
        range = Range { region: region + 1, page: 0, ..range };
    }
}

impl Kernel {
    /// Whether a range may become a huge page, and on which node. Only the first look asks whether it is used, and counts.
    pub(crate) fn collapsible(
        &mut self,
        c: &mut Context,
        mapping: MappingId,
        first: u32,
        looks: bool,
    ) -> Option<NodeId> {
        let table = self.pages.spaces.mapping(mapping).table(first);
        if table.huge().is_some() || table.page().is_none() {
            return None;
        }
        if looks {
            c.now += ns(self.costs.scan_entry * u64::from(TABLE_PAGES));
        }
        let limits = self.mem.tunables().khugepaged;
        let mut found = Found::default();
        let mut of_node = vec![0u32; self.mem.nodes().len()];
        let exceeded = |k: &mut Kernel, event| {
            k.mem.vmstat_mut().add(event, u64::from(looks));
            None
        };
        for page in first..first + TABLE_PAGES {
            let m = self.pages.spaces.mapping(mapping);
            let (young, writable) = (m.is_young(page), !m.is_protected(page));
            match m.entry(page) {
                Entry::None | Entry::Zero => {
                    found.none += 1;
                    if found.none > limits.max_ptes_none {
                        return exceeded(self, VmEvent::ThpScanExceedNonePte);
                    }
                }
                Entry::Swap(_) => {
                    found.swapped += 1;
                    if !looks || found.swapped > limits.max_ptes_swap {
                        return exceeded(self, VmEvent::ThpScanExceedSwapPte);
                    }
                }
                Entry::Frame(pfn) => {
                    found.writable |= writable;
                    found.used += u32::from(young);
                    found.shared += u32::from(self.pages.mapcounts.more(pfn) > 0);
                    if found.shared > limits.max_ptes_shared {
                        return exceeded(self, VmEvent::ThpScanExceedSharePte);
                    }
                    let is_busy = self.pages.frames.flags(pfn).any(Flags::LOCKED | Flags::WRITEBACK);
                    if is_busy || !self.mem.is_on_lru(pfn) || self.mem.lru().holds(pfn) > 0 {
                        return None;
                    }
                    of_node[node_of(&self.mem, pfn).index()] += 1;
                }
            }
        }
        let used_enough = found.used > 0 && (found.swapped == 0 || found.used >= TABLE_PAGES / 2);
        if !found.writable || looks && !used_enough {
            return None;
        }
        // The first of those with the most.
        let most = of_node.iter().copied().max()?;
        of_node.iter().position(|pages| *pages == most).map(NodeId::new)
    }
}
