//! The program: whatever hands over operations.

use crate::batch::Batch;
use crate::outcome::Outcome;
use std::any::Any;
use std::fmt;

/// A process or driver: a value, so that a machine can be copied with all that runs on it. `Any`, so that the host that
/// started one can look at what it has measured.
pub trait Program: Any + Send + BoxedClone {
    /// Hands over what to do next; a program that hands over nothing is done. What it holds stays held, unless it was
    /// forked.
    ///
    /// `done` has the outcome of every operation of the last batch, in the batch's order. On the first call it has one
    /// outcome, [`Outcome::at_start`], so there always is a last one.
    fn next(&mut self, done: &[Outcome], todo: &mut Batch);

    /// It has joined a thread: what that has run, with all that it has measured.
    fn joined(&mut self, thread: Box<dyn Program>) {
        let _ = thread;
    }

    /// Whether it has failed in what it is for: asked when it is done. Its parent is told.
    fn has_failed(&self) -> bool {
        false
    }

    /// The share of its work that is done or handed over, 0 to 1.
    fn progress(&self) -> f64;
}

/// A copy of a program whose type is not known; every program that is `Clone` has it.
pub trait BoxedClone {
    /// A program that goes on from where this one is, and shares nothing with it.
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
    /// Wherever the machine's scheduler finds best.
    Any,
}
