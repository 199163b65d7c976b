//! A sleeping lock for readers and writers, such as `mmap_lock` (`struct rw_semaphore`).
//!
//! It is held by many readers or one writer. A task that finds others waiting waits behind them, so
//! nobody starves. Release hands the lock to the first in the queue and, if that is a reader, to
//! all readers up to the next writer: a task that is woken already holds it. A wait cannot be
//! interrupted. In the kernel a running task may steal the lock from one just woken, and spins for
//! it for some milliseconds; here none does.

use crate::base::queue::{QueueId, Queues};
use std::collections::VecDeque;

/// The mode of a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Shared with other readers.
    Read,
    Write,
}

/// A lock; free when new.
#[derive(Clone, Default)]
pub(crate) struct RwLock {
    readers: u32,
    has_writer: bool,
    /// The modes wanted by the tasks in the queue, in order.
    waiting: VecDeque<Mode>,
    /// The wait queue, once a task has waited.
    queue: Option<QueueId>,
}

impl RwLock {
    /// Removes a free lock and its queue.
    pub(crate) fn remove(self, queues: &mut Queues) {
        debug_assert!(self.is_free());
        self.queue.into_iter().for_each(|queue| queues.remove(queue));
    }

    fn is_free(&self) -> bool {
        self.readers == 0 && !self.has_writer
    }

    /// Whether it could be taken in this mode without a wait.
    #[inline(always)]
    pub(crate) fn is_open(&self, mode: Mode) -> bool {
        self.waiting.is_empty() && (self.is_free() || mode == Mode::Read && !self.has_writer)
    }

    /// Takes the lock if that needs no wait; whether it did.
    pub(crate) fn try_take(&mut self, mode: Mode) -> bool {
        let may = self.is_open(mode);
        if may {
            self.hold(mode);
        }
        may
    }

    /// Takes the lock, or returns the queue to wait in: after the wait the task holds it.
    pub(crate) fn take(&mut self, mode: Mode, queues: &mut Queues) -> Result<(), QueueId> {
        if self.try_take(mode) {
            return Ok(());
        }
        self.waiting.push_back(mode);
        Err(*self.queue.get_or_insert_with(|| queues.add()))
    }

    fn hold(&mut self, mode: Mode) {
        match mode {
            Mode::Read => self.readers += 1,
            Mode::Write => self.has_writer = true,
        }
    }

    /// Releases a hold of this mode and hands the lock over.
    pub(crate) fn give_back(&mut self, mode: Mode, queues: &mut Queues) {
        match mode {
            Mode::Read => self.readers -= 1,
            Mode::Write => self.has_writer = false,
        }
        self.hand_over(queues);
    }

    /// Turns the writer's hold into a reader's.
    pub(crate) fn downgrade(&mut self, queues: &mut Queues) {
        debug_assert!(self.has_writer);
        (self.has_writer, self.readers) = (false, 1);
        self.hand_over(queues);
    }

    fn hand_over(&mut self, queues: &mut Queues) {
        while let Some(&next) = self.waiting.front()
            && (self.is_free() || next == Mode::Read && !self.has_writer)
        {
            self.waiting.pop_front();
            self.hold(next);
            let woken = self.queue.and_then(|queue| queues.wake_one(queue));
            debug_assert!(woken.is_some(), "who wants it waits in its queue");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mode::{Read, Write};
    use super::*;
    use crate::base::id::TaskId;
    use proptest::prelude::*;

    /// Takes the lock for a task or queues it; whether it holds the lock.
    fn take(lock: &mut RwLock, queues: &mut Queues, task: u32, mode: Mode) -> bool {
        let taken = lock.take(mode, queues);
        taken.map_err(|queue| queues.join(queue, TaskId(task))).is_ok()
    }

    fn woken(queues: &mut Queues) -> Vec<u32> {
        queues.take_woken().map(|t| t.0).collect()
    }

    #[test]
    fn a_writer_that_waits_is_not_overtaken_by_readers() {
        let mut queues = Queues::default();
        let mut lock = RwLock::default();
        assert!(take(&mut lock, &mut queues, 0, Read) && take(&mut lock, &mut queues, 1, Read));
        assert!(!take(&mut lock, &mut queues, 2, Write));
        assert!(!take(&mut lock, &mut queues, 3, Read) && !take(&mut lock, &mut queues, 4, Read));
        assert!(!take(&mut lock, &mut queues, 5, Write));
        lock.give_back(Read, &mut queues);
        assert_eq!(woken(&mut queues), [0; 0]);
        lock.give_back(Read, &mut queues);
        assert_eq!(woken(&mut queues), [2]);
        lock.give_back(Write, &mut queues);
        assert_eq!(woken(&mut queues), [3, 4], "readers go together");
        lock.give_back(Read, &mut queues);
        lock.give_back(Read, &mut queues);
        assert_eq!(woken(&mut queues), [5]);
        lock.give_back(Write, &mut queues);
        lock.remove(&mut queues);
    }

    #[test]
    fn a_writer_that_goes_on_reading_lets_the_readers_in_that_wait_before_the_next_writer() {
        let (mut queues, mut lock) = (Queues::default(), RwLock::default());
        assert!(take(&mut lock, &mut queues, 0, Write));
        for (task, mode) in [(1, Read), (2, Read), (3, Write), (4, Read)] {
            assert!(!take(&mut lock, &mut queues, task, mode));
        }
        lock.downgrade(&mut queues);
        assert_eq!(woken(&mut queues), [1, 2]);
        (0..3).for_each(|_| lock.give_back(Read, &mut queues));
        assert_eq!(woken(&mut queues), [3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn tasks_have_the_lock_in_the_order_they_asked_and_never_beside_a_writer(
            acts in prop::collection::vec((any::<bool>(), any::<bool>(), any::<prop::sample::Index>()), 1..200),
        ) {
            let mut queues = Queues::default();
            let mut lock = RwLock::default();
            let mut holders: Vec<(u32, Mode)> = Vec::new();
            let mut waiting: VecDeque<(u32, Mode)> = VecDeque::new();
            for (task, (takes, writes, which)) in acts.into_iter().enumerate() {
                if takes {
                    let (task, mode) = (task as u32, if writes { Write } else { Read });
                    if take(&mut lock, &mut queues, task, mode) {
                        prop_assert!(waiting.is_empty());
                        holders.push((task, mode));
                    } else {
                        waiting.push_back((task, mode));
                    }
                } else if !holders.is_empty() {
                    let (_, mode) = holders.swap_remove(which.index(holders.len()));
                    lock.give_back(mode, &mut queues);
                    for task in woken(&mut queues) {
                        let next = waiting.pop_front().expect("one that waits");
                        prop_assert_eq!(next.0, task);
                        holders.push(next);
                    }
                }
                let writers = holders.iter().filter(|(_, mode)| *mode == Write).count();
                prop_assert!(writers == 0 || holders.len() == 1);
                prop_assert!(!holders.is_empty() || waiting.is_empty(), "a free lock has nobody waiting");
            }
        }
    }
}
