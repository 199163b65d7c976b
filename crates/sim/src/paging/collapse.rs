//! Collapsing a range into a huge page: allocates it, swaps in what is missing and copies
//! everything.
//!
//! `mmap_lock` is dropped during allocation and between swap-in and copy, so the range is checked
//! again each time. Source: `collapse_huge_page` of 6.1.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::id::{At, MappingId};
use crate::base::numa::node_of;
use crate::base::rw_lock::Mode;
use crate::base::timer::JIFFY_NS;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::paging::swap_in::SwapIn;
use crate::state::file::Flags;
use crate::state::object::TABLE_PAGES;
use crate::state::process::mapping::Entry;
use kontig_mm::event::{Ptes, ScanResult};
use kontig_mm::rules::Collapses;
use kontig_mm::types::HPAGE_PMD_ORDER;
use kontig_mm::{Event, Gfp, NodeId, PageFlags, Pfn, Step, VmEvent};
use std::ops::ControlFlow::{self, Break, Continue};

/// A 2 MiB range of a process, by the mapping's number there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Range {
    pub(crate) process: u32,
    pub(crate) region: u32,
    pub(crate) page: u32,
}

/// A collapse in progress.
#[derive(Clone)]
pub(crate) struct Collapse {
    range: Range,
    mapping: MappingId,
    node: NodeId,
    stage: Stage,
    /// Whether the process's memory map is held, in the mode of the current stage.
    is_held: bool,
    /// No page before this one is in swap.
    next: u32,
    reading: Option<Box<SwapIn>>,
}

#[derive(Clone)]
enum Stage {
    Allocate(Allocation),
    /// The huge page is allocated; pages in swap are read in.
    SwapIn(Pfn),
    /// Every page is in memory.
    Copy(Pfn),
}

/// The end of a turn. `Done` says whether a huge page could be allocated, if not charged.
type Over = Step<bool, Wait>;

impl Collapse {
    /// Collapses this range of a mapping into a huge page of this node.
    pub(crate) fn new(k: &mut Kernel, range: Range, mapping: MappingId, node: NodeId) -> Collapse {
        let gfp = k.mem.khugepaged_request();
        let group = k.pages.spaces.group_of(range.process);
        let request = Allocation::new(gfp | Gfp::THISNODE, HPAGE_PMD_ORDER);
        let stage = Stage::Allocate(request.charged_to(group, gfp));
        Collapse { range, mapping, node, stage, is_held: false, next: range.page, reading: None }
    }

    /// A step; done with whether a huge page could be allocated.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Over {
        loop {
            let next = match &mut self.stage {
                Stage::Allocate(allocation) => allocate(allocation, (self.node, self.range.process), k, c),
                Stage::SwapIn(pfn) => {
                    let pfn = *pfn;
                    self.swap_in(k, c, pfn)
                }
                Stage::Copy(pfn) => {
                    let pfn = *pfn;
                    self.copy(k, c, pfn)
                }
            };
            match next {
                Continue(stage) => self.stage = stage,
                Break(over) => return over,
            }
        }
    }

    /// Takes the process's memory map and checks that the range still exists.
    fn enter(&mut self, k: &mut Kernel, c: &mut Context, pfn: Pfn, mode: Mode) -> ControlFlow<Over> {
        if self.is_held {
            return Continue(());
        }
        if existing(k, self.range) != Some((self.range, self.mapping)) {
            return Break(give_back(k, c, pfn, (self.range.process, ScanResult::VmaNull)));
        }
        if !k.try_lock_map(self.range.process, mode) {
            return Break(Step::Wait(Wait::Time(JIFFY_NS)));
        }
        self.is_held = true;
        Continue(())
    }

    fn leave(&mut self, k: &mut Kernel, mode: Mode) {
        k.unlock_map(self.range.process, mode);
        self.is_held = false;
    }

    /// Reads a page in from swap, or finds the next one to read.
    fn swap_in(&mut self, k: &mut Kernel, c: &mut Context, pfn: Pfn) -> ControlFlow<Over, Stage> {
        self.enter(k, c, pfn, Mode::Read)?;
        if let Some(swap_in) = &mut self.reading {
            match swap_in.step(k, c) {
                Step::Working => return Break(Step::Working),
                Step::Wait(wait) => {
                    if swap_in.waits_for_page() {
                        self.leave(k, Mode::Read);
                    }
                    return Break(Step::Wait(wait));
                }
                Step::Done(Err(_)) => {
                    self.leave(k, Mode::Read);
                    return Break(give_back(k, c, pfn, (self.range.process, ScanResult::Fail)));
                }
                Step::Done(Ok(())) => self.reading = None,
            }
        }
        let m = k.pages.spaces.mapping(self.mapping);
        let is_swapped = |page: &u32| matches!(m.entry(*page), Entry::Swap(_));
        match (self.next..self.range.page + TABLE_PAGES).find(is_swapped) {
            Some(page) => {
                self.next = page;
                self.reading = Some(Box::new(SwapIn::by_khugepaged(At { mapping: self.mapping, page })));
                Continue(Stage::SwapIn(pfn))
            }
            None => {
                self.leave(k, Mode::Read);
                Continue(Stage::Copy(pfn))
            }
        }
    }

    /// Copies the range, if it can still become a huge page.
    fn copy(&mut self, k: &mut Kernel, c: &mut Context, pfn: Pfn) -> ControlFlow<Over, Stage> {
        self.enter(k, c, pfn, Mode::Write)?;
        let (process, mapping, page) = (self.range.process, self.mapping, self.range.page);
        if let Some(wait) = k.close_mapping(process, mapping) {
            return Break(Step::Wait(wait));
        }
        k.mem.lru_add_drain_all();
        let may = k.collapsible(c, (mapping, process), page, false);
        if may.is_ok() {
            k.collapse(c, mapping, page, pfn);
            k.flush_tlb(process, &mut c.now);
        }
        k.open_mapping(mapping);
        self.leave(k, Mode::Write);
        Break(match may {
            Ok(_) => {
                conclude(k, c, process, ScanResult::Succeed);
                Step::Done(true)
            }
            Err(status) => give_back(k, c, pfn, (process, status)),
        })
    }
}

