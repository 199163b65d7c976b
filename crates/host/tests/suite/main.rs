//! The integration tests of `host`, in one program: linking is what takes long.

mod bound;
mod common;
mod guard;
mod history;
mod host;
mod killed;
mod leftover;
mod metrics;
mod needs;
mod operators;
mod replay;
mod trial;
mod without_laboratory;
