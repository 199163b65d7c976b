//! Kontig's laboratory: experiments, their runs, and how they compare with what was published.
//!
//! From what is asked for to what is kept, each module uses those before it and none after:
//! [`source`] is a file with its lines; [`catalog`] holds the data that comes along; [`plan`] is what decides one run; [`run`] carries it out, with `sampler`
//! looking at what `observe` reads off the machine; [`compare`] makes the table of all runs; `sweep` varies the pace;
//! [`resolved`] looks up what an experiment names; [`session`] does it all in parallel, by a `queue`; [`store`] keeps results and finds
//! them again.

pub mod catalog;
pub mod compare;
mod difference;
pub mod error;
mod event_log;
pub mod experiment;
mod figures;
pub mod files;
mod gate;
pub mod guest;
mod observe;
pub mod plan;
mod queue;
mod remarks;
mod repetitions;
pub mod resolved;
pub mod run;
mod sampler;
pub mod session;
pub mod source;
pub mod store;
mod sweep;
pub mod sysctls;
pub mod what_if;

pub use error::{AskedWrongly, Failed, LabError};
