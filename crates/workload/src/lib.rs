//! Workloads: what runs on a machine, and what is measured of it.
//!
//! A [`Benchmark`] is one kind of work with its parameters: it makes programs, streams of
//! operations that know nothing of the machine they run on, and reads from them what they measured.
//! There is a file for each. A [`Scenario`] says which run when and where: phases one after
//! another, in each phase tasks side by side, in each task a copy of a benchmark's program on each
//! of its CPUs. A [`Workload`] is a scenario as files hold it.
//!
//! Source: the published documents; what they leave open is a parameter, so that an experiment
//! file says what was assumed.

pub mod accesses;
pub mod churn;
pub mod compact;
pub mod daemon;
pub mod fio;
pub mod forking_store;
pub mod found;
pub mod fragmenter;
pub mod group;
pub mod guests;
pub mod heap;
pub mod highalloc;
pub mod huge_faults;
pub mod hugealloc;
pub mod kbuild;
pub mod latencies;
pub mod mmap_latency;
pub mod occupancy;
pub mod player;
pub mod processes;
pub mod scenario;
pub mod steps;
pub mod thp_bursts;
pub mod thpscale;
pub mod trace;
pub mod unmovable;
pub mod unpack;
pub mod usemem;
pub mod watch;
pub mod young_generation;

mod benchmark;
mod kind;
mod limits;
mod room;
mod shape;
mod size;
mod trees;
mod workload;
mod wrong;

pub use benchmark::{Benchmark, Measured, Start};
pub use group::{Group, GroupEntry};
pub use kind::Kind;
pub use limits::{LONGEST_PAUSE_US, within};
pub use room::Room;
pub use scenario::{End, Phase, Scenario, Started, Task};
pub use shape::Shape;
pub use workload::{MemoryEntry, Parameter, PhaseEntry, TaskEntry, Workload, WorkloadFile, bytes, shown, unit};
pub use wrong::Wrong;
