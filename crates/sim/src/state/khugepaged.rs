//! What khugepaged knows: the processes that may have huge pages, and what it has made of them.

use crate::base::queue::{QueueId, Queues};

/// The processes that may have huge pages, and what has been made of them.
#[derive(Clone, Default)]
pub(crate) struct Khugepaged {
    /// In the order in which they first could.
    pub(crate) processes: Vec<u32>,
    /// Where it waits while there are none; `None` on machines without it.
    pub(crate) queue: Option<QueueId>,
    pub(crate) counts: KhugepagedCounts,
}

/// What khugepaged has done (`/sys/kernel/mm/transparent_hugepage/khugepaged`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KhugepagedCounts {
    /// `pages_collapsed`: huge pages made.
    pub pages_collapsed: u64,
    /// `full_scans`: times it has been through all processes.
    pub full_scans: u64,
}

impl Khugepaged {
    /// A process may have huge pages.
    pub(crate) fn enter(&mut self, process: u32, queues: &mut Queues) {
        let Some(queue) = self.queue else { return };
        if !self.processes.contains(&process) {
            self.processes.push(process);
            queues.wake_all(queue);
        }
    }

    /// A process is gone.
    pub(crate) fn exit(&mut self, process: u32) {
        self.processes.retain(|other| *other != process);
    }
}
