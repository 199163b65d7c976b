//! A history's file, read: its samples in the order in which they were written, as far as they are
//! whole.
//!
//! Every record has a checksum, and a difference names the sample that it is to. So damage in the
//! middle costs what is damaged and the differences to it, up to the next sample that stands by
//! itself.

use super::at::{At, clock};
use super::delta;
use super::record::{FIRST_LINE, Kind, Record, next};
use super::sample::Sample;
use kontig_text::{grouped, size};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file of a history.
#[derive(Debug)]
pub struct History {
    pub path: PathBuf,
    bytes: Vec<u8>,
}

/// Why a file is not read as a history.
#[derive(Debug)]
pub enum NoHistory {
    Unreadable(PathBuf, io::Error),
    /// It is another kind of file.
    Other(PathBuf),
    /// Nothing was written to it yet.
    Empty(PathBuf),
    /// No sample of it can be read.
    Damaged(PathBuf, Damage),
    /// The moment asked for is not in it.
    NoMoment(PathBuf, String),
}

impl fmt::Display for NoHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoHistory::Unreadable(path, e) => write!(f, "{}: {e}", path.display()),
            NoHistory::Other(path) => write!(
                f,
                "{}: line 1: this is no history: name a file that 'kontig history record' wrote",
                path.display()
            ),
            NoHistory::Empty(path) => write!(f, "{}: there is no whole sample in it", path.display()),
            NoHistory::Damaged(path, damage) => write!(f, "{}: no sample can be read: {damage}", path.display()),
            NoHistory::NoMoment(path, why) => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for NoHistory {}

/// The parts that are not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Damage {
    /// Bytes that belong to no whole record.
    pub bytes: u64,
    /// Samples that are differences to one that is not there.
    pub samples: u64,
}

impl Damage {
    /// Whether anything cannot be read.
    pub fn is_any(&self) -> bool {
        *self != Damage::default()
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samples = grouped(self.samples);
        match (self.bytes, self.samples) {
            (0, _) => write!(f, "{samples} samples cannot be read, as they build on one that is missing"),
            (bytes, 0) => write!(f, "{} are damaged", size(bytes)),
            (bytes, _) => {
                write!(f, "{} are damaged, and {samples} samples that build on that cannot be read", size(bytes))
            }
        }
    }
}

/// A moment of a history: a sample and what was known before it.
#[derive(Clone, Debug)]
pub struct Moment {
    pub sample: Sample,
    /// The last snapshot of all frames before it in the same boot, and its time.
    pub snapshot: Option<(i64, String)>,
    /// Milliseconds that the moment asked for is behind the sample.
    pub behind_ms: i64,
    /// The sample before it, of the same boot.
    pub before: Option<Sample>,
}

/// A record that could be read.
pub enum Item {
    Sample(Sample),
    /// A snapshot's text, and its time.
    Snapshot(i64, String),
}

impl History {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is no history.
    pub fn open(path: &Path) -> Result<History, NoHistory> {
        let bytes = fs::read(path).map_err(|e| NoHistory::Unreadable(path.into(), e))?;
        match bytes.starts_with(FIRST_LINE) {
            true => Ok(History { path: path.into(), bytes }),
            false if FIRST_LINE.starts_with(&bytes) => Err(NoHistory::Empty(path.into())),
            false => Err(NoHistory::Other(path.into())),
        }
    }

