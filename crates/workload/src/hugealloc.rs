//! Seed 000's driver: allocates huge pages until none can be had, and times each.
//!
//! When that is, is a rule of the driver's: so many failures in a row. How far it came under that rule is part of what
//! it measured, for a kernel may fail once with much memory free and do better at the next attempt.

use crate::latencies::Latencies;
use crate::{Benchmark, Measured};
use kontig_program::{Batch, Gfp, Op, Order, Outcome, Program, Value};
use kontig_results::{Ending, Figure};

const HUGE_PAGES: u64 = 512;

/// The driver.
pub struct HugeAlloc {
    gfp: Gfp,
    pause_ns: u64,
    give_up_after: u32,
    free_at_start: u64,
    allocated: u64,
    failures_in_a_row: u32,
    failures: u64,
    succeeded: Latencies,
    allocating: bool,
}

impl HugeAlloc {
    /// Allocates with `gfp`, pausing `pause_ns` after each allocation, until `give_up_after` fail in a row.
    /// `free_at_start` is the machine's free memory in pages, for the share that could be had.
    pub fn new(gfp: Gfp, pause_ns: u64, give_up_after: u32, free_at_start: u64) -> HugeAlloc {
        HugeAlloc {
            gfp,
            pause_ns,
            give_up_after,
            free_at_start,
            allocated: 0,
            failures_in_a_row: 0,
            failures: 0,
            succeeded: Latencies::new("hugepage alloc latency", "nothing was obtained"),
            allocating: false,
        }
    }

    fn take_in(&mut self, last: &Outcome) {
        match last.value {
            Value::Block(Some(_)) => {
                self.allocated += 1;
                self.failures_in_a_row = 0;
                self.succeeded.record(last.latency_ns());
            }
            Value::Block(None) => {
                self.failures += 1;
                self.failures_in_a_row += 1;
            }
            _ => {}
        }
    }
}

impl Program for HugeAlloc {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if self.allocating {
            done.iter().for_each(|last| self.take_in(last));
        }
        if self.failures_in_a_row >= self.give_up_after {
            self.allocating = false;
            return;
        }
        if self.allocating && self.pause_ns > 0 {
            self.allocating = false;
            todo.push(Op::Sleep(self.pause_ns));
            return;
        }
        self.allocating = true;
        todo.push(Op::AllocPages { gfp: self.gfp, order: Order::HUGE });
    }

    fn progress(&self) -> f64 {
        (self.allocated * HUGE_PAGES) as f64 / self.free_at_start.max(1) as f64
    }
}

impl Benchmark for HugeAlloc {
    fn measured(&self) -> Measured {
        let share = (self.free_at_start > 0).then(|| 100.0 * self.progress());
        let figures = vec![
            Figure::new("2M hugepages allocated", "hugepages").higher().read(self.allocated as f64),
            Figure::new("share of free memory allocated as hugepages", "%")
                .higher()
                .read_or(share, "no memory was free"),
            Figure::new("failed allocations", "allocations").lower().read(self.failures as f64),
        ];
        let rule = match self.give_up_after {
            1 => "the first failed allocation".to_owned(),
            n => format!("{n} failed allocations in a row"),
        };
        let remedy =
            "latencies are of successful allocations; to go on until N failures come in a row: give_up_after = N in the workload, or --give-up-after N with \
                      'kontig run'"
                .into();
        let ended = self.failures_in_a_row >= self.give_up_after;
        let ending = ended.then(|| Ending { rule, reached: share, goal: "the free memory".into(), remedy });
        Measured { figures, latencies: vec![self.succeeded.clone()], ending }
    }
}
