//! Write faults on protected pages: the writing process gets a page of its own.
//!
//! Fork write-protects every page that it shares. The first process to write to one gets a copy;
//! the last one that maps it writes to it in place. Kernels differ in how they know that nobody
//! else has the page, and may count the LRU's batches as users. Source: kernel-behaviour §4.7.

use super::fault::Fault;
use super::purpose::Purpose;
use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::id::At;
use crate::kernel::Kernel;
use crate::state::file::Flags;
use crate::state::object::TABLE_PAGES;
use crate::state::process::address_space::Entry;
use kontig_mm::types::PAGEBLOCK_ORDER as HUGE;
use kontig_mm::{CpuId, Order, PageFlags, Pfn, VmEvent};

impl Kernel {
    /// Whether a write to a protected page may reuse it, and unprotects it if so. Otherwise the
    /// page must be copied.
    fn reuse(&mut self, c: &mut Context, at: At, pfn: Pfn) -> bool {
        let others = u64::from(self.pages.mapcounts.more(pfn));
        if self.mem.lru().is_ordered() && self.mem.lru().holds(pfn) > 0 {
            // Only this CPU's batch is drained, and only while the page has fewer than three other
            // references.
            let few = others + u64::from(self.mem.lru().holds(pfn)) < 3;
            if self.mem.profile().faults.copies_held_pages {
                return false;
            }
            if few && !self.mem.is_on_lru(pfn) {
                self.mem.lru_add_drain(c.cpu);
            }
            if self.mem.lru().holds(pfn) > 0 {
                return false;
            }
        }
        let in_swap = self.pages.frames.flags(pfn).any(Flags::SWAP_CACHE);
        if others > 0 || in_swap && (self.mem.profile().faults.copies_held_pages || !self.pages.free_swap_of(pfn)) {
            return false;
        }
        self.pages.spaces.mapping(at.mapping).unprotect(at.page);
        true
    }

    /// A write fault on a protected page. Afterwards the page can be written to, unless the
    /// allocation takes the slow path.
    #[inline(always)]
    pub(crate) fn fault_protected(&mut self, c: &mut Context, at: At) -> Result<(), Fault> {
        if let Entry::Frame(pfn) = self.pages.spaces.mapping(at.mapping).entry(at.page)
            && self.reuse(c, at, pfn)
        {
            self.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
            c.now += ns(self.costs.reuse_page);
            self.charge(&mut c.now);
            return Ok(());
        }
        let request = self.fault_request(c, Purpose::Copy, at);
        match self.mem.alloc(request) {
            Ok(pfn) => {
                self.finish_copy(c, at, pfn);
                self.charge(&mut c.now);
                Ok(())
            }
            Err(_) => Err(Fault::start(self, c, Purpose::Copy, at)),
        }
    }

    /// Maps and fills the copy; the page is touched next. The original may have gone or moved
    /// during the allocation.
    pub(crate) fn finish_copy(&mut self, c: &mut Context, at: At, pfn: Pfn) {
        let m = self.pages.spaces.mapping(at.mapping);
        let old = match m.entry(at.page) {
            Entry::Frame(old) if m.is_protected(at.page) => Some(old),
            Entry::Zero => None,
            Entry::Frame(_) | Entry::None | Entry::Swap(_) => {
                self.mem.free(c.cpu, pfn, Order::ZERO);
                return;
            }
        };
        let number = m.number(at.page);
        m.replace_pte(at.page, pfn);
        self.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
        self.mem.lru_add(c.cpu, pfn, Order::ZERO, PageFlags::ANON);
        self.mem.set_owner(pfn, Order::ZERO, number);
        let mut fault_ns = ns(self.costs.fault) + self.bus.write(c.now, 1);
        if let Some(old) = old {
            fault_ns += ns(self.costs.copy_page);
            self.put_page(c.cpu, old);
            let process = self.pages.spaces.process_of(at.mapping);
            self.flush_tlb(process, &mut c.now);
        }
        c.now += fault_ns + self.far_pages(c, pfn, 1);
    }

    /// A write fault on a protected huge page. Unless the allocation takes the slow path, the
    /// caller looks at the page again.
    pub(crate) fn fault_huge_protected(&mut self, c: &mut Context, at: At, pfn: Pfn) -> Result<(), Fault> {
        if self.pages.mapcounts.more(pfn) == 0 {
            self.pages.spaces.mapping(at.mapping).table_mut(at.page).set_protected(false);
            self.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
            c.now += ns(self.costs.reuse_page);
            return Ok(());
        }
        if self.mem.profile().faults.splits_shared_huge {
            self.split_huge(c.cpu, pfn);
            return Ok(());
        }
        let first = self.first_huge_copy(c, at);
        let request = self.fault_request(c, first, at);
        match self.mem.alloc(request) {
            Ok(new) => {
                self.finish_huge_copy(c, at, new);
                self.charge(&mut c.now);
                Ok(())
            }
            Err(_) => Err(Fault::start(self, c, first, at)),
        }
    }

    /// Maps and fills the copy of a huge page.
    pub(crate) fn finish_huge_copy(&mut self, c: &mut Context, at: At, pfn: Pfn) {
        let m = self.pages.spaces.mapping(at.mapping);
        let table = m.table_mut(at.page);
        let Some(old) = table.huge().filter(|_| table.is_protected()) else {
            self.mem.free(c.cpu, pfn, HUGE);
            return;
        };
        table.set_huge(Some(pfn));
        table.set_protected(false);
        let number = m.number(at.page & !(TABLE_PAGES - 1));
        let vmstat = self.mem.vmstat_mut();
        vmstat.add(VmEvent::Pgfault, 1);
        vmstat.add(VmEvent::ThpFaultAlloc, 1);
        self.mem.lru_add(c.cpu, pfn, HUGE, PageFlags::ANON);
        self.mem.set_owner(pfn, HUGE, number);
        if self.pages.mapcounts.drop_one(old) {
            self.mem.free(c.cpu, old, HUGE);
        }
        let copy = (self.costs.prepare_page + self.costs.copy_page) * u64::from(TABLE_PAGES);
        c.now += self.bus.write(c.now, TABLE_PAGES.into()) + ns(self.costs.fault_huge + copy);
        c.now += self.far_pages(c, pfn, TABLE_PAGES);
    }

    /// No huge page for a copy: splits the original, so that small pages are copied.
    pub(crate) fn huge_copy_failed(&mut self, c: &Context, at: At) {
        self.mem.vmstat_mut().add(VmEvent::ThpFaultFallback, 1);
        let table = self.pages.spaces.mapping(at.mapping).table(at.page);
        if let Some(pfn) = table.huge().filter(|_| table.is_protected()) {
            self.split_huge(c.cpu, pfn);
        }
    }

    /// Splits a huge page, in every mapping of it.
    ///
    /// The kernel splits only the mapping now, and the page itself under memory pressure once a
    /// part of it is unmapped everywhere. Here the page is split together with its mappings.
    pub(crate) fn split_huge(&mut self, cpu: CpuId, pfn: Pfn) {
        let number = self.mem.frames().owner(pfn, HUGE);
        self.pages.split_huge(pfn, number);
        let vmstat = self.mem.vmstat_mut();
        vmstat.add(VmEvent::ThpSplitPmd, 1);
        vmstat.add(VmEvent::ThpSplitPage, 1);
        self.mem.split_lru_page(cpu, pfn, HUGE);
    }
}
