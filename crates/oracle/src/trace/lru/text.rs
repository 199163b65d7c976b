//! Operations and answers as text, a line each.

use super::{
    Answer, Asks, FILE_PAGES, FilePage, LruOp, MAX_CPUS, MAX_FILES, MAX_GROUPS, MAX_NODES, NO_LIMIT, PFN, Page,
    ProcessPage, SAYS, Swappiness,
};
use crate::trace::{BlockId, Request};
use kontig_mm::types::MAX_ORDER;
use kontig_mm::{GroupId, GroupLimit, NodeId, NodeSet, Order};
use std::fmt;

/// The swappiness of a command that names none.
const OF_MACHINE: &str = "own";
/// A limit that is none.
const UNLIMITED: &str = "max";
/// The most generations there are.
const MOST_GENERATIONS: u32 = 4;

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
            Ok(LruOp::Add { page: file_page(page)?, order: order(size)?, asks: cache_asks(rest)? })
        }
        ["read", page, size, ref rest @ ..] => {
            Ok(LruOp::Read { page: file_page(page)?, order: order(size)?, asks: cache_asks(rest)? })
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
        ["object", ref rest @ ..] => Ok(LruOp::Object(cache_asks(rest)?)),
        ["drain"] => Ok(LruOp::Drain),
        ["cpu", n] => number(n, u32::from(MAX_CPUS) - 1).map(|n| LruOp::Cpu(n as u8)),
        ["drain-all"] => Ok(LruOp::DrainAll),
        ["drain-pages"] => Ok(LruOp::DrainPages),
        ["fold"] => Ok(LruOp::Fold),
        ["node", prefers, ref allowed @ ..] => {
            let prefers = node(prefers)?;
            let allowed: NodeSet = allowed.iter().map(|word| node(word)).collect::<Result<_, _>>()?;
            Ok(LruOp::Node { prefers, allowed })
        }
        ["wait"] => Ok(LruOp::Wait),
        ["dump"] => Ok(LruOp::Dump),
        ["age", value] => Ok(LruOp::Age { swappiness: swappiness(value)?, force: false }),
        ["age", value, "force"] => Ok(LruOp::Age { swappiness: swappiness(value)?, force: true }),
        ["evict", beyond, value, pages] => Ok(LruOp::Evict {
            beyond: Order::new(number(beyond, MOST_GENERATIONS)? as u8),
            swappiness: swappiness(value)?,
            pages: number(pages, PFN)?,
        }),
        ["enter", name] => Ok(LruOp::Enter(group(name)?)),
        ["limit", name, which, pages] => Ok(LruOp::Limit {
            group: group(name)?,
            limit: limit(which)?,
            pages: if pages == UNLIMITED { None } else { Some(number(pages, NO_LIMIT - 1)?) },
        }),
        ["flush"] => Ok(LruOp::Flush),
        _ => Err(format!("'{text}' is no operation")),
    }
}

fn number(word: &str, most: u32) -> Result<u32, String> {
    word.parse().ok().filter(|n| *n <= most).ok_or_else(|| format!("'{word}' is no number from 0 to {most}"))
}

fn order(word: &str) -> Result<Order, String> {
    number(word, u32::from(MAX_ORDER.get())).map(|n| Order::new(n as u8)).map_err(|e| format!("the order {e}"))
}

fn node(word: &str) -> Result<NodeId, String> {
    let n = number(word, MAX_NODES.into()).ok().filter(|n| *n > 0);
    n.map(|n| NodeId::new(n as usize)).ok_or_else(|| format!("'{word}' is no node from 1 to {MAX_NODES}"))
}

fn swappiness(word: &str) -> Result<Swappiness, String> {
    match word {
        OF_MACHINE => Ok(Swappiness::OF_MACHINE),
        _ => number(word, Swappiness::MAX.into()).map(|n| Swappiness::new(n as u8)),
    }
}

fn group(word: &str) -> Result<GroupId, String> {
    number(word, u32::from(MAX_GROUPS - 1)).map(|n| GroupId::new(n as u16)).map_err(|e| format!("the group {e}"))
}

fn limit(word: &str) -> Result<GroupLimit, String> {
    let found = GroupLimit::ALL.into_iter().find(|limit| limit.name() == word);
    found.ok_or_else(|| format!("'{word}' is no limit: max, high, low or min"))
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
    match request.contradiction() {
        Some(reason) => Err(reason.into()),
        None => Ok(Asks { request, dma32 }),
    }
}

