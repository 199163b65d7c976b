//! Seed 000's Java heap: one process touches a large heap page by page, on huge pages it asked for by `madvise`.

use crate::latencies::Latencies;
use crate::{Benchmark, Measured};
use kontig_program::{Batch, Op, Outcome, Program, Region, Value};

/// Pages touched by one operation: a huge page's worth.
const CHUNK: u32 = 512;

/// The process.
pub struct Heap {
    pages: u32,
    region: Region,
    touched: u32,
    stage: Stage,
    faults: Latencies,
}

#[derive(PartialEq)]
enum Stage {
    Map,
    Advise,
    Touch,
}

impl Heap {
    /// A heap of so many pages.
    pub fn new(pages: u32) -> Heap {
        Heap {
            pages,
            region: Region { mapping: 0, first: 0, pages: 0 },
            touched: 0,
            stage: Stage::Map,
            faults: Latencies::new("2 MiB of heap touched", "nothing was touched"),
        }
    }
}

impl Program for Heap {
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
                let (first, pages) = (self.touched, CHUNK.min(self.pages - self.touched));
                self.touched += pages;
                todo.push(Op::Touch(Region { first, pages, ..self.region }));
            }
        }
    }

    fn progress(&self) -> f64 {
        f64::from(self.touched) / f64::from(self.pages.max(1))
    }
}

impl Benchmark for Heap {
    fn measured(&self) -> Measured {
        Measured { latencies: vec![self.faults.clone()], ..Measured::default() }
    }
}
