//! `wait` for a child that has ended, and `kill`.

use crate::base::error::SimError;
use crate::base::id::ProcessId;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::process::family::End;
use kontig_mm::Step;
use kontig_program::{Op, Process, Value};

/// A wait for one child or for any, blocking or not.
#[derive(Clone)]
pub(crate) struct WaitChild {
    process: ProcessId,
    child: Option<ProcessId>,
    no_hang: bool,
}

impl WaitChild {
    /// # Errors
    /// If the process has no such child.
    pub(crate) fn new(k: &Kernel, process: ProcessId, child: Option<Process>, op: &Op) -> Result<WaitChild, SimError> {
        let child = child.map(Process::get);
        let has = child.map_or_else(|| k.family.has_children(process), |child| k.family.is_child(process, child));
        if has {
            Ok(WaitChild { process, child, no_hang: false })
        } else {
            Err(SimError::NoSuchProcess { op: format!("{op:?}") })
        }
    }

    /// The same without blocking (`WNOHANG`).
    pub(crate) fn no_hang(self) -> WaitChild {
        WaitChild { no_hang: true, ..self }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel) -> Step<Value, Wait> {
        match k.family.reap(self.process, self.child) {
            Some((child, End { killed, failed })) => {
                k.remove_process(child);
                Step::Done(Value::Ended { process: Process::new(child), killed, failed })
            }
            None if self.no_hang => Step::Done(Value::Unit),
            None => {
                let Kernel { family, queues, .. } = k;
                Step::Wait(Wait::Queue(family.queue(self.process, || queues.add())))
            }
        }
    }
}

/// `kill` of a process.
#[derive(Clone)]
pub(crate) struct Kill {
    pub(crate) process: ProcessId,
}

impl Kill {
    /// Has no effect on a process that has ended.
    pub(crate) fn run(&self, k: &mut Kernel) -> Value {
        k.family.kill(self.process);
        Value::Unit
    }
}
