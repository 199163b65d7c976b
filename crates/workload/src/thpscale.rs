//! MMTests' `thpscale`: latencies of huge and base page faults while half of each 2 MiB is free,
//! and swap and the page cache are full.
//!
//! Each thread maps its share of the memory and fills it, and unmaps the first half of every 2 MiB.
//! It maps half as much again, to be faulted in later, and a quarter as much of a file, which it
//! reads page by page. When all threads have come so far they fault the second mapping in
//! ([`crate::huge_faults`]). That is done with each number of threads, after the page cache was
//! dropped. Source: `thpscale.c` of MMTests (2016), which has the share rounded up to 2 MiB and 6
//! MiB more, and faults in as much as the unrounded share's half.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::huge_faults::FaultLoop;
use crate::latencies::Latencies;
use crate::size::{HPAGE_PMD_NR, all_fit, pages};
use kontig_program::{Batch, Figure, FileName, Op, OpenFile, Outcome, Program, Region, Thread, Value};
use serde::{Deserialize, Serialize};
use std::any::Any;

/// Pages of a huge page that are unmapped.
const HOLE: u32 = 256;
/// A share is rounded up: 8 MiB less a byte is added, then it is cut to 2 MiB.
const ROUND_UP: u32 = 4 * HPAGE_PMD_NR - 1;

/// Threads fault in huge pages, where half of each is free.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Thpscale {
    /// How much memory all threads map and fill together, such as `"50 GiB"`; the file is as large.
    pub size: String,
    /// The number of a file that exists already.
    pub file: u64,
    #[serde(default)]
    pub disk: u8,
    /// The numbers of threads, one after the other.
    pub threads: Vec<u32>,
    /// Whether huge pages are asked for (`MADV_HUGEPAGE`).
    #[serde(default)]
    pub advised: bool,
}

impl Benchmark for Thpscale {
    type Program = Driver;

    fn program(&self, start: &Start) -> Result<Driver, String> {
        let size = pages("size", &self.size)?;
        if self.threads.is_empty() || self.threads.iter().any(|n| *n == 0 || size / n < 2 * HPAGE_PMD_NR) {
            return Err(format!("threads = {:?}: one number or more, each with 4 MiB a thread", self.threads));
        }
        let of = |threads: &u32| {
            let latencies = |class: &str, missing| Latencies {
                name: format!("fault-{class}-{threads}").into(),
                ..Latencies::new("fault", missing)
            };
            let base = latencies("base", "only huge pages were faulted in");
            (base, latencies("huge", "no huge page was faulted in"))
        };
        Ok(Driver {
            size,
            file: FileName::new(self.disk, self.file),
            advised: self.advised,
            open: None,
            threads: self.threads.clone(),
            next: 0,
            stage: DriverStage::Open,
            barrier: start.seed as u32,
            took: self.threads.iter().map(of).collect(),
        })
    }

    fn measured(&self, copies: &[&Driver]) -> Measured {
        let mut measured = Measured::default();
        for (i, threads) in self.threads.iter().enumerate() {
            let base = Latencies::of_all(copies.iter().map(|driver| &driver.took[i].0));
            let huge = Latencies::of_all(copies.iter().map(|driver| &driver.took[i].1));
            let count = |of: &Option<Latencies>| of.as_ref().map_or(0, |of| of.histogram.len()) as f64;
            let all = count(&base) + count(&huge);
            let share = (all > 0.0).then(|| 100.0 * count(&huge) / all);
            let figure = Figure::new(format!("Percentage huge-{threads}"), "%").higher();
            measured.figures.push(figure.read_or(share, "nothing was faulted in"));
            measured.latencies.extend([base, huge].into_iter().flatten());
        }
        measured
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        all_fit("size", &self.size, pages, copies)
    }

    fn last_disk(&self) -> Option<u8> {
        Some(self.disk)
    }
}

/// Drops the page cache, creates the threads, and collects their measurements.
#[derive(Clone)]
pub struct Driver {
    size: u32,
    file: FileName,
    advised: bool,
    /// The open file, once it is open.
    open: Option<OpenFile>,
    threads: Vec<u32>,
    /// Index of the next number of threads.
    next: usize,
    stage: DriverStage,
    barrier: u32,
    /// Of each number of threads, base and huge faults.
    took: Vec<(Latencies, Latencies)>,
}

#[derive(Clone, Copy, PartialEq)]
enum DriverStage {
    Open,
    Begin,
    Join,
}

