//! Seed 000's Java heap: one process touches a large heap page by page, on huge pages it asked for
//! by `madvise`.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::size::{HPAGE_PMD_NR, all_fit, pages};
use kontig_program::{Batch, Op, Outcome, Program, Region, Value};
use serde::{Deserialize, Serialize};

/// A process touches a heap with MADV_HUGEPAGE.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Heap {
    /// Its size, such as `"700 GiB"`.
    pub size: String,
}

impl Benchmark for Heap {
    type Program = HeapProcess;

    fn program(&self, _: &Start) -> Result<HeapProcess, String> {
        Ok(HeapProcess {
            pages: pages("size", &self.size)?,
            region: Region { mapping: 0, first: 0, pages: 0 },
            touched: 0,
            stage: Stage::Map,
            faults: Latencies::new("2 MiB of heap touched", "nothing was touched"),
        })
    }

    fn measured(&self, copies: &[&HeapProcess]) -> Measured {
        let latencies = Latencies::of_all(copies.iter().map(|process| &process.faults));
        Measured { latencies: latencies.into_iter().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        all_fit("size", &self.size, pages, copies)
    }
}

/// The process with the heap.
#[derive(Clone)]
pub struct HeapProcess {
    pages: u32,
    region: Region,
    touched: u32,
    stage: Stage,
    faults: Latencies,
}

#[derive(Clone, PartialEq)]
enum Stage {
    Map,
    Advise,
    Touch,
}

impl Program for HeapProcess {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(last) = done.last() else { return };
        match self.stage {
            Stage::Map => {
                self.stage = Stage::Advise;
                todo.push(Op::Mmap { pages: self.pages });
            }
            Stage::Advise => {
                let Value::Region(region) = last.value else { return };
                self.region = region;
                self.stage = Stage::Touch;
                todo.push(Op::AdviseHuge(region));
            }
            Stage::Touch => {
                if self.touched > 0 {
                    self.faults.record(last.latency_ns());
                }
                if self.touched == self.pages {
                    return;
                }
                let (first, pages) = (self.touched, HPAGE_PMD_NR.min(self.pages - self.touched));
                self.touched += pages;
                todo.push(Op::Touch(Region { first, pages, ..self.region }));
            }
        }
    }

    fn progress(&self) -> f64 {
        f64::from(self.touched) / f64::from(self.pages.max(1))
    }
}
