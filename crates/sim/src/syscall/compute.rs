//! Computing: time in the program's own code.

use crate::base::wait::Wait;
use kontig_mm::Step;
use kontig_program::Value;

#[derive(Clone)]
pub(crate) struct Compute {
    /// The time to compute, until it has begun.
    ns: Option<u64>,
}

impl Compute {
    pub(crate) fn new(ns: u64) -> Compute {
        Compute { ns: (ns > 0).then_some(ns) }
    }

    /// The scheduler ends the task's turn for this time and then resumes it.
    pub(crate) fn step(&mut self) -> Step<Value, Wait> {
        match self.ns.take() {
            Some(ns) => Step::Wait(Wait::Compute(ns)),
            None => Step::Done(Value::Unit),
        }
    }
}
