//! A trace in trace-cmd's own format, `trace.dat` version 6, for `trace-cmd report` and
//! KernelShark.
//!
//! trace-cmd reads no text. Its file has the format of each event, then the pages of each CPU's
//! ring buffer. The format of an event follows from its text: each number and each word behind a
//! `=` is a field of its own, so filters work (`trace-cmd report -F 'mm_compaction_end:status ==
//! "success"'`). The whole file is kept in memory until the end, because the formats come first.

use kontig_sim::{Comm, Traced};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Bytes of a page of a ring buffer, and of its head: a time and a length.
const PAGE: usize = 4096;
const HEAD: usize = 16;
/// Bytes of a word in an event: more than the longest flags of a request have.
const WORD: usize = 192;
/// Bytes of the fields that all events have: type, flags, preemption count, pid.
const COMMON: usize = 8;
/// The longest time between two events that fits into an event's head: 27 bits of ns.
const LONGEST_DELTA: u64 = (1 << 27) - 1;

/// A part of an event's text that is not the same in all events of its name.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Value<'a> {
    Hex(u64),
    Decimal(i64),
    Word(&'a str),
}

/// An event's text as a `printf` format with its arguments. Each comes with the name before it.
fn parsed(text: &str) -> (String, Vec<(&str, Value<'_>)>) {
    let (mut format, mut values) = (String::new(), Vec::new());
    let (mut at, mut before, mut name) = (0, ' ', "");
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let token = &rest[..rest.find([' ', ',', ')']).unwrap_or(rest.len())];
        let value = match before {
            ' ' | '=' | '(' => {
                number(token).or_else(|| (before == '=' && !token.starts_with('(')).then_some(Value::Word(token)))
            }
            _ => None,
        };
        if let Some(value) = value.filter(|_| !token.is_empty()) {
            format += match value {
                Value::Hex(_) => "0x%llx",
                Value::Decimal(_) => "%lld",
                Value::Word(_) => "%s",
            };
            values.push((name, value));
            at += token.len();
            before = 'x';
            continue;
        }
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if word > 0 {
            name = &rest[..word];
            format += name;
            (at, before) = (at + word, 'x');
            continue;
        }
        // Words are padded to different widths.
        if !(c == ' ' && before == ' ') {
            format.push(c);
        }
        (at, before) = (at + c.len_utf8(), c);
    }
    (format, values)
}

fn number(token: &str) -> Option<Value<'_>> {
    match token.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(Value::Hex),
        None => token.parse().ok().map(Value::Decimal),
    }
}

