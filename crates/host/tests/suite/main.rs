//! The integration tests of `host`, in one program: linking is what takes long.

mod bound;
mod common;
mod guard;
mod host;
mod killed;
mod leftover;
mod needs;
mod operators;
mod trial;
mod without_laboratory;
