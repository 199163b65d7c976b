//! Processes and kernel drivers: programs whose operations the kernel carries out.

use crate::base::context::Context;
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::{ProcessId, TaskId};
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::process::family::Birth;
use crate::syscall::exit::Exit;
use crate::syscall::{Begun, Syscall};
use kontig_mm::{Gfp, MemPolicy, Order, OverHigh, Pfn, Step};
use kontig_program::{Batch, Outcome, Program, Value};

/// Pages charged at a time. A task that has charged more than that above `memory.high` works it off
/// before it returns to its program.
const CHARGE_BATCH: u64 = 64;

/// A thread of a process, with its program and progress.
#[derive(Clone)]
pub(crate) struct Process {
    id: ProcessId,
    /// Number in its process; the first thread's is 0.
    thread: u32,
    /// The kernel's blocks of a thread other than the first.
    blocks: Vec<(Pfn, Order)>,
    /// Whether it occupies a CPU between its turns.
    on_cpu: bool,
    program: Box<dyn Program>,
    /// The operation in progress.
    current: Option<InProgress>,
    /// Operations handed over and not begun.
    todo: Batch,
    /// Outcomes of the earlier operations of the batch.
    done: Vec<Outcome>,
    /// The program to run once `exec` has dropped its memory.
    exec: Option<Box<dyn Program>>,
    /// Pages that it has charged above `memory.high`.
    over_high: u64,
    /// The work for these, before it goes on.
    above_high: Option<Box<OverHigh>>,
    /// Set while it ends.
    leaving: Option<Leaving>,
    /// The task that the host started and whose descendants made this one. It inherits this one's
    /// time.
    root: Option<TaskId>,
}

/// Work left for an ending thread.
#[derive(Clone)]
enum Leaving {
    /// None: other threads go on.
    Thread,
    /// It was the last thread.
    Process(Exit),
}

#[derive(Clone)]
struct InProgress {
    call: Syscall,
    start_ns: u64,
}

impl Process {
    /// A process that has not begun to run.
    pub(crate) fn new(id: ProcessId, program: Box<dyn Program>, now: u64) -> Process {
        Process {
            id,
            thread: 0,
            blocks: Vec::new(),
            on_cpu: false,
            program,
            current: None,
            todo: Batch::new(),
            done: vec![Outcome::at_start(now)],
            exec: None,
            over_high: 0,
            above_high: None,
            leaving: None,
            root: None,
        }
    }

    /// A thread, the first of its process or a later one, made by descendants of the task `root`.
    pub(crate) fn born(birth: Birth, now: u64, root: TaskId) -> Process {
        let Birth { process, thread, program, blocks } = birth;
        Process { thread, blocks, root: Some(root), ..Process::new(process, program, now) }
    }

    pub(crate) fn id(&self) -> ProcessId {
        self.id
    }

    /// The task whose descendants made it.
    pub(crate) fn root(&self) -> Option<TaskId> {
        self.root
    }

    /// Whether it can end at this point if it is killed.
    pub(crate) fn may_end(&self) -> bool {
        self.leaving.is_none() && self.current.as_ref().is_none_or(|current| current.call.may_end())
    }

    pub(crate) fn program(&self) -> &dyn Program {
        self.program.as_ref()
    }

    pub(crate) fn program_mut(&mut self) -> &mut dyn Program {
        self.program.as_mut()
    }

    /// A turn: runs operations until it must wait or yield.
    pub(crate) fn turn(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<(), Wait>, SimError> {
        // Moving its own pages interrupts no other CPU, unless another of its threads runs there.
        self.set_on_cpu(k, false);
        c.policy = k.family.policy(self.id, self.thread);
        let step = self.run(k, c)?;
        if let (MemPolicy::Interleave(_), Step::Working | Step::Wait(_)) = (c.policy.policy, &step) {
            k.family.set_policy(self.id, self.thread, c.policy);
        }
        self.set_on_cpu(k, matches!(step, Step::Working | Step::Wait(Wait::Compute(_) | Wait::Spin(_))));
        Ok(step)
    }

    /// Tells it that another task has taken its CPU.
    pub(crate) fn leave_cpu(&mut self, k: &mut Kernel) {
        self.set_on_cpu(k, false);
    }

    fn set_on_cpu(&mut self, k: &mut Kernel, on: bool) {
        if std::mem::replace(&mut self.on_cpu, on) != on {
            k.pages.spaces.set_running(self.id, on);
        }
    }

    /// Ends the thread and, with the last one, the process.
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
        self.free_blocks(k, c);
        self.leaving = Some(Leaving::Thread);
    }

    fn free_blocks(&mut self, k: &mut Kernel, c: &mut Context) {
        for (pfn, order) in self.blocks.drain(..) {
            k.mem.free(c.cpu, pfn, order);
        }
        k.charge(&mut c.now);
    }

    fn run(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<(), Wait>, SimError> {
        c.process = Some(self.id);
        c.group = k.pages.spaces.group_of(self.id);
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
                        self.free_blocks(k, c);
                        return Ok(Step::Done(()));
                    }
                    step => return Ok(step),
                },
            }
            // One that must end goes on to its end.
            self.above_high.take_if(|_| k.family.must_end(self.id, self.thread));
            if let Some(work) = &mut self.above_high {
                match k.work_off_high(c, work) {
                    Step::Working => continue,
                    Step::Wait(wait) => return Ok(Step::Wait(wait)),
                    Step::Done(()) => self.above_high = None,
                }
            }
            let current = match &mut self.current {
                Some(current) => current,
                None => {
                    if self.todo.is_empty() {
                        self.program.next(&self.done, &mut self.todo);
                        self.done.clear();
                        k.fetch_files(&self.todo);
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
                            self.current.insert(InProgress { call: Syscall::Exec(call), start_ns })
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
            let step = current.call.step(k, c)?;
            if self.over_high | c.over_high > 0 {
                let returns = matches!(step, Step::Done(_)) || current.call.may_end();
                self.above_high = above_high(&mut self.over_high, c, returns);
            }
            match step {
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
                        if let Some(name) = program.name() {
                            k.executes(name);
                        }
                        self.program = program;
                        self.todo = Batch::new();
                        self.done = vec![Outcome::at_start(c.now)];
                    }
                }
            }
        }
        Ok(if self.has_left() { Step::Done(()) } else { Step::Working })
    }

    /// Whether the thread has left its process. It has no further turn, because the process may
    /// already be gone.
    fn has_left(&self) -> bool {
        matches!(self.leaving, Some(Leaving::Thread))
    }
}

/// Replaces the program of a thread that has ended.
#[derive(Clone)]
struct Ended;

impl Program for Ended {
    fn next(&mut self, _: &[Outcome], _: &mut Batch) {}
    fn progress(&self) -> f64 {
        1.0
    }
}

/// The work for pages charged above `memory.high`: when the task returns to its program, or once it
/// has charged more than a batch.
#[cold]
#[inline(never)]
fn above_high(charged: &mut u64, c: &mut Context, returns: bool) -> Option<Box<OverHigh>> {
    *charged += std::mem::take(&mut c.over_high);
    if !returns && *charged <= CHARGE_BATCH {
        return None;
    }
    Some(Box::new(OverHigh::new(c.cpu, c.group, std::mem::take(charged), Gfp::KERNEL)))
}
