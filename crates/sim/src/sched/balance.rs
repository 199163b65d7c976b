//! Load balancing: an idle CPU pulls a waiting task from another CPU and, at intervals, so does one
//! with less load than others (`newidle_balance`, `load_balance`).
//!
//! A CPU looks for tasks when it falls idle and at every tick while it is idle: first on the CPUs
//! of its own node, then on the others. A busy CPU compares itself with the busiest CPU of its node
//! every 16 ms times the number of CPUs in the node, one CPU after the other; nodes are compared
//! every 16 ms times the number of CPUs in the machine. The busiest must exceed the other by a
//! margin. A task is moved if it is no more than half of the imbalance or, when the last attempt
//! failed for that reason, twice as much: so of three tasks on two CPUs, each in turn has a CPU to
//! itself. Of several tasks the one that has waited longest moves; of several equally busy CPUs,
//! the next in the round gives one away.
//!
//! A running task is never moved. Two threads of a core count as fast as two cores, so nothing
//! moves only because the sibling thread is busy.

use super::Schedule;
use super::cpu::NONE;
use super::tick::next_tick;
use std::cmp::Reverse;

/// Interval between two comparisons of a busy CPU, for each CPU compared (`busy_factor` of 16, in
/// ms).
const BUSY_NS: u64 = 16_000_000;
/// Load of another CPU in the node, in percent of its own, above which a CPU pulls
/// (`imbalance_pct`).
const TOO_MUCH_IN_NODE: u64 = 117;
/// The same for nodes.
const TOO_MUCH_OF_NODES: u64 = 125;

impl Schedule {
    /// Schedules balancing for the next tick, if a waiting task could be moved.
    pub(super) fn plan_balance(&mut self, at: u64) {
        if self.movable == 0 {
            self.balance_at = u64::MAX;
        } else if self.balance_at == u64::MAX {
            self.balance_at = next_tick(at);
        }
    }

    /// Balances the load at a tick.
    pub(super) fn balance(&mut self, at: u64) {
        for cpu in 0..self.cpus.len() {
            if self.idle > 0 && self.movable > 0 && self.is_idle(cpu) {
                self.take_over(cpu, at);
                self.publish(cpu);
            }
        }
        for group in 0..self.topology.groups().len() {
            if at.is_multiple_of(BUSY_NS) {
                let cpus = self.topology.groups()[group].cpus().len() as u64;
                self.even_out(group, (at / BUSY_NS % cpus) as usize, at);
            }
        }
        if self.topology.groups().len() > 1 && at.is_multiple_of(BUSY_NS * self.cpus.len() as u64) {
            self.even_out_nodes(at);
        }
        self.balance_at = u64::MAX;
        self.plan_balance(at);
    }

    /// An idle CPU pulls the task that has waited longest on the busiest CPU, of its node or else
    /// of any.
    pub(super) fn take_over(&mut self, cpu: usize, at: u64) {
        if let Some((from, task)) = self.to_take_over(cpu) {
            self.migrate(task, from, cpu, at);
        }
    }

    fn to_take_over(&self, cpu: usize) -> Option<(usize, u32)> {
        let all = self.cpus.len();
        let mut near = self.topology.around(cpu);
        let mut far =
            (cpu + 1..cpu + all).map(|other| other % all).filter(|other| !self.topology.are_near(cpu, *other));
        let from_one_of = |others: &mut dyn Iterator<Item = usize>| {
            let waiting = others.filter_map(|other| Some((other, self.longest_waiting(other, cpu, u64::MAX)?)));
            waiting.min_by_key(|(other, _)| Reverse(self.cpus[*other].load))
        };
        from_one_of(&mut near).or_else(|| from_one_of(&mut far))
    }