/// The text that describes an event to trace-cmd.
fn description(id: u16, name: &str, format: &str, values: &[(&str, Value<'_>)]) -> String {
    let mut text = format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    );
    let (mut offset, mut arguments) = (COMMON, String::new());
    let mut names: Vec<String> = Vec::new();
    for (name, value) in values {
        let n = names.iter().filter(|used| used.as_str() == *name).count();
        let unique = if n == 0 { (*name).to_owned() } else { format!("{name}_end") };
        let (declared, size, signed) = match value {
            Value::Hex(_) => (format!("u64 {unique}"), 8, 0),
            Value::Decimal(_) => (format!("s64 {unique}"), 8, 1),
            Value::Word(_) => (format!("char {unique}[{WORD}]"), WORD, 0),
        };
        // Writing into memory cannot fail.
        let _ = writeln!(text, "\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};");
        let _ = write!(arguments, ", REC->{unique}");
        offset += size;
        names.push(unique);
    }
    let _ = writeln!(text, "\nprint fmt: \"{format}\"{arguments}");
    text
}

/// A CPU's ring buffer.
#[derive(Clone, Default)]
struct Ring {
    /// Its pages, the last one filled up to `filled`.
    pages: Vec<u8>,
    filled: usize,
    /// The time of its last event.
    last_ns: u64,
}

impl Ring {
    fn push(&mut self, at_ns: u64, data: &[u8]) {
        // At most a time's extension, a head, a length, and the data.
        if self.pages.is_empty() || self.filled + 16 + data.len() > PAGE {
            self.pages.resize(self.pages.len() + PAGE, 0);
            let begin = self.pages.len() - PAGE;
            self.pages[begin..begin + 8].copy_from_slice(&at_ns.to_le_bytes());
            (self.filled, self.last_ns) = (HEAD, at_ns);
        }
        let mut delta = at_ns - self.last_ns;
        self.last_ns = at_ns;
        if delta > LONGEST_DELTA {
            self.put(30 | ((delta & LONGEST_DELTA) as u32) << 5);
            self.put((delta >> 27) as u32);
            delta = 0;
        }
        match data.len() / 4 {
            words @ 1..=28 => self.put(words as u32 | (delta as u32) << 5),
            _ => {
                self.put((delta as u32) << 5);
                self.put(data.len() as u32 + 4);
            }
        }
        let at = self.pages.len() - PAGE + self.filled;
        self.pages[at..at + data.len()].copy_from_slice(data);
        self.filled += data.len();
        self.commit();
    }

    fn put(&mut self, word: u32) {
        let at = self.pages.len() - PAGE + self.filled;
        self.pages[at..at + 4].copy_from_slice(&word.to_le_bytes());
        self.filled += 4;
    }

    /// Writes how much of the page is used.
    fn commit(&mut self) {
        let begin = self.pages.len() - PAGE;
        let used = (self.filled - HEAD) as u64;
        self.pages[begin + 8..begin + 16].copy_from_slice(&used.to_le_bytes());
    }
}

/// The file, as far as it is known.
#[derive(Clone, Default)]
pub(super) struct TraceDat {
    rings: Vec<Ring>,
    /// The number and the description of each event and format met.
    events: BTreeMap<(&'static str, String), (u16, String)>,
    comms: BTreeMap<u32, Comm>,
}

impl TraceDat {
    pub(super) fn new(cpus: usize) -> TraceDat {
        TraceDat { rings: vec![Ring::default(); cpus], ..TraceDat::default() }
    }

    /// Adds an event with its text, which lacks the name.
    pub(super) fn add(&mut self, traced: &Traced, text: &str) {
        let Traced { at_ns, cpu, by, event } = traced;
        let (name, (format, values)) = (event.name(), parsed(text));
        let next = self.events.len() as u16 + 1;
        let (id, _) = self
            .events
            .entry((name, format))
            .or_insert_with_key(|(name, format)| (next, description(next, name, format, &values)));
        let mut data = Vec::with_capacity(COMMON + 8 * values.len());
        data.extend(id.to_le_bytes());
        data.extend([0, 0]);
        data.extend(by.pid.to_le_bytes());
        for (_, value) in values {
            match value {
                Value::Hex(n) => data.extend(n.to_le_bytes()),
                Value::Decimal(n) => data.extend(n.to_le_bytes()),
                Value::Word(word) => {
                    let mut bytes = [0; WORD];
                    // The last byte stays zero.
                    bytes[..WORD - 1].iter_mut().zip(word.bytes()).for_each(|(to, byte)| *to = byte);
                    data.extend(bytes);
                }
            }
        }
        self.rings[cpu.index()].push(*at_ns, &data);
        self.comms.insert(by.pid, by.comm);
    }

    /// The bytes of the file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut file = b"\x17\x08\x44tracing6\0".to_vec();
        // Little-endian, a long of eight bytes.
        file.extend([0, 8]);
        file.extend((PAGE as u32).to_le_bytes());
        let section = |file: &mut Vec<u8>, name: &str, text: &str| {
            file.extend(name.as_bytes());
            file.push(0);
            file.extend((text.len() as u64).to_le_bytes());
            file.extend(text.as_bytes());
        };
        let data = PAGE - HEAD;
        let page = format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{HEAD};\tsize:{data};\tsigned:1;\n"
        );
        section(&mut file, "header_page", &page);
        section(
            &mut file,
            "header_event",
            "\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n",
        );
        let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ((name, _), (_, text)) in &self.events {
            systems.entry(system(name)).or_default().push(text);
        }
        // ftrace itself has no events here.
        file.extend(0u32.to_le_bytes());
        file.extend((systems.len() as u32).to_le_bytes());
        for (system, events) in systems {
            file.extend(system.as_bytes());
            file.push(0);
            file.extend((events.len() as u32).to_le_bytes());
            for text in events {
                file.extend((text.len() as u64).to_le_bytes());
                file.extend(text.as_bytes());
            }
        }
        // Neither symbols of the kernel nor formats of trace_printk.
        file.extend([0; 8]);
        let mut tasks = String::new();
        for (pid, comm) in &self.comms {
            let _ = writeln!(tasks, "{pid} {comm}");
        }
        file.extend((tasks.len() as u64).to_le_bytes());
        file.extend(tasks.as_bytes());
        file.extend((self.rings.len() as u32).to_le_bytes());
        // No options: their list ends at once.
        file.extend(b"options  \0\0\0");
        file.extend(b"flyrecord\0");
        let mut offset = (file.len() + 16 * self.rings.len()).next_multiple_of(PAGE);
        let first = offset;
        for ring in &self.rings {
            file.extend((offset as u64).to_le_bytes());
            file.extend((ring.pages.len() as u64).to_le_bytes());
            offset += ring.pages.len();
        }
        file.resize(first, 0);
        for ring in &self.rings {
            file.extend(&ring.pages);
        }
        file
    }
}

