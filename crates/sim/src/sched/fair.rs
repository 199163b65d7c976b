//! Fairness: virtual runtime, slices, and preemption by woken tasks.
//!
//! A task's virtual runtime is its CPU time divided by its weight. The task with the least on its
//! CPU goes next, and runs for its share of a period in which every task of the CPU has a turn. A
//! woken task has at most half a period of credit, so it is soon served, and preempts the running
//! task if that is far enough ahead. A new task starts one slice behind the others.
//!
//! These are the rules of CFS (`kernel/sched/fair.c` up to 6.5, with its defaults). No tick is
//! simulated: a slice ends exactly, not at the next tick. From 6.6 on turns go by deadlines instead
//! ([`super::deadline`]).

use super::deadline::ByDeadline;
use super::nice::virtual_time;
use kontig_mm::rules::SchedulerRules;

/// The scheduler's parameters on a machine, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fair {
    /// The period in which every task has a turn, while there are few.
    latency: u64,
    /// The shortest slice; it makes the period longer when there are many tasks.
    min_granularity: u64,
    /// How far ahead the running task must be to be preempted.
    wakeup_granularity: u64,
    /// Where deadlines decide instead.
    by_deadline: Option<ByDeadline>,
}

/// Tasks that share a period of [`Fair::latency`].
const FEW: u64 = 8;

impl Fair {
    /// The kernel's defaults for this many CPUs: they grow with the logarithm of up to eight
    /// (`get_update_sysctl_factor`).
    pub(crate) fn new(cpus: usize, rules: &SchedulerRules) -> Fair {
        let factor = 1 + u64::from(cpus.clamp(1, 8).ilog2());
        let by_deadline = rules.earliest_deadline_first.then(|| ByDeadline::new(factor, rules));
        Fair {
            latency: 6_000_000 * factor,
            min_granularity: 750_000 * factor,
            wakeup_granularity: 1_000_000 * factor,
            by_deadline,
        }
    }

    #[inline]
    pub(crate) fn by_deadline(&self) -> Option<&ByDeadline> {
        self.by_deadline.as_ref()
    }

    /// The slice of a task of this weight, among `tasks` with the total weight `all`.
    #[inline]
    pub(crate) fn slice(&self, tasks: u64, weight: u32, all: u64) -> u64 {
        let period = if tasks > FEW { tasks * self.min_granularity } else { self.latency };
        // No slice is below the minimum, as in the kernel since 5.12, which counts whole ticks
        // anyway.
        (period * u64::from(weight) / all.max(1)).max(self.min_granularity)
    }

    /// Whether a woken task preempts the running one.
    #[inline]
    pub(crate) fn preempts(&self, woken: i64, weight: u32, running: i64) -> bool {
        running - woken > virtual_time(self.wakeup_granularity, weight)
    }

    /// The virtual runtime of a woken task, where the CPU's least is `least`.
    #[inline]
    pub(crate) fn of_woken(&self, own: i64, least: i64) -> i64 {
        own.max(least - (self.latency / 2) as i64)
    }

    /// The virtual runtime of a new task with this slice.
    pub(crate) fn of_new(&self, slice: u64, weight: u32, least: i64) -> i64 {
        least + virtual_time(slice, weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_profiles::linux;

    #[test]
    fn a_period_is_shared_by_weight_and_grows_with_many_tasks() {
        let fair = Fair::new(48, &linux("6.1").scheduler);
        assert_eq!(fair.slice(2, 1024, 2048), 12_000_000);
        assert_eq!(fair.slice(8, 1024, 8 * 1024), 3_000_000);
        assert_eq!(fair.slice(80, 1024, 80 * 1024), 3_000_000);
        assert_eq!(Fair::new(1, &linux("6.1").scheduler).slice(2, 1024, 2048), 3_000_000);
        // A light task's slice is short, but not below the minimum.
        assert_eq!(fair.slice(2, 15, 1039), 3_000_000);
    }

    #[test]
    fn a_sleeper_has_half_a_period_of_credit_and_no_more() {
        let fair = Fair::new(8, &linux("6.1").scheduler);
        assert_eq!(fair.of_woken(0, 1_000_000_000), 1_000_000_000 - 12_000_000);
        assert_eq!(fair.of_woken(999_999_000, 1_000_000_000), 999_999_000);
        assert!(fair.preempts(0, 1024, 4_000_001) && !fair.preempts(0, 1024, 4_000_000));
    }
}
