//! Kontig's engine: Linux's page allocator and compaction as one deterministic state machine.
//!
//! It does no I/O: no clock, threads, files, randomness or logging. A host supplies CPUs, time and
//! page ownership, and reads the results from counters ([`Vmstat`]), events ([`event`]) and work
//! done ([`Work`]).
//!
//! [`Memory`] owns all state. A quick operation is a plain function ([`Memory::alloc`],
//! [`Memory::free`]); one that can take long is a value with a step ([`AllocSlow`],
//! [`compact::CompactRun`], [`kswapd`], [`kcompactd`]), so that other CPUs run in between. Names,
//! numbers and formats are the kernel's.
//!
//! # Allocate
//!
//! A machine of 64 MiB takes a huge page and gives it back. The profiles come from the files of
//! `kontig-profiles`; the engine itself reads none.
//!
//! ```
//! use kontig_mm::*;
//!
//! let (kind, end) = (ZoneType::Normal, 16384);
//! let zone = ZoneSpec { node: 0, kind, start: 0, end, present: 16384, managed: 16384 };
//! let spec = MachineSpec { cpus: 2, zones: vec![zone], thp: false, lru: false };
//! let mut memory = Memory::new(&spec, kontig_profiles::linux("6.1"))?;
//!
//! let cpu = CpuId::new(0);
//! let request = Request::new(cpu, NodeId::new(0), Gfp::TRANSHUGE, Order::new(9));
//! let huge = memory.alloc(request).expect("all memory is free");
//! assert!(huge.is_aligned(Order::new(9)));
//! memory.free(cpu, huge, Order::new(9));
//! # memory.check()?;
//! # Ok::<(), String>(())
//! ```
//!
//! # Step a compaction
//!
//! User memory with a hole in every second page has no huge page left. A full compaction makes
//! some, a step at a time; between two steps a host may let other CPUs run. The [`Owner`] moves the
//! pages.
//!
//! ```
//! use kontig_mm::kcompactd::NodeSweep;
//! use kontig_mm::*;
//!
//! /// Every page may move.
//! struct Willing {
//!     moved: u32,
//! }
//! impl Owner for Willing {
//!     fn may_isolate(&mut self, _: Pfn) -> bool {
//!         true
//!     }
//!     fn migrate(&mut self, _from: Pfn, _to: Pfn, _owner: u32) -> MigrateOutcome {
//!         self.moved += 1;
//!         MigrateOutcome::Moved
//!     }
//! }
//!
//! # let (kind, end) = (ZoneType::Normal, 16384);
//! # let zone = ZoneSpec { node: 0, kind, start: 0, end, present: 16384, managed: 16384 };
//! # let spec = MachineSpec { cpus: 2, zones: vec![zone], thp: false, lru: false };
//! # let mut memory = Memory::new(&spec, kontig_profiles::linux("6.1"))?;
//! let (cpu, node) = (CpuId::new(0), NodeId::new(0));
//! let page = Request::new(cpu, node, Gfp::HIGHUSER_MOVABLE, Order::ZERO);
//! let mut pages = Vec::new();
//! while let Ok(pfn) = memory.alloc(page) {
//!     memory.lru_add(cpu, pfn, Order::ZERO, PageFlags::ANON);
//!     pages.push(pfn);
//! }
//! pages.iter().step_by(2).for_each(|pfn| memory.free(cpu, *pfn, Order::ZERO));
//!
//! let huge = Order::new(9);
//! let huge_pages = |m: &Memory| huge.and_up().map(|o| m.zones()[0].nr_free(o)).sum::<u64>();
//! let before = huge_pages(&memory);
//! let (mut sweep, mut owner) = (NodeSweep::new(node, cpu, false), Willing { moved: 0 });
//! while sweep.step(&mut memory, &mut owner, 4) == Step::Working {
//!     // Other CPUs' turns.
//! }
//! assert!(huge_pages(&memory) > before);
//! assert_eq!(memory.vmstat().get(VmEvent::PgmigrateSuccess), u64::from(owner.moved));
//! # memory.check()?;
//! # Ok::<(), String>(())
//! ```
//!
//! # Run a machine
//!
//! Processes, daemons and time are `kontig-sim`'s; its first page has the third example.
#![no_std]

extern crate alloc;

pub mod check;
pub mod compact;
pub mod event;
pub mod gfp;
pub mod import;
pub mod index;
pub mod kcompactd;
pub mod kswapd;
pub mod rules;
pub mod snapshot;
pub mod state;
pub mod step;
pub mod sysctl;
pub mod types;
pub mod vmstat;
pub mod watermark;
pub mod work;
pub mod zonelist;

mod allocate;
mod boost;
mod boot;
mod buddy;
mod copy;
mod counters;
mod fallback;
mod free;
mod highatomic;
mod huge_page;
mod lru;
mod mempolicy;
mod owner;
mod pcp;
mod prefetch;
mod reclaim;
mod request;
mod runs;
mod slow_path;
mod split;
#[cfg(test)]
mod testing;

pub use allocate::{NoPage, PageSource};
pub use boot::{InUse, MachineSpec, WrongSpec, ZoneSpec};
pub use event::{Event, Listen};
pub use event::{ReclaimStat, Throttle};
pub use gfp::{AllocFlags, Gfp, Wmark};
pub use huge_page::HugeDefrag;
pub use lru::Shadow;
pub use mempolicy::MemPolicy;
pub use owner::{
    Around, Lock, MigrateOutcome, NEIGHBOURS, NodePages, Owner, PageState, References, Shrinker, Shrunk, TableWalk,
    Turn, WriteOut,
};
pub use prefetch::prefetch;
pub use reclaim::{Charge, ChargeFailure, OverHigh, Refused, SetLimit};
pub use request::Request;
pub use rules::Profile;
pub use slow_path::{AllocFailure, AllocSlow};
pub use state::{
    Backing, KcompactdState, LruList, Memory, Node, NodeStat, PageFlags, PassedBy, PerCpuPages, SwapSpace, WentOn, Zone,
};
pub use step::{Daemon, DaemonStep, Step, Wait};
pub use types::{CpuId, GroupId, GroupLimit, LruvecId, MigrateType, NodeId, NodeSet, Order, Pfn, ZoneId, ZoneType};
pub use vmstat::{Counter, VmEvent, Vmstat, Wanted};
pub use work::Work;
