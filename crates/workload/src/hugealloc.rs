//! Seed 000's driver: allocates huge pages until none is left for it, and times each.
//!
//! The driver stops after `give_up_after` failures in a row. How far it came is part of what it
//! measures, since a kernel may fail once with much memory free and succeed at the next attempt.
//! Drivers side by side on several CPUs are measured together.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::limits::{LONGEST_PAUSE_US, within};
use kontig_program::{Batch, Ending, Figure, Gfp, HPAGE_PMD_NR, MEASURE, Op, Order, Outcome, Program, Value};
use serde::{Deserialize, Serialize};

/// A driver allocates huge pages until it gives up.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HugeAlloc {
    /// Its flags, by the kernel's names joined by `|`.
    pub gfp: String,
    /// Pause after each allocation, µs.
    #[serde(default)]
    pub pause_us: f64,
    /// Failures in a row after which it gives up.
    #[serde(default = "one")]
    pub give_up_after: u32,
}

const fn one() -> u32 {
    1
}

impl Benchmark for HugeAlloc {
    type Program = HugeAllocDriver;

    fn program(&self, start: &Start) -> Result<HugeAllocDriver, String> {
        let gfp = &self.gfp;
        let flags = Gfp::parse(gfp).filter(|g| !g.has(Gfp::MOVABLE | Gfp::RECLAIMABLE)).ok_or_else(|| {
            format!("gfp = \"{gfp}\": flags are kernel names joined by |, such as GFP_KERNEL|__GFP_COMP")
        })?;
        if self.give_up_after == 0 {
            return Err("give_up_after = 0: it takes at least one failure to give up".into());
        }
        within("pause_us", self.pause_us, LONGEST_PAUSE_US)?;
        let pause_ns = (self.pause_us * 1000.0) as u64;
        Ok(HugeAllocDriver {
            gfp: flags,
            pause_ns,
            give_up_after: self.give_up_after,
            free_at_start: start.free_pages,
            drivers: start.copies,
            allocated: 0,
            failures_in_a_row: 0,
            failures: 0,
            succeeded: Latencies::new("hugepage alloc latency", "nothing was obtained"),
            allocating: false,
        })
    }

    fn measured(&self, drivers: &[&HugeAllocDriver]) -> Measured {
        let sum = |of: fn(&HugeAllocDriver) -> u64| drivers.iter().map(|driver| of(driver)).sum::<u64>();
        let (allocated, failures) = (sum(|d| d.allocated), sum(|d| d.failures));
        // All began on the same memory.
        let free = drivers.first().map_or(0, |driver| driver.free_at_start);
        let share = (free > 0).then(|| 100.0 * share_of(allocated, free));
        let figures = vec![
            Figure::new("2M hugepages allocated", "hugepages").higher().read(allocated as f64),
            Figure::new("share of free memory allocated as hugepages", "%")
                .higher()
                .read_or(share, "no memory was free"),
            Figure::new("failed allocations", "allocations").lower().read(failures as f64),
        ];
        let rule = match self.give_up_after {
            1 => "the first failed allocation".to_owned(),
            n => format!("{n} failed allocations in a row"),
        };
        let remedy = "latencies are of successful allocations; to go on until N failures come in a row: \
                      give_up_after = N in the workload, or --with give_up_after=N"
            .into();
        let goal = "the memory free at the start".into();
        let ended = drivers.iter().all(|driver| driver.has_given_up());
        let ending =
            ended.then(|| Ending { task: String::new(), phase: MEASURE.into(), rule, reached: share, goal, remedy });
        let latencies = Latencies::of_all(drivers.iter().map(|driver| &driver.succeeded));
        Measured { figures, latencies: latencies.into_iter().collect(), ending }
    }
}

/// The share of memory that is in huge pages, 0 to 1.
fn share_of(huge_pages: u64, free: u64) -> f64 {
    (huge_pages * u64::from(HPAGE_PMD_NR)) as f64 / free.max(1) as f64
}

/// The driver that allocates until it gives up.
#[derive(Clone)]
pub struct HugeAllocDriver {
    gfp: Gfp,
    pause_ns: u64,
    give_up_after: u32,
    free_at_start: u64,
    /// The number of drivers that share that memory.
    drivers: u64,
    allocated: u64,
    failures_in_a_row: u32,
    failures: u64,
    succeeded: Latencies,
    allocating: bool,
}

impl HugeAllocDriver {
    fn has_given_up(&self) -> bool {
        self.failures_in_a_row >= self.give_up_after
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

impl Program for HugeAllocDriver {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        if self.allocating {
            done.iter().for_each(|last| self.take_in(last));
        }
        if self.has_given_up() {
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
        share_of(self.allocated * self.drivers.max(1), self.free_at_start)
    }
}
