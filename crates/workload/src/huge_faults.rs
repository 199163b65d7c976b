//! The fault loop of MMTests' `thpscale` and `thpfioscale`: touches memory 2 MiB at a time, and
//! checks each time whether that was a huge page.
//!
//! Of each, in the order of addresses, the first page is written to; `mincore` of the page 64
//! further on says whether a huge page came; then all of it is written (`memset`). The time of
//! these three counts as that of a huge fault or of a base one. Source: `thpscale.c`,
//! `thpfioscale.c` of MMTests, which touch the first half of what they map.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::size::{HPAGE_PMD_NR, pages};
use kontig_program::{Batch, Figure, Op, Outcome, Program, Region, Value};
use serde::{Deserialize, Serialize};

/// The page of each 2 MiB that `mincore` is called on.
const ASKED_ABOUT: u32 = 64;

/// A process touches memory, huge page by huge page.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HugeFaults {
    /// How much it touches, such as `"12 GiB"`.
    pub size: String,
    /// Whether it asks for huge pages (`MADV_HUGEPAGE`).
    #[serde(default)]
    pub advised: bool,
}

impl Benchmark for HugeFaults {
    type Program = FaultLoop;

    fn program(&self, _: &Start) -> Result<FaultLoop, String> {
        let pages = pages("size", &self.size)?;
        if !pages.is_multiple_of(HPAGE_PMD_NR) {
            return Err(format!("size = \"{}\" is no multiple of 2 MiB", self.size));
        }
        Ok(FaultLoop {
            pages,
            advised: self.advised,
            region: None,
            next: 0,
            huge: Latencies::new("fault-huge", "no huge page was faulted in"),
            base: Latencies::new("fault-base", "only huge pages were faulted in"),
        })
    }

    fn measured(&self, copies: &[&FaultLoop]) -> Measured {
        let huge = Latencies::of_all(copies.iter().map(|copy| &copy.huge));
        let base = Latencies::of_all(copies.iter().map(|copy| &copy.base));
        let count = |of: &Option<Latencies>| of.as_ref().map_or(0, |of| of.histogram.len()) as f64;
        let (huges, all) = (count(&huge), count(&huge) + count(&base));
        let share = (all > 0.0).then(|| 100.0 * huges / all);
        // MMTests takes 0 for the mean of a class that was never seen.
        let mean = |of: &Option<Latencies>| of.as_ref().map_or(0.0, |of| of.histogram.mean() / 1e3);
        let figures = vec![
            Figure::new("mean fault-base", "us").lower().read(mean(&base)),
            Figure::new("mean fault-huge", "us").lower().read(mean(&huge)),
            Figure::new("faults that were huge", "%").higher().read_or(share, "nothing was touched"),
        ];
        Measured { figures, latencies: [huge, base].into_iter().flatten().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        crate::size::all_fit("size", &self.size, pages, copies)
    }
}

/// The process that runs the loop.
#[derive(Clone)]
pub struct FaultLoop {
    pages: u32,
    advised: bool,
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
                    if self.advised {
                        todo.push(Op::AdviseHuge(region));
                    } else {
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
        FaultLoop { pages, advised: false, region: Some(region), next: 0, huge, base }
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

    fn next(faults: &mut FaultLoop, done: &[(Value, u64)]) -> Vec<Op> {
        let mut todo = Batch::new();
        let outcomes: Vec<Outcome> =
            done.iter().map(|(value, at)| Outcome { value: *value, start_ns: *at, end_ns: at + 10 }).collect();
        faults.next(&outcomes, &mut todo);
        std::iter::from_fn(|| todo.pop()).collect()
    }

    #[test]
    fn each_two_mebibytes_are_asked_about_after_their_first_page_and_timed_as_what_they_were() {
        let benchmark = HugeFaults { size: "4 MiB".into(), advised: true };
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
    }
}
