//! Trace files: text with an operation a line, or the records of a recording (`trace.bin`).
//!
//! ```text
//! # everything after a '#' is left out
//! alloc NAME ORDER TYPE [RIGHT ...]
//! free NAME
//! ```
//!
//! A name is any word; it stands for the block until that is freed. `docs/kernel/traces.md` has the
//! rest.
//! Errors name the file, the line and what to write instead.

use kontig_mm::Order;
use kontig_mm::types::MAX_ORDER;
use kontig_oracle::trace::{BlockId, Op, Request, decode};
use std::collections::HashMap;

const ALLOC: &str = "alloc NAME ORDER TYPE [RIGHT ...]";
const FREE: &str = "free NAME";

/// A trace read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Path, as the caller gave it.
    pub file: String,
    pub ops: Vec<Op>,
    /// Line of each operation in a text file, counted from 1.
    lines: Option<Vec<usize>>,
}

impl Given {
    /// Parses a file. A record of `trace.bin` starts with a 1 or a 2, which text never does.
    ///
    /// # Errors
    /// One line: the file, the line or operation, the mistake and what to write instead.
    pub fn read(file: &str, content: &[u8]) -> Result<Given, String> {
        let given = if matches!(content.first(), Some(1 | 2)) {
            let ops = decode(content).map_err(|e| {
                let at = e.op.map(|n| format!("operation {n}: ")).unwrap_or_default();
                format!("{file}: {at}{}", e.reason)
            })?;
            Given { file: file.into(), ops, lines: None }
        } else {
            let text = std::str::from_utf8(content).map_err(|_| {
                format!("{file}: neither text nor the records of a trace.bin; see docs/kernel/traces.md")
            })?;
            let (lines, ops) =
                parse(text).map_err(|(line, reason)| format!("{file}:{line}: {reason}"))?.into_iter().unzip();
            Given { file: file.into(), ops, lines: Some(lines) }
        };
        if given.ops.is_empty() {
            return Err(format!("{file}: holds no operation; write '{ALLOC}' or '{FREE}'"));
        }
        Ok(given)
    }

    /// Position of an operation, for messages.
    pub fn place(&self, op: usize) -> String {
        match self.lines.as_ref().and_then(|lines| lines.get(op)) {
            Some(line) => format!("{}:{line}", self.file),
            None => format!("{}: operation {op}", self.file),
        }
    }
}

/// Operations with their lines; or the first wrong line and the reason.
fn parse(text: &str) -> Result<Vec<(usize, Op)>, (usize, String)> {
    let mut ids: HashMap<&str, BlockId> = HashMap::new();
    let mut ops = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let wrong = |reason: String| (number, reason);
        let op = match words[..] {
            [] => continue,
            ["alloc", name, order, kind, ref rights @ ..] => {
                let (order, request) = request(order, kind, rights).map_err(wrong)?;
                let next = BlockId(u32::try_from(ids.len()).map_err(|_| wrong("too many names".into()))?);
                Op::Alloc { order, request, id: *ids.entry(name).or_insert(next) }
            }
            ["free", name] => match ids.get(name) {
                Some(id) => Op::Free { id: *id },
                None => return Err(wrong(format!("nothing called '{name}' is allocated before; allocate it first"))),
            },
            ["alloc", ..] => return Err(wrong(format!("an allocation is written '{ALLOC}'"))),
            ["free", ..] => return Err(wrong(format!("a free is written '{FREE}'"))),
            [other, ..] => return Err(wrong(format!("'{other}' is no operation; write '{ALLOC}' or '{FREE}'"))),
        };
        ops.push((number, op));
    }
    Ok(ops)
}

/// Parses the order, type and rights of an allocation.
fn request(order: &str, kind: &str, rights: &[&str]) -> Result<(Order, Request), String> {
    let largest = MAX_ORDER.get();
    let order = order.parse().ok().filter(|o| *o <= largest);
    let order = Order::new(order.ok_or_else(|| format!("the order is a number from 0 to {largest}"))?);
    let known = |words: &[(Request, &str)]| words.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    let find = |words: &[(Request, &str)], word: &str| words.iter().find(|(_, name)| *name == word).map(|(r, _)| *r);
    let of_type = find(&Request::TYPES, kind);
    let mut request = of_type.ok_or_else(|| format!("'{kind}' is no type; known: {}", known(&Request::TYPES)))?;
    for right in rights {
        let more = find(&Request::RIGHTS, right);
        request =
            request.with(more.ok_or_else(|| format!("'{right}' is no right; known: {}", known(&Request::RIGHTS)))?);
    }
    if let Some(reason) = request.contradiction() {
        return Err(reason.into());
    }
    if request.has(Request::OWNED) && order > Order::ZERO {
        return Err("only a single page can be owned; make the order 0, or leave 'owned' out".into());
    }
    Ok((order, request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_oracle::trace::encode;

    fn refused(text: &str) -> String {
        Given::read("mine.txt", text.as_bytes()).expect_err("refused")
    }

    #[test]
    fn a_line_is_an_operation() {
        let text = "# a comment\nalloc cache 3 unmovable kswapd direct retry  # and another\n\n\
                    alloc 7 0 movable owned\nfree cache\n";
        let given = Given::read("mine.txt", text.as_bytes()).expect("a trace");
        let direct = Request::UNMOVABLE.with(Request::KSWAPD).with(Request::DIRECT).with(Request::RETRY);
        let owned = Request::MOVABLE.with(Request::OWNED);
        assert_eq!(
            given.ops,
            [
                Op::Alloc { order: Order::new(3), request: direct, id: BlockId(0) },
                Op::Alloc { order: Order::ZERO, request: owned, id: BlockId(1) },
                Op::Free { id: BlockId(0) },
            ]
        );
        assert_eq!(given.place(1), "mine.txt:4");
    }

    #[test]
    fn the_records_of_a_recording_are_a_trace_too() {
        let ops = Given::read("mine.txt", b"alloc a 2 reclaimable high\nfree a\n").expect("a trace").ops;
        let given = Given::read("trace.bin", &encode(&ops)).expect("the same");
        assert_eq!(given.ops, ops);
        assert_eq!(given.place(1), "trace.bin: operation 1");
        let short = Given::read("trace.bin", &encode(&ops)[..9]).expect_err("refused");
        assert!(short.starts_with("trace.bin: 9 bytes"), "{short}");
    }

    #[test]
    fn a_bad_trace_is_refused_with_its_line_and_the_remedy() {
        assert_eq!(
            refused("alloc a 0 movable\nfree b\n"),
            "mine.txt:2: nothing called 'b' is allocated before; allocate it first"
        );
        assert_eq!(
            refused("malloc a 0\n"),
            format!("mine.txt:1: 'malloc' is no operation; write '{ALLOC}' or '{FREE}'")
        );
        assert_eq!(refused("\nalloc a 11 movable\n"), "mine.txt:2: the order is a number from 0 to 10");
        assert_eq!(refused("alloc a 1 big"), "mine.txt:1: 'big' is no type; known: unmovable, reclaimable, movable");
        assert!(refused("alloc a 1 movable fast").contains("'fast' is no right; known: kswapd, direct, high"));
        assert!(refused("alloc a 1 movable owned").contains("only a single page"));
        assert!(refused("alloc a\n").contains("an allocation is written"));
        assert!(refused("free\n").contains("a free is written"));
        assert!(refused("# nothing\n").starts_with("mine.txt: holds no operation"));
        assert!(Given::read("x", &[0xff, 0xfe]).expect_err("refused").contains("neither text"));
    }
}
