//! Kontig held against real kernels: recordings made under emulation, replayed by the engine operation by operation.
//!
//! [`recording`] opens what was recorded, [`replay`] carries it out in the engine and stops at the first thing that
//! is not the same, [`verify()`] does both for a folder. [`trace`] makes the operations a recording is made of,
//! [`record`] the recordings. [`fidelity`] concludes from all of them what can be believed.

pub mod difference;
pub mod error;
pub mod fidelity;
pub mod record;
pub mod recording;
pub mod replay;
pub mod trace;
pub mod verify;
pub mod view;

pub use difference::Difference;
pub use error::BadRecording;
pub use recording::Recording;
pub use verify::{Verdict, verify};
