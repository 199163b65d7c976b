//! `set_mempolicy` and `mbind`. They set policies; pages already in memory stay where they are.

use crate::base::context::{Context, TaskPolicy};
use crate::base::error::SimError;
use crate::base::id::{ProcessId, Span};
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::paging::hold_map::Hold;
use kontig_mm::{MemPolicy, Step};
use kontig_program::{Region, Value};

#[derive(Clone)]
pub(crate) struct SetMempolicy {
    pub(crate) process: ProcessId,
    pub(crate) thread: u32,
    pub(crate) policy: MemPolicy,
}

impl SetMempolicy {
    pub(crate) fn run(&self, k: &mut Kernel, c: &mut Context) -> Value {
        c.policy = TaskPolicy { policy: self.policy, turn: 0 };
        k.family.set_policy(self.process, self.thread, c.policy);
        Value::Unit
    }
}

/// `mbind`; without a policy the range follows its thread's again.
#[derive(Clone)]
pub(crate) struct Mbind {
    process: ProcessId,
    region: Region,
    policy: Option<MemPolicy>,
    hold: Hold,
}

impl Mbind {
    pub(crate) fn new(process: ProcessId, region: Region, policy: Option<MemPolicy>) -> Mbind {
        Mbind { process, region, policy, hold: Hold::new(process, Mode::Write) }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel) -> Result<Step<Value, Wait>, SimError> {
        if let Some(wait) = self.hold.take(k) {
            return Ok(Step::Wait(wait));
        }
        let Some(Span { mapping, first, pages }) = k.pages.spaces.span(self.process, self.region) else {
            return Err(SimError::BadAddress { op: format!("mbind of {:?}", self.region) });
        };
        k.pages.spaces.mapping(mapping).bind(first..first + pages, self.policy);
        self.hold.give_back(k);
        Ok(Step::Done(Value::Unit))
    }
}
