//! kcompactd's turns: as many steps of the engine's kcompactd as fit before another task's turn.

use crate::base::context::Context;
use crate::kernel::Kernel;
use kontig_mm::kcompactd::Kcompactd;
use kontig_mm::{CpuId, Daemon, DaemonStep, NodeId, Step};

/// A node's kcompactd as a task.
#[derive(Clone)]
pub(crate) struct KcompactdThread {
    kcompactd: Box<Kcompactd>,
}

impl KcompactdThread {
    /// The kcompactd of `node` on `cpu`, asleep.
    pub(crate) fn new(node: NodeId, cpu: CpuId) -> KcompactdThread {
        KcompactdThread { kcompactd: Box::new(Kcompactd::new(node, cpu)) }
    }

    pub(crate) fn daemon(&self) -> Daemon {
        Daemon::Kcompactd(self.kcompactd.node())
    }

    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> DaemonStep {
        self.kcompactd.run_on(c.cpu);
        let mut timed_out = c.timed_out;
        loop {
            let budget = k.budget(c);
            let step = self.kcompactd.step(&mut k.mem, &mut k.pages, budget, timed_out);
            k.charge(&mut c.now);
            timed_out = false;
            if step != Step::Working || k.must_yield(c) {
                return step;
            }
        }
    }
}
