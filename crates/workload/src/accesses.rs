//! A heap that is filled and then used: accesses to it take the time that address translation takes
//! on the pages it lies on. What huge pages cost stands beside what they gain.
//!
//! The accesses come in rounds. In each, the program uses all its pages first, so that what was
//! swapped out comes back and reclaim sees that it is in use. Only what is missing takes time: what
//! a use of a page takes that is there is the accesses' own.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::limits::within;
use crate::size::{HPAGE_PMD_NR, all_fit, pages};
use kontig_program::{Batch, Figure, Hot, Op, Outcome, Pattern, Program, Reading, Region, Value};
use serde::{Deserialize, Serialize};

/// Rounds that the accesses are made in.
const ROUNDS: u64 = 32;
/// The most accesses, so that their time fits in 64 bits of nanoseconds.
const MOST_ACCESSES: u64 = 1_000_000_000_000;
/// The share of what is used that may be in swap. Chosen: with a read of flash of 100 µs a fault,
/// accesses at random would wait 100 ns each for a thousandth, a third of what they take.
const MOST_AWAY: f64 = 0.001;
/// The longest work around one access.
const MOST_WORK_NS: f64 = 1e6;

/// A process fills a heap and accesses it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Accesses {
    /// The heap, such as `"8 GiB"`.
    pub size: String,
    /// Every one of that many pages is used, evenly spread: 1 for all of them.
    #[serde(default = "one")]
    pub one_in: u32,
    pub pattern: PatternKind,
    /// Of skewed accesses: the n-th hottest page is accessed as often as n to the power of -theta
    /// says; 0.99, as in YCSB, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theta: Option<f64>,
    /// Of skewed accesses: where the hottest pages lie; scattered if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<Hot>,
    /// Accesses that miss the first level of caches.
    pub accesses: u64,
    /// The program's other work for each of them, ns.
    #[serde(default)]
    pub work_ns: f64,
    /// Whether it asks for huge pages (`MADV_HUGEPAGE`, `-XX:+UseTransparentHugePages`).
    #[serde(default)]
    pub advise: bool,
}

/// The pattern of accesses, in a word.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum PatternKind {
    Sequential,
    Independent,
    Chase,
    Skewed,
}

/// The `theta` of a file that leaves it out: that of YCSB's Zipfian requests.
const THETA: f64 = 0.99;

const fn one() -> u32 {
    1
}

impl Accesses {
    fn pattern(&self) -> Result<Pattern, String> {
        let only_skewed = |key: &str| Err(format!("{key} is of pattern 'skewed' alone: set pattern=skewed, too"));
        match (self.pattern, self.theta, self.hot) {
            (PatternKind::Skewed, theta, hot) => {
                let theta = theta.unwrap_or(THETA);
                within("theta", theta, 3.0)?;
                Ok(Pattern::Skewed { theta, hot: hot.unwrap_or(Hot::Scattered) })
            }
            (_, Some(_), _) => only_skewed("theta"),
            (_, _, Some(_)) => only_skewed("hot"),
            (PatternKind::Sequential, ..) => Ok(Pattern::Sequential),
            (PatternKind::Independent, ..) => Ok(Pattern::Independent),
            (PatternKind::Chase, ..) => Ok(Pattern::Chase),
        }
    }

    /// Small pages' worth of memory that is used.
    fn used(&self, pages: u32) -> u32 {
        pages.div_ceil(self.one_in.max(1))
    }
}

impl Benchmark for Accesses {
    type Program = Process;

    fn program(&self, _: &Start) -> Result<Process, String> {
        let pages = pages("size", &self.size)?;
        if !(1..=HPAGE_PMD_NR).contains(&self.one_in) {
            return Err(format!("one_in = {} is not from 1 to {HPAGE_PMD_NR}", self.one_in));
        }
        if !(1..=MOST_ACCESSES).contains(&self.accesses) {
            return Err(format!("accesses = {} is not from 1 to {MOST_ACCESSES}", self.accesses));
        }
        within("work_ns", self.work_ns, MOST_WORK_NS)?;
        Ok(Process {
            pattern: self.pattern()?,
            what: self.clone(),
            pages,
            region: Region { mapping: 0, first: 0, pages: 0 },
            stage: Stage::Map,
            touched: 0,
            rounds: 0,
            began_ns: 0,
            filled_ns: 0,
            accesses_ns: 0,
            ended_ns: 0,
            mapped: Vec::new(),
        })
    }

