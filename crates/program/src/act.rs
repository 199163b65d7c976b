//! Acts: one language for what a process does with memory, files, children and time.
//!
//! A simulated process plays acts as operations (`crates/workload/src/player.rs`). They come from
//! three places: a benchmark builds them, a workload file lists them as steps, and a pattern that
//! real kernels are recorded with is made of them. A guest plays the pattern's [`text`]: an act is
//! a line, a word and numbers (`oracle/guest/player.c`, which can do what patterns need, no more).
//! Everything is counted in pages of 4 KiB.

use crate::op::FileName;
use crate::program::Program;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The acts of a process, first to last.
pub type Acts = Arc<[Act]>;

/// The mappings of a process that go by one number, the latest of which is in use.
pub type Area = u8;

/// The areas that [`Act::Work`] and [`Act::Compile`] use: memory mapped at once, memory mapped
/// piece by piece, and the program's file.
pub const HEAP: Area = 0;
pub const BREAK: Area = 1;
pub const TEXT: Area = 2;

/// Pages of one read or write, unless an act says otherwise: 128 KiB, as a buffer of a C library's
/// or a compiler's is at most.
pub const CALL: u32 = 32;

/// Something a process does.
#[derive(Clone, PartialEq, Debug)]
pub enum Act {
    /// Stop until the host, which reads the counters meanwhile, lets the process go on.
    Phase(&'static str),
    /// As the first act: the name of the program, which its process has once it executes it.
    Name(&'static str),
    /// The file exists before the first phase, with this many pages, none of them cached.
    File(FileName, u32),
    /// Map pages of memory, aligned to 2 MiB.
    Map(Area, u32),
    /// Map memory until the area has this many pages, in mappings of as many as the last number
    /// says, where the kernel puts them.
    MapPieces(Area, u32, u32),
    /// Map memory piece by piece, as the C library moves the break: never 2 MiB at once, so that
    /// the first fault in a range gets a small page whatever `thp.enabled` says.
    Grow(Area, u32),
    /// Map these pages of a file, and read them.
    MapFile(Area, FileName, Range<u32>),
    /// Ask for huge pages for all of it.
    AdviseHuge(Area),
    /// Tell the kernel that nothing of it is needed soon (`MADV_COLD`).
    AdviseCold(Area),
    /// Write to pages of the area, up to its end.
    Touch(Area, Pages),
    /// Read pages of the area, up to its end.
    Load(Area, Pages),
    Unmap(Area),
    Read(FileName, Pages),
    Write(FileName, Pages),
    /// Truncate the second file, then copy the first one to it call by call.
    Copy(FileName, FileName, Pages),
    /// Create all files of a set, and write each of them, as `tar` does.
    WriteAll(Files),
    /// Copy the files of the first set to those of the second, one after the other (`cp -r`).
    CopyAll(Files, Files),
    /// Unlink all files of a set (`rm -r`).
    UnlinkAll(Files),
    /// Write the file's dirty pages to its disk, and wait.
    Fsync(FileName),
    /// Write all dirty pages of files to their disks.
    Sync,
    Unlink(FileName),
    /// Write a value to a sysctl.
    Sysctl(Arc<str>, Arc<str>),
    Sleep {
        ns: u64,
    },
    /// Compute, with this much of the heap in use from then on.
    Work {
        pages: u32,
        /// Time on a CPU.
        ns: u64,
    },
    /// Compute as a compiler does, which touches only new pages and a part of the rest.
    Compile {
        pages: u32,
        /// Time on a CPU.
        ns: u64,
    },
    /// Compute, with this much of the heap in use from then on; only the new part is touched.
    Extend {
        pages: u32,
        /// Time on a CPU.
        ns: u64,
    },
    /// Fork a child that does this and exits. It shares its parent's mappings.
    Fork(Acts),
    /// Fork a child that runs a program of another kind, and do not wait for it.
    Start(Starter),
    /// Become another program that does this, without any of the memory.
    Exec(Acts),
    /// Wait until a child has ended.
    Wait,
    /// Wait until no child is left.
    WaitAll,
    /// Record the time since the lap before.
    Lap,
}

/// Makes a program that has not begun.
#[derive(Clone)]
pub struct Starter(Arc<dyn Fn() -> Box<dyn Program> + Send + Sync>);

impl Starter {
    pub fn new(make: impl Fn() -> Box<dyn Program> + Send + Sync + 'static) -> Starter {
        Starter(Arc::new(make))
    }
    pub fn program(&self) -> Box<dyn Program> {
        (self.0)()
    }
}

impl fmt::Debug for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a program's start")
    }
}

/// A starter is equal to its own copies.
impl PartialEq for Starter {
    fn eq(&self, other: &Starter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Files whose numbers follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Files {
    pub first: FileName,
    pub files: u32,
    pub lengths: Lengths,
}

/// How long files are, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lengths {
    /// All as long as their mean in whole pages, and together this long.
    Mean(u32),
    /// One length a file.
    Each(&'static [u32]),
}

impl Files {
    pub const fn name(self, file: u32) -> FileName {
        FileName::new(self.first.disk(), self.first.number() + file as u64)
    }
    /// The length of one of them, from 0.
    pub fn pages_of(self, file: u32) -> u32 {
        match self.lengths {
            Lengths::Mean(all) => {
                let before = |file: u32| u64::from(file) * u64::from(all) / u64::from(self.files);
                (before(file + 1) - before(file)) as u32
            }
            Lengths::Each(lengths) => lengths[file as usize],
        }
    }
    /// The length of all of them together.
    pub fn pages(self) -> u32 {
        match self.lengths {
            Lengths::Mean(all) => all,
            Lengths::Each(lengths) => lengths.iter().sum(),
        }
    }
    /// All of them, with their lengths.
    pub fn all(self) -> impl Iterator<Item = (FileName, u32)> {
        (0..self.files).map(move |file| (self.name(file), self.pages_of(file)))
    }
}

/// Pages of a file or an area, in the order in which they are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pages {
    /// The range's first page.
    pub first: u32,
    /// The number of pages used.
    pub pages: u32,
    /// The most pages of one call.
    pub call: u32,
    /// How many calls there are for the same pages, one after the other: more than one where a
    /// call is of less than a page.
    pub parts: u32,
    pub random: Option<Random>,
}

/// Calls at random places, which are multiples of a call's pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Random {
    /// The places lie within this many pages from `Pages::first` on.
    pub range: u32,
    /// The seed of a [`SplitMix64`](crate::SplitMix64) of this act alone, which draws each place;
    /// without it the process's own generator does.
    pub seed: Option<u64>,
}

