//! Names and places: what tasks, processes, mappings and their pages are called everywhere.

use kontig_mm::Pfn;

/// A task of the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TaskId(pub(crate) u32);

impl TaskId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a process. Every program is a process; a driver is one that maps nothing.
pub(crate) type ProcessId = u32;

/// The number of a mapping among those of all processes. Regions name it otherwise: by its number in its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappingId(pub(crate) u32);

/// A page of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) mapping: MappingId,
    pub(crate) page: u32,
}

/// A stretch of a mapping: a region of which it is known that its process has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) mapping: MappingId,
    pub(crate) first: u32,
    pub(crate) pages: u32,
}

/// A page that a process has mapped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UserPage {
    /// The process, by the number of its address space.
    pub process: u32,
    /// The mapping, as the process's regions name it.
    pub mapping: u32,
    /// The page, counted from the mapping's start.
    pub page: u32,
}

/// Where a process's page is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PageLocation {
    /// In a frame, and nowhere else.
    Memory(Pfn),
    /// It has a place of this number in swap, and is perhaps in memory, too.
    Swap(u32),
}
