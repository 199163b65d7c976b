//! Page faults: a huge page where one is wanted, with a page table deposited for its split;
//! otherwise a page table and a small page.
//!
//! A fault that the per-CPU lists can serve completes at once. A fault whose allocation takes the
//! slow path becomes a [`Fault`], a value with a step. A huge page is first tried on the local node
//! with little effort, then on any node with the effort that `madvise` and `defrag` allow; after
//! that the fault falls back to a small page. The page table is allocated after the huge page,
//! which may have taken the last pages above the watermark: then the table's request wakes kswapd
//! where the huge page's did not. Source: `__do_huge_pmd_anonymous_page` of 5.10, 6.1, 6.12 and
//! 7.2.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::{At, Span};
use crate::base::memory_bus::Written;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use crate::paging::file_fault::FileFault;
use crate::paging::purpose::Purpose;
use crate::paging::swap_in::SwapIn;
use crate::state::object::TABLE_PAGES;
use kontig_mm::types::HPAGE_PMD_ORDER;
use kontig_mm::{
    AllocFailure, CpuId, Gfp, GroupId, Listen, MemPolicy, Order, PageFlags, PageSource, Pfn, Request, Step, VmEvent,
    Work,
};

/// The most pages faulted in at once.
const RUN: usize = 64;

/// Costs of each fault in a run.
#[derive(Clone, Copy)]
struct EachFault {
    /// Time of the whole fault, ns.
    fault_ns: u64,
    /// The program's share of it, ns.
    user_ns: u64,
    /// Pages written over the memory bus.
    written: u64,
}

/// A fault whose allocation takes the slow path.
#[derive(Clone)]
pub(crate) struct Fault {
    at: At,
    stage: Stage,
}

#[derive(Clone)]
enum Stage {
    Allocating(Purpose, Allocation),
    Swap(Box<SwapIn>),
    File(Box<FileFault>),
    /// The huge page and its table are allocated; the page must be cleared.
    Clear {
        huge: Pfn,
        table: Pfn,
    },
    /// The page is mapped, or the process was killed; the next page to touch.
    Mapped(u32),
}

impl Fault {
    pub(crate) fn start(k: &mut Kernel, c: &mut Context, purpose: Purpose, at: At) -> Fault {
        k.charge(&mut c.now);
        Fault { at, stage: Stage::Allocating(purpose, Allocation::of_fault(k, c, purpose, at)) }
    }

    /// A fault whose page or huge page is allocated, and whose charge meets a limit.
    pub(crate) fn charge(k: &mut Kernel, c: &mut Context, purpose: Purpose, at: At, pfn: Pfn) -> Fault {
        k.charge(&mut c.now);
        Fault { at, stage: Stage::Allocating(purpose, Allocation::of_charge(k, c, purpose, at, pfn)) }
    }

    /// A fault on a page in swap.
    pub(crate) fn swap(at: At, writes: bool) -> Fault {
        Fault { at, stage: Stage::Swap(Box::new(SwapIn::new(at, writes))) }
    }

    /// A fault on a page of a file that is not in memory.
    pub(crate) fn file(at: At) -> Fault {
        Fault { at, stage: Stage::File(Box::new(FileFault::new(at))) }
    }

