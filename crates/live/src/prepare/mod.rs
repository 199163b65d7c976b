//! Making blocks available: the least harmful step first, no longer than allowed, and no further
//! than needed.
//!
//! A [`Plan`] says what would be written where, and acts on nothing. Carried out ([`execute`]), it
//! compacts node by node and stops a node's compaction as soon as the blocks are there, when the
//! time is over, or when it is stopped. Clean cache is dropped only with permission, and only if
//! compaction alone does not reach the needs. Every setting that is changed is in a journal first
//! ([`journal`]), and is restored: at the end, on an interrupt, and after a kill when it is run the
//! next time. A [`Receipt`] has the state before, the steps, their cost and the result.

pub mod execute;
pub mod execution;
pub mod got;
pub mod hurry;
pub mod journal;
mod plan;
mod pool;
pub mod preparer;
mod receipt;
pub mod release;
pub mod restorer;
mod step_runner;

pub use plan::{Allowed, Plan, PlanStep, compacting};
pub use receipt::{Cost, Done, Ended, Predicted, Receipt, SCHEMA, Supplied};

/// Makes the kernel kill this process when the thread that started it ends, however that happens.
pub fn end_with_parent() {
    // Where the kernel refuses, the process goes on to its end.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// Asks a process to end (SIGTERM).
pub fn terminate(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // It may have ended by itself.
    let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
}

/// Writes all dirty pages to disk, and waits for it.
pub fn sync() {
    rustix::fs::sync();
}
