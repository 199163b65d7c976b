//! Operations on memory under pressure: allocations, and what is done to pages that reclaim can take.
//!
//! Each is one thing a kernel's user does: a file's page added to the page cache or read, a process's page touched. As
//! text it is a line (`read f0:1f 0 movable direct retry`), which a recording keeps together with what the kernel
//! answered (`= 1043f active workingset`); to the recorder's module it is a record of eight bytes, like those of other
//! traces. Numbers of pages are hexadecimal, all others decimal.

mod text;

use super::{BlockId, FAILED, Request, SKIPPED};
use kontig_mm::{Order, Pfn};
pub use text::{file_page, parse, parse_answered, process_page, write_answered};

/// Files a trace can name.
pub const MAX_FILES: u8 = 16;
/// Pages a file has at most.
pub const FILE_PAGES: u32 = 1 << FILE_SHIFT;
const FILE_SHIFT: u32 = 24;
/// In a record's flags, beside those of [`Request`]: from zone DMA32 or below.
const DMA32: u16 = 256;

/// A page of a file, by its number in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct FilePage {
    /// Which file.
    pub file: u8,
    /// Which page of it.
    pub index: u32,
}

/// A page of the process's memory, by its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ProcessPage(pub u32);

/// What an operation may do to get its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asks {
    /// Of which type, and how.
    pub request: Request,
    /// From zone DMA32 or below (`__GFP_DMA32`, without `__GFP_HIGHMEM`).
    pub dma32: bool,
}

impl From<Request> for Asks {
    fn from(request: Request) -> Asks {
        Asks { request, dma32: false }
    }
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LruOp {
    /// `alloc`: a block; skipped if the number is taken.
    Alloc {
        /// What it is remembered under.
        id: BlockId,
        /// Its size.
        order: Order,
        /// What it may do.
        asks: Asks,
    },
    /// `free`: of a block; skipped if it is not held.
    Free(BlockId),
    /// `add`: a new page or folio of a file, as readahead adds it; skipped if there is one.
    Add {
        /// Which; of a folio the first that is touched.
        page: FilePage,
        /// The folio's size.
        order: Order,
        /// What it may do.
        asks: Asks,
    },
    /// `read`: marked as accessed; added before, if it is not there.
    Read {
        /// Which.
        page: FilePage,
        /// The folio's size, if it is added.
        order: Order,
        /// What it may do.
        asks: Asks,
    },
    /// `touch`: marked as accessed, if it is there (`mark_page_accessed`).
    Touch(FilePage),
    /// `truncate`: the pages of one folio are removed from the file, without shadows; skipped if it is not there or under
    /// writeback.
    Truncate {
        /// The first.
        page: FilePage,
        /// How many.
        order: Order,
    },
    /// `dirty`: marked as changed.
    Dirty(FilePage),
    /// `writeback`: a flusher begins to write it, if it is dirty.
    Writeback(FilePage),
    /// `written`: its writing ends, if it was under writeback.
    Written(FilePage),
    /// `finish`: so many of the pages that reclaim has begun to write on slow devices are written, oldest first.
    Finish(u32),
    /// `device`: what becomes of a file's page that reclaim writes: `fast`: it is written at once, `slow`: with `finish`.
    Device {
        /// Whose.
        file: u8,
        /// Whether it is slow.
        slow: bool,
    },
    /// `load`: the process reads a byte of the page.
    Load(ProcessPage),
    /// `store`: the process writes a byte of the page.
    Store(ProcessPage),
    /// `drop`: the process gives the page back (`MADV_DONTNEED`).
    Drop(ProcessPage),
    /// `object`: a page is added to the cache that a shrinker empties, oldest first.
    Object(Asks),
    /// `drain`: what the CPU has collected for the lists is put on them (`lru_add_drain`).
    Drain,
    /// `wait`: until the node's daemons sleep.
    Wait,
    /// `dump`: the state at this point is recorded, as `d0`, `d1` and so on.
    Dump,
}

/// What became of a page, as an answer says it.
const SAYS: [(u32, &str); 7] = [
    (1 << 24, "shadow"),
    (1 << 25, "present"),
    (1 << 26, "active"),
    (1 << 27, "workingset"),
    (1 << 28, "referenced"),
    (1 << 29, "dirty"),
    (1 << 30, "writeback"),
];
const PFN: u32 = (1 << 24) - 1;

/// What the kernel answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// There was no memory.
    Failed,
    /// There was nothing to do it to.
    Skipped,
    /// Done; there is nothing to say.
    Done,
    /// So many (`finish`), or the number of the state (`dump`).
    Number(u32),
    /// The page, and what it was found to be afterwards (`truncate`, `drop`: before).
    Page(Page),
}

/// A page in an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    pfn: u32,
    says: u32,
}

impl Answer {
    /// A page of which nothing is to be said.
    pub const fn of_page(pfn: Pfn) -> Answer {
        Answer::Page(Page { pfn: pfn.get(), says: 0 })
    }
}

