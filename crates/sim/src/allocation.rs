//! An allocation of the kernel's own, which may take the slow path: a value with a step.
//!
//! Where memory has run out it tries again once somebody has been killed. It fails if the asker itself is to go.

use crate::context::Context;
use crate::cost::ns;
use crate::kernel::Kernel;
use crate::oom::{Blame, JIFFY_NS};
use crate::process::address_space::At;
use crate::wait::Wait;
use kontig_mm::{AllocFailure, AllocSlow, Gfp, Order, Pfn, Step};

/// An allocation in progress.
#[derive(Clone)]
pub(crate) struct Allocation {
    gfp: Gfp,
    order: Order,
    /// What it is for, if that is a page of a process's.
    at: Option<At>,
    /// Once the fast path has failed.
    slow: Option<Box<AllocSlow>>,
}

impl Allocation {
    pub(crate) fn new(gfp: Gfp, order: Order) -> Allocation {
        Allocation { gfp, order, at: None, slow: None }
    }

    /// The same, for a page of a process's.
    pub(crate) fn at(self, at: At) -> Allocation {
        Allocation { at: Some(at), ..self }
    }

    /// A step; the block, or that there is none. When it is done the same value allocates the next block.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Result<Pfn, AllocFailure>, Wait> {
        let Some(slow) = &mut self.slow else {
            let request = match self.at {
                Some(at) => k.request_at(c, at, self.gfp, self.order),
                None => k.request(c, self.gfp, self.order),
            };
            let got = k.mem.alloc(request);
            c.now += ns(k.costs.kernel_alloc);
            k.charge(&mut c.now);
            return match got {
                Ok(pfn) => Step::Done(Ok(pfn)),
                Err(_) => {
                    self.slow = Some(Box::new(AllocSlow::new(&k.mem, request)));
                    Step::Working
                }
            };
        };
        let budget = k.budget(c);
        let step = slow.step(&mut k.mem, &mut k.pages, budget);
        k.charge(&mut c.now);
        match step {
            Step::Working => {
                k.walk_on(c, slow);
                k.wait_for_room(Step::Working)
            }
            Step::Wait(wait) => Step::Wait(k.wait_for(wait)),
            Step::Done(Err(AllocFailure::OutOfMemory)) => match k.out_of_memory(c, slow.request().nodes()) {
                Blame::Another => {
                    self.slow = None;
                    Step::Wait(Wait::Time(JIFFY_NS))
                }
                Blame::Asker => Step::Done(Err(AllocFailure::Failed)),
                Blame::Nobody => Step::Done(Err(AllocFailure::OutOfMemory)),
            },
            Step::Done(got) => {
                self.slow = None;
                Step::Done(got)
            }
        }
    }
}
