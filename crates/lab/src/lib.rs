//! Kontig's laboratory: experiments, their runs, and how they compare with what was published.
//!
//! From the request to the stored result, no module uses one above it, in the order that
//! `crates/tidy/tests/suite/floors.rs` has in full: [`source`] is a file with its lines and the
//! keys it inherits from its base; [`experiment`], its [`page`] and [`target`] hold the contents of
//! such files, with each row's [`formula`]; [`catalog`] holds the built-in files; [`resolved`]
//! looks up the names an experiment mentions; [`plan`] decides one run; [`run`] carries it out,
//! with `sampler` looking at the machine through `observe`, and [`vmstat`] collecting its counters;
//! [`compare`] makes the table of all runs, reading each row's `quantity`; `sweep` varies the pace;
//! [`beginning`] starts a run in another state than after boot, such as a real host's
//! ([`host_snapshot`]); [`identity`] knows a run again; [`session`] runs plans in parallel, by a
//! `queue`; a [`cell`] is one of them as data; [`store`] keeps results and finds them again;
//! [`beside`] makes one table of several; [`recorded`] makes workloads of recordings.

mod ageing;
pub mod beginning;
pub mod beside;
mod built_in;
pub mod catalog;
pub mod cell;
pub mod compare;
mod difference;
mod document;
pub mod drawn;
pub mod elsewhere;
mod event_log;
pub mod expected;
pub mod experiment;
mod figures;
pub mod formula;
mod fragmenting;
mod ftrace;
mod gate;
mod groups;
pub mod guest;
mod hash;
mod history;
pub mod host_snapshot;
pub mod identity;
pub mod missed;
pub mod mmtests;
pub mod names;
mod observe;
pub mod outcome;
pub mod page;
mod parameters;
pub mod plan;
mod pressure;
pub mod profiles;
mod quantity;
mod queue;
pub mod recorded;
mod remarks;
mod repetitions;
pub mod resolved;
mod round;
pub mod run;
mod sampler;
pub mod session;
pub mod simulation;
pub mod source;
pub mod store;
mod sweep;
mod swept;
pub mod sysctls;
pub mod target;
pub mod unit;
pub mod vmstat;
pub mod what_if;

pub use pressure::names_of_common_figures;