    /// Whether it can be dropped without losing anything.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self.stage, Stage::Mapped(_))
    }

    /// Whether it waits for a page that is being read.
    pub(crate) fn waits_for_page(&self) -> bool {
        match &self.stage {
            Stage::Swap(swap_in) => swap_in.waits_for_page(),
            Stage::File(file) => file.waits_for_page(),
            Stage::Allocating(..) | Stage::Clear { .. } | Stage::Mapped(_) => false,
        }
    }

    fn no_memory(&self) -> SimError {
        SimError::OutOfMemory { what: format!("a fault on page {} of a process", self.at.page) }
    }

    /// A step; done with the next page to touch.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<u32, Wait>, SimError> {
        let brought_in = match &mut self.stage {
            Stage::Allocating(purpose, allocation) => {
                let purpose = *purpose;
                return match done!(allocation.step(k, c), Ok) {
                    Ok(pfn) => Ok(self.allocated(k, c, purpose, pfn)),
                    Err(AllocFailure::Failed) if purpose.is_huge() && allocation.is_over_limit() => {
                        k.pages.groups.count(c.group, |counts| counts.thp_fault_fallback_charge += 1);
                        Ok(self.small_pages(k, c, purpose))
                    }
                    Err(AllocFailure::Failed) if purpose.is_huge() => Ok(self.no_huge_page(k, c, purpose)),
                    Err(AllocFailure::Failed) => {
                        if let Purpose::Table(Some(huge)) = purpose {
                            k.mem.free(c.cpu, huge, HPAGE_PMD_ORDER);
                        }
                        self.stage = Stage::Mapped(self.at.page);
                        Ok(Step::Working)
                    }
                    Err(AllocFailure::OutOfMemory) => Err(self.no_memory()),
                };
            }
            Stage::Mapped(next) => return Ok(Step::Done(*next)),
            Stage::Clear { huge, table } => {
                k.finish_huge(c, self.at, *huge, *table);
                return Ok(Step::Done(self.at.page));
            }
            Stage::Swap(swap_in) => done!(swap_in.step(k, c), Ok),
            Stage::File(file) => done!(file.step(k, c), Ok),
        };
        match brought_in {
            Ok(()) => Ok(Step::Done(self.at.page)),
            Err(AllocFailure::Failed) => {
                self.stage = Stage::Mapped(self.at.page);
                Ok(Step::Working)
            }
            Err(AllocFailure::OutOfMemory) => Err(self.no_memory()),
        }
    }

    /// Goes on with the allocated page, huge page or page table.
    fn allocated(&mut self, k: &mut Kernel, c: &mut Context, purpose: Purpose, pfn: Pfn) -> Step<u32, Wait> {
        match purpose {
            Purpose::HugeLocal(_) | Purpose::HugeAny(_) => self.go_on(k, c, Some(pfn)),
            Purpose::Table(Some(huge)) => {
                // A step of its own, so that tasks woken by the request run while the page is
                // cleared.
                self.stage = Stage::Clear { huge, table: pfn };
                Step::Working
            }
            _ => Step::Done(k.finish_fault(c, purpose, self.at, pfn)),
        }
    }

    /// Handles the lack of a huge page: a second attempt, or small pages.
    fn no_huge_page(&mut self, k: &mut Kernel, c: &mut Context, purpose: Purpose) -> Step<u32, Wait> {
        if let Some(second) = k.second_request(self.at).and_then(|gfp| purpose.second(gfp)) {
            *self = Fault::start(k, c, second, self.at);
            Step::Working
        } else {
            self.small_pages(k, c, purpose)
        }
    }

    /// Falls back to small pages.
    fn small_pages(&mut self, k: &mut Kernel, c: &mut Context, purpose: Purpose) -> Step<u32, Wait> {
        k.pages.groups.count(c.group, |counts| counts.thp_fault_fallback += 1);
        if purpose.is_huge_copy() {
            k.huge_copy_failed(c, self.at);
            self.stage = Stage::Mapped(self.at.page);
            Step::Working
        } else {
            k.mem.vmstat_mut().add(VmEvent::ThpFaultFallback, 1);
            // The table first, and then a small page.
            self.go_on(k, c, None)
        }
    }

    /// Allocates the page table.
    fn go_on(&mut self, k: &mut Kernel, c: &mut Context, huge: Option<Pfn>) -> Step<u32, Wait> {
        match k.fault_table(c, self.at, huge) {
            Ok(()) => Step::Done(self.at.page),
            Err(table) => {
                *self = table;
                Step::Working
            }
        }
    }
}

