//! Programs: what processes and kernel drivers do, as a stream of operations.
//!
//! A program is asked for its next operation with the outcome of the last one. It knows nothing of the machine that
//! carries it out, so that the same benchmark can run on the simulated machine and on a real host.

use kontig_mm::{Gfp, Order, Pfn};

/// A stretch of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// The mapping, as numbered by the machine.
    pub mapping: u32,
    /// Its first page, counted from the mapping's start.
    pub first: u32,
    /// Its length in pages.
    pub pages: u32,
}

/// Something a program asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Map so many anonymous pages, aligned to 2 MiB; gives [`Value::Region`].
    Mmap {
        /// Length in pages.
        pages: u32,
    },
    /// `madvise(MADV_HUGEPAGE)` on the region.
    AdviseHuge(Region),
    /// Write to every page of the range once, in address order.
    Touch(Region),
    /// Unmap the range.
    Munmap(Region),
    /// A kernel driver's allocation; gives [`Value::Block`].
    AllocPages {
        /// Its flags.
        gfp: Gfp,
        /// Its order.
        order: Order,
    },
    /// A kernel driver splits its block into single pages.
    SplitPages {
        /// The block.
        pfn: Pfn,
        /// Its order.
        order: Order,
    },
    /// A kernel driver frees so many single pages from `pfn` on.
    FreePages {
        /// The first page.
        pfn: Pfn,
        /// How many.
        pages: u32,
    },
    /// Read `MemFree`; gives [`Value::Pages`], less what must stay above the high watermarks.
    FreeAboveHigh,
    /// Write a sysctl; `vm.compact_memory` returns when the compaction is done.
    Sysctl {
        /// Its name.
        name: String,
        /// The value.
        value: String,
    },
    /// Do nothing for so many nanoseconds.
    Sleep(u64),
    /// The program is done; what it holds stays held.
    Done,
}

/// What an operation gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Unit,
    /// A new mapping.
    Region(Region),
    /// A block, or `None` if the allocation failed.
    Block(Option<Pfn>),
    /// A number of pages.
    Pages(u64),
}

/// How an operation went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// What it gave.
    pub value: Value,
    /// When it began, ns.
    pub start_ns: u64,
    /// When it ended, ns.
    pub end_ns: u64,
}

impl Outcome {
    /// How long it took.
    pub fn latency_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// A process or driver. `Any`, so that whoever started one can look at what it has measured.
pub trait Program: std::any::Any + Send {
    /// The next operation, given the outcome of the last (at the start: nothing, at the starting time).
    fn next(&mut self, last: &Outcome) -> Op;

    /// How far it has come, 0 to 1.
    fn progress(&self) -> f64;
}
