//! Seed 000's driver: allocates huge pages until none can be had, and times each.

use crate::{Benchmark, Measured, latencies};
use hdrhistogram::Histogram;
use kontig_mm::{Gfp, Order};
use kontig_sim::{Op, Outcome, Program, Value};

const HUGE: Order = Order::new(9);
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
    succeeded: Histogram<u64>,
    started: bool,
    allocating: bool,
}

impl HugeAlloc {
    /// Allocates with `gfp`, pausing `pause_ns` after each allocation, until `give_up_after` fail in a row.
    /// `free_at_start` is the machine's free memory in pages, for the share that could be had.
    pub fn new(gfp: Gfp, pause_ns: u64, give_up_after: u32, free_at_start: u64) -> HugeAlloc {
        HugeAlloc {
            gfp,
            pause_ns,
            give_up_after: give_up_after.max(1),
            free_at_start,
            allocated: 0,
            failures_in_a_row: 0,
            failures: 0,
            succeeded: latencies(),
            started: false,
            allocating: false,
        }
    }

    fn take_in(&mut self, last: &Outcome) {
        match last.value {
            Value::Block(Some(_)) => {
                self.allocated += 1;
                self.failures_in_a_row = 0;
                self.succeeded.saturating_record(last.latency_ns().max(1));
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
    fn next(&mut self, last: &Outcome) -> Op {
        if self.started && self.allocating {
            self.take_in(last);
        }
        self.started = true;
        if self.failures_in_a_row >= self.give_up_after {
            self.allocating = false;
            return Op::Done;
        }
        if self.allocating && self.pause_ns > 0 {
            self.allocating = false;
            return Op::Sleep(self.pause_ns);
        }
        self.allocating = true;
        Op::AllocPages { gfp: self.gfp, order: HUGE }
    }

    fn progress(&self) -> f64 {
        (self.allocated * HUGE_PAGES) as f64 / self.free_at_start.max(1) as f64
    }
}

impl Benchmark for HugeAlloc {
    fn measured(&self) -> Measured {
        let mut m = Measured::default();
        const PERCENTILES: [(f64, &str); 13] = [
            (5.0, "hugepage alloc latency p5"),
            (10.0, "hugepage alloc latency p10"),
            (25.0, "hugepage alloc latency p25"),
            (30.0, "hugepage alloc latency p30"),
            (40.0, "hugepage alloc latency p40"),
            (50.0, "hugepage alloc latency p50"),
            (60.0, "hugepage alloc latency p60"),
            (75.0, "hugepage alloc latency p75"),
            (80.0, "hugepage alloc latency p80"),
            (90.0, "hugepage alloc latency p90"),
            (95.0, "hugepage alloc latency p95"),
            (99.0, "hugepage alloc latency p99"),
            (100.0, "hugepage alloc latency max"),
        ];
        for (p, name) in PERCENTILES {
            m.figures.push((name, self.succeeded.value_at_quantile(p / 100.0) as f64 / 1000.0));
        }
        m.figures.push(("2M hugepages allocated", self.allocated as f64));
        m.figures.push(("share of free memory allocated as hugepages", 100.0 * self.progress()));
        m.figures.push(("failed allocations", self.failures as f64));
        m.latencies.push(("hugepage alloc latency", self.succeeded.clone()));
        m
    }
    fn into_program(self: Box<Self>) -> Box<dyn Program> {
        self
    }
}
