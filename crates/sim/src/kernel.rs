//! The simulated kernel's side of system calls: page faults, unmapping, drivers' allocations.
//!
//! An operation runs in slices: until it is done, until another CPU's turn has come, or until it has woken a kernel
//! thread. A slice advances the task's clock by what its work costs, and by the wait for a zone lock that another
//! CPU holds.

use crate::address_space::{AddressSpaces, TABLE_PAGES};
use crate::cost::{CostModel, ns};
use crate::translate;
use kontig_mm::event::{Event, Listen};
use kontig_mm::kcompactd::NodeSweep;
use kontig_mm::sysctl::{SysctlEffect, SysctlError};
use kontig_mm::{
    AllocFailure, AllocSlow, CpuId, Gfp, Memory, NodeId, Order, PageSource, Pfn, Request, Step, VmEvent, Work,
};
use kontig_program::{Op, Region, Value};
use std::fmt;

const HUGE: Order = kontig_mm::types::PAGEBLOCK_ORDER;

/// A program asked for something the machine cannot give.
#[derive(Clone, Debug, PartialEq)]
pub enum SimError {
    /// A sysctl write was refused.
    Sysctl(SysctlError),
    /// Memory ran out where the kernel would look for a process to kill; this machine has no OOM killer.
    OutOfMemory {
        /// What could not be had.
        what: String,
    },
    /// The program used memory that is not its own.
    BadAddress {
        /// What it asked for.
        op: String,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Sysctl(e) => e.fmt(f),
            SimError::OutOfMemory { what } => {
                write!(f, "the simulated machine is out of memory: {what} (it has no OOM killer; ask for less)")
            }
            SimError::BadAddress { op } => write!(f, "the workload used memory it does not hold: {op}"),
        }
    }
}

impl std::error::Error for SimError {}

/// Memory, mappings and costs: what all tasks share.
pub(crate) struct Kernel {
    pub(crate) mem: Memory,
    pub(crate) spaces: AddressSpaces,
    pub(crate) costs: CostModel,
    /// When each zone's lock is free again.
    lock_free_at: Vec<u64>,
    /// All work charged so far.
    pub(crate) work: Work,
    /// Time spent waiting for zone locks, ns.
    pub(crate) lock_wait_ns: u64,
    /// Events with the time they happened at. A task may run past another's next turn, so they are not yet in order.
    pub(crate) events: Vec<(u64, Event)>,
}

/// Where and for whom an operation runs, and until when.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    pub(crate) cpu: CpuId,
    pub(crate) node: NodeId,
    pub(crate) process: usize,
    /// The task's clock.
    pub(crate) now: u64,
    /// When another task's turn comes.
    pub(crate) horizon: u64,
    /// When the host wants to look at the machine. It ends a turn between two steps and decides nothing else, so that
    /// looking changes nothing.
    pub(crate) until: u64,
    /// Of the time since the turn began, the task's own code, ns.
    pub(crate) user_ns: u64,
}

impl Context {
    /// A request of the task.
    #[inline(always)]
    pub(crate) fn request(&self, gfp: Gfp, order: Order) -> Request {
        Request::new(self.cpu, self.node, gfp, order)
    }

    /// Whether the turn has to end.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.now >= self.horizon || self.now >= self.until
    }
}

/// Pageblocks a scanner may visit in one step at most: a host that looks at the machine waits no longer than that.
const MAX_BUDGET: u64 = 4096;

/// An operation in progress.
pub(crate) struct InProgress {
    pub(crate) op: Op,
    pub(crate) start: u64,
    stage: Stage,
}

enum Stage {
    Start,
    /// Next page of a range.
    Page(u32),
    /// A fault's allocation on the slow path: what for, and the page.
    FaultSlow(FaultFor, u32, Box<AllocSlow>),
    /// A driver's allocation on the slow path.
    AllocSlow(Box<AllocSlow>),
    /// `compact_memory`, node by node.
    Sweep(usize, Box<NodeSweep>),
}

#[derive(Clone, Copy, PartialEq)]
enum FaultFor {
    Table,
    Small,
    /// The first attempt at a huge page: this node, lightly.
    HugeLocal,
    /// The second: any node, with what the advice allows.
    HugeAny,
}

