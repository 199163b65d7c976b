//! A snapshot as a file, to keep, send and read again.
//!
//! The first line is JSON: `schema` (`kontig.snapshot/1`), `host`, `zones`. Every other line is a
//! pageblock, or some that are equal: the number of its first frame in hex, the letter of its type
//! (`U` unmovable, `M` movable, `R` reclaimable, `H` highatomic), its frames, and `*N` if the next
//! N − 1 pageblocks are the same. Frames are runs, each a state's letter ([`State`]) with how many;
//! `^ORDER` makes them blocks of that order. So `a100 f4^2 F396` is 100 anonymous pages, four
//! blocks of four clean pages of files, and 396 free pages. Which blocks free pages form follows
//! from their addresses.

use super::{FoundZone, Frame, Host, Piece, Snapshot, infer};
use crate::frame::State;
use crate::host::page_size::SIZES;
use kontig_error::{AskedWrongly, Error};
use kontig_mm::MigrateType;
use kontig_text::one_line;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

const SCHEMA: &str = "kontig.snapshot/1";
const TYPES: [(MigrateType, &str); MigrateType::COUNT] = [
    (MigrateType::Unmovable, "U"),
    (MigrateType::Movable, "M"),
    (MigrateType::Reclaimable, "R"),
    (MigrateType::HighAtomic, "H"),
];
/// Bytes of the longest first line: a zone takes less than a KiB, and no machine has more than
/// 4096.
const MAX_HEADER: u64 = 4 << 20;
/// Bytes of the longest run of frames with the blank before it, and of the rest of a pageblock's
/// line.
const MAX_RUN: u64 = 12;
const MAX_REST: u64 = 64;
/// Bits of the largest block's size: the kernel's free lists end at the section of memory, a
/// gigabyte at most.
const MAX_BLOCK_BITS: u32 = 30;
/// As many CPUs, and nodes, as the kernel can be built for.
const MAX_CPUS: usize = 8192;
const MAX_NODES: u32 = 1024;
/// Pages of the min mark that a zone for movable pages has at most, whatever `min_free_kbytes` is.
const OWN_MARK: u64 = 128;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    schema: String,
    host: Host,
    zones: Vec<FoundZone>,
}

/// The first mistake in a text that should be a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadSnapshot {
    /// The line, from 1.
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for BadSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, one_line(&self.reason))
    }
}

impl std::error::Error for BadSnapshot {}

/// Why a file is not read as a snapshot.
#[derive(Debug)]
enum NoSnapshot {
    Unreadable(io::Error),
    /// It is none, or damaged.
    Bad(BadSnapshot),
}

impl From<io::Error> for NoSnapshot {
    fn from(e: io::Error) -> NoSnapshot {
        NoSnapshot::Unreadable(e)
    }
}

impl Snapshot {
    /// The text of the file.
    pub fn to_text(&self) -> String {
        let header = Header { schema: SCHEMA.into(), host: self.host.clone(), zones: self.zones.clone() };
        let mut text = serde_json::to_string(&header).expect("strings and numbers are JSON");
        text.push('\n');
        let blocks = self.frames.len().div_ceil(self.pages_per_block());
        let mut block = 0;
        while block < blocks {
            let line = self.block_line(block);
            let same = (block + 1..blocks).take_while(|b| self.block_line(*b) == line).count();
            let _ = write!(text, "{:x} {line}", block * self.pages_per_block());
            text.push_str(&if same > 0 { format!(" *{}\n", same + 1) } else { "\n".into() });
            block += 1 + same;
        }
        text
    }

    /// A pageblock's type and frames.
    fn block_line(&self, block: usize) -> String {
        let start = block * self.pages_per_block();
        let own = start..(start + self.pages_per_block()).min(self.frames.len());
        let t = self.types[block];
        let mut line: String = TYPES.iter().find(|(known, _)| *known == t).map_or("M", |(_, letter)| letter).into();
        // Free frames are runs; so are blocks of one order.
        let shape = |p: &Piece| if p.state.joins() { (p.state, 1) } else { (p.state, p.pages) };
        let mut last: Option<((State, usize), usize)> = None;
        for piece in self.pieces(own) {
            let n = if piece.state.joins() { piece.pages } else { 1 };
            match &mut last {
                Some((same, count)) if *same == shape(&piece) => *count += n,
                _ => {
                    put(&mut line, last.take());
                    last = Some((shape(&piece), n));
                }
            }
        }
        put(&mut line, last);
        line
    }

