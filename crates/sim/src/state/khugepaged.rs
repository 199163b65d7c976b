//! khugepaged's state: the registered processes, and its counters.

use crate::base::queue::{QueueId, Queues};

/// Processes registered with khugepaged, and its counters.
#[derive(Clone, Default)]
pub(crate) struct Khugepaged {
    /// In the order of registration.
    pub(crate) processes: Vec<u32>,
    /// The queue it waits in while there are none; `None` on machines without it.
    pub(crate) queue: Option<QueueId>,
    pub(crate) counts: KhugepagedCounts,
}

/// Counters of khugepaged (`/sys/kernel/mm/transparent_hugepage/khugepaged`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KhugepagedCounts {
    /// `pages_collapsed`: huge pages made by collapse.
    pub pages_collapsed: u64,
    /// `full_scans`: completed scans of all processes.
    pub full_scans: u64,
}

impl Khugepaged {
    /// Registers a process that may have huge pages.
    pub(crate) fn enter(&mut self, process: u32, queues: &mut Queues) {
        let Some(queue) = self.queue else { return };
        if !self.processes.contains(&process) {
            self.processes.push(process);
            queues.wake_all(queue);
        }
    }

    /// Removes a process that has ended.
    pub(crate) fn exit(&mut self, process: u32) {
        self.processes.retain(|other| *other != process);
    }
}
