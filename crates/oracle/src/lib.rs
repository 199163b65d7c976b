//! Kontig held against real kernels: recordings of them, replayed by the engine operation by operation.
//!
//! [`recording`] opens what was recorded, [`replay`] carries it out in the engine and stops at the first thing that
//! is not the same, [`verify()`] does both for a folder. [`trace`] makes the operations a recording is made of.
//! [`guest`] compares what is counted where nothing can be replayed. [`fidelity`] concludes from all recordings what can be believed. The crate `kontig-recorder` makes recordings.

pub mod difference;
pub mod error;
pub mod fidelity;
pub mod guest;
pub mod patterns;
pub mod recording;
pub mod replay;
pub mod trace;
pub mod verify;
pub mod view;

pub use difference::Difference;
pub use error::BadRecording;
pub use recording::Recording;
pub use verify::{OtherPatchLevel, Verdict, other_patch_level, verify, verify_by};