/// What a slice came to.
pub(crate) enum Slice {
    /// Not done.
    More,
    /// Done, with a value.
    Done(Value),
}

impl InProgress {
    pub(crate) fn new(op: Op, start: u64) -> InProgress {
        InProgress { op, start, stage: Stage::Start }
    }
}

impl Kernel {
    pub(crate) fn new(mem: Memory, costs: CostModel) -> Kernel {
        let lock_free_at = vec![0; mem.zones().len()];
        Kernel {
            mem,
            spaces: AddressSpaces::default(),
            costs,
            lock_free_at,
            work: Work::default(),
            lock_wait_ns: 0,
            events: Vec::new(),
        }
    }

    /// Charges the engine's work since the last charge to `now`.
    #[inline(always)]
    pub(crate) fn charge(&mut self, now: &mut u64) {
        if self.mem.has_work() {
            self.charge_work(now);
        }
    }

    #[inline(never)]
    fn charge_work(&mut self, now: &mut u64) {
        let w = self.mem.take_work();
        self.work.add(&w);
        let locked = self.costs.locked_ns(&w);
        let mut zones = w.zones;
        let mut begin = *now;
        while zones != 0 {
            begin = begin.max(self.lock_free_at[zones.trailing_zeros() as usize]);
            zones &= zones - 1;
        }
        self.lock_wait_ns += begin - *now;
        let mut zones = w.zones;
        while zones != 0 {
            self.lock_free_at[zones.trailing_zeros() as usize] = begin + locked;
            zones &= zones - 1;
        }
        let shootdowns = std::mem::take(&mut self.spaces.shootdowns);
        self.stamp(begin, &w, shootdowns);
        *now = begin + self.costs.work_ns(&w) + ns(shootdowns * self.costs.tlb_shootdown);
    }

    /// Dates the events of a step. An event's time is `begin` plus the cost of the work done before it, with TLB
    /// shootdowns in proportion to pages migrated.
    fn stamp(&mut self, begin: u64, whole: &Work, shootdowns: u64) {
        let (costs, events) = (&self.costs, &mut self.events);
        events.extend(self.mem.trace().take_with_work().map(|(event, done)| {
            let shot = (shootdowns * done.migrated).checked_div(whole.migrated).unwrap_or(0);
            (begin + costs.work_ns(&done) + ns(shot * costs.tlb_shootdown), event)
        }));
    }

    /// Events that happened before `until`, in the order of their times; ties stay in the order recorded.
    pub(crate) fn take_events(&mut self, until: u64) -> Vec<(u64, Event)> {
        self.events.sort_by_key(|(at, _)| *at);
        let later = self.events.partition_point(|(at, _)| *at < until);
        self.events.drain(..later).collect()
    }

    /// How many pageblocks a scanner may visit before the horizon.
    pub(crate) fn budget(&self, c: &Context) -> u64 {
        self.costs.blocks_in(c.horizon.saturating_sub(c.now)).clamp(32, MAX_BUDGET)
    }

    /// Runs an operation until it is done, its time is up, or it has woken somebody.
    pub(crate) fn slice(&mut self, p: &mut InProgress, c: &mut Context) -> Result<Slice, SimError> {
        if let Stage::Start = p.stage {
            c.now += ns(self.costs.syscall);
        }
        match p.op {
            Op::Mmap { pages } => Ok(Slice::Done(Value::Region(self.spaces.mmap(c.process, pages)))),
            Op::AdviseHuge(r) => {
                self.own(c, &p.op, r)?;
                self.spaces.mapping(r.mapping).advise_huge();
                Ok(Slice::Done(Value::Unit))
            }
            Op::Touch(r) => self.touch(p, c, r),
            Op::Munmap(r) => self.munmap(p, c, r),
            Op::AllocPages { gfp, order } => match translate::order(order) {
                Some(order) => self.alloc_pages(p, c, translate::gfp(gfp), order),
                None => Ok(Slice::Done(Value::Block(None))),
            },
            Op::SplitPages { block, order } => {
                let bad = || SimError::BadAddress { op: format!("{:?}", p.op) };
                self.mem.split_page(translate::pfn(block, &p.op)?, translate::order(order).ok_or_else(bad)?);
                Ok(Slice::Done(Value::Unit))
            }
            Op::FreePages { first, pages } => {
                let pfn = translate::pfn(first, &p.op)?;
                for i in 0..pages {
                    self.mem.free(c.cpu, pfn.plus(i), Order::ZERO);
                    c.now += ns(self.costs.kernel_alloc);
                    self.charge(&mut c.now);
                }
                Ok(Slice::Done(Value::Unit))
            }
            Op::FreeAboveHigh => {
                let above = self.mem.zones().iter().map(|z| {
                    let kept = z.wmark(kontig_mm::Wmark::High) + z.lowmem_reserve[3];
                    z.nr_free_pages_exact().saturating_sub(kept)
                });
                Ok(Slice::Done(Value::Pages(above.sum())))
            }
            Op::Sysctl { .. } => self.sysctl(p, c),
            Op::Sleep(_) => unreachable!("the executor handles waiting"),
        }
    }