/// Allocates the huge page on the node.
fn allocate(
    allocation: &mut Allocation,
    (node, process): (NodeId, u32),
    k: &mut Kernel,
    c: &mut Context,
) -> ControlFlow<Over, Stage> {
    let own = std::mem::replace(&mut c.node, node);
    let step = allocation.step(k, c);
    c.node = own;
    match done!(step, Break) {
        Ok(pfn) => {
            k.mem.vmstat_mut().add(VmEvent::ThpCollapseAlloc, 1);
            let group = k.mem.groups().of_page(pfn);
            k.pages.groups.count(group, |counts| counts.thp_collapse_alloc += 1);
            Continue(Stage::SwapIn(pfn))
        }
        Err(_) if allocation.is_over_limit() => {
            k.mem.vmstat_mut().add(VmEvent::ThpCollapseAlloc, 1);
            conclude(k, c, process, ScanResult::CgroupChargeFail);
            Break(Step::Done(true))
        }
        Err(_) => {
            k.mem.vmstat_mut().add(VmEvent::ThpCollapseAllocFailed, 1);
            conclude(k, c, process, ScanResult::AllocHugePageFail);
            Break(Step::Done(false))
        }
    }
}

/// The end of a collapse, for a trace.
fn conclude(k: &mut Kernel, c: &Context, process: u32, status: ScanResult) {
    let isolated = status == ScanResult::Succeed;
    k.trace_huge_memory(c, || Event::CollapseHugePage { process, isolated, status });
}

/// Gives up on the range of a process for this reason, and frees the huge page.
fn give_back(k: &mut Kernel, c: &mut Context, pfn: Pfn, (process, status): (u32, ScanResult)) -> Over {
    conclude(k, c, process, status);
    k.mem.free(c.cpu, pfn, HPAGE_PMD_ORDER);
    k.charge(&mut c.now);
    Step::Done(true)
}

impl Kernel {
    /// Copies a range into a huge page and maps it in place of the small pages.
    fn collapse(&mut self, c: &mut Context, mapping: MappingId, first: u32, huge: Pfn) {
        let mut copied = 0;
        for page in first..first + TABLE_PAGES {
            if let Some((entry, _)) = self.pages.spaces.mapping(mapping).take(page) {
                copied += u64::from(matches!(entry, Entry::Frame(_)));
                self.zap(c.cpu, entry);
            }
        }
        let m = self.pages.spaces.mapping(mapping);
        assert!(m.file().is_none(), "a huge page is a process's own: a file's pages have other numbers");
        m.table_mut(first).set_huge(Some(huge));
        m.table_mut(first).set_accessed();
        let number = m.number(first);
        self.mem.lru_add(c.cpu, huge, HPAGE_PMD_ORDER, PageFlags::ANON);
        self.mem.set_owner(huge, HPAGE_PMD_ORDER, number);
        self.khugepaged.counts.pages_collapsed += 1;
        // Missing pages are cleared.
        c.now += self.bus.write(c.now, TABLE_PAGES.into()) + ns((self.costs.copy_page + self.costs.unmap) * copied);
        c.now += ns(self.costs.prepare_page * u64::from(TABLE_PAGES));
        self.charge(&mut c.now);
    }
}

/// The first range from this one on that lies in an anonymous mapping which may have huge pages.
/// File mappings are skipped. (A kernel with `CONFIG_READ_ONLY_THP_FOR_FS` collapses program text
/// that nobody writes to.)
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
        range.page = range.page.max(m.first_range());
        let advised = m.is_advised_huge();
        let is_own = m.file().is_none();
        let is_there = m.has_range_of(range.page) && !k.pages.spaces.is_leaving(mapping);
        if is_own && is_there && k.mem.wants_huge(advised) {
            return Some((range, mapping));
        }
        range = Range { region: region + 1, page: 0, ..range };
    }
}

