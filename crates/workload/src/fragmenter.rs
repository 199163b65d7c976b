//! Seed 000's fragmenter: a process fills memory, then unmaps most of every 2 MiB section.
//!
//! The pages that the user-space tool frees in a section are not published, so the pattern is a
//! parameter. The seed frees three quarters.

use crate::benchmark::{Benchmark, Start};
use kontig_program::{Batch, HPAGE_PMD_NR, Op, Outcome, Program, Region, SplitMix64, Value};
use kontig_text::parse_size;
use serde::{Deserialize, Serialize};

const SECTION: u32 = HPAGE_PMD_NR;

/// The pattern of pages freed in every 2 MiB section.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Holes {
    #[default]
    First,
    Last,
    /// Chosen at random, from the run's seed.
    Random,
    /// Spread evenly: with three quarters, three of every four.
    Spread,
}

/// A process fills memory and unmaps part of every 2 MiB section.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Fragment {
    /// The pattern of pages to free.
    #[serde(default)]
    pub holes: Holes,
    /// The number of its 512 pages to free.
    #[serde(default = "three_quarters")]
    pub freed_per_section: u32,
    /// Memory it leaves alone, such as `"1 GiB"`, beside what lies below the high marks; none
    /// unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave: Option<String>,
}

/// The number of pages the seed frees in a section.
pub(crate) const fn three_quarters() -> u32 {
    384
}

/// Checks that a section has this many pages.
pub(crate) fn of_a_section(freed: u32) -> Result<u32, String> {
    if freed <= SECTION { Ok(freed) } else { Err(format!("freed_per_section = {freed}: a section has 512 pages")) }
}

impl Benchmark for Fragment {
    type Program = Fragmenter;

    fn program(&self, start: &Start) -> Result<Fragmenter, String> {
        let all = Fragmenter::new(self.holes, of_a_section(self.freed_per_section)?, start.seed);
        Ok(Fragmenter { leave_pages: self.leave_pages()?, ..all })
    }

    fn fits(&self, pages: u64, _: u64) -> Result<(), String> {
        let leave = self.leave.as_deref().filter(|_| self.leave_pages().is_ok_and(|leave| leave >= pages));
        leave.map_or(Ok(()), |leave| {
            let mib = pages / 256;
            Err(format!(
                "leave = \"{leave}\" leaves nothing to fragment: the machine has {mib} MiB; \
                 choose less, or another machine"
            ))
        })
    }

    fn is_random(&self) -> bool {
        self.holes == Holes::Random && !self.freed_per_section.is_multiple_of(SECTION)
    }
}

impl Fragment {
    fn leave_pages(&self) -> Result<u64, String> {
        let Some(leave) = &self.leave else { return Ok(0) };
        let bytes = parse_size(leave).ok_or_else(|| format!("leave = \"{leave}\" is not a size"))?;
        Ok(bytes / 4096)
    }
}

/// Fills memory, makes holes, and keeps the rest.
#[derive(Clone)]
pub struct Fragmenter {
    holes: Holes,
    freed_per_section: u32,
    leave_pages: u64,
    random: SplitMix64,
    region: Region,
    section: u32,
    stage: Stage,
}

#[derive(Clone, PartialEq)]
enum Stage {
    Size,
    Map,
    Fill,
    Unmap,
}

impl Fragmenter {
    /// Frees `freed_per_section` of every 512 pages, chosen by `holes` and, where that is random,
    /// `seed`.
    pub fn new(holes: Holes, freed_per_section: u32, seed: u64) -> Fragmenter {
        Fragmenter {
            holes,
            freed_per_section: freed_per_section.min(SECTION),
            leave_pages: 0,
            random: SplitMix64::new(seed ^ 0x9e37_79b9_7f4a_7c15),
            region: Region { mapping: 0, first: 0, pages: 0 },
            section: 0,
            stage: Stage::Size,
        }
    }

    fn sections(&self) -> u32 {
        self.region.pages / SECTION
    }

