//! khugepaged: makes huge pages of what processes have as small ones.
//!
//! It goes through the processes that may have huge pages, in the order in which they first could, and through their memory
//! range by range; after `pages_to_scan` pages it sleeps. A range of which not too much is missing, in swap or shared, and
//! something has been used, is collapsed: a huge page is allocated on the node that most of the range is on, what is in swap
//! is read, and all is copied there. The process's memory map is held meanwhile as a fault holds it, and alone for the copy; the
//! kernel's khugepaged waits for it, this one looks again after a tick. Without a huge page it sleeps for long, once, and then gives its round up.
//! Machines that keep no order of their pages have none. Source: kernel-behaviour §6.2, `mm/khugepaged.c` of 6.1.

use crate::allocation::Allocation;
use crate::context::Context;
use crate::cost::ns;
use crate::file::{Flags, node_of};
use crate::kernel::Kernel;
use crate::object::TABLE_PAGES;
use crate::oom::JIFFY_NS;
use crate::process::address_space::{At, Entry, MappingId};
use crate::queue::QueueId;
use crate::rw_lock::Mode;
use crate::swap::fault::SwapIn;
use crate::wait::Wait;
use kontig_mm::types::PAGEBLOCK_ORDER as HUGE;
use kontig_mm::{Gfp, NodeId, PageFlags, Pfn, Step, VmEvent};

const MS: u64 = 1_000_000;

/// The processes that may have huge pages, and what has been made of them.
#[derive(Clone, Default)]
pub(crate) struct Khugepaged {
    /// In the order in which they first could.
    pub(crate) processes: Vec<u32>,
    /// Where it waits while there are none; `None` on machines without it.
    pub(crate) queue: Option<QueueId>,
    pub(crate) counts: KhugepagedCounts,
}

/// What khugepaged has done (`/sys/kernel/mm/transparent_hugepage/khugepaged`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KhugepagedCounts {
    /// `pages_collapsed`: huge pages made.
    pub pages_collapsed: u64,
    /// `full_scans`: times it has been through all processes.
    pub full_scans: u64,
}

impl Kernel {
    /// A process may have huge pages.
    pub(crate) fn khugepaged_enter(&mut self, process: u32) {
        let Some(queue) = self.khugepaged.queue else { return };
        if !self.khugepaged.processes.contains(&process) {
            self.khugepaged.processes.push(process);
            self.queues.wake_all(queue);
        }
    }

    /// A process is gone.
    pub(crate) fn khugepaged_exit(&mut self, process: u32) {
        self.khugepaged.processes.retain(|other| *other != process);
    }
}

/// A range of a process's memory, by the number of its mapping there.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Range {
    process: u32,
    region: u32,
    page: u32,
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

/// A range that becomes a huge page.
#[derive(Clone)]
struct Collapse {
    range: Range,
    mapping: MappingId,
    node: NodeId,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    Allocate(Allocation),
    /// The huge page is there, and what is in swap is read.
    SwapIn {
        pfn: Pfn,
        next: u32,
        reading: Option<Box<SwapIn>>,
        is_held: bool,
    },
    /// All is there.
    Collapse {
        pfn: Pfn,
        is_held: bool,
    },
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
                    Step::Done(false) if round.has_failed => return self.sleep(k),
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

    fn sleep(&mut self, k: &Kernel) -> Step<(), Wait> {
        self.state = State::Sleeping;
        Step::Wait(Wait::Time(u64::from(k.mem.tunables().khugepaged.scan_sleep_millisecs) * MS))
    }

