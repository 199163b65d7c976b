//! A simulated machine: virtual time, CPUs, processes and kernel threads over the engine.
//!
//! Nothing here depends on the host: the same machine file, profile and programs give the same run to the
//! nanosecond. [`Machine`] runs [`Program`](kontig_program::Program)s (user processes and kernel drivers, as streams of system calls) beside
//! the machine's kswapd and kcompactd; the engine counts the work each does, and one cost model
//! ([`CostModel`]) turns the counts into time.

pub mod address_space;
pub mod cost;
mod executor;
mod kernel;
pub mod machine_file;
mod translate;

pub use cost::CostModel;
pub use executor::{CpuTime, KernelThread, KernelThreadKind, Machine, Stop, TaskId};
pub use kernel::SimError;
pub use machine_file::MachineFile;
