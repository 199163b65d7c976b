//! `kontig guard`: keeps blocks at hand on a host for weeks, by proactive compaction in user space.
//!
//! `controller` decides, by samples (`sample`) and rules (`rules`, read by `policy`); it is a pure
//! state machine, so it runs on a recorded host as well (`replay`). `runner` compacts, `daemon`
//! does both every half second for each node (`watched`), `diagnose` says why a run gained nothing
//! (`reason`), by a `look` at every frame where it has to, `dirty` writes what such a run may have
//! ended at. It tells `event`s to its log, its `state` to others, and `notify` to the service
//! manager; `hold` makes it rest, `failed` ends it.
//!
//! Nothing is left to restore, whoever is killed: a compaction ends with the process that asked for
//! it. Only where the kernel's own setting is driven (`drive`) is there a journal.

pub mod controller;
pub mod daemon;
pub mod diagnose;
mod dirty;
pub mod drive;
pub mod event;
pub mod failed;
pub mod hold;
pub mod look;
pub mod notify;
pub mod policy;
pub mod reason;
pub mod replay;
pub mod rules;
pub mod runner;
pub mod sample;
pub mod state;
mod watched;