impl Program for Driver {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if self.stage == DriverStage::Join {
            let made = |outcome: &Outcome| match outcome.value {
                Value::Thread(thread) => Some(thread),
                _ => None,
            };
            let made: Vec<Thread> = done.iter().filter_map(made).collect();
            if !made.is_empty() {
                todo.extend(made.into_iter().map(Op::Join));
                return;
            }
            (self.next, self.stage) = (self.next + 1, DriverStage::Open);
        }
        let Some(&threads) = self.threads.get(self.next) else { return };
        if self.stage == DriverStage::Open {
            self.stage = DriverStage::Begin;
            todo.push(Op::Sysctl { name: "vm.drop_caches".into(), value: "3".into() });
            if self.open.is_none() {
                todo.push(Op::Open { name: self.file, create: false });
            }
            return;
        }
        if let Some(Value::File(file)) = done.last().map(|last| last.value) {
            self.open = Some(file);
        }
        let Some(file) = self.open else { return };
        self.stage = DriverStage::Join;
        let share = self.size / threads;
        let thread = |number| {
            let pages = (share + ROUND_UP) / HPAGE_PMD_NR * HPAGE_PMD_NR;
            let of_file = Region { mapping: 0, first: pages * number, pages: pages / 4 };
            Op::Spawn(Box::new(Faulter {
                pages,
                chunks: share / HPAGE_PMD_NR / 2,
                file,
                of_file,
                advised: self.advised,
                barrier: (self.barrier, threads),
                stage: Stage::Begin,
                filled: None,
                fresh: None,
                took: self.took[self.next].clone(),
            }))
        };
        todo.extend((0..threads).map(thread));
    }

    fn joined(&mut self, thread: Box<dyn Program>) {
        let thread: Box<dyn Any> = thread;
        if let Ok(faulter) = thread.downcast::<Faulter>() {
            let Stage::End(faults) = &faulter.stage else { return };
            let ((base, huge), (more_base, more_huge)) = (&mut self.took[self.next], faults.took());
            base.add(more_base);
            huge.add(more_huge);
        }
    }

    fn progress(&self) -> f64 {
        self.next as f64 / self.threads.len() as f64
    }
}

#[derive(Clone)]
struct Faulter {
    pages: u32,
    /// The number of huge pages it faults in.
    chunks: u32,
    file: OpenFile,
    of_file: Region,
    advised: bool,
    barrier: (u32, u32),
    stage: Stage,
    /// The memory it fills first, and the memory it faults in last.
    filled: Option<Region>,
    fresh: Option<Region>,
    /// Empty latencies of base and huge faults.
    took: (Latencies, Latencies),
}

#[derive(Clone)]
enum Stage {
    Begin,
    Fill,
    Fresh,
    Read,
    Wait,
    Faults(FaultLoop),
    End(FaultLoop),
}