    fn own(&self, c: &Context, op: &Op, r: Region) -> Result<(), SimError> {
        match self.spaces.get(c.process, r) {
            Some(_) => Ok(()),
            None => Err(SimError::BadAddress { op: format!("{op:?}") }),
        }
    }

    /// Whether the slice has to end: another task's turn has come, or a kernel thread was woken.
    #[inline(always)]
    fn must_yield(&self, c: &Context) -> bool {
        c.is_over() || self.mem.has_wakes()
    }

    /// Writes to every page of a range, faulting in what is not there.
    fn touch(&mut self, p: &mut InProgress, c: &mut Context, r: Region) -> Result<Slice, SimError> {
        let mut page = match &mut p.stage {
            Stage::Start => {
                self.own(c, &p.op, r)?;
                r.first
            }
            Stage::Page(page) => *page,
            Stage::FaultSlow(what, page, slow) => {
                let (what, page) = (*what, *page);
                match self.fault_slow(what, page, slow, c)? {
                    None => return Ok(Slice::More),
                    Some(Err(())) if what == FaultFor::HugeLocal => {
                        // Once more, on any node and with what the advice allows.
                        let gfp = Gfp::TRANSHUGE;
                        return self.start_fault(p, c, FaultFor::HugeAny, page, gfp);
                    }
                    Some(Err(())) => {
                        self.mem.vmstat_mut().add(VmEvent::ThpFaultFallback, 1);
                        // The page table is there already; this fault takes a small page.
                        return self.small_fault(p, c, page, r);
                    }
                    Some(Ok(pfn)) => self.finish_fault(what, page, pfn, c, r),
                }
            }
            _ => unreachable!("a touch has no other stage"),
        };
        let end = r.first + r.pages;
        let (fault_ns, touch_ns) = (ns(self.costs.fault), ns(self.costs.touch));
        while page < end {
            if self.must_yield(c) {
                p.stage = Stage::Page(page);
                return Ok(Slice::More);
            }
            let m = self.spaces.mapping(r.mapping);
            if m.table(page).page().is_none() {
                let huge = m.wants_huge(page);
                if let Some(slice) = self.first_fault_of_table(p, c, page, r, huge)? {
                    return Ok(slice);
                }
                continue;
            }
            if m.table(page).huge().is_some() {
                let next = ((page | (TABLE_PAGES - 1)) + 1).min(end);
                let touch_ns = ns(self.costs.touch) * u64::from(next - page);
                c.now += touch_ns;
                c.user_ns += touch_ns;
                page = next;
                continue;
            }
            if m.pte(page).is_none() {
                let Ok((pfn, source)) = self.mem.alloc_from(c.request(Gfp::HIGHUSER_MOVABLE, Order::ZERO)) else {
                    return self.start_fault(p, c, FaultFor::Small, page, Gfp::HIGHUSER_MOVABLE);
                };
                self.map_small(r.mapping, page, pfn);
                c.now += fault_ns + touch_ns;
                c.user_ns += touch_ns;
                self.charge(&mut c.now);
                page = self.fault_run(c, Region { first: page + 1, pages: end - (page + 1), ..r }, source);
                continue;
            }
            page += 1;
        }
        Ok(Slice::Done(Value::Unit))
    }

