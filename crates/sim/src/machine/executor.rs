//! The executor: gives turns, charges them, and delivers wakes.
//!
//! Every CPU has a clock. The task on the CPU whose clock is furthest behind ([`Turn`]) runs until
//! it passes the time of the next turn or event, must wait, or has woken another task. So virtual
//! time alone decides the order of all engine operations.

use crate::base::context::{Context, TaskPolicy};
use crate::base::cost::ns;
use crate::base::error::SimError;
use crate::base::id::TaskId;
use crate::base::timer::Event;
use crate::base::traced::{Caller, Comm};
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::machine::{GROUP_STAT_INTERVAL_NS, Machine, STAT_INTERVAL_NS, Stop};
use crate::sched::{Schedule, Then, Turn};
use crate::task::process::Process;
use crate::task::{Body, Task, TaskState};
use kontig_mm::{CpuId, Gfp, GroupId, Step};

impl Machine {
    /// Runs until virtual time `until`, or until the program `done` is done, whichever comes first.
    ///
    /// # Errors
    /// If a program asks for something the machine cannot give. The program is then done.
    pub fn run(&mut self, until: u64, done: Option<TaskId>) -> Result<Stop, SimError> {
        // Time never goes back, even if `until` is in the past or a task lags behind.
        let entered = self.now;
        let until = until.max(entered);
        self.deliver_wakes(self.now);
        loop {
            if let Some(id) = done
                && self.tasks[id.index()].state == TaskState::Done
            {
                self.now = self.now.max(entered);
                return Ok(Stop::ProgramDone);
            }
            let turn = self.schedule.next();
            let due = self.kernel.timers.next_at().min(self.schedule.next_event());
            if due < until && turn.is_none_or(|turn| due <= turn.start) {
                self.handle_event(due);
                continue;
            }
            let Some(turn) = turn.filter(|turn| turn.start < until) else {
                self.now = until;
                return Ok(Stop::Time);
            };
            self.now = turn.start;
            self.turns += 1;
            if turn.start >= self.next_fold {
                self.fold_counters(turn.start);
            }
            if self.schedule.begin(turn) {
                self.turn(turn, until)?;
            }
            self.tell_preempted();
        }
    }

    /// Handles an event or the end of a sleep that is due.
    fn handle_event(&mut self, due: u64) {
        self.now = due;
        if self.kernel.timers.next_at() == due {
            match self.kernel.timers.pop() {
                Some((_, Event::Woken(task))) => self.schedule.wake(task.0, due),
                Some((_, Event::IoDone(device))) => self.kernel.io_done(device, due),
                None => {}
            }
        } else if let Some(task) = self.schedule.handle_event() {
            self.kernel.queues.leave(TaskId(task));
            self.tasks[task as usize].state = TaskState::TimedOut;
            self.schedule.wake(task, due);
        }
        self.deliver_wakes(due);
        self.tell_preempted();
    }

    /// Tells preempted tasks that they are off their CPUs.
    #[inline]
    fn tell_preempted(&mut self) {
        while let Some(task) = self.schedule.take_preempted() {
            self.tasks[task as usize].body.leave_cpu(&mut self.kernel);
        }
    }

    /// Folds all CPUs' counters, as the kernel does once a second; those of memory control groups,
    /// every other second.
    #[cold]
    fn fold_counters(&mut self, now: u64) {
        self.next_fold = (now / STAT_INTERVAL_NS + 1) * STAT_INTERVAL_NS;
        (0..self.schedule.cpus()).for_each(|cpu| self.kernel.mem.vmstat_update(CpuId::new(cpu)));
        if self.kernel.mem.groups().are_kept() && now >= self.next_flush {
            self.next_flush = (now / GROUP_STAT_INTERVAL_NS + 1) * GROUP_STAT_INTERVAL_NS;
            self.kernel.mem.flush_group_stats();
        }
    }

    /// Tells MGLRU's walks of page tables that a CPU now runs a thread of a process.
    #[cold]
    fn note_switch(&mut self, cpu: CpuId, id: TaskId) {
        self.last_on.resize(self.schedule.cpus(), None);
        if self.last_on[cpu.index()].replace(id) != Some(id)
            && let Body::Process(process) = &self.tasks[id.index()].body
        {
            self.kernel.mem.lru_gen_use_mm(process.id());
        }
    }