impl Page {
    /// A page that was found to be all this, by the words of an answer; what is no such word says nothing.
    pub fn new(pfn: Pfn, words: &[&str]) -> Page {
        let bit = |word: &&str| SAYS.iter().find(|(_, name)| name == word).map_or(0, |(bit, _)| *bit);
        Page { pfn: pfn.get(), says: words.iter().map(bit).sum() }
    }
    /// Its number; a folio's is its first page's.
    pub fn pfn(self) -> Pfn {
        Pfn::new(self.pfn)
    }
    fn says(self, word: &str) -> bool {
        SAYS.iter().any(|(bit, name)| *name == word && self.says & bit != 0)
    }
    /// A page added: its shadow was found. A process's page: it was in swap.
    pub fn had_shadow(self) -> bool {
        self.says("shadow")
    }
    /// `PG_active`: on an active list, or meant for one.
    pub fn is_active(self) -> bool {
        self.says("active")
    }
    /// `PG_workingset`.
    pub fn is_workingset(self) -> bool {
        self.says("workingset")
    }
    /// `PG_dirty`.
    pub fn is_dirty(self) -> bool {
        self.says("dirty")
    }
}

impl LruOp {
    /// The name it is written with.
    pub const fn name(&self) -> &'static str {
        match self {
            LruOp::Alloc { .. } => "alloc",
            LruOp::Free(_) => "free",
            LruOp::Add { .. } => "add",
            LruOp::Read { .. } => "read",
            LruOp::Touch(_) => "touch",
            LruOp::Truncate { .. } => "truncate",
            LruOp::Dirty(_) => "dirty",
            LruOp::Writeback(_) => "writeback",
            LruOp::Written(_) => "written",
            LruOp::Finish(_) => "finish",
            LruOp::Device { .. } => "device",
            LruOp::Load(_) => "load",
            LruOp::Store(_) => "store",
            LruOp::Drop(_) => "drop",
            LruOp::Object(_) => "object",
            LruOp::Drain => "drain",
            LruOp::Wait => "wait",
            LruOp::Dump => "dump",
        }
    }

    /// The record the module reads.
    fn record(&self) -> [u8; 8] {
        let at = |p: FilePage| u32::from(p.file) << FILE_SHIFT | p.index;
        let flags = |a: Asks| a.request.flags() | if a.dma32 { DMA32 } else { 0 };
        let (code, order, flags, id) = match *self {
            LruOp::Alloc { id, order, asks } => (1, order, flags(asks), id.0),
            LruOp::Free(id) => (2, Order::ZERO, 0, id.0),
            LruOp::Add { page, order, asks } => (3, order, flags(asks), at(page)),
            LruOp::Read { page, order, asks } => (4, order, flags(asks), at(page)),
            LruOp::Touch(page) => (5, Order::ZERO, 0, at(page)),
            LruOp::Truncate { page, order } => (6, order, 0, at(page)),
            LruOp::Dirty(page) => (7, Order::ZERO, 0, at(page)),
            LruOp::Writeback(page) => (8, Order::ZERO, 0, at(page)),
            LruOp::Written(page) => (9, Order::ZERO, 0, at(page)),
            LruOp::Finish(n) => (10, Order::ZERO, 0, n),
            LruOp::Device { file, slow } => (11, Order::ZERO, 0, at(FilePage { file, index: u32::from(slow) })),
            LruOp::Load(ProcessPage(i)) => (16, Order::ZERO, 0, i),
            LruOp::Store(ProcessPage(i)) => (17, Order::ZERO, 0, i),
            LruOp::Drop(ProcessPage(i)) => (18, Order::ZERO, 0, i),
            LruOp::Object(asks) => (24, Order::ZERO, flags(asks), 0),
            LruOp::Drain => (25, Order::ZERO, 0, 0),
            LruOp::Wait => (26, Order::ZERO, 0, 0),
            LruOp::Dump => (27, Order::ZERO, 0, 0),
        };
        let ([f0, f1], [i0, i1, i2, i3]) = (flags.to_le_bytes(), id.to_le_bytes());
        [code, order.get(), f0, f1, i0, i1, i2, i3]
    }

    /// What a word of the module's results says about it.
    fn answer(&self, word: u32) -> Answer {
        match (self, word) {
            (_, FAILED) => Answer::Failed,
            (_, SKIPPED) => Answer::Skipped,
            (LruOp::Drain | LruOp::Wait | LruOp::Device { .. }, _) => Answer::Done,
            (LruOp::Finish(_) | LruOp::Dump, n) => Answer::Number(n),
            (_, word) => Answer::Page(Page { pfn: word & PFN, says: word & !PFN }),
        }
    }
}

/// The records the module carries out.
pub fn encode(ops: &[LruOp]) -> Vec<u8> {
    ops.iter().flat_map(LruOp::record).collect()
}
