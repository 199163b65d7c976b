//! A job of fio, which writes many small files, all a little at a time, or reads them at random.
//!
//! A writer goes round its files: a block of the first, a block of the second, and so on, then the
//! next block of each; a file is created at its first turn. A reader asks for every file's size
//! first (`stat`), which brings all inodes and dentries into memory. Then it draws a file at
//! random, reads each of its blocks once in random order, and draws the next; it tells the kernel
//! of each file that it reads at random. Files stay open once used, which keeps their inodes and
//! dentries. Source: fio's `create_on_open`, `file_service_type` (`roundrobin` by default,
//! `random:16`), `norandommap=0` and `fadvise_hint=1`; its advice about files that are written
//! changes nothing. A third kind of job removes the files.

use crate::benchmark::{Benchmark, Measured, Start, Written};
use crate::size::pages;
use kontig_program::{Batch, Figure, FileName, Op, OpenFile, Outcome, Program, SplitMix64, Value};
use serde::{Deserialize, Serialize};

/// Read or write, as fio's `rw`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Rw {
    /// Creates the files and writes them to their ends.
    Write,
    /// Reads the files until it is stopped.
    Randread,
    /// Removes the files, as the script that started fio does at the end.
    Remove,
}

/// A job of fio.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Fio {
    pub rw: Rw,
    /// The disk its files lie on.
    #[serde(default)]
    pub disk: u8,
    /// The number of its first file.
    #[serde(default)]
    pub first_file: u64,
    /// The number of its files.
    pub files: u32,
    /// The size of each file, such as `"64 KiB"`.
    pub file_size: String,
    /// The size of one read or write, such as `"4 KiB"`.
    pub block: String,
}

impl Benchmark for Fio {
    type Program = Job;

    fn program(&self, start: &Start) -> Result<Job, String> {
        let (length, block) = (pages("file_size", &self.file_size)?, pages("block", &self.block)?);
        if !length.is_multiple_of(block) {
            let (size, block) = (&self.file_size, &self.block);
            return Err(format!("block = \"{block}\": a file of {size} is no whole number of them"));
        }
        if self.files == 0 {
            return Err("files = 0: there is nothing to do".into());
        }
        Ok(Job {
            rw: self.rw,
            disk: self.disk,
            first_file: self.first_file,
            open: vec![None; self.files as usize],
            passed: 0,
            blocks: length / block,
            block,
            at: 0,
            current: None,
            begun: 0,
            random: SplitMix64::new(start.seed),
        })
    }

    fn measured(&self, copies: &[&Job]) -> Measured {
        let begun: u64 = copies.iter().map(|job| job.begun).sum();
        Measured { figures: vec![Figure::new("blocks", "blocks").read(begun as f64)], ..Measured::default() }
    }

    fn fits(&self, _: u64, copies: u64) -> Result<(), String> {
        if copies == 1 {
            return Ok(());
        }
        Err(format!("files = {}: {copies} copies would share them: give each a task of its own", self.files))
    }

    fn written(&self) -> Vec<Written> {
        let each = pages("file_size", &self.file_size).map_or(0, u64::from);
        let written = Written { key: "files", disk: self.disk, pages: each * u64::from(self.files) };
        if self.rw == Rw::Write { vec![written] } else { Vec::new() }
    }

    fn last_disk(&self) -> Option<u8> {
        Some(self.disk)
    }

    fn is_random(&self) -> bool {
        self.rw == Rw::Randread
    }

    fn is_endless(&self) -> bool {
        self.rw == Rw::Randread
    }
}

/// The process that is one job.
#[derive(Clone)]
pub struct Job {
    rw: Rw,
    disk: u8,
    first_file: u64,
    /// The files it has opened so far.
    open: Vec<Option<OpenFile>>,
    /// How many files it is through with: closed by a writer, looked at by a reader, or removed.
    passed: usize,
    /// Blocks of a file, and pages of a block.
    blocks: u32,
    block: u32,
    /// The next block to write, counted round by round.
    at: u64,
    /// The file being opened.
    current: Option<u32>,
    /// Blocks that were asked for.
    begun: u64,
    random: SplitMix64,
}

/// Blocks handed over at a time.
const AT_ONCE: usize = 16;

impl Job {
    fn name(&self, file: u32) -> FileName {
        FileName::new(self.disk, self.first_file + u64::from(file))
    }

    /// The next files to go through, without more to do than that.
    fn pass(&mut self) -> std::ops::Range<usize> {
        let end = (self.passed + AT_ONCE).min(self.open.len());
        std::mem::replace(&mut self.passed, end)..end
    }

    fn files(&self) -> u64 {
        self.open.len() as u64
    }

    /// Blocks in the order of their turns, up to a file that is not open; at the end all files are
    /// closed.
    fn write(&mut self, todo: &mut Batch) {
        if self.at == self.files() * u64::from(self.blocks) {
            let next = self.pass();
            return todo.extend(self.open[next].iter().flatten().map(|file| Op::Close(*file)));
        }
        while todo.len() < AT_ONCE && self.at < self.files() * u64::from(self.blocks) {
            let (round, file) = ((self.at / self.files()) as u32, (self.at % self.files()) as u32);
            let Some(opened) = self.open[file as usize] else {
                self.current = Some(file);
                todo.push(Op::Open { name: self.name(file), create: true });
                return;
            };
            todo.push(Op::Write { file: opened, first: round * self.block, pages: self.block });
            self.at += 1;
            self.begun += 1;
        }
    }

