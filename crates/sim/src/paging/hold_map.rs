//! Taking and releasing `mmap_lock`, for operations and for faults
//! ([`MmapLock`](crate::state::process::mmap_lock::MmapLock)).

use crate::base::id::{MappingId, ProcessId};
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::process::mmap_lock::FaultLock;

/// A memory map that an operation holds or is about to take.
#[derive(Clone)]
pub(crate) struct Hold {
    process: ProcessId,
    mode: Mode,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Free,
    Waits,
    Held,
}

impl Hold {
    /// Takes nothing yet; [`Hold::take`] acquires the lock in this mode.
    pub(crate) fn new(process: ProcessId, mode: Mode) -> Hold {
        Hold { process, mode, stage: Stage::Free }
    }

    /// Takes the lock, or returns the wait for it.
    pub(crate) fn take(&mut self, k: &mut Kernel) -> Option<Wait> {
        if self.stage == Stage::Free {
            let Kernel { pages, queues, .. } = k;
            if let Err(queue) = pages.spaces.lock(self.process).map.take(self.mode, queues) {
                self.stage = Stage::Waits;
                return Some(Wait::Queue(queue));
            }
        }
        // A task that waited was handed the lock.
        self.stage = Stage::Held;
        None
    }

    /// Lets readers in from now on, in kernels that do so.
    pub(crate) fn downgrade(&mut self, k: &mut Kernel) {
        if k.mem.profile().faults.unmaps_reading && self.mode == Mode::Write {
            let Kernel { pages, queues, .. } = k;
            pages.spaces.lock(self.process).map.downgrade(queues);
            self.mode = Mode::Read;
        }
    }

    pub(crate) fn give_back(&mut self, k: &mut Kernel) {
        debug_assert!(self.stage == Stage::Held);
        self.stage = Stage::Free;
        k.unlock_map(self.process, self.mode);
    }
}

impl Kernel {
    /// Removes a process that has ended, with its locks.
    pub(crate) fn remove_process(&mut self, process: ProcessId) {
        self.mem.lru_gen_del_mm(process);
        self.pages.spaces.remove_process(process).remove(&mut self.queues);
    }

    /// Whether a fault must wait for the lock.
    #[inline(always)]
    pub(crate) fn is_barred(&mut self, process: ProcessId, mapping: MappingId) -> bool {
        if self.mem.profile().faults.locks_mappings {
            self.pages.spaces.mapping(mapping).lock.is_closed && !self.is_map_open(process, Mode::Read)
        } else {
            !self.is_map_open(process, Mode::Read)
        }
    }

    /// Whether the lock could be taken in this mode now.
    #[inline(always)]
    pub(crate) fn is_map_open(&mut self, process: ProcessId, mode: Mode) -> bool {
        self.pages.spaces.lock(process).map.is_open(mode)
    }

    /// Takes the lock of a fault that takes time and is not barred.
    pub(crate) fn lock_fault(&mut self, process: ProcessId, mapping: MappingId) -> FaultLock {
        let locks_mappings = self.mem.profile().faults.locks_mappings;
        let lock = &mut self.pages.spaces.mapping(mapping).lock;
        if locks_mappings && !lock.is_closed {
            lock.faults += 1;
            return FaultLock::Mapping;
        }
        let is_open = self.try_lock_map(process, Mode::Read);
        debug_assert!(is_open, "it is not barred");
        FaultLock::Map
    }

    /// Takes the memory map for a fault, or returns the wait for it.
    pub(crate) fn wait_to_fault(&mut self, process: ProcessId) -> Option<Wait> {
        let Kernel { pages, queues, .. } = self;
        pages.spaces.lock(process).map.take(Mode::Read, queues).err().map(Wait::Queue)
    }

    /// Releases a fault's lock.
    pub(crate) fn unlock_fault(&mut self, process: ProcessId, mapping: MappingId, held: FaultLock) {
        if held == FaultLock::Map {
            return self.unlock_map(process, Mode::Read);
        }
        let lock = &mut self.pages.spaces.mapping(mapping).lock;
        lock.faults -= 1;
        if lock.faults == 0
            && lock.is_closed
            && let Some(queue) = self.pages.spaces.lock(process).faults_over
        {
            self.queues.wake_all(queue);
        }
    }

    /// Bars faults in a mapping; returns the wait until those in progress are over. The caller
    /// holds the memory map for writing.
    pub(crate) fn close_mapping(&mut self, process: ProcessId, mapping: MappingId) -> Option<Wait> {
        let lock = &mut self.pages.spaces.mapping(mapping).lock;
        lock.is_closed = true;
        (lock.faults > 0).then(|| {
            let Kernel { pages, queues, .. } = self;
            Wait::Queue(*pages.spaces.lock(process).faults_over.get_or_insert_with(|| queues.add()))
        })
    }

    /// Lets faults into a mapping again.
    pub(crate) fn open_mapping(&mut self, mapping: MappingId) {
        self.pages.spaces.mapping(mapping).lock.is_closed = false;
    }

    /// Takes a memory map if that needs no wait; whether it did.
    pub(crate) fn try_lock_map(&mut self, process: ProcessId, mode: Mode) -> bool {
        self.pages.spaces.lock(process).map.try_take(mode)
    }

    /// Releases a memory map.
    pub(crate) fn unlock_map(&mut self, process: ProcessId, mode: Mode) {
        let Kernel { pages, queues, .. } = self;
        pages.spaces.lock(process).map.give_back(mode, queues);
    }

    /// Charges the TLB flush on the other CPUs that run threads of the process.
    pub(crate) fn flush_tlb(&mut self, process: ProcessId, now: &mut u64) {
        if self.pages.spaces.is_running(process) {
            *now += crate::base::cost::ns(self.costs.tlb_shootdown);
        }
    }
}