impl Kernel {
    /// The first fault in a 2 MiB range: a huge page if one is wanted, and a page table. Unless the
    /// allocation takes the slow path, the caller looks at the page again.
    pub(crate) fn fault_range(&mut self, c: &mut Context, at: At, writes: bool) -> Result<(), Fault> {
        let m = self.pages.spaces.mapping(at.mapping);
        let advised = m.is_advised_huge();
        if !writes || !m.has_room_for_huge(at.page) || !self.mem.wants_huge(advised) {
            return self.fault_table(c, at, None);
        }
        let process = self.pages.spaces.process_of(at.mapping);
        self.khugepaged.enter(process, &mut self.queues);
        let first = self.first_huge_request(c, at, advised);
        let request = self.fault_request(c, first, at);
        match self.mem.alloc(request) {
            Ok(huge) if c.group != GroupId::ROOT && !self.charges_at_once(c, (huge, HPAGE_PMD_ORDER), c.group) => {
                Err(Fault::charge(self, c, first, at, huge))
            }
            Ok(huge) => self.fault_table(c, at, Some(huge)),
            Err(_) => Err(Fault::start(self, c, first, at)),
        }
    }

    /// Allocates a page table and maps it, with the huge page of the range if there is one.
    fn fault_table(&mut self, c: &mut Context, at: At, huge: Option<Pfn>) -> Result<(), Fault> {
        let purpose = Purpose::Table(huge);
        let request = self.fault_request(c, purpose, at);
        match self.mem.alloc(request) {
            Ok(table) => {
                c.now += ns(self.costs.kernel_alloc);
                match huge {
                    Some(huge) => self.finish_huge(c, at, huge, table),
                    None => _ = self.finish_fault(c, purpose, at, table),
                }
                Ok(())
            }
            Err(_) => Err(Fault::start(self, c, purpose, at)),
        }
    }

    /// The group that pays for a fault's allocation, with the flags of the charge. A page table is
    /// charged to nobody; a huge page, with the effort that `madvise` and `defrag` allow.
    pub(crate) fn charge_of_fault(&mut self, c: &Context, purpose: Purpose, at: At) -> Option<(GroupId, Gfp)> {
        if c.group == GroupId::ROOT || matches!(purpose, Purpose::Table(_)) {
            return None;
        }
        if !purpose.is_huge() {
            return Some((c.group, Gfp::KERNEL));
        }
        let advised = self.pages.spaces.mapping(at.mapping).is_advised_huge();
        let (local, any) = self.mem.huge_requests(advised);
        Some((c.group, any.unwrap_or(local.without(Gfp::THISNODE))))
    }

    /// The flags of the second attempt at a huge page.
    fn second_request(&mut self, at: At) -> Option<Gfp> {
        let advised = self.pages.spaces.mapping(at.mapping).is_advised_huge();
        self.mem.huge_requests(advised).1
    }

    /// Faults in a small page and those after it, up to `end`, while they need no slow path. The
    /// next page to touch.
    #[inline(always)]
    pub(crate) fn fault_small(&mut self, c: &mut Context, at: At, written: Written, end: u32) -> Result<u32, Fault> {
        let purpose = Purpose::Small(written);
        let request = self.request_at(c, at, purpose.gfp(), Order::ZERO);
        let Ok((pfn, source)) = self.mem.alloc_from(request) else {
            return Err(Fault::start(self, c, purpose, at));
        };
        if c.group != GroupId::ROOT && !self.charges_at_once(c, (pfn, Order::ZERO), c.group) {
            return Err(Fault::charge(self, c, purpose, at, pfn));
        }
        self.map_small(c.cpu, at, pfn);
        self.charge_small(c, at, written, pfn);
        self.charge(&mut c.now);
        let pages = written.when_new();
        if !self.bus.keeps_up(c.now, pages) {
            return Ok(at.page + 1);
        }
        let (fault_ns, user_ns) = self.clear_and_write(c, written, pfn, self.bus.alone(pages));
        let each = EachFault { fault_ns: self.fault_ns(at, self.costs.fault) + fault_ns, user_ns, written: pages };
        let rest = Span { mapping: at.mapping, first: at.page + 1, pages: end - (at.page + 1) };
        let goes_round = matches!(self.policy_at(c, at), MemPolicy::Interleave(_));
        if goes_round || self.pages.spaces.mapping(at.mapping).has_policies() {
            return Ok(rest.first);
        }
        Ok(self.fault_run(c, rest, request, source, each))
    }

