//! Processes and kernel drivers: a program whose operations the kernel carries out.

pub(crate) mod address_space;
mod ahead;
pub(crate) mod fault;
mod page_table;

pub(crate) use address_space::AddressSpaces;

use crate::context::Context;
use crate::cost::ns;
use crate::error::SimError;
use crate::kernel::Kernel;
use crate::syscall::{Begun, Syscall};
use crate::wait::Wait;
use kontig_mm::Step;
use kontig_program::{Batch, Outcome, Program, Value};

/// The number of a process. Every program is a process; a driver is one that maps nothing.
pub(crate) type ProcessId = u32;

/// A program, and how far it is.
#[derive(Clone)]
pub(crate) struct Process {
    id: ProcessId,
    program: Box<dyn Program>,
    /// The operation it is in.
    current: Option<InProgress>,
    /// What it has handed over and not begun.
    todo: Batch,
    /// How the operations of the same batch before went.
    done: Vec<Outcome>,
}

#[derive(Clone)]
struct InProgress {
    call: Syscall,
    start_ns: u64,
}

impl Process {
    /// A process about to begin.
    pub(crate) fn new(id: ProcessId, program: Box<dyn Program>, now: u64) -> Process {
        Process { id, program, current: None, todo: Batch::new(), done: vec![Outcome::at_start(now)] }
    }

    pub(crate) fn program(&self) -> &dyn Program {
        self.program.as_ref()
    }

    pub(crate) fn program_mut(&mut self) -> &mut dyn Program {
        self.program.as_mut()
    }

    /// A turn: operation after operation, until it waits for something or another task's turn has come.
    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<(), Wait>, SimError> {
        // Its own pages it moves without interrupting another CPU.
        k.pages.spaces.set_running(self.id, false);
        let step = self.run(k, c)?;
        k.pages.spaces.set_running(self.id, matches!(step, Step::Working | Step::Wait(Wait::Compute(_))));
        Ok(step)
    }

    /// Another task has taken its CPU.
    pub(crate) fn leave_cpu(&self, k: &mut Kernel) {
        k.pages.spaces.set_running(self.id, false);
    }

    fn run(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<(), Wait>, SimError> {
        while !k.must_yield(c) {
            let current = match &mut self.current {
                Some(current) => current,
                None => {
                    if self.todo.is_empty() {
                        self.program.next(&self.done, &mut self.todo);
                        self.done.clear();
                    }
                    let Some(op) = self.todo.pop() else { return Ok(Step::Done(())) };
                    k.fetch_ahead(self.id, &self.todo);
                    let start_ns = c.now;
                    match Syscall::begin(op, k, self.id)? {
                        Begun::Call(call) => {
                            c.now += ns(k.costs.syscall);
                            self.current.insert(InProgress { call, start_ns })
                        }
                        Begun::Own(call) => self.current.insert(InProgress { call, start_ns }),
                        Begun::Sleep(ns) => {
                            let end_ns = start_ns.saturating_add(ns);
                            self.done.push(Outcome { value: Value::Unit, start_ns, end_ns });
                            return Ok(Step::Wait(Wait::Time(ns)));
                        }
                    }
                }
            };
            match current.call.step(k, c)? {
                Step::Working => {}
                Step::Wait(wait) => return Ok(Step::Wait(wait)),
                Step::Done(value) => {
                    self.done.push(Outcome { value, start_ns: current.start_ns, end_ns: c.now });
                    self.current = None;
                }
            }
        }
        Ok(Step::Working)
    }
}
