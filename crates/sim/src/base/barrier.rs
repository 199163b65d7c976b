//! Barriers: tasks wait until so many have come, and then go on together (`pthread_barrier_wait`).
//!
//! Programs name a barrier by a number, and say how many it is for whenever they come to it. It is there while somebody
//! waits at it, so a number can be used again, for as many as one likes.

use crate::base::queue::{QueueId, Queues};
use std::collections::BTreeMap;

/// A barrier at which somebody waits.
#[derive(Clone)]
struct Barrier {
    parties: u32,
    waiting: u32,
    queue: QueueId,
}

/// Every barrier at which somebody waits, by its number.
#[derive(Clone, Default)]
pub(crate) struct Barriers {
    barriers: BTreeMap<u32, Barrier>,
}

/// What a task finds that comes to a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It is the last: all others have been woken.
    Last,
    /// It is to wait in this queue.
    Wait(QueueId),
    /// Those who wait take the barrier for one of another size, or it is for nobody.
    WrongSize,
}

impl Barriers {
    /// A task comes to a barrier that is for so many.
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
