//! The program: whatever hands over operations.

use crate::batch::Batch;
use crate::outcome::Outcome;
use std::any::Any;
use std::fmt;

/// A process or driver. It can be cloned, so that a machine can be copied with all that runs on it,
/// and is `Any`, so that its host can read its measurements.
pub trait Program: Any + Send + BoxedClone {
    /// Hands over the next operations; a program that hands over none is done. Its memory stays
    /// allocated, unless it was forked.
    ///
    /// `done` has the outcome of every operation of the last batch, in order. On the first call it
    /// has one outcome, [`Outcome::at_start`], so it is never empty.
    fn next(&mut self, done: &[Outcome], todo: &mut Batch);

    /// Receives a joined thread's program, with its measurements.
    fn joined(&mut self, thread: Box<dyn Program>) {
        let _ = thread;
    }

    /// The name that its process has from an exec on, as `/proc/PID/comm` shows it; without one, it
    /// keeps its parent's.
    fn name(&self) -> Option<&'static str> {
        None
    }

    /// Whether it exits with a failure, which its parent sees. Called when it is done.
    fn has_failed(&self) -> bool {
        false
    }

    /// The share of its work that is done or handed over, 0 to 1.
    fn progress(&self) -> f64 {
        0.0
    }
}

/// Clones a program of unknown type. Every program that is `Clone` implements it.
pub trait BoxedClone {
    /// A copy in the same state that shares nothing with the original.
    fn boxed_clone(&self) -> Box<dyn Program>;
}

impl<P: Program + Clone> BoxedClone for P {
    fn boxed_clone(&self) -> Box<dyn Program> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Program> {
    fn clone(&self) -> Box<dyn Program> {
        self.as_ref().boxed_clone()
    }
}

impl fmt::Debug for dyn Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a program")
    }
}

/// A program is equal to none but itself.
impl PartialEq for dyn Program {
    fn eq(&self, other: &dyn Program) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

/// Where a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On this CPU alone.
    Cpu(usize),
    /// On the CPU that the machine's scheduler picks.
    Any,
}
