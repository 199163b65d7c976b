//! Work that an `Owner` callback cannot do itself because it needs `Memory` or the clock. It runs
//! when work is charged.

use crate::base::cost::ns;
use crate::base::numa::node_of;
use crate::kernel::Kernel;
use kontig_mm::VmEvent;

impl Kernel {
    /// Charges the engine's work since the last charge to `now`, and runs the work that callbacks
    /// deferred.
    #[inline(always)]
    pub(crate) fn charge(&mut self, now: &mut u64) {
        if self.mem.has_work() {
            self.charge_work(now);
        }
        if self.pages.has_deferred() {
            self.run_deferred(now);
        }
    }

    /// Frees slab objects, counts splits, submits I/O and wakes flushers.
    #[cold]
    #[inline(never)]
    fn run_deferred(&mut self, now: &mut u64) {
        let Kernel { mem, pages, .. } = self;
        let cpu = pages.cpu;
        if pages.files().free_gone(mem, cpu) > 0 && mem.has_work() {
            self.charge_work(now);
        }
        *now += ns(self.run_deferred_swap() * self.costs.swap_out);
        let splits = std::mem::take(&mut self.pages.splits);
        self.mem.vmstat_mut().add(VmEvent::ThpSplitPmd, splits);
        self.mem.vmstat_mut().add(VmEvent::ThpSplitPage, splits);
        if self.pages.devices.must_submit() {
            self.submit(*now);
        }
        if std::mem::take(&mut self.pages.flushers_wanted) {
            self.wake_flushers();
        }
    }

    /// Passes the state of swap to the engine; the number of pages whose writeback began since.
    pub(crate) fn run_deferred_swap(&mut self) -> u64 {
        let Kernel { mem, pages, .. } = self;
        let Some(swap) = &mut pages.swap else { return 0 };
        mem.set_swap(swap.area.space());
        let begun = swap.told();
        let pages_begun = begun.len() as u64;
        if let Some(files) = &mut pages.files {
            begun.for_each(|pfn| files.pending[node_of(mem, pfn).index()] += 1);
        }
        pages_begun
    }

    /// Submits the requests that the running task no longer keeps.
    #[cold]
    #[inline(never)]
    pub(crate) fn submit(&mut self, now: u64) {
        self.pages.devices.submit(now, &mut self.timers);
    }

    /// Makes all flushers write every dirty page.
    pub(crate) fn wake_flushers(&mut self) {
        let Kernel { pages, queues, .. } = self;
        pages.files().want_all_written(queues);
    }
}
