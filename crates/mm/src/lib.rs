//! Kontig's engine: Linux's page allocator and compaction as one deterministic state machine.
//!
//! It does no I/O: no clock, threads, files, randomness or logging. A host supplies CPUs, time and page ownership,
//! and learns what happened through counters ([`Vmstat`]), events ([`event`]) and work done ([`Work`]).
//!
//! [`Memory`] owns all state. What is quick is a plain function ([`Memory::alloc`], [`Memory::free`]); what can
//! take long is a value with a step ([`AllocSlow`], [`compact::CompactRun`], [`kswapd`], [`kcompactd`]), so that
//! other CPUs run in between. Names, numbers and formats are the kernel's.
#![no_std]

extern crate alloc;

pub mod check;
pub mod compact;
pub mod event;
pub mod gfp;
pub mod index;
pub mod kcompactd;
pub mod kswapd;
pub mod rules;
pub mod snapshot;
pub mod state;
pub mod sysctl;
pub mod types;
pub mod vmstat;
pub mod watermark;
pub mod work;

mod allocate;
mod batch;
mod boot;
mod buddy;
mod counters;
mod fallback;
mod free;
mod host;
mod lru;
mod owned;
mod pcp;
mod request;
mod slow_path;
mod split;
pub mod step;
#[cfg(test)]
mod testing;

pub use allocate::{NoPage, PageSource};
pub use boot::{MachineSpec, ZoneSpec};
pub use event::{Event, Listen};
pub use gfp::{AllocFlags, Gfp, Wmark};
pub use host::{MigrateOutcome, Owner, Turn};
pub use request::Request;
pub use rules::Profile;
pub use slow_path::{AllocFailure, AllocSlow};
pub use state::{Memory, Node, PerCpuPages, Zone};
pub use step::{Daemon, DaemonStep, Step, Wait};
pub use types::{CpuId, MigrateType, NodeId, Order, Pfn, ZoneId, ZoneType};
pub use vmstat::{VmEvent, Vmstat};
pub use work::Work;