    /// Faults in the pages that follow one that came from `source`, one by one as [`Kernel::touch`] would, while they
    /// are of the same page table, not there, and this CPU's list has pages. The next page to touch.
    ///
    /// Nothing is charged on the way, so that no event would get its own time: while somebody listens to these
    /// allocations there are no runs, and every page goes through [`Kernel::touch`], which comes to the same.
    #[inline(always)]
    fn fault_run(&mut self, c: &mut Context, r: Region, mut source: PageSource) -> u32 {
        if self.mem.trace().listens_to(Listen::KMEM) {
            return r.first;
        }
        let end = (r.first.next_multiple_of(TABLE_PAGES)).min(r.first + r.pages);
        let walk = Work { zones_tried: source.zones_tried, ..Work::default() };
        let touch_ns = ns(self.costs.touch);
        let fault_ns = ns(self.costs.fault) + touch_ns + self.costs.work_ns(&walk);
        let mut page = r.first;
        while page < end && !self.must_yield(c) && self.spaces.mapping(r.mapping).pte(page).is_none() {
            let Some(pfn) = self.mem.alloc_again(c.request(Gfp::HIGHUSER_MOVABLE, Order::ZERO), &mut source) else {
                break;
            };
            self.map_small(r.mapping, page, pfn);
            c.now += fault_ns;
            c.user_ns += touch_ns;
            page += 1;
        }
        self.work.zones_tried += u64::from(page - r.first) * source.zones_tried;
        page
    }

    #[inline(always)]
    fn map_small(&mut self, mapping: u32, page: u32, pfn: Pfn) {
        self.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
        self.mem.lru_add(pfn, Order::ZERO);
        self.mem.set_owner(pfn, Order::ZERO, (page, mapping));
        self.spaces.mapping(mapping).set_pte(page, pfn);
    }

    /// The first fault in a 2 MiB range: its page table, and a huge page if one is wanted. `None`: look at the page
    /// again; a slice: the allocation went the slow way.
    fn first_fault_of_table(
        &mut self,
        p: &mut InProgress,
        c: &mut Context,
        page: u32,
        r: Region,
        huge: bool,
    ) -> Result<Option<Slice>, SimError> {
        match self.mem.alloc(c.request(Gfp::KERNEL, Order::ZERO)) {
            Ok(pfn) => {
                c.now += ns(self.costs.kernel_alloc);
                self.finish_fault(FaultFor::Table, page, pfn, c, r);
            }
            Err(_) => return self.start_fault(p, c, FaultFor::Table, page, Gfp::KERNEL).map(Some),
        }
        if !huge {
            return Ok(None);
        }
        let gfp = Gfp::TRANSHUGE | Gfp::THISNODE | Gfp::NORETRY;
        match self.mem.alloc(c.request(gfp, HUGE)) {
            Ok(pfn) => {
                self.finish_fault(FaultFor::HugeLocal, page, pfn, c, r);
                Ok(None)
            }
            Err(_) => self.start_fault(p, c, FaultFor::HugeLocal, page, gfp).map(Some),
        }
    }

    fn small_fault(&mut self, p: &mut InProgress, c: &mut Context, page: u32, r: Region) -> Result<Slice, SimError> {
        match self.mem.alloc(c.request(Gfp::HIGHUSER_MOVABLE, Order::ZERO)) {
            Ok(pfn) => {
                let next = self.finish_fault(FaultFor::Small, page, pfn, c, r);
                p.stage = Stage::Page(next);
                Ok(Slice::More)
            }
            Err(_) => self.start_fault(p, c, FaultFor::Small, page, Gfp::HIGHUSER_MOVABLE),
        }
    }

    fn start_fault(
        &mut self,
        p: &mut InProgress,
        c: &mut Context,
        what: FaultFor,
        page: u32,
        gfp: Gfp,
    ) -> Result<Slice, SimError> {
        let order = if matches!(what, FaultFor::HugeLocal | FaultFor::HugeAny) { HUGE } else { Order::ZERO };
        self.charge(&mut c.now);
        p.stage = Stage::FaultSlow(what, page, Box::new(AllocSlow::new(&self.mem, c.request(gfp, order))));
        Ok(Slice::More)
    }

