//! Making blocks available: the least harmful step first, no longer than is allowed, and no further than is needed.
//!
//! A [`Plan`] says what would be written where, and acts on nothing. Carried out ([`execute`]), it compacts node by node
//! and stops a node's compaction as soon as the blocks are there, when the time is over, or when somebody wants an end of it.
//! Clean cache is dropped only with permission, and only if compaction alone does not reach the needs. Every setting that is
//! changed is in a journal first ([`journal`]), and is restored: at the end, on an interrupt, and after a kill when it is run
//! the next time. A [`Receipt`] says what was, what was done, what it cost and what is.

pub mod execute;
pub mod journal;
mod plan;
mod receipt;

pub use plan::{Allowed, Plan, Step};
pub use receipt::{Cost, Done, Receipt, SCHEMA, Supplied};