/// The system that a tracepoint belongs to.
fn system(event: &str) -> &'static str {
    match event {
        _ if event.starts_with("mm_compaction") => "compaction",
        _ if event.starts_with("mm_page") || event.starts_with("mm_fragmentation") => "kmem",
        _ if event.starts_with("mm_khugepaged") || event.starts_with("mm_collapse") => "huge_memory",
        _ => "vmscan",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_of_a_text_become_fields() {
        let (format, values) = parsed("range=(0x12 ~ 0x40) nr_scanned=46 nr_taken=0");
        assert_eq!(format, "range=(0x%llx ~ 0x%llx) nr_scanned=%lld nr_taken=%lld");
        let fields = [
            ("range", Value::Hex(0x12)),
            ("range", Value::Hex(0x40)),
            ("nr_scanned", Value::Decimal(46)),
            ("nr_taken", Value::Decimal(0)),
        ];
        assert_eq!(values, fields);
        let (format, values) = parsed("node=0 zone=DMA32    order=-1 ret=not_suitable_zone");
        assert_eq!(format, "node=%lld zone=%s order=%lld ret=%s");
        assert_eq!(values[1..3], [("zone", Value::Word("DMA32")), ("order", Value::Decimal(-1))]);
        let (format, values) = parsed("zone_start=0x0 zone_end=0x1000, mode=sync status=success");
        assert_eq!(format, "zone_start=0x%llx zone_end=0x%llx, mode=%s status=%s");
        assert_eq!(values[2..], [("mode", Value::Word("sync")), ("status", Value::Word("success"))]);
        let (format, values) = parsed("nid: 0 objects to shrink 5 cache items 70");
        assert_eq!(format, "nid: %lld objects to shrink %lld cache items %lld");
        assert_eq!(values.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["nid", "shrink", "items"]);
    }

    #[test]
    fn a_page_that_is_full_is_followed_by_another_with_a_time_of_its_own() {
        let mut ring = Ring::default();
        // Longer than fits into the head of an event, then a second later.
        for i in 0..40 {
            ring.push(1_000_000_000 * i, &[7; 120]);
        }
        let pages: Vec<&[u8]> = ring.pages.chunks(PAGE).collect();
        assert_eq!(pages.len(), 2);
        let word = |page: &[u8], at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"));
        // Each takes a time's extension, a head, its length and its data; the first of a page has
        // no extension.
        let of_page = (PAGE - HEAD - 128) / 136 + 1;
        assert_eq!(word(pages[0], 8), (128 + 136 * (of_page - 1)) as u64);
        assert_eq!(word(pages[1], 0), 1_000_000_000 * of_page as u64);
    }
}
