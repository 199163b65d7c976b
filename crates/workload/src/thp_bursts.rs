//! Bursts of huge pages: a process maps memory with MADV_HUGEPAGE, has a fault in each huge page of
//! it, and gives it all back, a fixed number of times.
//!
//! Seed 001 measures such bursts beside a kernel build. Its program is not public. It faults huge
//! pages in bursts, and a build sees the same number of attempts however long it takes (68,636 to
//! 68,639 in the mean of fifteen runs, of six kernels and two speeds); the shortest burst of an
//! earlier series took 4.8 ms. The unknowns are parameters: pages written of each huge page, huge
//! pages a burst, and the time between bursts.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::limits::{LONGEST_S, within};
use crate::size::{HPAGE_PMD_NR, all_fit, pages};
use kontig_program::{Batch, Figure, Merge, Op, Outcome, Program, Region, Value};
use serde::{Deserialize, Serialize};

/// A process takes and gives back huge pages in bursts.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ThpBursts {
    /// Memory of a burst, a whole number of huge pages, such as `"128 MiB"`.
    pub size: String,
    pub bursts: u32,
    /// From the start of a burst to that of the next, unmapping aside, ms; one that takes longer is
    /// followed at once.
    pub every_ms: f64,
    /// Pages written to of each huge page, from its first on.
    #[serde(default = "one")]
    pub written: u32,
    /// Whether it asks for huge pages (MADV_HUGEPAGE).
    #[serde(default = "yes")]
    pub advise: bool,
}

const fn one() -> u32 {
    1
}
const fn yes() -> bool {
    true
}

impl Benchmark for ThpBursts {
    type Program = Burster;

    fn program(&self, _: &Start) -> Result<Burster, String> {
        let pages = pages("size", &self.size)?;
        if !pages.is_multiple_of(HPAGE_PMD_NR) {
            return Err(format!("size = \"{}\" is no whole number of huge pages, which are 2 MiB", self.size));
        }
        if !(1..=HPAGE_PMD_NR).contains(&self.written) {
            return Err(format!("written = {}: from 1 to the {HPAGE_PMD_NR} pages of a huge page", self.written));
        }
        if self.bursts == 0 {
            return Err("bursts = 0: there is nothing to do".into());
        }
        within("every_ms", self.every_ms, LONGEST_S * 1000.0)?;
        Ok(Burster {
            pages,
            written: self.written,
            advise: self.advise,
            every_ns: (self.every_ms * 1e6) as u64,
            bursts: self.bursts,
            done: 0,
            region: None,
            begun: None,
            bursts_took: Latencies::new("burst", "none was ended"),
            faults: Latencies::new("2 MiB faulted in", "none was"),
        })
    }

    fn measured(&self, copies: &[&Burster]) -> Measured {
        let taken = |of: fn(&Burster) -> &Latencies| Latencies::of_all(copies.iter().map(|copy| of(copy)));
        let of = |merge: fn(&'static str) -> Merge, what: &str| {
            Figure::new(format!("burst {what}"), "us").lower().merged(merge("burst"))
        };
        let bursts = taken(|copy| &copy.bursts_took).filter(|all| !all.histogram.is_empty());
        let us = |of: fn(&Latencies) -> f64| bursts.as_ref().map(|all| of(all) / 1000.0);
        let figures = vec![
            of(|of| Merge::MeanOf { of: of.into() }, "mean").read_or(us(|all| all.histogram.mean()), "none was ended"),
            of(|of| Merge::StddevOf { of: of.into() }, "stddev")
                .read_or(us(|all| all.histogram.stdev()), "none was ended"),
        ];
        let latencies = [taken(|copy| &copy.bursts_took), taken(|copy| &copy.faults)];
        Measured { figures, latencies: latencies.into_iter().flatten().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        all_fit("size", &self.size, pages, copies)
    }
}

/// The process with the bursts.
#[derive(Clone)]
pub struct Burster {
    pages: u32,
    written: u32,
    advise: bool,
    every_ns: u64,
    bursts: u32,
    done: u32,
    /// The burst's memory, while it is in one.
    region: Option<Region>,
    /// When the burst began.
    begun: Option<u64>,
    bursts_took: Latencies,
    faults: Latencies,
}

impl Burster {
    /// The burst's memory has been mapped: fault it in.
    fn fault_in(&mut self, region: Region, todo: &mut Batch) {
        self.region = Some(region);
        if self.advise {
            todo.push(Op::AdviseHuge(region));
        }
        let huge_page = |first| Region { first: region.first + first, pages: self.written, ..region };
        todo.extend((0..self.pages).step_by(HPAGE_PMD_NR as usize).map(|first| Op::Touch(huge_page(first))));
    }

