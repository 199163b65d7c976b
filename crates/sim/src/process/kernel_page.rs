//! A page that the kernel takes for itself on a process's behalf: a page table, a part of a stack.

use crate::context::Context;
use crate::cost::ns;
use crate::error::SimError;
use crate::kernel::Kernel;
use crate::wait::Wait;
use kontig_mm::{AllocSlow, Gfp, Order, Pfn, Step};

/// An allocation of a page, which may take the slow path.
#[derive(Clone, Default)]
pub(crate) struct KernelPage {
    slow: Option<Box<AllocSlow>>,
}

impl KernelPage {
    /// A step; when it is done the same value allocates the next page.
    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Pfn, Wait>, SimError> {
        let Some(slow) = &mut self.slow else {
            let request = c.request(Gfp::KERNEL, Order::ZERO);
            let got = k.mem.alloc(request);
            c.now += ns(k.costs.kernel_alloc);
            k.charge(&mut c.now);
            return Ok(match got {
                Ok(pfn) => Step::Done(pfn),
                Err(_) => {
                    self.slow = Some(Box::new(AllocSlow::new(&k.mem, request)));
                    Step::Working
                }
            });
        };
        let budget = k.budget(c);
        let step = slow.step(&mut k.mem, &mut k.pages, budget);
        k.charge(&mut c.now);
        let got = match step {
            Step::Working => {
                k.walk_on(c, slow);
                return Ok(Step::Working);
            }
            Step::Wait(wait) => return Ok(Step::Wait(k.wait_for(wait))),
            Step::Done(got) => got,
        };
        self.slow = None;
        let what = || "a page of the kernel, for a process".to_string();
        got.map(Step::Done).map_err(|_| SimError::OutOfMemory { what: what() })
    }
}
