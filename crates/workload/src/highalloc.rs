//! MMTests' stress-highalloc: a driver requests a fixed number of huge pages at a fixed pace, keeps
//! them until the pass is over, and frees them, the last one first. The number it got is the
//! result.
//!
//! Source: `stress-highalloc` and `highalloc` of MMTests at its commit d15fa84b, with the settings
//! of its configurations: an attempt every 125 ms (a huge page at 16 MB/s), for 95 % of memory; a
//! pass gives up when a success took more than 600 s or a failure more than 1,200 s; 5 s between
//! two passes.
//!
//! A pool of huge pages is reserved so, too, but no further than to the first that is not there
//! (`set_max_huge_pages()` of `mm/hugetlb.c`, of kernels 3.13 to 6.18): `stop = "first-failure"`.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::limits::{LONGEST_S, within};
use crate::size::HPAGE_PMD_NR;
use kontig_program::{Batch, Figure, Frame, Gfp, Op, Order, Outcome, Program, Value};
use serde::{Deserialize, Serialize};

/// The longest that a successful attempt may take, and a failed one.
const LONGEST_NS: [u64; 2] = [600_000_000_000, 1_200_000_000_000];
const REST_NS: u64 = 5_000_000_000;

/// A driver asks for huge pages at a fixed pace, pass after pass.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HighAlloc {
    /// Its flags, by the kernel's names joined by `|`.
    pub gfp: String,
    /// Attempts of a pass.
    pub attempts: u32,
    /// From the start of an attempt to that of the next, ms. The driver does not sleep meanwhile:
    /// it calls `schedule()` until it is time, and takes its share of a CPU.
    #[serde(default = "at_16_mb_s")]
    pub every_ms: f64,
    #[serde(default = "one")]
    pub passes: u32,
    /// Wait before the first pass, s.
    #[serde(default)]
    pub after_s: f64,
    /// When a pass ends before its last attempt.
    #[serde(default, skip_serializing_if = "Stop::is_default")]
    pub stop: Stop,
}

/// The reason for which a pass ends early.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// When an attempt takes too long.
    #[default]
    TooSlow,
    /// At the first failure, too.
    FirstFailure,
}

impl Stop {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Stop::default()
    }
}

const fn at_16_mb_s() -> f64 {
    125.0
}
const fn one() -> u32 {
    1
}

impl Benchmark for HighAlloc {
    type Program = HighAllocDriver;

    fn program(&self, _: &Start) -> Result<HighAllocDriver, String> {
        let gfp = Gfp::parse(&self.gfp).ok_or_else(|| {
            let gfp = &self.gfp;
            format!("gfp = \"{gfp}\": flags are kernel names joined by |, such as GFP_HIGHUSER_MOVABLE|__GFP_NOWARN")
        })?;
        if self.attempts == 0 || self.passes == 0 {
            return Err(format!("attempts = {}, passes = {}: at least one of each", self.attempts, self.passes));
        }
        within("every_ms", self.every_ms, LONGEST_S * 1000.0)?;
        within("after_s", self.after_s, LONGEST_S)?;
        Ok(HighAllocDriver {
            gfp,
            attempts: self.attempts,
            every_ns: (self.every_ms * 1e6) as u64,
            passes: self.passes,
            stop: self.stop,
            stage: Stage::Resting((self.after_s * 1e9) as u64),
            tried: 0,
            kept: Vec::new(),
            obtained: Vec::new(),
            succeeded: Latencies::new("huge page obtained", "none was"),
            failed: Latencies::new("attempt failed", "none did"),
        })
    }

