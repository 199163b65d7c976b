//! The copies that write faults make, and the split of a huge page into small ones.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::id::At;
use crate::kernel::Kernel;
use crate::state::object::TABLE_PAGES;
use crate::state::process::mapping::Entry;
use kontig_mm::types::HPAGE_PMD_ORDER;
use kontig_mm::{CpuId, Order, PageFlags, Pfn, VmEvent};

impl Kernel {
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
        self.mem.lru_add_in_fault(c.cpu, pfn, Order::ZERO, PageFlags::ANON);
        self.mem.set_owner(pfn, Order::ZERO, number);
        let mut fault_ns = self.fault_ns(at, self.costs.fault) + self.bus.write(c.now, 1);
        if let Some(old) = old {
            fault_ns += ns(self.costs.copy_page);
            self.put_page(c.cpu, old);
            let process = self.pages.spaces.process_of(at.mapping);
            self.flush_tlb(process, &mut c.now);
        }
        c.now += fault_ns + self.far_pages(c, pfn, 1);
    }

    /// Maps and fills the copy of a huge page.
    pub(crate) fn finish_huge_copy(&mut self, c: &mut Context, at: At, pfn: Pfn) {
        let m = self.pages.spaces.mapping(at.mapping);
        let table = m.table_mut(at.page);
        let Some(old) = table.huge().filter(|_| table.is_protected()) else {
            self.mem.free(c.cpu, pfn, HPAGE_PMD_ORDER);
            return;
        };
        table.set_huge(Some(pfn));
        table.set_protected(false);
        let number = m.number(at.page & !(TABLE_PAGES - 1));
        let vmstat = self.mem.vmstat_mut();
        vmstat.add(VmEvent::Pgfault, 1);
        vmstat.add(VmEvent::ThpFaultAlloc, 1);
        self.mem.lru_add_in_fault(c.cpu, pfn, HPAGE_PMD_ORDER, PageFlags::ANON);
        self.mem.set_owner(pfn, HPAGE_PMD_ORDER, number);
        if self.pages.mapcounts.drop_one(old) {
            self.mem.free(c.cpu, old, HPAGE_PMD_ORDER);
        }
        let copy = (self.costs.prepare_page + self.costs.copy_page) * u64::from(TABLE_PAGES);
        c.now += self.bus.write(c.now, TABLE_PAGES.into()) + self.fault_ns(at, self.costs.fault_huge + copy);
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
        let number = self.mem.frames().owner(pfn, HPAGE_PMD_ORDER);
        self.pages.split_huge(pfn, number);
        let vmstat = self.mem.vmstat_mut();
        vmstat.add(VmEvent::ThpSplitPmd, 1);
        vmstat.add(VmEvent::ThpSplitPage, 1);
        self.mem.split_lru_page(cpu, pfn, HPAGE_PMD_ORDER);
    }
}
