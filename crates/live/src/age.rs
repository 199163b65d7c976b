//! Ageing a host on purpose: memory of its own is taken in small pages, and a part of it is given
//! back, so free memory lies in small pieces among movable pages.
//!
//! Pages are kept by the number of their frame, so the pattern is the same wherever the memory
//! lies. Where frame numbers are hidden (without root) the address decides, which lies much the
//! same. Nobody else's memory is touched; all of it goes back when the process ends, however it
//! ends.

use crate::error::ReadError;
use crate::own_memory::OwnMemory;
use crate::page_words::{PageMapEntry, PageWords};
use crate::roots::Roots;
use crate::spare::{Spare, TooMuch};
use rustix::mm::Advice;
use std::sync::atomic::{AtomicBool, Ordering};

/// The pages that are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    EveryOther,
    /// One page of every 2 MiB.
    OnePerBlock,
    /// Each page or not, by chance: half of them.
    Random,
    /// Every second run of 32 pages.
    Runs,
    /// The first quarter of every 2 MiB.
    FirstQuarter,
}

impl Pattern {
    /// All patterns by name.
    pub const NAMED: [(&str, Pattern); 5] = [
        ("every-other", Pattern::EveryOther),
        ("one-per-block", Pattern::OnePerBlock),
        ("random", Pattern::Random),
        ("runs", Pattern::Runs),
        ("first-quarter", Pattern::FirstQuarter),
    ];

    /// Whether the page in this frame is kept.
    pub fn keeps(self, frame: u64, seed: u64) -> bool {
        match self {
            Pattern::EveryOther => frame.is_multiple_of(2),
            Pattern::OnePerBlock => frame % 512 == mixed((frame / 512) ^ seed) % 512,
            Pattern::Random => mixed(frame ^ seed).is_multiple_of(2),
            Pattern::Runs => (frame / 32).is_multiple_of(2),
            Pattern::FirstQuarter => frame % 512 < 128,
        }
    }
}

/// A number that looks like chance and is the same every time (the finisher of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Memory held in pieces until this is dropped.
pub struct Aged {
    memory: OwnMemory,
    pub kept: u64,
    pub freed: u64,
    /// Whether pages were chosen by their frames.
    pub by_frame: bool,
}

/// Why the host was not aged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotAged {
    /// The host or a control group has less memory to spare.
    TooMuch(TooMuch),
    Unread(ReadError),
    Refused(String),
    Stopped,
}

/// Bytes of the available memory left to everybody else.
const LEFT: u64 = 1 << 30;
/// Bytes taken between two looks at whether to stop.
const STRETCH: usize = 64 << 20;

impl Aged {
    /// Why this much would not be taken, if the host or a control group has less.
    ///
    /// # Errors
    /// If `/proc/meminfo` cannot be read.
    pub fn refused(roots: &Roots, bytes: u64) -> Result<Option<TooMuch>, ReadError> {
        Ok(Spare::read(roots, LEFT)?.allows(bytes).err())
    }

    /// Takes `bytes` and gives part of them back. `stop` ends it early.
    ///
    /// # Errors If there is less memory, the kernel refuses, or it was stopped; all is given back
    /// then.
    pub fn take(roots: &Roots, bytes: u64, pattern: Pattern, seed: u64, stop: &AtomicBool) -> Result<Aged, NotAged> {
        Spare::read(roots, LEFT).map_err(NotAged::Unread)?.allows(bytes).map_err(NotAged::TooMuch)?;
        let page = rustix::param::page_size();
        let memory = OwnMemory::new((bytes as usize).next_multiple_of(page), page).map_err(NotAged::Refused)?;
        memory.advise(0, memory.len(), Advice::LinuxNoHugepage).map_err(NotAged::Refused)?;
        let stopped = || if stop.load(Ordering::Relaxed) { Err(NotAged::Stopped) } else { Ok(()) };
        for start in (0..memory.len()).step_by(STRETCH) {
            stopped()?;
            (start..(start + STRETCH).min(memory.len())).step_by(page).for_each(|at| memory.touch(at));
        }
        let mut aged = Aged { memory, kept: 0, freed: 0, by_frame: true };
        let mut map = PageWords::open(&roots.proc("self/pagemap")).map_err(NotAged::Unread)?;
        for start in (0..aged.memory.len()).step_by(STRETCH) {
            stopped()?;
            let end = (start + STRETCH).min(aged.memory.len());
            aged.give_back(&mut map, start, end, page, |frame| pattern.keeps(frame, seed))?;
        }
        Ok(aged)
    }

