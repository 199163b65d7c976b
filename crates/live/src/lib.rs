//! A real Linux host: what it says about its memory, and what can be made of it.
//!
//! The rule: nothing needs a kernel module, debugfs or a network, and tracefs only who waited
//! ([`stalls`]); nothing is assumed that can be read. A file that is missing, one that may not be
//! read and one that is not understood are three different things ([`ReadError`]), and none of them
//! is a zero.
//!
//! All files are found below [`Roots`], so that a recorded tree is read as the host itself is.

pub mod age;
pub mod blocks;
pub mod bound;
pub mod caller;
pub mod cgroup;
pub mod check;
pub(crate) mod clock;
pub mod confidence;
pub mod contiguous;
pub(crate) mod deferred;
pub mod error;
pub mod explain;
pub mod frame;
pub mod guard;
pub mod heaviest;
pub mod held;
pub mod history;
pub mod host;
pub mod iomem;
pub mod load;
pub mod lru_gen;
pub mod machine;
pub mod metrics;
pub mod need;
pub mod obstacles;
pub mod own_memory;
pub mod page_words;
mod pool_sizes;
pub mod prepare;
mod proactive;
pub mod process;
pub mod roots;
pub mod snapshot;
pub mod spare;
pub mod stalls;
pub mod status;
pub mod supply;
pub mod sweep;
pub mod touch;
pub mod trial;

pub use error::{ReadError, Unread};
pub use explain::Explanation;
pub use host::Host;
pub use process::Process;
pub use roots::Roots;
pub use snapshot::Snapshot;
pub use status::Status;