    /// A step of a fault's slow path: `None` to go on, else the page or the failure of a huge page.
    fn fault_slow(
        &mut self,
        what: FaultFor,
        page: u32,
        slow: &mut AllocSlow,
        c: &mut Context,
    ) -> Result<Option<Result<Pfn, ()>>, SimError> {
        let budget = self.budget(c);
        let step = slow.step(&mut self.mem, &mut self.spaces, budget);
        self.charge(&mut c.now);
        let huge = matches!(what, FaultFor::HugeLocal | FaultFor::HugeAny);
        match step {
            Step::Working => Ok(None),
            Step::Wait(wait) => unreachable!("{wait:?}: no request waits yet"),
            Step::Done(Ok(pfn)) => Ok(Some(Ok(pfn))),
            Step::Done(Err(AllocFailure::Failed)) if huge => Ok(Some(Err(()))),
            Step::Done(Err(_)) => Err(SimError::OutOfMemory { what: format!("a fault on page {page} of a process") }),
        }
    }

    /// Puts a faulted page in place; the next page to touch.
    fn finish_fault(&mut self, what: FaultFor, page: u32, pfn: Pfn, c: &mut Context, r: Region) -> u32 {
        match what {
            FaultFor::Table => {
                self.spaces.mapping(r.mapping).table_mut(page).set_page(Some(pfn));
                self.charge(&mut c.now);
                page
            }
            FaultFor::Small => {
                self.map_small(r.mapping, page, pfn);
                c.now += ns(self.costs.fault) + ns(self.costs.touch);
                c.user_ns += ns(self.costs.touch);
                self.charge(&mut c.now);
                page + 1
            }
            FaultFor::HugeLocal | FaultFor::HugeAny => {
                let vmstat = self.mem.vmstat_mut();
                vmstat.add(VmEvent::Pgfault, 1);
                vmstat.add(VmEvent::ThpFaultAlloc, 1);
                self.mem.lru_add(pfn, HUGE);
                let start = page & !(TABLE_PAGES - 1);
                self.mem.set_owner(pfn, HUGE, (start, r.mapping));
                self.spaces.mapping(r.mapping).table_mut(page).set_huge(Some(pfn));
                let prepare = self.costs.prepare_page * u64::from(TABLE_PAGES);
                c.now += ns(self.costs.fault_huge + self.costs.clear_huge + prepare);
                self.charge(&mut c.now);
                page
            }
        }
    }

    /// Unmaps a range; a page table left empty is freed with it.
    fn munmap(&mut self, p: &mut InProgress, c: &mut Context, r: Region) -> Result<Slice, SimError> {
        let mut page = match p.stage {
            Stage::Page(page) => page,
            _ => {
                self.own(c, &p.op, r)?;
                r.first
            }
        };
        let end = r.first + r.pages;
        let unmap_ns = ns(self.costs.unmap);
        while page < end {
            if self.must_yield(c) {
                p.stage = Stage::Page(page);
                return Ok(Slice::More);
            }
            let table_end = ((page | (TABLE_PAGES - 1)) + 1).min(end);
            if let Some(pfn) = self.spaces.mapping(r.mapping).table(page).huge() {
                self.unmap_huge(r.mapping, page, table_end, pfn, c);
            } else {
                for page in page..table_end {
                    let m = self.spaces.mapping(r.mapping);
                    if let Some(pfn) = m.pte(page) {
                        m.clear_pte(page);
                        self.mem.free(c.cpu, pfn, Order::ZERO);
                        c.now += unmap_ns;
                        self.charge(&mut c.now);
                    }
                }
            }
            self.free_empty_table(r.mapping, page, c);
            page = table_end;
        }
        Ok(Slice::Done(Value::Unit))
    }

