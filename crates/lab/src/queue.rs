//! The queue: who runs what next.
//!
//! Jobs that prepare the machine alike are a family. One thread prepares it for all of them and then measures one job
//! after another, each on a copy. Threads that would have nothing else to do help. Every job begins from the same
//! state, whoever runs it and when.

use crate::gate::lock;
use crate::run::Prepared;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};

/// The families of a session.
pub(crate) struct Queue<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
}

struct State<'a> {
    /// Those nobody has begun.
    families: VecDeque<Range<usize>>,
    /// How many are being prepared.
    preparing: usize,
    /// Those that are prepared.
    prepared: Vec<Arc<Family<'a>>>,
}

/// What a thread is to do next.
pub(crate) enum Next<'q, 'a> {
    /// Prepare a family.
    Prepare(Preparing<'q, 'a>),
    /// Help with a family that another thread has prepared.
    Help(Arc<Family<'a>>),
}

/// A family that is being prepared. One that is dropped could not be.
pub(crate) struct Preparing<'q, 'a> {
    /// Its jobs, by number.
    pub(crate) jobs: Range<usize>,
    queue: &'q Queue<'a>,
}

/// A family that is prepared.
pub(crate) struct Family<'a> {
    /// One of its jobs: all are of one machine.
    pub(crate) first: usize,
    left: Mutex<Left<'a>>,
}

/// What nobody has begun to measure, and the machine that was prepared for it.
struct Left<'a> {
    jobs: Range<usize>,
    prepared: Option<Prepared<'a>>,
}

impl<'a> Queue<'a> {
    /// Families to be begun in this order.
    pub(crate) fn new(families: impl IntoIterator<Item = Range<usize>>) -> Queue<'a> {
        let state = State { families: families.into_iter().collect(), preparing: 0, prepared: Vec::new() };
        Queue { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// What to do next; none if there is nothing left. Waits while families are prepared that may need help.
    pub(crate) fn next(&self) -> Option<Next<'_, 'a>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(jobs) = state.families.pop_front() {
                state.preparing += 1;
                return Some(Next::Prepare(Preparing { jobs, queue: self }));
            }
            state.prepared.retain(|family| !lock(&family.left).jobs.is_empty());
            if let Some(family) = state.prepared.first() {
                return Some(Next::Help(Arc::clone(family)));
            }
            if state.preparing == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

impl<'a> Preparing<'_, 'a> {
    /// The family with its machine; from now on others may help, if it has several jobs.
    pub(crate) fn done(self, prepared: Prepared<'a>) -> Arc<Family<'a>> {
        let left = Mutex::new(Left { jobs: self.jobs.clone(), prepared: Some(prepared) });
        let family = Arc::new(Family { first: self.jobs.start, left });
        if self.jobs.len() > 1 {
            lock(&self.queue.state).prepared.push(Arc::clone(&family));
        }
        family
    }
}

impl Drop for Preparing<'_, '_> {
    fn drop(&mut self) {
        lock(&self.queue.state).preparing -= 1;
        self.queue.changed.notify_all();
    }
}

impl<'a> Family<'a> {
    /// The next job with its machine: a copy, or for the last job the one that was prepared.
    pub(crate) fn next(&self) -> Option<(usize, Prepared<'a>)> {
        let mut left = lock(&self.left);
        let job = left.jobs.next()?;
        let prepared = if left.jobs.is_empty() { left.prepared.take() } else { left.prepared.clone() };
        Some((job, prepared?))
    }
}
