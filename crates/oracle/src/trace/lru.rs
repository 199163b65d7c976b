//! Operations of a trace under memory pressure: allocations, and accesses to reclaimable pages.
//!
//! An operation adds a file's page to the page cache, reads it, touches a process's page and so on.
//! As text it is a line (`read f0:1f 0 movable direct retry`), kept in a recording with the
//! kernel's answer (`= 1043f active workingset`). For the recorder's module it is a record of eight
//! bytes, as in other traces. Page numbers are hexadecimal, all others decimal.

mod text;

use super::{BlockId, FAILED, Request, SKIPPED};
use kontig_mm::{GroupId, GroupLimit, NodeId, NodeSet, Order, Pfn};
pub use text::{file_page, parse, parse_answered, process_page, write_answered};

/// CPUs of a machine with the most of them.
pub const MAX_CPUS: u8 = 4;
/// Nodes that a trace can name, from node 1 on.
pub const MAX_NODES: u8 = 4;
/// Files a trace can name.
pub const MAX_FILES: u8 = 16;
/// Most pages of a file.
pub const FILE_PAGES: u32 = 1 << FILE_SHIFT;
const FILE_SHIFT: u32 = 24;
const NODE_SHIFT: u32 = 8;
/// Flag of a record besides those of [`Request`]: zone DMA32 or below.
const DMA32: u16 = 256;

/// A page of a file, by its number in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct FilePage {
    pub file: u8,
    pub index: u32,
}

/// A page of the process's memory, by its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ProcessPage(pub u32);

/// How an operation allocates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asks {
    pub request: Request,
    /// From zone DMA32 or below (`__GFP_DMA32`, without `__GFP_HIGHMEM`).
    pub dma32: bool,
}

impl From<Request> for Asks {
    fn from(request: Request) -> Asks {
        Asks { request, dma32: false }
    }
}

/// An operation under memory pressure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LruOp {
    /// `alloc`: allocates a block; skipped if the id is held.
    Alloc { id: BlockId, order: Order, asks: Asks },
    /// `free`: frees a block; skipped if it is not held.
    Free(BlockId),
    /// `add`: adds a page or folio to a file as readahead does; skipped if it is cached.
    Add {
        /// The page; for a folio, the page that is accessed first.
        page: FilePage,
        order: Order,
        asks: Asks,
    },
    /// `read`: marks a page as accessed, adding it first if it is not cached.
    Read {
        page: FilePage,
        /// Order of the folio, if one is added.
        order: Order,
        asks: Asks,
    },
    /// `touch`: `mark_page_accessed`, if the page is cached.
    Touch(FilePage),
    /// `truncate`: removes the pages of a folio from the file, without shadows; skipped if it is
    /// not cached or under writeback.
    Truncate { page: FilePage, order: Order },
    /// `dirty`: sets the page dirty.
    Dirty(FilePage),
    /// `writeback`: a flusher starts writing the page, if it is dirty.
    Writeback(FilePage),
    /// `written`: ends its writeback, if it was under writeback.
    Written(FilePage),
    /// `finish`: completes the writes of this many pages that reclaim started on slow devices,
    /// oldest first.
    Finish(u32),
    /// `device`: sets when a page of the file that reclaim writes is done: `fast` at once, `slow`
    /// with `finish`.
    Device { file: u8, slow: bool },
    /// `load`: the process reads a byte of the page.
    Load(ProcessPage),
    /// `store`: the process writes a byte of the page.
    Store(ProcessPage),
    /// `drop`: the process gives the page back (`MADV_DONTNEED`).
    Drop(ProcessPage),
    /// `object`: adds a page to the cache that a shrinker empties, oldest first.
    Object(Asks),
    /// `drain`: puts the CPU's batches onto the lists (`lru_add_drain`).
    Drain,
    /// `cpu`: what follows runs on this CPU. The first operations run on CPU 0.
    Cpu(u8),
    /// `drain-all`: puts the batches of every CPU onto the lists (`lru_add_drain_all`).
    DrainAll,
    /// `drain-pages`: gives back the pages on every CPU's lists of free ones (`drain_all_pages`).
    DrainPages,
    /// `fold`: adds this CPU's parts of counters to them, as it does once a second.
    Fold,
    /// `node`: what follows asks this node alone, or prefers it and may use all of `allowed`. The
    /// first operations ask node 1 alone.
    Node {
        prefers: NodeId,
        /// Empty for the preferred node alone.
        allowed: NodeSet,
    },
    /// `wait`: waits until the node's daemons sleep.
    Wait,
    /// `dump`: records the state as `d0`, `d1` and so on.
    Dump,
    /// `age`: has the multi-generational LRU begin a generation, also if there are four (`force`).
    Age { swappiness: Swappiness, force: bool },
    /// `evict`: has it evict the oldest generations until this many pages are reclaimed.
    Evict {
        /// Generations beyond the oldest of files.
        beyond: Order,
        swappiness: Swappiness,
        /// Pages that are reclaimed at most, fewer than 2^24.
        pages: u32,
    },
    /// `enter`: moves the process into a memory control group, which what follows is charged to.
    Enter(GroupId),
    /// `limit`: writes a group's `memory.max`, `high`, `low` or `min`.
    Limit {
        group: GroupId,
        limit: GroupLimit,
        /// Fewer than [`NO_LIMIT`]; `None` for none.
        pages: Option<u32>,
    },
    /// `flush`: adds up the CPUs' parts of the groups' counters, as the kernel does every two
    /// seconds.
    Flush,
}

/// Most groups a trace can name, the root included.
pub const MAX_GROUPS: u16 = 512;
/// The pages that stand for no limit in a record.
pub const NO_LIMIT: u32 = (1 << GROUP_SHIFT) - 1;
const GROUP_SHIFT: u32 = 20;

