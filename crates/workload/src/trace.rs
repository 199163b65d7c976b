//! Recorded allocations, replayed: each process takes and gives back memory when it did so in the
//! recording.
//!
//! `kontig workload` writes such workloads from traces of `kmem:mm_page_alloc` and from copies of
//! `/proc/PID/smaps`. A line is an allocation: microseconds since the start, its order, the place
//! of its flags in the list, and the microseconds until it is freed, or `-`.
//!
//! What is movable is memory of the process: it is touched, and unmapped when it is freed. A huge
//! page is asked for (`MADV_HUGEPAGE`); all else are single pages. Everything else is allocated as
//! a driver does, and freed page by page. Allocations and frees of a process follow one another, so
//! that one that waits delays the next: how far behind the recording it is, is measured.

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::size::HPAGE_PMD_NR;
use kontig_program::{Batch, Figure, Frame, Gfp, Op, Order, Outcome, Program, Region, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Allocations as they were recorded.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Sets of flags by the kernel's names.
    pub flags: Vec<String>,
    /// The processes, one for each copy of the task.
    pub process: Vec<Recorded>,
}

/// The allocations of a process.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Its name and number in the recording.
    pub name: String,
    /// A line for each.
    pub allocations: String,
}

/// The largest order that is replayed.
const MOST_ORDER: u8 = 10;
/// Operations handed over at a time.
const AT_ONCE: usize = 32;

/// An allocation of the recording.
#[derive(Clone, Copy)]
struct Allocation {
    at_us: u64,
    order: Order,
    gfp: Gfp,
    lives_us: Option<u64>,
}

impl Allocation {
    fn pages(&self) -> u32 {
        1 << self.order.get()
    }

    /// When it is freed. A process gives back what it has, so never as it takes it.
    fn ends_us(&self) -> Option<u64> {
        Some(self.at_us.saturating_add(self.lives_us?.max(1)))
    }
}

/// Something that a process does.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Act {
    /// Take pages of one of its two mappings, the second of which is of huge pages.
    Touch(usize, u32, u32),
    Unmap(usize, u32, u32),
    Take(u32, Gfp, Order),
    Give(u32, Order),
}

impl Trace {
    fn sets(&self) -> Result<Vec<Gfp>, String> {
        let set = |text: &String| {
            Gfp::parse(text).ok_or_else(|| {
                format!("flags = \"{text}\": flags are kernel names joined by |, such as GFP_KERNEL|__GFP_COMP")
            })
        };
        self.flags.iter().map(set).collect()
    }

    fn allocations(&self, process: &Recorded) -> Result<Vec<Allocation>, String> {
        let sets = self.sets()?;
        let read = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [at, order, flags, lives] = words.as_slice() else { return None };
            let order: u8 = order.parse().ok().filter(|order| *order <= MOST_ORDER)?;
            let lives_us = if *lives == "-" { None } else { Some(lives.parse().ok()?) };
            let gfp = *sets.get(flags.parse::<usize>().ok()?)?;
            Some(Allocation { at_us: at.parse().ok()?, order: Order::new(order), gfp, lives_us })
        };
        let line = |(i, line): (usize, &str)| {
            read(line).ok_or_else(|| {
                format!(
                    "process = line {} of '{}': '{}' is not 'MICROSECONDS ORDER FLAGS LIFE', where flags are 0 to {} \
                     and life is microseconds or -",
                    i + 1,
                    process.name,
                    line.chars().take(60).collect::<String>(),
                    sets.len().saturating_sub(1)
                )
            })
        };
        process.allocations.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(line).collect()
    }

    /// The most pages in use at a time.
    fn most_pages(&self) -> Result<u64, String> {
        let mut changes = Vec::new();
        for process in &self.process {
            for allocation in self.allocations(process)? {
                let pages = i64::from(allocation.pages());
                changes.push((allocation.at_us, pages));
                changes.extend(allocation.ends_us().map(|at| (at, -pages)));
            }
        }
        changes.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, pages) in changes {
            now += pages;
            most = most.max(now);
        }
        Ok(most as u64)
    }
}

impl Benchmark for Trace {
    type Program = Replayer;

    fn program(&self, start: &Start) -> Result<Replayer, String> {
        let process = self.process.get(start.copy as usize);
        let process = process.ok_or_else(|| format!("process = {} of them: one for each copy", self.process.len()))?;
        Ok(Replayer::new(&self.allocations(process)?))
    }

