//! Checks the engine against recordings of real kernels, operation by operation.
//!
//! [`recording`] opens a recording, [`replay`] executes it in the engine and stops at the first
//! difference, [`verify()`] does both for a folder. [`trace`] generates the operations to record.
//! [`guest`] compares counters where nothing can be replayed. [`fidelity`] derives from all
//! recordings how far each mechanism can be trusted. The crate `kontig-recorder` makes recordings.

pub mod build;
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
