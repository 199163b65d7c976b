//! A simulated machine: virtual time, CPUs, processes and kernel threads over the engine.
//!
//! Nothing here depends on the host: the same machine file, profile and programs give the same run
//! to the nanosecond. [`Machine`] runs [`Program`](kontig_program::Program)s (user processes and
//! kernel drivers, as streams of system calls) beside the machine's kswapd and kcompactd; the
//! engine counts the work each does, and one cost model ([`CostModel`]) turns the counts into time.
//!
//! Folders are floors: each uses only those below it. From the top: `machine` runs tasks; `task`
//! holds what takes turns; `syscall` and `thread` have a file for each system call and kernel
//! thread; `paging` has the steps these share; `kernel` is the state all tasks share, and charges
//! work; `owner` answers the engine's questions about pages; `device` has the disks; `state` is
//! data, and waits for nothing; `sched` chooses the next task; `base` has names, time, costs and
//! queues.
//!
//! # Run a machine
//!
//! A process maps 8 MiB, touches every page and ends; the machine says when.
//!
//! ```
//! use kontig_mm::{MachineSpec, Memory, ZoneSpec, ZoneType};
//! use kontig_program::{Batch, Op, Outcome, Placement, Program, Value};
//! use kontig_sim::{CostModel, Machine, MachineFile, Stop};
//!
//! #[derive(Clone)]
//! struct Toucher {
//!     done: bool,
//! }
//! impl Program for Toucher {
//!     fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
//!         match done.last().map(|o| o.value) {
//!             Some(Value::Region(region)) => todo.push(Op::Touch(region)),
//!             _ if self.done => {}
//!             _ => todo.push(Op::Mmap { pages: 2048 }),
//!         }
//!         self.done = true;
//!     }
//!     fn progress(&self) -> f64 {
//!         if self.done { 1.0 } else { 0.0 }
//!     }
//! }
//!
//! // A machine file has costs and zones; this machine takes the costs of one, and 64 MiB.
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/xeon-1t.toml");
//! let file = std::fs::read_to_string(path)?;
//! let file: MachineFile = toml::from_str(&file)?;
//! let kind = ZoneType::Normal;
//! let zone = ZoneSpec { node: 0, kind, start: 0, end: 16384, present: 16384, managed: 16384 };
//! let spec = MachineSpec { cpus: 2, zones: vec![zone], thp: false, lru: false };
//! let memory = Memory::new(&spec, kontig_profiles::linux("6.1"))?;
//! let mut machine = Machine::new(memory, CostModel::new(&file.costs));
//!
//! let toucher = machine.spawn(Box::new(Toucher { done: false }), Placement::Cpu(0));
//! assert_eq!(machine.run(1_000_000_000, Some(toucher))?, Stop::ProgramDone);
//! assert_eq!(machine.memory().zones().iter().map(|z| z.nr_lru()).sum::<u64>(), 2048);
//! println!("{} ns", machine.now());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod base;
mod device;
mod kernel;
mod machine;
mod owner;
mod paging;
mod sched;
mod state;
mod syscall;
mod task;
mod thread;

pub use base::cost;
pub use base::cost::{CostModel, Costs};
pub use base::error::SimError;
pub use base::id::{PageLocation, TaskId, UserPage};
pub use base::numa::NumaEntry;
pub use base::traced::{Caller, Comm, Traced};
pub use device::{DiskEntry, Kind as DiskKind};
pub use machine::found::{FoundIn, FoundPage};
pub use machine::groups::GroupReport;
pub use machine::machine_file;
pub use machine::machine_file::MachineFile;
pub use machine::{Machine, Stop};
pub use sched::{CpuTime, CpuUse};
pub use state::file::{Allocator, Counts as FileCounts, FileSystem, SlabInfo, ZoneCounts};
pub use state::group::{GroupCounts, GroupEntry};
pub use state::khugepaged::KhugepagedCounts;
pub use state::process::family::OomKill;
pub use state::process::mapping::BYTES_PER_PAGE;
pub use thread::KernelThread;
