//! How a caller watches a recording being made, and stops it.

use crate::error::RecordError;
use std::sync::atomic::{AtomicBool, Ordering};

/// Progress of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The module and the initramfs are being built.
    Building,
    /// The machine runs; bytes it has sent so far.
    Running(u64),
    /// The results are being compressed and written.
    Writing,
}

/// A caller's control over a recording being made.
pub struct Control<'a> {
    /// Set to stop it.
    pub stop: &'a AtomicBool,
    /// Called several times a second.
    pub progress: &'a dyn Fn(Progress),
}

impl Control<'_> {
    pub(crate) fn check(&self) -> Result<(), RecordError> {
        if self.stop.load(Ordering::Relaxed) { Err(RecordError::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn at(&self, progress: Progress) -> Result<(), RecordError> {
        (self.progress)(progress);
        self.check()
    }
}
