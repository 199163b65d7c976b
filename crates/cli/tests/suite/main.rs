//! The integration tests of `cli`, in one program: linking is what takes long.

mod asking;
mod bad_input;
mod commands;
mod common;
mod compare;
mod completions;
mod export;
mod fidelity;
mod found;
mod history;
mod markdown;
mod mmtests;
mod profile;
mod recorded;
mod scenario;
mod start_state;
mod trace;
mod verify;
