//! The cost of the first touch of huge pages now: how long a task waits when it writes to memory
//! for the first time.
//!
//! Each touch is timed by itself. The last page shows whether it brought a huge page: it is in
//! memory then, though nobody touched it. The floor is a first touch with a block at hand for
//! certain: of memory that was given back right before. Above it is the search for a block,
//! compaction and reclaim most of all; and on a virtual machine the hypervisor's time to back
//! memory that it was told is free, milliseconds a huge page. To leave that out, memory can be
//! touched once before (`warm`).

use crate::error::ReadError;
use crate::host::Host;
use crate::own_memory::OwnMemory;
use crate::page_words::{PageMapEntry, PageWords};
use crate::roots::Roots;
use crate::spare::{Spare, TooMuch};
use rustix::mm::Advice;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Name and version of the JSON's schema.
pub const SCHEMA: &str = "kontig.touch/1";

/// Times and counts of first touches.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Touched {
    pub schema: String,
    /// Bytes of a huge page.
    pub huge_page_bytes: u64,
    /// Huge pages that were given.
    pub huge: u64,
    /// Touches that got a small page instead.
    pub small: u64,
    /// How long the touches took that got a huge page; `None` where none did.
    pub huge_s: Option<Quantiles>,
    /// How long those took that got a small one.
    pub small_s: Option<Quantiles>,
    /// How long first touches took of memory that was given back right before.
    pub floor_s: Option<Quantiles>,
    /// Waits for compaction meanwhile, of the whole host's requests; `None` where that is not
    /// counted.
    pub stalls: Option<u64>,
}

/// Seconds, by share of all.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Quantiles {
    pub samples: u64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

impl Quantiles {
    /// Quantiles of these times; `None` without any.
    pub fn of(mut seconds: Vec<f64>) -> Option<Quantiles> {
        seconds.sort_by(f64::total_cmp);
        let at = |share: f64| seconds.get(((seconds.len() as f64 * share).ceil() as usize).saturating_sub(1)).copied();
        Some(Quantiles { samples: seconds.len() as u64, p50: at(0.5)?, p90: at(0.9)?, p99: at(0.99)?, max: at(1.0)? })
    }
}

/// Why nothing was touched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotTouched {
    /// The host or a control group has less memory to spare.
    TooMuch(TooMuch),
    /// A file could not be read.
    Unread(ReadError),
    /// The kernel has no huge pages, or refused.
    Refused(String),
    Stopped,
}

/// Huge pages touched again for the floor.
const AGAIN: usize = 64;

