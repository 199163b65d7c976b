//! The lock of a memory map (`mmap_lock`): what maps and unmaps holds it alone, what faults holds it with others.
//!
//! A fault that is quick begins and ends while no other task has its turn, so it only looks whether the lock is open. One
//! that takes its time holds it, but not while it waits for a page that is being read. By the profile's rule it holds its
//! mapping instead; if that is being unmapped it waits for the memory map, as it would without the rule.
//! Source: kernel-behaviour §4.9.

use crate::base::queue::{QueueId, Queues};
use crate::base::rw_lock::RwLock;

/// A process's lock.
#[derive(Clone, Default)]
pub(crate) struct MmapLock {
    pub(crate) map: RwLock,
    /// Queue of those that wait for the last fault in a mapping to end; made on first use.
    pub(crate) faults_over: Option<QueueId>,
}

impl MmapLock {
    /// The process is gone.
    pub(crate) fn remove(self, queues: &mut Queues) {
        self.map.remove(queues);
        self.faults_over.into_iter().for_each(|queue| queues.remove(queue));
    }
}

/// What is known of the lock of a mapping.
#[derive(Clone, Copy, Default)]
pub(crate) struct MappingLock {
    /// Faults that take their time.
    pub(crate) faults: u32,
    /// It is being unmapped, or changed.
    pub(crate) is_closed: bool,
}

/// What a fault holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultLock {
    /// The memory map of its process.
    Map,
    /// Its mapping.
    Mapping,
}
