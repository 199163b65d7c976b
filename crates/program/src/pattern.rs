//! Patterns: what a process does with files, memory of its own and children, as steps that a real kernel's process and a
//! simulated one take alike.
//!
//! A step is a line of text, a word and numbers. In a guest a program of its own plays the text (`oracle/guest/player.c`);
//! the laboratory makes operations of the steps. What is random is a step's own: its last number is the seed of a
//! [`SplitMix64`](crate::SplitMix64), and each page is the first of the range and the generator's next number below its
//! length. Everything is counted in pages of 4 KiB.

mod named;

pub use named::{NAMED, Named, SWAP_PAGES};
use std::fmt;

/// A file of a pattern, by a number below 16.
pub type File = u8;
/// A mapping of a process, by a number below 16.
pub type Area = u8;

/// Something a process does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// What has been counted so far is kept under a name. The first one is where counting begins.
    Phase(&'static str),
    /// The file is there, with so many pages, none of them in memory, before the first phase.
    File(File, u32),
    /// Map so many pages of memory, from a huge page's begin on.
    Map(Area, u32),
    /// Ask for huge pages for it.
    AdviseHuge(Area),
    /// Write to pages, in order: from this one on, so many.
    Touch(Area, u32, u32),
    /// Read pages, in order: from this one on, so many.
    Load(Area, u32, u32),
    /// Write to pages of a range at random.
    TouchRandom(Area, Random),
    /// Unmap it.
    Unmap(Area),
    /// Read pages of a file, in order, 32 a call.
    Read(File, u32, u32),
    /// Read pages of a file's range at random, one a call.
    ReadRandom(File, Random),
    /// Write pages of a file, in order, 32 a call.
    Write(File, u32, u32),
    /// Until all of the file is on its disk.
    Fsync(File),
    /// Do nothing for so many µs.
    Sleep(u32),
    /// A child takes the steps up to the `end` that belongs to this, and exits; what it has not mapped itself is its parent's.
    Fork,
    /// The end of a child's steps.
    End,
    /// Be another program, without any of the memory, and go on with the next step.
    Exec,
    /// Until a child has ended.
    Wait,
    /// Until no child is left.
    WaitAll,
}

/// Pages of a range, at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Random {
    /// The range's first page.
    pub first: u32,
    /// Its length.
    pub pages: u32,
    /// How many pages are taken of it, one after the other.
    pub count: u32,
    /// The seed.
    pub seed: u64,
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.first, self.pages, self.count, self.seed)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Phase(name) => write!(f, "phase {name}"),
            Step::File(file, pages) => write!(f, "file {file} {pages}"),
            Step::Map(area, pages) => write!(f, "map {area} {pages}"),
            Step::AdviseHuge(area) => write!(f, "advise-huge {area}"),
            Step::Touch(area, first, pages) => write!(f, "touch {area} {first} {pages}"),
            Step::Load(area, first, pages) => write!(f, "load {area} {first} {pages}"),
            Step::TouchRandom(area, random) => write!(f, "touch-random {area} {random}"),
            Step::Unmap(area) => write!(f, "unmap {area}"),
            Step::Read(file, first, pages) => write!(f, "read {file} {first} {pages}"),
            Step::ReadRandom(file, random) => write!(f, "read-random {file} {random}"),
            Step::Write(file, first, pages) => write!(f, "write {file} {first} {pages}"),
            Step::Fsync(file) => write!(f, "fsync {file}"),
            Step::Sleep(us) => write!(f, "sleep {us}"),
            Step::Fork => f.write_str("fork"),
            Step::End => f.write_str("end"),
            Step::Exec => f.write_str("exec"),
            Step::Wait => f.write_str("wait"),
            Step::WaitAll => f.write_str("wait-all"),
        }
    }
}

/// The text that a guest's program plays.
pub fn text(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("{step}\n")).collect()
}

/// The names of the phases, in order.
pub fn phases(steps: &[Step]) -> impl Iterator<Item = &'static str> {
    steps.iter().filter_map(|step| match step {
        Step::Phase(name) => Some(*name),
        _ => None,
    })
}