/// Touches `bytes`, a huge page at a time, and times it; with `warm` the memory was touched and
/// given back before. The caller holds the memory.
///
/// # Errors
/// If the kernel has no huge pages or refuses, a file cannot be read, or it was stopped.
pub fn touch(roots: &Roots, bytes: u64, warm: bool, stop: &AtomicBool) -> Result<(Touched, OwnMemory), NotTouched> {
    let host = Host::read(roots);
    let thp = host.thp.as_ref().map_err(|e| NotTouched::Unread(e.clone()))?;
    let huge =
        thp.pmd_size.ok_or_else(|| NotTouched::Refused("this kernel does not say how large huge pages are".into()))?;
    let huge = huge as usize;
    let len = (bytes as usize).next_multiple_of(huge);
    Spare::read(roots, 0).map_err(NotTouched::Unread)?.allows(len as u64).map_err(NotTouched::TooMuch)?;
    let memory = OwnMemory::new(len, huge).map_err(NotTouched::Refused)?;
    memory.advise(0, len, Advice::LinuxHugepage).map_err(NotTouched::Refused)?;
    let give_back = |at, len| memory.advise(at, len, Advice::LinuxDontNeed).map_err(NotTouched::Refused);
    if warm {
        (0..len).step_by(huge).take_while(|_| !stop.load(Ordering::Relaxed)).for_each(|at| memory.touch(at));
        give_back(0, len)?;
    }
    let host = Host::read(roots);
    let timed = |at: usize| {
        let began = Instant::now();
        memory.touch(at);
        began.elapsed().as_secs_f64()
    };
    let mut took = Vec::with_capacity(len / huge);
    for at in (0..len).step_by(huge) {
        if stop.load(Ordering::Relaxed) {
            return Err(NotTouched::Stopped);
        }
        took.push(timed(at));
    }
    let stalls = Host::read(roots).counter("compact_stall").zip(host.counter("compact_stall"));
    let is_huge = are_huge(roots, &memory, huge).map_err(NotTouched::Unread)?;
    let of =
        |wanted: bool| took.iter().zip(&is_huge).filter(|(_, huge)| **huge == wanted).map(|(took, _)| *took).collect();
    let (of_huge, of_small): (Vec<f64>, Vec<f64>) = (of(true), of(false));
    let there = is_huge.iter().enumerate().filter(|(_, huge)| **huge).map(|(i, _)| i * huge);
    let again: Vec<usize> = there.take(AGAIN).collect();
    again.iter().try_for_each(|at| give_back(*at, huge))?;
    let floor: Vec<f64> = again.into_iter().map(&timed).collect();
    let touched = Touched {
        schema: SCHEMA.into(),
        huge_page_bytes: huge as u64,
        huge: of_huge.len() as u64,
        small: of_small.len() as u64,
        floor_s: Quantiles::of(floor),
        huge_s: Quantiles::of(of_huge),
        small_s: Quantiles::of(of_small),
        stalls: stalls.map(|(after, before)| after.saturating_sub(before)),
    };
    Ok((touched, memory))
}

/// For each aligned range of a huge page's size, whether it is one: its last page is in memory
/// then.
fn are_huge(roots: &Roots, memory: &OwnMemory, huge: usize) -> Result<Vec<bool>, ReadError> {
    let page = rustix::param::page_size();
    let (first, pages) = ((memory.address() / page) as u64, (huge / page) as u64);
    let mut found = Vec::with_capacity(memory.len() / huge);
    let end = first + (memory.len() / page) as u64;
    PageWords::open(&roots.proc("self/pagemap"))?.read(first, end, |at, words| {
        let lasts = (at..).zip(words).filter(|(at, _)| (at - first) % pages == pages - 1);
        found.extend(lasts.map(|(_, word)| PageMapEntry(*word).is_present()));
    })?;
    Ok(found)
}

impl std::fmt::Display for NotTouched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotTouched::Unread(e) => write!(f, "{e}"),
            NotTouched::TooMuch(e) => write!(f, "{e}"),
            NotTouched::Refused(reason) => f.write_str(reason),
            NotTouched::Stopped => f.write_str("stopped: all memory is given back"),
        }
    }
}

impl std::error::Error for NotTouched {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let q = Quantiles::of((1..=200).rev().map(f64::from).collect()).expect("of some");
        assert_eq!((q.p50, q.p90, q.p99, q.max), (100.0, 180.0, 198.0, 200.0));
        assert_eq!(Quantiles::of(vec![7.0]).map(|q| (q.p50, q.max)), Some((7.0, 7.0)));
        assert_eq!(Quantiles::of(Vec::new()), None);
    }

    #[test]
    fn every_touch_is_of_a_huge_page_or_of_a_small_one() {
        match touch(&Roots::default(), 8 << 20, false, &AtomicBool::new(false)) {
            Ok((touched, memory)) => {
                assert_eq!((touched.huge + touched.small) * touched.huge_page_bytes, memory.len() as u64);
                assert_eq!(touched.huge_s.is_some(), touched.huge > 0);
                assert!(touched.floor_s.is_none_or(|floor| floor.p50 > 0.0));
            }
            // Where it is seen though the test passes.
            Err(why) => writeln!(std::io::stderr(), "NOTHING WAS TOUCHED: {why}").expect("an error stream"),
        }
    }
}