    /// The burst has been faulted in: unmap it, and wait until the next one is due.
    fn end(&mut self, region: Region, done: &[Outcome], todo: &mut Batch) {
        let Some((begun, last)) = self.begun.zip(done.last()) else { return };
        self.bursts_took.record(last.end_ns - begun);
        done.iter().skip(usize::from(self.advise)).for_each(|fault| self.faults.record(fault.latency_ns()));
        self.done += 1;
        todo.push(Op::Munmap(region));
        todo.push(Op::Sleep(self.every_ns.saturating_sub(last.end_ns - begun)));
        if self.done < self.bursts {
            todo.push(Op::Mmap { pages: self.pages });
        }
    }
}

impl Program for Burster {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        match (self.region.take(), done.last()) {
            (Some(region), _) => self.end(region, done, todo),
            (None, Some(Outcome { value: Value::Region(region), start_ns, .. })) => {
                self.begun = Some(*start_ns);
                self.fault_in(*region, todo);
            }
            _ if self.done == 0 => todo.push(Op::Mmap { pages: self.pages }),
            _ => {}
        }
    }

    fn progress(&self) -> f64 {
        f64::from(self.done) / f64::from(self.bursts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts() -> ThpBursts {
        ThpBursts { size: "4 MiB".into(), bursts: 2, every_ms: 1.0, written: 3, advise: true }
    }

    fn ops(burster: &mut Burster, done: &[Outcome]) -> Vec<Op> {
        let mut todo = Batch::new();
        burster.next(done, &mut todo);
        std::iter::from_fn(|| todo.pop()).collect()
    }

    #[test]
    fn a_burst_maps_advises_faults_in_every_huge_page_and_gives_all_back() {
        let mut process = bursts().program(&Start::default()).expect("it can be read");
        assert_eq!(ops(&mut process, &[Outcome::at_start(0)]), [Op::Mmap { pages: 1024 }]);
        let region = Region { mapping: 7, first: 0, pages: 1024 };
        let mapped = [Outcome { value: Value::Region(region), start_ns: 100, end_ns: 110 }];
        let fault = |first| Op::Touch(Region { first, pages: 3, ..region });
        assert_eq!(ops(&mut process, &mapped), [Op::AdviseHuge(region), fault(0), fault(512)]);
        let at = |start_ns, end_ns| Outcome { value: Value::Unit, start_ns, end_ns };
        let ended = ops(&mut process, &[at(110, 120), at(120, 500), at(500, 1_100)]);
        assert_eq!(ended, [Op::Munmap(region), Op::Sleep(999_000), Op::Mmap { pages: 1024 }]);
        assert_eq!((process.bursts_took.longest_ns, process.faults.longest_ns), (Some(1_000), Some(600)));
        assert_eq!(process.faults.histogram.len(), 2, "the advice is no fault");
    }

    #[test]
    fn a_burst_that_takes_longer_than_the_time_between_two_is_followed_at_once_and_the_last_by_none() {
        let mut process = bursts().program(&Start::default()).expect("it can be read");
        let region = Region { mapping: 7, first: 0, pages: 1024 };
        for (n, last) in [(1, false), (2, true)] {
            ops(&mut process, &[Outcome { value: Value::Region(region), start_ns: 0, end_ns: 0 }]);
            let ended = ops(&mut process, &[Outcome { value: Value::Unit, start_ns: 0, end_ns: 5_000_000 }]);
            let mut expected = vec![Op::Munmap(region), Op::Sleep(0)];
            expected.extend((!last).then_some(Op::Mmap { pages: 1024 }));
            assert_eq!((ended, process.done), (expected, n));
        }
        assert_eq!(ops(&mut process, &[Outcome::at_start(6_000_000)]), []);
        let measured = bursts().measured(&[&process]);
        assert_eq!((measured.figures.len(), measured.latencies[0].histogram.len()), (2, 2));
    }

    #[test]
    fn bursts_are_of_whole_huge_pages() {
        let refused = |change: ThpBursts| change.program(&Start::default()).err().expect("refused");
        assert!(refused(ThpBursts { size: "3 MiB".into(), ..bursts() }).contains("no whole number of huge pages"));
        assert!(refused(ThpBursts { written: 513, ..bursts() }).contains("from 1 to the 512 pages"));
        assert!(refused(ThpBursts { bursts: 0, ..bursts() }).contains("nothing to do"));
    }
}
