//! The fault loop of MMTests' `thpscale` and `thpfioscale`: touches memory 2 MiB at a time, and
//! checks each time whether that was a huge page.
//!
//! Of each, in the order of addresses, the first page is written to; `mincore` of the page 64
//! further on says whether a huge page came; then all of it is written (`memset`). The time of
//! these three counts as that of a huge fault or of a base one. Several threads each have a mapping
//! of their own, and begin when all of them have it. Source: `thpscale.c`, `thpfioscale.c` of
//! MMTests, which touch the first half of what they map.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::size::{HPAGE_PMD_NR, pages};
use kontig_program::{Batch, Figure, Op, Outcome, Program, Region, Thread, Value};
use serde::{Deserialize, Serialize};
use std::any::Any;

/// The page of each 2 MiB that `mincore` is called on.
const ASKED_ABOUT: u32 = 64;

/// A process touches memory, huge page by huge page.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HugeFaults {
    /// How much it touches, such as `"12 GiB"`.
    pub size: String,
    /// How many threads share it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub threads: u32,
    /// Whether it asks for huge pages (`MADV_HUGEPAGE`).
    #[serde(default)]
    pub advised: bool,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(threads: &u32) -> bool {
    *threads == 1
}

impl Benchmark for HugeFaults {
    type Program = Faults;

    fn program(&self, start: &Start) -> Result<Faults, String> {
        let pages = pages("size", &self.size)?;
        if !pages.is_multiple_of(HPAGE_PMD_NR) {
            return Err(format!("size = \"{}\" is no multiple of 2 MiB", self.size));
        }
        // What is left over when threads share it, nobody touches.
        let of_each = pages.checked_div(self.threads).unwrap_or(0) / HPAGE_PMD_NR * HPAGE_PMD_NR;
        if of_each == 0 && (pages > 0 || self.threads != 1) {
            return Err(format!("threads = {}: one or more, each with 2 MiB of {}", self.threads, self.size));
        }
        let alone = FaultLoop {
            pages: of_each,
            advised: self.advised,
            waits_at: (self.threads > 1).then_some((start.seed as u32, self.threads)),
            region: None,
            next: 0,
            huge: Latencies::new("fault-huge", "no huge page was faulted in"),
            base: Latencies::new("fault-base", "only huge pages were faulted in"),
        };
        Ok(if self.threads == 1 {
            Faults::Alone(Box::new(alone))
        } else {
            Faults::Shared(Box::new(Shared::new(self.threads, alone)))
        })
    }

    fn measured(&self, copies: &[&Faults]) -> Measured {
        let took: Vec<(&Latencies, &Latencies)> = copies.iter().map(|copy| copy.took()).collect();
        let huge = Latencies::of_all(took.iter().map(|(_, huge)| *huge));
        let base = Latencies::of_all(took.iter().map(|(base, _)| *base));
        let count = |of: &Option<Latencies>| of.as_ref().map_or(0, |of| of.histogram.len()) as f64;
        let (huges, all) = (count(&huge), count(&huge) + count(&base));
        let share = (all > 0.0).then(|| 100.0 * huges / all);
        let seen = |of: &&Latencies| !of.histogram.is_empty();
        let mean = |of: &Option<Latencies>| of.as_ref().filter(seen).map(|of| of.histogram.mean() / 1e3);
        let figures = vec![
            Figure::new("mean fault-base", "us").lower().read_or(mean(&base), "no small page was faulted in"),
            Figure::new("mean fault-huge", "us").lower().read_or(mean(&huge), "no huge page was faulted in"),
            Figure::new("faults that were huge", "%").higher().read_or(share, "nothing was touched"),
        ];
        Measured { figures, latencies: [huge, base].into_iter().flatten().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        crate::size::all_fit("size", &self.size, pages, copies)
    }
}

/// The process that runs the loop, alone or with threads.
#[derive(Clone)]
pub enum Faults {
    Alone(Box<FaultLoop>),
    Shared(Box<Shared>),
}

impl Faults {
    /// Latencies of base faults and of huge faults.
    fn took(&self) -> (&Latencies, &Latencies) {
        match self {
            Faults::Alone(alone) => alone.took(),
            Faults::Shared(shared) => (&shared.base, &shared.huge),
        }
    }
}

impl Program for Faults {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        match self {
            Faults::Alone(alone) => alone.next(done, todo),
            Faults::Shared(shared) => shared.next(done, todo),
        }
    }

