//! A memory map that an operation or a fault holds, or waits for ([`MmapLock`](crate::state::process::mmap_lock::MmapLock)).

use crate::base::id::{MappingId, ProcessId};
use crate::base::rw_lock::Mode;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use crate::state::process::mmap_lock::FaultLock;

/// A memory map that an operation holds, or is about to.
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
    /// Not taken yet; [`Hold::take`] acquires it in this mode.
    pub(crate) fn new(process: ProcessId, mode: Mode) -> Hold {
        Hold { process, mode, stage: Stage::Free }
    }

    /// Takes it; what has to be waited for first.
    pub(crate) fn take(&mut self, k: &mut Kernel) -> Option<Wait> {
        if self.stage == Stage::Free {
            let Kernel { pages, queues, .. } = k;
            if let Err(queue) = pages.spaces.lock(self.process).map.take(self.mode, queues) {
                self.stage = Stage::Waits;
                return Some(Wait::Queue(queue));
            }
        }
        // Who waited has it.
        self.stage = Stage::Held;
        None
    }

    /// From now on others may read, too, if the kernel does so.
    pub(crate) fn downgrade(&mut self, k: &mut Kernel) {
        if k.mem.profile().faults.unmaps_reading && self.mode == Mode::Write {
            let Kernel { pages, queues, .. } = k;
            pages.spaces.lock(self.process).map.downgrade(queues);
            self.mode = Mode::Read;
        }
    }

    /// Gives it back.
    pub(crate) fn give_back(&mut self, k: &mut Kernel) {
        debug_assert!(self.stage == Stage::Held);
        self.stage = Stage::Free;
        k.unlock_map(self.process, self.mode);
    }
}

impl Kernel {
    /// A process is gone, and all that it had.
    pub(crate) fn remove_process(&mut self, process: ProcessId) {
        self.pages.spaces.remove_process(process).remove(&mut self.queues);
    }

    /// Whether a fault has to wait for the lock.
    #[inline(always)]
    pub(crate) fn is_barred(&mut self, process: ProcessId, mapping: MappingId) -> bool {
        if self.mem.profile().faults.locks_mappings {
            self.pages.spaces.mapping(mapping).lock.is_closed && !self.is_map_open(process, Mode::Read)
        } else {
            !self.is_map_open(process, Mode::Read)
        }
    }

    /// Whether one who asks for a memory map gets it.
    #[inline(always)]
    pub(crate) fn is_map_open(&mut self, process: ProcessId, mode: Mode) -> bool {
        self.pages.spaces.lock(process).map.is_open(mode)
    }

    /// A fault begins to take its time, and is not barred.
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

    /// A fault waits for the lock of its memory map; where.
    pub(crate) fn wait_to_fault(&mut self, process: ProcessId) -> Option<Wait> {
        let Kernel { pages, queues, .. } = self;
        pages.spaces.lock(process).map.take(Mode::Read, queues).err().map(Wait::Queue)
    }

    /// A fault holds the lock no longer.
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

    /// Nobody faults in a mapping from now on; what has to be waited for until nobody does. Who asks holds the memory map
    /// alone.
    pub(crate) fn close_mapping(&mut self, process: ProcessId, mapping: MappingId) -> Option<Wait> {
        let lock = &mut self.pages.spaces.mapping(mapping).lock;
        lock.is_closed = true;
        (lock.faults > 0).then(|| {
            let Kernel { pages, queues, .. } = self;
            Wait::Queue(*pages.spaces.lock(process).faults_over.get_or_insert_with(|| queues.add()))
        })
    }

    /// A mapping may be faulted in again.
    pub(crate) fn open_mapping(&mut self, mapping: MappingId) {
        self.pages.spaces.mapping(mapping).lock.is_closed = false;
    }

    /// Takes a memory map if it is open, and says whether it was.
    pub(crate) fn try_lock_map(&mut self, process: ProcessId, mode: Mode) -> bool {
        self.pages.spaces.lock(process).map.try_take(mode)
    }

    /// Gives a memory map back.
    pub(crate) fn unlock_map(&mut self, process: ProcessId, mode: Mode) {
        let Kernel { pages, queues, .. } = self;
        pages.spaces.lock(process).map.give_back(mode, queues);
    }

    /// Other CPUs that run threads of a process forget what they know of its page tables.
    pub(crate) fn flush_tlb(&mut self, process: ProcessId, now: &mut u64) {
        if self.pages.spaces.is_running(process) {
            *now += crate::base::cost::ns(self.costs.tlb_shootdown);
        }
    }
}
