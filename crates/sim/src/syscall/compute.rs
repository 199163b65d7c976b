//! Computing: time in the program's own code, in which it needs nothing of the kernel.

use crate::base::wait::Wait;
use kontig_mm::Step;
use kontig_program::Value;

/// A stretch of computing.
#[derive(Clone)]
pub(crate) struct Compute {
    /// How long it takes, until it has begun.
    ns: Option<u64>,
}

impl Compute {
    pub(crate) fn new(ns: u64) -> Compute {
        Compute { ns: (ns > 0).then_some(ns) }
    }

    /// The scheduler gives the task its next turn when it has computed.
    pub(crate) fn step(&mut self) -> Step<Value, Wait> {
        match self.ns.take() {
            Some(ns) => Step::Wait(Wait::Compute(ns)),
            None => Step::Done(Value::Unit),
        }
    }
}
