//! The scheduler: the task, CPU and time of the next turn.
//!
//! Every CPU has a clock, a running task and waiting tasks in order of virtual runtime (`cpu`). The
//! first goes next (`fair`), or the eligible one with the earliest deadline (`deadline`). The next
//! turn is that of the CPU whose clock is furthest behind; ties go to the lower task number. A task
//! runs turn after turn until its slice is over and others wait, a woken task preempts it, or it
//! must wait itself. `place` chooses the CPU of a woken or new task; `balance` moves waiting tasks
//! to CPUs with less load; `topology` knows which CPUs are close to each other.
//!
//! A task that computes needs nothing of the kernel: its next turn is when it has finished or its
//! slice is over, however many turns other CPUs have meanwhile.
//!
//! A tree of the CPUs' next turns and one of the sleepers' wake times ([`MinTree`]) make a turn
//! cost O(log CPUs with tasks + log tasks).

mod balance;
mod cpu;
mod deadline;
mod fair;
mod min_tree;
mod nice;
mod picked;
mod place;
#[cfg(test)]
mod tests;
mod tick;
mod time;
mod topology;

pub(crate) use nice::Nice;
pub use time::{CpuTime, CpuUse};
pub(crate) use topology::{Affinity, Topology};

use cpu::{Cpu, NONE, Waiting};
use fair::Fair;
use kontig_mm::rules::SchedulerRules;
use min_tree::{MinTree, NONE as NO_KEY};
use picked::Picked;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    pub(crate) task: u32,
    pub(crate) cpu: usize,
    pub(crate) start: u64,
}

/// A task's state after its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// It wants another turn.
    GoOn,
    /// It computes for this long, ns, and then wants another turn.
    Compute(u64),
    /// The same in the kernel.
    Spin(u64),
    Wait,
    /// It waits for a device.
    WaitForIo,
}

/// The scheduler's state of a task.
#[derive(Clone, Debug)]
struct Entity {
    affinity: Affinity,
    weight: u32,
    /// Whether it is a kernel thread.
    is_kernel_thread: bool,
    /// Its current or last CPU.
    cpu: u32,
    /// Value when the task was last picked or began to wait.
    vruntime: i64,
    /// Where deadlines decide: its own, and how far behind its share it was when it began to wait.
    deadline: i64,
    lag: i64,
    /// When it was last picked or joined its CPU.
    touched_at: u64,
    /// Time left to compute, and whether it does so in the kernel.
    left: u64,
    in_kernel: bool,
    for_io: bool,
    time: CpuTime,
}

impl Entity {
    /// So much computing as CPU time.
    #[inline]
    fn computes(&self, ns: u64) -> CpuTime {
        match self.in_kernel {
            false => CpuTime { user_ns: ns, system_ns: 0 },
            true => CpuTime { user_ns: 0, system_ns: ns },
        }
    }
}

#[derive(Clone)]
pub(crate) struct Schedule {
    fair: Fair,
    topology: Topology,
    cpus: Vec<Cpu>,
    entities: Vec<Entity>,
    /// Numbers of removed tasks.
    free: Vec<u32>,
    /// The next turn of each CPU that has had a task.
    turns: MinTree,
    /// The wake time of each sleeping task, by task number.
    sleeps: MinTree,
    /// Number of idle CPUs.
    idle: usize,
    /// Number of waiting tasks that may run on another CPU.
    movable: u32,
    /// Time of the next balancing; never while no task could be moved.
    balance_at: u64,
    /// Preempted tasks that have not been told.
    preempted: Vec<u32>,
    /// Time of a context switch, ns.
    switch_ns: u64,
    /// Number of context switches.
    switches: u64,
}

/// Sort key of a turn: by time, then by task.
#[inline]
fn key(start: u64, task: u32) -> u128 {
    u128::from(start) << 32 | u128::from(task)
}

