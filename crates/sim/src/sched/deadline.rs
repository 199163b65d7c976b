//! Earliest eligible virtual deadline first (EEVDF).
//!
//! A task that has had no more than its share of its CPU is eligible. Of the eligible ones that
//! with the earliest deadline goes next: a deadline is a slice after the virtual runtime at which
//! the last one had passed. The running task keeps the CPU until its deadline, or the next tick
//! after it, unless a woken task finds it no longer eligible. A task that sleeps keeps what it
//! lacks of its share, but not for a sleep on an idle CPU; what it has had too much it works off by
//! waiting, or by sleeping until the others have caught up. Source: `kernel/sched/fair.c` of 7.2;
//! kernel-behaviour §11.6.

use super::nice::virtual_time;
use super::picked::Picked;
use super::tick::TICK_NS;
use kontig_mm::rules::SchedulerRules;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ByDeadline {
    /// The time that a task asks for, ns.
    slice: u64,
    /// Whether a timer ends slices, not the next tick.
    by_timer: bool,
    /// Whether a woken task leaves a kernel thread the CPU up to the next tick.
    pub(crate) spares_kernel_threads: bool,
    /// Whether a new task waits for the running one's slice.
    pub(crate) new_tasks_wait: bool,
    /// The most time that a task which sleeps is ahead of its share or behind it, ns.
    most_lag: u64,
}

impl ByDeadline {
    /// The kernel's default slice, which grows with the number of CPUs by this factor
    /// (`sysctl_sched_base_slice`).
    pub(crate) fn new(factor: u64, rules: &SchedulerRules) -> ByDeadline {
        let SchedulerRules { timers_end_slices: by_timer, spares_kernel_threads, new_tasks_wait, .. } = *rules;
        let slice = 700_000 * factor;
        let most_lag = if rules.lag_up_to_slice_and_tick { slice + TICK_NS } else { (2 * slice).max(TICK_NS) };
        ByDeadline { slice, by_timer, spares_kernel_threads, new_tasks_wait, most_lag }
    }

    /// When a task has used its slice.
    pub(crate) fn slice_end(&self, picked: &Picked, deadline: i64) -> u64 {
        let Picked { vruntime, weight, at } = *picked;
        let left = u64::try_from(deadline - vruntime).unwrap_or(0);
        let end = (at + (left * u64::from(weight)).div_ceil(1024)).max(at + 1);
        if self.by_timer { end } else { end.next_multiple_of(TICK_NS) }
    }

    /// The deadline after a virtual runtime.
    pub(crate) fn after(&self, vruntime: i64, weight: u32) -> i64 {
        vruntime + virtual_time(self.slice, weight)
    }

    /// The deadline of a new task, which asks for half a slice first.
    pub(crate) fn of_new(&self, vruntime: i64, weight: u32) -> i64 {
        vruntime + virtual_time(self.slice / 2, weight)
    }

    /// How far a task that goes to sleep is behind its share of a CPU with this average; negative
    /// if it is ahead.
    pub(crate) fn lag(&self, average: i64, vruntime: i64, weight: u32) -> i64 {
        let most = virtual_time(self.most_lag, weight);
        (average - vruntime).clamp(-most, most)
    }

    /// The virtual runtime of a woken task with this lag, which had `own` when it went to sleep, on
    /// a CPU with tasks of the weight `all` and this average.
    pub(crate) fn of_woken(&self, own: i64, lag: i64, average: i64, weight: u32, all: u64) -> i64 {
        match lag {
            _ if all == 0 => average,
            ..0 => own.max(average),
            // Its own weight moves the average towards it.
            _ => average - (i128::from(lag) * i128::from(all + u64::from(weight)) / i128::from(all)) as i64,
        }
    }
}
