//! The scheduler: which task has the next turn, on which CPU, and when.
//!
//! Every CPU has a clock, a task that runs and tasks that wait (`cpu`), ordered by virtual runtime (`fair`). The next
//! turn is that of the CPU whose clock is furthest behind; ties go to the task with the lower number. A task runs turn
//! after turn until its slice is over and others wait, until one that wakes preempts it, or until it has to wait
//! itself. Where a task that wakes or is new goes, `place` decides; `balance` moves tasks that wait to CPUs with less to
//! do. `topology` knows what CPUs are near each other.
//!
//! A task that computes needs nothing of the kernel: it has its next turn when it is through, or when its slice is
//! over, however many turns other CPUs have meanwhile.
//!
//! A row of the CPUs' next turns and one of the times at which sleepers wake ([`MinTree`]) make a turn cost
//! O(log CPUs with tasks + log tasks), however many tasks there are.

mod balance;
mod cpu;
mod fair;
mod min_tree;
mod place;
#[cfg(test)]
mod tests;
mod time;
mod topology;

pub(crate) use fair::Nice;
pub use time::{CpuTime, CpuUse};
pub(crate) use topology::{Affinity, Topology};

use cpu::{Cpu, NONE, Waiting};
use fair::Fair;
use min_tree::{Key, MinTree};

/// A turn that is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    /// Whose it is.
    pub(crate) task: u32,
    /// Where.
    pub(crate) cpu: usize,
    /// When it begins.
    pub(crate) start: u64,
}

/// What a task does after its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// It wants another.
    GoOn,
    /// It computes for so long, and then wants another.
    Compute(u64),
    /// It waits.
    Wait,
    /// It waits for a device.
    WaitForIo,
}

/// A task as the scheduler knows it.
#[derive(Clone, Debug)]
struct Entity {
    affinity: Affinity,
    weight: u32,
    /// Where it is or was last.
    cpu: u32,
    /// As it was when the task was last picked, or began to wait.
    vruntime: i64,
    /// When it was last picked, or came to its CPU.
    touched_at: u64,
    /// How long it has yet to compute.
    left: u64,
    for_io: bool,
    time: CpuTime,
}

/// All tasks and CPUs.
#[derive(Clone)]
pub(crate) struct Schedule {
    fair: Fair,
    topology: Topology,
    cpus: Vec<Cpu>,
    entities: Vec<Entity>,
    /// Numbers of tasks that are gone.
    free: Vec<u32>,
    /// The next turn of each CPU that has had a task.
    turns: MinTree<u128>,
    /// When each task that sleeps wakes.
    sleeps: MinTree<u64>,
    /// How many waiting tasks could run on another CPU.
    movable: u32,
    /// When tasks are next spread over the CPUs; never, as long as none could be moved.
    balance_at: u64,
    /// Tasks that had to make way and have not been told.
    preempted: Vec<u32>,
    /// What it takes a CPU to go from one task to another, ns.
    switch_ns: u64,
}

/// A turn's place in the order: by time, then by task.
#[inline]
fn key(start: u64, task: u32) -> u128 {
    u128::from(start) << 32 | u128::from(task)
}

impl Schedule {
    /// CPUs that are idle, without tasks.
    pub(crate) fn new(topology: Topology, switch_ns: u64) -> Schedule {
        Schedule {
            fair: Fair::new(topology.cpus()),
            cpus: vec![Cpu::new(); topology.cpus()],
            topology,
            entities: Vec::new(),
            free: Vec::new(),
            turns: MinTree::new(),
            sleeps: MinTree::new(),
            movable: 0,
            balance_at: u64::MAX,
            preempted: Vec::new(),
            switch_ns,
        }
    }

    /// Other cores or nodes; before there are tasks.
    pub(crate) fn set_topology(&mut self, topology: Topology) {
        assert_eq!(self.topology.cpus(), topology.cpus());
        self.topology = topology;
    }