    fn measured(&self, copies: &[&Replayer]) -> Measured {
        let sum = |of: fn(&Replayer) -> u64| copies.iter().map(|copy| of(copy)).sum::<u64>() as f64;
        let figures = vec![
            Figure::new("allocations replayed", "allocations").read(sum(|copy| copy.replayed)),
            Figure::new("allocations that failed", "allocations").lower().read(sum(|copy| copy.failed)),
        ];
        let of = |of: fn(&Replayer) -> &Latencies| Latencies::of_all(copies.iter().map(|copy| of(copy)));
        let latencies = [of(|copy| &copy.touches), of(|copy| &copy.kernel), of(|copy| &copy.behind)];
        Measured { figures, latencies: latencies.into_iter().flatten().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        let processes = self.process.len() as u64;
        if processes != copies {
            return Err(format!("process = {processes} of them, in {copies} copies: copies = {processes}"));
        }
        match self.most_pages()? {
            most if most <= pages => Ok(()),
            most => {
                let [most, has] = [most, pages].map(|pages| pages / 256);
                Err(format!("process = {most} MiB in use at a time: the machine has {has} MiB: choose another machine"))
            }
        }
    }
}

/// Where a process has its pages: a place that was given back is the next that is taken.
#[derive(Default)]
struct Places {
    pages: u32,
    free: BTreeMap<u32, Vec<u32>>,
}

impl Places {
    fn take(&mut self, pages: u32) -> u32 {
        if let Some(first) = self.free.get_mut(&pages).and_then(Vec::pop) {
            return first;
        }
        let first = self.pages.next_multiple_of(pages);
        self.pages = first + pages;
        first
    }

    fn give(&mut self, first: u32, pages: u32) {
        self.free.entry(pages).or_default().push(first);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Map,
    Advise,
    Replay,
}

/// A process of the recording.
#[derive(Clone)]
pub struct Replayer {
    stage: Stage,
    /// Its acts, each with its time, ns from the start.
    acts: Arc<[(u64, Act)]>,
    next: usize,
    /// The pages that it uses of its two mappings.
    pages: [u32; 2],
    regions: [Option<Region>; 2],
    /// Acts whose operation was handed over last, in order; none for an operation of another use.
    handed_over: Vec<Option<Act>>,
    began_ns: u64,
    blocks: BTreeMap<u32, Frame>,
    replayed: u64,
    failed: u64,
    touches: Latencies,
    kernel: Latencies,
    behind: Latencies,
}

impl Replayer {
    fn new(allocations: &[Allocation]) -> Replayer {
        // A free comes before an allocation of the same microsecond.
        let mut order: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * allocations.len());
        for (i, allocation) in allocations.iter().enumerate() {
            order.push((allocation.at_us, true, i));
            order.extend(allocation.ends_us().map(|at| (at, false, i)));
        }
        order.sort_unstable();
        let mut places = [Places::default(), Places::default()];
        let mut firsts = vec![0; allocations.len()];
        let act = |(at_us, takes, i): (u64, bool, usize)| {
            let (allocation, id) = (&allocations[i], i as u32);
            let pages = allocation.pages();
            let area = usize::from(pages == HPAGE_PMD_NR);
            let act = match (allocation.gfp.has(Gfp::MOVABLE), takes) {
                (true, true) => {
                    firsts[i] = places[area].take(pages);
                    Act::Touch(area, firsts[i], pages)
                }
                (true, false) => {
                    places[area].give(firsts[i], pages);
                    Act::Unmap(area, firsts[i], pages)
                }
                (false, true) => Act::Take(id, allocation.gfp, allocation.order),
                (false, false) => Act::Give(id, allocation.order),
            };
            (at_us.saturating_mul(1000), act)
        };
        let acts = order.into_iter().map(act).collect();
        Replayer {
            stage: Stage::Map,
            acts,
            next: 0,
            pages: places.map(|places| places.pages),
            regions: [None; 2],
            handed_over: Vec::new(),
            began_ns: 0,
            blocks: BTreeMap::new(),
            replayed: 0,
            failed: 0,
            touches: Latencies::new("memory touched", "nothing was"),
            kernel: Latencies::new("kernel allocation", "there was none"),
            behind: Latencies::new("behind the recording", "nothing was replayed"),
        }
    }

