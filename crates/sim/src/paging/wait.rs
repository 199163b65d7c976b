//! What the engine waits for, as waits of this machine.
//!
//! The engine says what it waits for in its own words ([`kontig_mm::Wait`]). A daemon's rest is a gate that is open while it
//! rests, and a full queue is waited for where it makes room.

use crate::base::wait::Wait;
use crate::kernel::Kernel;
use kontig_mm::{Daemon, Step};

impl Kernel {
    /// What the engine waits for, on this machine. Pages that are written are counted from when the first waits for that.
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

    /// What a step of reclaim waits for: who has filled a disk's queue waits until there is room in it again.
    pub(crate) fn wait_for_room<T>(&mut self, step: Step<T, Wait>) -> Step<T, Wait> {
        match (self.pages.full.take(), step) {
            (Some(disk), Step::Working) => Step::Wait(Wait::Io(self.pages.devices.room(disk))),
            (_, step) => step,
        }
    }
}