    fn turn(&mut self, turn: Turn, until: u64) -> Result<(), SimError> {
        // Folding concerns every task, so no turn goes past it.
        let horizon = self.schedule.horizon(turn).min(self.next_fold).min(self.kernel.timers.next_at());
        let cpu = CpuId::new(turn.cpu);
        let node = self.kernel.mem.node_of_cpu(cpu);
        let id = TaskId(turn.task);
        self.kernel.pages.cpu = cpu;
        if self.kernel.mem.lru().has_generations() {
            self.note_switch(cpu, id);
        }
        let task = &mut self.tasks[id.index()];
        if task.plug.is_started() {
            std::mem::swap(&mut task.plug, &mut self.kernel.pages.devices.plug);
        }
        let timed_out = task.state == TaskState::TimedOut;
        let policy = TaskPolicy::default();
        let mut c = Context {
            cpu,
            node,
            now: turn.start,
            horizon,
            until,
            timed_out,
            policy,
            process: None,
            group: GroupId::ROOT,
            over_high: 0,
            user_ns: 0,
            asks_as: Gfp::NONE,
        };
        let result = task.body.turn(&mut self.kernel, &mut c);
        let step = *result.as_ref().unwrap_or(&Step::Done(()));
        let then;
        (task.state, then) = match step {
            Step::Working => (TaskState::Runnable, Then::GoOn),
            Step::Wait(Wait::Compute(ns)) => (TaskState::Runnable, Then::Compute(ns)),
            Step::Wait(Wait::Spin(ns)) => (TaskState::Runnable, Then::Spin(ns)),
            Step::Wait(Wait::Wakeup | Wait::Time(_)) => (TaskState::Resting, Then::Wait),
            Step::Wait(Wait::Queue(_) | Wait::QueueAtMost(..)) => (TaskState::Queued, Then::Wait),
            Step::Wait(Wait::Io(_)) => (TaskState::Queued, Then::WaitForIo),
            Step::Done(()) => (TaskState::Done, Then::Wait),
        };
        if self.kernel.has_unsigned_events() {
            self.kernel.sign_events(cpu, &mut task.caller);
        }
        if self.kernel.pages.devices.plug.is_started() || self.kernel.pages.devices.must_submit() {
            self.leave_plug(id, c.now);
        }
        self.schedule.end(turn, c.now, c.user_ns, then);
        self.now = c.now;
        self.deliver_births(id);
        if step == Step::Done(()) {
            self.retire(id);
        }
        self.deliver_wakes(c.now);
        if let Step::Wait(wait) = step {
            self.settle_wait(id, wait, c.now);
        }
        result?;
        self.kernel.failed.take().map_or(Ok(()), Err)
    }

    /// The task's turn is over. If it sleeps now, it submits its I/O.
    #[cold]
    fn leave_plug(&mut self, id: TaskId, now: u64) {
        let task = &mut self.tasks[id.index()];
        let plug = &mut self.kernel.pages.devices.plug;
        match task.state {
            TaskState::Runnable | TaskState::TimedOut => {}
            TaskState::Resting | TaskState::Queued => plug.flush(),
            TaskState::Done => plug.end(),
        }
        self.kernel.submit(now);
        std::mem::swap(&mut task.plug, &mut self.kernel.pages.devices.plug);
    }

    /// Starts tasks for the processes and threads that a task has made.
    #[inline]
    fn deliver_births(&mut self, parent: TaskId) {
        if self.kernel.family.births.is_empty() {
            return;
        }
        let Body::Process(forks) = &self.tasks[parent.index()].body else { return };
        let root = forks.root().unwrap_or(parent);
        for birth in std::mem::take(&mut self.kernel.family.births) {
            let (process, thread, name) = (birth.process, birth.thread, birth.program.name());
            let body = Body::Process(Box::new(Process::born(birth, self.now, root)));
            let id = self.start(body, self.schedule.affinity_of(parent.0), self.schedule.cpu_of(parent.0));
            let Caller { comm, tgid, .. } = self.tasks[parent.index()].caller;
            let caller = &mut self.tasks[id.index()].caller;
            // A child made to run a program is not followed through its exec.
            caller.comm = if thread == 0 { name.map_or(comm, Comm::new) } else { comm };
            if thread != 0 {
                caller.tgid = tgid;
            }
            self.kernel.family.threads(process).set_task(thread, id);
        }
    }

