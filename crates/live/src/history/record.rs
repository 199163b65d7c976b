//! The records of a history's file, and how they are found again in a damaged one.
//!
//! After a first line ([`FIRST_LINE`]) records follow. Each is a header of 28 bytes and compressed
//! bytes (deflate), with a checksum over both. A record is written by one call, so that whatever
//! ends the writer, all records before stay whole. What is no whole record is passed over byte by
//! byte, up to the next one whose checksum is right.

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{Read, Write};

/// The first line of a history's file: what it is, and in which form.
pub const FIRST_LINE: &[u8] = b"kontig.history/1\n";

/// The contents of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A sample by itself.
    Whole,
    /// A sample as the difference to the one before it.
    Difference,
    /// A snapshot of all frames, as `kontig snapshot` writes it.
    Snapshot,
}

impl Kind {
    const ALL: [(Kind, u8); 3] = [(Kind::Whole, b'W'), (Kind::Difference, b'D'), (Kind::Snapshot, b'S')];

    fn letter(self) -> u8 {
        Kind::ALL.into_iter().find(|(kind, _)| *kind == self).map_or(0, |(_, letter)| letter)
    }

    fn of(letter: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|(_, l)| *l == letter).map(|(kind, _)| kind)
    }
}

/// The first bytes of a record.
const MARK: [u8; 3] = [0xf5, b'K', b'H'];
/// Bytes of a header: mark, kind, checksum, time, parent, length unpacked and packed.
const HEADER: usize = 4 + 4 + 8 + 4 + 4 + 4;
/// No record is longer than this, unpacked.
const MOST: u32 = 1 << 30;

/// A record as it stands in the file.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub kind: Kind,
    /// The host's clock when it was written: milliseconds since 1970.
    pub unix_ms: i64,
    /// The checksum of the sample that a difference is to; 0 of other kinds.
    pub parent: u32,
    /// Its own checksum, by which a difference to it names it.
    pub checksum: u32,
    unpacked: u32,
    packed: &'a [u8],
    /// Bytes of the whole record.
    pub len: usize,
}

/// The bytes of a record, and its checksum; `None` if it is longer than a record can be.
pub fn pack(kind: Kind, unix_ms: i64, parent: u32, contents: &[u8]) -> Option<(Vec<u8>, u32)> {
    let unpacked = u32::try_from(contents.len()).ok().filter(|len| *len <= MOST)?;
    let mut out = vec![0; HEADER];
    let mut encoder = DeflateEncoder::new(out, Compression::best());
    // Writing to memory does not fail.
    encoder.write_all(contents).ok()?;
    out = encoder.finish().ok()?;
    let packed = u32::try_from(out.len() - HEADER).ok()?;
    out[..3].copy_from_slice(&MARK);
    out[3] = kind.letter();
    out[8..16].copy_from_slice(&unix_ms.to_le_bytes());
    out[16..20].copy_from_slice(&parent.to_le_bytes());
    out[20..24].copy_from_slice(&unpacked.to_le_bytes());
    out[24..28].copy_from_slice(&packed.to_le_bytes());
    let checksum = sum(&out);
    out[4..8].copy_from_slice(&checksum.to_le_bytes());
    Some((out, checksum))
}

/// The checksum of a record: of all its bytes but the checksum itself.
fn sum(record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&record[..4]);
    hasher.update(&record[8..]);
    hasher.finalize()
}

impl Record<'_> {
    /// The record that begins here, if it is whole.
    pub fn at(bytes: &[u8]) -> Option<Record<'_>> {
        let header: &[u8; HEADER] = bytes.first_chunk()?;
        if header[..3] != MARK {
            return None;
        }
        let word = |at: usize| header[at..].first_chunk().copied().map(u32::from_le_bytes);
        let packed = usize::try_from(word(24)?).ok()?;
        let record = bytes.get(..HEADER.checked_add(packed)?)?;
        let checksum = word(4)?;
        (sum(record) == checksum).then_some(Record {
            kind: Kind::of(header[3])?,
            unix_ms: header[8..].first_chunk().copied().map(i64::from_le_bytes)?,
            parent: word(16)?,
            checksum,
            unpacked: word(20)?,
            packed: &record[HEADER..],
            len: record.len(),
        })
    }

    /// The bytes that were packed; `None` if these are not of them.
    pub fn contents(&self) -> Option<Vec<u8>> {
        let expected = usize::try_from(self.unpacked.min(MOST)).ok()?;
        let mut contents = Vec::with_capacity(expected.min(1 << 20));
        let decoder = DeflateDecoder::new(self.packed).take(u64::from(self.unpacked) + 1);
        decoder.take(u64::from(MOST) + 1).read_to_end(&mut contents).ok()?;
        (contents.len() == expected).then_some(contents)
    }
}

/// The first whole record at or behind a place, and where it is.
pub fn next(bytes: &[u8], from: usize) -> Option<(usize, Record<'_>)> {
    let mut at = from;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.windows(MARK.len()).position(|window| window == MARK)?;
        match Record::at(&bytes[at..]) {
            Some(record) => return Some((at, record)),
            None => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_one_with_any_bit_turned_does_not() {
        let contents = b"nr_free_pages 5000123\n".repeat(3);
        let (bytes, checksum) = pack(Kind::Difference, -5, 7, &contents).expect("it is short");
        let record = Record::at(&bytes).expect("it is whole");
        assert_eq!((record.kind, record.unix_ms, record.parent), (Kind::Difference, -5, 7));
        assert_eq!((record.checksum, record.len, record.contents()), (checksum, bytes.len(), Some(contents)));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::at(&damaged).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn behind_damage_the_next_whole_record_is_found() {
        let pack = |text: &[u8]| pack(Kind::Whole, 0, 0, text).expect("it is short").0;
        let (first, second) = (pack(b"first"), pack(b"second"));
        let cut = &first[..first.len() - 1];
        let bytes = [cut, &MARK, &second].concat();
        let (at, record) = next(&bytes, 0).expect("one is whole");
        assert_eq!((at, record.contents().as_deref()), (cut.len() + MARK.len(), Some(&b"second"[..])));
        assert!(next(&bytes, at + 1).is_none());
    }
}
