//! A driver's `alloc_pages`.

use crate::context::Context;
use crate::cost::ns;
use crate::error::SimError;
use crate::kernel::Kernel;
use crate::translate;
use crate::wait::Wait;
use kontig_mm::{AllocFailure, AllocSlow, Gfp, Order, Pfn, Step};
use kontig_program::Value;

/// An allocation.
#[derive(Clone)]
pub(crate) struct AllocPages {
    gfp: Gfp,
    /// None is an order of which there is no block: the allocation fails, as the kernel's does.
    order: Option<Order>,
    /// Once the fast path has failed.
    slow: Option<Box<AllocSlow>>,
}

impl AllocPages {
    pub(crate) fn new(gfp: Gfp, order: Option<Order>) -> AllocPages {
        AllocPages { gfp, order, slow: None }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        let Some(order) = self.order else { return Ok(Step::Done(Value::Block(None))) };
        let Some(slow) = &mut self.slow else {
            let request = c.request(self.gfp, order);
            let got = k.mem.alloc(request);
            c.now += ns(k.costs.kernel_alloc);
            k.charge(&mut c.now);
            return Ok(match got {
                Ok(pfn) => Step::Done(block_ready(k, c, pfn, order)),
                Err(_) => {
                    self.slow = Some(Box::new(AllocSlow::new(&k.mem, request)));
                    Step::Working
                }
            });
        };
        let budget = k.budget(c);
        let step = slow.step(&mut k.mem, &mut k.pages, budget);
        k.charge(&mut c.now);
        match step {
            Step::Working => {
                k.walk_on(c, slow);
                Ok(Step::Working)
            }
            Step::Wait(wait) => Ok(Step::Wait(k.wait_for(wait))),
            Step::Done(Ok(pfn)) => Ok(Step::Done(block_ready(k, c, pfn, order))),
            Step::Done(Err(AllocFailure::Failed)) => Ok(Step::Done(Value::Block(None))),
            Step::Done(Err(AllocFailure::OutOfMemory)) => {
                Err(SimError::OutOfMemory { what: format!("a driver's {order:?} allocation") })
            }
        }
    }
}

/// A driver has its block: what making its pages ready takes.
fn block_ready(k: &Kernel, c: &mut Context, pfn: Pfn, order: Order) -> Value {
    c.now += ns(k.costs.prepare_page * u64::from(order.pages()));
    Value::Block(Some(translate::frame(pfn)))
}
