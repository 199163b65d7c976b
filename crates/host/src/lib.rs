//! The commands about a real host, a file each: `kontig` has them beside its laboratory, and
//! `kontig-host` has nothing else.

pub mod age;
mod answer;
pub mod bound;
pub mod check;
mod command;
pub mod commands;
pub mod explain;
pub mod guard;
pub mod history;
pub mod metrics;
pub mod prepare;
pub mod roots;
mod rules;
pub mod snapshot;
pub mod span;
pub mod status;
pub mod top;
pub mod touch;
pub mod trial;