/// The time in a key; the greatest time for none.
#[inline]
fn at_of(key: u128) -> u64 {
    if key == NO_KEY { u64::MAX } else { (key >> 32) as u64 }
}

impl Schedule {
    /// A scheduler with idle CPUs and no tasks.
    pub(crate) fn new(topology: Topology, rules: &SchedulerRules, switch_ns: u64) -> Schedule {
        Schedule {
            fair: Fair::new(topology.cpus(), rules),
            cpus: vec![Cpu::new(); topology.cpus()],
            idle: topology.cpus(),
            topology,
            entities: Vec::new(),
            free: Vec::new(),
            turns: MinTree::new(),
            sleeps: MinTree::new(),
            movable: 0,
            balance_at: u64::MAX,
            preempted: Vec::new(),
            switch_ns,
            switches: 0,
        }
    }

    /// Changes the topology, before there are tasks.
    pub(crate) fn set_topology(&mut self, topology: Topology) {
        assert_eq!(self.topology.cpus(), topology.cpus());
        self.topology = topology;
    }

    /// Adds a waiting task, perhaps a kernel thread; its number, which may be reused.
    pub(crate) fn add(&mut self, affinity: Affinity, nice: Nice, cpu: usize, is_kernel_thread: bool) -> u32 {
        let entity = Entity {
            affinity,
            weight: nice.weight(),
            is_kernel_thread,
            cpu: cpu as u32,
            vruntime: 0,
            deadline: 0,
            lag: 0,
            touched_at: 0,
            left: 0,
            in_kernel: false,
            for_io: false,
            time: CpuTime::default(),
        };
        if let Some(task) = self.free.pop() {
            self.entities[task as usize] = entity;
            return task;
        }
        self.entities.push(entity);
        self.sleeps.push() as u32
    }

    /// Removes a waiting task and frees its number.
    pub(crate) fn remove(&mut self, task: u32) {
        self.cancel_wake(task);
        self.free.push(task);
    }

    pub(crate) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// The CPU that a task runs on, waits for or ran on last.
    pub(crate) fn cpu_of(&self, task: u32) -> usize {
        self.entities[task as usize].cpu as usize
    }

    #[inline]
    pub(crate) fn affinity_of(&self, task: u32) -> Affinity {
        self.entities[task as usize].affinity
    }

    /// Adds the time of a removed task to another's.
    pub(crate) fn bequeath(&mut self, gone: u32, heir: u32) {
        let time = std::mem::take(&mut self.entities[gone as usize].time);
        self.entities[heir as usize].time.add(time);
    }

    /// Number of context switches.
    pub(crate) fn switches(&self) -> u64 {
        self.switches
    }

    /// A task's CPU time up to `now`.
    pub(crate) fn time_of(&self, task: u32, now: u64) -> CpuTime {
        let e = &self.entities[task as usize];
        let mut time = e.time;
        time.add(self.computed(e.cpu as usize, task, now));
        time
    }

    /// A CPU's time up to `now`.
    pub(crate) fn use_of(&self, cpu: usize, now: u64) -> CpuUse {
        let mut c = self.cpus[cpu].clone();
        c.settle_idle(now);
        let mut time = c.time;
        time.add(self.computed(cpu, c.current, now));
        let CpuTime { user_ns, system_ns } = time;
        let busy = user_ns + system_ns + c.iowait_ns;
        let idle_ns = now.max(c.clock).saturating_sub(busy);
        CpuUse { user_ns, system_ns, iowait_ns: c.iowait_ns, idle_ns }
    }

