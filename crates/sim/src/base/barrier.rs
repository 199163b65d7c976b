//! Barriers: tasks wait until a given number have arrived, and go on together
//! (`pthread_barrier_wait`).
//!
//! Programs name a barrier by a number, and give its size at every arrival. It exists while a task
//! waits at it, so that the number can be used again, with any size.

use crate::base::queue::{QueueId, Queues};
use std::collections::BTreeMap;

/// A barrier with waiting tasks.
#[derive(Clone)]
struct Barrier {
    parties: u32,
    waiting: u32,
    queue: QueueId,
}

/// Barriers with waiting tasks, by number.
#[derive(Clone, Default)]
pub(crate) struct Barriers {
    barriers: BTreeMap<u32, Barrier>,
}

/// The result of arriving at a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// The last to arrive: all others have been woken.
    Last,
    /// Wait in this queue.
    Wait(QueueId),
    /// The tasks waiting there gave another size, or the size is 0.
    WrongSize,
}

impl Barriers {
    /// A task arrives at a barrier for `parties` tasks.
    pub(crate) fn arrive(&mut self, number: u32, parties: u32, queues: &mut Queues) -> Arrival {
        if parties <= 1 {
            return if parties == 1 { Arrival::Last } else { Arrival::WrongSize };
        }
        let new = || Barrier { parties, waiting: 0, queue: queues.add() };
        let barrier = self.barriers.entry(number).or_insert_with(new);
        if barrier.parties != parties {
            return Arrival::WrongSize;
        }
        if barrier.waiting + 1 < parties {
            barrier.waiting += 1;
            return Arrival::Wait(barrier.queue);
        }
        let queue = barrier.queue;
        self.barriers.remove(&number);
        queues.wake_all(queue);
        queues.remove(queue);
        Arrival::Last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::TaskId;

    #[test]
    fn the_last_who_comes_wakes_all_others_and_the_barrier_can_be_used_again() {
        let (mut barriers, mut queues) = (Barriers::default(), Queues::default());
        for parties in [3, 3, 2, 5] {
            for task in 1..parties {
                let Arrival::Wait(queue) = barriers.arrive(7, parties, &mut queues) else {
                    panic!("it is not the last")
                };
                queues.join(queue, TaskId(task));
            }
            assert_eq!(barriers.arrive(7, parties + 1, &mut queues), Arrival::WrongSize);
            assert!(!queues.has_woken());
            assert_eq!(barriers.arrive(7, parties, &mut queues), Arrival::Last);
            assert_eq!(queues.take_woken().map(|t| t.0).collect::<Vec<_>>(), (1..parties).collect::<Vec<_>>());
        }
        assert_eq!(barriers.arrive(7, 1, &mut queues), Arrival::Last);
        assert_eq!(barriers.arrive(7, 0, &mut queues), Arrival::WrongSize);
    }
}