    fn joined(&mut self, thread: Box<dyn Program>) {
        let thread: Box<dyn Any> = thread;
        if let (Faults::Shared(shared), Ok(thread)) = (self, thread.downcast::<FaultLoop>()) {
            shared.joined += 1;
            shared.base.add(&thread.base);
            shared.huge.add(&thread.huge);
        }
    }

    /// A thread counts once it has ended.
    fn progress(&self) -> f64 {
        match self {
            Faults::Alone(alone) => alone.progress(),
            Faults::Shared(shared) => f64::from(shared.joined) / f64::from(shared.threads),
        }
    }
}

/// Creates the threads, waits for them, and collects their latencies.
#[derive(Clone)]
pub struct Shared {
    threads: u32,
    /// The thread that is created, as often as there are threads.
    thread: Option<FaultLoop>,
    joined: u32,
    base: Latencies,
    huge: Latencies,
}

impl Shared {
    fn new(threads: u32, thread: FaultLoop) -> Shared {
        Shared { threads, base: thread.base.clone(), huge: thread.huge.clone(), joined: 0, thread: Some(thread) }
    }

    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if let Some(thread) = self.thread.take() {
            return todo.extend((0..self.threads).map(|_| Op::Spawn(Box::new(thread.clone()))));
        }
        let made = |outcome: &Outcome| match outcome.value {
            Value::Thread(thread) => Some(thread),
            _ => None,
        };
        todo.extend(done.iter().filter_map(made).collect::<Vec<Thread>>().into_iter().map(Op::Join));
    }
}

/// One thread of the loop.
#[derive(Clone)]
pub struct FaultLoop {
    pages: u32,
    advised: bool,
    /// The barrier, and how many wait at it once they have mapped their memory.
    waits_at: Option<(u32, u32)>,
    region: Option<Region>,
    /// The next page to touch.
    next: u32,
    huge: Latencies,
    base: Latencies,
}

impl Program for FaultLoop {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let (Some(first), Some(last)) = (done.first(), done.last()) else { return };
        let Some(region) = self.region else {
            match last.value {
                Value::Region(region) => {
                    self.region = Some(region);
                    todo.extend(self.advised.then_some(Op::AdviseHuge(region)));
                    todo.extend(self.waits_at.map(|(barrier, parties)| Op::Barrier { barrier, parties }));
                    if todo.is_empty() {
                        self.touch(region, todo);
                    }
                }
                _ => todo.push(Op::Mmap { pages: self.pages }),
            }
            return;
        };
        if let [_, Outcome { value: Value::Pages(there), .. }, _] = done {
            let class = if *there > 0 { &mut self.huge } else { &mut self.base };
            class.record(last.end_ns - first.start_ns);
        }
        self.touch(region, todo);
    }

    fn progress(&self) -> f64 {
        f64::from(self.next) / f64::from(self.pages)
    }
}

impl FaultLoop {
    /// A loop over the first pages of a mapping that records its latencies in these.
    pub(crate) fn over(region: Region, pages: u32, (base, huge): (Latencies, Latencies)) -> FaultLoop {
        FaultLoop { pages, advised: false, waits_at: None, region: Some(region), next: 0, huge, base }
    }

    /// Latencies of base faults and of huge faults.
    pub(crate) fn took(&self) -> (&Latencies, &Latencies) {
        (&self.base, &self.huge)
    }