impl Pages {
    /// All of an area.
    pub const ALL: Pages = Pages { first: 0, pages: u32::MAX, call: u32::MAX, parts: 1, random: None };

    /// Pages in order, at most `call` at a time.
    pub const fn in_calls(first: u32, pages: u32, call: u32) -> Pages {
        Pages { first, pages, call, parts: 1, random: None }
    }
    /// `count` single pages of the range, drawn at random.
    pub const fn at_random(first: u32, range: u32, count: u32, seed: u64) -> Pages {
        Pages { first, pages: count, call: 1, parts: 1, random: Some(Random { range, seed: Some(seed) }) }
    }
}

/// An act as the lines that a guest's program reads, or why that program cannot do it.
fn lines(act: &Act) -> Result<String, String> {
    let refused = || format!("oracle/guest/player.c cannot do this: {act:?}");
    // The program draws single pages, by a seed.
    let drawn = |pages: &Pages| match pages.random {
        Some(Random { range, seed: Some(seed) }) if pages.call == 1 => {
            Ok(format!("{} {range} {} {seed}", pages.first, pages.pages))
        }
        _ => Err(refused()),
    };
    let in_order = |pages: &Pages| match pages.random {
        None => Ok(format!("{} {}", pages.first, pages.pages)),
        Some(_) => Err(refused()),
    };
    // Its reads and writes are of CALL pages.
    let in_calls = |pages: &Pages| match pages.call.min(pages.pages) == CALL.min(pages.pages) {
        true => in_order(pages),
        false => Err(refused()),
    };
    Ok(match act {
        Act::Phase(name) => format!("phase {name}"),
        Act::File(file, pages) => format!("file {} {pages}", file.number()),
        Act::Map(area, pages) => format!("map {area} {pages}"),
        Act::AdviseHuge(area) => format!("advise-huge {area}"),
        Act::Touch(area, pages) if pages.random.is_some() => format!("touch-random {area} {}", drawn(pages)?),
        Act::Touch(area, pages) => format!("touch {area} {}", in_order(pages)?),
        Act::Load(area, pages) => format!("load {area} {}", in_order(pages)?),
        Act::Unmap(area) => format!("unmap {area}"),
        Act::Read(file, pages) if pages.random.is_some() => format!("read-random {} {}", file.number(), drawn(pages)?),
        Act::Read(file, pages) => format!("read {} {}", file.number(), in_calls(pages)?),
        Act::Write(file, pages) => format!("write {} {}", file.number(), in_calls(pages)?),
        Act::Fsync(file) => format!("fsync {}", file.number()),
        Act::Sleep { ns } => format!("sleep {}", ns / 1000),
        Act::Fork(acts) => format!("fork\n{}end", text(acts)?),
        Act::Exec(acts) => format!("exec\n{}", text(acts)?).trim_end().to_owned(),
        Act::Wait => "wait".into(),
        Act::WaitAll => "wait-all".into(),
        _ => return Err(refused()),
    })
}

/// The text that a guest's program plays.
///
/// # Errors
/// An act that the program cannot do.
pub fn text(acts: &[Act]) -> Result<String, String> {
    acts.iter().map(|act| Ok(lines(act)? + "\n")).collect()
}

/// The names of the phases, in order.
pub fn phases(acts: &[Act]) -> impl Iterator<Item = &'static str> {
    acts.iter().filter_map(|act| match act {
        Act::Phase(name) => Some(*name),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_is_a_line_and_a_childs_acts_are_those_up_to_its_end() {
        let file = FileName::new(0, 4);
        let program = Act::Exec([Act::Sleep { ns: 7000 }].into());
        let acts = [
            Act::File(file, 9),
            Act::Read(file, Pages::at_random(1, 8, 3, 5)),
            Act::Fork([program, Act::Wait].into()),
            Act::Fork([].into()),
        ];
        let lines = "file 4 9\nread-random 4 1 8 3 5\nfork\nexec\nsleep 7\nwait\nend\nfork\nend\n";
        assert_eq!(text(&acts).as_deref(), Ok(lines));
    }

    #[test]
    fn an_act_that_the_program_of_a_guest_cannot_do_is_refused() {
        let (file, random) = (FileName::new(0, 4), Pages::at_random(0, 8, 3, 5));
        for act in [
            Act::Load(0, random),
            Act::Write(file, random),
            Act::Read(file, Pages::in_calls(0, 64, 16)),
            Act::Touch(0, Pages { call: 2, ..random }),
            Act::Touch(0, Pages { random: Some(Random { range: 8, seed: None }), ..random }),
            Act::Sync,
        ] {
            let said = format!("oracle/guest/player.c cannot do this: {act:?}");
            assert_eq!(text(&[Act::Fork([act].into())]), Err(said));
        }
        assert_eq!(text(&[Act::Read(file, Pages::in_calls(0, 8, 8))]).as_deref(), Ok("read 4 0 8\n"));
    }
}