impl Program for Faulter {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(last) = done.last() else { return };
        match (&mut self.stage, last.value) {
            (Stage::Begin, _) => {
                self.stage = Stage::Fill;
                todo.push(Op::Mmap { pages: self.pages });
            }
            (Stage::Fill, Value::Region(region)) => {
                self.stage = Stage::Fresh;
                self.filled = Some(region);
                todo.push(Op::Fill(region));
                let hole =
                    |chunk| Op::Munmap(Region { first: region.first + chunk * HPAGE_PMD_NR, pages: HOLE, ..region });
                todo.extend((0..self.pages / HPAGE_PMD_NR).map(hole));
                todo.push(Op::Mmap { pages: self.pages / 2 });
            }
            (Stage::Fresh, Value::Region(region)) => {
                self.stage = Stage::Read;
                self.fresh = Some(region);
                todo.extend(self.advised.then_some(Op::AdviseHuge(region)));
                let Region { first, pages, .. } = self.of_file;
                todo.push(Op::MmapFile { file: self.file, first, pages });
            }
            (Stage::Read, Value::Region(region)) => {
                self.stage = Stage::Wait;
                self.of_file = region;
                todo.push(Op::Load(region));
                todo.push(Op::Barrier { barrier: self.barrier.0, parties: self.barrier.1 });
            }
            (Stage::Wait, _) => {
                let Some(fresh) = self.fresh else { return };
                let mut faults = FaultLoop::over(fresh, self.chunks * HPAGE_PMD_NR, self.took.clone());
                faults.next(done, todo);
                self.stage = Stage::Faults(faults);
            }
            (Stage::Faults(faults), _) => {
                faults.next(done, todo);
                if todo.is_empty() {
                    self.stage = Stage::End(faults.clone());
                    let all = [self.filled, self.fresh, Some(self.of_file)];
                    todo.extend(all.into_iter().flatten().map(Op::Munmap));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thpscale() -> Thpscale {
        toml::from_str("size = '40 MiB'\nfile = 1\nthreads = [1, 2]").expect("well-formed")
    }

    fn asked(program: &mut dyn Program, done: &[(Value, u64)]) -> Vec<Op> {
        let mut todo = Batch::new();
        let outcome = |(value, at): &(Value, u64)| Outcome { value: *value, start_ns: *at, end_ns: *at + 10 };
        program.next(&done.iter().map(outcome).collect::<Vec<_>>(), &mut todo);
        std::iter::from_fn(|| todo.pop()).collect()
    }

    /// The threads that a driver makes next.
    fn threads(driver: &mut Driver) -> Vec<Box<dyn Program>> {
        assert_eq!(asked(driver, &[(Value::Unit, 0)]).len(), 2, "the page cache is dropped, and the file opened");
        let spawned = asked(driver, &[(Value::Unit, 0), (Value::File(OpenFile::new(5)), 0)]);
        let program = |op| if let Op::Spawn(program) = op { program } else { panic!("{op:?}") };
        spawned.into_iter().map(program).collect()
    }

    #[test]
    fn shares_are_rounded_as_the_benchmark_rounds_them() {
        let mut driver = thpscale().program(&Start::default()).expect("it can be read");
        driver.next = 1;
        let mut both = threads(&mut driver);
        // 20 MiB and 8 MiB less a byte, in whole 2 MiB: 26 MiB.
        assert_eq!(asked(both[1].as_mut(), &[(Value::Unit, 0)]), [Op::Mmap { pages: 13 * 512 }]);
        let filled = Region { mapping: 1, first: 0, pages: 13 * 512 };
        let ops = asked(both[1].as_mut(), &[(Value::Region(filled), 0)]);
        assert_eq!((ops.len(), &ops[0], &ops[14]), (15, &Op::Fill(filled), &Op::Mmap { pages: 13 * 256 }));
        assert_eq!(ops[2], Op::Munmap(Region { first: 512, pages: 256, ..filled }));
        let fresh = Region { mapping: 2, first: 0, pages: 13 * 256 };
        let ops = asked(both[1].as_mut(), &[(Value::Region(fresh), 0)]);
        assert_eq!(ops, [Op::MmapFile { file: OpenFile::new(5), first: 13 * 512, pages: 13 * 128 }]);
        let mapped = Region { mapping: 3, first: 0, pages: 13 * 128 };
        let ops = asked(both[1].as_mut(), &[(Value::Region(mapped), 0)]);
        assert_eq!(ops, [Op::Load(mapped), Op::Barrier { barrier: 0, parties: 2 }]);
        // Half of 20 MiB is five huge pages.
        let mut faults = 0;
        let mut done = vec![(Value::Unit, 0)];
        loop {
            match &asked(both[1].as_mut(), &done)[..] {
                [Op::Touch(one), Op::Mincore(asked), Op::Fill(all)] => {
                    assert_eq!((one.pages, asked.first - one.first, all.pages), (1, 64, 512));
                    faults += 1;
                }
                unmaps => {
                    assert_eq!(unmaps, [filled, fresh, mapped].map(Op::Munmap));
                    break;
                }
            }
            let huge = u64::from(faults < 3);
            done = vec![(Value::Unit, 1000), (Value::Pages(huge), 1100), (Value::Unit, 1200)];
        }
        assert_eq!(faults, 5);
        driver.joined(both.remove(1));
        let measured = thpscale().measured(&[&driver]);
        assert_eq!(measured.figures[1].value, Some(40.0));
        let seen: Vec<_> = measured.latencies.iter().map(|l| (l.name.as_ref(), l.longest_ns)).collect();
        let of_two = [("fault-base-2", Some(210)), ("fault-huge-2", Some(210))];
        assert_eq!(seen, [&[("fault-base-1", None), ("fault-huge-1", None)], &of_two[..]].concat());
    }

    #[test]
    fn a_thread_has_4_mib_at_least() {
        for threads in [vec![], vec![0], vec![1, 11]] {
            let refused = Thpscale { threads, ..thpscale() }.program(&Start::default()).err().expect("refused");
            assert!(refused.contains("each with 4 MiB a thread"), "{refused}");
        }
    }
}
