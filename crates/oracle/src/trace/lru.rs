//! Operations on memory under pressure: allocations, and what is done to pages that reclaim can take.
//!
//! Each is one thing a kernel's user does: a file's page added to the page cache or read, a process's page touched. As
//! text it is a line (`read f0:1f 0 movable direct retry`), which a recording keeps together with what the kernel
//! answered (`= 1043f active workingset`); to the recorder's module it is a record of eight bytes, like those of other
//! traces. Numbers of pages are hexadecimal, all others decimal.

use super::{BlockId, FAILED, Request, SKIPPED};
use kontig_mm::types::MAX_ORDER;
use kontig_mm::{Order, Pfn};
use std::fmt;

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
    /// It was there already.
    pub fn was_present(self) -> bool {
        self.says("present")
    }
    /// `PG_active`: on an active list, or meant for one.
    pub fn is_active(self) -> bool {
        self.says("active")
    }
    /// `PG_workingset`.
    pub fn is_workingset(self) -> bool {
        self.says("workingset")
    }
    /// `PG_referenced`.
    pub fn is_referenced(self) -> bool {
        self.says("referenced")
    }
    /// `PG_dirty`.
    pub fn is_dirty(self) -> bool {
        self.says("dirty")
    }
    /// `PG_writeback`.
    pub fn is_under_writeback(self) -> bool {
        self.says("writeback")
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

/// Operations with the module's results, as a recording keeps them: a line each.
pub fn write_answered(ops: &[LruOp], results: &[u32]) -> String {
    ops.iter().zip(results).map(|(op, word)| format!("{op} = {}\n", op.answer(*word))).collect()
}

/// Reads one line of a recording.
///
/// # Errors
/// What is wrong with it.
pub fn parse_answered(line: &str) -> Result<(LruOp, Answer), String> {
    let (op, answer) =
        line.split_once(" = ").ok_or_else(|| "has no answer: ' = ' and what the kernel said".to_string())?;
    let op = parse(op)?;
    Ok((op, parse_answer(&op, answer)?))
}

/// Reads an operation.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<LruOp, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let id = |w: &str| number(w, u32::MAX).map(BlockId);
    match words[..] {
        ["alloc", block, size, ref rest @ ..] => {
            Ok(LruOp::Alloc { id: id(block)?, order: order(size)?, asks: asks(rest)? })
        }
        ["free", block] => Ok(LruOp::Free(id(block)?)),
        ["add", page, size, ref rest @ ..] => {
            Ok(LruOp::Add { page: file_page(page)?, order: order(size)?, asks: asks(rest)? })
        }
        ["read", page, size, ref rest @ ..] => {
            Ok(LruOp::Read { page: file_page(page)?, order: order(size)?, asks: asks(rest)? })
        }
        ["touch", page] => Ok(LruOp::Touch(file_page(page)?)),
        ["truncate", page, size] => Ok(LruOp::Truncate { page: file_page(page)?, order: order(size)? }),
        ["dirty", page] => Ok(LruOp::Dirty(file_page(page)?)),
        ["writeback", page] => Ok(LruOp::Writeback(file_page(page)?)),
        ["written", page] => Ok(LruOp::Written(file_page(page)?)),
        ["finish", n] => Ok(LruOp::Finish(number(n, u32::MAX)?)),
        ["device", name, speed @ ("fast" | "slow")] => Ok(LruOp::Device { file: file(name)?, slow: speed == "slow" }),
        ["load", page] => Ok(LruOp::Load(process_page(page)?)),
        ["store", page] => Ok(LruOp::Store(process_page(page)?)),
        ["drop", page] => Ok(LruOp::Drop(process_page(page)?)),
        ["object", ref rest @ ..] => Ok(LruOp::Object(asks(rest)?)),
        ["drain"] => Ok(LruOp::Drain),
        ["wait"] => Ok(LruOp::Wait),
        ["dump"] => Ok(LruOp::Dump),
        _ => Err(format!("'{text}' is no operation")),
    }
}

