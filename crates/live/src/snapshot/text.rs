//! A snapshot as a file: what can be kept, sent and read again.
//!
//! The first line is JSON: `schema` (`kontig.snapshot/1`), `host`, `zones`. Every other line is a pageblock, or some that are
//! equal: the number of its first frame in hex, the letter of its type (`U` unmovable, `M` movable, `R` reclaimable, `H`
//! highatomic), its frames, and `*N` if the next N − 1 pageblocks are the same. Frames are runs, each a state's letter
//! ([`State`]) with how many; `^ORDER` makes them blocks of that order. So `a100 f4^2 F396` is 100 anonymous pages,
//! four blocks of four clean pages of files, and 396 free pages. Which blocks free pages form follows from their
//! addresses.

use super::{FoundZone, Frame, Host, Piece, Snapshot, infer};
use crate::frame::State;
use kontig_mm::MigrateType;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

const SCHEMA: &str = "kontig.snapshot/1";
const TYPES: [(MigrateType, &str); MigrateType::COUNT] = [
    (MigrateType::Unmovable, "U"),
    (MigrateType::Movable, "M"),
    (MigrateType::Reclaimable, "R"),
    (MigrateType::HighAtomic, "H"),
];
/// No machine has more frames than this: 16 TiB of 4 KiB pages.
const MAX_FRAMES: u64 = 1 << 32;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    schema: String,
    host: Host,
    zones: Vec<FoundZone>,
}

/// What is wrong with a text that should be a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadSnapshot {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for BadSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for BadSnapshot {}

impl Snapshot {
    /// Writes the file.
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
        let shape = |p: &Piece| if p.state == State::Free { (p.state, 1) } else { (p.state, p.pages) };
        let mut last: Option<((State, usize), usize)> = None;
        for piece in self.pieces(own) {
            let n = if piece.state == State::Free { piece.pages } else { 1 };
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

    /// Reads the file.
    ///
    /// # Errors
    /// The first line that is not of this form.
    pub fn parse(text: &str) -> Result<Snapshot, BadSnapshot> {
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
        let bad = |line: usize, reason: String| BadSnapshot { line, reason };
        let (_, first) = lines.next().ok_or_else(|| bad(1, "the file is empty".into()))?;
        let header: Header =
            serde_json::from_str(first).map_err(|e| bad(1, format!("no header of a snapshot: {e}")))?;
        header.check().map_err(|reason| bad(1, reason))?;
        let Header { host, zones, .. } = header;
        let nr_frames = zones.iter().map(|z| z.start + z.spanned).max().unwrap_or(0) as usize;
        let pages_per_block = 1usize << host.block_order;
        let (mut frames, mut types) = (Vec::new(), Vec::new());
        for (number, line) in lines {
            if frames.len() >= nr_frames {
                return Err(bad(number, "the zones end before this pageblock".into()));
            }
            let room = nr_frames - frames.len();
            read_line(line, &mut frames, &mut types, pages_per_block, room).map_err(|reason| bad(number, reason))?;
        }
        if frames.len() != nr_frames {
            let reason = format!("the file is cut short: {} frames of {nr_frames}", frames.len());
            return Err(bad(text.lines().count(), reason));
        }
        for zone in &zones {
            infer::free_blocks(&mut frames, zone);
        }
        Ok(Snapshot { host, zones, frames, types })
    }
}

impl Header {
    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema '{}' where '{SCHEMA}' should be", self.schema));
        }
        if !(1..=18).contains(&self.host.block_order) {
            return Err(format!("a pageblock of order {}: 1 to 18 are possible", self.host.block_order));
        }
        let mut end = 0;
        for z in &self.zones {
            let its_end = z.start.checked_add(z.spanned).filter(|e| *e <= MAX_FRAMES);
            let Some(its_end) = its_end.filter(|_| z.start >= end) else {
                return Err(format!("{}: overlaps the zone before it, or ends beyond 16 TiB", z.title()));
            };
            if z.managed > z.present || z.present > z.spanned {
                return Err(format!("{}: managed ≤ present ≤ spanned must hold", z.title()));
            }
            if !(1..=32).contains(&z.free.len()) {
                return Err(format!("{}: {} orders of free blocks: 1 to 32 are possible", z.title(), z.free.len()));
            }
            end = its_end;
        }
        if end == 0 { Err("there is no zone with memory".into()) } else { Ok(()) }
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

    const HEADER: &str = r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.18.44","page_size":4096,"block_order":3,"cpus":2,"pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":8,"spanned":30,"present":30,"managed":20,"marks":[1,2,3,4],"boost":0,"protection":[0,0],"cached":1,"free":[0,0,0,1],"blocks":[1,2,1,0]}]}"#;
    const BLOCKS: &str = "0 M .8\n8 M F8 *2\n18 U s3 F1 f1^2\n20 R x6\n";

    #[test]
    fn what_is_written_is_read_again() {
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
}