    fn touch(&mut self, region: Region, todo: &mut Batch) {
        if self.next == self.pages {
            return;
        }
        let of = |first, pages| Region { first: region.first + self.next + first, pages, ..region };
        todo.extend([Op::Touch(of(0, 1)), Op::Mincore(of(ASKED_ABOUT, 1)), Op::Fill(of(0, HPAGE_PMD_NR))]);
        self.next += HPAGE_PMD_NR;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPED: Region = Region { mapping: 2, first: 0, pages: 1024 };

    fn next(faults: &mut dyn Program, done: &[(Value, u64)]) -> Vec<Op> {
        let mut todo = Batch::new();
        let outcomes: Vec<Outcome> =
            done.iter().map(|(value, at)| Outcome { value: *value, start_ns: *at, end_ns: at + 10 }).collect();
        faults.next(&outcomes, &mut todo);
        std::iter::from_fn(|| todo.pop()).collect()
    }

    #[test]
    fn each_two_mebibytes_are_asked_about_after_their_first_page_and_timed_as_what_they_were() {
        let benchmark = HugeFaults { size: "4 MiB".into(), threads: 1, advised: true };
        let mut faults = benchmark.program(&Start::default()).expect("it can be read");
        assert_eq!(next(&mut faults, &[(Value::Unit, 0)]), [Op::Mmap { pages: 1024 }]);
        assert_eq!(next(&mut faults, &[(Value::Region(MAPPED), 0)]), [Op::AdviseHuge(MAPPED)]);
        let loop_at = |first: u32| {
            let of = |first, pages| Region { first, pages, ..MAPPED };
            [Op::Touch(of(first, 1)), Op::Mincore(of(first + 64, 1)), Op::Fill(of(first, 512))]
        };
        assert_eq!(next(&mut faults, &[(Value::Unit, 0)]), loop_at(0));
        let done = |there, at: u64| [(Value::Unit, at), (Value::Pages(there), at + 100), (Value::Unit, at + 200)];
        assert_eq!(next(&mut faults, &done(1, 1000)), loop_at(512));
        assert_eq!(next(&mut faults, &done(0, 2000)), []);
        let measured = benchmark.measured(&[&faults]);
        assert_eq!(measured.latencies.iter().map(|of| of.longest_ns).collect::<Vec<_>>(), [Some(210), Some(210)]);
        let values: Vec<_> = measured.figures.iter().map(|reading| reading.value).collect();
        assert_eq!(values[2], Some(50.0));
        assert!(values[0].is_some_and(|mean| mean > 0.0) && values[1].is_some_and(|mean| mean > 0.0));
    }

    #[test]
    fn of_huge_faults_that_never_happened_there_is_no_mean() {
        let benchmark = HugeFaults { size: "2 MiB".into(), threads: 1, advised: false };
        let mut faults = benchmark.program(&Start::default()).expect("it can be read");
        next(&mut faults, &[(Value::Unit, 0)]);
        next(&mut faults, &[(Value::Region(Region { pages: 512, ..MAPPED }), 0)]);
        next(&mut faults, &[(Value::Unit, 1000), (Value::Pages(0), 1100), (Value::Unit, 1200)]);
        let figures = benchmark.measured(&[&faults]).figures;
        let of = |name: &str| figures.iter().find(|reading| reading.figure.name == name).expect("a figure").value;
        assert!(of("mean fault-base").is_some());
        assert_eq!((of("mean fault-huge"), of("faults that were huge")), (None, Some(0.0)));
    }

    #[test]
    fn threads_share_the_memory_and_begin_when_all_have_mapped_their_part() {
        let benchmark = HugeFaults { size: "6 MiB".into(), threads: 2, advised: false };
        let start = Start { seed: 7, ..Start::default() };
        let mut driver = benchmark.program(&start).expect("it can be read");
        let spawned = next(&mut driver, &[(Value::Unit, 0)]);
        let mut threads: Vec<Box<dyn Program>> = Vec::new();
        for op in spawned {
            let Op::Spawn(thread) = op else { panic!("{op:?}") };
            threads.push(thread);
        }
        assert_eq!(threads.len(), 2);
        let made = [5, 6].map(|number| (Value::Thread(Thread::new(number)), 0));
        assert_eq!(next(&mut driver, &made), [5, 6].map(|number| Op::Join(Thread::new(number))));
        let half = Region { pages: 512, ..MAPPED };
        for mut thread in threads {
            assert_eq!(next(thread.as_mut(), &[(Value::Unit, 0)]), [Op::Mmap { pages: 512 }]);
            let waits = [Op::Barrier { barrier: 7, parties: 2 }];
            assert_eq!(next(thread.as_mut(), &[(Value::Region(half), 0)]), waits);
            assert_eq!(next(thread.as_mut(), &[(Value::Unit, 0)]).len(), 3);
            let done = [(Value::Unit, 1000), (Value::Pages(1), 1100), (Value::Unit, 1200)];
            assert_eq!(next(thread.as_mut(), &done), []);
            driver.joined(thread);
        }
        let measured = benchmark.measured(&[&driver]);
        assert_eq!(measured.figures[2].value, Some(100.0));
        assert_eq!((measured.latencies[0].histogram.len(), driver.progress()), (2, 1.0));
    }

    #[test]
    fn a_thread_has_2_mib_at_least() {
        for threads in [0, 3] {
            let refused = HugeFaults { size: "4 MiB".into(), threads, advised: false }.program(&Start::default());
            let expected = format!("threads = {threads}: one or more, each with 2 MiB of 4 MiB");
            assert_eq!(refused.err(), Some(expected));
        }
    }
}