    /// A CPU compares itself with the busiest of its node.
    fn even_out(&mut self, group: usize, place: usize, at: u64) {
        let cpus = self.topology.groups()[group].cpus();
        let (cpu, n) = (cpus[place], cpus.len() as u64);
        let load = |cpu: &usize| self.cpus[*cpu].load;
        let average = cpus.iter().map(load).sum::<u64>() / n;
        let waiting = self.topology.around(cpu).filter(|other| *other != cpu && !self.cpus[*other].queue.is_empty());
        let Some(busiest) = waiting.min_by_key(|other| Reverse(load(other))) else { return };
        let (most, own) = (load(&busiest), load(&cpu));
        if own >= average || most <= average || 100 * most <= TOO_MUCH_IN_NODE * own {
            return;
        }
        let failed = std::mem::replace(&mut self.cpus[cpu].failed, false);
        let too_much = (most - average).min(average - own) << u32::from(failed);
        match self.longest_waiting(busiest, cpu, too_much) {
            Some(task) => self.migrate(task, busiest, cpu, at),
            None => self.cpus[cpu].failed = true,
        }
    }

    /// Moves a task from the busiest node to the least busy CPU of the least busy node.
    fn even_out_nodes(&mut self, at: u64) {
        let groups = self.topology.groups();
        let load = |g: &usize| {
            let cpus = groups[*g].cpus();
            cpus.iter().map(|cpu| self.cpus[*cpu].load).sum::<u64>() / cpus.len() as u64
        };
        let most = (0..groups.len()).max_by_key(|g| (load(g), Reverse(*g)));
        let (Some(most), Some(least)) = (most, (0..groups.len()).min_by_key(load)) else { return };
        if 100 * load(&most) <= TOO_MUCH_OF_NODES * load(&least) {
            return;
        }
        let too_much = (load(&most) - load(&least)) / 2 * groups[most].cpus().len() as u64;
        let by_load = |cpu: &&usize| (self.cpus[**cpu].load, **cpu);
        let Some(to) = groups[least].cpus().iter().min_by_key(by_load).copied() else { return };
        let from = groups[most].cpus().iter().filter_map(|from| {
            let task = self.longest_waiting(*from, to, too_much)?;
            Some((*from, task))
        });
        if let Some((from, task)) = from.min_by_key(|(from, _)| Reverse(self.cpus[*from].load)) {
            self.migrate(task, from, to, at);
        }
    }

    /// The task that has waited longest on `from`, may run on `to`, and is no heavier than
    /// `at_most`.
    fn longest_waiting(&self, from: usize, to: usize, at_most: u64) -> Option<u32> {
        let may = self.cpus[from].queue.iter().filter(|waits| {
            let affinity = self.entities[waits.task as usize].affinity;
            u64::from(waits.weight) <= at_most && self.topology.allows(affinity, to)
        });
        may.map(|waits| waits.task).min_by_key(|task| (self.entities[*task as usize].touched_at, *task))
    }

    /// Moves a waiting task to another CPU. Where it stands among the others is known only once the
    /// time of both running tasks is accounted.
    fn migrate(&mut self, task: u32, from: usize, to: usize, at: u64) {
        self.settle(from, at);
        let c = &mut self.cpus[from];
        c.renew_reference(&self.fair);
        let place = c.queue.iter().position(|waits| waits.task == task).expect("it waits there");
        let waits = c.queue.remove(place).expect("it has this place");
        c.load -= u64::from(waits.weight);
        c.renew_slice(&self.fair);
        // It may have begun to wait a step later than the other CPU looks for it.
        let at = at.max(c.clock);
        self.count_movable(task, -1);
        // Without a competitor, the task that computes there goes on to its end.
        self.publish(from);
        self.settle(to, at);
        self.cpus[to].renew_reference(&self.fair);
        let e = &mut self.entities[task as usize];
        (e.vruntime, e.deadline) = (waits.vruntime, waits.deadline);
        self.transfer(task, to);
        debug_assert!(self.cpus[to].current != NONE || self.cpus[to].queue.is_empty());
        self.arrive(task, at, false);
    }
}
