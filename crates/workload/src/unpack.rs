//! Unpacking an archive: many small files are created, written and closed, one after the other.
//!
//! It leaves a page cache full of small files, each with an inode, a dentry and a node of a tree.
//! All files have the mean length; a kernel's tree (6.1) has 78,579 files, which take 1,417 MiB in
//! whole pages.

use crate::benchmark::{Benchmark, Measured, Start, Written};
use crate::size::pages;
use kontig_program::act::{Files, Lengths};
use kontig_program::{Batch, FileName, Op, Outcome, Program, SplitMix64, Value};
use serde::{Deserialize, Serialize};

/// An archive of files.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Unpack {
    pub files: u32,
    /// Their total size in whole pages, such as `"1417 MiB"`.
    pub size: String,
    #[serde(default)]
    pub disk: u8,
    /// Whether each repetition unpacks to another place; else it overwrites the same files.
    #[serde(default)]
    pub elsewhere: bool,
}

impl Benchmark for Unpack {
    type Program = Unpacker;

    fn program(&self, start: &Start) -> Result<Unpacker, String> {
        let pages = pages("size", &self.size)?;
        if self.files == 0 || pages < self.files {
            let (files, size) = (self.files, &self.size);
            return Err(format!("files = {files}: from 1 to the pages of {size}, each file has a page at the least"));
        }
        let place = if self.elsewhere { 1 + SplitMix64::new(start.seed).next_u64() % PLACES } else { 0 };
        let first = FileName::new(self.disk, place << 43 | 3 << 40);
        let archive = Files { first, files: self.files, lengths: Lengths::Mean(pages) };
        Ok(Unpacker { archive, next: 0, opened: 0 })
    }

    fn measured(&self, _: &[&Unpacker]) -> Measured {
        Measured::default()
    }

    fn fits(&self, _: u64, copies: u64) -> Result<(), String> {
        if copies == 1 {
            return Ok(());
        }
        Err(format!("files = {}: {copies} copies would write the same", self.files))
    }

    fn written(&self) -> Vec<Written> {
        let pages = pages("size", &self.size).map_or(0, u64::from);
        vec![Written { key: "size", disk: self.disk, pages }]
    }

    fn last_disk(&self) -> Option<u8> {
        Some(self.disk)
    }

    fn is_random(&self) -> bool {
        self.elsewhere
    }
}

/// The number of places for `elsewhere`: large enough that two seeds seldom draw the same one.
const PLACES: u64 = 1 << 16;

/// The process that unpacks the archive.
#[derive(Clone)]
pub struct Unpacker {
    archive: Files,
    /// The next file to be made.
    next: u32,
    /// How many are open, which are the last of those before.
    opened: u32,
}

/// Files made at a time.
const AT_ONCE: u32 = 32;

impl Program for Unpacker {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let first = self.next - self.opened;
        if std::mem::take(&mut self.opened) > 0 {
            for (file, outcome) in (first..).zip(done) {
                if let Value::File(open) = outcome.value {
                    todo.push(Op::Write { file: open, first: 0, pages: self.archive.pages_of(file) });
                    todo.push(Op::Close(open));
                }
            }
        }
        if todo.is_empty() {
            let end = (self.next + AT_ONCE).min(self.archive.files);
            todo.extend((self.next..end).map(|file| Op::Open { name: self.archive.name(file), create: true }));
            (self.opened, self.next) = (end - self.next, end);
        }
    }

    fn progress(&self) -> f64 {
        f64::from(self.next) / f64::from(self.archive.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::lived;

    #[test]
    fn all_that_is_unpacked_takes_up_its_disk() {
        let unpack = Unpack { files: 3, size: "2 MiB".into(), disk: 1, elsewhere: true };
        assert_eq!(unpack.written(), [Written { key: "size", disk: 1, pages: 512 }]);
    }

    #[test]
    fn every_file_is_made_written_whole_and_closed() {
        let archive = Unpack { files: 70, size: "1 MiB".into(), disk: 0, elsewhere: false };
        let ops = lived(&mut archive.program(&Start::default()).expect("it can be read"));
        let count = |is: fn(&Op) -> bool| ops.iter().filter(|op| is(op)).count();
        assert_eq!(count(|op| matches!(op, Op::Open { create: true, .. })), 70);
        assert_eq!(count(|op| matches!(op, Op::Close(_))), 70);
        let written: u32 = ops.iter().map(|op| if let Op::Write { pages, .. } = op { *pages } else { 0 }).sum();
        assert_eq!(written, 256);
    }

    #[test]
    fn a_file_has_a_page_at_the_least() {
        let refused = Unpack { files: 257, size: "1 MiB".into(), disk: 0, elsewhere: false }.program(&Start::default());
        assert!(refused.err().expect("refused").starts_with("files = 257: from 1 to the pages of 1 MiB"));
    }

    #[test]
    fn an_archive_is_unpacked_where_it_was_or_each_time_elsewhere() {
        let made = |elsewhere, seed| {
            let archive = Unpack { files: 3, size: "1 MiB".into(), disk: 0, elsewhere };
            let mut program = archive.program(&Start { seed, ..Start::default() }).expect("it can be read");
            let names = |op: &Op| if let Op::Open { name, .. } = op { Some(*name) } else { None };
            lived(&mut program).iter().filter_map(names).collect::<Vec<_>>()
        };
        assert_eq!(made(false, 1), made(false, 2));
        assert!(made(true, 1).iter().all(|name| !made(true, 2).contains(name) && !made(false, 1).contains(name)));
    }
}
