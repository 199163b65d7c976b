//! The kernel's reports about memory under `/proc` and `/sys`, as plain data.
//!
//! Each file has a module with a type, a parser and a printer (`Display`). Text that a kernel wrote
//! parses and prints back byte for byte. Kernels differ in the fields they list; a type keeps every
//! field it finds, known or not, in the kernel's order, so no type depends on a version. A text
//! that is cut short or has another form is refused with one line that names the file and the line
//! ([`BadText`]).
//!
//! | module | file |
//! | --- | --- |
//! | [`buddyinfo`] | `/proc/buddyinfo` |
//! | [`pagetypeinfo`] | `/proc/pagetypeinfo` |
//! | [`zoneinfo`] | `/proc/zoneinfo` |
//! | [`vmstat`] | `/proc/vmstat` |
//! | [`meminfo`] | `/proc/meminfo` |
//! | [`node_meminfo`] | `/sys/devices/system/node/nodeN/meminfo` (parsed only) |
//! | [`slabinfo`] | `/proc/slabinfo` |
//! | [`smaps`] | `/proc/PID/smaps` (parsed only) |
//! | [`process_stat`] | `/proc/PID/stat` (parsed only) |
//! | [`process_status`] | `/proc/PID/status` (parsed only) |
//! | [`pressure`] | `/proc/pressure/memory`, `cpu`, `io`, `irq` |
//! | [`thp`] | `/sys/kernel/mm/transparent_hugepage/enabled`, `defrag`, `shmem_enabled` |
//! | [`extfrag`] | `/sys/kernel/debug/extfrag/unusable_index`, `extfrag_index` |
//!
//! With the feature `mm`, `from_mm` fills the types from the engine's state, with the fields that
//! the profile's kernel lists. Source of the formats: kernel-behaviour §7 and the recordings' own
//! files.

pub mod buddyinfo;
pub mod counters;
pub mod error;
pub mod extfrag;
#[cfg(feature = "mm")]
pub mod from_mm;
mod ftrace;
mod lines;
pub mod meminfo;
pub mod node_meminfo;
pub mod pagetypeinfo;
pub mod pressure;
pub mod process_stat;
pub mod process_status;
pub mod slabinfo;
pub mod smaps;
pub mod thp;
pub mod vmstat;
pub mod zone_at;
pub mod zoneinfo;

pub use buddyinfo::BuddyInfo;
pub use counters::Counters;
pub use error::BadText;
pub use extfrag::{ExtfragIndex, UnusableIndex};
pub use ftrace::{Lost, TraceLine, lost_events};
pub use meminfo::MemInfo;
pub use node_meminfo::NodeMemInfo;
pub use pagetypeinfo::PageTypeInfo;
pub use pressure::Pressure;
pub use process_stat::ProcessStat;
pub use process_status::ProcessStatus;
pub use slabinfo::SlabInfo;
pub use smaps::{Mapping, Smaps};
pub use thp::Choice;
pub use vmstat::VmStat;
pub use zone_at::ZoneAt;
pub use zoneinfo::ZoneInfo;
