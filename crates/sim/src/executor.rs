//! The executor: whose turn it is.
//!
//! Every task has a clock. The task whose clock is furthest behind runs, until it passes the next one's clock, ends
//! its operation, or wakes another; ties go to the lower number. Tasks on one CPU share it: a task's turn begins
//! when the CPU is free. So the order of all engine operations follows from virtual time alone.

use crate::cost::{CostModel, ns};
use crate::kernel::{Context, InProgress, Kernel, SimError, Slice};
use kontig_mm::event::Event;
use kontig_mm::kcompactd::Kcompactd;
use kontig_mm::kswapd::Kswapd;
use kontig_mm::{CpuId, Daemon, DaemonStep, Memory, NodeId, Step, Wait, Work};
use kontig_program::{Batch, Op, Outcome, Placement, Program, Value};
use std::fmt;

/// A task of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskId(usize);

/// Time a task has been on a CPU, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTime {
    /// In its own code.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

/// Why [`Machine::run`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The time asked for has come.
    Time,
    /// The program asked for is done.
    ProgramDone,
}

struct Task {
    body: Body,
    cpu: usize,
    clock: u64,
    state: State,
    time: CpuTime,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Runnable,
    /// Until its clock, unless woken.
    Sleeping,
    /// Until woken.
    Waiting,
    Done,
}

enum Body {
    Kswapd(Kswapd),
    Kcompactd(Box<Kcompactd>),
    Program {
        program: Box<dyn Program>,
        process: usize,
        current: Option<InProgress>,
        /// What it handed over and is not yet begun, and how the operations of the same batch before went.
        todo: Batch,
        done: Vec<Outcome>,
    },
}

impl Body {
    fn kernel_thread(&self) -> Option<KernelThread> {
        match self {
            Body::Kcompactd(k) => Some(KernelThread { kind: KernelThreadKind::Kcompactd, node: k.node() }),
            Body::Kswapd(k) => Some(KernelThread { kind: KernelThreadKind::Kswapd, node: k.node() }),
            Body::Program { .. } => None,
        }
    }
}

/// A kernel thread. It is written as the kernel names it: `kcompactd0`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelThread {
    /// What it does.
    pub kind: KernelThreadKind,
    /// The node it does it for.
    pub node: NodeId,
}

/// What kernel threads there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelThreadKind {
    /// Compacts.
    Kcompactd,
    /// Reclaims.
    Kswapd,
}

impl fmt::Display for KernelThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            KernelThreadKind::Kcompactd => "kcompactd",
            KernelThreadKind::Kswapd => "kswapd",
        };
        write!(f, "{kind}{}", self.node.index())
    }
}

/// A simulated machine with its tasks.
pub struct Machine {
    kernel: Kernel,
    tasks: Vec<Task>,
    /// When each CPU is free.
    cpu_free_at: Vec<u64>,
    now: u64,
    /// When the CPUs next fold their parts of the counters in.
    next_fold: u64,
}

/// How often the kernel folds per-CPU counters (`vm.stat_interval`): one second.
const STAT_INTERVAL_NS: u64 = 1_000_000_000;

impl Machine {
    /// A machine at time 0 with its kernel threads asleep.
    pub fn new(mem: Memory, costs: CostModel) -> Machine {
        let cpus = mem.nr_cpus();
        let nodes: Vec<(NodeId, Vec<CpuId>)> = mem.nodes().iter().map(|n| (n.id, n.cpus.clone())).collect();
        let mut machine = Machine {
            kernel: Kernel::new(mem, costs),
            tasks: Vec::new(),
            cpu_free_at: vec![0; cpus],
            now: 0,
            next_fold: STAT_INTERVAL_NS,
        };
        for (node, cpus) in nodes {
            // Programs are placed from a node's first CPU up, kernel threads from its last down.
            let from_last = |i: usize| match cpus.len() {
                0 => CpuId::new(0),
                n => cpus[n - 1 - i.min(n - 1)],
            };
            let kcompactd = from_last(0);
            machine.add(Body::Kcompactd(Box::new(Kcompactd::new(node, kcompactd))), kcompactd.index(), State::Sleeping);
            machine.add(Body::Kswapd(Kswapd::new(node)), from_last(1).index(), State::Waiting);
        }
        machine
    }

    fn add(&mut self, body: Body, cpu: usize, state: State) -> TaskId {
        self.tasks.push(Task { body, cpu, clock: self.now, state, time: CpuTime::default() });
        TaskId(self.tasks.len() - 1)
    }