/// The same for a page that a cache adds: such is not bound by a process's policy.
fn cache_asks(words: &[&str]) -> Result<Asks, String> {
    let asks = asks(words)?;
    match asks.request.has(Request::POLICY) {
        true => Err("'policy' is for blocks: leave it out".into()),
        false => Ok(asks),
    }
}

fn parse_answer(op: &LruOp, text: &str) -> Result<Answer, String> {
    let wrong = || format!("'{text}' is no answer to {}", op.name());
    let of_group = matches!(op, LruOp::Enter(_) | LruOp::Limit { .. });
    let of_number = of_group || matches!(op, LruOp::Finish(_) | LruOp::Dump | LruOp::Age { .. } | LruOp::Evict { .. });
    let of_nothing = op.has_no_result();
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
            LruOp::Enter(group) => write!(f, " {}", group.index()),
            LruOp::Limit { group, limit, pages } => {
                let pages = pages.map_or_else(|| UNLIMITED.to_string(), |pages| pages.to_string());
                write!(f, " {} {} {pages}", group.index(), limit.name())
            }
            LruOp::Cpu(n) => write!(f, " {n}"),
            LruOp::Node { prefers, allowed } => {
                write!(f, " {}", prefers.index())?;
                allowed.iter().try_for_each(|node| write!(f, " {}", node.index()))
            }
            LruOp::Drain
            | LruOp::Wait
            | LruOp::Dump
            | LruOp::DrainAll
            | LruOp::DrainPages
            | LruOp::Fold
            | LruOp::Flush => Ok(()),
            LruOp::Age { swappiness, force } => write!(f, " {swappiness}{}", if force { " force" } else { "" }),
            LruOp::Evict { beyond, swappiness, pages } => write!(f, " {} {swappiness} {pages}", beyond.get()),
        }
    }
}

impl fmt::Display for Swappiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.own() {
            Some(value) => write!(f, "{value}"),
            None => f.write_str(OF_MACHINE),
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
    use crate::trace::{FAILED, SKIPPED};
    use kontig_mm::Pfn;

    const LINES: [&str; 30] = [
        "node 2 = done",
        "node 2 1 2 = done",
        "enter 3 = 0",
        "limit 3 max 1000 = 0",
        "limit 3 low max = 0",
        "flush = done",
        "age own force = 0",
        "evict 1 60 256 = 22",
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
        "alloc 5 9 movable direct mayfail nofs policy = failed",
        "alloc 6 0 unmovable direct nofail noio = 100442",
        "load a:20 = 0 present",
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
        let page = Page::new(Pfn::new(0x10_043f), &["shadow", "active"]);
        assert_eq!(op.answer(0x0510_043f), Answer::Page(page));
    }

    #[test]
    fn a_record_has_the_page_in_its_last_word() {
        let op = parse("read f3:1f 2 movable direct dma32").expect("an operation");
        assert_eq!(op.record(), [4, 2, 10, 1, 0x1f, 0, 0, 3]);
    }

    #[test]
    fn lines_that_are_no_operation_or_answer_are_refused() {
        let refused = |line: &str| parse_answered(line).expect_err(line);
        assert!(refused("touch f0:1f").contains("has no answer"));
        assert!(refused("touch f16:0 = skipped").contains("no file from f0 to f15"));
        assert!(refused("touch f0:1000000 = skipped").contains("no page of a file"));
        assert!(refused("add f0:0 11 movable = 1").contains("the order '11'"));
        assert!(refused("add f0:0 0 movable owned = 1").contains("'owned' is no right"));
        assert!(refused("add f0:0 0 movable direct policy = 1").contains("'policy' is for blocks"));
        assert!(refused("alloc 1 0 movable nofail = 1").contains("'nofail' without 'direct'"));
        assert!(refused("alloc 1 0 movable direct nofail mayfail = 1").contains("contradict"));
        assert!(refused("load f0:0 = 1").contains("no page of the process"));
        assert!(refused("drain = 5").contains("'5' is no answer to drain"));
        assert!(refused("touch f0:0 = 5 happy").contains("no answer to touch"));
        assert!(refused("limit 3 most 5 = 0").contains("'most' is no limit"));
        assert!(refused("enter 512 = 0").contains("the group '512'"));
        assert!(refused("node 0 = done").contains("'0' is no node from 1 to 4"));
        assert!(refused("reclaim 5 = done").contains("'reclaim 5' is no operation"));
    }
}
