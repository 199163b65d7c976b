//! Rules of the scheduler, for hosts that share CPUs between tasks.

use super::rule::mechanism;

mechanism! {
    /// Tasks share a CPU.
    pub struct SchedulerRules for "scheduler" {
        /// A CPU goes to the task with the earliest deadline of those that have had less than their
        /// share (EEVDF); before, to the one that has had least, with credit for sleep (CFS). Since
        /// 6.6.
        #[rule(section = "11.6")]
        pub earliest_deadline_first: bool,
        /// A timer ends a slice at its deadline (`HRTICK`); before, the next tick does. By 7.2, on
        /// architectures that defer timers.
        #[rule(section = "11.6")]
        pub timers_end_slices: bool,
        /// A kernel thread that a woken task should preempt keeps the CPU to the end of its slice
        /// or to the next tick (`PREEMPT_LAZY`); before, it gives way at once. In Debian's 7.2.
        #[rule(section = "11.6")]
        pub spares_kernel_threads: bool,
        /// A new task waits for the running one's slice; before, it preempts as a woken one does.
        /// By 7.2.
        #[rule(section = "11.6")]
        pub new_tasks_wait: bool,
        /// A task keeps a lead or lag of up to a slice and a tick while it sleeps; before, of two
        /// slices, or a tick if that is more. By 7.2.
        #[rule(section = "11.6")]
        pub lag_up_to_slice_and_tick: bool,
    }
}