/// The swappiness of a command: its own, or the machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Swappiness(Option<u8>);

impl Swappiness {
    /// The value of `vm.swappiness`.
    pub const OF_MACHINE: Swappiness = Swappiness(None);
    /// The largest that there is.
    pub const MAX: u8 = 200;
    /// The machine's, in a record.
    const NONE: u8 = u8::MAX;
    const SHIFT: u32 = 24;

    /// A swappiness of its own, up to [`Swappiness::MAX`].
    pub const fn new(value: u8) -> Swappiness {
        Swappiness(Some(value))
    }
    /// `None` for the machine's.
    pub const fn own(self) -> Option<u8> {
        self.0
    }
}

/// Words of an answer about a page.
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

/// Answer of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// There was no memory.
    Failed,
    /// The operation had no object.
    Skipped,
    /// Done, without a result.
    Done,
    /// Number of pages (`finish`), of the state (`dump`), or of an error (`age`, `evict`, `enter`,
    /// `limit`).
    Number(u32),
    /// The page and its flags afterwards; for `truncate` and `drop`, before.
    Page(Page),
}

/// A page in an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    pfn: u32,
    says: u32,
}

impl Answer {
    /// A page without flags.
    pub const fn of_page(pfn: Pfn) -> Answer {
        Answer::Page(Page { pfn: pfn.get(), says: 0 })
    }
}

impl Page {
    /// A page with the flags of these words; unknown words are ignored.
    pub fn new(pfn: Pfn, words: &[&str]) -> Page {
        let bit = |word: &&str| SAYS.iter().find(|(_, name)| name == word).map_or(0, |(bit, _)| *bit);
        Page { pfn: pfn.get(), says: words.iter().map(bit).sum() }
    }
    /// Its pfn; for a folio, that of the first page.
    pub fn pfn(self) -> Pfn {
        Pfn::new(self.pfn)
    }
}

impl LruOp {
    /// Its name in text.
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
            LruOp::Cpu(_) => "cpu",
            LruOp::DrainAll => "drain-all",
            LruOp::DrainPages => "drain-pages",
            LruOp::Fold => "fold",
            LruOp::Node { .. } => "node",
            LruOp::Wait => "wait",
            LruOp::Dump => "dump",
            LruOp::Age { .. } => "age",
            LruOp::Evict { .. } => "evict",
            LruOp::Enter(_) => "enter",
            LruOp::Limit { .. } => "limit",
            LruOp::Flush => "flush",
        }
    }

    /// Whether it answers nothing but that it is done.
    const fn has_no_result(&self) -> bool {
        matches!(
            self,
            LruOp::Drain
                | LruOp::Wait
                | LruOp::Device { .. }
                | LruOp::Cpu(_)
                | LruOp::Node { .. }
                | LruOp::DrainAll
                | LruOp::DrainPages
                | LruOp::Fold
                | LruOp::Flush
        )
    }

    /// The record for the module.
    fn record(&self) -> [u8; 8] {
        let at = |p: FilePage| u32::from(p.file) << FILE_SHIFT | p.index;
        let flags = |a: Asks| a.request.flags() | if a.dma32 { DMA32 } else { 0 };
        let of_group = |group: GroupId, pages| (group.index() as u32) << GROUP_SHIFT | pages;
        let by = |s: Swappiness, option| u32::from(s.own().unwrap_or(Swappiness::NONE)) << Swappiness::SHIFT | option;
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
            LruOp::Age { swappiness, force } => (28, Order::ZERO, 0, by(swappiness, u32::from(force))),
            LruOp::Evict { beyond, swappiness, pages } => (29, beyond, 0, by(swappiness, pages)),
            LruOp::Enter(group) => (48, Order::ZERO, 0, of_group(group, 0)),
            LruOp::Limit { group, limit, pages } => {
                (49, Order::new(limit as u8), 0, of_group(group, pages.unwrap_or(NO_LIMIT)))
            }
            LruOp::Flush => (50, Order::ZERO, 0, 0),
            LruOp::Cpu(cpu) => (40, Order::ZERO, 0, cpu.into()),
            LruOp::DrainAll => (41, Order::ZERO, 0, 0),
            LruOp::DrainPages => (42, Order::ZERO, 0, 0),
            LruOp::Fold => (43, Order::ZERO, 0, 0),
            LruOp::Node { prefers, allowed } => {
                let bits = allowed.iter().map(|node| 1 << node.index()).sum::<u32>();
                (44, Order::ZERO, 0, bits << NODE_SHIFT | prefers.index() as u32)
            }
        };
        let ([f0, f1], [i0, i1, i2, i3]) = (flags.to_le_bytes(), id.to_le_bytes());
        [code, order.get(), f0, f1, i0, i1, i2, i3]
    }

    /// Decodes a word of the module's results.
    fn answer(&self, word: u32) -> Answer {
        match (self, word) {
            (_, FAILED) => Answer::Failed,
            (_, SKIPPED) => Answer::Skipped,
            (op, _) if op.has_no_result() => Answer::Done,
            (LruOp::Finish(_) | LruOp::Dump | LruOp::Age { .. } | LruOp::Evict { .. }, n) => Answer::Number(n),
            (LruOp::Enter(_) | LruOp::Limit { .. }, n) => Answer::Number(n),
            (_, word) => Answer::Page(Page { pfn: word & PFN, says: word & !PFN }),
        }
    }
}

/// The records for the module.
pub fn encode(ops: &[LruOp]) -> Vec<u8> {
    ops.iter().flat_map(LruOp::record).collect()
}