    /// Reads the file at a path, as far as it is a snapshot.
    ///
    /// # Errors
    /// If it cannot be read, or the first line that is not of this form.
    pub fn open(path: &Path) -> Result<Snapshot, Error> {
        let shown = path.display().to_string();
        let read = File::open(path).map_err(NoSnapshot::from).and_then(|file| Snapshot::read(BufReader::new(file)));
        let wrong = |e: NoSnapshot| match e {
            NoSnapshot::Unreadable(e) => AskedWrongly::Unreadable { path: shown, reason: e.to_string() },
            NoSnapshot::Bad(bad) => AskedWrongly::Malformed { path: shown, line: bad.line, reason: bad.reason },
        };
        Ok(read.map_err(wrong)?)
    }

    /// Reads the file's text.
    ///
    /// # Errors
    /// The first line that is not of this form.
    pub fn parse(text: &str) -> Result<Snapshot, BadSnapshot> {
        Snapshot::read(text.as_bytes()).map_err(|e| match e {
            NoSnapshot::Bad(bad) => bad,
            // Reading from memory does not fail.
            NoSnapshot::Unreadable(e) => BadSnapshot { line: 1, reason: e.to_string() },
        })
    }

    /// Reads line by line, no further than the first mistake: a file that is no snapshot may have
    /// no end.
    fn read(from: impl BufRead) -> Result<Snapshot, NoSnapshot> {
        let mut lines = Lines { from, number: 0, bytes: Vec::new() };
        let header = match lines.next(MAX_HEADER)? {
            None => Err("the file is empty".into()),
            Some(first) if !first.starts_with('{') => Err("no header of a snapshot: it does not begin with '{'".into()),
            Some(first) => serde_json::from_str(first).map_err(|e| format!("no header of a snapshot: {e}")),
        };
        let Header { host, zones, .. } = header.and_then(Header::checked).map_err(|reason| lines.bad(reason))?;
        let nr_frames = zones.iter().map(|z| z.start + z.spanned).max().unwrap_or(0) as usize;
        let pages_per_block = 1usize << host.block_order;
        let longest = MAX_REST + MAX_RUN * pages_per_block as u64;
        let (mut frames, mut types) = (Vec::new(), Vec::new());
        while let Some(line) = lines.next(longest)? {
            let read = match nr_frames - frames.len() {
                0 => Err("the zones end before this pageblock".into()),
                room => read_line(line, &mut frames, &mut types, pages_per_block, room),
            };
            read.map_err(|reason| lines.bad(reason))?;
        }
        if frames.len() != nr_frames {
            return Err(lines.bad(format!("the file is cut short: {} frames of {nr_frames}", frames.len())));
        }
        for zone in &zones {
            infer::free_blocks(&mut frames, zone);
        }
        Ok(Snapshot { host, zones, frames, types })
    }
}

/// Lines with their numbers, none longer than it may be.
struct Lines<R> {
    from: R,
    number: usize,
    bytes: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The next line, without its end.
    fn next(&mut self, longest: u64) -> Result<Option<&str>, NoSnapshot> {
        self.bytes.clear();
        // With its end, or a byte too many.
        let got = self.from.by_ref().take(longest + 1).read_until(b'\n', &mut self.bytes)?;
        if got == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
        }
        if self.bytes.len() as u64 > longest {
            return Err(self.bad(format!("longer than {longest} bytes, which no line of a snapshot is")));
        }
        match std::str::from_utf8(&self.bytes) {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(NoSnapshot::Bad(BadSnapshot { line: self.number, reason: "this is no text".into() })),
        }
    }

    /// An error about the line read last.
    fn bad(&self, reason: String) -> NoSnapshot {
        NoSnapshot::Bad(BadSnapshot { line: self.number.max(1), reason })
    }
}