    /// A look at each file. Then all blocks of one file in random order; another file is drawn, and
    /// opened if necessary.
    fn read(&mut self, drawn: Option<u32>, todo: &mut Batch) {
        if self.passed < self.open.len() {
            let next = self.pass();
            return todo.extend(next.map(|file| Op::Stat(self.name(file as u32))));
        }
        let file = drawn.unwrap_or_else(|| self.random.below(self.open.len() as u32));
        let Some(opened) = self.open[file as usize] else {
            self.current = Some(file);
            todo.push(Op::Open { name: self.name(file), create: false });
            return;
        };
        todo.extend(drawn.map(|_| Op::AdviseRandom(opened)));
        let mut order: Vec<u32> = (0..self.blocks).collect();
        for last in (1..self.blocks).rev() {
            order.swap(last as usize, self.random.below(last + 1) as usize);
        }
        todo.extend(order.into_iter().map(|at| Op::Read { file: opened, first: at * self.block, pages: self.block }));
        self.begun += u64::from(self.blocks);
    }
}

impl Program for Job {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let opened = self.current.take();
        if let (Some(file), Some(Outcome { value: Value::File(number), .. })) = (opened, done.last()) {
            self.open[file as usize] = Some(*number);
        }
        match self.rw {
            Rw::Write => self.write(todo),
            Rw::Randread => self.read(opened, todo),
            Rw::Remove => {
                let next = self.pass();
                todo.extend(next.map(|file| Op::Unlink(self.name(file as u32))));
            }
        }
    }

    /// A reader makes no progress: it never ends.
    fn progress(&self) -> f64 {
        match self.rw {
            Rw::Write => self.at as f64 / (self.files() * u64::from(self.blocks)) as f64,
            Rw::Randread => 0.0,
            Rw::Remove => self.passed as f64 / self.open.len() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(rw: Rw, files: u32) -> Job {
        let fio = Fio { rw, disk: 1, first_file: 100, files, file_size: "16 KiB".into(), block: "8 KiB".into() };
        fio.program(&Start::default()).expect("it can be read")
    }

    /// The job's operations up to a limit, where each file opens under its own number.
    fn asks(job: &mut Job, at_most: usize) -> Vec<Op> {
        let (mut asked, mut last) = (Vec::new(), Outcome::at_start(0));
        while asked.len() < at_most {
            let mut todo = Batch::new();
            job.next(&[last], &mut todo);
            let batch: Vec<Op> = std::iter::from_fn(|| todo.pop()).collect();
            last.value = match batch.last() {
                None => break,
                Some(Op::Open { name, .. }) => Value::File(OpenFile::new(name.number() as u32)),
                Some(_) => Value::Unit,
            };
            asked.extend(batch);
        }
        asked
    }

    #[test]
    fn blocks_are_written_round_by_round_to_files_made_when_their_turn_comes() {
        let open = |number| Op::Open { name: FileName::new(1, number), create: true };
        let write = |number, first| Op::Write { file: OpenFile::new(number), first, pages: 2 };
        let mut writer = job(Rw::Write, 2);
        let all = [open(100), write(100, 0), open(101), write(101, 0), write(100, 2), write(101, 2)];
        let close = [100, 101].map(|number| Op::Close(OpenFile::new(number)));
        assert_eq!(asks(&mut writer, usize::MAX), [&all[..], &close].concat());
        assert_eq!(writer.progress(), 1.0);
    }

    #[test]
    fn each_block_of_a_file_drawn_is_read_once_and_a_file_is_opened_once() {
        let asked = asks(&mut job(Rw::Randread, 3), 300);
        let looked_at = [100, 101, 102].map(|number| Op::Stat(FileName::new(1, number)));
        assert_eq!(asked[..3], looked_at, "before anything is read");
        let advised = asked.iter().filter(|op| matches!(op, Op::AdviseRandom(_))).count();
        assert_eq!(advised, 3);
        let opened = asked.iter().filter(|op| matches!(op, Op::Open { create: false, .. })).count();
        assert_eq!(opened, 3);
        let blocks: Vec<(u32, u32)> = asked
            .iter()
            .filter_map(|op| match op {
                Op::Read { file, first, pages: 2 } => Some((file.get(), *first)),
                _ => None,
            })
            .collect();
        for pair in blocks.chunks_exact(2) {
            assert!(pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1, "{pair:?}");
        }
        assert!(blocks.chunks_exact(2).any(|pair| pair[0].1 > pair[1].1), "in any order");
    }

    #[test]
    fn the_remover_removes_each_file() {
        let mut rm = job(Rw::Remove, 20);
        let all: Vec<Op> = (100..120).map(|number| Op::Unlink(FileName::new(1, number))).collect();
        assert_eq!(asks(&mut rm, usize::MAX), all);
        assert_eq!(rm.progress(), 1.0);
    }

    #[test]
    fn a_job_that_cannot_be_says_what_is_wrong() {
        let fio = |files, block: &str| {
            let (file_size, block) = ("16 KiB".into(), block.into());
            Fio { rw: Rw::Write, disk: 0, first_file: 0, files, file_size, block }.program(&Start::default()).err()
        };
        assert_eq!(fio(0, "4 KiB").as_deref(), Some("files = 0: there is nothing to do"));
        let said = "block = \"12 KiB\": a file of 16 KiB is no whole number of them";
        assert_eq!(fio(1, "12 KiB").as_deref(), Some(said));
    }
}
