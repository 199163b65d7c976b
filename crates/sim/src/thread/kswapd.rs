//! kswapd's turns: one step of the engine's kswapd, charged to the CPU it runs on.

use crate::base::context::Context;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use kontig_mm::kswapd::Kswapd;
use kontig_mm::{CpuId, Daemon, NodeId, Step};
use std::convert::Infallible;

/// A node's kswapd as a task.
#[derive(Clone)]
pub(crate) struct KswapdThread {
    kswapd: Kswapd,
}

impl KswapdThread {
    /// The kswapd of `node` on `cpu`, asleep.
    pub(crate) fn new(node: NodeId, cpu: CpuId) -> KswapdThread {
        KswapdThread { kswapd: Kswapd::new(node, cpu) }
    }

    pub(crate) fn daemon(&self) -> Daemon {
        Daemon::Kswapd(self.kswapd.node())
    }

    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Infallible, Wait> {
        self.kswapd.run_on(c.cpu);
        k.pages.in_kswapd = true;
        let step = self.kswapd.step(&mut k.mem, &mut k.pages, c.timed_out);
        k.pages.in_kswapd = false;
        k.charge(&mut c.now);
        if k.mem.take_eased(self.kswapd.node()) {
            k.queues.wake_all(k.daemons.rest_of(self.daemon()));
        }
        let step = step.map_wait(|wait| k.wait_for(wait));
        k.wait_for_room(step)
    }
}
