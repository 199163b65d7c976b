//! Write faults on protected pages: the writing process gets a page of its own.
//!
//! Fork write-protects every page that it shares. The first process to write to one gets a copy;
//! the last one that maps it writes to it in place. Kernels differ in how they know that nobody
//! else has the page, and may count the LRU's batches as users. Source: kernel-behaviour §4.7.

use super::fault::Fault;
use super::purpose::Purpose;
use crate::base::context::Context;
use crate::base::id::At;
use crate::kernel::Kernel;
use crate::state::file::Flags;
use crate::state::process::mapping::Entry;
use kontig_mm::types::HPAGE_PMD_ORDER;
use kontig_mm::{GroupId, Order, Pfn, VmEvent};

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
        if others > 0 || in_swap && (self.mem.profile().faults.copies_held_pages || !self.free_swap_of(pfn)) {
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
            c.now += self.fault_ns(at, self.costs.reuse_page);
            self.charge(&mut c.now);
            return Ok(());
        }
        let request = self.fault_request(c, Purpose::Copy, at);
        match self.mem.alloc(request) {
            Ok(pfn) if c.group != GroupId::ROOT && !self.charges_at_once(c, (pfn, Order::ZERO), c.group) => {
                Err(Fault::charge(self, c, Purpose::Copy, at, pfn))
            }
            Ok(pfn) => {
                self.finish_copy(c, at, pfn);
                self.charge(&mut c.now);
                Ok(())
            }
            Err(_) => Err(Fault::start(self, c, Purpose::Copy, at)),
        }
    }

    /// A write fault on a protected huge page. Unless the allocation takes the slow path, the
    /// caller looks at the page again.
    pub(crate) fn fault_huge_protected(&mut self, c: &mut Context, at: At, pfn: Pfn) -> Result<(), Fault> {
        if self.pages.mapcounts.more(pfn) == 0 {
            self.pages.spaces.mapping(at.mapping).table_mut(at.page).set_protected(false);
            self.mem.vmstat_mut().add(VmEvent::Pgfault, 1);
            c.now += self.fault_ns(at, self.costs.reuse_page);
            return Ok(());
        }
        if self.mem.profile().faults.splits_shared_huge {
            self.split_huge(c.cpu, pfn);
            return Ok(());
        }
        let first = self.first_huge_copy(c, at);
        let request = self.fault_request(c, first, at);
        match self.mem.alloc(request) {
            Ok(new) if c.group != GroupId::ROOT && !self.charges_at_once(c, (new, HPAGE_PMD_ORDER), c.group) => {
                Err(Fault::charge(self, c, first, at, new))
            }
            Ok(new) => {
                self.finish_huge_copy(c, at, new);
                self.charge(&mut c.now);
                Ok(())
            }
            Err(_) => Err(Fault::start(self, c, first, at)),
        }
    }
}