    /// Starts a program now.
    pub fn spawn(&mut self, program: Box<dyn Program>, placement: Placement) -> TaskId {
        let process = self.kernel.spaces.add_process();
        let cpu = placement.cpu.min(self.cpu_free_at.len() - 1);
        let (todo, done) = (Batch::new(), vec![Outcome::at_start(self.now)]);
        self.add(Body::Program { program, process, current: None, todo, done }, cpu, State::Runnable)
    }

    /// The program of a task started with [`Machine::spawn`].
    pub fn program(&self, id: TaskId) -> Option<&dyn Program> {
        match &self.tasks[id.0].body {
            Body::Program { program, .. } => Some(program.as_ref()),
            _ => None,
        }
    }

    /// Virtual time, ns.
    pub fn now(&self) -> u64 {
        self.now
    }
    /// The machine's memory.
    pub fn memory(&self) -> &Memory {
        &self.kernel.mem
    }
    /// The machine's memory, for tracing and for sysctls set from outside.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.kernel.mem
    }
    /// Hands over the events of the groups listened to (`memory_mut().trace().listen()`) that happened before `until`,
    /// each with its virtual time, in order. With `until` no later than a [`Machine::run`] that came back for the time
    /// asked for, none that is handed over afterwards is earlier.
    pub fn take_events(&mut self, until: u64) -> Vec<(u64, Event)> {
        self.kernel.take_events(until)
    }
    /// All work charged so far.
    pub fn work(&self) -> &Work {
        &self.kernel.work
    }
    /// Time all tasks spent waiting for zone locks, ns.
    pub fn lock_wait_ns(&self) -> u64 {
        self.kernel.lock_wait_ns
    }
    /// Time a task has been on a CPU.
    pub fn cpu_time(&self, id: TaskId) -> CpuTime {
        self.tasks[id.0].time
    }
    /// Every kernel thread, node by node, with its time on a CPU, ns.
    pub fn kernel_threads(&self) -> Vec<(KernelThread, u64)> {
        self.tasks.iter().filter_map(|t| Some((t.body.kernel_thread()?, t.time.system_ns))).collect()
    }
    /// Time all kernel threads of a kind have been on a CPU, ns.
    pub fn kernel_thread_ns(&self, kind: KernelThreadKind) -> u64 {
        self.kernel_threads().iter().filter(|(thread, _)| thread.kind == kind).map(|(_, ns)| ns).sum()
    }

    /// Runs until virtual time `until`, or until the program `done` is done, whichever comes first.
    ///
    /// # Errors
    /// If a program asks for something the machine cannot give. The program is then done.
    pub fn run(&mut self, until: u64, done: Option<TaskId>) -> Result<Stop, SimError> {
        // Time never goes back, whatever is asked for, and whoever lags behind.
        let entered = self.now;
        let until = until.max(entered);
        self.deliver_wakes(self.now);
        loop {
            if let Some(id) = done
                && self.tasks[id.0].state == State::Done
            {
                self.now = self.now.max(entered);
                return Ok(Stop::ProgramDone);
            }
            let Some((first, start, horizon)) = self.next_turn() else {
                self.now = until;
                return Ok(Stop::Time);
            };
            if start >= until {
                self.now = until;
                return Ok(Stop::Time);
            }
            self.now = start;
            if start >= self.next_fold {
                self.next_fold = (start / STAT_INTERVAL_NS + 1) * STAT_INTERVAL_NS;
                (0..self.cpu_free_at.len()).for_each(|cpu| self.kernel.mem.vmstat_update(CpuId::new(cpu)));
            }
            // Folding is everybody's affair: no turn goes past it.
            self.turn(first, start, horizon.min(self.next_fold), until)?;
            self.deliver_wakes(self.now);
        }
    }

    /// The task whose turn is next, when it begins, and when the one after it would.
    fn next_turn(&self) -> Option<(usize, u64, u64)> {
        let mut first: Option<(u64, usize)> = None;
        let mut second = u64::MAX;
        for (i, t) in self.tasks.iter().enumerate() {
            if matches!(t.state, State::Waiting | State::Done) {
                continue;
            }
            let start = t.clock.max(self.cpu_free_at[t.cpu]);
            match first {
                Some((s, _)) if start >= s => second = second.min(start),
                _ => {
                    second = second.min(first.map_or(u64::MAX, |f| f.0));
                    first = Some((start, i));
                }
            }
        }
        first.map(|(start, i)| (i, start, second.max(start + 1)))
    }

    fn turn(&mut self, id: usize, start: u64, horizon: u64, until: u64) -> Result<(), SimError> {
        let task = &mut self.tasks[id];
        let timed_out = task.state == State::Sleeping;
        let cpu = CpuId::new(task.cpu);
        let node = self.kernel.mem.node_of_cpu(cpu);
        let mut c = Context { cpu, node, process: usize::MAX, now: start, horizon, until, user_ns: 0 };
        match &mut task.body {
            Body::Kswapd(kswapd) => {
                let step = kswapd.step(&mut self.kernel.mem, timed_out);
                self.kernel.charge(&mut c.now);
                daemon_turn(task, &mut c, start, step);
            }
            Body::Kcompactd(kcompactd) => {
                let mut timed_out = timed_out;
                let step = loop {
                    let budget = self.kernel.budget(&c);
                    let step = kcompactd.step(&mut self.kernel.mem, &mut self.kernel.spaces, budget, timed_out);
                    self.kernel.charge(&mut c.now);
                    timed_out = false;
                    if step != Step::Working || c.is_over() || self.kernel.mem.has_wakes() {
                        break step;
                    }
                };
                daemon_turn(task, &mut c, start, step);
            }
            Body::Program { program, process, current, todo, done } => {
                c.process = *process;
                task.state = State::Runnable;
                // Its own pages it moves without interrupting another CPU.
                self.kernel.spaces.set_running(*process, false);
                while !c.is_over() && !self.kernel.mem.has_wakes() {
                    let mut op = match current.take() {
                        Some(op) => op,
                        None => {
                            if todo.is_empty() {
                                program.next(done, todo);
                                done.clear();
                            }
                            let Some(op) = todo.pop() else {
                                task.state = State::Done;
                                break;
                            };
                            InProgress::new(op, c.now)
                        }
                    };
                    match op.op {
                        Op::Sleep(ns) => {
                            let end_ns = c.now + ns;
                            done.push(Outcome { value: Value::Unit, start_ns: c.now, end_ns });
                            task.state = State::Sleeping;
                            task.clock = end_ns;
                        }
                        _ => match self.kernel.slice(&mut op, &mut c).inspect_err(|_| task.state = State::Done)? {
                            Slice::More => *current = Some(op),
                            Slice::Done(value) => done.push(Outcome { value, start_ns: op.start, end_ns: c.now }),
                        },
                    }
                    if task.state != State::Runnable {
                        break;
                    }
                }
                self.kernel.spaces.set_running(*process, task.state == State::Runnable);
                task.time.user_ns += c.user_ns;
                task.time.system_ns += c.now - start - c.user_ns;
                self.cpu_free_at[task.cpu] = c.now;
                if task.state != State::Sleeping {
                    task.clock = c.now;
                }
                self.now = c.now;
                return Ok(());
            }
        }
        self.cpu_free_at[cpu.index()] = c.now;
        self.now = c.now;
        Ok(())
    }

    /// Starts the kernel threads that were woken at `now`.
    fn deliver_wakes(&mut self, now: u64) {
        if !self.kernel.mem.has_wakes() {
            return;
        }
        let woken: Vec<Daemon> = self.kernel.mem.take_wakes().collect();
        let at = now + ns(self.kernel.costs.wakeup);
        for t in &mut self.tasks {
            let woken = t.body.kernel_thread().is_some_and(|thread| {
                woken.contains(&match thread.kind {
                    KernelThreadKind::Kcompactd => Daemon::Kcompactd(thread.node),
                    KernelThreadKind::Kswapd => Daemon::Kswapd(thread.node),
                })
            });
            if woken && matches!(t.state, State::Waiting | State::Sleeping) {
                t.state = State::Runnable;
                t.clock = at;
            }
        }
    }
}

/// Settles a kernel thread's turn: its time, and whether it sleeps.
fn daemon_turn(task: &mut Task, c: &mut Context, start: u64, step: DaemonStep) {
    task.time.system_ns += c.now - start;
    (task.state, task.clock) = match step {
        Step::Working => (State::Runnable, c.now),
        Step::Wait(Wait::Time(ns)) => (State::Sleeping, c.now + ns),
        Step::Wait(_) => (State::Waiting, c.now),
    };
}
