//! The program: whatever hands over operations.

use crate::batch::Batch;
use crate::outcome::Outcome;
use std::any::Any;

/// A process or driver. `Any`, so that the host that started one can look at what it has measured.
pub trait Program: Any + Send {
    /// Hands over what to do next; a program that hands over nothing is done, and what it holds stays held.
    ///
    /// `done` has the outcome of every operation of the last batch, in the batch's order. On the first call it has one
    /// outcome, [`Outcome::at_start`], so there always is a last one.
    fn next(&mut self, done: &[Outcome], todo: &mut Batch);

    /// The share of its work that is done or handed over, 0 to 1.
    fn progress(&self) -> f64;
}

/// Where a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Its CPU.
    pub cpu: usize,
}
