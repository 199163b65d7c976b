//! Appends to a history's file. Nothing that stands in it is ever written again.
//!
//! A record is written by one call. If the disk is full in the middle of one, that part is cut off
//! again; if the process is killed there, the part stays, and readers pass over it.

use super::delta;
use super::record::{FIRST_LINE, Kind, pack};
use super::sample::{Sample, Stored};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A sample stands by itself after this number of differences: damage costs no more than these.
const DIFFERENCES: u32 = 60;

/// A history's file that is being written.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    /// The last sample, and the checksum of its record.
    before: Option<(BTreeMap<Arc<str>, Stored>, u32)>,
    /// Differences since a sample that stands by itself.
    differences: u32,
}

/// Why a file is not written as a history.
#[derive(Debug)]
pub enum NotWritten {
    /// The kernel refuses; what was written before is whole.
    Failed(PathBuf, io::Error),
    /// Another process writes it.
    InUse(PathBuf),
    /// It is another kind of file.
    Other(PathBuf),
}

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotWritten::Failed(path, e) => write!(f, "{}: {e}; what it has is whole", path.display()),
            NotWritten::InUse(path) => {
                write!(
                    f,
                    "{}: another 'kontig history record' writes it: end that, or name another file",
                    path.display()
                )
            }
            NotWritten::Other(path) => {
                write!(f, "{}: this is no history, and stays as it is: name another file", path.display())
            }
        }
    }
}

impl std::error::Error for NotWritten {}

impl Writer {
    /// Opens a history to append to it, or makes a new one, for its owner's eyes only: it holds
    /// what only root may read.
    ///
    /// # Errors
    /// If it cannot be written, is no history, or another process writes it.
    pub fn append(path: &Path) -> Result<Writer, NotWritten> {
        let failed = |e: io::Error| NotWritten::Failed(path.into(), e);
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            return Err(NotWritten::Other(path.into()));
        }
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(NotWritten::InUse(path.into())),
            Err(e) => return Err(failed(e.into())),
        }
        let mut first = Vec::new();
        Read::by_ref(&mut file).take(FIRST_LINE.len() as u64).read_to_end(&mut first).map_err(failed)?;
        let mut writer = Writer { path: path.into(), file, before: None, differences: 0 };
        if first != FIRST_LINE {
            // A file that ends within its first line is one whose writer was killed there.
            if !FIRST_LINE.starts_with(&first) {
                return Err(NotWritten::Other(path.into()));
            }
            writer.put(&FIRST_LINE[first.len()..])?;
        }
        Ok(writer)
    }

    /// Appends a sample, and returns the bytes that it took.
    ///
    /// # Errors
    /// If the kernel refuses; what was written before is whole.
    pub fn sample(&mut self, sample: &Sample) -> Result<u64, NotWritten> {
        let parent = self.before.as_ref().filter(|_| self.differences < DIFFERENCES);
        let (kind, parent, contents) = match parent {
            Some((files, checksum)) => (Kind::Difference, *checksum, delta::difference(files, sample)),
            None => (Kind::Whole, 0, delta::whole(sample)),
        };
        let (bytes, checksum) = self.pack(kind, sample.unix_ms, parent, &contents)?;
        self.put(&bytes)?;
        self.differences = if kind == Kind::Whole { 0 } else { self.differences + 1 };
        self.before = Some((sample.files.clone(), checksum));
        Ok(bytes.len() as u64)
    }

    /// Appends a snapshot of all frames, and returns the bytes that it took.
    ///
    /// # Errors
    /// As of [`Writer::sample`].
    pub fn snapshot(&mut self, unix_ms: i64, text: &str) -> Result<u64, NotWritten> {
        let (bytes, _) = self.pack(Kind::Snapshot, unix_ms, 0, text.as_bytes())?;
        self.put(&bytes)?;
        Ok(bytes.len() as u64)
    }

    fn pack(&self, kind: Kind, unix_ms: i64, parent: u32, contents: &[u8]) -> Result<(Vec<u8>, u32), NotWritten> {
        let too_long = || self.failed(io::Error::other("a sample of more than 1 GiB"));
        pack(kind, unix_ms, parent, contents).ok_or_else(too_long)
    }

    /// Writes all of it or nothing.
    fn put(&mut self, bytes: &[u8]) -> Result<(), NotWritten> {
        let before = self.file.metadata().map_err(|e| self.failed(e))?.len();
        let written = self.file.write_all(bytes);
        written.map_err(|e| {
            // Readers pass over a part; without one, the file is as it was.
            let _ = self.file.set_len(before);
            self.failed(e)
        })
    }

    fn failed(&self, e: io::Error) -> NotWritten {
        NotWritten::Failed(self.path.clone(), e)
    }
}
