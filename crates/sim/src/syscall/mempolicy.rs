//! `set_mempolicy` and `mbind`: they note where memory is to be; what is there already stays.

use crate::context::Context;
use crate::kernel::Kernel;
use crate::process::ProcessId;
use crate::process::address_space::Span;
use crate::process::mempolicy::TaskPolicy;
use kontig_mm::MemPolicy;
use kontig_program::Value;

/// `set_mempolicy`.
#[derive(Clone)]
pub(crate) struct SetMempolicy {
    pub(crate) process: ProcessId,
    pub(crate) policy: MemPolicy,
}

impl SetMempolicy {
    pub(crate) fn run(&self, k: &mut Kernel, c: &mut Context) -> Value {
        c.policy = TaskPolicy { policy: self.policy, turn: 0 };
        k.family.set_policy(self.process, c.policy);
        Value::Unit
    }
}

/// `mbind`; without a policy the range has its process's again.
#[derive(Clone)]
pub(crate) struct Mbind {
    pub(crate) region: Span,
    pub(crate) policy: Option<MemPolicy>,
}

impl Mbind {
    pub(crate) fn run(&self, k: &mut Kernel) -> Value {
        let Span { mapping, first, pages } = self.region;
        k.pages.spaces.mapping(mapping).bind(first..first + pages, self.policy);
        Value::Unit
    }
}