    fn learn(&mut self, act: Option<Act>, outcome: &Outcome) {
        match (act, outcome.value) {
            (None, Value::Region(region)) => {
                let missing = (0..2).find(|area| self.pages[*area] > 0 && self.regions[*area].is_none());
                if let Some(area) = missing {
                    self.regions[area] = Some(region);
                }
            }
            (Some(Act::Touch(..)), _) => {
                self.replayed += 1;
                self.touches.record(outcome.latency_ns());
            }
            (Some(Act::Take(id, ..)), Value::Block(Some(block))) => {
                self.replayed += 1;
                self.kernel.record(outcome.latency_ns());
                self.blocks.insert(id, block);
            }
            (Some(Act::Take(..)), _) => self.failed += 1,
            _ => {}
        }
    }

    fn push(&mut self, act: Act, todo: &mut Batch) {
        let part = |area: usize, first: u32, pages: u32| {
            self.regions[area].map(|region| Region { first: region.first + first, pages, ..region })
        };
        match act {
            Act::Touch(area, first, pages) => todo.extend(part(area, first, pages).map(Op::Touch)),
            Act::Unmap(area, first, pages) => todo.extend(part(area, first, pages).map(Op::Munmap)),
            Act::Take(_, gfp, order) => todo.push(Op::AllocPages { gfp, order }),
            Act::Give(id, order) => {
                // What failed cannot be given back.
                let Some(block) = self.blocks.remove(&id) else { return };
                if order != Order::ZERO {
                    todo.push(Op::SplitPages { block, order });
                    self.handed_over.push(None);
                }
                todo.push(Op::FreePages { first: block, pages: 1 << order.get() });
            }
        }
        self.handed_over.push(Some(act));
    }
}

impl Program for Replayer {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        let Some(last) = done.last() else { return };
        let handed_over = std::mem::take(&mut self.handed_over);
        handed_over.into_iter().zip(done).for_each(|(act, outcome)| self.learn(act, outcome));
        match self.stage {
            Stage::Map => {
                (self.stage, self.began_ns) = (Stage::Advise, last.end_ns);
                let mapped = self.pages.into_iter().filter(|pages| *pages > 0);
                // A page more, so that a mapping is never unmapped whole, which would remove it.
                todo.extend(mapped.map(|pages| Op::Mmap { pages: pages + 1 }));
                // Always something, or it would be done.
                todo.push(Op::Sleep(0));
                self.handed_over = vec![None; todo.len()];
                return;
            }
            Stage::Advise => {
                self.stage = Stage::Replay;
                todo.extend(self.regions[1].map(Op::AdviseHuge));
                self.handed_over = vec![None; todo.len()];
            }
            Stage::Replay => {}
        }
        let now = last.end_ns;
        while let Some((at_ns, act)) = self.acts.get(self.next).copied() {
            let due = self.began_ns.saturating_add(at_ns);
            if due > now {
                if todo.is_empty() {
                    todo.push(Op::Sleep(due - now));
                    self.handed_over = vec![None];
                }
                break;
            }
            // A block is known once its allocation is done.
            let is_of_this_batch =
                |id: u32| self.handed_over.iter().any(|act| matches!(act, Some(Act::Take(of, ..)) if *of == id));
            if todo.len() >= AT_ONCE || matches!(act, Act::Give(id, _) if is_of_this_batch(id)) {
                break;
            }
            self.behind.record(now - due);
            self.next += 1;
            self.push(act, todo);
        }
    }

