//! A simulated machine: virtual time, CPUs, processes and kernel threads over the engine.
//!
//! Nothing here depends on the host: the same machine file, profile and programs give the same run to the
//! nanosecond. [`Machine`] runs [`Program`](kontig_program::Program)s (user processes and kernel drivers, as streams
//! of system calls) beside the machine's kswapd and kcompactd; the engine counts the work each does, and one cost
//! model ([`CostModel`]) turns the counts into time.
//!
//! A file is named after what it simulates: `syscall/` has a file for each system call, `process/` address spaces and
//! faults, `thread/` the kernel threads. `executor` gives turns in the order `schedule` keeps.

pub mod cost;
pub mod machine_file;

mod context;
mod error;
mod executor;
mod kernel;
mod machine;
mod min_tree;
mod owner;
mod process;
mod schedule;
mod syscall;
mod task;
mod thread;
mod translate;
mod wait;

pub use cost::CostModel;
pub use error::SimError;
pub use machine::{Machine, Stop};
pub use machine_file::MachineFile;
pub use owner::UserPage;
pub use process::address_space::BYTES_PER_PAGE;
pub use task::{CpuTime, TaskId};
pub use thread::{KernelThread, KernelThreadKind};