    fn measured(&self, copies: &[&Process]) -> Measured {
        let ended: Vec<&Process> = copies.iter().copied().filter(|copy| copy.rounds == ROUNDS).collect();
        let mean = |of: &dyn Fn(&Process) -> f64| {
            let sum: f64 = ended.iter().map(|copy| of(copy)).sum();
            (!ended.is_empty()).then(|| sum / ended.len() as f64)
        };
        let s = |ns: u64| ns as f64 / 1e9;
        let read = |figure: Figure, of: &dyn Fn(&Process) -> f64| figure.read_or(mean(of), "it did not end");
        let is_away = ended.iter().any(|copy| copy.of_rounds(Process::away) > MOST_AWAY);
        let timed = |figure: Figure, of: &dyn Fn(&Process) -> f64| {
            let why = "part of the heap was in swap, and what its faults cost the accesses is not modelled";
            if is_away { figure.read_or(None, why) } else { read(figure, of) }
        };
        let lower = |name: &'static str, unit: &'static str| Figure::new(name, unit).lower();
        let figures: Vec<Reading> = vec![
            timed(lower("filling and accesses", "s"), &|copy| s(copy.ended_ns - copy.began_ns)),
            read(lower("filling the heap", "s"), &|copy| s(copy.filled_ns)),
            timed(lower("an access", "ns"), &|copy| copy.accesses_ns as f64 / self.accesses as f64),
            read(Figure::new("in huge pages", "%").higher(), &|copy| 100.0 * copy.of_rounds(Process::huge_share)),
            read(lower("heap in memory", "MiB"), &|copy| copy.of_rounds(Process::resident) / 256.0),
        ];
        Measured { figures, ..Measured::default() }
    }

    fn fits(&self, machine: u64, copies: u64) -> Result<(), String> {
        all_fit("size", &self.size, machine * u64::from(self.one_in.max(1)), copies)
    }

    fn needs_translation(&self) -> bool {
        true
    }
}

/// The process with the heap.
#[derive(Clone)]
pub struct Process {
    what: Accesses,
    pattern: Pattern,
    pages: u32,
    region: Region,
    stage: Stage,
    /// Pages of the heap that were passed while filling it.
    touched: u32,
    rounds: u64,
    began_ns: u64,
    filled_ns: u64,
    accesses_ns: u64,
    ended_ns: u64,
    /// Small pages and huge pages that the heap lay on, round by round.
    mapped: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Map,
    Advise,
    Fill,
    Access,
}

impl Process {
    /// Touches the pages in use of a range, or uses them again.
    fn each(&self, op: fn(Region) -> Op, first: u32, pages: u32, todo: &mut Batch) {
        if self.what.one_in == 1 {
            return todo.push(op(Region { first, pages, ..self.region }));
        }
        let page = |first| op(Region { first, pages: 1, ..self.region });
        todo.extend((first..first + pages).filter(|page| page % self.what.one_in == 0).map(page));
    }

    /// Hands over the next round.
    fn access(&mut self, todo: &mut Batch) {
        let (all, round) = (self.what.accesses, self.rounds);
        let accesses = all * (round + 1) / ROUNDS - all * round / ROUNDS;
        self.each(Op::Use, 0, self.pages, todo);
        let used = self.what.used(self.pages);
        todo.push(Op::Access { region: self.region, used, pattern: self.pattern, accesses });
        todo.push(Op::Compute((accesses as f64 * self.what.work_ns).round() as u64));
    }

    fn of_rounds(&self, of: fn(&Process, (u64, u64)) -> f64) -> f64 {
        self.mapped.iter().map(|mapped| of(self, *mapped)).sum::<f64>() / self.mapped.len().max(1) as f64
    }

    /// The share of what is used that lies in huge pages.
    fn huge_share(&self, (small, huge): (u64, u64)) -> f64 {
        let used = f64::from(self.what.used(self.pages));
        let in_huge = (used - small as f64).clamp(0.0, (huge * u64::from(HPAGE_PMD_NR)) as f64);
        in_huge / used
    }