    /// The time in ns of a fault that takes this long, in ps, where no other thread of its process
    /// runs.
    #[inline(always)]
    pub(crate) fn fault_ns(&self, at: At, alone: u64) -> u64 {
        ns(alone + self.costs.fault_beside * u64::from(self.pages.spaces.running_beside(at.mapping)))
    }

    /// Charges a fault that has mapped a small page, and the program's write to it.
    #[inline(always)]
    fn charge_small(&mut self, c: &mut Context, at: At, written: Written, pfn: Pfn) {
        let both = self.bus.write(c.now, written.when_new());
        let (fault_ns, user_ns) = self.clear_and_write(c, written, pfn, both);
        c.now += self.fault_ns(at, self.costs.fault) + fault_ns;
        c.user_ns += user_ns;
    }

    /// Faults in the pages after one that came from `source` by this request, with the result of
    /// calling [`Kernel::fault_small`] for each. It stops at the end of the page table, at a page
    /// that is mapped, when this CPU's list is empty, or when the memory bus is saturated. The next
    /// page to touch.
    ///
    /// Nothing is charged in between, so events would have no times of their own. While somebody
    /// listens to these allocations there are no runs and every page faults by itself, with the
    /// same result; so it does in a memory control group, where each page is charged.
    #[inline(always)]
    fn fault_run(
        &mut self,
        c: &mut Context,
        r: Span,
        request: Request,
        mut source: PageSource,
        EachFault { fault_ns, user_ns, written }: EachFault,
    ) -> u32 {
        if self.mem.trace().listens_to(Listen::KMEM) || c.group != GroupId::ROOT {
            return r.first;
        }
        let end = (r.first.next_multiple_of(TABLE_PAGES)).min(r.first + r.pages);
        let walk = Work { zones_tried: source.zones_tried, ..Work::default() };
        let fault_ns = fault_ns + self.costs.work_ns(&walk);
        let (mut page, mut pages) = (r.first, [Pfn::default(); RUN]);
        while page < end && !self.must_yield(c) {
            let most = self.begun_in_turn(c, fault_ns).min(u64::from(end - page)).min(RUN as u64);
            let most = self.pages.spaces.mapping(r.mapping).unmapped(page, most as u32);
            let count = self.mem.alloc_again(request, &mut source, &mut pages[..most as usize]);
            if count == 0 {
                break;
            }
            self.map_pages(c.cpu, At { mapping: r.mapping, page }, &pages[..count]);
            self.bus.write_run(c.now, fault_ns, count as u64, written);
            c.now += count as u64 * fault_ns;
            c.user_ns += count as u64 * user_ns;
            page += count as u32;
        }
        self.work.zones_tried += u64::from(page - r.first) * source.zones_tried;
        page
    }

    /// A read fault on a missing page maps the zero page. The next page to touch.
    pub(crate) fn fault_zero(&mut self, c: &mut Context, at: At) -> u32 {
        self.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
        self.pages.spaces.mapping(at.mapping).set_zero(at.page);
        c.now += self.fault_ns(at, self.costs.zero_page);
        at.page + 1
    }

    #[inline(always)]
    fn map_small(&mut self, cpu: CpuId, at: At, pfn: Pfn) {
        self.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
        self.mem.lru_add_in_fault(cpu, pfn, Order::ZERO, PageFlags::ANON);
        let mapping = self.pages.spaces.mapping(at.mapping);
        mapping.set_pte(at.page, pfn);
        mapping.used(at.page, true);
        self.mem.set_owner(pfn, Order::ZERO, mapping.number(at.page));
    }