    /// Computing time up to `now` that the CPU's clock does not include yet.
    fn computed(&self, cpu: usize, task: u32, now: u64) -> CpuTime {
        let c = &self.cpus[cpu];
        if c.current != task || task == NONE || self.entities[task as usize].left == 0 {
            return CpuTime::default();
        }
        self.entities[task as usize].computes(now.min(c.turn_at).saturating_sub(c.clock))
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<Turn> {
        let key = self.turns.least();
        (key != NO_KEY).then(|| {
            let task = key as u32;
            Turn { task, cpu: self.entities[task as usize].cpu as usize, start: at_of(key) }
        })
    }

    /// The latest end of this turn: another CPU's turn, the end of the slice, or a sleeper's wake.
    /// At least a nanosecond, so that there is progress.
    #[inline]
    pub(crate) fn horizon(&self, turn: Turn) -> u64 {
        let c = &self.cpus[turn.cpu];
        let elsewhere = at_of(self.turns.least_besides(c.place.unwrap_or_default() as usize));
        elsewhere.max(turn.start + 1).min(c.slice_end()).min(self.next_event())
    }

    /// The time of the next wake of a sleeper or of balancing.
    #[inline]
    pub(crate) fn next_event(&self) -> u64 {
        at_of(self.sleeps.least()).min(self.balance_at)
    }

    /// Handles the next such event. Returns the task if a sleep is over.
    #[inline]
    pub(crate) fn handle_event(&mut self) -> Option<u32> {
        let at = self.next_event();
        let first = self.sleeps.least();
        if at_of(first) == at {
            self.cancel_wake(first as u32);
            return Some(first as u32);
        }
        self.balance(at);
        None
    }

    /// Makes a waiting task wake at this time.
    #[inline]
    pub(crate) fn wake_at(&mut self, task: u32, at: u64) {
        // The greatest time stands for none.
        self.sleeps.set(task as usize, key(at.min(u64::MAX - 1), task));
    }

    /// Cancels a waiting task's wake.
    #[inline]
    pub(crate) fn cancel_wake(&mut self, task: u32) {
        self.sleeps.set(task as usize, NO_KEY);
    }

    /// Begins a turn; whether the task has something to do. If its slice ends while it computes,
    /// another task takes the CPU instead.
    #[inline]
    pub(crate) fn begin(&mut self, turn: Turn) -> bool {
        if self.entities[turn.task as usize].left == 0 {
            return true;
        }
        self.settle(turn.cpu, turn.start);
        if self.entities[turn.task as usize].left == 0 {
            return true;
        }
        self.yield_to_waiting(turn.cpu);
        self.publish(turn.cpu);
        false
    }

    /// Ends a turn of which `user_ns` were user time.
    #[inline]
    pub(crate) fn end(&mut self, turn: Turn, now: u64, user_ns: u64, then: Then) {
        let e = &mut self.entities[turn.task as usize];
        let c = &mut self.cpus[turn.cpu];
        debug_assert!(c.clock == turn.start && now >= turn.start, "a CPU's time goes on");
        let time = CpuTime { user_ns, system_ns: now - turn.start - user_ns };
        e.time.add(time);
        c.time.add(time);
        c.clock = now;
        match then {
            Then::GoOn | Then::Compute(_) | Then::Spin(_) => {
                if let Then::Compute(ns) | Then::Spin(ns) = then {
                    (e.left, e.in_kernel) = (ns, matches!(then, Then::Spin(_)));
                }
                if c.is_slice_over() {
                    self.yield_to_waiting(turn.cpu);
                }
            }
            Then::Wait | Then::WaitForIo => self.leave(turn, then == Then::WaitForIo),
        }
        self.publish(turn.cpu);
    }

    /// Ends a task's computing: it has its turn as soon as it has a CPU.
    pub(crate) fn interrupt(&mut self, task: u32, at: u64) {
        let e = &self.entities[task as usize];
        if e.left == 0 {
            return;
        }
        let cpu = e.cpu as usize;
        let runs = self.cpus[cpu].current == task;
        if runs {
            self.settle(cpu, at);
        }
        self.entities[task as usize].left = 0;
        if runs {
            self.publish(cpu);
        }
    }

    /// Takes one of the preempted tasks that have not been told.
    #[inline]
    pub(crate) fn take_preempted(&mut self) -> Option<u32> {
        self.preempted.pop()
    }

    /// The running task waits; the next takes its place, from another CPU if necessary.
    #[inline]
    fn leave(&mut self, turn: Turn, for_io: bool) {
        let e = &mut self.entities[turn.task as usize];
        let c = &mut self.cpus[turn.cpu];
        e.vruntime = c.vruntime();
        if let Some(rule) = self.fair.by_deadline() {
            e.lag = rule.lag(c.average(), e.vruntime, e.weight);
        }
        e.for_io = for_io;
        c.renew_reference(&self.fair);
        c.io_waiters += u32::from(for_io);
        c.load -= u64::from(e.weight);
        c.current = NONE;
        if !c.queue.is_empty() {
            return self.pick(turn.cpu);
        }
        c.idle_from = c.clock;
        self.idle += 1;
        let at = c.clock;
        if self.movable > 0 {
            self.take_over(turn.cpu, at);
        }
    }

    /// Requeues the running task and picks the next, perhaps the same one.
    fn yield_to_waiting(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let task = c.current;
        let e = &mut self.entities[task as usize];
        e.vruntime = c.vruntime();
        e.deadline = c.deadline_from(e.vruntime, &self.fair);
        c.queue(Waiting { vruntime: e.vruntime, deadline: e.deadline, task, weight: e.weight });
        c.current = NONE;
        self.count_movable(task, 1);
        self.pick(cpu);
        if self.cpus[cpu].current != task {
            self.preempted.push(task);
            self.plan_balance(self.cpus[cpu].clock);
        }
    }

    /// Picks the waiting task that goes next.
    #[inline]
    fn pick(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let Some(next) = c.take_next(&self.fair) else { return };
        if next.task != c.last {
            c.clock += self.switch_ns;
            c.time.system_ns += self.switch_ns;
        }
        self.count_movable(next.task, -1);
        self.start(cpu, next.task);
    }

    /// Runs a task that is not queued.
    #[inline]
    fn start(&mut self, cpu: usize, task: u32) {
        let e = &mut self.entities[task as usize];
        let c = &mut self.cpus[cpu];
        debug_assert_eq!((c.current, e.cpu as usize), (NONE, cpu));
        self.switches += u64::from(c.last != task);
        e.touched_at = c.clock;
        c.current = task;
        c.last = task;
        c.picked = Picked { vruntime: e.vruntime, weight: e.weight, at: c.clock };
        (c.deadline, c.is_kernel_thread, c.gives_way_at) = (e.deadline, e.is_kernel_thread, None);
        c.renew_slice(&self.fair);
        c.renew_reference(&self.fair);
    }

    /// Accounts the running task's computing up to `at`.
    #[inline]
    fn settle(&mut self, cpu: usize, at: u64) {
        let c = &mut self.cpus[cpu];
        if c.current == NONE {
            return;
        }
        let e = &mut self.entities[c.current as usize];
        let ran = at.min(c.turn_at).saturating_sub(c.clock).min(e.left);
        let time = e.computes(ran);
        e.left -= ran;
        e.time.add(time);
        c.time.add(time);
        c.clock += ran;
    }

    /// Updates the CPU's next turn.
    #[inline]
    fn publish(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let key = if c.current == NONE {
            NO_KEY
        } else {
            let left = self.entities[c.current as usize].left;
            c.turn_at = if left == 0 { c.clock } else { (c.clock + left).min(c.slice_end()).max(c.clock) };
            key(c.turn_at, c.current)
        };
        let turns = &mut self.turns;
        let place = *c.place.get_or_insert_with(|| turns.push() as u32);
        turns.set(place as usize, key);
    }

    #[inline]
    fn count_movable(&mut self, task: u32, by: i32) {
        if !matches!(self.entities[task as usize].affinity, Affinity::Cpu(_)) {
            self.movable = self.movable.wrapping_add_signed(by);
        }
    }
}
