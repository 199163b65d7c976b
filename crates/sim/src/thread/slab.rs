//! The worker that gives back what slab caches no longer use (`cache_reap`).
//!
//! The kernel has one on each CPU, at different times; here one serves all CPUs.

use crate::base::context::Context;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use kontig_mm::Step;

/// The time between two rounds. Each shrinks the CPUs' arrays, every second one the nodes' as well.
const REAP_NS: u64 = 2_000_000_000;

#[derive(Clone)]
pub(crate) struct SlabThread {
    rounds: u64,
}

impl SlabThread {
    pub(crate) fn new() -> SlabThread {
        SlabThread { rounds: 0 }
    }

    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Step<(), Wait> {
        if std::mem::take(&mut c.timed_out) {
            self.rounds += 1;
            let Kernel { mem, pages, .. } = k;
            pages.files().slabs.reap(mem, self.rounds.is_multiple_of(2));
            k.charge(&mut c.now);
        }
        Step::Wait(Wait::Time(REAP_NS))
    }
}