    /// Maps consecutive small pages, all of one zone, which were allocated one after the other.
    #[inline(always)]
    fn map_pages(&mut self, cpu: CpuId, at: At, pages: &[Pfn]) {
        self.mem.vmstat_mut().add(VmEvent::Pgfault, pages.len() as u64);
        self.mem.lru_add_pages_in_fault(cpu, pages, PageFlags::ANON);
        let mapping = self.pages.spaces.mapping(at.mapping);
        mapping.map_written(at.page, pages);
        let numbers = mapping.number(at.page)..;
        numbers.zip(pages).for_each(|(number, pfn)| self.mem.set_owner(*pfn, Order::ZERO, number));
    }

    /// Clears and maps a huge page and deposits its table; frees both if another thread has filled
    /// the range meanwhile.
    fn finish_huge(&mut self, c: &mut Context, at: At, huge: Pfn, table: Pfn) {
        let mapping = self.pages.spaces.mapping(at.mapping);
        if mapping.table(at.page).page().is_some() {
            self.mem.free(c.cpu, huge, HPAGE_PMD_ORDER);
            self.mem.free(c.cpu, table, Order::ZERO);
        } else {
            mapping.table_mut(at.page).set_page(Some(table));
            mapping.table_mut(at.page).set_huge(Some(huge));
            mapping.table_mut(at.page).set_accessed();
            let number = mapping.number(at.page & !(TABLE_PAGES - 1));
            let vmstat = self.mem.vmstat_mut();
            vmstat.add(VmEvent::Pgfault, 1);
            vmstat.add(VmEvent::ThpFaultAlloc, 1);
            self.pages.groups.count(c.group, |counts| counts.thp_fault_alloc += 1);
            self.mem.lru_add_in_fault(c.cpu, huge, HPAGE_PMD_ORDER, PageFlags::ANON);
            self.mem.set_owner(huge, HPAGE_PMD_ORDER, number);
            let prepare = self.costs.prepare_page * u64::from(TABLE_PAGES);
            c.now += self.bus.write(c.now, TABLE_PAGES.into()) + self.fault_ns(at, self.costs.fault_huge + prepare);
            c.now += self.far_pages(c, huge, TABLE_PAGES);
        }
        self.charge(&mut c.now);
    }

    /// Whether another thread has already filled the place.
    fn is_taken(&mut self, purpose: Purpose, at: At) -> bool {
        let m = self.pages.spaces.mapping(at.mapping);
        let table = m.table(at.page);
        match purpose {
            Purpose::Table(_) => table.page().is_some(),
            Purpose::Small(_) => table.huge().is_some() || !m.is_none(at.page),
            // These check the current entry themselves.
            Purpose::Copy
            | Purpose::HugeLocal(_)
            | Purpose::HugeAny(_)
            | Purpose::HugeCopyLocal(_)
            | Purpose::HugeCopyAny(_) => false,
        }
    }

    /// Maps a faulted page, or frees it if another thread has filled its place during the
    /// allocation. The next page to touch.
    fn finish_fault(&mut self, c: &mut Context, purpose: Purpose, at: At, pfn: Pfn) -> u32 {
        let mut next = at.page;
        match purpose {
            _ if self.is_taken(purpose, at) => self.mem.free(c.cpu, pfn, purpose.order()),
            Purpose::Table(_) => self.pages.spaces.mapping(at.mapping).table_mut(at.page).set_page(Some(pfn)),
            Purpose::Small(written) => {
                self.map_small(c.cpu, at, pfn);
                self.charge_small(c, at, written, pfn);
                next += 1;
            }
            Purpose::Copy => self.finish_copy(c, at, pfn),
            Purpose::HugeCopyLocal(_) | Purpose::HugeCopyAny(_) => self.finish_huge_copy(c, at, pfn),
            Purpose::HugeLocal(_) | Purpose::HugeAny(_) => unreachable!("it is mapped with its table"),
        }
        self.charge(&mut c.now);
        next
    }
}