    /// Looks at the next range. What it waits for if the round is over.
    fn scan(&mut self, k: &mut Kernel, c: &mut Context, mut round: Round) -> Option<Wait> {
        if self.next.is_none() {
            round.passes += 1;
        }
        let first = k.khugepaged.processes.first().copied();
        let is_over = round.progress >= k.mem.tunables().khugepaged.pages_to_scan || round.passes >= 2;
        let Some(first) = first.filter(|_| !is_over) else {
            self.state = State::Sleeping;
            return match self.sleep(k) {
                Step::Wait(wait) => Some(wait),
                _ => None,
            };
        };
        let range = self.next.unwrap_or(Range { process: first, region: 0, page: 0 });
        self.state = State::Scanning(round);
        let Some((range, mapping)) = existing(k, range) else {
            return self.next_process(k, round, range.process);
        };
        if !k.is_map_open(range.process, Mode::Read) {
            return self.next_process(k, round, range.process);
        }
        round.progress += TABLE_PAGES;
        self.next = Some(Range { page: range.page + TABLE_PAGES, ..range });
        self.state = State::Scanning(round);
        if let Some(node) = k.collapsible(c, mapping, range.page, true) {
            let gfp = k.mem.khugepaged_request() | Gfp::THISNODE;
            let stage = Stage::Allocate(Allocation::new(gfp, HUGE));
            self.state = State::Collapsing(round, Box::new(Collapse { range, mapping, node, stage }));
        }
        None
    }

    /// A process has no more, is gone, or is just being changed: the next one.
    fn next_process(&mut self, k: &mut Kernel, mut round: Round, process: u32) -> Option<Wait> {
        round.progress += 1;
        let after = k.khugepaged.processes.iter().position(|other| *other == process);
        let next = k.khugepaged.processes.get(after.map_or(usize::MAX, |place| place + 1));
        self.next = next.map(|process| Range { process: *process, region: 0, page: 0 });
        k.khugepaged.counts.full_scans += u64::from(self.next.is_none());
        self.state = State::Scanning(round);
        None
    }
}

/// The first range from this one on that is wholly in a mapping which may have huge pages.
fn existing(k: &mut Kernel, mut range: Range) -> Option<(Range, MappingId)> {
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
        let is_there = range.page + TABLE_PAGES <= pages && !k.pages.spaces.is_leaving(mapping);
        if is_there && k.mem.wants_huge(advised) {
            return Some((range, mapping));
        }
        range = Range { region: region + 1, page: 0, ..range };
    }
}

