//! Processes and kernel drivers: a program whose operations the kernel carries out.

pub(crate) mod address_space;
mod ahead;
mod copy;
pub(crate) mod family;
pub(crate) mod fault;
pub(crate) mod mempolicy;
mod page_table;

pub(crate) use address_space::AddressSpaces;

use crate::context::Context;
use crate::cost::ns;
use crate::error::SimError;
use crate::kernel::Kernel;
use crate::syscall::exit::Exit;
use crate::syscall::{Begun, Syscall};
use crate::task::TaskId;
use crate::wait::Wait;
use kontig_mm::{MemPolicy, Step};
use kontig_program::{Batch, Outcome, Program, Value};

/// The number of a process. Every program is a process; a driver is one that maps nothing.
pub(crate) type ProcessId = u32;

/// Kernel pages of a stack: `THREAD_SIZE`, 16 KiB on x86-64, in single pages since 4.9 (`CONFIG_VMAP_STACK`).
pub(crate) const STACK_PAGES: usize = 4;
/// Kernel pages of what describes a process: `task_struct`, `mm_struct`, its signals, files and mappings, 11 KiB by
/// `/proc/slabinfo` of a distribution's 6.1.
pub(crate) const TASK_PAGES: usize = 3;
/// Kernel pages of the tables above the page tables: of the top level two with page-table isolation, of the others one for
/// each end of the address space.
pub(crate) const UPPER_PAGES: usize = 6;

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
    /// What it runs once it has dropped its memory.
    exec: Option<Box<dyn Program>>,
    /// It is about to be gone.
    exit: Option<Exit>,
    /// It was forked by descendants of this task, which has its time when it has ended.
    root: Option<TaskId>,
}

#[derive(Clone)]
struct InProgress {
    call: Syscall,
    start_ns: u64,
}

impl Process {
    /// A process about to begin.
    pub(crate) fn new(id: ProcessId, program: Box<dyn Program>, now: u64) -> Process {
        Process {
            id,
            program,
            current: None,
            todo: Batch::new(),
            done: vec![Outcome::at_start(now)],
            exec: None,
            exit: None,
            root: None,
        }
    }

    /// A process that was forked by descendants of the task `root`.
    pub(crate) fn forked(id: ProcessId, program: Box<dyn Program>, now: u64, root: TaskId) -> Process {
        Process { root: Some(root), ..Process::new(id, program, now) }
    }

    /// Its number.
    pub(crate) fn id(&self) -> ProcessId {
        self.id
    }

    /// The task by whose descendants it was forked.
    pub(crate) fn root(&self) -> Option<TaskId> {
        self.root
    }

    /// Whether it can end where it is, when it is killed.
    pub(crate) fn may_end(&self) -> bool {
        self.exit.is_none() && self.current.as_ref().is_none_or(|current| current.call.may_end())
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
        c.policy = k.family.policy(self.id);
        let step = self.run(k, c)?;
        if let MemPolicy::Interleave(_) = c.policy.policy {
            k.family.set_policy(self.id, c.policy);
        }
        k.pages.spaces.set_running(self.id, matches!(step, Step::Working | Step::Wait(Wait::Compute(_))));
        Ok(step)
    }

    /// Another task has taken its CPU.
    pub(crate) fn leave_cpu(&self, k: &mut Kernel) {
        k.pages.spaces.set_running(self.id, false);
    }

    fn run(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<(), Wait>, SimError> {
        c.process = Some(self.id);
        while !k.must_yield(c) {
            if k.family.is_killed(self.id) && self.may_end() {
                self.exit = Some(Exit::new(self.id));
            }
            if let Some(exit) = &mut self.exit {
                match exit.step(k, c) {
                    Step::Working => continue,
                    step => return Ok(step),
                }
            }
            let current = match &mut self.current {
                Some(current) => current,
                None => {
                    if self.todo.is_empty() {
                        self.program.next(&self.done, &mut self.todo);
                        self.done.clear();
                    }
                    let Some(op) = self.todo.pop() else {
                        if self.root.is_none() {
                            return Ok(Step::Done(()));
                        }
                        self.exit = Some(Exit::new(self.id));
                        continue;
                    };
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
                        Begun::Exec(call, program) => {
                            c.now += ns(k.costs.syscall);
                            self.exec = Some(program);
                            self.current.insert(InProgress { call, start_ns })
                        }
                        Begun::Exit => {
                            c.now += ns(k.costs.syscall);
                            self.exit = Some(Exit::new(self.id));
                            continue;
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
                    if let Some(program) = self.exec.take() {
                        self.program = program;
                        self.todo = Batch::new();
                        self.done = vec![Outcome::at_start(c.now)];
                    }
                }
            }
        }
        Ok(Step::Working)
    }
}