    fn measured(&self, copies: &[&HighAllocDriver]) -> Measured {
        let obtained = |pass: usize| -> Option<f64> {
            copies.iter().map(|copy| copy.obtained.get(pass).copied().map(f64::from)).sum()
        };
        let of_pass = |pass: usize| {
            // As the script prints it: whole percent, rounded down.
            let share = obtained(pass).map(|n| (100.0 * n / (f64::from(self.attempts) * copies.len() as f64)).floor());
            Figure::new(format!("success {}", pass + 1), "%").higher().read_or(share, "the pass was not ended")
        };
        // With a pass that goes on after failures, how many came before the first says nothing.
        let before_failure = |pass: usize| {
            let name = format!("before the first failure {}", pass + 1);
            Figure::new(name, "huge pages").higher().read_or(obtained(pass), "the pass was not ended")
        };
        let passes = 0..self.passes as usize;
        let stopped = passes.clone().filter(|_| self.stop == Stop::FirstFailure).map(before_failure);
        let latencies = |of: fn(&HighAllocDriver) -> &Latencies| Latencies::of_all(copies.iter().map(|copy| of(copy)));
        Measured {
            figures: passes.map(of_pass).chain(stopped).collect(),
            latencies: [latencies(|copy| &copy.succeeded), latencies(|copy| &copy.failed)]
                .into_iter()
                .flatten()
                .collect(),
            ..Measured::default()
        }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        let has = pages / u64::from(HPAGE_PMD_NR);
        match u64::from(self.attempts) * copies <= has {
            true => Ok(()),
            false => Err(format!(
                "attempts = {}: the machine has {has} huge pages: choose less, or another machine",
                self.attempts
            )),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It will rest for this long, then begin a pass.
    Resting(u64),
    Trying,
    /// Free the blocks it has kept.
    Freeing,
    Done,
}

/// The driver that requests pages at its pace.
#[derive(Clone)]
pub struct HighAllocDriver {
    gfp: Gfp,
    attempts: u32,
    every_ns: u64,
    passes: u32,
    stop: Stop,
    stage: Stage,
    /// Attempts of the pass.
    tried: u32,
    kept: Vec<Frame>,
    /// Huge pages that each finished pass got.
    obtained: Vec<u32>,
    succeeded: Latencies,
    failed: Latencies,
}

/// Huge pages freed in a batch.
const AT_ONCE: usize = 32;

impl HighAllocDriver {
    /// Counts an attempt that has ended. Returns whether it was the last of its pass.
    fn take_in(&mut self, outcome: &Outcome) -> bool {
        let Value::Block(block) = outcome.value else { return false };
        let ns = outcome.latency_ns();
        self.tried += 1;
        self.kept.extend(block);
        if block.is_some() { &mut self.succeeded } else { &mut self.failed }.record(ns);
        let fails = block.is_none();
        let stops = fails && self.stop == Stop::FirstFailure;
        self.tried == self.attempts || stops || ns > LONGEST_NS[usize::from(fails)]
    }

    fn free(&mut self, todo: &mut Batch) {
        for _ in 0..AT_ONCE.min(self.kept.len()) {
            let Some(block) = self.kept.pop() else { break };
            todo.push(Op::SplitPages { block, order: Order::HUGE });
            todo.push(Op::FreePages { first: block, pages: HPAGE_PMD_NR });
        }
    }
}

impl Program for HighAllocDriver {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let attempt = done.iter().find(|outcome| matches!(outcome.value, Value::Block(_))).copied();
        if let (Stage::Trying, Some(attempt)) = (self.stage, attempt) {
            let is_last = self.take_in(&attempt);
            // The next begins when it is time, or at once. The driver waits for it awake.
            todo.push(Op::Spin(self.every_ns.saturating_sub(attempt.latency_ns())));
            if is_last {
                self.obtained.push(self.kept.len() as u32);
                self.stage = Stage::Freeing;
            }
        }
        while let Stage::Freeing = self.stage {
            self.free(todo);
            if !todo.is_empty() {
                return;
            }
            self.stage = if self.obtained.len() < self.passes as usize { Stage::Resting(REST_NS) } else { Stage::Done };
        }
        match self.stage {
            Stage::Resting(ns) => {
                (self.stage, self.tried) = (Stage::Trying, 0);
                todo.push(Op::Sleep(ns));
            }
            Stage::Done => return,
            Stage::Trying | Stage::Freeing => {}
        }
        todo.push(Op::AllocPages { gfp: self.gfp, order: Order::HUGE });
    }

    fn progress(&self) -> f64 {
        let passes = self.obtained.len() as f64;
        let of_pass = if self.stage == Stage::Trying { f64::from(self.tried) / f64::from(self.attempts) } else { 0.0 };
        ((passes + of_pass) / f64::from(self.passes)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(attempts: u32, passes: u32) -> HighAlloc {
        let gfp = "GFP_HIGHUSER_MOVABLE|__GFP_NOWARN".into();
        HighAlloc { gfp, attempts, every_ms: 125.0, passes, after_s: 2.0, stop: Stop::TooSlow }
    }

    /// Its operations if every second attempt fails and each takes this long.
    fn run(driver: &mut HighAllocDriver, takes_ns: u64) -> Vec<Op> {
        let (mut todo, mut done, mut ops, mut now, mut n) =
            (Batch::new(), vec![Outcome::at_start(0)], Vec::new(), 0, 0);
        loop {
            driver.next(&done, &mut todo);
            done.clear();
            while let Some(op) = todo.pop() {
                let (value, ns) = match &op {
                    Op::AllocPages { .. } => {
                        n += 1;
                        (Value::Block((n % 2 == 1).then_some(Frame::new(512 * n))), takes_ns)
                    }
                    Op::Sleep(ns) | Op::Spin(ns) => (Value::Unit, *ns),
                    _ => (Value::Unit, 1),
                };
                done.push(Outcome { value, start_ns: now, end_ns: now + ns });
                now += ns;
                ops.push(op);
            }
            if done.is_empty() {
                return ops;
            }
        }
    }

    #[test]
    fn a_pass_tries_at_its_pace_and_frees_the_last_it_got_first() {
        let benchmark = driver(4, 1);
        let mut program = benchmark.program(&Start::default()).expect("it can be read");
        let ops = run(&mut program, 25_000_000);
        let pauses = ops.iter().filter_map(|op| if let Op::Spin(ns) = op { Some(ns / 1_000_000) } else { None });
        assert_eq!(pauses.collect::<Vec<_>>(), [100; 4]);
        assert_eq!(ops[0], Op::Sleep(2_000_000_000));
        let freed =
            ops.iter().filter_map(|op| if let Op::FreePages { first, .. } = op { Some(first.get()) } else { None });
        assert_eq!(freed.collect::<Vec<_>>(), [3 * 512, 512]);
        let measured = benchmark.measured(&[&program]);
        assert_eq!(measured.figures[0].value, Some(50.0));
        assert_eq!(measured.latencies.iter().map(|l| l.histogram.len()).collect::<Vec<_>>(), [2, 2]);
    }

    #[test]
    fn passes_follow_each_other_after_five_seconds_with_nothing_kept() {
        let benchmark = driver(2, 3);
        let mut program = benchmark.program(&Start::default()).expect("it can be read");
        let ops = run(&mut program, 1);
        assert_eq!(ops.iter().filter(|op| **op == Op::Sleep(REST_NS)).count(), 2);
        assert_eq!((program.obtained.as_slice(), program.kept.len()), ([1, 1, 1].as_slice(), 0));
        assert_eq!(program.progress(), 1.0);
    }

    #[test]
    fn a_reservation_ends_at_the_first_huge_page_that_it_does_not_get() {
        let benchmark = HighAlloc { stop: Stop::FirstFailure, ..driver(9, 2) };
        let mut program = benchmark.program(&Start::default()).expect("it can be read");
        let ops = run(&mut program, 1);
        assert_eq!(ops.iter().filter(|op| matches!(op, Op::AllocPages { .. })).count(), 2 * 2);
        let figures: Vec<_> = benchmark.measured(&[&program]).figures.iter().map(|read| read.value).collect();
        assert_eq!(figures, [Some(11.0), Some(11.0), Some(1.0), Some(1.0)], "shares in %, then huge pages");
        assert_eq!(driver(9, 2).measured(&[&program]).figures.len(), 2);
    }

    #[test]
    fn a_pass_gives_up_when_an_attempt_takes_too_long() {
        let benchmark = driver(100, 1);
        let mut program = benchmark.program(&Start::default()).expect("it can be read");
        run(&mut program, LONGEST_NS[0] + 1);
        assert_eq!(program.tried, 1);
        assert_eq!(benchmark.measured(&[&program]).figures[0].value, Some(1.0));
        let not_ended = benchmark.program(&Start::default()).expect("it can be read");
        assert_eq!(benchmark.measured(&[&not_ended]).figures[0].value, None);
    }
}
