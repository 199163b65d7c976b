//! Processes and kernel drivers: a program whose operations the kernel carries out.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::{ProcessId, TaskId};
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::process::family::Birth;
use crate::syscall::exit::Exit;
use crate::syscall::{Begun, Syscall};
use kontig_mm::{MemPolicy, Order, Pfn, Step};
use kontig_program::{Batch, Outcome, Program, Value};
/// A thread of a process: a program, and how far it is.
#[derive(Clone)]
pub(crate) struct Process {
    id: ProcessId,
    /// Its number in the process; the first thread's is 0.
    thread: u32,
    /// Kernel pages of its own, of one that is not the first.
    pages: Vec<Pfn>,
    /// It is on a CPU while another task has its turn.
    on_cpu: bool,
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
    leaving: Option<Leaving>,
    /// It was made by descendants of this task, which has its time when it has ended.
    root: Option<TaskId>,
}

/// What is left to do for a thread that ends.
#[derive(Clone)]
enum Leaving {
    /// Nothing: others go on.
    Thread,
    /// It was the last.
    Process(Exit),
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
            thread: 0,
            pages: Vec::new(),
            on_cpu: false,
            program,
            current: None,
            todo: Batch::new(),
            done: vec![Outcome::at_start(now)],
            exec: None,
            leaving: None,
            root: None,
        }
    }

    /// A thread that was made by descendants of the task `root`, the first of a new process or not.
    pub(crate) fn born(birth: Birth, now: u64, root: TaskId) -> Process {
        let Birth { process, thread, program, pages } = birth;
        Process { thread, pages, root: Some(root), ..Process::new(process, program, now) }
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> ProcessId {
        self.id
    }

    /// The task by whose descendants it was made.
    pub(crate) fn root(&self) -> Option<TaskId> {
        self.root
    }

    /// Whether it can end where it is, when it is killed.
    pub(crate) fn may_end(&self) -> bool {
        self.leaving.is_none() && self.current.as_ref().is_none_or(|current| current.call.may_end())
    }

    pub(crate) fn program(&self) -> &dyn Program {
        self.program.as_ref()
    }

    pub(crate) fn program_mut(&mut self) -> &mut dyn Program {
        self.program.as_mut()
    }

    /// A turn: operation after operation, until it waits for something or another task's turn has come.
    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<(), Wait>, SimError> {
        // Its own pages it moves without interrupting another CPU, if no other thread is on one.
        self.set_on_cpu(k, false);
        c.policy = k.family.policy(self.id, self.thread);
        let step = self.run(k, c)?;
        if let (MemPolicy::Interleave(_), Step::Working | Step::Wait(_)) = (c.policy.policy, &step) {
            k.family.set_policy(self.id, self.thread, c.policy);
        }
        self.set_on_cpu(k, matches!(step, Step::Working | Step::Wait(Wait::Compute(_))));
        Ok(step)
    }

    /// Another task has taken its CPU.
    pub(crate) fn leave_cpu(&mut self, k: &mut Kernel) {
        self.set_on_cpu(k, false);
    }

    fn set_on_cpu(&mut self, k: &mut Kernel, on: bool) {
        if std::mem::replace(&mut self.on_cpu, on) != on {
            k.pages.spaces.set_running(self.id, on);
        }
    }

    /// It ends: with it the process, if it is the last.
    fn leave(&mut self, k: &mut Kernel, c: &mut Context) {
        let is_last = k.family.threads(self.id).is_alone();
        if is_last {
            k.family.set_failed(self.id, self.program.has_failed());
            self.leaving = Some(Leaving::Process(Exit::new(self.id)));
            return;
        }
        let program = (self.thread != 0).then(|| std::mem::replace(&mut self.program, Box::new(Ended)));
        for queue in k.family.threads(self.id).end(self.thread, program) {
            k.queues.wake_all(queue);
        }
        self.free_pages(k, c);
        self.leaving = Some(Leaving::Thread);
    }

    fn free_pages(&mut self, k: &mut Kernel, c: &mut Context) {
        for pfn in self.pages.drain(..) {
            k.mem.free(c.cpu, pfn, Order::ZERO);
        }
        k.charge(&mut c.now);
    }

    fn run(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<(), Wait>, SimError> {
        c.process = Some(self.id);
        while !self.has_left() && !k.must_yield(c) {
            if k.family.must_end(self.id, self.thread) && self.may_end() {
                self.leave(k, c);
            }
            match &mut self.leaving {
                None => {}
                Some(Leaving::Thread) => break,
                Some(Leaving::Process(exit)) => match exit.step(k, c) {
                    Step::Working => continue,
                    Step::Done(()) => {
                        self.free_pages(k, c);
                        return Ok(Step::Done(()));
                    }
                    step => return Ok(step),
                },
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
                        self.leave(k, c);
                        continue;
                    };
                    k.fetch_ahead(self.id, &self.todo);
                    let start_ns = c.now;
                    match Syscall::begin(op, k, self.id, self.thread)? {
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
                            k.family.end_others(self.id, self.thread);
                            self.leave(k, c);
                            continue;
                        }
                    }
                }
            };
            match current.call.step(k, c)? {
                Step::Working => {}
                Step::Wait(wait) => return Ok(Step::Wait(wait)),
                Step::Done(value) => {
                    if let Value::Joined(thread) = value
                        && let Some(program) = k.family.threads(self.id).take_program(thread.get())
                    {
                        self.program.joined(program);
                    }
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
        Ok(if self.has_left() { Step::Done(()) } else { Step::Working })
    }

    /// Whether it has ended, and is none of the process's threads any more: it has no further turn, because the process may
    /// be gone by then.
    fn has_left(&self) -> bool {
        matches!(self.leaving, Some(Leaving::Thread))
    }
}

/// In place of the program of a thread that has ended.
#[derive(Clone)]
struct Ended;

impl Program for Ended {
    fn next(&mut self, _: &[Outcome], _: &mut Batch) {}
    fn progress(&self) -> f64 {
        1.0
    }
}
