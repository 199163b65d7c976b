//! Placement of woken and new tasks (`select_task_rq_fair`).
//!
//! A woken task goes back to its CPU if that is idle, for its warm cache; else to an idle core,
//! else to an idle CPU of the same node, else to its own CPU all the same. A new task goes to the
//! node with the most idle CPUs, of equals the parent's, and there to an idle core, an idle CPU, or
//! the CPU with the least load.

use super::cpu::{NONE, Waiting};
use super::tick::next_tick;
use super::{Affinity, Schedule};

impl Schedule {
    /// A waiting task becomes runnable at `at`.
    #[inline]
    pub(crate) fn wake(&mut self, task: u32, at: u64) {
        let e = &self.entities[task as usize];
        let from = e.cpu as usize;
        let to = if self.is_idle(from) { from } else { self.idle_near(e.affinity, from).unwrap_or(from) };
        if e.for_io {
            self.entities[task as usize].for_io = false;
            self.cpus[from].settle_idle(at);
            self.cpus[from].io_waiters -= 1;
        }
        self.transfer(task, to);
        let reference = self.reference_at(to, at);
        let e = &mut self.entities[task as usize];
        match self.fair.by_deadline() {
            None => e.vruntime = self.fair.of_woken(e.vruntime, reference),
            Some(rule) => {
                e.vruntime = rule.of_woken(e.vruntime, e.lag, reference, e.weight, self.cpus[to].load);
                e.deadline = rule.after(e.vruntime, e.weight);
            }
        }
        self.arrive(task, at, false);
    }

    /// A new task becomes runnable at `at`. Its CPU so far is its parent's.
    pub(crate) fn begin_new(&mut self, task: u32, at: u64) {
        let e = &self.entities[task as usize];
        let (parent, weight) = (e.cpu as usize, e.weight);
        let to = self.for_new(e.affinity, parent);
        self.entities[task as usize].cpu = to as u32;
        let reference = self.reference_at(to, at);
        let c = &self.cpus[to];
        let e = &mut self.entities[task as usize];
        match self.fair.by_deadline() {
            None => {
                let slice = self.fair.slice(c.runnable() as u64 + 1, weight, c.load + u64::from(weight));
                e.vruntime = self.fair.of_new(slice, weight, reference);
            }
            Some(rule) => (e.vruntime, e.deadline) = (reference, rule.of_new(reference, weight)),
        }
        self.arrive(task, at, true);
    }

    /// Runs or queues a runnable task on its CPU.
    #[inline]
    pub(super) fn arrive(&mut self, task: u32, at: u64, is_new: bool) {
        let e = &mut self.entities[task as usize];
        let cpu = e.cpu as usize;
        let c = &mut self.cpus[cpu];
        c.load += u64::from(e.weight);
        e.touched_at = at;
        if c.current == NONE {
            c.settle_idle(at);
            c.clock = c.clock.max(at);
            self.idle -= 1;
            self.start(cpu, task);
        } else {
            let woken = Waiting { vruntime: e.vruntime, deadline: e.deadline, task, weight: e.weight };
            let preempts = match self.fair.by_deadline() {
                None => {
                    c.queue(woken);
                    self.fair.preempts(woken.vruntime, woken.weight, c.vruntime())
                }
                Some(rule) => {
                    let may_preempt = !(is_new && rule.new_tasks_wait);
                    let preempts = c.queue_woken(woken, may_preempt, &self.fair);
                    let spared = preempts && rule.spares_kernel_threads && c.is_kernel_thread;
                    if spared {
                        c.gives_way_at.get_or_insert(next_tick(c.clock));
                    }
                    preempts && !spared
                }
            };
            c.renew_slice(&self.fair);
            let makes_way = c.is_slice_over() || preempts;
            self.count_movable(task, 1);
            if makes_way {
                self.yield_to_waiting(cpu);
            }
            self.plan_balance(at);
        }
        self.publish(cpu);
    }

    /// Moves a task that neither runs nor is queued to another CPU, and keeps its lead or lag in
    /// virtual runtime.
    #[inline]
    pub(super) fn transfer(&mut self, task: u32, to: usize) {
        let e = &mut self.entities[task as usize];
        let from = e.cpu as usize;
        if from != to {
            let ahead = self.cpus[to].reference - self.cpus[from].reference;
            (e.vruntime, e.deadline) = (e.vruntime + ahead, e.deadline + ahead);
            e.cpu = to as u32;
        }
    }

    /// The virtual runtime that a task is placed by that arrives on a CPU at `at`.
    #[inline]
    fn reference_at(&mut self, cpu: usize, at: u64) -> i64 {
        self.settle(cpu, at);
        self.cpus[cpu].renew_reference(&self.fair);
        self.cpus[cpu].reference
    }

    #[inline]
    pub(super) fn is_idle(&self, cpu: usize) -> bool {
        self.cpus[cpu].current == NONE
    }

    fn is_core_idle(&self, cpu: usize) -> bool {
        self.topology.core(cpu).all(|thread| self.is_idle(thread))
    }

    /// An idle CPU of the same node for a task that may go there; preferably of an idle core.
    fn idle_near(&self, affinity: Affinity, cpu: usize) -> Option<usize> {
        if self.idle == 0 || matches!(affinity, Affinity::Cpu(_)) {
            return None;
        }
        let idle = || self.topology.around(cpu).filter(|cpu| self.is_idle(*cpu));
        idle().find(|cpu| self.is_core_idle(*cpu)).or_else(|| idle().next())
    }

    /// The CPU for a new task whose parent is on `parent`.
    fn for_new(&self, affinity: Affinity, parent: usize) -> usize {
        if let Affinity::Cpu(only) = affinity {
            return only;
        }
        let allowed = |cpu: &usize| self.topology.allows(affinity, *cpu);
        let idle = |cpus: &[usize]| cpus.iter().filter(|cpu| allowed(cpu) && self.is_idle(**cpu)).count();
        let load = |cpus: &[usize]| cpus.iter().map(|cpu| self.cpus[*cpu].load).sum::<u64>() / cpus.len() as u64;
        let key = |cpus: &[usize]| (std::cmp::Reverse(idle(cpus)), load(cpus), !cpus.contains(&parent));
        let groups = self.topology.groups().iter().map(|group| group.cpus());
        let group = groups.filter(|cpus| allowed(&cpus[0])).min_by_key(|cpus| key(cpus));
        let cpus = group.into_iter().flatten().copied();
        cpus.min_by_key(|cpu| (!self.is_core_idle(*cpu), self.cpus[*cpu].load)).unwrap_or(parent)
    }
}