impl Header {
    /// The header, if it is possible.
    fn checked(self) -> Result<Header, String> {
        self.check().map(|()| self)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema '{}' where '{SCHEMA}' should be", self.schema));
        }
        let host = &self.host;
        if !SIZES.contains(&host.page_size) {
            let known = SIZES.map(|bytes| bytes.to_string()).join(", ");
            return Err(format!("pages of {} bytes: they have one of {known}", host.page_size));
        }
        if !(1..=18).contains(&host.block_order) {
            return Err(format!("a pageblock of order {}: 1 to 18 are possible", host.block_order));
        }
        if host.cpus > MAX_CPUS {
            return Err(format!("{} CPUs: at most {MAX_CPUS} are possible", host.cpus));
        }
        let most = (MAX_BLOCK_BITS - host.page_size.ilog2() + 1) as usize;
        let (orders, least) = (self.zones.first().map_or(0, |z| z.free.len()), usize::from(host.block_order) + 1);
        let mut end = 0;
        for z in &self.zones {
            z.check()?;
            if z.start < end {
                return Err(format!("{}: overlaps the zone before it", z.title()));
            }
            if z.node >= MAX_NODES {
                return Err(format!("{}: nodes are numbered up to {}", z.title(), MAX_NODES - 1));
            }
            if z.free.len() != orders || !(least..=most).contains(&orders) {
                let (title, found) = (z.title(), z.free.len());
                return Err(format!(
                    "{title}: {found} orders of free blocks: {least} to {most}, and in all zones as many"
                ));
            }
            end = z.start + z.spanned;
        }
        if end == 0 {
            return Err("there is no zone with memory".into());
        }
        self.agrees_with_its_marks()
    }

    /// The zones' min marks are pages, `min_free_kbytes` is not: the size of a page follows from
    /// both, with a margin for rounding and for zones whose mark has a bound of its own.
    fn agrees_with_its_marks(&self) -> Result<(), String> {
        let set = self.host.sysctls.iter().find(|(name, _)| name == "min_free_kbytes");
        let Some(kib) = set.and_then(|(_, value)| value.parse::<u64>().ok()) else { return Ok(()) };
        let pages: u64 = self.zones.iter().map(|z| z.marks[0]).sum();
        let page_kib = self.host.page_size / 1024;
        let told = kib / page_kib;
        let room = OWN_MARK * self.zones.len() as u64;
        if pages.saturating_add(room) < told / 2 || told.saturating_add(room) < pages / 2 {
            return Err(format!(
                "min_free_kbytes is {kib}, {told} pages of {page_kib} KiB, but the zones' min marks are {pages} pages"
            ));
        }
        Ok(())
    }
}

fn put(line: &mut String, run: Option<((State, usize), usize)>) {
    let Some(((state, pages), count)) = run else { return };
    let _ = write!(line, " {}{count}", char::from(state.letter()));
    if pages > 1 {
        let _ = write!(line, "^{}", pages.ilog2());
    }
}

/// Reads the line of a pageblock, or of some that are equal.
fn read_line(
    line: &str,
    frames: &mut Vec<Frame>,
    types: &mut Vec<MigrateType>,
    pages_per_block: usize,
    room: usize,
) -> Result<(), String> {
    let mut words = line.split(' ');
    let pfn = words.next().unwrap_or_default();
    if usize::from_str_radix(pfn, 16) != Ok(frames.len()) {
        return Err(format!("'{pfn}' where the frame number {:x} should be", frames.len()));
    }
    let letter = words.next().unwrap_or_default();
    let t = TYPES.iter().find(|(_, known)| *known == letter);
    let (t, _) = t.ok_or_else(|| format!("'{letter}' where a pageblock's type should be: U, M, R or H"))?;
    let start = frames.len();
    let mut times = 1;
    for word in words {
        match word.strip_prefix('*') {
            Some(n) => times = n.parse().map_err(|_| format!("'{word}' is no number of pageblocks"))?,
            None => read_run(word, frames, start + pages_per_block.min(room))?,
        }
    }
    let len = frames.len() - start;
    if len != pages_per_block.min(room) {
        return Err(format!("{len} frames where a pageblock has {}", pages_per_block.min(room)));
    }
    if times == 0 || len.checked_mul(times).is_none_or(|pages| pages > room) {
        return Err(format!("{times} such pageblocks, more than the zones have room for"));
    }
    types.push(*t);
    for _ in 1..times {
        frames.extend_from_within(start..start + len);
        types.push(*t);
    }
    Ok(())
}

