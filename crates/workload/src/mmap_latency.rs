//! How long it takes to map memory, touch it and unmap it, over and over with a pause: MMTests'
//! `stutter` measures this beside whatever else runs.
//!
//! The kernel chooses the place, so that the memory may begin and end inside ranges of 2 MiB. A
//! round is timed from the end of the pause, so that waking up late counts, as it does there.
//! Source: `mmap-latency.c` of MMTests, 128 MiB with a pause of 5 ms.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::limits::{LONGEST_PAUSE_US, within};
use crate::size::{HPAGE_PMD_NR, all_fit, pages};
use kontig_program::{Batch, Op, Outcome, Program, Region, Value};
use serde::{Deserialize, Serialize};

/// A process maps, touches and unmaps memory until it is stopped.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MmapLatency {
    /// How much, such as `"128 MiB"`.
    pub size: String,
    /// Sleep before each round, µs.
    #[serde(default)]
    pub pause_us: f64,
}

impl Benchmark for MmapLatency {
    type Program = Mapper;

    fn program(&self, _: &Start) -> Result<Mapper, String> {
        within("pause_us", self.pause_us, LONGEST_PAUSE_US)?;
        Ok(Mapper {
            pages: pages("size", &self.size)?,
            pause_ns: (self.pause_us * 1000.0) as u64,
            region: None,
            begun: None,
            took: Latencies::new("mmap latency", "no round was ended"),
        })
    }

    fn measured(&self, copies: &[&Mapper]) -> Measured {
        let latencies = Latencies::of_all(copies.iter().map(|mapper| &mapper.took));
        Measured { latencies: latencies.into_iter().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        all_fit("size", &self.size, pages, copies)
    }

    fn is_endless(&self) -> bool {
        true
    }
}

/// The process that maps and unmaps.
#[derive(Clone)]
pub struct Mapper {
    pages: u32,
    pause_ns: u64,
    /// Its memory, in the middle of a round.
    region: Option<Region>,
    /// Start of the round, which begins with the pause; none before the first.
    begun: Option<u64>,
    took: Latencies,
}

impl Program for Mapper {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(last) = done.last() else { return };
        if let (None, Value::Region(region)) = (self.region, last.value) {
            self.region = Some(region);
            let chunk =
                |first| Region { first: region.first + first, pages: HPAGE_PMD_NR.min(self.pages - first), ..region };
            todo.extend((0..self.pages).step_by(HPAGE_PMD_NR as usize).map(|first| Op::Touch(chunk(first))));
            todo.push(Op::Munmap(region));
            return;
        }
        if let (Some(_), Some(begun)) = (self.region.take(), self.begun) {
            self.took.record((last.end_ns - begun).saturating_sub(self.pause_ns));
        }
        self.begun = Some(last.end_ns);
        todo.extend([Op::Sleep(self.pause_ns), Op::MmapAnywhere { pages: self.pages }]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: Region = Region { mapping: 4, first: 0, pages: 768 };

    fn mapper() -> Mapper {
        let benchmark = MmapLatency { size: "3 MiB".into(), pause_us: 5000.0 };
        benchmark.program(&Start::default()).expect("it can be read")
    }

    /// The next operation, after one that gave this result at this time.
    fn next(mapper: &mut Mapper, value: Value, end_ns: u64) -> Vec<Op> {
        let mut todo = Batch::new();
        mapper.next(&[Outcome { value, start_ns: end_ns, end_ns }], &mut todo);
        std::iter::from_fn(|| todo.pop()).collect()
    }

    #[test]
    fn a_round_sleeps_maps_touches_and_unmaps() {
        let mut mapper = mapper();
        assert_eq!(next(&mut mapper, Value::Unit, 100), [Op::Sleep(5_000_000), Op::MmapAnywhere { pages: 768 }]);
        let touched = [(0, 512), (512, 256)].map(|(first, pages)| Op::Touch(Region { first, pages, ..REGION }));
        let round = next(&mut mapper, Value::Region(REGION), 5_000_200);
        assert_eq!(round, [&touched[..], &[Op::Munmap(REGION)]].concat());
        assert_eq!(next(&mut mapper, Value::Unit, 7_000_100).len(), 2, "and again");
    }

    #[test]
    fn it_is_timed_from_the_end_of_the_one_before_without_the_pause() {
        let mut mapper = mapper();
        next(&mut mapper, Value::Unit, 100);
        next(&mut mapper, Value::Region(REGION), 5_000_200);
        next(&mut mapper, Value::Unit, 7_000_100);
        assert_eq!(mapper.took.longest_ns, Some(2_000_000), "7 ms, less 5 ms");
        // One that was shorter than the pause has taken no time, and not a negative one.
        next(&mut mapper, Value::Region(REGION), 7_000_100);
        next(&mut mapper, Value::Unit, 7_000_101);
        assert_eq!((mapper.took.histogram.len(), mapper.took.longest_ns), (2, Some(2_000_000)));
    }
}