    /// The runs of a section's pages to free, first to last.
    fn choose(&mut self) -> Vec<(u32, u32)> {
        let n = self.freed_per_section;
        match self.holes {
            Holes::First => vec![(0, n)],
            Holes::Last => vec![(SECTION - n, n)],
            Holes::Spread => runs_of(|i| (i + 1) * n / SECTION > i * n / SECTION),
            Holes::Random => {
                let mut left = n;
                runs_of(|i| {
                    // Selection sampling: exactly n pages are chosen.
                    let free = self.random.below(SECTION - i) < left;
                    left -= u32::from(free);
                    free
                })
            }
        }
    }
}

/// The runs of chosen pages of a section, first to last.
fn runs_of(mut chosen: impl FnMut(u32) -> bool) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for i in (0..SECTION).filter(|i| chosen(*i)) {
        match runs.last_mut() {
            Some((start, len)) if *start + *len == i => *len += 1,
            _ => runs.push((i, 1)),
        }
    }
    runs
}

impl Program for Fragmenter {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(last) = done.last() else { return };
        match self.stage {
            Stage::Size => {
                self.stage = Stage::Map;
                todo.push(Op::FreeAboveHigh);
            }
            Stage::Map => {
                let Value::Pages(free) = last.value else { return };
                self.stage = Stage::Fill;
                // One page in 513 is a page table. The rest is touched, in whole sections.
                let sections = free.saturating_sub(self.leave_pages) / u64::from(SECTION + 1);
                todo.push(Op::Mmap { pages: u32::try_from(sections).unwrap_or(u32::MAX / SECTION) * SECTION });
            }
            Stage::Fill => {
                let Value::Region(region) = last.value else { return };
                self.region = region;
                self.stage = Stage::Unmap;
                todo.push(Op::Touch(region));
            }
            // A section at a time.
            Stage::Unmap => {
                while todo.is_empty() && self.section < self.sections() {
                    let start = self.section * SECTION;
                    let region = self.region;
                    let holes = self.choose().into_iter();
                    todo.extend(holes.map(|(at, pages)| Op::Munmap(Region { first: start + at, pages, ..region })));
                    self.section += 1;
                }
            }
        }
    }

    fn progress(&self) -> f64 {
        f64::from(self.section) / f64::from(self.sections().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_frees_what_it_is_asked_to() {
        for holes in [Holes::First, Holes::Last, Holes::Random, Holes::Spread] {
            for n in [0, 1, 128, 384, 511, 512] {
                let runs = Fragmenter::new(holes, n, 7).choose();
                assert_eq!(runs.iter().map(|(_, len)| len).sum::<u32>(), n, "{holes:?} {n}");
                assert!(runs.iter().all(|(at, len)| at + len <= SECTION), "{holes:?} {n}");
            }
        }
    }

    #[test]
    fn spread_holes_leave_every_fourth_page() {
        let runs = Fragmenter::new(Holes::Spread, 384, 0).choose();
        assert_eq!(runs.len(), 128);
        assert!(runs.iter().all(|(_, len)| *len == 3));
    }

    #[test]
    fn random_holes_follow_the_seed() {
        let of = |seed| Fragmenter::new(Holes::Random, 384, seed).choose();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn it_leaves_what_it_is_to_leave() {
        let mapped = |leave: Option<&str>| {
            let fragment = Fragment { holes: Holes::First, freed_per_section: 384, leave: leave.map(str::to_owned) };
            let mut program = fragment.program(&Start::default()).expect("it can be read");
            let mut todo = Batch::default();
            program.stage = Stage::Map;
            program.next(&[Outcome { value: Value::Pages(513 * 1000), ..Outcome::at_start(0) }], &mut todo);
            if let Some(Op::Mmap { pages }) = todo.pop() { Some(pages) } else { None }
        };
        assert_eq!(mapped(None), Some(512_000));
        assert_eq!(mapped(Some("1 MiB")), Some(512 * 999));
        let all = Fragment { holes: Holes::First, freed_per_section: 384, leave: Some("1 GiB".into()) };
        assert!(all.fits(1 << 18, 1).unwrap_err().starts_with("leave = \"1 GiB\" leaves nothing"));
    }
}
