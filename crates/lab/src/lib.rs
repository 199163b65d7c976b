//! Kontig's laboratory: experiments, their runs, and how they compare with what was published.
//!
//! [`catalog`] holds the data that comes along, [`session::Session`] resolves what was asked for and runs it in
//! parallel, [`compare`] makes the table, [`store`] keeps results and finds them again.

pub mod catalog;
pub mod compare;
pub mod error;
mod event_log;
pub mod experiment;
mod figures;
mod remarks;
pub mod run;
mod sampler;
pub mod session;
pub mod store;
pub mod sysctls;
pub mod what_if;

pub use error::{AskedWrongly, Failed, LabError};