fn number(word: &str, most: u32) -> Result<u32, String> {
    word.parse().ok().filter(|n| *n <= most).ok_or_else(|| format!("'{word}' is no number from 0 to {most}"))
}

fn order(word: &str) -> Result<Order, String> {
    number(word, u32::from(MAX_ORDER.get())).map(|n| Order::new(n as u8)).map_err(|e| format!("the order {e}"))
}

fn file(word: &str) -> Result<u8, String> {
    let n = word.strip_prefix('f').and_then(|n| n.parse().ok()).filter(|n| *n < MAX_FILES);
    n.ok_or_else(|| format!("'{word}' is no file from f0 to f{}", MAX_FILES - 1))
}

/// Reads `f0:1f`.
///
/// # Errors
/// If it is none.
pub fn file_page(word: &str) -> Result<FilePage, String> {
    let wrong = || format!("'{word}' is no page of a file, such as f0:1f");
    let (name, index) = word.split_once(':').ok_or_else(wrong)?;
    let index = u32::from_str_radix(index, 16).ok().filter(|i| *i < FILE_PAGES).ok_or_else(wrong)?;
    Ok(FilePage { file: file(name)?, index })
}

/// Reads `a:1f`.
///
/// # Errors
/// If it is none.
pub fn process_page(word: &str) -> Result<ProcessPage, String> {
    let index = word.strip_prefix("a:").and_then(|i| u32::from_str_radix(i, 16).ok());
    index.map(ProcessPage).ok_or_else(|| format!("'{word}' is no page of the process, such as a:1f"))
}

fn asks(words: &[&str]) -> Result<Asks, String> {
    let (kind, rights) = words.split_first().ok_or_else(|| "the type of memory is missing".to_string())?;
    let of_type = Request::TYPES.iter().find(|(_, name)| name == kind);
    let mut request = of_type.ok_or_else(|| format!("'{kind}' is no type of memory"))?.0;
    let mut dma32 = false;
    for right in rights {
        match Request::RIGHTS.iter().find(|(r, name)| name == right && *r != Request::OWNED) {
            Some((more, _)) => request = request.with(*more),
            None if *right == "dma32" => dma32 = true,
            None => return Err(format!("'{right}' is no right")),
        }
    }
    Ok(Asks { request, dma32 })
}

fn parse_answer(op: &LruOp, text: &str) -> Result<Answer, String> {
    let wrong = || format!("'{text}' is no answer to {}", op.name());
    let of_number = matches!(op, LruOp::Finish(_) | LruOp::Dump);
    let of_nothing = matches!(op, LruOp::Drain | LruOp::Wait | LruOp::Device { .. });
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words[..] {
        ["failed"] if !of_number && !of_nothing => Ok(Answer::Failed),
        ["skipped"] if !of_number && !of_nothing => Ok(Answer::Skipped),
        ["done"] if of_nothing => Ok(Answer::Done),
        [n] if of_number => number(n, u32::MAX).map(Answer::Number).map_err(|_| wrong()),
        [pfn, ref said @ ..] if !of_number && !of_nothing => {
            let pfn = u32::from_str_radix(pfn, 16).ok().filter(|pfn| *pfn <= PFN).ok_or_else(wrong)?;
            let bit = |word: &&str| SAYS.iter().find(|(_, name)| name == word).map(|(bit, _)| *bit);
            let says = said.iter().try_fold(0, |all, word| Some(all | bit(word)?)).ok_or_else(wrong)?;
            Ok(Answer::Page(Page { pfn, says }))
        }
        _ => Err(wrong()),
    }
}

impl fmt::Display for FilePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}:{:x}", self.file, self.index)
    }
}

impl fmt::Display for ProcessPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a:{:x}", self.0)
    }
}

impl fmt::Display for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.request, if self.dma32 { " dma32" } else { "" })
    }
}

