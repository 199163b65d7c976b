//! Patterns: what a process does with files, memory of its own and children, as steps that a real
//! kernel's process and a simulated one take alike.
//!
//! A step is a line of text, a word and numbers. In a guest a program of its own plays the text
//! (`oracle/guest/player.c`); the laboratory makes operations of the steps. What is random is a
//! step's own: its last number is the seed of a [`SplitMix64`](crate::SplitMix64), and each page is
//! the first of the range and the generator's next number below its length. Everything is counted
//! in pages of 4 KiB.

use std::fmt;

/// A file of a pattern, by a number below 16.
pub type File = u8;
/// A mapping of a process, by a number below 16.
pub type Area = u8;

/// One line of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Stores the counters under a name. Counting begins at the first phase.
    Phase(&'static str),
    /// The file exists before the first phase, with this many pages, none of them cached.
    File(File, u32),
    /// Map pages of memory, aligned to 2 MiB.
    Map(Area, u32),
    /// Ask for huge pages for it.
    AdviseHuge(Area),
    /// Write to pages in order: the first page and the number of pages.
    Touch(Area, u32, u32),
    /// Read pages in order: the first page and the number of pages.
    Load(Area, u32, u32),
    /// Write to pages of a range at random.
    TouchRandom(Area, Random),
    Unmap(Area),
    /// Read pages of a file, in order, 32 a call.
    Read(File, u32, u32),
    /// Read pages of a file's range at random, one a call.
    ReadRandom(File, Random),
    /// Write pages of a file, in order, 32 a call.
    Write(File, u32, u32),
    /// Write the file's dirty pages to its disk, and wait.
    Fsync(File),
    Sleep(u32),
    /// A child takes the steps up to the matching `end`, and exits. It shares its parent's
    /// mappings.
    Fork,
    /// The end of a child's steps.
    End,
    /// Become another program, without any of the memory, and go on with the next step.
    Exec,
    /// Wait until a child has ended.
    Wait,
    /// Wait until no child is left.
    WaitAll,
}

/// Pages of a range, at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Random {
    /// The range's first page.
    pub first: u32,
    pub pages: u32,
    /// The number of pages drawn.
    pub count: u32,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_line() {
        let steps =
            [Step::File(0, 9), Step::ReadRandom(0, Random { first: 1, pages: 8, count: 3, seed: 5 }), Step::Fork];
        assert_eq!(text(&steps), "file 0 9\nread-random 0 1 8 3 5\nfork\n");
    }
}