    fn progress(&self) -> f64 {
        self.next as f64 / self.acts.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(lines: &str) -> Trace {
        Trace {
            flags: vec!["GFP_KERNEL".into(), "GFP_HIGHUSER_MOVABLE".into(), "GFP_TRANSHUGE_LIGHT".into()],
            process: vec![Recorded { name: "cat 7".into(), allocations: lines.into() }],
        }
    }

    /// Its operations with their times; an allocation takes 10 µs, all else no time.
    fn replayed(lines: &str, fails: bool) -> (Vec<(u64, Op)>, Replayer) {
        let mut program = trace(lines).program(&Start::default()).expect("it can be read");
        let (mut todo, mut done, mut ops, mut now) = (Batch::new(), vec![Outcome::at_start(0)], Vec::new(), 0);
        loop {
            program.next(&done, &mut todo);
            done.clear();
            while let Some(op) = todo.pop() {
                let start_ns = now;
                let value = match &op {
                    Op::Mmap { pages } => Value::Region(Region { mapping: *pages, first: 0, pages: *pages }),
                    Op::AllocPages { .. } => Value::Block((!fails).then(|| Frame::new(now))),
                    _ => Value::Unit,
                };
                now += match &op {
                    Op::Sleep(ns) => *ns,
                    Op::AllocPages { .. } => 10_000,
                    _ => 0,
                };
                ops.push((start_ns / 1000, op));
                done.push(Outcome { value, start_ns, end_ns: now });
            }
            if done.is_empty() {
                return (ops, program);
            }
        }
    }

    #[test]
    fn memory_of_the_process_is_touched_and_unmapped_when_it_was() {
        let (ops, program) = replayed("5 0 1 10\n7 3 1 -\n9 9 2 4\n20 0 1 1\n", false);
        let small = |first, pages| Region { mapping: 17, first, pages };
        let huge = Region { mapping: 513, first: 0, pages: 512 };
        let expected = [
            (5, Op::Touch(small(0, 1))),
            (7, Op::Touch(small(8, 8))),
            (9, Op::Touch(huge)),
            (13, Op::Munmap(huge)),
            (15, Op::Munmap(small(0, 1))),
            (20, Op::Touch(small(0, 1))),
            (21, Op::Munmap(small(0, 1))),
        ];
        let done: Vec<(u64, Op)> = ops.iter().filter(|(_, op)| !matches!(op, Op::Sleep(_))).cloned().collect();
        let mapped = [Op::Mmap { pages: 17 }, Op::Mmap { pages: 513 }, Op::AdviseHuge(Region { pages: 513, ..huge })];
        assert_eq!(done[..3].iter().map(|(_, op)| op.clone()).collect::<Vec<_>>(), mapped);
        assert_eq!(done[3..], expected);
        assert_eq!((program.replayed, program.touches.histogram.len(), program.progress()), (4, 4, 1.0));
    }

    #[test]
    fn kernel_memory_is_a_drivers_and_is_freed_page_by_page() {
        let (ops, program) = replayed("0 2 0 3\n", false);
        let block = Frame::new(0);
        assert_eq!(
            ops[1..],
            [
                (0, Op::AllocPages { gfp: Gfp::KERNEL, order: Order::new(2) }),
                (10, Op::SplitPages { block, order: Order::new(2) }),
                (10, Op::FreePages { first: block, pages: 4 }),
            ]
        );
        // The free was due at 3 µs, and came at 10.
        assert_eq!((program.kernel.longest_ns, program.behind.longest_ns), (Some(10_000), Some(7_000)));
    }

    #[test]
    fn an_allocation_that_fails_is_counted_and_not_freed() {
        let (ops, program) = replayed("0 2 0 30\n50 0 1 -\n", true);
        assert_eq!((program.failed, program.replayed), (1, 1));
        assert!(!ops.iter().any(|(_, op)| matches!(op, Op::FreePages { .. })));
    }

    #[test]
    fn each_copy_of_the_task_is_a_process_of_the_recording() {
        let mut two = trace("0 0 1 -\n");
        two.process.push(Recorded { name: "b 8".into(), allocations: "0 1 1 -\n0 0 1 -\n".into() });
        let acts = |copy| two.program(&Start { copy, ..Start::default() }).map(|program| program.acts.len());
        assert_eq!((acts(0), acts(1)), (Ok(1), Ok(2)));
        assert_eq!(two.fits(4, 2), Ok(()));
        assert_eq!(two.fits(4, 1), Err("process = 2 of them, in 1 copies: copies = 2".into()));
        let said = two.fits(3, 2).expect_err("refused");
        assert!(said.starts_with("process = 0 MiB in use at a time: the machine has 0 MiB"), "{said}");
    }

    #[test]
    fn a_line_that_is_none_is_refused_with_its_number() {
        let said = |lines: &str| trace(lines).program(&Start::default()).err().expect("refused");
        let form = "is not 'MICROSECONDS ORDER FLAGS LIFE', where flags are 0 to 2 and life is microseconds or -";
        for wrong in ["0 0 1", "0 11 1 -", "0 0 3 -", "-1 0 0 -", "0 0 0 x"] {
            assert_eq!(said(&format!("0 0 1 -\n{wrong}\n")), format!("process = line 2 of 'cat 7': '{wrong}' {form}"));
        }
        let unknown = Trace { flags: vec!["GFP_X".into()], ..trace("") };
        assert!(unknown.program(&Start::default()).err().is_some_and(|said| said.starts_with("flags = \"GFP_X\"")));
    }
}
