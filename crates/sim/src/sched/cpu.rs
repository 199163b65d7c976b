//! A CPU: its running task, the tasks that wait for it, and its time.

use super::fair::Fair;
use super::nice::virtual_time;
use super::picked::Picked;
use super::time::CpuTime;
use std::collections::VecDeque;

pub(crate) const NONE: u32 = u32::MAX;

/// A task that waits for its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) vruntime: i64,
    /// Its virtual deadline, where deadlines decide.
    pub(crate) deadline: i64,
    pub(crate) task: u32,
    pub(crate) weight: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    /// Its place among all CPUs' next turns, once it has had a task.
    pub(crate) place: Option<u32>,
    /// The running task. While there is none, none waits.
    pub(crate) current: u32,
    /// The task that ran last.
    pub(crate) last: u32,
    /// The CPU's own time.
    pub(crate) clock: u64,
    /// Start of the next turn: now, or when the running task has computed.
    pub(crate) turn_at: u64,
    /// The running task when it was picked.
    pub(crate) picked: Picked,
    /// Its virtual deadline, where deadlines decide.
    pub(crate) deadline: i64,
    /// Whether it is a kernel thread.
    pub(crate) is_kernel_thread: bool,
    /// The tick at which it gives way to a woken task that it did not have to make way for at once.
    pub(crate) gives_way_at: Option<u64>,
    /// The running task's slice if others wait.
    pub(crate) slice: u64,
    /// Waiting tasks by virtual runtime, then in order of arrival. Most join near one of the ends:
    /// a task that has used its slice near the last, a woken one near the first.
    pub(crate) queue: VecDeque<Waiting>,
    /// Sum of all weights, the running task's included.
    pub(crate) load: u64,
    /// The virtual runtime that arriving tasks are placed by: the least so far, which never
    /// decreases, or the average where deadlines decide.
    pub(crate) reference: i64,
    /// User and system time; idle time is the rest.
    pub(crate) time: CpuTime,
    /// The start of the idle time, while it is idle.
    pub(crate) idle_from: u64,
    /// Tasks that ran here last and wait for I/O.
    pub(crate) io_waiters: u32,
    /// Time without a task while one waited for I/O.
    pub(crate) iowait_ns: u64,
    /// Whether the last attempt to pull a task from a busier CPU found none light enough.
    pub(crate) failed: bool,
}

impl Cpu {
    /// A CPU idle from the start.
    pub(crate) fn new() -> Cpu {
        Cpu {
            place: None,
            current: NONE,
            last: NONE,
            clock: 0,
            turn_at: 0,
            picked: Picked { vruntime: 0, weight: 0, at: 0 },
            deadline: 0,
            is_kernel_thread: false,
            gives_way_at: None,
            slice: 0,
            queue: VecDeque::new(),
            load: 0,
            reference: 0,
            time: CpuTime::default(),
            idle_from: 0,
            io_waiters: 0,
            iowait_ns: 0,
            failed: false,
        }
    }

    /// Number of running and waiting tasks.
    #[inline]
    pub(crate) fn runnable(&self) -> usize {
        self.queue.len() + usize::from(self.current != NONE)
    }

    /// Time that the running task has been running.
    #[inline]
    fn ran(&self) -> u64 {
        self.clock - self.picked.at
    }

    /// Virtual runtime of the running task.
    #[inline]
    pub(crate) fn vruntime(&self) -> i64 {
        self.picked.vruntime + virtual_time(self.ran(), self.picked.weight)
    }

    /// End of the running task's slice; never while no other waits.
    #[inline]
    pub(crate) fn slice_end(&self) -> u64 {
        if self.queue.is_empty() {
            return u64::MAX;
        }
        (self.picked.at + self.slice).min(self.gives_way_at.unwrap_or(u64::MAX))
    }

    /// Whether the running task must yield to another.
    #[inline]
    pub(crate) fn is_slice_over(&self) -> bool {
        self.clock >= self.slice_end()
    }

