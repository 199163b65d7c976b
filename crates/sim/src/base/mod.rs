//! Identifiers, time, costs, and the objects that tasks wait on. Nothing here depends on the rest
//! of the machine.

pub(crate) mod barrier;
pub(crate) mod context;
pub mod cost;
pub(crate) mod error;
pub(crate) mod id;
pub(crate) mod memory_bus;
pub(crate) mod numa;
pub(crate) mod queue;
pub(crate) mod rw_lock;
pub(crate) mod sequence;
pub(crate) mod slots;
pub(crate) mod timer;
pub(crate) mod traced;
pub(crate) mod translate;
pub(crate) mod wait;