    /// Adds a task that waits; its number, which may be that of one that is gone.
    pub(crate) fn add(&mut self, affinity: Affinity, nice: Nice, cpu: usize) -> u32 {
        let entity = Entity {
            affinity,
            weight: nice.weight(),
            cpu: cpu as u32,
            vruntime: 0,
            touched_at: 0,
            left: 0,
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

    /// A task that waits is gone: its number may be given to another.
    pub(crate) fn remove(&mut self, task: u32) {
        self.wake_not(task);
        self.free.push(task);
    }

    /// How many CPUs there are.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// The CPU a task runs on, waits for or ran on last.
    pub(crate) fn cpu_of(&self, task: u32) -> usize {
        self.entities[task as usize].cpu as usize
    }

    /// Where a task may run.
    pub(crate) fn affinity_of(&self, task: u32) -> Affinity {
        self.entities[task as usize].affinity
    }

    /// The time of a task that is gone is another's.
    pub(crate) fn bequeath(&mut self, gone: u32, heir: u32) {
        let time = std::mem::take(&mut self.entities[gone as usize].time);
        self.entities[heir as usize].time.add(time);
    }

    /// What a task's time on a CPU went into, up to `now`.
    pub(crate) fn time_of(&self, task: u32, now: u64) -> CpuTime {
        let e = &self.entities[task as usize];
        let mut time = e.time;
        time.user_ns += self.computed(e.cpu as usize, task, now);
        time
    }

    /// What a CPU's time went into, up to `now`.
    pub(crate) fn use_of(&self, cpu: usize, now: u64) -> CpuUse {
        let mut c = self.cpus[cpu].clone();
        c.settle_idle(now);
        let user_ns = c.time.user_ns + self.computed(cpu, c.current, now);
        let busy = user_ns + c.time.system_ns + c.iowait_ns;
        let idle_ns = now.max(c.clock).saturating_sub(busy);
        CpuUse { user_ns, system_ns: c.time.system_ns, iowait_ns: c.iowait_ns, idle_ns }
    }

    /// How long the task has computed on a CPU that has not come to it yet.
    fn computed(&self, cpu: usize, task: u32, now: u64) -> u64 {
        let c = &self.cpus[cpu];
        let computes = c.current == task && task != NONE && self.entities[task as usize].left > 0;
        if computes { now.min(c.turn_at).saturating_sub(c.clock) } else { 0 }
    }

    /// The turn that is next.
    #[inline]
    pub(crate) fn next(&self) -> Option<Turn> {
        let key = self.turns.least();
        (key != Key::NONE).then(|| {
            let task = key as u32;
            Turn { task, cpu: self.entities[task as usize].cpu as usize, start: (key >> 32) as u64 }
        })
    }

    /// Until when the turn that is next may last: another CPU's turn, the end of the task's slice, a sleeper's time. At
    /// least for a nanosecond, or nothing would ever be done.
    #[inline]
    pub(crate) fn horizon(&self, turn: Turn) -> u64 {
        let c = &self.cpus[turn.cpu];
        let elsewhere = self.turns.least_besides(c.place.unwrap_or_default() as usize);
        let elsewhere = if elsewhere == Key::NONE { u64::MAX } else { (elsewhere >> 32) as u64 };
        elsewhere.max(turn.start + 1).min(c.slice_end()).min(self.next_event())
    }

    /// When a sleeper wakes or tasks are spread, by themselves.
    #[inline]
    pub(crate) fn next_event(&self) -> u64 {
        self.sleeps.least().min(self.balance_at)
    }

    /// Lets what is next by itself happen at its time; the task whose sleep is over, if it is that.
    pub(crate) fn happen(&mut self) -> Option<u32> {
        let at = self.next_event();
        if self.sleeps.least() == at {
            let task = self.sleeps.first_at_most(at)? as u32;
            self.sleeps.set(task as usize, u64::NONE);
            return Some(task);
        }
        self.balance(at);
        None
    }

    /// A task that waits is to wake at this time.
    #[inline]
    pub(crate) fn wake_at(&mut self, task: u32, at: u64) {
        // The greatest time is kept for tasks that do not sleep.
        self.sleeps.set(task as usize, at.min(u64::NONE - 1));
    }

    /// A task that waits is not to wake by itself.
    #[inline]
    pub(crate) fn wake_not(&mut self, task: u32) {
        self.sleeps.set(task as usize, u64::NONE);
    }

    /// A turn begins. Whether it is the task's own: if its slice is over while it computes, there is nothing for it to
    /// do, and another task has taken its place.
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

    /// A turn is over. Of its time, `user_ns` were the task's own code.
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
            Then::GoOn | Then::Compute(_) => {
                if let Then::Compute(ns) = then {
                    e.left = ns;
                }
                if c.is_slice_over() {
                    self.yield_to_waiting(turn.cpu);
                }
            }
            Then::Wait | Then::WaitForIo => self.leave(turn, then == Then::WaitForIo),
        }
        self.publish(turn.cpu);
    }

