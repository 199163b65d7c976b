//! Timers: events at a given time, outside any task's turn.
//!
//! Events happen in the order of their times, then in the order in which they were added. A turn
//! ends when the next one is due.

use crate::base::id::TaskId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    /// A woken task becomes runnable.
    Woken(TaskId),
    /// A device may have completed a request.
    IoDone(u8),
}

#[derive(Clone, Default)]
pub(crate) struct Timers {
    /// By time, then by the order of addition.
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Number of the next event added.
    next_number: u64,
}

impl Timers {
    /// Adds an event at this time.
    pub(crate) fn at(&mut self, ns: u64, event: Event) {
        self.heap.push(Reverse((ns, self.next_number, event)));
        self.next_number += 1;
    }

    /// Time of the next event; the greatest time if there is none.
    #[inline(always)]
    pub(crate) fn next_at(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((at, ..))| *at)
    }

    /// Removes the next event.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

/// A tick of the timer with `HZ` at 250, as in Debian's kernels.
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