/// Reads a run of frames, which may not go beyond `end`.
fn read_run(word: &str, frames: &mut Vec<Frame>, end: usize) -> Result<(), String> {
    let bad = || format!("'{word}' is no run of frames, as 'a12' or 'f4^2'");
    let (letter, rest) = word.split_at_checked(1).ok_or_else(bad)?;
    let state = State::of_letter(letter.as_bytes()[0]).ok_or_else(bad)?;
    let (count, order) = rest.split_once('^').unwrap_or((rest, "0"));
    let (count, order): (usize, u32) = (count.parse().map_err(|_| bad())?, order.parse().map_err(|_| bad())?);
    let pages = 1usize.checked_shl(order).ok_or_else(bad)?;
    let room = end - frames.len();
    if pages.checked_mul(count).is_none_or(|frames| frames > room) {
        return Err(format!("'{word}' is more than the {room} frames that are left of its pageblock"));
    }
    if !frames.len().is_multiple_of(pages) {
        return Err(format!("'{word}' does not start at a multiple of its blocks' size"));
    }
    for _ in 0..count {
        frames.push(Frame::head(state));
        frames.resize(frames.len() + pages - 1, Frame::tail(state));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = concat!(
        r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.18.44","page_size":4096,"block_order":3,"cpus":2,"#,
        r#""pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":8,"spanned":30,"present":30,"#,
        r#""managed":20,"marks":[1,2,3,4],"boost":0,"protection":[0,0],"cached":1,"free":[0,0,0,1],"#,
        r#""blocks":[1,2,1,0]}]}"#,
    );
    const BLOCKS: &str = "0 M .8\n8 M F8 *2\n18 U s3 F1 f1^2\n20 R x6\n";

    #[test]
    fn a_snapshot_that_was_written_is_read_back() {
        let text = format!("{HEADER}\n{BLOCKS}");
        let snapshot = Snapshot::parse(&text).expect("it is a snapshot");
        assert_eq!(snapshot.to_text(), text);
        assert_eq!(snapshot.free_blocks(&snapshot.zones[0]), [1, 0, 0, 2]);
        assert_eq!(snapshot.frame(0x1d), Frame::tail(State::FileClean));
        assert_eq!(snapshot.block_type(3), MigrateType::Unmovable);
    }

    #[test]
    fn a_text_that_is_no_snapshot_is_refused_with_its_line() {
        let said = |blocks: &str| Snapshot::parse(&format!("{HEADER}\n{blocks}")).expect_err("refused").to_string();
        assert_eq!(said("0 M .8\n"), "line 2: the file is cut short: 8 frames of 38");
        assert_eq!(said("8 M .8\n"), "line 2: '8' where the frame number 0 should be");
        assert_eq!(said("0 X .8\n"), "line 2: 'X' where a pageblock's type should be: U, M, R or H");
        assert_eq!(said("0 M .7\n"), "line 2: 7 frames where a pageblock has 8");
        assert_eq!(said("0 M .9\n"), "line 2: '.9' is more than the 8 frames that are left of its pageblock");
        assert_eq!(said("0 M s1 f1^2 s3\n"), "line 2: 'f1^2' does not start at a multiple of its blocks' size");
        assert_eq!(said("0 M ä8\n"), "line 2: 'ä8' is no run of frames, as 'a12' or 'f4^2'");
        assert_eq!(said("0 M .8 *99\n"), "line 2: 99 such pageblocks, more than the zones have room for");
        let other = HEADER.replace("snapshot/1", "snapshot/2");
        let said = Snapshot::parse(&other).expect_err("refused").to_string();
        assert_eq!(said, "line 1: schema 'kontig.snapshot/2' where 'kontig.snapshot/1' should be");
    }

    #[track_caller]
    fn refused(change: (&str, &str)) -> String {
        assert!(HEADER.contains(change.0));
        let text = format!("{}\n{BLOCKS}", HEADER.replace(change.0, change.1));
        Snapshot::parse(&text).expect_err("refused").to_string()
    }

    #[test]
    fn pages_are_of_a_size_that_linux_has() {
        for bytes in ["0", "3000", "18446744073709551615"] {
            let said = refused(("4096", bytes));
            assert_eq!(
                said,
                format!("line 1: pages of {bytes} bytes: they have one of 4096, 8192, 16384, 65536, 262144")
            );
        }
    }

    #[test]
    fn the_size_of_a_page_agrees_with_what_is_said_in_pages_and_in_kib() {
        let marks = "\"marks\":[16896,2,3,4]";
        let header = HEADER.replace("\"marks\":[1,2,3,4]", marks);
        let with = |page: &str| {
            let set = "\"sysctls\":[[\"min_free_kbytes\",\"67584\"]]";
            let text = header.replace("\"sysctls\":[]", set).replace("4096", page);
            Snapshot::parse(&format!("{text}\n{BLOCKS}")).map_err(|e| e.to_string())
        };
        assert!(with("4096").is_ok());
        let said = "line 1: min_free_kbytes is 67584, 1056 pages of 64 KiB, but the zones' min marks are 16896 pages";
        assert_eq!(with("65536").expect_err("refused"), said);
    }

    #[test]
    fn a_zone_holds_no_more_than_it_has() {
        let zone = "line 1: node 0 zone Normal: ";
        for free in ["[0,0,0,3]", "[0,0,0,9999999999999999999]", "[9999999999999999999,9999999999999999999,0,1]"] {
            assert_eq!(refused(("[0,0,0,1]", free)), format!("{zone}more free pages than the 20 that it has"));
        }
        let said = refused(("\"cached\":1", "\"cached\":21"));
        assert_eq!(said, format!("{zone}21 free pages on CPUs' lists of the 20 that it has"));
        let said = refused(("[1,2,3,4]", "[1,18446744073709551615,3,4]"));
        assert_eq!(
            said,
            format!("{zone}a mark, boost or protection of 18446744073709551615 pages, more than a machine has")
        );
        let said = refused(("\"managed\":20", "\"managed\":31"));
        assert_eq!(said, format!("{zone}managed ≤ present ≤ spanned must hold"));
        assert_eq!(
            refused(("\"spanned\":30", "\"spanned\":18446744073709551610")),
            format!("{zone}ends beyond 16 TiB")
        );
    }

    #[test]
    fn free_lists_have_orders_that_are_possible() {
        let orders = |n: usize| format!("[{}]", vec!["0"; n].join(","));
        for n in [3, 31] {
            let said = refused(("[0,0,0,1]", &orders(n)));
            let all = "orders of free blocks: 4 to 19, and in all zones as many";
            assert_eq!(said, format!("line 1: node 0 zone Normal: {n} {all}"));
        }
        assert_eq!(refused(("\"cpus\":2", "\"cpus\":9999999")), "line 1: 9999999 CPUs: at most 8192 are possible");
        assert_eq!(
            refused(("\"node\":0", "\"node\":4000000000")),
            "line 1: node 4000000000 zone Normal: nodes are numbered up to 1023"
        );
    }

    #[test]
    fn an_endless_file_is_not_read_to_its_end() {
        let said = |from: &mut dyn Read| match Snapshot::read(BufReader::new(from)) {
            Err(NoSnapshot::Bad(bad)) => bad.to_string(),
            other => panic!("{other:?}"),
        };
        let header = format!("{HEADER}\n");
        assert_eq!(said(&mut io::repeat(0)), "line 1: longer than 4194304 bytes, which no line of a snapshot is");
        let endless_line = said(&mut header.as_bytes().chain(io::repeat(b' ')));
        assert_eq!(endless_line, "line 2: longer than 160 bytes, which no line of a snapshot is");
        let endless_lines = said(&mut header.as_bytes().chain(BLOCKS.as_bytes()).chain(io::repeat(b'\n')));
        assert_eq!(endless_lines, "line 6: the zones end before this pageblock");
        assert_eq!(said(&mut &b"\xff\n"[..]), "line 1: this is no text");
        assert_eq!(said(&mut &b"PNG\n"[..]), "line 1: no header of a snapshot: it does not begin with '{'");
    }
}