    /// A task computes no more, if it does: it has its turn as soon as it has a CPU.
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

    /// A task that had to make way to another, of those that were not asked for yet.
    #[inline]
    pub(crate) fn take_preempted(&mut self) -> Option<u32> {
        self.preempted.pop()
    }

    /// The task that runs waits; the next takes its place, from another CPU if it has to.
    #[inline]
    fn leave(&mut self, turn: Turn, for_io: bool) {
        let e = &mut self.entities[turn.task as usize];
        let c = &mut self.cpus[turn.cpu];
        e.vruntime = c.vruntime();
        e.for_io = for_io;
        c.renew_least();
        c.io_waiters += u32::from(for_io);
        c.load -= u64::from(e.weight);
        c.current = NONE;
        if !c.queue.is_empty() {
            return self.pick(turn.cpu);
        }
        c.idle_from = c.clock;
        let at = c.clock;
        if self.movable > 0 {
            self.take_over(turn.cpu, at);
        }
    }

    /// The task that runs waits for its CPU like all others, and the first of them runs: perhaps it again.
    fn yield_to_waiting(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let task = c.current;
        let e = &mut self.entities[task as usize];
        e.vruntime = c.vruntime();
        c.queue(Waiting { vruntime: e.vruntime, task, weight: e.weight });
        c.current = NONE;
        self.count_movable(task, 1);
        self.pick(cpu);
        if self.cpus[cpu].current != task {
            self.preempted.push(task);
            self.plan_balance(self.cpus[cpu].clock);
        }
    }

    /// The first that waits runs.
    fn pick(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let Some(first) = c.queue.pop_front() else { return };
        if first.task != c.last {
            c.clock += self.switch_ns;
            c.time.system_ns += self.switch_ns;
        }
        self.count_movable(first.task, -1);
        self.start(cpu, first.task);
    }

    /// A task that does not wait runs.
    fn start(&mut self, cpu: usize, task: u32) {
        let e = &mut self.entities[task as usize];
        let c = &mut self.cpus[cpu];
        debug_assert_eq!((c.current, e.cpu as usize), (NONE, cpu));
        e.touched_at = c.clock;
        c.current = task;
        c.last = task;
        c.picked = (e.vruntime, e.weight, c.clock);
        c.renew_slice(&self.fair);
        c.renew_least();
    }

    /// What a task has computed up to `at` is behind it.
    fn settle(&mut self, cpu: usize, at: u64) {
        let c = &mut self.cpus[cpu];
        if c.current == NONE {
            return;
        }
        let e = &mut self.entities[c.current as usize];
        let ran = at.min(c.turn_at).saturating_sub(c.clock).min(e.left);
        e.left -= ran;
        e.time.user_ns += ran;
        c.time.user_ns += ran;
        c.clock += ran;
    }

    /// The CPU's next turn is known again.
    #[inline]
    fn publish(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let key = if c.current == NONE {
            Key::NONE
        } else {
            let left = self.entities[c.current as usize].left;
            c.turn_at = if left == 0 { c.clock } else { (c.clock + left).min(c.slice_end()).max(c.clock) };
            key(c.turn_at, c.current)
        };
        let turns = &mut self.turns;
        let place = *c.place.get_or_insert_with(|| turns.push() as u32);
        turns.set(place as usize, key);
    }

    fn count_movable(&mut self, task: u32, by: i32) {
        if !matches!(self.entities[task as usize].affinity, Affinity::Cpu(_)) {
            self.movable = self.movable.wrapping_add_signed(by);
        }
    }
}