    /// Unmaps part or all of a huge page. A part first splits it into single pages, which the rest stays mapped to.
    fn unmap_huge(&mut self, mapping: u32, from: u32, to: u32, pfn: Pfn, c: &mut Context) {
        let start = from & !(TABLE_PAGES - 1);
        let m = self.spaces.mapping(mapping);
        m.table_mut(from).set_huge(None);
        if to - from == TABLE_PAGES {
            self.mem.free(c.cpu, pfn, HUGE);
            c.now += ns(self.costs.unmap);
            self.charge(&mut c.now);
            return;
        }
        // The kernel splits the mapping now and the page itself only under memory pressure; without reclaim that
        // pressure never comes, so the page is split with its mapping.
        for i in 0..TABLE_PAGES {
            m.set_pte(start + i, pfn.plus(i));
        }
        let vmstat = self.mem.vmstat_mut();
        vmstat.add(VmEvent::ThpSplitPmd, 1);
        vmstat.add(VmEvent::ThpSplitPage, 1);
        self.mem.split_page(pfn, HUGE);
        for page in from..to {
            let m = self.spaces.mapping(mapping);
            let pfn = m.pte(page).expect("just mapped");
            m.clear_pte(page);
            self.mem.free(c.cpu, pfn, Order::ZERO);
            c.now += ns(self.costs.unmap);
            self.charge(&mut c.now);
        }
    }

    /// Frees the page table of a range once nothing in it is mapped.
    fn free_empty_table(&mut self, mapping: u32, page: u32, c: &mut Context) {
        let table = self.spaces.mapping(mapping).table_mut(page);
        if table.is_empty()
            && let Some(pfn) = table.page()
        {
            table.set_page(None);
            self.mem.free(c.cpu, pfn, Order::ZERO);
            self.charge(&mut c.now);
        }
    }

    /// A driver's `alloc_pages`.
    fn alloc_pages(&mut self, p: &mut InProgress, c: &mut Context, gfp: Gfp, order: Order) -> Result<Slice, SimError> {
        if let Stage::Start = p.stage {
            let got = self.mem.alloc(c.request(gfp, order));
            c.now += ns(self.costs.kernel_alloc);
            self.charge(&mut c.now);
            match got {
                Ok(pfn) => return Ok(self.block_ready(pfn, order, c)),
                Err(_) => {
                    p.stage = Stage::AllocSlow(Box::new(AllocSlow::new(&self.mem, c.request(gfp, order))));
                    return Ok(Slice::More);
                }
            }
        }
        let budget = self.budget(c);
        let Stage::AllocSlow(slow) = &mut p.stage else { unreachable!("an allocation has no other stage") };
        let step = slow.step(&mut self.mem, &mut self.spaces, budget);
        self.charge(&mut c.now);
        match step {
            Step::Working => Ok(Slice::More),
            Step::Wait(wait) => unreachable!("{wait:?}: no request waits yet"),
            Step::Done(Ok(pfn)) => Ok(self.block_ready(pfn, order, c)),
            Step::Done(Err(AllocFailure::Failed)) => Ok(Slice::Done(Value::Block(None))),
            Step::Done(Err(AllocFailure::OutOfMemory)) => {
                Err(SimError::OutOfMemory { what: format!("a driver's {order:?} allocation") })
            }
        }
    }

    /// A driver has its block: what making its pages ready takes.
    fn block_ready(&self, pfn: Pfn, order: Order, c: &mut Context) -> Slice {
        c.now += ns(self.costs.prepare_page * u64::from(order.pages()));
        Slice::Done(Value::Block(Some(translate::frame(pfn))))
    }

    fn sysctl(&mut self, p: &mut InProgress, c: &mut Context) -> Result<Slice, SimError> {
        let budget = self.budget(c);
        if let Stage::Sweep(node, sweep) = &mut p.stage {
            let done = sweep.step(&mut self.mem, &mut self.spaces, budget);
            let next = *node + 1;
            if done == Step::Done(()) {
                if next == self.mem.nodes().len() {
                    self.charge(&mut c.now);
                    return Ok(Slice::Done(Value::Unit));
                }
                p.stage = Stage::Sweep(next, Box::new(NodeSweep::new(NodeId::new(next), c.cpu, false)));
            }
            self.charge(&mut c.now);
            return Ok(Slice::More);
        }
        let Op::Sysctl { name, value } = &p.op else { unreachable!("called for a sysctl") };
        match self.mem.sysctl_write(name, value).map_err(SimError::Sysctl)? {
            SysctlEffect::None => {}
            SysctlEffect::WakeKcompactd => self.mem.trigger_proactive_compaction(),
            SysctlEffect::CompactMemory => {
                p.stage = Stage::Sweep(0, Box::new(NodeSweep::new(NodeId::new(0), c.cpu, false)));
                return Ok(Slice::More);
            }
        }
        Ok(Slice::Done(Value::Unit))
    }
}
