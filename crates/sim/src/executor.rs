//! The executor: gives turns, settles what they took, and delivers wakes.
//!
//! Every task has a clock. The task whose turn begins first ([`Schedule`]) runs until it passes the time at which the
//! next turn begins, has to wait, or has woken another. So the order of all engine operations follows from virtual
//! time alone.

use crate::context::Context;
use crate::cost::ns;
use crate::error::SimError;
use crate::machine::{Machine, STAT_INTERVAL_NS, Stop};
use crate::schedule::Turn;
use crate::task::{State, TaskId};
use crate::wait::Waits;
use kontig_mm::{CpuId, Step, Wait};

impl Machine {
    /// Runs until virtual time `until`, or until the program `done` is done, whichever comes first.
    ///
    /// # Errors
    /// If a program asks for something the machine cannot give. The program is then done.
    pub fn run(&mut self, until: u64, done: Option<TaskId>) -> Result<Stop, SimError> {
        // Time never goes back, whatever is asked for, and however far a task lags behind.
        let entered = self.now;
        let until = until.max(entered);
        self.deliver_wakes(self.now);
        loop {
            if let Some(id) = done
                && self.tasks[id.index()].state == State::Done
            {
                self.now = self.now.max(entered);
                return Ok(Stop::ProgramDone);
            }
            let Some(turn) = self.schedule.next().filter(|turn| turn.start < until) else {
                self.now = until;
                return Ok(Stop::Time);
            };
            self.now = turn.start;
            self.turns += 1;
            if turn.start >= self.next_fold {
                self.fold_counters(turn.start);
            }
            self.turn(turn, until)?;
        }
    }

    /// Folds every CPU's part of the counters in, as the kernel does once a second.
    #[cold]
    fn fold_counters(&mut self, now: u64) {
        self.next_fold = (now / STAT_INTERVAL_NS + 1) * STAT_INTERVAL_NS;
        (0..self.schedule.cpus()).for_each(|cpu| self.kernel.mem.vmstat_update(CpuId::new(cpu)));
    }

    fn turn(&mut self, turn: Turn, until: u64) -> Result<(), SimError> {
        let Turn { task: number, start } = turn;
        let next = self.schedule.next_of_others(number).unwrap_or(u64::MAX).max(start + 1);
        // Folding concerns every task: no turn goes past it.
        let horizon = next.min(self.next_fold);
        let cpu = CpuId::new(self.schedule.cpu_of(number));
        let node = self.kernel.mem.node_of_cpu(cpu);
        let mut c = Context { cpu, node, now: start, horizon, until, user_ns: 0 };
        let task = &mut self.tasks[number as usize];
        let timed_out = task.state == State::Sleeping;
        let step = match task.body.turn(&mut self.kernel, &mut c, timed_out) {
            Ok(step) => step,
            Err(e) => {
                task.state = State::Done;
                self.schedule.want_none(number);
                return Err(e);
            }
        };
        task.time.user_ns += c.user_ns;
        task.time.system_ns += c.now - start - c.user_ns;
        let again;
        (task.state, again) = match step {
            Step::Working => (State::Runnable, Some(c.now)),
            Step::Wait(Wait::Time(ns) | Wait::Congestion { at_most_ns: ns }) => {
                (State::Sleeping, Some(c.now.saturating_add(ns)))
            }
            Step::Wait(_) => (State::Waiting, None),
            Step::Done(()) => (State::Done, None),
        };
        self.schedule.end(number, c.now, again);
        self.now = c.now;
        self.deliver_wakes(c.now);
        if let Step::Wait(wait) = step {
            self.settle_wait(TaskId(number), wait, c.now);
        }
        Ok(())
    }

    /// A task has begun to wait: what that means for it, if it waits for a daemon, and for others, if it is one.
    #[inline]
    fn settle_wait(&mut self, id: TaskId, wait: Wait, now: u64) {
        if let Some(daemon) = Waits::ended_by(wait) {
            self.waits.wait_for(daemon, id);
            let rests = self.waits.task_of(daemon);
            if self.tasks[rests.index()].state.is_rest() {
                self.release(daemon, now);
            }
        }
        if let Some(daemon) = self.tasks[id.index()].body.daemon() {
            self.release(daemon, now);
        }
    }

    /// Wakes the tasks that wait until the daemon rests.
    fn release(&mut self, daemon: kontig_mm::Daemon, now: u64) {
        let at = now + ns(self.kernel.costs.wakeup);
        for id in self.waits.rests(daemon) {
            self.tasks[id.index()].state = State::Runnable;
            self.schedule.want(id.0, at);
        }
    }