    /// The share of what is used that is not in memory.
    fn away(&self, (small, huge): (u64, u64)) -> f64 {
        let used = f64::from(self.what.used(self.pages));
        ((used - (small + huge * u64::from(HPAGE_PMD_NR)) as f64) / used).max(0.0)
    }

    /// Pages of the heap in memory.
    fn resident(&self, (small, huge): (u64, u64)) -> f64 {
        (small + huge * u64::from(HPAGE_PMD_NR)) as f64
    }
}

impl Program for Process {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(last) = done.last() else { return };
        match self.stage {
            Stage::Map => {
                self.began_ns = last.end_ns;
                self.stage = Stage::Advise;
                todo.push(Op::Mmap { pages: self.pages });
            }
            Stage::Advise => {
                let Value::Region(region) = last.value else { return };
                self.region = region;
                self.stage = Stage::Fill;
                todo.push(if self.what.advise { Op::AdviseHuge(region) } else { Op::Compute(0) });
            }
            Stage::Fill => {
                if self.touched == self.pages {
                    self.filled_ns = last.end_ns - self.began_ns;
                    self.stage = Stage::Access;
                    return self.access(todo);
                }
                let pages = HPAGE_PMD_NR.min(self.pages - self.touched);
                self.each(Op::Touch, self.touched, pages, todo);
                self.touched += pages;
            }
            Stage::Access => {
                self.rounds += 1;
                self.ended_ns = last.end_ns;
                for outcome in done {
                    if let Value::Mapped { small, huge, ns } = outcome.value {
                        self.accesses_ns += ns;
                        self.mapped.push((small, huge));
                    }
                }
                if self.rounds < ROUNDS {
                    self.access(todo);
                }
            }
        }
    }

    fn progress(&self) -> f64 {
        let filled = f64::from(self.touched) / f64::from(self.pages.max(1));
        (filled + self.rounds as f64) / (ROUNDS + 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accesses(more: &str) -> Accesses {
        toml::from_str(&format!("size = '4 MiB'\npattern = 'chase'\n{more}")).expect("well-formed")
    }

    /// The operations of the program, each of which takes a nanosecond but an access, which takes
    /// ten.
    fn lived(what: &Accesses, mapped: fn(u64) -> Value) -> (Vec<Op>, Process) {
        let mut program = what.program(&Start::default()).expect("it can be done");
        let (mut all, mut done, mut now) = (Vec::new(), vec![Outcome::at_start(5)], 5);
        loop {
            let mut todo = Batch::new();
            program.next(&done, &mut todo);
            done.clear();
            while let Some(op) = todo.pop() {
                let (value, ns) = match op {
                    Op::Mmap { pages } => (Value::Region(Region { mapping: 3, first: 0, pages }), 1),
                    // It waits for a CPU, too.
                    Op::Access { accesses, .. } => (mapped(accesses), 10 * accesses),
                    _ => (Value::Unit, 1),
                };
                done.push(Outcome { value, start_ns: now, end_ns: now + ns });
                now += ns;
                all.push(op);
            }
            if done.is_empty() {
                return (all, program);
            }
        }
    }

    fn figure(what: &Accesses, program: &Process, name: &str) -> f64 {
        let figures = what.measured(&[program]).figures;
        let of = figures.iter().find(|reading| reading.figure.name == name).expect("it is measured");
        of.value.expect("it ended")
    }

    #[test]
    fn a_heap_is_filled_by_huge_pages_and_then_all_accesses_are_made() {
        let what = accesses("accesses = 1001\nadvise = true\nwork_ns = 2");
        let (ops, program) = lived(&what, |accesses| Value::Mapped { small: 512, huge: 1, ns: 7 * accesses });
        let touch = |first, pages| Op::Touch(Region { mapping: 3, first, pages });
        assert_eq!(ops[..2], [Op::Mmap { pages: 1024 }, Op::AdviseHuge(Region { mapping: 3, first: 0, pages: 1024 })]);
        let used = Op::Use(Region { mapping: 3, first: 0, pages: 1024 });
        assert_eq!(ops[2..5], [touch(0, 512), touch(512, 512), used]);
        let made = |op: &Op| if let Op::Access { accesses, .. } = op { *accesses } else { 0 };
        assert_eq!(ops.iter().map(made).sum::<u64>(), 1001);
        let work = |op: &Op| if let Op::Compute(ns) = op { *ns } else { 0 };
        assert_eq!(ops.iter().map(work).sum::<u64>(), 2002);
        let figure = |name| figure(&what, &program, name);
        assert_eq!((figure("an access"), figure("in huge pages"), figure("heap in memory")), (7.0, 50.0, 4.0));
        assert!((figure("filling the heap") - 4e-9).abs() < 1e-15);
    }

    #[test]
    fn of_a_thin_heap_only_some_pages_are_used_and_huge_pages_hold_the_others_too() {
        let what = accesses("accesses = 64\none_in = 4");
        let (ops, program) = lived(&what, |accesses| Value::Mapped { small: 0, huge: 2, ns: accesses });
        let of = |op: fn(&Op) -> bool| ops.iter().filter(|of| op(of)).count();
        let is_touch = |op: &Op| matches!(op, Op::Touch(region) if region.pages == 1);
        let is_use = |op: &Op| matches!(op, Op::Use(region) if region.pages == 1);
        assert_eq!((of(is_touch), of(is_use)), (256, 256 * ROUNDS as usize));
        assert!(ops.iter().any(|op| matches!(op, Op::Access { used: 256, accesses: 2, .. })));
        assert_eq!(figure(&what, &program, "in huge pages"), 100.0);
        assert_eq!(figure(&what, &program, "heap in memory"), 4.0);
    }

    #[test]
    fn the_time_of_accesses_to_a_heap_that_is_partly_in_swap_is_not_told() {
        let what = accesses("accesses = 64");
        let (_, program) = lived(&what, |accesses| Value::Mapped { small: 1000, huge: 0, ns: accesses });
        let figures = what.measured(&[&program]).figures;
        let missing = |name: &str| {
            let of = figures.iter().find(|reading| reading.figure.name == name).expect("it is a figure");
            (of.value.is_none(), of.missing.contains("in swap"))
        };
        assert_eq!([missing("an access"), missing("filling and accesses")], [(true, true); 2]);
        assert_eq!(missing("filling the heap"), (false, false));
    }

    #[test]
    fn a_parameter_out_of_range_is_named() {
        let refused = |more: &str| accesses(more).program(&Start::default()).err().expect("refused");
        assert_eq!(refused("accesses = 0"), "accesses = 0 is not from 1 to 1000000000000");
        assert_eq!(refused("accesses = 9\none_in = 513"), "one_in = 513 is not from 1 to 512");
        assert!(refused("accesses = 9\nwork_ns = -1").starts_with("work_ns = -1"));
    }

    #[test]
    fn a_skewed_pattern_has_parameters_of_its_own() {
        let of = |more: &str| {
            let what: Accesses =
                toml::from_str(&format!("size = '4 MiB'\naccesses = 64\n{more}")).expect("well-formed");
            let (ops, _) = match what.program(&Start::default()) {
                Ok(_) => lived(&what, |accesses| Value::Mapped { small: 0, huge: 2, ns: accesses }),
                Err(reason) => return Err(reason),
            };
            let pattern = |op: &Op| if let Op::Access { pattern, .. } = op { Some(*pattern) } else { None };
            Ok(ops.iter().find_map(pattern).expect("it accesses its heap"))
        };
        let skewed = |theta, hot| Ok(Pattern::Skewed { theta, hot });
        assert_eq!(of("pattern = 'skewed'"), skewed(0.99, Hot::Scattered));
        assert_eq!(of("pattern = 'skewed'\ntheta = 0.6\nhot = 'together'"), skewed(0.6, Hot::Together));
        assert_eq!(of("pattern = 'independent'"), Ok(Pattern::Independent));
        let said = of("pattern = 'chase'\ntheta = 0.6").expect_err("a chase has no theta");
        assert_eq!(said, "theta is of pattern 'skewed' alone: set pattern=skewed, too");
        assert!(of("pattern = 'skewed'\ntheta = 4.0").expect_err("too skewed").starts_with("theta = 4"));
    }

    #[test]
    fn a_process_that_did_not_end_has_no_figures() {
        let what = accesses("accesses = 9");
        let program = what.program(&Start::default()).expect("it can be done");
        assert!(what.measured(&[&program]).figures.iter().all(|reading| reading.value.is_none()));
    }
}