    /// Its records that can be read, in the order in which they were written.
    pub fn items(&self) -> Items<'_> {
        Items { bytes: &self.bytes, at: FIRST_LINE.len(), last: None, damage: Damage::default() }
    }

    /// The times of the first and the last sample that can be read.
    ///
    /// # Errors
    /// If there is none.
    pub fn span(&self) -> Result<(i64, i64), NoHistory> {
        // By the checksums alone, as a difference names the sample that it is to.
        let mut last = None;
        let readable = |(_, record): &(usize, Record<'_>)| match record.kind {
            Kind::Snapshot => false,
            Kind::Difference if last != Some(record.parent) => false,
            _ => {
                last = Some(record.checksum);
                true
            }
        };
        let records = Records { bytes: &self.bytes, at: FIRST_LINE.len() };
        let mut times = records.filter(readable).map(|(_, record)| record.unix_ms);
        let Some(first) = times.next() else { return Err(self.without_samples()) };
        Ok((first, times.last().unwrap_or(first)))
    }

    fn without_samples(&self) -> NoHistory {
        let mut items = self.items();
        items.by_ref().for_each(drop);
        match items.damage() {
            damage if damage.is_any() => NoHistory::Damaged(self.path.clone(), damage),
            _ => NoHistory::Empty(self.path.clone()),
        }
    }

    /// The last sample that is not later than a moment.
    ///
    /// # Errors
    /// If no sample is, or the moment is behind the end.
    pub fn moment(&self, at: At) -> Result<Moment, NoHistory> {
        let (first, last) = self.span()?;
        let wanted = at.unix_ms(first, last);
        let none = |why: String| NoHistory::NoMoment(self.path.clone(), why);
        if wanted > last.saturating_add(BEHIND_THE_END_MS) {
            return Err(none(format!("it ends at {}, before {}", clock(last), clock(wanted))));
        }
        let mut found: Option<Moment> = None;
        let (mut last, mut snapshot): (Option<Sample>, Option<(i64, String)>) = (None, None);
        for item in self.items() {
            match item {
                Item::Sample(sample) => {
                    let before = last.take().filter(|last| last.boot() == sample.boot());
                    if before.is_none() {
                        snapshot = None;
                    }
                    last = Some(sample.clone());
                    if sample.unix_ms <= wanted {
                        let (behind_ms, snapshot) = (wanted - sample.unix_ms, snapshot.clone());
                        found = Some(Moment { sample, snapshot, behind_ms, before });
                    }
                }
                Item::Snapshot(unix_ms, text) => snapshot = Some((unix_ms, text)),
            }
        }
        let early = || none(format!("it begins at {}, behind {}", clock(first), clock(wanted)));
        found.ok_or_else(early)
    }
}

/// A moment may be that much behind the last sample: people round.
const BEHIND_THE_END_MS: i64 = 60_000;

/// Whole records, and where they are.
struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, Record<'a>);

    fn next(&mut self) -> Option<(usize, Record<'a>)> {
        let (at, record) = next(self.bytes, self.at)?;
        self.at = at + record.len;
        Some((at, record))
    }
}

/// The records that can be read, one after the other.
pub struct Items<'a> {
    bytes: &'a [u8],
    at: usize,
    last: Option<(u32, Sample)>,
    damage: Damage,
}

impl Items<'_> {
    /// The damage in the part that has been read.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// The sample in a record, if what it builds on is there.
    fn sample(&self, record: &Record<'_>) -> Option<Sample> {
        let contents = record.contents()?;
        let files = match (record.kind, &self.last) {
            (Kind::Whole, _) => delta::apply(&Default::default(), &contents)?,
            (_, Some((checksum, last))) if *checksum == record.parent => delta::apply(&last.files, &contents)?,
            _ => return None,
        };
        Some(Sample { unix_ms: record.unix_ms, files })
    }
}

impl Iterator for Items<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            let Some((at, record)) = next(self.bytes, self.at) else {
                self.damage.bytes += (self.bytes.len() - self.at) as u64;
                self.at = self.bytes.len();
                return None;
            };
            self.damage.bytes += (at - self.at) as u64;
            self.at = at + record.len;
            if record.kind == Kind::Snapshot {
                match record.contents().and_then(|text| String::from_utf8(text).ok()) {
                    Some(text) => return Some(Item::Snapshot(record.unix_ms, text)),
                    None => continue,
                }
            }
            match self.sample(&record) {
                Some(sample) => {
                    self.last = Some((record.checksum, sample.clone()));
                    return Some(Item::Sample(sample));
                }
                None => self.damage.samples += 1,
            }
        }
    }
}
