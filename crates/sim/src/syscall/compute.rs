//! Computing: time in the program's own code, or in a driver that waits and stays runnable.

use crate::base::context::Context;
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

/// A driver calls `schedule()` until a time has come.
#[derive(Clone)]
pub(crate) struct Spin {
    ns: u64,
    /// The time, once it has begun.
    until: Option<u64>,
}

/// How long it goes on before it looks at the time again, ns: others may have had the CPU
/// meanwhile.
const LOOKS_AFTER_NS: u64 = 1_000_000;

impl Spin {
    pub(crate) fn new(ns: u64) -> Spin {
        Spin { ns, until: None }
    }

    pub(crate) fn step(&mut self, c: &Context) -> Step<Value, Wait> {
        let until = *self.until.get_or_insert(c.now.saturating_add(self.ns));
        match until.saturating_sub(c.now) {
            0 => Step::Done(Value::Unit),
            left => Step::Wait(Wait::Spin(left.min(LOOKS_AFTER_NS))),
        }
    }
}
