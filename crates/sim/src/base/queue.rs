//! Wait queues: tasks in the order in which they began to wait.
//!
//! Any part of the kernel that has a queue's number can wake the first of its tasks or all of them.
//! The wake is recorded here, ends the turn it happens in, and is delivered by the executor after
//! that turn. A queue can also be a gate: while it is open, nobody waits in it.
//!
//! The tasks of all queues are linked by number, so joining, waking and leaving (after a timeout)
//! take constant time, and allocate nothing once the machine has reached its size.

use crate::base::id::TaskId;

/// A wait queue. Numbers of removed queues are reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct QueueId(u32);

const NONE: u32 = u32::MAX;

#[derive(Clone)]
struct Queue {
    first: u32,
    last: u32,
    open: bool,
}

/// A task's links in its queue.
#[derive(Clone, Copy)]
struct Link {
    /// `NONE` while it waits in no queue.
    queue: u32,
    before: u32,
    after: u32,
}

const UNLINKED: Link = Link { queue: NONE, before: NONE, after: NONE };

/// All wait queues, and the wakes not delivered yet.
#[derive(Clone, Default)]
pub(crate) struct Queues {
    queues: Vec<Queue>,
    /// Numbers of removed queues.
    free: Vec<u32>,
    links: Vec<Link>,
    /// Woken tasks whose wake is not delivered yet, in order.
    woken: Vec<TaskId>,
}

impl Queues {
    /// Adds an empty queue.
    pub(crate) fn add(&mut self) -> QueueId {
        let queue = Queue { first: NONE, last: NONE, open: false };
        if let Some(number) = self.free.pop() {
            self.queues[number as usize] = queue;
            return QueueId(number);
        }
        self.queues.push(queue);
        QueueId(self.queues.len() as u32 - 1)
    }

    /// Removes an empty queue.
    pub(crate) fn remove(&mut self, queue: QueueId) {
        assert!(self.is_empty(queue), "tasks that wait in a removed queue would never be woken");
        self.free.push(queue.0);
    }

    pub(crate) fn is_empty(&self, queue: QueueId) -> bool {
        self.queues[queue.0 as usize].first == NONE
    }

    /// Number of waiting tasks.
    pub(crate) fn waiting(&self, queue: QueueId) -> u64 {
        let (mut task, mut waiting) = (self.queues[queue.0 as usize].first, 0);
        while task != NONE {
            (task, waiting) = (self.links[task as usize].after, waiting + 1);
        }
        waiting
    }

    /// Wakes the task that has waited longest, and returns it.
    pub(crate) fn wake_one(&mut self, queue: QueueId) -> Option<TaskId> {
        let first = self.queues[queue.0 as usize].first;
        (first != NONE).then(|| {
            self.leave(TaskId(first));
            self.woken.push(TaskId(first));
            TaskId(first)
        })
    }

    /// Wakes all waiting tasks, in the order in which they joined.
    pub(crate) fn wake_all(&mut self, queue: QueueId) {
        while self.wake_one(queue).is_some() {}
    }

    /// Opens the gate: wakes all waiting tasks, and from now on each task that joins.
    pub(crate) fn open(&mut self, queue: QueueId) {
        self.queues[queue.0 as usize].open = true;
        self.wake_all(queue);
    }

    pub(crate) fn close(&mut self, queue: QueueId) {
        self.queues[queue.0 as usize].open = false;
    }

    /// Appends the task to the queue, or wakes it at once if the gate is open.
    pub(crate) fn join(&mut self, queue: QueueId, task: TaskId) {
        let q = &mut self.queues[queue.0 as usize];
        if q.open {
            return self.woken.push(task);
        }
        if self.links.len() <= task.index() {
            self.links.resize(task.index() + 1, UNLINKED);
        }
        debug_assert_eq!(self.links[task.index()].queue, NONE, "a task waits in one queue");
        self.links[task.index()] = Link { queue: queue.0, before: q.last, after: NONE };
        let last = std::mem::replace(&mut q.last, task.0);
        match last {
            NONE => q.first = task.0,
            last => self.links[last as usize].after = task.0,
        }
    }

    /// Removes the task from the queue it waits in, if any.
    pub(crate) fn leave(&mut self, task: TaskId) {
        let Some(link) = self.links.get_mut(task.index()) else { return };
        let Link { queue, before, after } = std::mem::replace(link, UNLINKED);
        if queue == NONE {
            return;
        }
        let q = &mut self.queues[queue as usize];
        match before {
            NONE => q.first = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => q.last = before,
            after => self.links[after as usize].before = before,
        }
    }

    /// Whether wakes are to deliver.
    #[inline(always)]
    pub(crate) fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// Takes the woken tasks, in the order of their wakes.
    pub(crate) fn take_woken(&mut self) -> impl Iterator<Item = TaskId> {
        self.woken.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Clone, Debug)]
    enum Act {
        Join(usize, u32),
        Leave(u32),
        WakeOne(usize),
        WakeAll(usize),
        Open(usize),
        Close(usize),
        Renew(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            8 => (0..3usize, 0..12u32).prop_map(|(q, t)| Act::Join(q, t)),
            3 => (0..12u32).prop_map(Act::Leave),
            3 => (0..3usize).prop_map(Act::WakeOne),
            1 => (0..3usize).prop_map(Act::WakeAll),
            1 => (0..3usize).prop_map(Act::Open),
            1 => (0..3usize).prop_map(Act::Close),
            1 => (0..3usize).prop_map(Act::Renew),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn tasks_are_woken_in_the_order_they_joined_and_none_is_lost(acts in prop::collection::vec(act(), 1..200)) {
            let mut queues = Queues::default();
            let mut ids: Vec<QueueId> = (0..3).map(|_| queues.add()).collect();
            let mut model: Vec<(VecDeque<u32>, bool)> = vec![(VecDeque::new(), false); 3];
            for act in acts {
                let mut woken: Vec<u32> = Vec::new();
                match act {
                    Act::Join(q, t) => {
                        if model.iter().any(|(row, _)| row.contains(&t)) {
                            continue;
                        }
                        queues.join(ids[q], TaskId(t));
                        if model[q].1 { woken.push(t) } else { model[q].0.push_back(t) }
                    }
                    Act::Leave(t) => {
                        queues.leave(TaskId(t));
                        model.iter_mut().for_each(|(row, _)| row.retain(|waits| *waits != t));
                    }
                    Act::WakeOne(q) => {
                        let first = model[q].0.pop_front();
                        prop_assert_eq!(queues.wake_one(ids[q]), first.map(TaskId));
                        woken.extend(first);
                    }
                    Act::WakeAll(q) => {
                        queues.wake_all(ids[q]);
                        woken.extend(model[q].0.drain(..));
                    }
                    Act::Open(q) => {
                        queues.open(ids[q]);
                        woken.extend(model[q].0.drain(..));
                        model[q].1 = true;
                    }
                    Act::Close(q) => {
                        queues.close(ids[q]);
                        model[q].1 = false;
                    }
                    Act::Renew(q) if model[q].0.is_empty() => {
                        queues.remove(ids[q]);
                        ids[q] = queues.add();
                        model[q].1 = false;
                    }
                    Act::Renew(_) => {}
                }
                prop_assert_eq!(queues.has_woken(), !woken.is_empty());
                prop_assert_eq!(queues.take_woken().map(|t| t.0).collect::<Vec<_>>(), woken);
                for (id, (row, _)) in ids.iter().zip(&model) {
                    prop_assert_eq!(queues.is_empty(*id), row.is_empty());
                }
            }
        }
    }
}
