//! Identifiers of tasks, processes, mappings and their pages.

use kontig_mm::Pfn;

/// A task of the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TaskId(pub(crate) u32);

impl TaskId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A process number. Every program is a process; a driver is one that maps nothing.
pub(crate) type ProcessId = u32;

/// The number of a mapping among those of all processes. Regions use its number in its process
/// instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappingId(pub(crate) u32);

/// A page of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) mapping: MappingId,
    pub(crate) page: u32,
}

/// A stretch of a mapping: a region that the process is known to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) mapping: MappingId,
    pub(crate) first: u32,
    pub(crate) pages: u32,
}

/// A page in a process's mapping.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UserPage {
    /// The number of the process's address space.
    pub process: u32,
    /// The mapping's number in the process's regions.
    pub mapping: u32,
    /// The page, counted from the mapping's start.
    pub page: u32,
}

/// The location of a process's page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PageLocation {
    Memory(Pfn),
    /// In this slot of swap, and perhaps in memory, too.
    Swap(u32),
}
