//! Waits for pages under I/O, and the engine's waits ([`kontig_mm::Wait`]) as this machine's.
//!
//! A sleeping daemon is an open gate, and a full queue is waited for at its device.

use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::file::Flags;
use kontig_mm::{Daemon, Pfn, Step};

impl Kernel {
    /// The machine's wait for one of the engine's. From the first wait for writeback on, the node's
    /// written pages are counted.
    pub(crate) fn wait_for(&mut self, wait: kontig_mm::Wait) -> Wait {
        match wait {
            kontig_mm::Wait::Wakeup => Wait::Wakeup,
            kontig_mm::Wait::Time(ns) => Wait::Time(ns),
            kontig_mm::Wait::Daemon(daemon) => Wait::Queue(self.daemons.rest_of(daemon)),
            kontig_mm::Wait::Throttled { node, at_most_ns } => {
                let rest = self.daemons.rest_of(Daemon::Kswapd(node));
                at_most_ns.map_or(Wait::Queue(rest), |ns| Wait::QueueAtMost(rest, ns))
            }
            kontig_mm::Wait::Congestion { at_most_ns } => match self.pages.devices.full() {
                Some(room) => Wait::QueueAtMost(room, at_most_ns),
                None => Wait::Time(at_most_ns),
            },
            kontig_mm::Wait::Written { node, at_most_ns } => {
                Wait::QueueAtMost(self.daemons.written(node, &self.queues), at_most_ns)
            }
            kontig_mm::Wait::Io => unreachable!("reclaim leaves pages that are being read or written"),
        }
    }

    /// A step of reclaim that has filled a disk's queue waits until the queue has room.
    pub(crate) fn wait_for_room<T>(&mut self, step: Step<T, Wait>) -> Step<T, Wait> {
        match (self.pages.full.take(), step) {
            (Some(disk), Step::Working) => Step::Wait(Wait::Io(self.pages.devices.room(disk))),
            (_, step) => step,
        }
    }

    /// A wait until the page is neither being read nor written. The caller checks again afterwards.
    pub(crate) fn wait_for_page(&mut self, pfn: Pfn) -> Wait {
        self.pages.frames.set(pfn, Flags::WAITERS);
        Wait::Io(self.pages.waiters.of(pfn))
    }

    /// Wakes the tasks that wait for the page.
    pub(crate) fn wake_waiters(&mut self, pfn: Pfn) {
        if self.pages.frames.clear(pfn, Flags::WAITERS) {
            self.queues.wake_all(self.pages.waiters.of(pfn));
        }
    }
}
