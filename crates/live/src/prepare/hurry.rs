//! Priority for a preparation: allocations by others while pages are moved undo it.
//!
//! A page that compaction frees is the first that its CPU hands out again, and one new page spoils
//! a block. So a preparation goes before everybody else: on Linux 6.18 with seven tasks for each
//! CPU, a block took 380 moved pages then, and 590 otherwise. Others wait for the CPU meanwhile.

use rustix::process::{getpriority_process, setpriority_process, setsid};

/// The highest priority there is without being a real-time task, for which the kernel's own workers
/// would have to wait.
const HIGHEST: i32 = -20;

/// This thread and its children go first as long as this value lives.
pub struct Hurry {
    /// The priority before; `None` where it was not changed.
    was: Option<i32>,
}

/// Where a session's priority against other sessions is set.
const GROUP: &str = "/proc/self/autogroup";

/// Puts this process before all sessions until its end. A kernel with `sched_autogroup_enabled`
/// gives each session the same share of the CPUs, and a process's own priority counts within its
/// session only. So it begins a session of its own, which ends with it: there is nothing to
/// restore.
pub fn before_all_sessions() {
    // The session of another process is left alone. A kernel without such groups has no file.
    let _ = setsid().is_ok().then(|| std::fs::write(GROUP, HIGHEST.to_string()));
}

impl Hurry {
    /// Goes first from now on, if that is permitted; one within another changes nothing.
    pub fn up() -> Hurry {
        let was = getpriority_process(None).ok();
        Hurry { was: was.filter(|_| setpriority_process(None, HIGHEST).is_ok()) }
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        // A process that may raise a priority may lower it.
        let _ = self.was.map(|was| setpriority_process(None, was));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_is_as_it_was_afterwards() {
        let before = getpriority_process(None);
        let hurry = Hurry::up();
        assert!(hurry.was.is_none() || getpriority_process(None) == Ok(HIGHEST));
        drop(hurry);
        assert_eq!(getpriority_process(None), before);
    }
}