impl fmt::Display for LruOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match *self {
            LruOp::Alloc { id, order, asks } => write!(f, " {} {} {asks}", id.0, order.get()),
            LruOp::Free(id) => write!(f, " {}", id.0),
            LruOp::Add { page, order, asks } | LruOp::Read { page, order, asks } => {
                write!(f, " {page} {} {asks}", order.get())
            }
            LruOp::Truncate { page, order } => write!(f, " {page} {}", order.get()),
            LruOp::Touch(page) | LruOp::Dirty(page) | LruOp::Writeback(page) | LruOp::Written(page) => {
                write!(f, " {page}")
            }
            LruOp::Finish(n) => write!(f, " {n}"),
            LruOp::Device { file, slow } => write!(f, " f{file} {}", if slow { "slow" } else { "fast" }),
            LruOp::Load(page) | LruOp::Store(page) | LruOp::Drop(page) => write!(f, " {page}"),
            LruOp::Object(asks) => write!(f, " {asks}"),
            LruOp::Drain | LruOp::Wait | LruOp::Dump => Ok(()),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Failed => f.write_str("failed"),
            Answer::Skipped => f.write_str("skipped"),
            Answer::Done => f.write_str("done"),
            Answer::Number(n) => write!(f, "{n}"),
            Answer::Page(page) => {
                write!(f, "{:x}", page.pfn)?;
                SAYS.iter().filter(|(bit, _)| page.says & bit != 0).try_for_each(|(_, word)| write!(f, " {word}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 19] = [
        "alloc 3 9 movable kswapd direct retry dma32 = 104000",
        "free 3 = 104000",
        "add f0:1f 0 movable direct retry = 10043f shadow active workingset",
        "read f15:ffffff 2 movable = 10043c present referenced",
        "touch f0:1f = skipped",
        "truncate f0:1f 0 = 10043f dirty",
        "dirty f0:1f = 10043f dirty",
        "writeback f0:1f = 10043f writeback",
        "written f0:1f = 10043f",
        "finish 12 = 3",
        "device f2 slow = done",
        "load a:1f = 100440 shadow workingset",
        "store a:1f = failed",
        "drop a:1f = 100440 present",
        "object reclaimable kswapd = 100441",
        "drain = done",
        "wait = done",
        "dump = 0",
        "alloc 4 10 unmovable = failed",
    ];

    #[test]
    fn every_line_is_written_as_it_is_read() {
        for line in LINES {
            let (op, answer) = parse_answered(line).expect(line);
            assert_eq!(format!("{op} = {answer}"), line);
        }
    }

    #[test]
    fn a_word_of_the_module_says_what_became_of_the_page() {
        let op = parse("read f0:1f 0 movable").expect("an operation");
        let written = write_answered(&[op; 3], &[0x0510_043f, FAILED, SKIPPED]);
        let line = "read f0:1f 0 movable = ";
        assert_eq!(written, format!("{line}10043f shadow active\n{line}failed\n{line}skipped\n"));
        let Answer::Page(page) = op.answer(0x0510_043f) else { panic!("no page") };
        assert!(page.had_shadow() && page.is_active() && !page.is_dirty() && page.pfn() == Pfn::new(0x10_043f));
    }

    #[test]
    fn a_record_has_the_page_in_its_last_word() {
        let op = parse("read f3:1f 2 movable direct dma32").expect("an operation");
        assert_eq!(op.record(), [4, 2, 10, 1, 0x1f, 0, 0, 3]);
    }

    #[test]
    fn what_is_no_operation_or_no_answer_is_refused() {
        let refused = |line: &str| parse_answered(line).expect_err(line);
        assert!(refused("touch f0:1f").contains("has no answer"));
        assert!(refused("touch f16:0 = skipped").contains("no file from f0 to f15"));
        assert!(refused("touch f0:1000000 = skipped").contains("no page of a file"));
        assert!(refused("add f0:0 11 movable = 1").contains("the order '11'"));
        assert!(refused("add f0:0 0 movable owned = 1").contains("'owned' is no right"));
        assert!(refused("load f0:0 = 1").contains("no page of the process"));
        assert!(refused("drain = 5").contains("'5' is no answer to drain"));
        assert!(refused("touch f0:0 = 5 happy").contains("no answer to touch"));
        assert!(refused("reclaim 5 = done").contains("'reclaim 5' is no operation"));
    }
}
