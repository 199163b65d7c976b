//! The order in which threads run a session's jobs.
//!
//! Jobs whose machine is the same up to some point are a family. One thread prepares it for all of
//! them and then measures one job after another, each on a copy. Idle threads help. Every job
//! begins from the same state, on whatever thread and whenever it runs.

use crate::gate::lock;
use crate::run::Prepared;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};

/// The families of a session.
pub(crate) struct Queue<'a> {
    families: Mutex<Families<'a>>,
    changed: Condvar,
}

struct Families<'a> {
    waiting: VecDeque<Vec<usize>>,
    /// How many threads prepare one.
    preparing: usize,
    prepared: Vec<Arc<Family<'a>>>,
}

/// A thread's next task.
pub(crate) enum Next<'q, 'a> {
    Prepare(Preparing<'q, 'a>),
    /// Measures jobs of a family that another thread prepared.
    Help(Arc<Family<'a>>),
}

/// A family that is being prepared. Dropping it gives up.
pub(crate) struct Preparing<'q, 'a> {
    pub(crate) jobs: Vec<usize>,
    queue: &'q Queue<'a>,
}

/// A family whose machine is prepared.
pub(crate) struct Family<'a> {
    /// One of its jobs; all have the same machine.
    pub(crate) first: usize,
    left: Mutex<Left<'a>>,
}

/// The jobs not yet begun, and the machine prepared for them.
struct Left<'a> {
    jobs: VecDeque<usize>,
    prepared: Option<Prepared<'a>>,
    /// How far the first job has come already, if it is ahead of what all have in common.
    ahead: Option<Prepared<'a>>,
}

impl<'a> Queue<'a> {
    /// Families are begun in this order.
    pub(crate) fn new(families: impl IntoIterator<Item = Vec<usize>>) -> Queue<'a> {
        let families = Families { waiting: families.into_iter().collect(), preparing: 0, prepared: Vec::new() };
        Queue { families: Mutex::new(families), changed: Condvar::new() }
    }

    /// The next task; `None` if nothing is left. Waits while a family is being prepared that may
    /// need help.
    pub(crate) fn next(&self) -> Option<Next<'_, 'a>> {
        let mut state = lock(&self.families);
        loop {
            if let Some(jobs) = state.waiting.pop_front() {
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
    /// The family with its machine. Others may help from now on, if it has several jobs.
    pub(crate) fn done(self, prepared: Prepared<'a>, ahead: Option<Prepared<'a>>) -> Arc<Family<'a>> {
        let left = Left { jobs: self.jobs.iter().copied().collect(), prepared: Some(prepared), ahead };
        let left = Mutex::new(left);
        let family = Arc::new(Family { first: self.jobs[0], left });
        if self.jobs.len() > 1 {
            lock(&self.queue.families).prepared.push(Arc::clone(&family));
        }
        family
    }
}

impl Drop for Preparing<'_, '_> {
    fn drop(&mut self) {
        lock(&self.queue.families).preparing -= 1;
        self.queue.changed.notify_all();
    }
}

impl<'a> Family<'a> {
    /// The next job with a copy of the machine, or for the last job the machine itself. The first
    /// job goes on from where it is.
    pub(crate) fn next(&self) -> Option<(usize, Prepared<'a>)> {
        let mut left = lock(&self.left);
        let job = left.jobs.pop_front()?;
        if let Some(ahead) = left.ahead.take() {
            return Some((job, ahead));
        }
        let prepared = if left.jobs.is_empty() { left.prepared.take() } else { left.prepared.clone() };
        Some((job, prepared?))
    }
}