    /// Recomputes the running task's slice after the number of tasks has changed.
    #[inline]
    pub(crate) fn renew_slice(&mut self, fair: &Fair) {
        if self.queue.is_empty() {
            return;
        }
        self.slice = match fair.by_deadline() {
            None => fair.slice(self.runnable() as u64, self.picked.weight, self.load),
            Some(rule) => rule.slice_end(&self.picked, self.deadline) - self.picked.at,
        };
    }

    /// Brings it up to the running task's time.
    #[inline]
    pub(crate) fn renew_reference(&mut self, fair: &Fair) {
        if fair.by_deadline().is_some() {
            self.reference = self.average();
            return;
        }
        let waits = self.queue.front().map(|w| w.vruntime);
        let runs = (self.current != NONE).then(|| self.vruntime());
        let least = match (waits, runs) {
            (Some(waits), Some(runs)) => waits.min(runs),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        self.reference = self.reference.max(least);
    }

    /// The running task's deadline, or the next one if it has passed it at this virtual runtime.
    pub(crate) fn deadline_from(&self, vruntime: i64, fair: &Fair) -> i64 {
        match fair.by_deadline() {
            Some(rule) if vruntime >= self.deadline => rule.after(vruntime, self.picked.weight),
            _ => self.deadline,
        }
    }

    /// The average virtual runtime of its tasks, by their weights: where a task is that has had
    /// exactly its share. Without any it stays.
    pub(crate) fn average(&self) -> i64 {
        let runs = (self.current != NONE).then(|| (self.vruntime(), self.picked.weight));
        let all = self.queue.iter().map(|w| (w.vruntime, w.weight)).chain(runs);
        let (sum, weights) = all.fold((0i128, 0i128), |(sum, weights), (vruntime, weight)| {
            let weight = i128::from(weight);
            (sum + i128::from(vruntime - self.reference) * weight, weights + weight)
        });
        self.reference + if weights == 0 { 0 } else { sum.div_euclid(weights) as i64 }
    }

    /// Takes the task that goes next: the first, or where deadlines decide the one with the
    /// earliest among those that have had no more than their share.
    pub(crate) fn take_next(&mut self, fair: &Fair) -> Option<Waiting> {
        if fair.by_deadline().is_none() {
            return self.queue.pop_front();
        }
        let next = self.earliest(self.average())?;
        self.queue.remove(next)
    }

    /// Queues a woken task where deadlines decide; whether it takes the CPU.
    pub(crate) fn queue_woken(&mut self, woken: Waiting, may_preempt: bool, fair: &Fair) -> bool {
        let vruntime = self.vruntime();
        // One that has used its slice while it was alone begins another.
        let is_over = vruntime >= self.deadline && !self.queue.is_empty();
        self.deadline = self.deadline_from(vruntime, fair);
        self.queue(woken);
        let average = self.average();
        let goes_next = self.earliest(average).is_some_and(|place| self.queue[place].task == woken.task);
        is_over || may_preempt && vruntime > average && goes_next
    }

    /// The place in the queue of the task with the earliest deadline among those up to this
    /// virtual runtime, or of the first task.
    pub(crate) fn earliest(&self, average: i64) -> Option<usize> {
        let eligible = self.queue.partition_point(|w| w.vruntime <= average).max(1).min(self.queue.len());
        (0..eligible).min_by_key(|i| self.queue[*i].deadline)
    }

    /// Queues a task by its virtual runtime.
    #[inline]
    pub(crate) fn queue(&mut self, waiting: Waiting) {
        let place = self.queue.partition_point(|w| w.vruntime <= waiting.vruntime);
        self.queue.insert(place, waiting);
    }

    /// Accounts the idle time from `idle_from` to `at`.
    #[inline]
    pub(crate) fn settle_idle(&mut self, at: u64) {
        if self.current == NONE && at > self.idle_from {
            if self.io_waiters > 0 {
                self.iowait_ns += at - self.idle_from;
            }
            self.idle_from = at;
        }
    }
}