impl Collapse {
    /// A step; whether there was a huge page for it.
    fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<bool, Wait> {
        loop {
            match &mut self.stage {
                Stage::Allocate(allocation) => {
                    let own = std::mem::replace(&mut c.node, self.node);
                    let step = allocation.step(k, c);
                    c.node = own;
                    let got = match step {
                        Step::Working => return Step::Working,
                        Step::Wait(wait) => return Step::Wait(wait),
                        Step::Done(got) => got,
                    };
                    let Ok(pfn) = got else {
                        k.mem.vmstat_mut().add(VmEvent::ThpCollapseAllocFailed, 1);
                        return Step::Done(false);
                    };
                    k.mem.vmstat_mut().add(VmEvent::ThpCollapseAlloc, 1);
                    self.stage = Stage::SwapIn { pfn, next: self.range.page, reading: None, is_held: false };
                }
                Stage::SwapIn { pfn, next, reading, is_held } => {
                    let (process, mapping, pfn) = (self.range.process, self.mapping, *pfn);
                    if !*is_held {
                        // The process may have changed while memory was looked for.
                        if existing(k, self.range) != Some((self.range, mapping)) {
                            return give_back(k, c, pfn);
                        }
                        if !k.try_lock_map(process, Mode::Read) {
                            return Step::Wait(Wait::Time(JIFFY_NS));
                        }
                        *is_held = true;
                    }
                    if let Some(swap_in) = reading {
                        match swap_in.step(k, c) {
                            Step::Working => return Step::Working,
                            Step::Wait(wait) => {
                                if swap_in.waits_for_page() {
                                    k.unlock_map(process, Mode::Read);
                                    *is_held = false;
                                }
                                return Step::Wait(wait);
                            }
                            Step::Done(Err(_)) => {
                                k.unlock_map(process, Mode::Read);
                                return give_back(k, c, pfn);
                            }
                            Step::Done(Ok(())) => *reading = None,
                        }
                    }
                    let m = k.pages.spaces.mapping(mapping);
                    let is_swapped = |page: &u32| matches!(m.entry(*page), Entry::Swap(_));
                    match (*next..self.range.page + TABLE_PAGES).find(is_swapped) {
                        Some(page) => {
                            *next = page;
                            *reading = Some(Box::new(SwapIn::new(At { mapping, page }, false)));
                        }
                        None => {
                            k.unlock_map(process, Mode::Read);
                            self.stage = Stage::Collapse { pfn, is_held: false };
                        }
                    }
                }
                Stage::Collapse { pfn, is_held } => {
                    let (process, mapping, pfn) = (self.range.process, self.mapping, *pfn);
                    if !*is_held {
                        if existing(k, self.range) != Some((self.range, mapping)) {
                            return give_back(k, c, pfn);
                        }
                        if !k.try_lock_map(process, Mode::Write) {
                            return Step::Wait(Wait::Time(JIFFY_NS));
                        }
                        *is_held = true;
                    }
                    if let Some(wait) = k.close_mapping(process, mapping) {
                        return Step::Wait(wait);
                    }
                    k.mem.lru_add_drain_all();
                    let may = k.collapsible(c, mapping, self.range.page, false).is_some();
                    if may {
                        k.collapse(c, mapping, self.range.page, pfn);
                        k.flush_tlb(process, &mut c.now);
                    }
                    k.open_mapping(mapping);
                    k.unlock_map(process, Mode::Write);
                    return if may { Step::Done(true) } else { give_back(k, c, pfn) };
                }
            }
        }
    }
}

/// The range cannot be collapsed after all.
fn give_back(k: &mut Kernel, c: &mut Context, pfn: Pfn) -> Step<bool, Wait> {
    k.mem.free(c.cpu, pfn, HUGE);
    k.charge(&mut c.now);
    Step::Done(true)
}

impl Kernel {
    /// Whether a range may become a huge page, and on which node. Only the first look asks whether it is used, and counts.
    fn collapsible(&mut self, c: &mut Context, mapping: MappingId, first: u32, looks: bool) -> Option<NodeId> {
        let table = self.pages.spaces.mapping(mapping).table(first);
        if table.huge().is_some() || table.page().is_none() {
            return None;
        }
        if looks {
            c.now += ns(self.costs.fork_page * u64::from(TABLE_PAGES));
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

    /// Copies a range into a huge page and maps that in its place.
    fn collapse(&mut self, c: &mut Context, mapping: MappingId, first: u32, huge: Pfn) {
        let mut copied = 0;
        for page in first..first + TABLE_PAGES {
            if let Some((entry, _)) = self.pages.spaces.mapping(mapping).take(page) {
                copied += u64::from(matches!(entry, Entry::Frame(_)));
                self.zap(c.cpu, entry);
            }
        }
        let m = self.pages.spaces.mapping(mapping);
        m.table_mut(first).set_huge(Some(huge));
        m.table_mut(first).set_accessed();
        let number = m.number(first);
        self.mem.lru_add(c.cpu, huge, HUGE, PageFlags::ANON);
        self.mem.set_owner(huge, HUGE, number);
        self.khugepaged.counts.pages_collapsed += 1;
        // What is missing is cleared, at the rate at which a huge page is.
        let missing = u64::from(TABLE_PAGES) - copied;
        let cleared = self.costs.clear_huge * missing / u64::from(TABLE_PAGES);
        c.now += ns((self.costs.copy_page + self.costs.unmap) * copied + cleared);
        c.now += ns(self.costs.prepare_page * u64::from(TABLE_PAGES));
        self.charge(&mut c.now);
    }
}