    /// Removes a finished task that another task made, so that its number can be reused. Its time
    /// goes to its process and to the task that the host started.
    fn retire(&mut self, id: TaskId) {
        let Body::Process(process) = &self.tasks[id.index()].body else { return };
        let Some(root) = process.root() else { return };
        self.kernel.family.add_time(process.id(), self.schedule.time_of(id.0, self.now));
        self.schedule.bequeath(id.0, root.0);
        self.schedule.remove(id.0);
    }

    /// Puts a task that begins to wait on its queue or to sleep; a sleeping daemon opens its gate.
    #[inline]
    fn settle_wait(&mut self, id: TaskId, wait: Wait, now: u64) {
        if let Wait::Time(ns) | Wait::QueueAtMost(_, ns) = wait {
            self.schedule.wake_at(id.0, now.saturating_add(ns));
        }
        match wait {
            Wait::Queue(queue) | Wait::QueueAtMost(queue, _) | Wait::Io(queue) => self.kernel.queues.join(queue, id),
            Wait::Wakeup | Wait::Time(_) => {
                if let Some(daemon) = self.tasks[id.index()].body.daemon() {
                    self.kernel.queues.open(self.kernel.daemons.rest_of(daemon));
                }
            }
            Wait::Compute(_) | Wait::Spin(_) => return,
        }
        self.deliver_wakes(now);
    }

    /// Wakes the tasks and daemons that were woken at `now`.
    #[inline]
    fn deliver_wakes(&mut self, now: u64) {
        if self.kernel.mem.has_wakes() || self.kernel.queues.has_woken() || !self.kernel.family.kills.is_empty() {
            self.deliver(now);
        }
    }

