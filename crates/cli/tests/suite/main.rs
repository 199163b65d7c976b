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
mod host;
mod killed;
mod leftover;
mod markdown;
mod mmtests;
mod needs;
mod operators;
mod profile;
mod recorded;
mod scenario;
mod start_state;
mod trace;
mod trial;
mod verify;