/// A look through a range.
struct Look {
    ptes: Ptes,
    /// Pages of each node.
    of_node: Vec<u32>,
}

impl Kernel {
    /// The node for a huge page, or why the range must not be collapsed. Only the scan (`looks`)
    /// requires recently used pages and counts the reasons.
    pub(crate) fn collapsible(
        &mut self,
        c: &mut Context,
        (mapping, process): (MappingId, u32),
        first: u32,
        looks: bool,
    ) -> Result<NodeId, ScanResult> {
        let mut look = Look { ptes: Ptes::default(), of_node: vec![0; self.mem.nodes().len()] };
        let status = self.look_through(c, mapping, first, looks, &mut look);
        let ptes = look.ptes;
        self.trace_huge_memory(c, || match looks {
            true => Event::KhugepagedScanPmd { process, ptes, status },
            false => Event::CollapseHugePageIsolate { ptes, status },
        });
        if status != ScanResult::Succeed {
            return Err(status);
        }
        // The lowest of the nodes with the most pages.
        let most = look.of_node.iter().copied().max().unwrap_or(0);
        let node = look.of_node.iter().position(|pages| *pages == most);
        node.map(NodeId::new).ok_or(ScanResult::Fail)
    }

    fn look_through(
        &mut self,
        c: &mut Context,
        mapping: MappingId,
        first: u32,
        looks: bool,
        look: &mut Look,
    ) -> ScanResult {
        let table = self.pages.spaces.mapping(mapping).table(first);
        if table.huge().is_some() {
            return ScanResult::PmdMapped;
        }
        if table.page().is_none() {
            return ScanResult::PmdNull;
        }
        if looks {
            c.now += ns(self.costs.scan_entry * u64::from(TABLE_PAGES));
        }
        let collapses = self.mem.profile().huge_pages.collapses;
        let Look { ptes, of_node } = look;
        let mut shared = 0;
        let exceeded = |k: &mut Kernel, event, result| {
            k.mem.vmstat_mut().add(event, u64::from(looks));
            result
        };
        for page in first..first + TABLE_PAGES {
            let m = self.pages.spaces.mapping(mapping);
            let (young, writable) = (m.is_young(page), !m.is_protected(page));
            let entry = m.entry(page);
            if collapses == Collapses::Writable && entry != Entry::None && !writable {
                return ScanResult::PageRo;
            }
            match entry {
                Entry::None | Entry::Zero => {
                    ptes.none_or_zero += 1;
                    if self.mem.khugepaged_misses_too_many(ptes.none_or_zero) {
                        return exceeded(self, VmEvent::ThpScanExceedNonePte, ScanResult::ExceedNonePte);
                    }
                }
                Entry::Swap(_) => {
                    ptes.unmapped += 1;
                    if !looks || self.mem.khugepaged_swaps_too_many(ptes.unmapped) {
                        return exceeded(self, VmEvent::ThpScanExceedSwapPte, ScanResult::ExceedSwapPte);
                    }
                }
                Entry::Frame(pfn) => {
                    ptes.pfn = Some(pfn);
                    ptes.writable |= writable;
                    ptes.referenced += u32::from(young);
                    let is_shared = self.pages.mapcounts.more(pfn) > 0;
                    let in_swap_cache = self.pages.frames.flags(pfn).any(Flags::SWAP_CACHE);
                    let has_another_user =
                        is_shared && !collapses.shared() || in_swap_cache && collapses == Collapses::Writable;
                    shared += u32::from(is_shared && collapses.shared());
                    if self.mem.khugepaged_shares_too_many(shared) {
                        return exceeded(self, VmEvent::ThpScanExceedSharePte, ScanResult::ExceedSharedPte);
                    }
                    if self.pages.frames.flags(pfn).any(Flags::LOCKED) {
                        return ScanResult::PageLock;
                    }
                    if !self.mem.is_on_lru(pfn) {
                        return ScanResult::PageLru;
                    }
                    let is_written = self.pages.frames.flags(pfn).any(Flags::WRITEBACK);
                    if has_another_user || is_written || self.mem.lru().holds(pfn) > 0 {
                        return ScanResult::PageCount;
                    }
                    of_node[node_of(&self.mem, pfn).index()] += 1;
                }
            }
        }
        let used_enough = ptes.referenced > 0 && (ptes.unmapped == 0 || ptes.referenced >= TABLE_PAGES / 2);
        match () {
            () if !ptes.writable && collapses != Collapses::ReadOnly => ScanResult::PageRo,
            () if looks && !used_enough => ScanResult::LackReferencedPage,
            () => ScanResult::Succeed,
        }
    }
}
