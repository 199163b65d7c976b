//! The `alloc_pages` operation of a driver.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::translate;
use crate::base::wait::Wait;
use crate::base::wait::done;
use crate::kernel::Kernel;
use crate::paging::allocation::Allocation;
use kontig_mm::{AllocFailure, Gfp, Order, Pfn, Step};
use kontig_program::Value;

#[derive(Clone)]
pub(crate) struct AllocPages {
    /// `None` for an order beyond the largest: the allocation fails, as the kernel's does.
    allocation: Option<Allocation>,
    order: Order,
}

impl AllocPages {
    pub(crate) fn new(gfp: Gfp, order: Option<Order>) -> AllocPages {
        AllocPages { allocation: order.map(|order| Allocation::new(gfp, order)), order: order.unwrap_or(Order::ZERO) }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        let order = self.order;
        let Some(allocation) = &mut self.allocation else { return Ok(Step::Done(Value::Block(None))) };
        match done!(allocation.step(k, c), Ok) {
            Ok(pfn) => Ok(Step::Done(block_ready(k, c, pfn, order))),
            Err(AllocFailure::Failed) => Ok(Step::Done(Value::Block(None))),
            Err(AllocFailure::OutOfMemory) => {
                Err(SimError::OutOfMemory { what: format!("a driver's {order:?} allocation") })
            }
        }
    }
}

/// Charges the preparation of the block's pages.
fn block_ready(k: &Kernel, c: &mut Context, pfn: Pfn, order: Order) -> Value {
    c.now += ns(k.costs.prepare_page * u64::from(order.pages()));
    Value::Block(Some(translate::frame(pfn)))
}
