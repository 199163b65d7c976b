//! Churn: a process that replaces its memory, a stretch at a time, for as long as it may.
//!
//! Most machines are not quiet while huge pages are requested: caches and heaps free pages and
//! allocate others. This process maps memory and touches all of it; then, again and again, it
//! unmaps a stretch at a random place, touches it again, and pauses. It keeps base pages moving,
//! takes free pages between the requests of others, and breaks up blocks that compaction has just
//! made.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::limits::{LONGEST_PAUSE_US, within};
use crate::size::{all_fit, pages};
use kontig_program::{Batch, Figure, Op, Outcome, Program, Region, SplitMix64, Value};
use serde::{Deserialize, Serialize};

/// A process replaces its memory, a stretch at a time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Churn {
    /// Its memory, such as `"256 MiB"`.
    pub size: String,
    /// Pages replaced at a time.
    #[serde(default = "a_quarter_mib")]
    pub stretch: u32,
    /// Pause after each stretch, µs.
    #[serde(default = "a_hundred")]
    pub pause_us: f64,
}

const fn a_quarter_mib() -> u32 {
    64
}
const fn a_hundred() -> f64 {
    100.0
}

impl Benchmark for Churn {
    type Program = Churner;

    fn program(&self, start: &Start) -> Result<Churner, String> {
        let pages = pages("size", &self.size)?;
        if self.stretch == 0 || self.stretch > pages {
            return Err(format!("stretch = {}: from 1 to the {pages} pages of size = \"{}\"", self.stretch, self.size));
        }
        within("pause_us", self.pause_us, LONGEST_PAUSE_US)?;
        Ok(Churner {
            pages,
            stretch: self.stretch,
            pause_ns: (self.pause_us * 1000.0) as u64,
            random: SplitMix64::new(start.seed),
            region: None,
            replacing: false,
            replaced: 0,
            touches: Latencies::new("stretch touched again", "none was replaced"),
        })
    }

    fn measured(&self, copies: &[&Churner]) -> Measured {
        let replaced: u64 = copies.iter().map(|churner| churner.replaced).sum();
        let figure = Figure::new("pages replaced", "pages").higher().read(replaced as f64);
        let latencies = Latencies::of_all(copies.iter().map(|churner| &churner.touches));
        Measured { figures: vec![figure], latencies: latencies.into_iter().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        all_fit("size", &self.size, pages, copies)
    }

    fn is_random(&self) -> bool {
        true
    }

    fn is_endless(&self) -> bool {
        true
    }
}

/// The process that churns.
#[derive(Clone)]
pub struct Churner {
    pages: u32,
    stretch: u32,
    pause_ns: u64,
    random: SplitMix64,
    /// Its memory, once mapped.
    region: Option<Region>,
    /// Whether the last batch replaced a stretch.
    replacing: bool,
    replaced: u64,
    touches: Latencies,
}

impl Program for Churner {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(region) = self.region else {
            if let Some(Value::Region(region)) = done.last().map(|last| last.value) {
                self.region = Some(region);
                todo.push(Op::Touch(region));
            } else {
                todo.push(Op::Mmap { pages: self.pages });
            }
            return;
        };
        // Of a batch that replaced a stretch, the second operation is the touch.
        if let (true, Some(touch)) = (self.replacing, done.get(1)) {
            self.replaced += u64::from(self.stretch);
            self.touches.record(touch.latency_ns());
        }
        self.replacing = true;
        let first = region.first + self.random.below(self.pages - self.stretch + 1);
        let stretch = Region { first, pages: self.stretch, ..region };
        todo.extend([Op::Munmap(stretch), Op::Touch(stretch), Op::Sleep(self.pause_ns)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn churn() -> Churn {
        Churn { size: "1 MiB".into(), stretch: 64, pause_us: 5.0 }
    }

    #[test]
    fn a_stretch_is_unmapped_and_touched_again_within_the_mapping() {
        let mut process = churn().program(&Start { seed: 3, ..Start::default() }).expect("it can be read");
        let mut todo = Batch::new();
        process.next(&[Outcome::at_start(0)], &mut todo);
        assert_eq!(todo.pop(), Some(Op::Mmap { pages: 256 }));
        let region = Region { mapping: 9, first: 0, pages: 256 };
        process.next(&[Outcome { value: Value::Region(region), ..Outcome::at_start(0) }], &mut todo);
        assert_eq!(todo.pop(), Some(Op::Touch(region)));
        let mut firsts = std::collections::BTreeSet::new();
        for _ in 0..200 {
            process.next(&[Outcome::at_start(1), Outcome::at_start(2), Outcome::at_start(3)], &mut todo);
            let Some(Op::Munmap(stretch)) = todo.pop() else { panic!("it unmaps first") };
            assert_eq!((stretch.mapping, stretch.pages), (9, 64));
            assert!(stretch.first + stretch.pages <= 256);
            assert_eq!((todo.pop(), todo.pop()), (Some(Op::Touch(stretch)), Some(Op::Sleep(5000))));
            firsts.insert(stretch.first);
        }
        assert!(firsts.len() > 50, "{} places of 193", firsts.len());
        let measured = churn().measured(&[&process]);
        assert_eq!(measured.figures[0].value, Some(199.0 * 64.0), "the last is not done");
        assert_eq!(measured.latencies[0].histogram.len(), 199);
    }

    #[test]
    fn a_stretch_fits_the_memory_it_is_of() {
        for stretch in [0, 257] {
            let refused = Churn { stretch, ..churn() }.program(&Start::default()).err().expect("refused");
            assert!(refused.contains("from 1 to the 256 pages"), "{refused}");
        }
    }
}