    /// Gives back the pages of a stretch that are not kept, run by run.
    fn give_back(
        &mut self,
        map: &mut PageWords,
        start: usize,
        end: usize,
        page: usize,
        keeps: impl Fn(u64) -> bool,
    ) -> Result<(), NotAged> {
        let first = (self.memory.address() + start) / page;
        let mut keep = Vec::with_capacity((end - start) / page);
        let mut by_frame = true;
        map.read(first as u64, (first + (end - start) / page) as u64, |at, words| {
            for (i, word) in words.iter().enumerate() {
                let frame = PageMapEntry(*word).pfn();
                by_frame &= frame.is_some();
                keep.push(keeps(frame.unwrap_or(at + i as u64)));
            }
        })
        .map_err(NotAged::Unread)?;
        self.by_frame &= by_frame;
        let mut at = start;
        for run in keep.chunk_by(|a, b| a == b) {
            let len = run.len() * page;
            if run[0] {
                self.kept += run.len() as u64;
            } else {
                self.memory.advise(at, len, Advice::LinuxDontNeed).map_err(NotAged::Refused)?;
                self.freed += run.len() as u64;
            }
            at += len;
        }
        Ok(())
    }
}

impl std::fmt::Display for NotAged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotAged::TooMuch(e) => write!(f, "{e}"),
            NotAged::Unread(e) => write!(f, "{e}"),
            NotAged::Refused(reason) => f.write_str(reason),
            NotAged::Stopped => f.write_str("stopped: all memory is given back"),
        }
    }
}

impl std::error::Error for NotAged {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_keeps_the_share_it_says() {
        let kept =
            |pattern: Pattern| (0..512 * 1000).filter(|frame| pattern.keeps(*frame, 1)).count() as f64 / 512_000.0;
        assert_eq!(kept(Pattern::EveryOther), 0.5);
        assert_eq!(kept(Pattern::OnePerBlock), 1.0 / 512.0);
        assert_eq!(kept(Pattern::Runs), 0.5);
        assert_eq!(kept(Pattern::FirstQuarter), 0.25);
        assert!((kept(Pattern::Random) - 0.5).abs() < 0.01);
    }

    #[test]
    fn pages_that_are_not_kept_are_freed() {
        let never = AtomicBool::new(false);
        // By chance, as whoever else ages this host decides which frames are free; with a seed of
        // this test's own.
        let aged = match Aged::take(&Roots::default(), 8 << 20, Pattern::Random, 0x5eed, &never) {
            Ok(aged) => aged,
            Err(why @ NotAged::TooMuch(_)) => return println!("NOTHING WAS AGED: {why}"),
            Err(why) => panic!("{why}"),
        };
        let page = rustix::param::page_size();
        let (first, pages) = ((aged.memory.address() / page) as u64, (8 << 20) / page as u64);
        let mut there = 0;
        let mut map = PageWords::open(&Roots::default().proc("self/pagemap")).expect("its own may be read");
        let each = |words: &[u64]| words.iter().filter(|word| !is_gone(PageMapEntry(**word))).count() as u64;
        map.read(first, first + pages, |_, words| there += each(words)).expect("read");
        assert_eq!((there, aged.kept + aged.freed), (aged.kept, pages));
        assert!(aged.kept > pages / 4 && aged.freed > pages / 4, "{} kept", aged.kept);
    }

    /// Whether the page is neither in memory nor in swap.
    fn is_gone(page: PageMapEntry) -> bool {
        !page.is_present() && !page.is_swapped()
    }

    #[test]
    fn more_than_there_is_is_refused_before_any_is_taken() {
        let never = AtomicBool::new(false);
        let refused = Aged::take(&Roots::default(), 1 << 60, Pattern::Random, 1, &never).err().expect("refused");
        assert!(refused.to_string().ends_with("ask for less with --gib"), "{refused}");
    }
}
