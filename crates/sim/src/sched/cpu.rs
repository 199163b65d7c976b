//! A CPU: the task it runs, those that wait for it, and what its time went into.

use super::fair::{Fair, virtual_time};
use super::time::CpuTime;
use std::collections::VecDeque;

/// Stands for no task.
pub(crate) const NONE: u32 = u32::MAX;

/// A task that waits for its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) vruntime: i64,
    pub(crate) task: u32,
    pub(crate) weight: u32,
}

/// A CPU.
#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    /// Its place in the row of all CPUs' next turns, once it has had a task.
    pub(crate) place: Option<u32>,
    /// The task that runs. While there is none, none waits.
    pub(crate) current: u32,
    /// The task that ran last.
    pub(crate) last: u32,
    /// How far the CPU has come.
    pub(crate) clock: u64,
    /// When the next turn begins: now, or when the task that runs has computed.
    pub(crate) turn_at: u64,
    /// The running task's virtual runtime, weight and time when it was picked.
    pub(crate) picked: (i64, u32, u64),
    /// How long it may run if others wait.
    pub(crate) slice: u64,
    /// Who waits, by virtual runtime; those with the same in the order they came. A task comes near one of the ends,
    /// mostly: one that has used its slice near the last, one that wakes near the first.
    pub(crate) queue: VecDeque<Waiting>,
    /// The weights of all, the one that runs included.
    pub(crate) load: u64,
    /// The least virtual runtime of all so far. It never goes back.
    pub(crate) least: i64,
    /// What its time went into; idle time is the rest.
    pub(crate) time: CpuTime,
    /// Since when it has been idle, while it is.
    pub(crate) idle_from: u64,
    /// How many tasks that ran here last wait for I/O.
    pub(crate) io_waiters: u32,
    /// Time without a task of its own while one waited for I/O.
    pub(crate) iowait_ns: u64,
    /// Whether the last attempt to take a task over from a busier CPU found none light enough.
    pub(crate) failed: bool,
}

impl Cpu {
    /// A CPU that has been idle from the start.
    pub(crate) fn new() -> Cpu {
        Cpu {
            place: None,
            current: NONE,
            last: NONE,
            clock: 0,
            turn_at: 0,
            picked: (0, 0, 0),
            slice: 0,
            queue: VecDeque::new(),
            load: 0,
            least: 0,
            time: CpuTime::default(),
            idle_from: 0,
            io_waiters: 0,
            iowait_ns: 0,
            failed: false,
        }
    }

    /// How many tasks run or wait.
    pub(crate) fn runnable(&self) -> usize {
        self.queue.len() + usize::from(self.current != NONE)
    }

    /// How long the task that runs has been running.
    fn ran(&self) -> u64 {
        self.clock - self.picked.2
    }

    /// The virtual runtime of the task that runs.
    pub(crate) fn vruntime(&self) -> i64 {
        self.picked.0 + virtual_time(self.ran(), self.picked.1)
    }

    /// When the slice of the task that runs is over; never, as long as no other waits.
    pub(crate) fn slice_end(&self) -> u64 {
        if self.queue.is_empty() { u64::MAX } else { self.picked.2 + self.slice }
    }

    /// Whether the task that runs has to make way for another.
    pub(crate) fn is_slice_over(&self) -> bool {
        self.clock >= self.slice_end()
    }

    /// The slice of the task that runs, after the number of tasks has changed.
    pub(crate) fn renew_slice(&mut self, fair: &Fair) {
        if !self.queue.is_empty() {
            self.slice = fair.slice(self.runnable() as u64, self.picked.1, self.load);
        }
    }

    /// Moves the least virtual runtime on.
    pub(crate) fn renew_least(&mut self) {
        let waits = self.queue.front().map(|w| w.vruntime);
        let runs = (self.current != NONE).then(|| self.vruntime());
        let least = match (waits, runs) {
            (Some(waits), Some(runs)) => waits.min(runs),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        self.least = self.least.max(least);
    }

    /// A task waits from now on.
    pub(crate) fn queue(&mut self, waiting: Waiting) {
        let place = self.queue.partition_point(|w| w.vruntime <= waiting.vruntime);
        self.queue.insert(place, waiting);
    }

    /// The time without a task from `idle_from` to `at` was spent.
    pub(crate) fn settle_idle(&mut self, at: u64) {
        if self.current == NONE && at > self.idle_from {
            if self.io_waiters > 0 {
                self.iowait_ns += at - self.idle_from;
            }
            self.idle_from = at;
        }
    }
}