    /// Starts the daemons that were woken at `now`.
    #[inline]
    fn deliver_wakes(&mut self, now: u64) {
        if !self.kernel.mem.has_wakes() {
            return;
        }
        let at = now + ns(self.kernel.costs.wakeup);
        for daemon in self.kernel.mem.take_wakes() {
            let id = self.waits.task_of(daemon);
            let task = &mut self.tasks[id.index()];
            if task.state.is_rest() {
                task.state = State::Runnable;
                self.schedule.want(id.0, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostModel;
    use crate::kernel::Kernel;
    use crate::task::Body;
    use kontig_mm::{Daemon, MachineSpec, Memory, NodeId, ZoneSpec, ZoneType};
    use kontig_profiles::linux;
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::mpsc::{Receiver, channel};

    const NODE: NodeId = NodeId::new(0);

    /// Four CPUs, one zone of 32 MiB, and the costs of a machine file.
    fn machine() -> Machine {
        let zone = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: 8192, present: 8192, managed: 8192 };
        let spec = MachineSpec { cpus: 4, zones: vec![zone], thp: false, lru: false };
        let file: toml::Table = include_str!("../../../machines/xeon-1t.toml").parse().expect("a machine file");
        let costs = file["costs"].clone().try_into().expect("it has costs");
        Machine::new(Memory::new(&spec, linux("6.1")).expect("a valid machine"), CostModel::new(&costs))
    }

    /// A task that takes these steps, each of so many nanoseconds; when each began.
    fn steps(m: &mut Machine, cpu: usize, steps: Vec<(u64, Step<()>)>) -> (TaskId, Receiver<u64>) {
        let (tell, times) = channel();
        let mut steps = steps.into_iter();
        let body = Body::Steps(
            None,
            Rc::new(RefCell::new(move |_: &mut Kernel, c: &mut Context| {
                tell.send(c.now).expect("the test listens");
                let (takes, step) = steps.next().unwrap_or((0, Step::Done(())));
                c.now += takes;
                step
            })),
        );
        let id = m.add(body, cpu, State::Runnable);
        m.schedule.want(id.0, m.now);
        (id, times)
    }

    #[test]
    fn a_task_that_waits_for_a_time_goes_on_when_it_has_come() {
        let mut m = machine();
        let (id, times) = steps(&mut m, 0, vec![(10, Step::Wait(Wait::Time(90))), (5, Step::Working)]);
        assert_eq!(m.run(1_000, Some(id)), Ok(Stop::ProgramDone));
        assert_eq!(times.try_iter().collect::<Vec<_>>(), [0, 100, 105]);
    }

    /// Every wait that a daemon ends, with the daemon.
    const FOR_DAEMONS: [(Wait, Daemon); 3] = [
        (Wait::Daemon(Daemon::Kcompactd(NODE)), Daemon::Kcompactd(NODE)),
        (Wait::Daemon(Daemon::Kswapd(NODE)), Daemon::Kswapd(NODE)),
        (Wait::Throttled { node: NODE, at_most_ns: None }, Daemon::Kswapd(NODE)),
    ];

    #[test]
    fn a_task_that_waits_for_a_daemon_goes_on_when_it_rests() {
        for (wait, daemon) in FOR_DAEMONS {
            let mut m = machine();
            m.run(1_000_000, None).unwrap();
            // The daemon is awake and has two turns of 300 ns.
            let mut turns = vec![Step::Wait(Wait::Wakeup), Step::Working];
            let steps_of_daemon = Rc::new(RefCell::new(move |_: &mut Kernel, c: &mut Context| {
                c.now += 300;
                turns.pop().expect("nobody wakes it again")
            }));
            let thread = m.waits.task_of(daemon);
            let task = &mut m.tasks[thread.index()];
            (task.body, task.state) = (Body::Steps(Some(daemon), steps_of_daemon), State::Runnable);
            m.schedule.want(thread.0, m.now);
            let (id, times) = steps(&mut m, 0, vec![(10, Step::Wait(wait))]);
            assert_eq!(m.run(2_000_000, Some(id)), Ok(Stop::ProgramDone), "{wait:?}");
            let wakeup = ns(m.kernel.costs.wakeup);
            assert_eq!(times.try_iter().collect::<Vec<_>>(), [1_000_000, 1_000_600 + wakeup], "{wait:?}");
        }
    }

    #[test]
    fn a_task_does_not_wait_for_a_daemon_that_rests_already() {
        for (wait, _) in FOR_DAEMONS {
            let mut m = machine();
            m.run(1_000_000, None).unwrap();
            let (id, times) = steps(&mut m, 0, vec![(10, Step::Wait(wait))]);
            assert_eq!(m.run(2_000_000, Some(id)), Ok(Stop::ProgramDone), "{wait:?}");
            let wakeup = ns(m.kernel.costs.wakeup);
            assert_eq!(times.try_iter().collect::<Vec<_>>(), [1_000_000, 1_000_010 + wakeup], "{wait:?}");
        }
    }
}
