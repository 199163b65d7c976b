//! Timers: what happens at a time by itself, without a task's turn.
//!
//! Events happen in the order of their times, and those of one time in the order in which they were asked for. A turn
//! ends when the next one is due.

use crate::base::id::TaskId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens at its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    /// A task that was woken wants the CPU.
    Woken(TaskId),
    /// A device may be through with something.
    IoDone(u8),
}

/// Events still to come.
#[derive(Clone, Default)]
pub(crate) struct Timers {
    /// By time, then by number: the events of one time are in the order they were asked for.
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// The number of the next event asked for.
    next_number: u64,
}

impl Timers {
    /// The event happens at this time.
    pub(crate) fn at(&mut self, ns: u64, event: Event) {
        self.heap.push(Reverse((ns, self.next_number, event)));
        self.next_number += 1;
    }

    /// When the next event happens; the greatest time if there is none.
    #[inline(always)]
    pub(crate) fn next_at(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((at, ..))| *at)
    }

    /// Takes out the next event.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

/// A tick of the timer, where `HZ` is 250: what Debian's kernels have.
pub(crate) const JIFFY_NS: u64 = 4_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_by_time_and_then_in_the_order_they_were_asked_for() {
        let mut timers = Timers::default();
        assert_eq!((timers.next_at(), timers.pop()), (u64::MAX, None));
        for (at, task) in [(7, 3), (5, 9), (7, 1), (5, 2), (6, 0)] {
            timers.at(at, Event::Woken(TaskId(task)));
        }
        assert_eq!(timers.next_at(), 5);
        let order: Vec<_> = std::iter::from_fn(|| timers.pop()).collect();
        assert_eq!(order, [(5, 9), (5, 2), (6, 0), (7, 3), (7, 1)].map(|(at, t)| (at, Event::Woken(TaskId(t)))));
    }
}
