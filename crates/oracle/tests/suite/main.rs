//! The integration tests of `oracle`, in one program: linking is what takes long.

mod bad_recordings;
mod fidelity;
mod golden;
mod guest;
mod lru_recordings;
mod procfs;
mod replayed;
mod traces;