    fn deliver(&mut self, now: u64) {
        let Kernel { mem, queues, timers, daemons, costs, family, .. } = &mut self.kernel;
        let at = now + ns(costs.wakeup);
        let schedule = &mut self.schedule;
        let mut rouse = |task: &mut Task, id: TaskId, schedule: &mut Schedule| {
            task.state = TaskState::Runnable;
            schedule.cancel_wake(id.0);
            timers.at(at, Event::Woken(id));
        };
        for daemon in mem.take_wakes() {
            let id = daemons.task_of(daemon);
            let task = &mut self.tasks[id.index()];
            if task.state == TaskState::Resting {
                queues.close(daemons.rest_of(daemon));
                rouse(task, id, schedule);
            }
        }
        for id in family.kills.drain(..) {
            let task = &mut self.tasks[id.index()];
            if matches!(task.state, TaskState::Resting | TaskState::Queued) && task.body.may_end() {
                queues.leave(id);
                rouse(task, id, schedule);
            } else {
                schedule.interrupt(id.0, now);
            }
        }
        for id in queues.take_woken() {
            // A task that was also killed is already awake.
            let task = &mut self.tasks[id.index()];
            if task.state == TaskState::Queued {
                rouse(task, id, schedule);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cost::CostModel;
    use crate::base::queue::QueueId;
    use crate::sched::{Affinity, Nice};
    use kontig_mm::{Daemon, MachineSpec, Memory, NodeId, ZoneSpec, ZoneType};
    use kontig_profiles::linux;
    use kontig_program::{Batch, Op, Outcome, Placement, Program};
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::mpsc::{Receiver, channel};

    const NODE: NodeId = NodeId::new(0);

    /// Four CPUs, one zone of 32 MiB, and the costs of a machine file.
    fn machine() -> Machine {
        let zone = ZoneSpec { node: 0, kind: ZoneType::Normal, start: 0, end: 8192, present: 8192, managed: 8192 };
        let spec = MachineSpec { cpus: 4, zones: vec![zone], thp: false, lru: false };
        let file: toml::Table = include_str!("../../../../machines/xeon-1t.toml").parse().expect("a machine file");
        let costs = file["costs"].clone().try_into().expect("it has costs");
        Machine::new(Memory::new(&spec, linux("6.1")).expect("a valid machine"), CostModel::new(&costs))
    }

    /// A task that takes these steps, each of this many nanoseconds; sends the start of each.
    fn steps(m: &mut Machine, cpu: usize, steps: Vec<(u64, Step<(), Wait>)>) -> (TaskId, Receiver<u64>) {
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
        (m.start(body, Affinity::Cpu(cpu), cpu), times)
    }

    #[test]
    fn a_task_that_waits_for_a_time_goes_on_when_it_has_come() {
        let mut m = machine();
        let (id, times) = steps(&mut m, 0, vec![(10, Step::Wait(Wait::Time(90))), (5, Step::Working)]);
        assert_eq!(m.run(1_000, Some(id)), Ok(Stop::ProgramDone));
        assert_eq!(times.try_iter().collect::<Vec<_>>(), [0, 100, 105]);
    }

    /// The engine's waits that a daemon ends, with the daemon.
    const FOR_DAEMONS: [(kontig_mm::Wait, Daemon); 3] = [
        (kontig_mm::Wait::Daemon(Daemon::Kcompactd(NODE)), Daemon::Kcompactd(NODE)),
        (kontig_mm::Wait::Daemon(Daemon::Kswapd(NODE)), Daemon::Kswapd(NODE)),
        (kontig_mm::Wait::Throttled { node: NODE, at_most_ns: None }, Daemon::Kswapd(NODE)),
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
            let thread = m.kernel.daemons.task_of(daemon);
            let task = &mut m.tasks[thread.index()];
            (task.body, task.state) = (Body::Steps(Some(daemon), steps_of_daemon), TaskState::Runnable);
            m.kernel.queues.close(m.kernel.daemons.rest_of(daemon));
            m.schedule.wake(thread.0, m.now);
            let wait = m.kernel.wait_for(wait);
            let (id, times) = steps(&mut m, 0, vec![(10, Step::Wait(wait))]);
            assert_eq!(m.run(2_000_000, Some(id)), Ok(Stop::ProgramDone), "{wait:?}");
            let wakeup = ns(m.kernel.costs.wakeup);
            assert_eq!(times.try_iter().collect::<Vec<_>>(), [1_000_000, 1_000_600 + wakeup], "{wait:?}");
        }
    }

    #[test]
    fn tasks_that_wait_for_writes_go_on_once_more_than_a_cluster_for_each_is_written() {
        let mut m = machine();
        let wait = m.kernel.wait_for(kontig_mm::Wait::Written { node: NODE, at_most_ns: 1_000_000 });
        let Wait::QueueAtMost(queue, 1_000_000) = wait else { panic!("{wait:?}") };
        for tasks in 1..3 {
            (0..tasks).for_each(|task| m.kernel.queues.join(queue, TaskId(task)));
            // Pages written before the wait do not count.
            m.kernel.wait_for(kontig_mm::Wait::Written { node: NODE, at_most_ns: 1_000_000 });
            (0..32 * tasks).for_each(|_| m.kernel.daemons.page_written(NODE, &mut m.kernel.queues));
            assert!(!m.kernel.queues.has_woken());
            m.kernel.daemons.page_written(NODE, &mut m.kernel.queues);
            assert_eq!(m.kernel.queues.take_woken().count(), tasks as usize);
            m.kernel.wait_for(kontig_mm::Wait::Written { node: NODE, at_most_ns: 1_000_000 });
        }
    }

    #[test]
    fn a_task_does_not_wait_for_a_daemon_that_rests_already() {
        for (wait, _) in FOR_DAEMONS {
            let mut m = machine();
            m.run(1_000_000, None).unwrap();
            let wait = m.kernel.wait_for(wait);
            let (id, times) = steps(&mut m, 0, vec![(10, Step::Wait(wait))]);
            assert_eq!(m.run(2_000_000, Some(id)), Ok(Stop::ProgramDone), "{wait:?}");
            let wakeup = ns(m.kernel.costs.wakeup);
            assert_eq!(times.try_iter().collect::<Vec<_>>(), [1_000_000, 1_000_010 + wakeup], "{wait:?}");
        }
    }

    /// A task whose first turn, at this time, wakes a queue.
    fn waker(m: &mut Machine, at: u64, wake: fn(&mut Kernel, QueueId), queue: QueueId) {
        let body = Body::Steps(
            None,
            Rc::new(RefCell::new(move |k: &mut Kernel, _: &mut Context| {
                wake(k, queue);
                Step::Done(())
            })),
        );
        let id = m.add(body, Affinity::Cpu(3), Nice::ZERO, 3, TaskState::Resting);
        m.schedule.wake_at(id.0, at);
    }

    #[test]
    fn a_queue_wakes_one_task_or_all_in_the_order_they_began_to_wait() {
        let mut m = machine();
        let queue = m.kernel.queues.add();
        let wakeup = ns(m.kernel.costs.wakeup);
        let waits = [0, 1, 2].map(|cpu| steps(&mut m, cpu, vec![(10, Step::Wait(Wait::Queue(queue)))]));
        waker(&mut m, 1_000, |k, q| assert!(k.queues.wake_one(q).is_some()), queue);
        waker(&mut m, 2_000, |k, q| k.queues.wake_all(q), queue);
        m.run(100_000, None).unwrap();
        for ((_, times), woken) in waits.iter().zip([1_000, 2_000, 2_000]) {
            assert_eq!(times.try_iter().collect::<Vec<_>>(), [0, woken + wakeup]);
        }
        assert!(m.kernel.queues.is_empty(queue));
    }

    #[test]
    fn a_wait_with_a_time_ends_at_whichever_is_first() {
        for (woken, timed_out) in [(1_000, false), (10_000, true)] {
            let mut m = machine();
            let queue = m.kernel.queues.add();
            let (tell, heard) = channel();
            let mut begun = false;
            let body = move |_: &mut Kernel, c: &mut Context| {
                tell.send((c.now, c.timed_out)).expect("the test listens");
                if std::mem::replace(&mut begun, true) {
                    Step::Done(())
                } else {
                    Step::Wait(Wait::QueueAtMost(queue, 5_000))
                }
            };
            m.start(Body::Steps(None, Rc::new(RefCell::new(body))), Affinity::Cpu(0), 0);
            waker(&mut m, woken, |k, q| k.queues.wake_all(q), queue);
            m.run(100_000, None).unwrap();
            let went_on = if timed_out { 5_000 } else { woken + ns(m.kernel.costs.wakeup) };
            assert_eq!(heard.try_iter().collect::<Vec<_>>(), [(0, false), (went_on, timed_out)]);
            assert!(m.kernel.queues.is_empty(queue), "it waits no longer");
        }
    }

    #[test]
    fn an_event_ends_the_turn_of_the_task_that_asked_for_it() {
        let mut m = machine();
        let (sleeper, times) = steps(&mut m, 1, vec![(0, Step::Wait(Wait::Wakeup))]);
        let mut ended = None;
        let body = move |k: &mut Kernel, c: &mut Context| {
            if ended.is_none() {
                k.timers.at(500, Event::Woken(sleeper));
                while !k.must_yield(c) {
                    c.now += 10;
                }
                ended = Some(c.now);
                return Step::Working;
            }
            assert_eq!(ended, Some(500));
            Step::Done(())
        };
        m.start(Body::Steps(None, Rc::new(RefCell::new(body))), Affinity::Cpu(0), 0);
        m.run(100_000, None).unwrap();
        assert_eq!(times.try_iter().collect::<Vec<_>>(), [0, 500]);
    }

    /// Forks a child that ends at once, waits for it, and repeats.
    #[derive(Clone)]
    struct Forker {
        left: u32,
        is_child: bool,
    }

    impl Program for Forker {
        fn next(&mut self, _: &[Outcome], todo: &mut Batch) {
            if self.left > 0 && !self.is_child {
                self.left -= 1;
                todo.push(Op::Fork(Box::new(Forker { left: 0, is_child: true })));
                todo.push(Op::WaitAny);
            }
        }
    }

    #[test]
    fn tasks_that_are_gone_leave_their_place_to_others() {
        let mut m = machine();
        let daemons = m.tasks.len();
        let forkers = [0; 3].map(|_| m.spawn(Box::new(Forker { left: 200, is_child: false }), Placement::Any));
        for id in forkers {
            assert_eq!(m.run(u64::MAX / 2, Some(id)), Ok(Stop::ProgramDone));
        }
        m.run(m.now + 1_000_000, None).unwrap();
        assert!(m.tasks.len() <= daemons + 2 * forkers.len(), "{} tasks for 600 children", m.tasks.len());
    }
}
