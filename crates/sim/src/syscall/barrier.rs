//! A barrier: a task waits there until the last one has arrived.

use crate::base::barrier::Arrival;
use crate::base::error::SimError;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use kontig_mm::Step;
use kontig_program::{Op, Value};

/// A task's arrival at a barrier.
#[derive(Clone)]
pub(crate) struct BarrierWait {
    barrier: u32,
    parties: u32,
    has_waited: bool,
}

impl BarrierWait {
    pub(crate) fn new(barrier: u32, parties: u32) -> BarrierWait {
        BarrierWait { barrier, parties, has_waited: false }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel) -> Result<Step<Value, Wait>, SimError> {
        let BarrierWait { barrier, parties, has_waited } = *self;
        if has_waited {
            return Ok(Step::Done(Value::Unit));
        }
        match k.barriers.arrive(barrier, parties, &mut k.queues) {
            Arrival::Last => Ok(Step::Done(Value::Unit)),
            Arrival::Wait(queue) => {
                self.has_waited = true;
                Ok(Step::Wait(Wait::Queue(queue)))
            }
            Arrival::WrongSize => Err(SimError::WrongBarrier { op: format!("{:?}", Op::Barrier { barrier, parties }) }),
        }
    }
}
