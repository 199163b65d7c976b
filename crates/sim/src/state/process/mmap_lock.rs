//! The lock of a memory map (`mmap_lock`): mapping and unmapping hold it for writing, faults for
//! reading.
//!
//! A quick fault begins and ends while no other task has a turn, so it only checks that the lock is
//! open. One that takes time holds it, except while it waits for a page to be read. By the
//! profile's rule it holds its mapping's lock instead; if the mapping is being unmapped, it waits
//! for the memory map as it would without the rule. Source: kernel-behaviour §4.9.

use crate::base::queue::{QueueId, Queues};
use crate::base::rw_lock::RwLock;

#[derive(Clone, Default)]
pub(crate) struct MmapLock {
    pub(crate) map: RwLock,
    /// Queue of tasks that wait for the last fault in a mapping to end; made on first use.
    pub(crate) faults_over: Option<QueueId>,
}

impl MmapLock {
    /// Removes the lock of a process that has ended.
    pub(crate) fn remove(self, queues: &mut Queues) {
        self.map.remove(queues);
        self.faults_over.into_iter().for_each(|queue| queues.remove(queue));
    }
}

/// The lock of a mapping.
#[derive(Clone, Copy, Default)]
pub(crate) struct MappingLock {
    /// Faults in progress that take time.
    pub(crate) faults: u32,
    /// Whether it is being unmapped or changed.
    pub(crate) is_closed: bool,
}

/// The lock that a fault holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultLock {
    /// The memory map of its process.
    Map,
    Mapping,
}
