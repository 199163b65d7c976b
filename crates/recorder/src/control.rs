//! The caller's hold on a recording under way: how far it has come, and a way to stop it.

use crate::error::RecordError;
use std::sync::atomic::{AtomicBool, Ordering};

/// How far a recording has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The module and the machine's file system are made.
    Building,
    /// The machine runs, and has sent so many bytes.
    Running(u64),
    /// What it sent is compressed and written.
    Writing,
}

/// The caller's hold on a recording under way.
pub struct Control<'a> {
    /// Raised to stop it.
    pub stop: &'a AtomicBool,
    /// Told how far it has come, several times a second.
    pub progress: &'a dyn Fn(Stage),
}

impl Control<'_> {
    pub(crate) fn check(&self) -> Result<(), RecordError> {
        if self.stop.load(Ordering::Relaxed) { Err(RecordError::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn at(&self, stage: Stage) -> Result<(), RecordError> {
        (self.progress)(stage);
        self.check()
    }
}
